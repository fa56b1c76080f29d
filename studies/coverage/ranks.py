"""Coverage of the intervals of identification rate, MeanD, MaxD and inference.

The own score of a conversation is N(a, 1) with a ~ N(ability, spread) for each speaker, those of
the other candidates are N(0, 1): the rank is one more than how many of them lie above. A probe
reads an attribute off voices of which it moves the mean; what is true of a probe trained on so many
speakers is its mean over samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr
from scipy.stats import binom

import unmask as um
from studies.coverage.study import SPEAKERS, Array, Drawn, Study, ends
from unmask.base import Sampling
from unmask.privacy.legal.linking import disclosure, ranks_of

CANDIDATES, CONVERSATIONS = 20, 5
METRICS = ("identification_rate", "mean_d", "max_d")
SHIFTS = (0.0, 0.3, 1.0)
_DIMENSIONS = 12


@dataclass(frozen=True)
class Ability:
    """How far speakers stand out, and how unlike they are in that."""

    name: str
    mean: float
    spread: float = 0.0

    def ranks(self, rng: np.random.Generator, speakers: int) -> Array:
        """Ranks of conversations, speaker after speaker."""
        own = self.mean + self.spread * rng.normal(size=(speakers, 1))
        scores = own + rng.normal(size=(speakers, CONVERSATIONS))
        return np.asarray(1 + rng.binomial(CANDIDATES - 1, ndtr(-scores)).ravel())


LAWS = (
    Ability("chance", 0.0),
    Ability("moderate", 1.0),
    Ability("unlike", 1.0, 1.5),
    Ability("near 1", 4.0),
)


def studies() -> list[Study]:
    """Every law, and every strength of an attribute, with every number of speakers."""
    ranked = [
        Study(law.name, speakers, (sample, law, speakers), (truth, law))
        for law in LAWS
        for speakers in SPEAKERS
    ]
    return ranked + [
        Study(f"moved by {shift:g}", speakers, (probed, shift, speakers), (dict,))
        for shift in SHIFTS
        for speakers in SPEAKERS
    ]


def truth(law: Ability) -> dict[str, float]:
    """The three numbers of the law, by summing over a fine grid of own scores."""
    grid = np.linspace(-9, 9, 2001)
    weight = np.exp(-(grid**2) / 2)
    above = ndtr(-(law.mean + np.hypot(1, law.spread) * grid))
    ranks = np.arange(CANDIDATES)
    shares = binom.pmf(ranks, CANDIDATES - 1, above[:, None])
    shares = np.asarray((weight / weight.sum()) @ shares)
    mean_d, max_d = disclosure(shares)
    return dict(zip(METRICS, map(float, (shares[0], mean_d, max_d)), strict=True))


def sample(law: Ability, speakers: int, number: int) -> Drawn:
    """Value, low and high end of each number in one sample."""
    rng = np.random.default_rng([5, speakers, number])
    made = ranks_of(
        law.ranks(rng, speakers),
        CANDIDATES,
        speakers=np.repeat(np.arange(speakers), CONVERSATIONS),
        resampling=Sampling(200, 0.95, 0),
    )
    return {name: ends(made.intervals[name], getattr(made, name)) for name in METRICS}


def probed(shift: float, speakers: int, number: int) -> Drawn:
    """Accuracy of a probe of an attribute that moves voices by ``shift``, with its interval."""
    rng = np.random.default_rng([6, speakers, number])
    owner = np.repeat(np.arange(speakers), CONVERSATIONS)
    attribute = np.arange(speakers) % 2
    means = rng.normal(size=(speakers, _DIMENSIONS)) + shift * attribute[:, None]
    vectors = means[owner] + rng.normal(size=(owner.size, _DIMENSIONS))
    voices = um.Embeddings(
        vectors,
        [f"s{i}" for i in owner],
        [f"u{i}" for i in range(owner.size)],
        columns={"sex": [("f", "m")[k] for k in attribute[owner]]},
    )
    made = um.attribute_inference(voices, "sex")
    return {"inference": (made.value, made.low, made.high)}
