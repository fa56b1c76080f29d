"""Populations whose worst case is known far beyond what a model may see.

Every speaker has the same number of utterance vectors of unit length; the l-th score of a pair is
the cosine of the two speakers' l-th utterances. The mean score of a pair is then one inner product
of stacked vectors, which finds the closest of 100,000 impostors exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray
from unmask.errors import InputError
from unmask.stress.impostors.pair_scores import PairScores, as_counts
from unmask.stress.impostors.rates import closest_weights

Vectors = npt.NDArray[np.float32]

_RANKS = 400
_BLOCK = 50


@dataclass(frozen=True, eq=False)
class Population:
    """Utterance vectors (speakers × utterances × dimensions), each of unit length."""

    utterances: Vectors

    @classmethod
    def synthetic(
        cls,
        speakers: int,
        *,
        utterances: int = 18,
        dimension: int = 32,
        within: float = 0.6,
        freedom: float = 12.0,
        seed: int = 0,
    ) -> Population:
        """Speakers from a Student distribution with a decaying spectrum, off the origin.

        ``within`` is the standard deviation of an utterance around its speaker relative to the
        spread of speakers; ``freedom`` are the degrees of freedom (fewer: heavier tails).
        """
        rng = np.random.default_rng(seed)
        spectrum = np.linspace(1.5, 0.5, dimension)
        heavy = np.sqrt(rng.chisquare(freedom, (speakers, 1)) / freedom)
        centres = spectrum * rng.normal(size=(speakers, dimension)) / heavy
        centres[:, 0] += 1.5
        result = np.empty((speakers, utterances, dimension), np.float32)
        for k in range(utterances):
            noisy = centres + within * spectrum * rng.normal(size=centres.shape)
            result[:, k] = noisy / np.linalg.norm(noisy, axis=1, keepdims=True)
        return cls(result)

    @classmethod
    def around(
        cls,
        prototypes: npt.ArrayLike,
        residuals: npt.ArrayLike,
        *,
        utterances: int = 18,
        seed: int = 0,
    ) -> Population:
        """Semi-real speakers: a real class vector each, plus within-speaker residuals drawn from
        those of other, real recordings.
        """
        centres = np.asarray(prototypes, dtype=np.float64)
        pool = np.asarray(residuals, dtype=np.float64)
        if centres.ndim != 2 or pool.ndim != 2 or centres.shape[1] != pool.shape[1]:
            raise InputError(
                f"population: expected prototypes and residuals of one dimension,"
                f" found shapes {centres.shape} and {pool.shape}"
            )
        rng = np.random.default_rng(seed)
        centres = centres / np.linalg.norm(centres, axis=1, keepdims=True)
        result = np.empty((centres.shape[0], utterances, centres.shape[1]), np.float32)
        for k in range(utterances):
            noisy = centres + pool[rng.integers(0, len(pool), len(centres))]
            result[:, k] = noisy / np.linalg.norm(noisy, axis=1, keepdims=True)
        return cls(result)

    @property
    def speakers(self) -> int:
        """Number of speakers."""
        return int(self.utterances.shape[0])

    def pairs(self, speakers: int | None = None) -> PairScores:
        """All pairs among the first ``speakers`` speakers."""
        seen = self.utterances[: speakers or self.speakers]
        scores = np.empty((len(seen), len(seen), seen.shape[1]))
        for k in range(seen.shape[1]):
            scores[:, :, k] = seen[:, k] @ seen[:, k].T
        return PairScores.from_array(scores, present=~np.eye(len(seen), dtype=np.bool_))

    def truth(
        self, thresholds: npt.ArrayLike, *, counts: npt.ArrayLike, targets: int
    ) -> FloatArray:
        """Exact P_FA^N(τ) of the first ``targets`` speakers against the whole population.

        Only the closest 400 impostors of a target are looked at, so N must be large enough that
        no other can be the closest of a random subset: at least a tenth of the population.
        """
        wanted = as_counts(counts)
        impostors = self.speakers - 1
        ranks = min(_RANKS, impostors)
        if ranks < impostors and wanted.min() * 10 < impostors:
            raise InputError(
                f"truth: expected counts of at least {impostors // 10 + 1}, found {wanted.min()}"
            )
        levels = np.asarray(thresholds, dtype=np.float64)
        weights = closest_weights(impostors, wanted)[:, :ranks]
        stacked = self.utterances.reshape(self.speakers, -1)
        surface = np.zeros((wanted.size, levels.size))
        for begin in range(0, targets, _BLOCK):
            own = np.arange(begin, min(begin + _BLOCK, targets))
            surface += weights @ self._rates(stacked, own, ranks, levels)
        return surface / targets

    def _rates(self, stacked: Vectors, own: IntArray, ranks: int, levels: FloatArray) -> FloatArray:
        """False-alarm rates (ranks, thresholds) of some targets, summed over them."""
        similarity = stacked[own] @ stacked.T
        similarity[np.arange(own.size), own] = -np.inf
        near = np.argpartition(-similarity, ranks - 1, axis=1)[:, :ranks]
        total = np.zeros((ranks, levels.size))
        for row, target in enumerate(own):
            closest = near[row][np.argsort(-similarity[row, near[row]], kind="stable")]
            scores = np.einsum("ld,rld->rl", self.utterances[target], self.utterances[closest])
            scores = np.sort(scores.astype(np.float64), axis=1)
            for rank in range(ranks):
                total[rank] += np.searchsorted(-scores[rank, ::-1], -levels)
        return np.asarray(total / self.utterances.shape[1])
