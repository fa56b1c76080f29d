"""P_FA^N(τ) of each target from scores that lie in one flat array, pair after pair.

Targets do not depend on each other, so a task is a range of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from unmask.base import FloatArray, IntArray, lazy
from unmask.run import ArrayFields, Arrays, Range
from unmask.stress.worst_case.jackknife import Groups
from unmask.stress.worst_case.kernels import (
    Levels,
    closest_first,
    shares_of,
    surfaces_without,
)
from unmask.stress.worst_case.pairs import PairScores

SCORES = 1 << 21


@dataclass(frozen=True, eq=False)
class FlatPairs(ArrayFields):
    """Scores of pairs, where a target's pairs begin, by what the adversary chooses, and what is
    asked for: distinct ``levels`` from low to high, and ``counts``. For intervals also the group of
    each pair's impostor and of each target, and the ``fewer`` counts that remain without a group.
    """

    scores: FloatArray
    start: IntArray
    first: IntArray
    similarity: FloatArray
    tie: FloatArray
    levels: FloatArray
    counts: IntArray
    group: IntArray | None = None
    own: IntArray | None = None
    fewer: IntArray | None = None

    @classmethod
    def of(
        cls,
        pairs: PairScores,
        similarity: FloatArray,
        levels: FloatArray,
        counts: IntArray,
        groups: Groups | None = None,
    ) -> FlatPairs:
        tie = np.asarray(pairs.tie(similarity))
        flat = cls(pairs.scores, pairs.start, pairs.first, similarity, tie, levels, counts)
        if groups is None:
            return flat
        return replace(
            flat,
            group=groups.impostor[pairs.impostor],
            own=groups.target,
            fewer=np.minimum(counts, groups.least),
        )

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

    def ranked(self, target: int, above: IntArray) -> tuple[FloatArray, IntArray]:
        """False-alarm rates (ranks, levels) of a target's impostors, closest first, and the pair
        of each rank.
        """
        begin, end = self.first[target : target + 2]
        trials = np.diff(self.start[begin : end + 1])
        rates, order = closest_first(above, trials, self.similarity[begin:end], float(self.tie))
        return rates, begin + order

    def ranked_rates(self, targets: Range) -> Iterator[tuple[FloatArray, IntArray]]:
        """The same for each target of a range."""
        for target in range(*targets):
            yield self.ranked(target, self.above(target))

    def surfaces(self, ranked: Iterable[tuple[FloatArray, IntArray]], targets: Range) -> Arrays:
        """P_FA^N(τ) of each target, and summed over those that stay without each group."""
        return surfaces_without(ranked, self.counts, targets, self.group, self.own, self.fewer)


def surfaces_of_pairs(pairs: FlatPairs, targets: Range) -> Arrays:
    """P_FA^N(τ) of a range of targets."""
    return pairs.surfaces(pairs.ranked_rates(targets), targets)
