"""Intervals at thresholds: FAR, FRR and cost at a fixed one, the threshold of a demanded FAR, the
FRR there, and how often the safe threshold really keeps the demand.

The same as if there were more than two million trials (bins), and Kaldi's EER.
"""

from __future__ import annotations

from functools import cache
from unittest.mock import patch

import numpy as np

import unmask as um
from studies.coverage.populations import KEPT_APART, POPULATIONS, Population, calibrated_limit
from studies.coverage.study import SPEAKERS, Array, Drawn, Study, ends

REPLICATES = 100
DEMANDS = (0.05, 0.01)


def studies() -> list[Study]:
    """Every population with every number of speakers."""
    return [
        Study(population.name, speakers, (sample, population, speakers), (truth, population))
        for population in (KEPT_APART, *POPULATIONS)
        for speakers in SPEAKERS
    ]


@cache
def strangers(population: Population) -> Array:
    """Nontarget scores of very many speakers, ascending."""
    return np.sort(calibrated_limit(population)[0][1])


@cache
def battery(population: Population) -> um.Battery:
    """The thresholds that truly have the demanded rates, and the demands."""
    nontarget = strangers(population)
    at = tuple(float(nontarget[round((1 - far) * nontarget.size)]) for far in DEMANDS)
    return um.Battery(threshold=at, far=DEMANDS, eer="kaldi")


def truth(population: Population) -> dict[str, float]:
    """Every number on very many speakers."""
    target, nontarget = calibrated_limit(population)[0]
    known: dict[str, float] = {"eer kaldi": um.eer(target, nontarget, estimator="kaldi")}
    for far, at in zip(DEMANDS, battery(population).threshold, strict=True):
        frr = float((target < at).mean())
        numbers = {"far": far, "frr": frr, "cost": (0.01 * frr + 0.99 * far) / 0.01}
        numbers |= {"threshold": at, "frr there": frr, "safe": far}
        for which in ("", "bins "):
            known |= {f"{which}{name} {far:g}": value for name, value in numbers.items()}
    return known


def sample(population: Population, speakers: int, number: int) -> Drawn:
    """Intervals of one sample."""
    rng = np.random.default_rng([population.seed, speakers, number])
    scores, of = population.scores(rng, speakers), battery(population)
    others = strangers(population)
    every = um.evaluate(scores, systems=["better"], battery=of, replicates=REPLICATES)
    with patch.multiple("unmask.engine.evaluation", AUTO_TRIALS=0, AUTO_REPLICATES=REPLICATES):
        binned = um.evaluate(scores, systems=["better"], battery=of)
    shown = {}
    for which, result in (("", every), ("bins ", binned)):
        estimates = result.results[0].estimates
        for far, at in zip(DEMANDS, of.threshold, strict=True):
            for one in estimates:
                name = f"{which}{one.metric} {far:g}"
                if one.params.get("threshold") == at:
                    shown[name] = ends(one.interval, float(one.value))
                elif one.params.get("far") == far and one.metric == "safe_threshold":
                    above = others.size - np.searchsorted(others, one.value)
                    kept = np.nan if np.isnan(one.value) else above / others.size
                    shown[f"{which}safe {far:g}"] = (kept, kept, kept if np.isnan(kept) else 1.0)
                elif one.params.get("far") == far and not one.params.get("safe"):
                    name = name if one.metric == "threshold" else f"{which}frr there {far:g}"
                    shown[name] = ends(one.interval, float(one.value))
    first = every.results[0]
    shown["eer kaldi"] = ends(first["eer"].interval, float(first["eer"].value))
    return shown
