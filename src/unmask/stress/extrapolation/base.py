"""What every extrapolation model shares: training cells, the interface, what is saved."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from unmask.base import BoolArray, FloatArray, IntArray
from unmask.engine import Progress
from unmask.errors import InputError
from unmask.stress.worst_case.jackknife import Groups
from unmask.stress.worst_case.pairs import PairScores
from unmask.stress.worst_case.rates import crossed_rates
from unmask.stress.worst_case.split import Crossed

UPPER = 0.3
LOWER_WEIGHT = 0.2
HARD = (0.02, 0.98)
_TRIM = 5e-4
_LEAST_COUNT = 3
_SAMPLE = 1_000_000
_TELLING = 20  # scores above a threshold, below which its rate says little


@dataclass(frozen=True, eq=False)
class Surface:
    """P_FA^N(τ) on the training cells: ``values`` (counts, thresholds).

    ``without`` holds the same without each group of speakers (first axis), at the counts ``fewer``
    that then remain: the surfaces from which refits tell the interval.
    """

    counts: IntArray
    thresholds: FloatArray
    values: FloatArray
    without: FloatArray | None = None
    fewer: IntArray | None = None

    @classmethod
    def of(
        cls,
        pairs: PairScores | Crossed,
        max_count: int,
        *,
        groups: Groups | None = None,
        progress: Progress | None = None,
    ) -> Surface:
        """The training surface of a set of pairs for N up to ``max_count``."""
        crossed = pairs if isinstance(pairs, Crossed) else Crossed(pairs)
        counts = training_counts(checked_max_count(max_count, crossed.whole))
        thresholds = training_thresholds(crossed.whole, max_count)
        rates = crossed_rates(crossed, thresholds, counts, groups, progress=progress)
        return cls(counts, thresholds, rates.values, rates.without, rates.fewer)

    @property
    def weights(self) -> FloatArray:
        """Weight of each count in a fit: those of the upper part, [0.3, 1]·N_max, count fully."""
        return np.where(self.counts >= UPPER * self.counts.max(), 1.0, LOWER_WEIGHT)

    def up_to(self, count: int) -> Surface:
        """The cells with N ≤ ``count``."""
        some = self.counts <= count
        return Surface(self.counts[some], self.thresholds, self.values[some])

    def deleted(self) -> Iterator[Surface]:
        """The surface without each group of speakers."""
        if self.without is None or self.fewer is None:
            return
        counts, first = np.unique(self.fewer, return_index=True)
        for values in self.without:
            yield Surface(counts, self.thresholds, values[first])


def checked_max_count(max_count: int, pairs: PairScores) -> int:
    """A largest training count that the pairs allow."""
    if not _LEAST_COUNT <= max_count <= pairs.max_count:
        raise InputError(
            f"max_count: expected {_LEAST_COUNT} to {pairs.max_count}, found {max_count}"
        )
    return max_count


def training_counts(max_count: int) -> IntArray:
    """N = 1 and powers up to the upper part of [1, max_count], then even steps through it."""
    low = np.geomspace(1, max(UPPER * max_count, 1.0), 8)
    high = np.linspace(UPPER * max_count, max_count, 12)
    return np.unique(np.rint(np.concatenate([low, high])).astype(np.int64).clip(1))


def training_thresholds(pairs: PairScores, max_count: int) -> FloatArray:
    """Even steps over the range in which rates move at all, and finer ones over that of the
    closest of ``max_count`` impostors.
    """
    rank = np.maximum(pairs.impostors // max_count, 1)
    order = np.lexsort((-pairs.similarity, pairs.target))
    closest = order[pairs.first[:-1] + rank - 1]
    near = np.concatenate([pairs.scores[pairs.start[p] : pairs.start[p + 1]] for p in closest])
    some = pairs.scores[:: max(pairs.scores.size // _SAMPLE, 1)]
    trim = min(max(_TRIM, _TELLING / near.size), 0.05)
    wide = np.linspace(np.quantile(some, _TRIM), np.quantile(near, 1 - trim), 48)
    first, last = np.quantile(near, [0.01, 1 - max(0.01, trim)])
    fine = np.linspace(float(first), float(last), 40)
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
