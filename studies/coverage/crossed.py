"""Intervals of the strongest DeID, D_ECE and EER, where fitted attacks compete as well.

Protected voices keep a part of their owner's, recordings half of what they hold beside the voice.
What is true of such a population is the mean of large samples; unrelated voices disclose nothing.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

import unmask as um
from studies.coverage.study import SPEAKERS, Drawn, Study, ends
from studies.luck import Law
from unmask.privacy import Pseudonymisation

METRICS = ("deid_strongest", "d_ece_strongest", "eer_strongest")
REPLICATES = 200
LAWS = (
    Law("half own voice", 0, 10, owned=0.5, kept=0.5),
    Law("half, 16 dimensions", 0, 6, owned=0.5, kept=0.5, dimensions=16),
    Law("a fifth", 0, 10, owned=0.2, kept=0.5),
    Law("one shift", 0, 6, owned=1.0, kept=0.5, shift=5.0, dimensions=16),
    Law("unrelated", 0, 6, kept=0.5, dimensions=16),
)
_NOTHING = dict(zip(METRICS, (1.0, 0.0, 0.5), strict=True))
_LARGE, _TIMES = 250, 4


def studies() -> list[Study]:
    """Every law for every number of speakers."""
    return [
        Study(law.name, speakers, (sample, law, speakers), (truth, law))
        for law in LAWS
        for speakers in SPEAKERS
    ]


def _result(law: Law, speakers: int, number: int, replicates: int) -> Pseudonymisation:
    warnings.simplefilter("ignore")
    original, protected, _ = replace(law, people=speakers).sample(number)
    rivals = {name: um.Attacker(original, protected, name) for name in ("whitened", "wasserstein")}
    how = {"attackers": rivals, "replicates": replicates, "seed": number}
    return um.pseudonymisation(original, protected, **how)


def _values(result: Pseudonymisation) -> dict[str, float]:
    return {metric: float(result[metric].value) for metric in METRICS}


def truth(law: Law) -> dict[str, float]:
    """The strongest of each number on large samples."""
    if not law.owned:
        return _NOTHING
    drawn = [_values(_result(law, _LARGE, 10**6 + n, 0)) for n in range(_TIMES)]
    return {metric: float(np.mean([one[metric] for one in drawn])) for metric in METRICS}


def sample(law: Law, speakers: int, number: int) -> Drawn:
    """Intervals of one sample."""
    result = _result(law, speakers, number, REPLICATES)
    values = _values(result)
    return {metric: ends(result.interval(metric), values[metric]) for metric in METRICS}
