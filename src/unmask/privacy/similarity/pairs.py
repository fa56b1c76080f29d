"""All pairs of segments of one score set, in tiles and in the order of their speakers.

A tile holds scores of some rows against some columns, on a fixed grid, so a score has the same bits
whoever asks; on a device a tile has all columns, and products are in double precision there as
well.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray
from unmask.errors import InputError
from unmask.run import NUMPY, Range, Xp, ranges_of
from unmask.scoring import TILE_COLUMNS, TILE_ROWS, Backend, Sides, sides_of
from unmask.trials import Embeddings, Ids, refuse_encoders, share

STRIP = 1 << 24
_COMPARED = {"<": operator.lt, "==": operator.eq, "!=": operator.ne}
Block = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Segments:
    """Segments sorted by speaker: ``order`` gives each one's place among those handed in.

    Made by :func:`aligned` and :func:`segments_of`, shared by all sets of comparisons. Speaker k,
    of ``names``, has ``counts[k]`` segments from ``first[k]`` on.
    """

    order: IntArray
    codes: IntArray
    first: IntArray
    counts: IntArray
    names: tuple[str, ...]

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
        first = np.cumsum(counts) - counts
        return cls(order, codes[order].astype(np.int64), first, counts, names)

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
        first = self.first[spoken.start : spoken.stop] - start
        return np.append(np.maximum(first, 0), stop - start)


def aligned(original: Embeddings, protected: Embeddings) -> tuple[Segments, IntArray]:
    """The original segments by speaker, and for each original row the row of its protected version.

    Refuses a speaker or an utterance that only one of the two sets has, and two encoders.
    """
    refuse_encoders({"the original": original, "protected": protected})
    o, p = share(original.speakers, protected.speakers)
    _same_names(o, p, "speaker", original, protected)
    if (original.utterances is None) != (protected.utterances is None):
        raise InputError(
            "original and protected segments cannot be matched: only one of the two sets names"
            " its utterances"
        )
    if original.utterances is not None and protected.utterances is not None:
        order = _matched(original, protected)
    elif len(original) != len(protected):
        raise InputError(
            f"original and protected segments cannot be matched: {len(original)} and"
            f" {len(protected)} vectors without utterance names"
        )
    else:
        order = np.arange(len(original))
    differs = np.flatnonzero(o.codes != p.codes[order])
    if differs.size:
        row = int(differs[0])
        raise InputError(
            f"row {row + 1} of the original set is of speaker {o.decode(row)}, its protected"
            f" version of speaker {p.decode(int(order[row]))} ({differs.size} such rows)"
        )
    return segments_of(o), order


def segments_of(speakers: Ids) -> Segments:
    """Segments of the speakers that occur, in the order in which they first occur."""
    used, first, dense = np.unique(speakers.codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(used.size, dtype=np.int64)
    rank[order] = np.arange(used.size)
    return Segments.of(rank[dense], tuple(str(speakers.names[int(code)]) for code in used[order]))


def _matched(original: Embeddings, protected: Embeddings) -> IntArray:
    assert original.utterances is not None
    assert protected.utterances is not None
    o, p = share(original.utterances, protected.utterances)
    _same_names(o, p, "utterance", original, protected)
    row_of = np.empty(len(o.names), dtype=np.int64)
    row_of[p.codes] = np.arange(len(p))
    return np.asarray(row_of[o.codes])


def _same_names(a: Ids, b: Ids, what: str, original: Embeddings, protected: Embeddings) -> None:
    sides = ((a, b, original, "original"), (b, a, protected, "protected"))
    for mine, other, embeddings, role in sides:
        alone = np.setdiff1d(mine.used, other.used)
        if alone.size:
            where = f"{embeddings.source.name}: " if embeddings.source else ""
            raise InputError(
                f"{where}{what} {mine.names[int(alone[0])]} is in the {role} set only"
                f" ({alone.size} such {what}s)"
            )


@dataclass(frozen=True, eq=False)
class MatrixPairs:
    """A square matrix of scores that exists already; no copy of it is made.

    ``row_means`` and ``column_means`` of sorted segments are subtracted where they are given.
    """

    matrix: Block
    segments: Segments
    row_means: FloatArray | None = None
    column_means: FloatArray | None = None

    def scores(self, xp: Xp, rows: Range, columns: Range) -> Any:
        """Scores of sorted segments against sorted segments."""
        order = self.segments.order
        if self.segments.in_order:
            block = self.matrix[slice(*rows), slice(*columns)]
        else:
            block = self.matrix[order[slice(*rows), None], order[None, slice(*columns)]]
        if self.row_means is None or self.column_means is None:
            return xp.put(block)
        row_means, column_means = xp.put(self.row_means), xp.put(self.column_means)
        return xp.put(block) - row_means[slice(*rows), None] - column_means[slice(*columns)]


PairSource = MatrixPairs | Sides


def prepared(
    backend: Backend, original: Embeddings, protected: Embeddings
) -> tuple[Segments, IntArray, Sides, Sides]:
    """The original segments by speaker, for each the row of its protected version, and the sides of
    both sets in this order.
    """
    segments, order = aligned(original, protected)
    order = order[segments.order]
    o = sides_of(backend, original.vectors).take(segments.order)
    return segments, order, o, sides_of(backend, protected.vectors).take(order)


def double_centred(source: PairSource, segments: Segments) -> PairSource | None:
    """The same comparisons with their scores double-centred; None where a mean is infinite.

    That is s(a, b) − mean s(a, ·) − mean s(·, b), no pair of a segment with itself among the means.
    For cosines this is the product of vectors from which the mean of their own side was subtracted
    (less a constant). It needs no labels, so any attacker can do it, and it undoes whatever a
    safeguard adds to all voices alike.
    """
    if isinstance(source, Sides):
        return _centred_products(source)
    rows, columns = _means(source, len(segments))
    if not (np.isfinite(rows).all() and np.isfinite(columns).all()):
        return None
    return MatrixPairs(source.matrix, segments, rows, columns)


def _centred_products(sides: Sides) -> Sides:
    """Means of products are products with means: two more columns take them off."""
    enrol, test = sides.enrol, sides.test
    number, both = len(enrol) - 1, (enrol * test).sum(axis=1)
    rows = (enrol @ test.sum(axis=0) - both) / number
    columns = (test @ enrol.sum(axis=0) - both) / number
    one = np.ones(len(enrol))
    return Sides(np.column_stack([enrol, -rows, one]), np.column_stack([test, one, -columns]))


def _means(source: MatrixPairs, size: int) -> tuple[FloatArray, FloatArray]:
    """Mean score of every row and of every column, self-comparisons and NaN left out."""
    rows, columns, number = np.zeros(size), np.zeros(size), np.zeros((2, size))
    with np.errstate(invalid="ignore"):
        for top, bottom in ranges_of(size, TILE_ROWS):
            block = np.array(source.scores(NUMPY, (top, bottom), (0, size)), dtype=np.float64)
            block[np.arange(bottom - top), np.arange(top, bottom)] = np.nan
            known = ~np.isnan(block)
            block[~known] = 0.0
            rows[top:bottom] = block.sum(axis=1)
            columns += block.sum(axis=0)
            number[0, top:bottom] = known.sum(axis=1)
            number[1] += known.sum(axis=0)
        return rows / np.maximum(number[0], 1), columns / np.maximum(number[1], 1)


@dataclass(frozen=True, eq=False)
class Rule:
    """Only the pairs whose codes of row and column compare so: ``<`` (handed in before), ``==`` (of
    one session) or ``!=`` (of two).
    """

    codes: IntArray
    holds: str

    def __call__(self, xp: Xp, rows: Range, columns: Range) -> Any:
        codes = xp.put(self.codes)
        return _COMPARED[self.holds](codes[slice(*rows), None], codes[slice(*columns)])


@dataclass(frozen=True, eq=False)
class Pairs:
    """The comparisons of one set: a source of scores, its segments, and which pairs count.

    Made by each public function, shared by the tasks of a job. A segment is never compared with
    itself, nor with its own protected version: both lie on the diagonal.
    """

    source: PairSource
    segments: Segments
    rule: Rule | None = None

    def ranges(self, trials: int) -> list[Range]:
        """Ranges of rows on the grid of tiles, each of at least so many pairs."""
        size = len(self.segments)
        return ranges_of(size, max(1, -(-trials // (TILE_ROWS * size))) * TILE_ROWS)

    def tiles(self, xp: Xp, rows: Range, *, band: bool = False) -> Iterator[Tile]:
        """All tiles of some rows, which begin on the grid; ``band``: those that hold pairs of one
        speaker.
        """
        segments, size = self.segments, len(self.segments)
        width, step = xp.chunk(TILE_COLUMNS, size, 1), TILE_ROWS
        while step > xp.chunk(TILE_ROWS, STRIP, size):
            step //= 2
        for top in range(*rows, step):
            strip = top, min(top + step, rows[1])
            left, right = 0, size
            if band:
                spoken = segments.spoken(*strip)
                left = int(segments.first[spoken[0]]) // width * width
                right = int(segments.first[spoken[-1]] + segments.counts[spoken[-1]])
            for start in range(left, right, width):
                yield Tile(xp, self, strip, (start, min(start + width, size)))


@dataclass(frozen=True, eq=False)
class Tile:
    """One block of scores of the grid, where its worker has its arrays."""

    xp: Xp
    pairs: Pairs
    rows: Range
    columns: Range

    @cached_property
    def scores(self) -> Any:
        return self.pairs.source.scores(self.xp, self.rows, self.columns)

    @cached_property
    def cuts(self) -> tuple[IntArray, IntArray]:
        """Where the speakers of the rows and of the columns begin, and where the last ones end."""
        segments = self.pairs.segments
        return segments.cuts(*self.rows), segments.cuts(*self.columns)

    @property
    def speakers(self) -> tuple[range, range]:
        """The speakers of the rows and of the columns."""
        segments = self.pairs.segments
        return segments.spoken(*self.rows), segments.spoken(*self.columns)

    @property
    def diagonal(self) -> tuple[Any, Any]:
        """Index of the pairs of a segment with itself, or with its own protected version."""
        start = max(self.rows[0], self.columns[0])
        both = self.xp.arange(start, max(start, min(self.rows[1], self.columns[1])))
        return both - self.rows[0], both - self.columns[0]

    @cached_property
    def _skipped(self) -> Any:
        """Index of the pairs that do not count."""
        rule = self.pairs.rule
        if rule is None:
            return self.diagonal
        dropped = ~rule(self.xp, self.rows, self.columns)
        dropped[self.diagonal] = True
        return dropped

    def skip(self, values: Any, value: int | bool) -> Any:
        """Set a value at the pairs that do not count, in place."""
        values[self._skipped] = value
        return values

    def own(self) -> Iterator[tuple[slice, slice]]:
        """The pairs of each speaker with that same speaker."""
        (top, left), (rows, columns) = self.speakers, self.cuts
        for speaker in range(max(top.start, left.start), min(top.stop, left.stop)):
            i, j = speaker - top.start, speaker - left.start
            yield slice(rows[i], rows[i + 1]), slice(columns[j], columns[j + 1])

    def count(self, fold: Callable[..., Any]) -> IntArray:
        """How many pairs of each two speakers count; ``fold`` adds up a tile."""
        rows, columns = self.cuts
        if self.pairs.rule is not None:
            return self.xp.host(fold(~self._skipped)).astype(np.int64)
        number = np.multiply.outer(np.diff(rows), np.diff(columns))
        top, left = self.speakers
        same = self.pairs.segments.codes[self.xp.host(self.diagonal[0]) + self.rows[0]]
        np.subtract.at(number, (same - top.start, same - left.start), 1)
        return number

    def trials(self, *, target: bool) -> Any:
        """Which pairs are trials of a class, or None for all of them."""
        codes, rows, columns = self.pairs.segments.codes, slice(*self.rows), slice(*self.columns)
        apart = codes[rows][-1] < codes[columns][0] or codes[columns][-1] < codes[rows][0]
        if apart and not target and self.pairs.rule is None:
            return None
        shared = self.xp.put(codes)
        return self.skip((shared[rows, None] == shared[columns]) == target, False)

    def class_scores(self, *, target: bool) -> Any:
        """Scores of the trials of a class, in one dimension."""
        chosen = self.trials(target=target)
        return self.scores.reshape(-1) if chosen is None else self.scores[chosen]
