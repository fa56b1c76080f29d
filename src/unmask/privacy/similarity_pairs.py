"""All pairs of segments of one score set, in blocks and in the order of their speakers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from unmask.arrays import BoolArray, FloatArray, IntArray
from unmask.errors import InputError
from unmask.scoring import Backend, row_ranges, score_rows
from unmask.scoring.blocks import TILE_COLUMNS

_MEMORY = 1 << 25
Block = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Segments:
    """Segments sorted by speaker: ``order`` gives each one's place among those handed in."""

    order: IntArray
    codes: IntArray
    first: IntArray
    counts: IntArray
    names: tuple[str, ...]

    @classmethod
    def of(cls, codes: npt.NDArray[np.integer[Any]], names: tuple[str, ...]) -> Segments:
        """Sort; every speaker needs two segments, or has no self-similarity."""
        counts = np.bincount(codes, minlength=len(names)).astype(np.int64)
        if len(names) < 2:
            raise InputError(f"similarity matrices need 2 speakers or more, found {len(names)}")
        few = np.flatnonzero(counts < 2)
        if few.size:
            raise InputError(
                f"speaker {names[few[0]]} has {counts[few[0]]} segment and so no self-similarity"
                f" ({few.size} such speakers): expected 2 segments or more"
            )
        order = np.argsort(codes, kind="stable").astype(np.int64)
        first = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
        return cls(order, codes[order].astype(np.int64), first, counts, names)

    def __len__(self) -> int:
        return self.order.size

    @property
    def in_order(self) -> bool:
        return bool((self.order[1:] > self.order[:-1]).all())


class PairSource(Protocol):
    """Scores of sorted segments against sorted segments."""

    def rows(self, start: int, stop: int, *, left: int = 0, right: int | None = None) -> Block:
        """Scores of rows start … stop − 1 against columns left … right − 1."""


@dataclass(frozen=True, eq=False)
class MatrixPairs:
    """A square matrix of scores that exists already; no copy of it is made."""

    matrix: Block
    segments: Segments

    def rows(self, start: int, stop: int, *, left: int = 0, right: int | None = None) -> Block:
        if self.segments.in_order:
            return self.matrix[start:stop, left:right]
        order = self.segments.order
        return self.matrix[order[start:stop, None], order[None, left:right]]


@dataclass(frozen=True, eq=False)
class EmbeddingPairs:
    """Rows prepared by a back-end, sorted by speaker, scored when asked for."""

    backend: Backend
    enrol: FloatArray
    test: FloatArray

    def rows(self, start: int, stop: int, *, left: int = 0, right: int | None = None) -> Block:
        right = self.test.shape[0] if right is None else right
        tile = left // TILE_COLUMNS * TILE_COLUMNS
        last = min(-(-right // TILE_COLUMNS) * TILE_COLUMNS, self.test.shape[0])
        scores = score_rows(self.backend, self.enrol, self.test[tile:last], start, stop)
        return scores[:, left - tile : right - tile]


class PairRule(Protocol):
    """Which pairs of sorted segments count, the self-comparisons aside."""

    def __call__(self, start: int, stop: int, left: int, right: int) -> BoolArray: ...


@dataclass(frozen=True, eq=False)
class Upper:
    """Only the pairs whose row was handed in before their column."""

    place: IntArray

    def __call__(self, start: int, stop: int, left: int, right: int) -> BoolArray:
        return np.asarray(self.place[start:stop, None] < self.place[None, left:right])


@dataclass(frozen=True, eq=False)
class Sessions:
    """Only the pairs of one session, or only those of two different ones."""

    codes: IntArray
    within: bool

    def __call__(self, start: int, stop: int, left: int, right: int) -> BoolArray:
        same = self.codes[start:stop, None] == self.codes[None, left:right]
        return np.asarray(same if self.within else ~same)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The comparisons of one set: a source of scores, its segments, and which pairs count.

    A segment is never compared with itself, nor with its own protected version: both lie on the
    diagonal. ``mirror`` pools Sim(i, j) and Sim(j, i).
    """

    name: str
    source: PairSource
    segments: Segments
    rule: PairRule | None = None
    mirror: bool = False

    def ranges(self) -> list[tuple[int, int]]:
        """Ranges of rows to work on one after the other."""
        size = len(self.segments)
        return row_ranges(size, size, memory=_MEMORY)

    def kept(self, start: int, stop: int, left: int, right: int) -> BoolArray | None:
        """Which pairs of a block count, or None for all of them."""
        return None if self.rule is None else self.rule(start, stop, left, right)

    def skipped(self, start: int, stop: int) -> Any:
        """Index of the pairs of a block of rows that do not count, the diagonal among them."""
        diagonal = np.arange(stop - start), np.arange(start, stop)
        kept = self.kept(start, stop, 0, len(self.segments))
        if kept is None:
            return diagonal
        dropped = ~kept
        dropped[diagonal] = True
        return dropped

    def targets(self, start: int, stop: int) -> Iterator[FloatArray]:
        """Scores of the pairs within each speaker over the rows of a block."""
        spans = list(self.spans(start, stop))
        low, high = spans[0][1].start, spans[-1][1].stop
        block = self.source.rows(start, stop, left=low, right=high)
        for rows, columns in spans:
            own = block[rows.start - start : rows.stop - start, columns.start - low :]
            keep = np.arange(rows.start, rows.stop)[:, None] != np.arange(
                columns.start, columns.stop
            )
            kept = self.kept(rows.start, rows.stop, columns.start, columns.stop)
            if kept is not None:
                keep &= kept
            yield own[:, : keep.shape[1]][keep].astype(np.float64)

    def nontargets(self, start: int, stop: int) -> Iterator[Block]:
        """Scores of the pairs of different speakers over the rows of a block, in pieces."""
        block = self.source.rows(start, stop)
        size = len(self.segments)
        for rows, columns in self.spans(start, stop):
            part = block[rows.start - start : rows.stop - start]
            for left, right in ((0, columns.start), (columns.stop, size)):
                kept = self.kept(rows.start, rows.stop, left, right)
                yield part[:, left:right] if kept is None else part[:, left:right][kept]

    def spans(self, start: int, stop: int) -> Iterator[tuple[slice, slice]]:
        """Rows of each speaker in a block, and the speaker's columns."""
        segments = self.segments
        for speaker in range(int(segments.codes[start]), int(segments.codes[stop - 1]) + 1):
            left = int(segments.first[speaker])
            right = left + int(segments.counts[speaker])
            yield slice(max(start, left), min(stop, right)), slice(left, right)
