"""P_FA^N(τ) of each target straight from embeddings: nobody ever holds the scores.

A score is the inner product of two prepared rows, in double precision. Rows are ordered by speaker,
and a task is a range of target speakers: the scores of its rows against all rows are made block by
block, counted above each threshold for every impostor, and forgotten. Which impostor is closest
needs no score at all, since the mean score of two speakers is the product of their mean rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from unmask.base import BoolArray, FloatArray, IntArray, lazy
from unmask.run import ArrayFields, Arrays, Range, ranges_of
from unmask.stress.worst_case.kernels import (
    Levels,
    closest_first,
    shares_of,
    surfaces_without,
)

ROWS = 960
BLOCK = 480
STRIP = 4096
_FEW = 12  # thresholds, up to which comparing with each is quicker than looking up the place
_BYTE = 255
_CELLS = 1 << 23
_PAIRS = 1 << 23


@dataclass(frozen=True, eq=False)
class Likeness(ArrayFields):
    """Mean rows of all speakers as target and as impostor, whose products are similarities.

    Rows of speaker k are those from ``edges[k]`` to ``edges[k + 1]``. Nobody is their own impostor,
    and a pair of speakers with one utterance each has one score and is left out: ``paired`` are the
    utterances each speaker has, of which the rows here may be a part.
    """

    edges: IntArray
    target_means: FloatArray
    impostor_means: FloatArray
    paired: IntArray

    @property
    def speakers(self) -> int:
        return self.edges.size - 1

    @lazy
    def sizes(self) -> IntArray:
        """Utterances of each speaker."""
        return np.diff(self.edges)

    def allowed(self, target: int) -> BoolArray:
        """Who may be an impostor of a target."""
        mask = self.paired * self.paired[target] > 1
        mask[target] = False
        return np.asarray(mask)

    def similarity(self, targets: Range) -> FloatArray:
        """Mean score of some targets with every speaker."""
        return np.asarray(self.target_means[slice(*targets)] @ self.impostor_means.T)

    def shares(self) -> list[Range]:
        """Ranges of targets for a task."""
        return ranges_of(self.speakers, max(1, _PAIRS // self.speakers))


def similarity_range(likeness: Likeness, targets: Range) -> Arrays:
    """Lowest and highest similarity of some targets' pairs."""
    similarity = likeness.similarity(targets)
    mask = np.stack([likeness.allowed(target) for target in range(*targets)])
    held = similarity[mask]
    return {
        "low": np.asarray(held.min(initial=np.inf)),
        "high": np.asarray(held.max(initial=-np.inf)),
    }


@dataclass(frozen=True, eq=False)
class Voices(Likeness):
    """Prepared rows as well, and what is asked for: distinct ``levels`` from low to high, and
    ``counts``. ``test`` is given where the rows of the two sides differ; ``group`` (of each
    speaker) and ``fewer`` (counts that remain without a group) where intervals are wanted.
    """

    enrol: FloatArray
    tie: FloatArray
    levels: FloatArray
    counts: IntArray
    test: FloatArray | None = None
    group: IntArray | None = None
    fewer: IntArray | None = None

    @lazy
    def thresholds(self) -> Levels:
        return Levels(self.levels, np.arange(self.levels.size))

    @property
    def others(self) -> FloatArray:
        """Rows of the other side."""
        return self.enrol if self.test is None else self.test

    def shares(self) -> list[Range]:
        """Ranges of targets for a task, whose counts fit into memory; who works does not matter."""
        cells = self.speakers * self.levels.size
        return shares_of(np.maximum(self.sizes, -(-cells * ROWS // _CELLS)), ROWS)

    @lazy
    def strips(self) -> tuple[Strip, ...]:
        return tuple(Strip.of(self.edges, part) for part in ranges_of(len(self.others), STRIP))

    def ranked(self, targets: Range, above: IntArray) -> Iterator[tuple[FloatArray, IntArray]]:
        """False-alarm rates (ranks, levels), closest impostor first, from :func:`count_above`, and
        who has each rank.
        """
        similarity = self.similarity(targets)
        for own, counted, target in zip(similarity, above, range(*targets), strict=True):
            own[~self.allowed(target)] = -np.inf
            trials = self.sizes[target] * self.sizes
            yield closest_first(counted, trials, own, float(self.tie))


@dataclass(frozen=True, eq=False)
class Strip:
    """Some rows of the other side: speakers ``first`` … ``last`` − 1, beginning at ``starts``."""

    rows: slice
    first: int
    last: int
    starts: IntArray

    @classmethod
    def of(cls, edges: IntArray, rows: Range) -> Strip:
        first = int(np.searchsorted(edges, rows[0], side="right")) - 1
        last = int(np.searchsorted(edges, rows[1]))
        return cls(slice(*rows), first, last, np.maximum(edges[first:last] - rows[0], 0))

    @lazy
    def speaker(self) -> IntArray:
        """Speaker of each row, counted from ``first``."""
        width = self.rows.stop - self.rows.start
        return np.repeat(np.arange(self.starts.size), np.diff(np.append(self.starts, width)))


def surfaces_of_voices(voices: Voices, targets: Range) -> Arrays:
    """P_FA^N(τ) of a range of targets."""
    ranked = voices.ranked(targets, count_above(voices, targets))
    return surfaces_without(
        ranked, voices.counts, targets, voices.group, voices.group, voices.fewer
    )


def count_above(voices: Voices, targets: Range) -> IntArray:
    """Scores above each level, (targets, speakers, levels)."""
    table = np.zeros((targets[1] - targets[0], voices.speakers, voices.levels.size), np.int64)
    bounds = voices.edges[targets[0] : targets[1] + 1]
    count = _compared if voices.levels.size <= _FEW else _placed
    held = np.empty((BLOCK, STRIP))
    for top in range(bounds[0], bounds[-1], BLOCK):
        bottom = min(top + BLOCK, int(bounds[-1]))
        inside = range(
            int(np.searchsorted(bounds, top, side="right")) - 1,
            int(np.searchsorted(bounds, bottom)),
        )
        for strip in voices.strips:
            other = voices.others[strip.rows]
            scores = held[: bottom - top, : len(other)]
            np.matmul(voices.enrol[top:bottom], other.T, out=scores)
            for target in inside:
                own = scores[max(bounds[target] - top, 0) : bounds[target + 1] - top]
                table[target, strip.first : strip.last] += count(own, voices.thresholds, strip)
    return table


def _compared(scores: FloatArray, levels: Levels, strip: Strip) -> IntArray:
    """Scores above each level by impostor, (impostors, levels): a comparison for each level.

    Sums over at most 255 rows, in bytes: eight times narrower than a sum of integers.
    """
    total = np.zeros((strip.starts.size, levels.values.size), np.int64)
    columns = np.empty((levels.values.size, scores.shape[1]), np.uint8)
    for rows in range(0, len(scores), _BYTE):
        part = scores[rows : rows + _BYTE]
        for level, column in zip(levels.values, columns, strict=True):
            np.add.reduce((part > level).view(np.uint8), axis=0, dtype=np.uint8, out=column)
        total += np.add.reduceat(columns, strip.starts, axis=1, dtype=np.int64).T
    return total


def _placed(scores: FloatArray, levels: Levels, strip: Strip) -> IntArray:
    """The same for many levels: the place of each score among them."""
    return levels.above(scores, strip.speaker, strip.starts.size)
