"""Intervals of rates by group at one threshold, and of the gaps between groups.

Scores are sums of normal effects of speakers, pairs and trials, so that every rate is known.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from studies.coverage.study import SPEAKERS, Drawn, Study, ends
from unmask.engine import group_gaps
from unmask.engine.groups import fdr, gap_of, garbe, ratio_of
from unmask.trials import Ids, Scores

REPLICATES = 200
THRESHOLD = 1.5
HARD = 2.5


@dataclass(frozen=True)
class Law:
    """Mean target and nontarget scores of each group, to which speakers are dealt in turn; a share
    of them is ``hard``: their target scores are lower by 2.5.
    """

    name: str
    target: tuple[float, ...]
    nontarget: tuple[float, ...]
    spread: tuple[float, float] = (0.7, 0.3)
    hard: float = 0.0
    seed: int = 0

    @property
    def rates(self) -> dict[str, np.ndarray]:
        """FNMR and FMR of each group."""
        own, other = self.spread
        usual, hard = (
            ndtr((THRESHOLD - np.array(self.target) + shift) / np.sqrt(1 + own**2))
            for shift in (0.0, HARD)
        )
        missed = (1 - self.hard) * usual + self.hard * hard
        passed = ndtr((np.array(self.nontarget) - THRESHOLD) / np.sqrt(1 + 3 * other**2))
        return {"fnmr": missed, "fmr": passed}


LAWS = (
    Law("two groups, equal", (3.0, 3.0), (0.0, 0.0), seed=1),
    Law("two groups, one worse", (3.0, 2.3), (0.0, 0.4), seed=2),
    Law("three groups", (3.0, 2.6, 2.2), (0.0, 0.0, 0.5), seed=3),
    Law("few errors", (4.0, 3.5), (-0.7, -0.4), seed=4),
    Law("speakers differ much", (3.0, 2.3), (0.0, 0.4), (1.4, 0.7), seed=5),
    Law("few hard speakers", (4.0, 3.6), (0.0, 0.4), hard=0.1, seed=6),
)


def studies() -> list[Study]:
    """Every law with every number of speakers."""
    return [
        Study(law.name, speakers, (sample, law, speakers), (truth, law))
        for law in LAWS
        for speakers in SPEAKERS
    ]


def truth(law: Law) -> dict[str, float]:
    """What very many speakers have."""
    rates, made = law.rates, {}
    for metric, values in rates.items():
        made |= {f"{metric} {i}": float(value) for i, value in enumerate(values)}
        made |= {f"{metric}_ratio": float(ratio_of(values)), f"{metric}_gap": float(gap_of(values))}
    both = rates["fmr"], rates["fnmr"]
    return made | {"fdr": float(fdr(*both)), "garbe": float(garbe(*both))}


def trials(law: Law, speakers: int, rng: np.random.Generator) -> Scores:
    """Five targets of each speaker, two nontargets of each pair."""
    groups = np.arange(speakers) % len(law.target)
    own, other = rng.normal(0, law.spread[0], speakers), rng.normal(0, law.spread[1], speakers)
    own -= HARD * (rng.random(speakers) < law.hard)
    one, two = np.triu_indices(speakers, 1)
    pair = rng.normal(0, law.spread[1], one.size)
    target = np.repeat(np.arange(speakers), 5)
    first, second = np.tile(one, 2), np.tile(two, 2)
    mean = np.mean([np.array(law.nontarget)[groups[side]] for side in (one, two)], axis=0)
    scores = [
        np.array(law.target)[groups[target]] + own[target],
        np.tile(mean + other[one] + other[two] + pair, 2),
    ]
    label = np.repeat(np.array([1, 0], np.int8), [target.size, first.size])
    names = [f"s{k:03}" for k in range(speakers)]
    sides = [np.concatenate([target, side]) for side in (first, second)]
    enrol, test = (Ids.from_strings([names[k] for k in side]) for side in sides)
    column = [Ids.from_strings([f"{groups[k]}" for k in side]) for side in sides]
    whole = np.concatenate(scores)
    return Scores(
        enrol,
        test,
        label,
        enrol_speaker=enrol,
        test_speaker=test,
        columns={"enrol_group": column[0], "test_group": column[1]},
        systems={"system": whole + rng.normal(size=whole.size)},
    )


def sample(law: Law, speakers: int, number: int) -> Drawn:
    """Intervals of one sample; the ratio of a rate that is 0 has none."""
    rng = np.random.default_rng([law.seed, speakers, number])
    made = group_gaps(
        trials(law, speakers, rng), by="group", threshold=THRESHOLD, replicates=REPLICATES
    )
    shown = {f"{m} {g}": one for m in law.rates for g, one in made.of(m).items() if g != "all"}
    shown |= {one.metric: one for one in made.gaps}
    return {
        name: ends(one.interval, float("nan") if isinstance(one.value, str) else float(one.value))
        for name, one in shown.items()
    }
