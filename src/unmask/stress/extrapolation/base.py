"""What every extrapolation model shares: training cells, the interface, what is saved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from unmask.arrays import BoolArray, FloatArray, IntArray
from unmask.detection.bootstrap import Progress
from unmask.errors import InputError
from unmask.stress.worst_case import worst_case_by_target
from unmask.stress.worst_case_pairs import PairScores

UPPER = 0.3
HARD = (0.02, 0.98)
_TRIM = 5e-4
_LEAST_COUNT = 3


@dataclass(frozen=True, eq=False)
class Surface:
    """Exact P_FA^N(τ) on the training cells: ``values`` (counts, thresholds).

    ``each`` holds the same for each target alone, from which bootstrap surfaces are averaged;
    ``weights`` weighs the counts in a fit: those of the upper part, [0.3, 1]·N_max, count fully.
    """

    counts: IntArray
    thresholds: FloatArray
    values: FloatArray
    each: FloatArray
    weights: FloatArray

    @classmethod
    def of(
        cls, pairs: PairScores, max_count: int, *, progress: Progress | None = None
    ) -> Surface:
        """The training surface of a set of pairs for N up to ``max_count``."""
        if not _LEAST_COUNT <= max_count <= pairs.max_count:
            raise InputError(
                f"max_count: expected {_LEAST_COUNT} to {pairs.max_count}, found {max_count}"
            )
        counts = training_counts(max_count)
        thresholds = training_thresholds(pairs, max_count)
        each = worst_case_by_target(pairs, thresholds, counts=counts, progress=progress)
        upper = counts >= UPPER * max_count
        weights = np.where(upper, 1.0, 0.2)
        return cls(counts, thresholds, each.mean(axis=0), each, weights)

    def drawn(self, times: IntArray) -> Surface:
        """The surface of a bootstrap draw in which target i appears ``times[i]`` times."""
        values = np.tensordot(times / times.sum(), self.each, axes=1)
        return replace(self, values=values)


def training_counts(max_count: int) -> IntArray:
    """N = 1 and powers up to the upper part of [1, max_count], then even steps through it."""
    low = np.geomspace(1, max(UPPER * max_count, 1.0), 8)
    high = np.linspace(UPPER * max_count, max_count, 12)
    return np.unique(np.rint(np.concatenate([low, high])).astype(np.int64).clip(1))


def training_thresholds(pairs: PairScores, max_count: int) -> FloatArray:
    """Even steps over the range where rates at N = 1 … max_count tell anything, and finer ones
    over the hard thresholds.
    """
    span = np.linspace(pairs.scores.min(), pairs.scores.max(), 257)
    rates = worst_case_by_target(pairs, span, counts=[1, max_count]).mean(axis=0)
    told = (rates[0] < 1 - _TRIM) & (rates[1] > _TRIM)
    wide = np.linspace(span[told][0], span[told][-1], 48) if told.any() else span[::6]
    hard = hard_thresholds(rates[1])
    fine = np.linspace(span[hard][0], span[hard][-1], 40) if hard.any() else wide[:0]
    return np.unique(np.concatenate([wide, fine]))


def hard_thresholds(rates: FloatArray) -> BoolArray:
    """Thresholds at which the reference count's rate is neither near 0 nor near 1."""
    return (rates > HARD[0]) & (rates < HARD[1])


class Model(ABC):
    """A fitted model: rates for any N and τ, and the numbers it consists of."""

    name: str

    @abstractmethod
    def rates(self, counts: IntArray, thresholds: FloatArray) -> FloatArray:
        """P_FA^N(τ), an array (counts, thresholds)."""

    @abstractmethod
    def numbers(self) -> Mapping[str, FloatArray]:
        """Arrays from which :func:`restore` makes the same model."""
