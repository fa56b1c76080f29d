"""The scores that choose the closest impostor are not those that attack.

The mean of few scores is the location of a pair plus noise. Choosing by it prefers pairs whose
noise was high. Where the same scores attack, that noise is counted as closeness, and the rate comes
out too high; where other scores attack, the choice is worse than that of an adversary who knows the
pairs well, and the rate comes out too low. With normal locations of variance s² and noise of
variance v, the closest lies √(1 + v/s²) times too far out in the first case and 1/√(1 + v/s²) in
the second: the two errors are equal and opposite. Other scores are fewer, with K folds by a factor
1 − 1/K, and their noise is larger by its inverse. So a rate lies between the two on the normal
scale,

    P = Φ(w·Φ⁻¹(P_all) + (1 − w)·Φ⁻¹(P_other)),  w = K/(2K − 1),

where P_all is chosen by all scores of a pair and attacked with all of them, and P_other is attacked
with each of up to four folds of a pair's scores, chosen by the other folds (K = 4, w = 4/7).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from unmask.base import FloatArray, IntArray
from unmask.stress.worst_case.pairs import PairScores

FOLDS = 4
FEW = 30
"""Scores of a pair below which a warning is due."""


@dataclass(frozen=True, eq=False)
class Crossed:
    """Pairs as they are, and the folds of their scores that attack what the others chose.

    Every fold holds the same pairs in the same order, with ``means`` of the scores that choose.
    """

    whole: PairScores
    folds: tuple[PairScores, ...] = ()

    @classmethod
    def of(cls, pairs: PairScores, *, split: bool = True, seed: int = 0) -> Crossed:
        """Deal the scores of each pair; pairs whose choice does not rest on their own scores
        (``means`` are given) stay whole.
        """
        if not split or pairs.means is not None:
            return cls(pairs)
        sizes = pairs.sizes
        pair = np.repeat(np.arange(len(pairs)), sizes)
        order = np.lexsort((np.random.default_rng(seed).random(pair.size), pair))
        scores = pairs.scores[order]
        most = np.minimum(sizes, FOLDS)
        rank = np.arange(pair.size) - pairs.start[:-1][pair]
        dealt = rank % most[pair]
        total = np.add.reduceat(scores, pairs.start[:-1])
        folds = []
        for fold in range(min(FOLDS, int(sizes.max()))):
            attack = dealt == (fold % most)[pair]
            count = np.bincount(pair[attack], minlength=len(pairs))
            part = np.bincount(pair[attack], scores[attack], minlength=len(pairs))
            folds.append(pairs.attacked(scores[attack], count, (total - part) / (sizes - count)))
        return cls(pairs, tuple(folds))

    @property
    def per_pair(self) -> float:
        """Median number of scores of a pair."""
        return float(np.median(self.whole.sizes))


def share_of(sizes: IntArray) -> float:
    """Weight of the rate that all scores chose, from the number of scores (or utterances)."""
    folds = float(np.minimum(sizes, FOLDS).mean())
    return folds / (2 * folds - 1)


def middle(every: FloatArray, other: FloatArray, share: float, edge: float) -> FloatArray:
    """Between two rates on the normal scale, ``edge`` away from 0 and 1 if not both are."""
    inner = ndtr(
        share * ndtri(np.clip(every, edge, 1 - edge))
        + (1 - share) * ndtri(np.clip(other, edge, 1 - edge))
    )
    same = (every == other) | (np.maximum(every, other) <= 0) | (np.minimum(every, other) >= 1)
    return np.asarray(np.where(same, every, inner))


def few_scores(per_pair: float) -> tuple[str, ...]:
    """A warning where pairs have few scores."""
    if per_pair >= FEW:
        return ()
    return (
        f"{per_pair:g} scores a pair (median): the closest impostor is known roughly, and rates"
        f" rest on a correction for it; {FEW} or more would need less of it",
    )


def proxied(pairs: PairScores, similarity: npt.ArrayLike) -> PairScores:
    """The same pairs, chosen by other similarities."""
    return pairs.attacked(pairs.scores, pairs.sizes, np.asarray(similarity, dtype=np.float64))
