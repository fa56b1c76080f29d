"""Calibration distortion of resamples of the speakers: the map is fitted anew in each.

Scores of both runs are counted in fine bins per pair of speakers; a bin stands for the mean of its
scores. What the bins move is taken off every replicate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from unmask.base import FloatArray, IntArray, weighted_sum
from unmask.engine import Pav, Roc, first_of_blocks, information
from unmask.errors import InputError
from unmask.estimate import Interval
from unmask.privacy.similarity.bins import Binned, Layout, counted
from unmask.privacy.similarity.intervals import Statistic, interval_of, resamples

_STEPS = 30
_EVEN = 129
_FLATTEST = 1e-12


@dataclass(frozen=True, eq=False)
class RunScores:
    """Scores of one run of a safeguard, and whose they are: codes from 0 to ``speakers``."""

    target: FloatArray
    nontarget: FloatArray
    owner: IntArray
    first: IntArray
    second: IntArray
    speakers: int

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """(target, nontarget) scores."""
        return self.target, self.nontarget


@dataclass(frozen=True, eq=False)
class Run:
    """One run in bins; ``score`` is the mean score of each."""

    binned: Binned
    score: FloatArray

    @classmethod
    def of(cls, run: RunScores) -> Run:
        """Count the scores of a run."""
        layout = Layout.of(Roc.from_scores(*run.pair), run.speakers)
        even = np.quantile(run.nontarget, np.linspace(0, 1, _EVEN), method="nearest")
        layout = replace(layout, edges=np.union1d(layout.edges, even))
        scores = np.concatenate(run.pair)
        one, other = (np.concatenate([run.owner, side]) for side in (run.first, run.second))
        place = layout.lookup(scores)
        number = np.bincount(place, minlength=layout.bins)
        total = np.bincount(place, scores, minlength=layout.bins)
        known = np.flatnonzero(number)
        score = np.interp(np.arange(layout.bins), known, total[known] / number[known])
        return cls(Binned.of(counted(layout, scores, one, other), layout), score)

    def weighted(self, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weight of the targets and of the nontargets of a resample in each bin."""
        weight = times[self.binned.first] * times[self.binned.second]
        nontarget = (weight.astype(np.float32) @ self.binned.other).astype(np.float64)
        return times @ self.binned.own, nontarget


def distortion_intervals(
    first: RunScores,
    second: RunScores,
    exact: tuple[float, float],
    *,
    method: str,
    laplace: bool,
    replicates: int,
    level: float,
    seed: int,
) -> tuple[Interval | None, Interval | None]:
    """Intervals of C_ECE and of C_llr, whose values for all speakers are ``exact``."""
    if first.speakers != second.speakers:
        raise InputError("two runs of one safeguard have the same speakers")
    times = resamples(first.speakers, replicates, seed)
    if times is None or first.speakers < 2 or not np.isfinite(exact).all():
        return None, None
    runs = Run.of(first), Run.of(second)
    coarse = _distortion(*runs, np.ones(first.speakers), method, laplace)
    drawn = np.array([_distortion(*runs, row, method, laplace) for row in times])
    made = []
    for column, value in enumerate(exact):
        moved = drawn[:, column] + (value - coarse[column])
        bounds = (-np.inf, np.inf) if column == 0 else (0.0, np.inf)
        statistic = Statistic(value, moved, replicates, bounds=bounds)
        made.append(
            interval_of(
                statistic, speakers=first.speakers, level=level, replicates=replicates, seed=seed
            )
        )
    return made[0], made[1]


def _distortion(
    first: Run, second: Run, times: FloatArray, method: str, laplace: bool
) -> tuple[float, float]:
    """C_ECE and C_llr of a resample; NaN where a class is empty."""
    target, nontarget = first.weighted(times)
    tested, others = second.weighted(times)
    if not all(counts.any() for counts in (target, nontarget, tested, others)):
        return np.nan, np.nan
    if method == "linear":
        scale, offset = weighted_line(first.score, target, nontarget)
        llr = scale * second.score + offset
    else:
        llr = np.interp(second.score, first.score, _isotonic(target, nontarget, laplace))
    hits, misses = tested / tested.sum(), others / others.sum()
    c_ece = weighted_sum(information.z(llr), hits)
    c_ece += weighted_sum(information.z(-llr), misses)
    loss = weighted_sum(information.softplus(-llr), hits)
    loss += weighted_sum(information.softplus(llr), misses)
    return c_ece / (2 * np.log(2)), loss / (2 * np.log(2))


def weighted_line(
    score: FloatArray, target: FloatArray, nontarget: FloatArray
) -> tuple[float, float]:
    """Logistic regression at even odds on weighted scores: (scale, offset), by Newton's method."""
    centre, spread = float(score.mean()), float(score.std()) or 1.0
    x = (score - centre) / spread
    weights = np.stack([target / target.sum(), nontarget / nontarget.sum()]) / 2
    slope = bias = 0.0
    for _ in range(_STEPS):
        share = expit(slope * x + bias)
        wrong = weights[0] * (1 - share) - weights[1] * share
        curve = weights.sum(axis=0) * share * (1 - share)
        one, cross, two = curve.sum(), curve @ x, curve @ (x * x)
        determinant = one * two - cross**2
        if determinant < _FLATTEST:
            break
        gradient = wrong @ x, wrong.sum()
        slope += (one * gradient[0] - cross * gradient[1]) / determinant
        bias += (two * gradient[1] - cross * gradient[0]) / determinant
        if max(map(abs, gradient)) < _FLATTEST:
            break
    scale = slope / spread
    return float(scale), float(bias - scale * centre)


def _isotonic(target: FloatArray, nontarget: FloatArray, laplace: bool) -> FloatArray:
    """LLR of every bin by PAV."""
    bins = np.flatnonzero((target > 0) | (nontarget > 0))
    start = first_of_blocks(target[bins], nontarget[bins])
    pav = Pav(
        bins[start[1:]].astype(np.float64),
        np.add.reduceat(target[bins], start),
        np.add.reduceat(nontarget[bins], start),
        float(target.sum()),
        float(nontarget.sum()),
    )
    made = pav.with_laplace() if laplace else pav
    return made.apply(np.arange(target.size, dtype=np.float64))
