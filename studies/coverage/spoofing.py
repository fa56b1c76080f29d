"""Intervals of ``evaluate`` with spoof trials: a-DCF, the three EERs, t-EER and min t-DCF.

Scores are normal: a mean of the class, an effect of each speaker (a nontarget has those of two),
and noise. So classes of all speakers together are normal as well, and even quantiles of them tell
the truth.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

import unmask as um
from studies.coverage.study import SPEAKERS, Drawn, Study, ends
from unmask.engine.evaluation import Analysis
from unmask.engine.spoofing import SpoofBattery, SpoofRoc, spoof_measurements

REPLICATES = 100
TARGETS, NONTARGETS, SPOOFS = 10, 20, 20
SHOWN = ("a_dcf", "sv_eer", "spf_eer", "sasv_eer", "t_eer cm", "min_t_dcf cm")
_QUANTILES = 200_000


@dataclass(frozen=True)
class Spoofers:
    """Means of targets and spoofs (nontargets have 0), and of bona fide trials for the
    countermeasure (spoofs have 0); ``uneven`` is the spread of speakers beside a noise of 1.
    """

    name: str
    target: float
    spoof: float
    bona_fide: float
    uneven: float
    seed: int

    def scores(self, rng: np.random.Generator, speakers: int) -> um.Scores:
        """Trials of so many speakers."""
        own, other, fooled, heard, faked = self.uneven * rng.standard_normal((5, speakers))
        who = np.arange(speakers)
        enrol = np.repeat(who, NONTARGETS)
        test = (enrol + rng.integers(1, speakers, enrol.size)) % speakers
        sides = {1: (np.repeat(who, TARGETS),) * 2, 0: (enrol, test), -1: (enrol, enrol)}
        means = {
            1: self.target + own[sides[1][0]],
            0: (other[enrol] + other[test]) / np.sqrt(2),
            -1: self.spoof + fooled[enrol],
        }
        label = np.concatenate([np.full(side[0].size, kind) for kind, side in sides.items()])
        claimed, spoken = (np.concatenate([side[i] for side in sides.values()]) for i in (0, 1))
        asv = np.concatenate([*means.values()]) + rng.standard_normal(label.size)
        cm = np.where(label < 0, faked[spoken], self.bona_fide + heard[spoken])
        cm += rng.standard_normal(label.size)
        one, two = (um.Ids.from_strings([f"s{k:03d}" for k in side]) for side in (claimed, spoken))
        names = {"enrol_speaker": one, "test_speaker": two}
        return um.Scores(None, None, label.astype(np.int8), systems={"asv": asv, "cm": cm}, **names)


LAWS = (
    Spoofers("even", 3.0, 1.5, 3.0, 0.3, 81),
    Spoofers("uneven", 4.0, 2.0, 4.0, 1.0, 82),
    Spoofers("close spoofs", 4.0, 3.5, 2.0, 0.7, 83),
)


def studies() -> list[Study]:
    """Every law with every number of speakers."""
    return [
        Study(law.name, speakers, (sample, law, speakers), (truth, law))
        for law in LAWS
        for speakers in SPEAKERS
    ]


def truth(law: Spoofers) -> dict[str, float]:
    """What very many speakers have."""
    spread = float(np.hypot(law.uneven, 1.0)) * ndtri((np.arange(_QUANTILES) + 0.5) / _QUANTILES)
    sides = (law.target, 0.0), (law.target, law.spoof), (law.bona_fide, 0.0)
    sv, spf, cm = (um.Roc.from_scores(*(mean + spread for mean in both)) for both in sides)
    values = SpoofBattery(cms=("cm",)).values(SpoofRoc.of(sv, spf, {"cm": cm}))
    return {name: values[name] for name in SHOWN}


def sample(law: Spoofers, speakers: int, number: int) -> Drawn:
    """Intervals of one sample."""
    scores = law.scores(np.random.default_rng([law.seed, speakers, number]), speakers)
    (_, made), _ = spoof_measurements(scores, Analysis(replicates=REPLICATES), ["asv"], ["cm"])
    shown = {one.metric: one for one in made.result("asv").estimates}
    return {
        name: ends(shown[metric].interval, float(shown[metric].value))
        for name in SHOWN
        for metric in name.split()[:1]
    }
