"""Intervals of the strongest DeID, D_ECE and EER, where fitted attacks compete as well.

Protected voices keep half of their owner's, recordings half of what they hold beside the voice.
What is true of such a population is the mean of large samples.
"""

from __future__ import annotations

import warnings

import numpy as np

import unmask as um
from studies.coverage.study import SPEAKERS, Drawn, Study, ends
from studies.luck import Law
from unmask.privacy import Pseudonymisation

METRICS = ("deid_strongest", "d_ece_strongest", "eer_strongest")
REPLICATES = 200
_LARGE, _TIMES = 150, 6


def studies() -> list[Study]:
    """Half of the own voice and a fifth of it, for every number of speakers."""
    return [
        Study(name, speakers, (sample, owned, speakers), (truth, owned))
        for name, owned in (("half own voice", 0.5), ("a fifth", 0.2))
        for speakers in SPEAKERS
    ]


def _result(owned: float, speakers: int, number: int, replicates: int) -> Pseudonymisation:
    warnings.simplefilter("ignore")
    law = Law("", speakers, 10, owned=owned, kept=0.5)
    original, protected, _ = law.sample(number)
    rivals = {name: um.Attacker(original, protected, name) for name in ("whitened", "wasserstein")}
    how = {"attackers": rivals, "replicates": replicates, "seed": number}
    return um.pseudonymisation(original, protected, **how)


def _values(result: Pseudonymisation) -> dict[str, float]:
    return {metric: float(result[metric].value) for metric in METRICS}


def truth(owned: float) -> dict[str, float]:
    """The strongest of each number on large samples."""
    drawn = [_values(_result(owned, _LARGE, 10**6 + n, 0)) for n in range(_TIMES)]
    return {metric: float(np.mean([one[metric] for one in drawn])) for metric in METRICS}


def sample(owned: float, speakers: int, number: int) -> Drawn:
    """Intervals of one sample."""
    result = _result(owned, speakers, number, REPLICATES)
    values = _values(result)
    return {metric: ends(result.interval(metric), values[metric]) for metric in METRICS}
