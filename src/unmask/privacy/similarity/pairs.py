"""All pairs of segments of one score set, in tiles and in the order of their speakers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, FloatArray, IntArray
from unmask.errors import InputError
from unmask.run import Range, ranges_of
from unmask.scoring import (
    TILE_COLUMNS,
    TILE_ROWS,
    Backend,
    Cosine,
    Plda,
    Whitening,
    llr_block,
    product_block,
)
from unmask.trials import Embeddings

Block = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Segments:
    """Segments sorted by speaker: ``order`` gives each one's place among those handed in.

    ``names`` of the speakers are with those who report, not with those who count.
    """

    order: IntArray
    codes: IntArray
    first: IntArray
    counts: IntArray
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, codes: npt.NDArray[np.integer[Any]], names: tuple[str, ...]) -> Segments:
        """Sort; every speaker needs two segments, or has no self-similarity."""
        counts = np.bincount(codes, minlength=len(names))
        if len(names) < 2:
            raise InputError(f"similarity matrices need 2 speakers or more, found {len(names)}")
        few = np.flatnonzero(counts < 2)
        if few.size:
            raise InputError(
                f"speaker {names[few[0]]} has {counts[few[0]]} segment and so no self-similarity"
                f" ({few.size} such speakers): expected 2 segments or more"
            )
        order = np.argsort(codes, kind="stable").astype(np.int64)
        return cls.of_sorted(order, codes[order].astype(np.int64), names)

    @classmethod
    def of_sorted(cls, order: IntArray, codes: IntArray, names: tuple[str, ...] = ()) -> Segments:
        """Segments whose speakers ascend."""
        counts = np.bincount(codes).astype(np.int64)
        first = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
        return cls(order, codes, first, counts, names)

    def __len__(self) -> int:
        return self.order.size

    @property
    def speakers(self) -> int:
        return self.counts.size

    @cached_property
    def in_order(self) -> bool:
        return bool((self.order[1:] > self.order[:-1]).all())

    def spoken(self, start: int, stop: int) -> range:
        """The speakers of some segments in a row."""
        return range(int(self.codes[start]), int(self.codes[stop - 1]) + 1)

    def cuts(self, start: int, stop: int) -> IntArray:
        """Where each of :meth:`spoken` begins among these segments, and where the last one ends,
        counted from ``start``.
        """
        spoken = self.spoken(start, stop)
        return np.append(
            np.maximum(self.first[spoken.start : spoken.stop] - start, 0), stop - start
        )


class PairSource(Protocol):
    """Scores of sorted segments against sorted segments."""

    def scores(self, rows: Range, columns: Range) -> Block: ...


@dataclass(frozen=True, eq=False)
class MatrixPairs:
    """A square matrix of scores that exists already; no copy of it is made.

    ``row_means`` and ``column_means`` of sorted segments are subtracted where they are given.
    """

    matrix: Block
    segments: Segments
    row_means: FloatArray | None = None
    column_means: FloatArray | None = None

    def scores(self, rows: Range, columns: Range) -> Block:
        scores = self._given(rows, columns)
        if self.row_means is None or self.column_means is None:
            return scores
        return np.asarray(
            scores - self.row_means[slice(*rows), None] - self.column_means[slice(*columns)]
        )

    def _given(self, rows: Range, columns: Range) -> Block:
        if self.segments.in_order:
            return self.matrix[slice(*rows), slice(*columns)]
        order = self.segments.order
        return self.matrix[order[slice(*rows), None], order[None, slice(*columns)]]


ScoreBlock = Callable[[Block, Block], Block]


@dataclass(frozen=True, eq=False)
class EmbeddingPairs:
    """Rows prepared by a back-end, sorted by speaker, scored when asked for."""

    score: ScoreBlock
    enrol: FloatArray
    test: FloatArray

    @classmethod
    def of(cls, backend: Backend, enrol: FloatArray, test: FloatArray) -> EmbeddingPairs:
        """Pairs of prepared rows."""
        return cls(score_block_of(backend), enrol, test)

    def scores(self, rows: Range, columns: Range) -> Block:
        return self.score(self.enrol[slice(*rows)], self.test[slice(*columns)])


def prepared(backend: Backend, embeddings: Embeddings, order: IntArray) -> FloatArray:
    """Rows of a set prepared by a back-end, in some order."""
    return np.ascontiguousarray(backend.prepare(embeddings.vectors)[order])


def score_block_of(backend: Backend) -> ScoreBlock:
    """How a back-end scores prepared rows; of those known here, as a function of a module."""
    known: dict[Any, ScoreBlock] = {
        Cosine.score_block: product_block,
        Whitening.score_block: product_block,
        Plda.score_block: llr_block,
    }
    return known.get(type(backend).score_block, backend.score_block)


class PairRule(Protocol):
    """Which pairs of sorted segments count, the self-comparisons aside."""

    def __call__(self, rows: Range, columns: Range) -> BoolArray: ...


@dataclass(frozen=True, eq=False)
class Upper:
    """Only the pairs whose row was handed in before their column, as the ``codes`` tell."""

    codes: IntArray

    def __call__(self, rows: Range, columns: Range) -> BoolArray:
        return np.asarray(self.codes[slice(*rows), None] < self.codes[slice(*columns)])


@dataclass(frozen=True, eq=False)
class Sessions:
    """Only the pairs of one session, or only those of two different ones."""

    codes: IntArray
    within: bool

    def __call__(self, rows: Range, columns: Range) -> BoolArray:
        same = self.codes[slice(*rows), None] == self.codes[slice(*columns)]
        return np.asarray(same if self.within else ~same)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The comparisons of one set: a source of scores, its segments, and which pairs count.

    A segment is never compared with itself, nor with its own protected version: both lie on the
    diagonal. Scores come in tiles on a fixed grid, so a score has the same bits whoever asks.
    """

    source: PairSource
    segments: Segments
    rule: Upper | Sessions | None = None

    def tiles(self, rows: Range) -> Iterator[Tile]:
        """All tiles of some rows, which begin on the grid."""
        for strip in strips(rows):
            for columns in ranges_of(len(self.segments), TILE_COLUMNS):
                yield Tile(self, strip, columns)

    def band(self, rows: Range) -> Iterator[Tile]:
        """Those that hold pairs of one speaker."""
        segments = self.segments
        for strip in strips(rows):
            spoken = segments.spoken(*strip)
            left = int(segments.first[spoken[0]]) // TILE_COLUMNS * TILE_COLUMNS
            right = int(segments.first[spoken[-1]] + segments.counts[spoken[-1]])
            for start in range(left, right, TILE_COLUMNS):
                yield Tile(self, strip, (start, min(start + TILE_COLUMNS, len(segments))))


