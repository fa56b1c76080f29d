"""Intervals of ``evaluate`` and ``compare``, and those of trials in bins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

import unmask as um
from benchmarks.coverage.populations import (
    KEPT_APART,
    POPULATIONS,
    Population,
    calibrated_limit,
)
from benchmarks.coverage.tally import Tally, header, line
from unmask.engine import resample

BATTERY = um.Battery()
SPEAKERS = (20, 40, 60)
SAMPLES = 200
REPLICATES = 100


def run(*, samples: int = SAMPLES) -> None:
    """Print coverage for every population, number of speakers and number."""
    header()
    for population in (KEPT_APART, *POPULATIONS):
        for speakers in SPEAKERS:
            for name, tally in covered(population, speakers, samples=samples).items():
                line(population.name, speakers, name, tally)


def truth(population: Population) -> list[dict[str, float]]:
    """Every number of both systems on very many speakers."""
    return [
        BATTERY.values(um.Roc.from_scores(*classes, thresholds=BATTERY.thresholds, cllr=True))
        for classes in calibrated_limit(population)
    ]


def covered(
    population: Population,
    speakers: int,
    *,
    samples: int = SAMPLES,
    replicates: int = REPLICATES,
) -> dict[str, Tally]:
    """Tallies of the better system's numbers, of differences (Δ) and of intervals in bins."""
    better, poorer = truth(population)
    keys = [key for key, about in BATTERY.measured().items() if not about.no_interval]
    tallies = {key: Tally(better[key]) for key in keys}
    tallies |= {f"Δ {key}": Tally(poorer[key] - better[key]) for key in keys}
    tallies |= {f"bins {key}": Tally(better[key]) for key in keys}
    for scores in _samples(population, speakers, samples):
        found = um.compare(scores, battery=BATTERY, replicates=replicates)
        rows = dict(zip(BATTERY.measured(), found.differences, strict=True))
        binned = _in_bins(scores, replicates)
        for key in keys:
            _add(tallies[key], rows[key].first)
            _add(tallies[f"Δ {key}"], rows[key].difference)
            _add(tallies[f"bins {key}"], binned[key])
    return tallies


def _samples(population: Population, speakers: int, samples: int) -> Iterator[um.Scores]:
    for number in range(samples):
        rng = np.random.default_rng([population.seed, speakers, number])
        yield population.scores(rng, speakers)


def _in_bins(scores: um.Scores, replicates: int) -> dict[str, um.Estimate]:
    """The same as if there were more than two million trials."""
    before = resample.AUTO_TRIALS, resample.AUTO_REPLICATES
    resample.AUTO_TRIALS, resample.AUTO_REPLICATES = 0, replicates
    try:
        found = um.evaluate(scores, systems=["better"], battery=BATTERY).results[0]
    finally:
        resample.AUTO_TRIALS, resample.AUTO_REPLICATES = before
    numbers: Sequence[um.Estimate] = [e for e in found.estimates if e.metric != "tag"]
    return dict(zip(BATTERY.measured(), numbers, strict=True))


def _add(tally: Tally, estimate: um.Estimate) -> None:
    assert estimate.interval is not None
    tally.add(estimate.interval.low, estimate.interval.high)
