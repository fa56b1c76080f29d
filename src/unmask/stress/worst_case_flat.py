"""P_FA^N(τ) of each target from scores that lie in one flat array, pair after pair.

Targets do not depend on each other, so a task is a range of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from unmask.arrays import FloatArray, IntArray
from unmask.lazy import lazy
from unmask.scoring.plan import Range
from unmask.scoring.shared import ArrayFields
from unmask.scoring.store import Arrays
from unmask.stress.worst_case_kernels import Levels, closest_first, shares_of, surfaces
from unmask.stress.worst_case_pairs import PairScores

SCORES = 1 << 21


@dataclass(frozen=True, eq=False)
class FlatPairs(ArrayFields):
    """Scores of pairs, where a target's pairs begin, by what the adversary chooses, and what is
    asked for: distinct ``levels`` from low to high, and ``counts``.
    """

    scores: FloatArray
    start: IntArray
    first: IntArray
    similarity: FloatArray
    tie: FloatArray
    levels: FloatArray
    counts: IntArray

    @classmethod
    def of(
        cls, pairs: PairScores, similarity: FloatArray, levels: FloatArray, counts: IntArray
    ) -> FlatPairs:
        tie = np.asarray(pairs.tie(similarity))
        return cls(pairs.scores, pairs.start, pairs.first, similarity, tie, levels, counts)

    @lazy
    def thresholds(self) -> Levels:
        return Levels(self.levels, np.arange(self.levels.size))

    @property
    def targets(self) -> int:
        return self.first.size - 1

    def shares(self) -> list[Range]:
        """Ranges of targets with about as many scores."""
        return shares_of(np.diff(self.start[self.first]), SCORES)

    def above(self, target: int) -> IntArray:
        """Scores above each level, (impostors, levels)."""
        begin, end = self.first[target : target + 2]
        bounds = self.start[begin : end + 1]
        pair = np.repeat(np.arange(end - begin), np.diff(bounds))
        return self.thresholds.above(self.scores[bounds[0] : bounds[-1]], pair, end - begin)

    def ranked(self, target: int, above: IntArray) -> FloatArray:
        """False-alarm rates (ranks, levels) of a target's impostors, closest first."""
        begin, end = self.first[target : target + 2]
        trials = np.diff(self.start[begin : end + 1])
        return closest_first(above, trials, self.similarity[begin:end], float(self.tie))

    def ranked_rates(self, targets: Range) -> Iterator[FloatArray]:
        """The same for each target of a range."""
        for target in range(*targets):
            yield self.ranked(target, self.above(target))


def surfaces_of_pairs(pairs: FlatPairs, targets: Range) -> Arrays:
    """P_FA^N(τ) of a range of targets."""
    ranked = pairs.ranked_rates(targets)
    return {"each": surfaces(ranked, pairs.counts, targets=targets[1] - targets[0])}
