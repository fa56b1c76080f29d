"""Intervals of the strongest EER and D_ECE of enrolled models, where fitted attacks compete.

Half of each person's recordings enrol as they are, the protected other half is attacked.
Protected voices keep a part of their owner's. What is true of such a population is the mean of
large samples.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from studies.coverage.study import SPEAKERS, Drawn, Study, ends
from studies.luck import Law
from unmask.assessment.attacks import AttackRun
from unmask.assessment.config import Config
from unmask.assessment.study import contenders, halves_step, result_among, strongest, trial_step
from unmask.engine import Battery
from unmask.estimate import Estimate
from unmask.privacy import Attacker

METRICS = ("d_ece", "eer")
BACKENDS = ("cosine", "wccn", "whitened", "wasserstein")
REPLICATES = 60
LAWS = (Law("half, 16 dimensions", 0, 6, owned=0.5, kept=0.5, dimensions=16),)
_LARGE, _TIMES = 250, 4


def studies() -> list[Study]:
    """Every law for every number of speakers."""
    return [
        Study(law.name, speakers, (sample, law, speakers), (truth, law))
        for law in LAWS
        for speakers in SPEAKERS
    ]


def attack_on(law: Law, speakers: int, number: int) -> AttackRun:
    """Someone who enrols original speech, trains on it, and attacks a sample of the law."""
    original, release, _ = replace(law, people=speakers).sample(number)
    is_enrolled = np.arange(len(original)) % 2 == 0
    enrol = original.select(is_enrolled)
    data = Attacker(enrol, release.select(~is_enrolled), train=enrol, release=False)
    return AttackRun("safeguard", "original enrolment", "", BACKENDS, data)


def strongest_estimates(
    attack: AttackRun, seed: int, replicates: int
) -> dict[str, tuple[Estimate, Estimate]]:
    """The strongest estimate by each metric, before and after halves stretch its interval."""
    how: dict[str, Any] = {"replicates": replicates, "level": 0.95, "seed": seed}
    config = cast(Config, SimpleNamespace(trials={"battery": Battery(), **how}, seed=seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tried = trial_step(attack, config).compute()
        chosen = [(attack, [one.variant for one in contenders(tried)])]
        halves = halves_step("safeguard", chosen, seed).compute() if replicates else None
    estimates = {}
    for metric in METRICS:
        best = strongest(tried, metric)
        after = result_among(best, tried, metric, halves)
        estimates[metric] = best.result[metric], after[metric]
    return estimates


def truth(law: Law) -> dict[str, float]:
    """The strongest of each number on large samples."""
    drawn = [
        strongest_estimates(attack_on(law, _LARGE, 10**6 + number), number, 0)
        for number in range(_TIMES)
    ]
    true = {m: float(np.mean([one[m][1].value for one in drawn])) for m in METRICS}
    return true | {f"{metric} without halves": value for metric, value in true.items()}


def sample(law: Law, speakers: int, number: int) -> Drawn:
    """Intervals of one sample."""
    found = {}
    for metric, pair in strongest_estimates(
        attack_on(law, speakers, number), number, REPLICATES
    ).items():
        for name, estimate in zip((f"{metric} without halves", metric), pair, strict=True):
            found[name] = ends(estimate.interval, float(estimate.value))
    return found
