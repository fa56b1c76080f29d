"""Intervals of ``forensic``: LLRs as they are, and the LR of a case by a map fitted to the sample.

The truth of devPAV and of the bounds of LRs is their mean over samples of as many speakers: both
grow with the trials, so that very many of them would tell of another number.
"""

from __future__ import annotations

import numpy as np

import unmask as um
from studies.coverage.populations import (
    KEPT_APART,
    POPULATIONS,
    Population,
    calibrated_limit,
)
from studies.coverage.study import SPEAKERS, Drawn, Study, ends
from unmask.base import Sampling
from unmask.engine import ForensicBattery
from unmask.engine.fusion import Fitting
from unmask.engine.validation import case_lr

REPLICATES = 100
CASES = (-2.0, 3.0)
OF_ALL = ("cllr", "min_cllr", "cllr_cal", "eer", "misleading_same", "misleading_different")
OF_SAMPLES = ("dev_pav", "lr_smallest", "lr_largest")


def studies() -> list[Study]:
    """Every population with every number of speakers."""
    return [
        Study(population.name, speakers, (sample, population, speakers), (truth, population))
        for population in (KEPT_APART, *POPULATIONS[:4])
        for speakers in SPEAKERS
    ]


def truth(population: Population) -> dict[str, float]:
    """What very many speakers have, and LRs of cases: the line of all speakers made the LLRs."""
    battery = ForensicBattery()
    classes = calibrated_limit(population)[0]
    roc = um.Roc.from_scores(*classes, thresholds=battery.thresholds, cllr=True)
    values = battery.values(roc)
    known = {name: values[name] for name in OF_ALL}
    return known | {f"case {case:g}": case / np.log(10) for case in CASES}


def sample(population: Population, speakers: int, number: int) -> Drawn:
    """Intervals of one sample."""
    rng = np.random.default_rng([population.seed, speakers, number])
    scores = population.scores(rng, speakers).select_systems(["better"])
    result = um.forensic(scores, scores_are="ln", replicates=REPLICATES)
    shown = {name: result[name] for name in (*OF_ALL, *OF_SAMPLES)}
    made = Fitting().fit(["better"], [scores.scores()], scores.is_target, scores.is_nontarget)
    for case in CASES:
        shown[f"case {case:g}"] = case_lr(case, made, scores, Sampling(), {})
    return {name: ends(one.interval, float(one.value)) for name, one in shown.items()}
