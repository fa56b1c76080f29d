"""One question asked of a system: what if an adversary picks the closest of this many voices?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray
from unmask.engine import Progress, Roc
from unmask.estimate import Estimate
from unmask.run import Where
from unmask.stress.extrapolation.choose import Ready
from unmask.stress.extrapolation.fitted import LEVEL, Extrapolation, Prediction
from unmask.stress.extrapolation.models import checked_name
from unmask.stress.worst_case.checks import as_counts
from unmask.stress.worst_case.jackknife import GROUPS, Groups, checked_groups, checked_level
from unmask.stress.worst_case.pairs import PairScores, as_pairs
from unmask.stress.worst_case.rates import Proxy, WorstCase, crossed_pairs, crossed_rates
from unmask.stress.worst_case.split import Crossed
from unmask.stress.worst_case.thresholds import (
    Operating,
    counted_at,
    misses,
    thresholds_of_roc,
)

LIMITS = (0.01, 0.05, 0.1, 0.5)
"""Rates for which the needed thresholds are told unless others are asked for."""

_EMPIRICAL = 24
_PREDICTED = 36
_MAP = 90


@dataclass(frozen=True)
class Needed:
    """The threshold that keeps P_FA^N at a rate, and what it costs in misses.

    At ``threshold`` the prediction is the rate and the upper end of its interval ``high``; at
    ``safe_threshold`` it is the upper end that keeps to the rate. Without intervals ``high`` is NaN
    and the two thresholds are the same.
    """

    count: int
    rate: float
    threshold: float
    p_miss: float
    high: float
    safe_threshold: float
    safe_p_miss: float


@dataclass(frozen=True)
class Sample:
    """What a model was fitted to where all scores would be too many."""

    targets: int
    per_pair: int


@dataclass(frozen=True, eq=False)
class WorstCaseStudy:
    """Exact rates up to the impostors at hand, predictions beyond them, thresholds that would help.

    ``empirical`` and ``predicted`` are over ``operating`` thresholds; ``surface`` is predicted over
    ``predicted.counts`` × ``levels``, the range in which anything happens; ``needed`` are the
    thresholds asked for, ``limits`` those that keep the worst case at a rate for every count.
    ``sample`` says so where the model was fitted to some of the scores; ``empirical`` never is.
    ``compared`` are the predictions of other models that were asked for, each with its interval.
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
    sample: Sample | None = None
    compared: Mapping[str, Prediction] = field(default_factory=dict)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to be careful about."""
        told = [*self.empirical.warnings, *self.predicted.warnings]
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


def worst_case_study(
    scores: PairScores | npt.ArrayLike,
    target: npt.ArrayLike,
    *,
    population: int | None = None,
    model: str = "auto",
    compare: Sequence[str] = (),
    thresholds: Sequence[float] = (),
    p_target: Sequence[float] = (),
    target_rates: Sequence[float] = (),
    proxy: Proxy = None,
    split: bool = True,
    level: float = LEVEL,
    groups: int = GROUPS,
    seed: int = 0,
    on: str = "local",
    workers: int | None = None,
    state: str | Path | None = None,
    progress: Progress | None = None,
) -> WorstCaseStudy:
    """Measure P_FA^N up to the impostors at hand and extrapolate it to ``population``.

    ``target`` holds same-speaker scores, which tell what misses a threshold costs. ``population``
    is 100 times the impostors at hand unless given; ``target_rates`` asks for the thresholds that
    keep the worst case under these rates there. ``proxy``, ``split`` and ``groups`` are those of
    :func:`measure_worst_case` and reach the extrapolation as well; ``compare`` names other models
    to predict with beside ``model``. ``on``, ``workers`` and ``state`` say where the measured part
    is counted.
    """
    where = Where(on, workers, state)
    pairs = as_pairs(scores)
    asked = Asked(population, model, tuple(target_rates), level, groups, seed, tuple(compare))
    roc = Roc.from_scores(target, pairs.scores, thresholds=counted_at(thresholds))
    points = thresholds_of_roc(roc, thresholds=thresholds, p_target=p_target)
    crossed = crossed_pairs(pairs, proxy, split=split, seed=seed)
    counts = measured_counts(pairs.max_count)
    levels = [point.threshold for point in points]
    dealt = Groups.of(pairs, groups, seed=seed) if groups else None
    empirical = WorstCase.around(
        crossed_rates(crossed, levels, counts, dealt, where=where),
        levels,
        counts,
        level=level,
        seed=seed,
        targets=len(pairs.target_names),
        impostors=pairs.max_count,
        per_pair=crossed.per_pair,
        split=bool(crossed.folds),
    )
    return asked.study(
        points, roc, empirical, crossed, pairs, proxied=proxy is not None, progress=progress
    )


@dataclass(frozen=True)
class Asked:
    """What a study is to tell beyond the measured part."""

    population: int | None
    model: str
    target_rates: tuple[float, ...]
    level: float
    groups: int
    seed: int
    compared: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot be told, before any work."""
        for name in (self.model, *self.compared):
            if name != "auto":
                checked_name(name)
        if self.population is not None:
            as_counts([self.population])
        checked_level(self.level)
        checked_groups(self.groups)

    def population_of(self, impostors: int) -> int:
        """Voices to choose from."""
        return self.population or 100 * impostors

    def study(
        self,
        points: tuple[Operating, ...],
        roc: Roc,
        empirical: WorstCase,
        crossed: Crossed,
        pairs: PairScores,
        *,
        proxied: bool = False,
        sample: Sample | None = None,
        progress: Progress | None = None,
    ) -> WorstCaseStudy:
        """Join the measured part with a model fitted to ``crossed``."""
        count = self.population_of(empirical.impostors)
        levels = np.array([point.threshold for point in points])
        ready = Ready.of(crossed, pairs, proxied=proxied, groups=self.groups, seed=self.seed)
        fitted = ready.fitted(self.model, progress)
        others = {name: ready.fitted(name, progress) for name in self.compared}
        reach = np.union1d(spaced_counts(1, max(count, 2), _PREDICTED), empirical.impostors)
        top = max(fitted.thresholds[1], float(levels.max()))
        grid = np.linspace(float(np.quantile(pairs.scores, 0.02)), top, _MAP)
        return WorstCaseStudy(
            points,
            count,
            empirical,
            fitted.predict_interval(reach, levels, level=self.level).above(empirical),
            grid,
            fitted.predict(reach, grid),
            tuple(self._needed(rate, count, fitted, roc) for rate in self.target_rates),
            {rate: fitted.thresholds_for(rate, reach) for rate in self.target_rates or LIMITS},
            fitted,
            pairs.skipped,
            sample,
            {
                name: one.predict_interval(reach, levels, level=self.level).above(empirical)
                for name, one in others.items()
            },
        )

    def _needed(self, rate: float, count: int, fitted: Extrapolation, roc: Roc) -> Needed:
        threshold = fitted.threshold_for(rate, count)
        safe, high = threshold, float("nan")
        if fitted.replicates:
            safe = fitted.threshold_for(rate, count, level=self.level)
            if np.isfinite(threshold):
                there = fitted.predict_interval([count], [threshold], level=self.level)
                high = float(there.high[0, 0])
        return Needed(count, rate, threshold, misses(roc, threshold), high, safe, misses(roc, safe))


def measured_counts(impostors: int) -> IntArray:
    """Numbers of impostors at which the measured part is told."""
    return spaced_counts(1, impostors, _EMPIRICAL)


def spaced_counts(first: int, last: int, size: int) -> IntArray:
    """Whole numbers from ``first`` to ``last`` in even ratios, both included."""
    return np.unique(np.rint(np.geomspace(first, last, size)).astype(np.int64))
