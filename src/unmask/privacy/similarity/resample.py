"""Resamples of the speakers, each calibrated anew.

m_i is how often speaker i was drawn. A comparison within a speaker weighs m_i, one of two speakers
m_i·m_j; copies of one speaker are never compared with each other. Every replicate has its own
oracle calibration, and so its own similarity matrix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import expit

from unmask.base import FloatArray
from unmask.engine import Pav, Polygon, equal_error, first_of_blocks, information
from unmask.privacy.similarity.bins import Binned

_ENTRIES = 1 << 23
_MOST_TOGETHER = 128

Table = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Resampled:
    """Of every replicate: signed dominance of the similarities and of their log2, D_ECE and
    C_llr^min in bits, and the EER; ``share`` has a row per replicate and a column per speaker,
    where the speakers' shares were asked for.
    """

    signed: FloatArray
    signed_log: FloatArray
    d_ece: FloatArray
    min_cllr: FloatArray
    eer: FloatArray
    share: FloatArray

    def moved(self, exact: Mapping[str, FloatArray | float], coarse: Resampled) -> Resampled:
        """Less what the bins move: ``exact`` minus ``coarse``, which is that of all speakers."""
        moved = {
            name: getattr(self, name) + (np.asarray(exact[name]) - getattr(coarse, name))
            for name in ("signed", "signed_log", "d_ece", "min_cllr", "eer")
        }
        share = self.share
        if share.size:
            share = (share + (exact["share"] - coarse.share)).astype(np.float32)
        return Resampled(**moved, share=share)


@dataclass(frozen=True, eq=False)
class _Set:
    """Counts of one set, ready for products."""

    binned: Binned
    mean: str
    shares: bool

    @cached_property
    def own_number(self) -> FloatArray:
        return np.asarray(self.binned.own.sum(axis=1))

    @cached_property
    def other_number(self) -> FloatArray:
        return np.asarray(self.binned.other.sum(axis=1, dtype=np.float64))

    @cached_property
    def sides(self) -> tuple[csr_array, csr_array]:
        """Which rows of ``other`` a speaker stands in first, and second."""
        speakers, rows = len(self.binned.own), len(self.binned.other)
        ones, at = np.ones(rows), np.arange(rows)
        both = (self.binned.first, self.binned.second)
        first, second = (csr_array((ones, (side, at)), shape=(speakers, rows)) for side in both)
        return first, second


def resampled(binned: Binned, times: FloatArray, *, mean: str, shares: bool = True) -> Resampled:
    """What every replicate gives; ``times[r, i]`` is how often speaker i was drawn in it."""
    made = _Set(binned, mean, shares)
    together = int(np.clip(_ENTRIES // max(len(binned.other), 1), 1, _MOST_TOGETHER))
    parts = [
        _batch(made, times[start : start + together]) for start in range(0, len(times), together)
    ]
    return Resampled(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _batch(made: _Set, times: FloatArray) -> tuple[FloatArray, ...]:
    binned = made.binned
    weight = (times[:, binned.first] * times[:, binned.second]).astype(np.float32)
    target = times @ binned.own
    nontarget = (weight @ binned.other).astype(np.float64)
    oracles = [_oracle(*row) for row in zip(target, nontarget, strict=True)]
    llr, bare, eer = (np.stack(column) for column in zip(*oracles, strict=True))
    disclosed = _disclosed(bare, target, nontarget)
    per_bin = llr if made.mean == "arithmetic" else -information.softplus(-llr)
    with np.errstate(invalid="ignore", divide="ignore"):
        own = (binned.own @ per_bin.T) / made.own_number[:, None]
    other = (binned.other @ per_bin.T.astype(np.float32)).astype(np.float64)
    other /= made.other_number[:, None]
    if made.mean == "arithmetic":
        own, other = expit(own), expit(other)
        logs = np.log2(own), np.log2(other)
    else:
        logs = own / np.log(2), other / np.log(2)
        own, other = np.exp(own), np.exp(other)
    with np.errstate(invalid="ignore", divide="ignore"):
        return (
            _dominance(own, other, times, weight),
            _dominance(*logs, times, weight),
            *disclosed,
            eer,
            own.T - _others(made, other, times) if made.shares else np.empty((len(times), 0)),
        )


def _dominance(own: FloatArray, other: FloatArray, times: FloatArray, weight: Table) -> FloatArray:
    """Mean of the speakers' own similarities minus that of all pairs; NaN where there is none."""
    within = (times * own.T).sum(axis=1) / times.sum(axis=1)
    between = np.einsum("rc,cr->r", weight, other) / weight.sum(axis=1, dtype=np.float64)
    return np.asarray(within - between)


def _others(made: _Set, other: FloatArray, times: FloatArray) -> FloatArray:
    """Mean similarity of each speaker to the others drawn, on either side."""
    first, second = made.sides
    of_first, of_second = times[:, made.binned.first].T, times[:, made.binned.second].T
    total = first @ (other * of_second) + second @ (other * of_first)
    number = first @ of_second + second @ of_first
    return np.asarray((total / number).T)


def _disclosed(
    llr: FloatArray, target: FloatArray, nontarget: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """D_ECE and C_llr^min in bits of every row of LLRs without Laplace."""

    def mean(weight: FloatArray, values: FloatArray) -> FloatArray:
        return np.asarray(
            np.where(weight > 0, weight * values, 0.0).sum(axis=1) / weight.sum(axis=1)
        )

    with np.errstate(invalid="ignore"):
        both = (target, llr), (nontarget, -llr)
        d_ece = sum(mean(weight, information.z(values)) for weight, values in both)
        cllr = sum(mean(weight, information.softplus(-values)) for weight, values in both)
    return np.maximum(d_ece, 0.0) / (2 * np.log(2)), np.asarray(cllr) / (2 * np.log(2))


def _oracle(target: FloatArray, nontarget: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """LLR of every bin with Laplace and without, and the EER; NaN if a class is empty."""
    bins = np.flatnonzero((target > 0) | (nontarget > 0))
    total = float(target.sum()), float(nontarget.sum())
    if not all(total):
        nothing = np.full(target.size, np.nan)
        return nothing, nothing, np.nan
    first = first_of_blocks(target[bins], nontarget[bins])
    pav = Pav(
        bins[first[1:]].astype(np.float64),
        np.add.reduceat(target[bins], first),
        np.add.reduceat(nontarget[bins], first),
        *total,
    )
    every = np.arange(target.size, dtype=np.float64)
    hull = Polygon.of(pav.target, pav.nontarget)
    return pav.with_laplace().apply(every), pav.apply(every), equal_error(hull)[0]
