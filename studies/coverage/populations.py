"""Populations of speakers whose true numbers are known: samples of any size, and their limit.

An utterance is its speaker's voice plus what changes from one recording to the next:
x = separation·v_k + s_k·e. Speakers of a heterogeneous population differ in how much they vary
(s_k: goats are hard to recognise) and in how near they stand to a common voice (wolves and lambs
resemble many). Tails may be those of Student's t, and voices may come in families.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

import unmask as um

Array = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]
DIMENSIONS = 24
_OTHERS = 20
_POORER = 0.6


@dataclass(frozen=True)
class Population:
    """A law that speakers and their utterances are drawn from.

    ``separation`` is the spread of voices over that of recordings; ``heterogeneity`` the spread of
    the logarithm of each speaker's own variation; ``freedom`` are the degrees of freedom of
    Student's t, 0 for Gaussian tails. Voices gather about as many centres as there are
    ``families``. ``large`` is how many speakers stand for all of them. Samples follow from
    ``seed``.
    """

    name: str
    separation: float
    heterogeneity: float = 0.0
    freedom: float = 0.0
    utterances: int = 6
    large: int = 12_000
    families: int = 0
    seed: int = 0

    def vectors(
        self, rng: np.random.Generator, speakers: int, utterances: int | None = None
    ) -> tuple[Array, Rows]:
        """Vectors of unit length, and the number of the speaker of each."""
        each = utterances or self.utterances
        spread = np.exp(self.heterogeneity * rng.normal(size=(speakers, 1, 1)))
        voices = rng.normal(size=(speakers, 1, DIMENSIONS))
        voices[..., 0] += 2 * self.heterogeneity * np.abs(rng.normal(size=(speakers, 1)))
        if self.families:
            centres = np.random.default_rng(self.seed).normal(size=(self.families, 1, DIMENSIONS))
            voices = 0.8 * voices + 0.6 * centres[rng.integers(0, self.families, speakers)]
        noise = rng.normal(size=(speakers, each, DIMENSIONS))
        if self.freedom:
            noise /= np.sqrt(rng.chisquare(self.freedom, (speakers, each, 1)) / self.freedom)
        vectors = (self.separation * voices + spread * noise).reshape(-1, DIMENSIONS)
        return _unit(vectors), np.repeat(np.arange(speakers), each)

    def embeddings(
        self, rng: np.random.Generator, speakers: int, utterances: int | None = None
    ) -> um.Embeddings:
        """A sample of speakers as a set of embeddings."""
        vectors, speaker = self.vectors(rng, speakers, utterances)
        names = [f"s{code:05d}" for code in speaker]
        return um.Embeddings(
            vectors.astype(np.float32), names, [f"u{i}" for i in range(len(names))]
        )

    def scores(
        self, rng: np.random.Generator, speakers: int, utterances: int | None = None
    ) -> um.Scores:
        """A sample as a list of all pairs of utterances, scored by two systems.

        ``better`` and ``poorer`` are cosines of the vectors and of noisier ones, each read as an
        LLR by a line fitted to the whole population.
        """
        vectors, speaker = self.vectors(rng, speakers, utterances)
        noisy = _unit(vectors + _noise(rng, vectors))
        enrol, test = np.triu_indices(len(vectors), 1)
        names = np.array([f"s{code:05d}" for code in range(speakers)])
        files = np.array([f"u{i}" for i in range(len(vectors))])
        both = um.Ids.from_strings(names[np.concatenate([speaker[enrol], speaker[test]])])
        return um.Scores(
            um.Ids.from_strings(files[enrol]),
            um.Ids.from_strings(files[test]),
            (speaker[enrol] == speaker[test]).astype(np.int8),
            enrol_speaker=both.take(np.arange(enrol.size)),
            test_speaker=both.take(np.arange(enrol.size, 2 * enrol.size)),
            systems={
                name: line.apply(_cosines(v, enrol, test))
                for name, v, line in zip(
                    ("better", "poorer"), (vectors, noisy), lines(self), strict=True
                )
            },
        )


@cache
def limit(population: Population) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Target and nontarget cosines of both systems on very many speakers.

    Every utterance meets all others of its speaker and a number of strangers.
    """
    rng = np.random.default_rng(2024)
    vectors, speaker = population.vectors(rng, population.large)
    size, each = len(vectors), population.utterances
    enrol, test = np.triu_indices(each, 1)
    first = np.arange(0, size, each)[:, None]
    own = (first + enrol).ravel(), (first + test).ravel()
    one = np.repeat(np.arange(size), _OTHERS)
    other = rng.integers(0, size, one.size)
    strangers = speaker[one] != speaker[other]
    others = one[strangers], other[strangers]
    noisy = _unit(vectors + _noise(rng, vectors))
    better, poorer = ((_cosines(v, *own), _cosines(v, *others)) for v in (vectors, noisy))
    return better, poorer


@cache
def lines(
    population: Population,
) -> tuple[um.engine.LinearCalibration, um.engine.LinearCalibration]:
    """The calibration of both systems, fitted to the whole population."""
    first, second = (um.calibrate(own, others[::4]) for own, others in limit(population))
    return first, second


def calibrated_limit(population: Population) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Target and nontarget LLRs of both systems on very many speakers."""
    first, second = (
        (line.apply(own), line.apply(others))
        for line, (own, others) in zip(lines(population), limit(population), strict=True)
    )
    return first, second


def _cosines(vectors: Array, one: Rows, other: Rows) -> Array:
    return np.asarray(np.einsum("ij,ij->i", vectors[one], vectors[other]))


def _noise(rng: np.random.Generator, vectors: Array) -> Array:
    """What a poorer system adds to vectors of unit length."""
    return _POORER / np.sqrt(DIMENSIONS) * rng.normal(size=vectors.shape)


def _unit(vectors: Array) -> Array:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


POPULATIONS = (
    Population("homogeneous", 1.2),
    Population("heterogeneous", 1.4, heterogeneity=0.5),
    Population("heavy tails", 1.6, freedom=3.0),
    Population("separated", 2.0),
    Population("near chance", 0.25),
    Population("no evidence", 0.0),
)
# No constant of an interval was chosen on samples of this law.
KEPT_APART = Population("kept apart", 1.5, 0.3, 6.0, utterances=5, families=8, seed=72)
