"""EER and minDCF of every cell of a C-P map, from counts in nested prefixes of trials.

A cell of a C-P map holds the first a targets and the first b nontargets of two lists that are
ordered by hardness. An error count in it asks: how many of the first a trials score below τ? That
is a count in two dimensions (place in the list, score), and a wavelet matrix (Claude and Navarro
2012) answers it in one step per binary digit of the score's rank, in memory n·log n bits of ranks.
Walking down the digits *is* a bisection over thresholds, so an EER costs log n steps per cell, and
one sort of each class serves every cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, FloatArray, IntArray
from unmask.engine import Cost

Ranks = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Range:
    """Places in one level of a :class:`Prefixes`: the trials of a prefix within a score range."""

    low: Ranks
    high: Ranks

    @property
    def size(self) -> Ranks:
        return self.high - self.low

    def take(self, chosen: npt.NDArray[np.intp]) -> Range:
        return Range(self.low[chosen], self.high[chosen])

    def joined(self, other: Range) -> Range:
        return Range(np.concatenate([self.low, other.low]), np.concatenate([self.high, other.high]))

    def where(self, mask: BoolArray, other: Range) -> Range:
        """These where the mask holds, those of ``other`` elsewhere."""
        return Range(np.where(mask, self.low, other.low), np.where(mask, self.high, other.high))


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

    def first(self, counts: IntArray) -> Range:
        """The whole score range of the first ``counts`` trials."""
        high = counts.astype(np.int32)
        return Range(np.zeros_like(high), high)

    def split(self, level: int, places: Range) -> tuple[Range, Range]:
        """The lower and the upper half of the score range, one level further down."""
        lower = self.lower[level]
        low, high = lower[places.low], lower[places.high]
        middle = lower[-1]
        return Range(low, high), Range(middle + places.low - low, middle + places.high - high)


@dataclass(frozen=True, eq=False)
class Trials:
    """Both classes in hardness order, ready to be counted in any pair of prefixes."""

    target: Prefixes
    nontarget: Prefixes
    digits: int

    @classmethod
    def of(cls, target: FloatArray, nontarget: FloatArray) -> Trials:
        """From the scores of both classes, hardest first."""
        targets, nontargets, digits = code(target, nontarget)
        return cls(Prefixes.of(targets, digits), Prefixes.of(nontargets, digits), digits)


def code(target: FloatArray, nontarget: FloatArray) -> tuple[Ranks, Ranks, int]:
    """Ranks of the scores among all distinct ones, and how many binary digits they need."""
    distinct, inverse = np.unique(np.concatenate([target, nontarget]), return_inverse=True)
    codes: Ranks = inverse.astype(np.int32)
    return codes[: target.size], codes[target.size :], int(distinct.size).bit_length()


def prefix_sizes(trials: int, grid: int) -> IntArray:
    """ceil(i·n/grid) for i = 1 … grid, in integers: no rounding error can add a trial."""
    return -(-np.arange(1, grid + 1) * trials // grid)


def eer(trials: Trials, targets: IntArray, nontargets: IntArray) -> FloatArray:
    """Raw EER of the first ``targets`` and ``nontargets`` trials, cell by cell.

    Pmiss − Pfa rises with the threshold from −1 to 1. One digit of the score code per step, the
    half of the score range is kept in which it reaches 0; what is left is one score, over which the
    ROC polygon runs straight. Comparisons are in integers, so ties are exact.
    """
    t, n = trials.target.first(targets), trials.nontarget.first(nontargets)
    missed = np.zeros(targets.size, np.int64)
    accepted = nontargets.astype(np.int64)
    for level in range(trials.digits):
        t_lower, t_upper = trials.target.split(level, t)
        n_lower, n_upper = trials.nontarget.split(level, n)
        missed_at = missed + t_lower.size
        accepted_at = accepted - n_lower.size
        upper = missed_at * nontargets < accepted_at * targets
        missed = np.where(upper, missed_at, missed)
        accepted = np.where(upper, accepted_at, accepted)
        t, n = t_upper.where(upper, t_lower), n_upper.where(upper, n_lower)
    lacking = accepted * targets - missed * nontargets
    share = lacking / (t.size * nontargets + n.size * targets)
    return np.asarray((missed + share * t.size) / targets)


def min_dcf(trials: Trials, targets: IntArray, nontargets: IntArray, cost: Cost) -> FloatArray:
    """Least normalised detection cost, ±inf included, cell by cell.

    Branch and bound over score ranges: inside a range no threshold costs less than Pmiss at its
    lower and Pfa at its upper end, and a range is split only where that undercuts the best
    threshold seen so far. Every range with Pfa > Cmiss·p/(Cfa·(1−p)) falls at once.
    """
    miss, alarm = float(cost.of(1.0, 0.0)) / targets, float(cost.of(0.0, 1.0)) / nontargets
    best = np.minimum(miss * targets, alarm * nontargets)
    cell: npt.NDArray[np.intp] = np.arange(targets.size)
    t, n = trials.target.first(targets), trials.nontarget.first(nontargets)
    missed = np.zeros(targets.size, np.int64)
    accepted = nontargets.astype(np.int64)
    for level in range(trials.digits):
        t_lower, t_upper = trials.target.split(level, t)
        n_lower, n_upper = trials.nontarget.split(level, n)
        missed_at = missed + t_lower.size
        accepted_at = accepted - n_lower.size
        cost_missed, cost_accepted = miss[cell] * missed_at, alarm[cell] * accepted_at
        np.minimum.at(best, cell, cost_missed + cost_accepted)
        least = best[cell]
        lower = np.flatnonzero(miss[cell] * missed + cost_accepted < least)
        upper = np.flatnonzero(cost_missed + alarm[cell] * (accepted_at - n_upper.size) < least)
        cell = np.concatenate([cell[lower], cell[upper]])
        missed = np.concatenate([missed[lower], missed_at[upper]])
        accepted = np.concatenate([accepted[lower], accepted_at[upper]])
        t = t_lower.take(lower).joined(t_upper.take(upper))
        n = n_lower.take(lower).joined(n_upper.take(upper))
    return best
