"""EER and minDCF of every cell of a C-P map, from counts in nested prefixes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray
from unmask.engine import Cost
from unmask.stress.cpmap.prefixes import Prefixes, Range, code


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


def eer(trials: Trials, targets: IntArray, nontargets: IntArray) -> FloatArray:
    """Raw EER of the first ``targets`` and ``nontargets`` trials, cell by cell.

    Pmiss − Pfa rises with the threshold from −1 to 1. One digit of the score code per step, the
    half of the score range is kept in which it reaches 0; what is left is one score, over which the
    ROC polygon runs straight. Comparisons are in integers, so ties are exact.
    """
    t, n = _start(trials, targets, nontargets)
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
        t, n = _choose(upper, t_upper, t_lower), _choose(upper, n_upper, n_lower)
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
    t, n = _start(trials, targets, nontargets)
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
        t = _join(t_lower.take(lower), t_upper.take(upper))
        n = _join(n_lower.take(lower), n_upper.take(upper))
    return best


def _start(trials: Trials, targets: IntArray, nontargets: IntArray) -> tuple[Range, Range]:
    return (
        trials.target.first(targets.astype(np.int32)),
        trials.nontarget.first(nontargets.astype(np.int32)),
    )


def _choose(first: npt.NDArray[np.bool_], a: Range, b: Range) -> Range:
    return Range(np.where(first, a.low, b.low), np.where(first, a.high, b.high))


def _join(a: Range, b: Range) -> Range:
    return Range(np.concatenate([a.low, b.low]), np.concatenate([a.high, b.high]))
