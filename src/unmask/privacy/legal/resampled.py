"""Intervals of 1 − EER: speakers drawn with replacement on both sides, their scores in bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.base import HULL, SKEWED, FloatArray, IntArray, score_interval
from unmask.engine import equal_errors
from unmask.privacy.legal.curve import Resampling
from unmask.run import ArrayFields, Arrays, Range, Where, ranges_of, run

_AT_ONCE = 256
_DRAWN_AT_ONCE = 64
Times = npt.NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class Resampled(ArrayFields):
    """Groups of speakers in bins of scores, and how often each is drawn in every replicate.

    ``target`` holds how many targets a group has in each bin, ``nontarget`` how many nontargets
    each pair of groups has in it, for every N' (N' × pairs × bins).
    """

    times: Times
    target: IntArray
    nontarget: npt.NDArray[np.unsignedinteger]

    def intervals(
        self, values: FloatArray, *, level: float, workers: int | None
    ) -> tuple[FloatArray, FloatArray]:
        """Intervals of 1 − EER and of the negated score's (rows) for every N' (columns).

        The hull makes 1 − EER too large, in a sample and in a resample once more. With b = mean θ*
        − θ̂ the bias that resampling shows, the low end is that of the score interval about
        θ̂ − HULL·b, the bias of a hull, and the high end that about θ̂ − b: what is not sure stays
        with the risk. The variance is that of θ* times SKEWED² (:mod:`unmask.base.intervals`).
        The interval ends at 0.5 and is stretched to hold θ̂; it keeps its width near 1, where few
        replicates hold an error at all. The first row of ``times`` draws everyone once: it gives
        the θ̂ that bins give.
        """
        ranges = ranges_of(len(self.times), _AT_ONCE)
        parts = run(errors_of, self, ranges, where=Where(workers=workers))
        drawn = 1 - np.concatenate([part["errors"] for part in parts])
        units = self.times.shape[1]
        bias = np.nanmean(drawn[1:], axis=0) - drawn[0]
        variance = SKEWED**2 * np.nanvar(drawn[1:], axis=0) * units / (units - 1)
        low, high = (
            score_interval(np.clip(values - c * bias, 0.5, 1), variance, units, level=level)[end]
            for end, c in enumerate((HULL, 1.0))
        )
        return np.minimum(np.maximum(low, 0.5), values), np.maximum(high, values)


def errors_of(resampled: Resampled, replicates: Range) -> Arrays:
    """EER of some replicates (rows), of the score and of the negated one, for every N'.

    A trial of two groups weighs as often as both are drawn, a target as often as its own. NaN where
    no nontarget was drawn. All sums are whole numbers, so they do not depend on the order in which
    they are taken.
    """
    times = resampled.times[slice(*replicates)].astype(np.float64)
    target = times @ resampled.target
    pairs = (times[:, :, None] * times[:, None, :]).reshape(len(times), -1)
    errors = np.full((len(times), 2, len(resampled.nontarget)), np.nan)
    for n, counted in enumerate(resampled.nontarget):
        nontarget = pairs @ counted.astype(np.float64)
        some = nontarget.any(axis=1)
        errors[some, 0, n] = equal_errors(target[some], nontarget[some])
        errors[some, 1, n] = equal_errors(target[some, ::-1], nontarget[some, ::-1])
    return {"errors": errors}


def drawn_times(groups: int, how: Resampling) -> Times:
    """How often each group is drawn in every replicate; before them a row of ones."""
    rng = np.random.default_rng(np.random.SeedSequence(how.seed))
    times = np.ones((how.replicates + 1, groups), dtype=np.uint16)
    for start in range(1, len(times), _DRAWN_AT_ONCE):
        rows = min(_DRAWN_AT_ONCE, len(times) - start)
        drawn = rng.integers(0, groups, (rows, groups)) + np.arange(rows)[:, None] * groups
        found = np.bincount(drawn.ravel(), minlength=rows * groups)
        times[start : start + rows] = found.reshape(rows, groups)
    return times
