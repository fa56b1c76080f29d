"""Coverage of the interval of the strongest of several attacks.

Each attacker links a share of all people. Outcomes of a person under several attackers are Gaussian
with a part in common, cut at the share. The truth is the largest share; the value is the largest of
a sample, which luck makes larger still, and the interval has to allow for that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import polars as pl
from scipy.special import ndtri

import unmask as um
from studies.coverage.study import SPEAKERS, Array, Drawn, Study, ends
from unmask.base import score_interval
from unmask.privacy import Linkability, strongest_of

COUNT = 10


@dataclass(frozen=True)
class Attacks:
    """The share of people whom each attack links, and how far attacks agree on whom."""

    name: str
    shares: tuple[float, ...]
    common: float = 0.0


LAWS = (
    Attacks("one of twenty", (0.3, *(0.05,) * 19)),
    Attacks("all alike", (0.2,) * 12),
    Attacks("a ladder", tuple(0.05 * k for k in range(1, 11))),
    Attacks("two near 1", (0.9, 0.9, 0.5, 0.5)),
    Attacks("same people", (0.3, 0.28, 0.26, 0.24, 0.22, 0.2), common=0.6),
)


def studies() -> list[Study]:
    """Every law with every number of speakers."""
    return [
        Study(law.name, speakers, (sample, law, speakers), (truth, law))
        for law in LAWS
        for speakers in SPEAKERS
    ]


def truth(law: Attacks) -> dict[str, float]:
    """The risk of the strongest attack."""
    return {"strongest": max(law.shares)}


@cache
def pattern() -> Linkability:
    """A curve at one number of speakers, whose outcomes are put in its place."""
    rng = np.random.default_rng(0)
    sets = [um.Embeddings(rng.normal(size=(COUNT, 4)), range(COUNT)) for _ in range(2)]
    return um.linkability(*sets, counts=[COUNT])


def curves_of(outcomes: Array) -> dict[str, Linkability]:
    """Curves of attacks with these outcomes (attacks × people)."""
    speakers = outcomes.shape[1]
    names = pl.Series([f"s{i}" for i in range(speakers)])
    curves = {}
    for k, row in enumerate(outcomes):
        value, variance = row.mean(keepdims=True), row.var(ddof=1, keepdims=True) / speakers
        low, high = score_interval(value, variance, speakers, level=0.95)
        own = {"value": value, "variance": variance, "low": low, "high": high, "speakers": names}
        curves[f"attack {k}"] = replace(pattern(), per_speaker=row[:, None], **own)
    return curves


def sample(law: Attacks, speakers: int, number: int) -> Drawn:
    """Value and interval of the strongest attack on speakers drawn anew."""
    rng = np.random.default_rng([number, speakers, len(law.shares)])
    shared, own = rng.normal(size=speakers), rng.normal(size=(len(law.shares), speakers))
    drawn = np.sqrt(law.common) * shared + np.sqrt(1 - law.common) * own
    outcomes = (drawn < ndtri(np.asarray(law.shares))[:, None]).astype(np.float64)
    estimate = strongest_of(curves_of(outcomes), COUNT, seed=number).estimate
    return {"strongest": ends(estimate.interval, float(estimate.value))}
