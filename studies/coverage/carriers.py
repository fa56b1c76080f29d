"""Thresholds where few speakers carry the false alarms: one demanded FAR, and FAR at the truth.

Effects of speakers follow Student's t with 3 degrees, or a Gaussian law; every pair of speakers
has two trials.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

import unmask as um
from studies.coverage.study import Drawn, Study, ends
from unmask.trials import Ids, Scores

DEMAND = 0.02
SPEAKERS = (20, 40)
REPLICATES = 200
_TARGETS, _NONTARGETS = 5, 2
_SPREAD = 0.5
_LIMIT = 4_000_000


@dataclass(frozen=True)
class Law:
    """Effects of speakers, with few large ones where tails are ``heavy``."""

    name: str
    heavy: bool

    def effects(self, rng: np.random.Generator, size: int) -> npt.NDArray[np.float64]:
        """Effects of some speakers on their nontarget scores."""
        return _SPREAD * (rng.standard_t(3, size) if self.heavy else rng.normal(size=size))


LAWS = (Law("heavy carriers", heavy=True), Law("even carriers", heavy=False))


def studies() -> list[Study]:
    """Both laws with both numbers of speakers."""
    return [
        Study(law.name, speakers, (sample, law, speakers), (truth, law), part=0.5)
        for law in LAWS
        for speakers in SPEAKERS
    ]


@cache
def strangers(law: Law) -> npt.NDArray[np.float64]:
    """Nontarget scores of very many speakers, ascending."""
    rng = np.random.default_rng(0)
    effects = law.effects(rng, _LIMIT) + law.effects(rng, _LIMIT)
    return np.sort(effects + rng.normal(size=_LIMIT))


def truth(law: Law) -> dict[str, float]:
    """The threshold that truly has the demanded rate."""
    others = strangers(law)
    at = float(others[int((1 - DEMAND) * others.size)])
    return {"threshold": at, "far": DEMAND, "safe": DEMAND}


def sample(law: Law, speakers: int, number: int) -> Drawn:
    """Intervals of one sample; a safe threshold holds the demand where everybody keeps it."""
    rng = np.random.default_rng([speakers, number, law.heavy])
    effect, own = law.effects(rng, speakers), _SPREAD * rng.normal(size=speakers)
    one, two = np.triu_indices(speakers, 1)
    first, second = np.tile(one, _NONTARGETS), np.tile(two, _NONTARGETS)
    speaker = np.repeat(np.arange(speakers), _TARGETS)
    target = 3 + own[speaker] + rng.normal(size=speaker.size)
    nontarget = effect[first] + effect[second] + rng.normal(size=first.size)
    names = np.array([f"s{k:02}" for k in range(speakers)])
    ids = [Ids.from_strings(names[np.concatenate([speaker, side])]) for side in (first, second)]
    scores = Scores(
        *ids,
        np.repeat(np.array([1, 0], np.int8), [speaker.size, first.size]),
        enrol_speaker=ids[0],
        test_speaker=ids[1],
        systems={"system": np.concatenate([target, nontarget])},
    )
    battery = um.Battery(far=(DEMAND,), threshold=(truth(law)["threshold"],))
    result = um.evaluate(scores, battery=battery, replicates=REPLICATES)
    shown = {
        name: ends(result[name].interval, float(result[name].value))
        for name in ("threshold", "far")
    }
    safe, others = float(result["safe_threshold"].value), strangers(law)
    rate = np.nan if np.isnan(safe) else float((others >= safe).mean())
    # From the rate of everybody up to 1: above the demand where that is broken.
    return shown | {"safe": (rate, rate, np.nan if np.isnan(rate) else 1.0)}
