"""One question asked of a system: what if an adversary may choose among this many voices?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.arrays import FloatArray, IntArray
from unmask.detection.bootstrap import Progress
from unmask.detection.roc import Roc
from unmask.estimate import Estimate
from unmask.stress.extrapolation.choose import REPLICATES, extrapolate
from unmask.stress.extrapolation.fitted import LEVEL, Extrapolation, Prediction
from unmask.stress.worst_case import WorstCase, as_counts, measure_worst_case
from unmask.stress.worst_case_pairs import PairScores, as_pairs

COSTS = ((10.0, 1.0), (1.0, 1.0), (1.0, 10.0))
"""(C_miss, C_fa) of τ_1, τ_2, τ_3 at a prior of one half: misses weigh more, alike, less."""

LIMITS = (0.01, 0.05, 0.1, 0.5)
"""Rates for which the needed thresholds are told unless others are asked for."""

_EMPIRICAL = 24
_PREDICTED = 36
_MAP = 90


@dataclass(frozen=True)
class Operating:
    """A threshold, what it is called, and the misses and ordinary false alarms it costs."""

    name: str
    threshold: float
    p_miss: float
    p_fa: float


@dataclass(frozen=True)
class Needed:
    """The threshold that keeps P_FA^N at a rate, and what it costs in misses."""

    count: int
    rate: float
    threshold: float
    p_miss: float


@dataclass(frozen=True, eq=False)
class WorstCaseStudy:
    """Exact rates up to the impostors at hand, predictions beyond them, thresholds that would help.

    ``empirical`` and ``predicted`` are over ``operating`` thresholds; ``surface`` is predicted over
    ``predicted.counts`` × ``levels``, the range in which anything happens; ``needed`` are the
    thresholds asked for, ``limits`` those that keep the worst case at a rate for every count.
    """

    operating: tuple[Operating, ...]
    population: int
    empirical: WorstCase
    predicted: Prediction
    levels: FloatArray
    surface: FloatArray
    needed: tuple[Needed, ...]
    limits: Mapping[float, FloatArray]
    extrapolation: Extrapolation
    skipped: int

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to be careful about."""
        told = list(self.predicted.warnings)
        if self.skipped:
            told.append(f"{self.skipped} pairs with one score were left out")
        return tuple(told)

    def estimates(self, place: int) -> tuple[Estimate, ...]:
        """FA at N = 1, at all impostors at hand (exact) and at the population (predicted)."""
        width = len(self.operating)
        exact = self.empirical.estimates
        beyond = self.predicted.estimates
        at = int(np.searchsorted(self.predicted.counts, self.population))
        point = self.operating[place]
        return (
            exact[place],
            exact[-width + place],
            beyond[at * width + place],
            Estimate("p_miss", point.p_miss, "%", params={"threshold": point.threshold}),
        )


def operating_thresholds(
    target: npt.ArrayLike,
    nontarget: npt.ArrayLike,
    *,
    thresholds: Sequence[float] = (),
    p_target: Sequence[float] = (),
) -> tuple[Operating, ...]:
    """Named thresholds: those given, those of minimum detection cost, or τ_1, τ_2, τ_3.

    A score is accepted strictly above its threshold.
    """
    roc = Roc.from_scores(target, nontarget)
    named = [(f"{value:g}", float(value)) for value in thresholds]
    named += [(f"minDCF({p:g})", _below(roc.min_dcf_point(p_target=p).threshold)) for p in p_target]
    if not named:
        named = [
            (
                f"τ{'₁₂₃'[k]}",
                _below(roc.min_dcf_point(p_target=0.5, c_miss=miss, c_fa=fa).threshold),
            )
            for k, (miss, fa) in enumerate(COSTS)
        ]
    counted = Roc.from_scores(target, nontarget, thresholds=[_above(value) for _, value in named])
    points = [counted.at_threshold(_above(value)) for _, value in named]
    return tuple(
        Operating(name, value, point.p_miss, point.p_fa)
        for (name, value), point in zip(named, points, strict=True)
    )


def worst_case_study(
    scores: PairScores | npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    population: int | None = None,
    model: str = "auto",
    thresholds: Sequence[float] = (),
    p_target: Sequence[float] = (),
    target_rates: Sequence[float] = (),
    level: float = LEVEL,
    replicates: int = 1000,
    refits: int = REPLICATES,
    seed: int = 0,
    progress: Progress | None = None,
) -> WorstCaseStudy:
    """Measure P_FA^N up to the impostors at hand and extrapolate it to ``population``.

    ``target`` holds same-speaker scores, which tell what misses a threshold costs. ``population``
    is 100 times the impostors at hand unless given; ``target_rates`` asks for the thresholds that
    keep the worst case under these rates there.
    """
    pairs = as_pairs(scores)
    count = int(as_counts([population or 100 * pairs.max_count])[0])
    points = operating_thresholds(target, pairs.scores, thresholds=thresholds, p_target=p_target)
    levels = np.array([point.threshold for point in points])
    empirical = measure_worst_case(
        pairs,
        levels,
        counts=spaced_counts(1, pairs.max_count, _EMPIRICAL),
        replicates=replicates,
        level=level,
        seed=seed,
    )
    fitted = extrapolate(pairs, model=model, seed=seed, replicates=refits, progress=progress)
    reach = np.union1d(spaced_counts(1, max(count, 2), _PREDICTED), pairs.max_count)
    predicted = fitted.predict_interval(reach, levels, level=level)
    limits = {rate: fitted.thresholds_for(rate, reach) for rate in tuple(target_rates) or LIMITS}
    top = max(fitted.thresholds[1], float(levels.max()))
    grid = np.linspace(float(np.quantile(pairs.scores, 0.02)), top, _MAP)
    surface = fitted.predict(reach, grid)
    asked = [(rate, fitted.threshold_for(rate, count)) for rate in target_rates]
    needed = tuple(
        Needed(count, rate, threshold, _misses(target, threshold)) for rate, threshold in asked
    )
    return WorstCaseStudy(
        points,
        count,
        empirical,
        predicted,
        grid,
        surface,
        needed,
        limits,
        fitted,
        pairs.skipped,
    )


def spaced_counts(first: int, last: int, size: int) -> IntArray:
    """Whole numbers from ``first`` to ``last`` in even ratios, both included."""
    return np.unique(np.rint(np.geomspace(first, last, size)).astype(np.int64))


def _misses(target: npt.ArrayLike, threshold: float) -> float:
    scores: FloatArray = np.asarray(target, dtype=np.float64)
    return float(np.mean(scores <= threshold))


def _above(threshold: float) -> float:
    """The engine accepts scores of at least a threshold: the next number accepts those above it."""
    return float(np.nextafter(threshold, np.inf))


def _below(threshold: float) -> float:
    return float(np.nextafter(threshold, -np.inf))
