"""One question asked of a system: what if an adversary may choose among this many voices?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unmask.arrays import FloatArray, IntArray
from unmask.detection.bootstrap import Progress
from unmask.detection.roc import Roc
from unmask.estimate import Estimate
from unmask.scoring.job import Where
from unmask.stress.extrapolation.choose import REPLICATES, extrapolate
from unmask.stress.extrapolation.fitted import LEVEL, Extrapolation, Prediction
from unmask.stress.extrapolation.models import checked_name
from unmask.stress.worst_case import WorstCase, measure_worst_case
from unmask.stress.worst_case_checks import as_counts
from unmask.stress.worst_case_pairs import PairScores, as_pairs
from unmask.stress.worst_case_thresholds import (
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
    """The threshold that keeps P_FA^N at a rate, and what it costs in misses."""

    count: int
    rate: float
    threshold: float
    p_miss: float


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
    on: str = "local",
    workers: int | None = None,
    state: str | Path | None = None,
    progress: Progress | None = None,
) -> WorstCaseStudy:
    """Measure P_FA^N up to the impostors at hand and extrapolate it to ``population``.

    ``target`` holds same-speaker scores, which tell what misses a threshold costs. ``population``
    is 100 times the impostors at hand unless given; ``target_rates`` asks for the thresholds that
    keep the worst case under these rates there. ``on``, ``workers`` and ``state`` say where the
    measured part is counted.
    """
    Where(on, workers, state)
    pairs = as_pairs(scores)
    asked = Asked(population, model, tuple(target_rates), level, refits, seed)
    roc = Roc.from_scores(target, pairs.scores, thresholds=counted_at(thresholds))
    points = thresholds_of_roc(roc, thresholds=thresholds, p_target=p_target)
    empirical = measure_worst_case(
        pairs,
        [point.threshold for point in points],
        counts=measured_counts(pairs.max_count),
        replicates=replicates,
        level=level,
        seed=seed,
        on=on,
        workers=workers,
        state=state,
    )
    return asked.study(points, roc, empirical, pairs, progress=progress)


@dataclass(frozen=True)
class Asked:
    """What a study is to tell beyond the measured part."""

    population: int | None
    model: str
    target_rates: tuple[float, ...]
    level: float
    refits: int
    seed: int

    def __post_init__(self) -> None:
        """Refuse what cannot be told, before any work."""
        if self.model != "auto":
            checked_name(self.model)
        if self.population is not None:
            as_counts([self.population])

    def population_of(self, impostors: int) -> int:
        """Voices to choose from."""
        return self.population or 100 * impostors

    def study(
        self,
        points: tuple[Operating, ...],
        roc: Roc,
        empirical: WorstCase,
        pairs: PairScores,
        *,
        sample: Sample | None = None,
        progress: Progress | None = None,
    ) -> WorstCaseStudy:
        """Join the measured part with a model fitted to ``pairs``."""
        count = self.population_of(empirical.impostors)
        levels = np.array([point.threshold for point in points])
        fitted = extrapolate(
            pairs, model=self.model, seed=self.seed, replicates=self.refits, progress=progress
        )
        reach = np.union1d(spaced_counts(1, max(count, 2), _PREDICTED), empirical.impostors)
        top = max(fitted.thresholds[1], float(levels.max()))
        grid = np.linspace(float(np.quantile(pairs.scores, 0.02)), top, _MAP)
        needed = [(rate, fitted.threshold_for(rate, count)) for rate in self.target_rates]
        return WorstCaseStudy(
            points,
            count,
            empirical,
            fitted.predict_interval(reach, levels, level=self.level),
            grid,
            fitted.predict(reach, grid),
            tuple(Needed(count, rate, value, misses(roc, value)) for rate, value in needed),
            {rate: fitted.thresholds_for(rate, reach) for rate in self.target_rates or LIMITS},
            fitted,
            pairs.skipped,
            sample,
        )


def measured_counts(impostors: int) -> IntArray:
    """Numbers of impostors at which the measured part is told."""
    return spaced_counts(1, impostors, _EMPIRICAL)


def spaced_counts(first: int, last: int, size: int) -> IntArray:
    """Whole numbers from ``first`` to ``last`` in even ratios, both included."""
    return np.unique(np.rint(np.geomspace(first, last, size)).astype(np.int64))
