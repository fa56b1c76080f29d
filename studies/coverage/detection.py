"""Intervals of ``evaluate`` and ``compare``, and those of trials in bins.

Numbers of the better system, differences of the two (Δ), and the same as if there were more than
two million trials (bins).
"""

from __future__ import annotations

from unittest.mock import patch

import numpy as np

import unmask as um
from studies.coverage.populations import (
    KEPT_APART,
    POPULATIONS,
    Population,
    calibrated_limit,
)
from studies.coverage.study import SPEAKERS, Drawn, Study, ends

BATTERY = um.Battery()
KEYS = [key for key, about in BATTERY.measured().items() if not about.no_interval]
REPLICATES = 100


def studies() -> list[Study]:
    """Every population with every number of speakers."""
    return [
        Study(population.name, speakers, (sample, population, speakers), (truth, population))
        for population in (KEPT_APART, *POPULATIONS)
        for speakers in SPEAKERS
    ]


def truth(population: Population) -> dict[str, float]:
    """Every number of both systems on very many speakers."""
    better, poorer = (
        BATTERY.values(um.Roc.from_scores(*classes, thresholds=BATTERY.thresholds, cllr=True))
        for classes in calibrated_limit(population)
    )
    known = {key: better[key] for key in KEYS} | {f"bins {key}": better[key] for key in KEYS}
    return known | {f"Δ {key}": poorer[key] - better[key] for key in KEYS}


def sample(population: Population, speakers: int, number: int) -> Drawn:
    """Intervals of one sample."""
    rng = np.random.default_rng([population.seed, speakers, number])
    scores = population.scores(rng, speakers)
    outcome = um.compare(scores, battery=BATTERY, replicates=REPLICATES)
    rows = dict(zip(BATTERY.measured(), outcome.differences, strict=True))
    with patch.multiple("unmask.engine.evaluation", AUTO_TRIALS=0, AUTO_REPLICATES=REPLICATES):
        result = um.evaluate(scores, systems=["better"], battery=BATTERY).results[0]
    numbers = [estimate for estimate in result.estimates if estimate.metric != "tag"]
    binned = dict(zip(BATTERY.measured(), numbers, strict=True))
    shown = {key: rows[key].first for key in KEYS} | {f"bins {key}": binned[key] for key in KEYS}
    shown |= {f"Δ {key}": rows[key] for key in KEYS}
    return {key: ends(one.interval, float(one.value)) for key, one in shown.items()}
