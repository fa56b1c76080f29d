"""All pairs of segments of one score set, in the order of their speakers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, FloatArray, Groups, IntArray
from unmask.errors import InputError
from unmask.run import NUMPY, Range, Torch, Xp, ranges_of
from unmask.scoring import ALL, OTHERS, WIDE, Backend, PairGrid, Rule, Sides, sides_of
from unmask.trials import Embeddings, Ids, refuse_encoders, share

Block = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Segments(Groups):
    """Segments sorted by speaker: ``order`` gives each one's place among those handed in.

    Made by :func:`aligned` and :func:`segments_of`, shared by all sets of comparisons.
    """

    order: IntArray = field(kw_only=True)

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
        return cls(codes[order].astype(np.int64), names, order=order)

    @cached_property
    def in_order(self) -> bool:
        return bool((self.order[1:] > self.order[:-1]).all())

    def pairs(self, source: PairSource, rule: Rule | None = None) -> PairGrid:
        """The comparisons of one set, shared by the tasks of a job. A segment is never compared
        with itself, nor with its own protected version: both lie on the diagonal.
        """
        return PairGrid(source, self, self, rule or OTHERS, wide=True, tile=WIDE)

    def crossed(
        self, source: PairSource, here: BoolArray, groups: IntArray | None = None
    ) -> PairGrid:
        """All comparisons of the segments ``here``, the rows, with the others, the columns, or
        those within ``groups``.
        """
        one, other = (Groups(self.codes[some], self.names) for some in (here, ~here))
        rule = ALL if groups is None else Rule(groups[here], "==", across=groups[~here])
        return PairGrid(source, one, other, rule, wide=True, tile=WIDE)


def aligned(
    original: Embeddings, protected: Embeddings, *, compared: bool = True
) -> tuple[Segments, IntArray]:
    """The original segments by speaker, and for each original row the row of its protected version.

    Refuses a speaker or an utterance that only one of the two sets has and, unless their vectors
    are not ``compared``, two encoders.
    """
    if compared:
        refuse_encoders({"the original": original, "protected": protected})
    o, p = share(original.speakers, protected.speakers)
    _same_names(o, p, "speaker", original, protected)
    if (original.utterances is None) != (protected.utterances is None):
        raise InputError(
            "original and protected segments cannot be matched: only one of the two sets names"
            " its utterances"
        )
    if original.utterances is not None and protected.utterances is not None:
        mine, theirs = share(original.utterances, protected.utterances)
        _same_names(mine, theirs, "utterance", original, protected)
        row_of = np.empty(len(mine.names), dtype=np.int64)
        row_of[theirs.codes] = np.arange(len(protected))
        order = row_of[mine.codes]
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

    ``means`` of the rows and columns of sorted segments are subtracted where they are given.
    """

    matrix: Block
    segments: Segments
    means: tuple[FloatArray, FloatArray] | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """What scores are counted in."""
        return np.dtype(np.float64)

    def scores(self, xp: Xp, rows: Range, columns: Range, out: Any = None) -> Any:
        """Scores of sorted segments against sorted segments, copied to ``out`` if it is there."""
        order = self.segments.order
        if self.segments.in_order:
            block = self.matrix[slice(*rows), slice(*columns)]
        else:
            block = self.matrix[order[slice(*rows), None], order[None, slice(*columns)]]
        scores = xp.put(block)
        if self.means is not None:
            row_means, column_means = map(xp.put, self.means)
            scores = scores - row_means[slice(*rows), None] - column_means[slice(*columns)]
        if out is None or isinstance(xp, Torch):
            return scores
        copied = out[: scores.size].reshape(scores.shape)
        copied[...] = scores
        return copied


PairSource = MatrixPairs | Sides


def prepared(
    backend: Backend, original: Embeddings, protected: Embeddings
) -> tuple[Segments, IntArray, Sides, Sides]:
    """Original segments by speaker, the row of each one's protected version, and both sides."""
    segments, order = aligned(original, protected)
    order = order[segments.order]
    o = sides_of(backend, original.vectors).take(segments.order)
    return segments, order, o, sides_of(backend, protected.vectors).take(order)


def double_centred(source: MatrixPairs) -> MatrixPairs | None:
    """The same comparisons with their scores double-centred; None where a mean is infinite.

    That is s(a, b) − mean s(a, ·) − mean s(·, b), no pair of a segment with itself among the means.
    For cosines this is the product of vectors from which the mean of their own side was subtracted
    (less a constant). It needs no labels, so any attacker can do it, and it undoes whatever a
    safeguard adds to all voices alike.
    """
    size = len(source.segments)
    sums, number = np.zeros((2, size)), np.zeros((2, size))
    with np.errstate(invalid="ignore"):
        for top, bottom in ranges_of(size, WIDE[0]):
            block = np.array(source.scores(NUMPY, (top, bottom), (0, size)), dtype=np.float64)
            block[np.arange(bottom - top), np.arange(top, bottom)] = np.nan
            known = ~np.isnan(block)
            block[~known] = 0.0
            for total, values in ((sums, block), (number, known)):
                total[0, top:bottom] = values.sum(axis=1)
                total[1] += values.sum(axis=0)
        rows, columns = sums / np.maximum(number, 1)
    if not (np.isfinite(rows).all() and np.isfinite(columns).all()):
        return None
    return replace(source, means=(rows, columns))
