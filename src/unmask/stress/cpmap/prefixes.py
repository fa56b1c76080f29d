"""Counts in nested prefixes of trials: what lets one sort of each class serve every cell of a map.

A cell of a C-P map holds the first a targets and the first b nontargets of two lists that are
ordered by hardness. An error count in it asks: how many of the first a trials score below τ? That
is a count in two dimensions (place in the list, score), and a wavelet matrix (Claude and Navarro
2012) answers it in one step per binary digit of the score's rank, in memory n·log n bits of ranks.
Walking down the digits *is* a bisection over thresholds, so an EER costs log n steps per cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray

Ranks = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Range:
    """Places in one level of a :class:`Prefixes`: the trials of a prefix within a score range."""

    low: Ranks
    high: Ranks

    @property
    def size(self) -> Ranks:
        return self.high - self.low

    def take(self, chosen: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> Range:
        return Range(self.low[chosen], self.high[chosen])


@dataclass(frozen=True, eq=False)
class Prefixes:
    """Score codes of one class in hardness order, split digit by digit from the highest.

    ``lower[d][i]`` counts, among the first i places of level d, the codes whose d-th digit is 0;
    those come first in level d + 1, in the same order.
    """

    lower: tuple[Ranks, ...]
    size: int

    @classmethod
    def of(cls, codes: Ranks, digits: int) -> Prefixes:
        """Build from score codes below 2^digits, hardest trial first."""
        levels = []
        for shift in range(digits - 1, -1, -1):
            is_lower = (codes >> shift) & 1 == 0
            counts = np.zeros(codes.size + 1, np.int32)
            np.cumsum(is_lower, out=counts[1:])
            levels.append(counts)
            codes = np.concatenate([codes[is_lower], codes[~is_lower]])
        return cls(tuple(levels), codes.size)

    def first(self, counts: Ranks) -> Range:
        """The whole score range of the first ``counts`` trials."""
        return Range(np.zeros_like(counts), counts)

    def split(self, level: int, places: Range) -> tuple[Range, Range]:
        """The lower and the upper half of the score range, one level further down."""
        lower = self.lower[level]
        low, high = lower[places.low], lower[places.high]
        middle = lower[-1]
        return Range(low, high), Range(middle + places.low - low, middle + places.high - high)


def code(target: FloatArray, nontarget: FloatArray) -> tuple[Ranks, Ranks, int]:
    """Ranks of the scores among all distinct ones, and how many binary digits they need."""
    distinct, inverse = np.unique(np.concatenate([target, nontarget]), return_inverse=True)
    codes: Ranks = inverse.astype(np.int32)
    return codes[: target.size], codes[target.size :], int(distinct.size).bit_length()


def prefix_sizes(trials: int, grid: int) -> IntArray:
    """ceil(i·n/grid) for i = 1 … grid, in integers: no rounding error can add a trial."""
    return -(-np.arange(1, grid + 1) * trials // grid)