def strips(rows: Range) -> list[Range]:
    """Rows cut along the grid of tiles."""
    if rows[0] % TILE_ROWS:
        raise InputError(f"rows begin at a multiple of {TILE_ROWS}, found {rows[0]}")
    return [(top, min(top + TILE_ROWS, rows[1])) for top in range(*rows, TILE_ROWS)]


@dataclass(frozen=True, eq=False)
class Tile:
    """One block of scores of the grid."""

    pairs: Pairs
    rows: Range
    columns: Range

    def scores(self) -> Block:
        return self.pairs.source.scores(self.rows, self.columns)

    @property
    def diagonal(self) -> tuple[IntArray, IntArray]:
        """Index of the pairs of a segment with itself, or with its own protected version."""
        both = np.arange(
            max(self.rows[0], self.columns[0]), min(self.rows[1], self.columns[1]), dtype=np.int64
        )
        return both - self.rows[0], both - self.columns[0]

    def trials(self, *, target: bool) -> BoolArray | None:
        """Which pairs are trials of a class, or None for all of them."""
        pairs, codes = self.pairs, self.pairs.segments.codes
        one, other = codes[slice(*self.rows)], codes[slice(*self.columns)]
        apart = one[-1] < other[0] or other[-1] < one[0]
        if apart and not target and pairs.rule is None:
            return None
        chosen = np.asarray((one[:, None] == other) == target)
        chosen[self.diagonal] = False
        if pairs.rule is not None:
            chosen &= pairs.rule(self.rows, self.columns)
        return chosen

    def skipped(self) -> Any:
        """Index of the pairs that do not count."""
        if self.pairs.rule is None:
            return self.diagonal
        dropped = ~self.pairs.rule(self.rows, self.columns)
        dropped[self.diagonal] = True
        return dropped

    def class_scores(self, *, target: bool) -> Block:
        """Scores of the trials of a class, in one dimension."""
        scores, chosen = self.scores(), self.trials(target=target)
        return scores.reshape(-1) if chosen is None else scores[chosen]

    def class_speakers(self, *, target: bool) -> tuple[IntArray, IntArray]:
        """Speakers on both sides of these trials."""
        codes, chosen = self.pairs.segments.codes, self.trials(target=target)
        shape = self.rows[1] - self.rows[0], self.columns[1] - self.columns[0]
        one = np.broadcast_to(codes[slice(*self.rows), None], shape)
        other = np.broadcast_to(codes[slice(*self.columns)], shape)
        if chosen is None:
            return one.reshape(-1), other.reshape(-1)
        return one[chosen], other[chosen]
