"""All pairs of segments of one score set, in tiles and in the order of their speakers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, FloatArray, IntArray
from unmask.errors import InputError
from unmask.privacy.similarity.segments import Segments
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


def centred(source: PairSource, segments: Segments) -> PairSource | None:
    """The same comparisons with their scores centred; None where a mean is infinite.

    The centred score is s(a, b) − mean s(a, ·) − mean s(·, b), no pair of a segment with itself
    among the means. For cosines this is the product of vectors from which the mean of their own
    side was subtracted (less a constant). It needs no labels, so any attacker can do it, and it
    undoes whatever a safeguard adds to all voices alike.
    """
    if isinstance(source, EmbeddingPairs) and source.score in (product_block, llr_block):
        return _centred_products(source)
    rows, columns = _means(source, len(segments))
    if not (np.isfinite(rows).all() and np.isfinite(columns).all()):
        return None
    if isinstance(source, EmbeddingPairs):
        enrol, test = (
            np.column_stack([vectors, -mean])
            for vectors, mean in ((source.enrol, rows), (source.test, columns))
        )
        return EmbeddingPairs(_with_offsets(source.score), enrol, test)
    assert isinstance(source, MatrixPairs)
    return MatrixPairs(source.matrix, segments, rows, columns)


def _centred_products(source: EmbeddingPairs) -> EmbeddingPairs:
    """Means of products are products with means: they take the place of the own terms."""
    own = 0 if source.score is product_block else 1
    enrol, test = (rows[:, : rows.shape[1] - own] for rows in (source.enrol, source.test))
    number = len(enrol) - 1
    both = (enrol * test).sum(axis=1)
    rows = (enrol @ test.sum(axis=0) - both) / number
    columns = (test @ enrol.sum(axis=0) - both) / number
    if own:
        rows += (source.test[:, -1].sum() - source.test[:, -1]) / number
        columns += (source.enrol[:, -1].sum() - source.enrol[:, -1]) / number
    return EmbeddingPairs(
        llr_block, np.column_stack([enrol, -rows]), np.column_stack([test, -columns])
    )


def _means(source: PairSource, size: int) -> tuple[FloatArray, FloatArray]:
    """Mean score of every row and of every column, self-comparisons and NaN left out."""
    rows, columns, number = np.zeros(size), np.zeros(size), np.zeros((2, size))
    with np.errstate(invalid="ignore"):
        for top, bottom in strips((0, size)):
            block = np.array(source.scores((top, bottom), (0, size)), dtype=np.float64)
            block[np.arange(bottom - top), np.arange(top, bottom)] = np.nan
            known = ~np.isnan(block)
            block[~known] = 0.0
            rows[top:bottom] = block.sum(axis=1)
            columns += block.sum(axis=0)
            number[0, top:bottom] = known.sum(axis=1)
            number[1] += known.sum(axis=0)
        return rows / np.maximum(number[0], 1), columns / np.maximum(number[1], 1)


def _with_offsets(score: ScoreBlock) -> ScoreBlock:
    """A back-end's scores plus the last column of either side."""

    def scored(enrol: Block, test: Block) -> Block:
        return np.asarray(score(enrol[:, :-1], test[:, :-1]) + enrol[:, -1:] + test[:, -1])

    return scored
