"""Segments by speaker, original and protected ones side by side."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import IntArray
from unmask.errors import InputError
from unmask.trials import Embeddings, Ids, share


@dataclass(frozen=True, eq=False)
class Segments:
    """Segments sorted by speaker: ``order`` gives each one's place among those handed in.

    Made by :func:`aligned` and :func:`segments_of`, shared by all sets of comparisons. ``names`` of
    the speakers are with those who report, not with those who count.
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


def aligned(original: Embeddings, protected: Embeddings) -> tuple[Segments, IntArray]:
    """The original segments by speaker, and for each original row the row of its protected version.

    Refuses a speaker or an utterance that only one of the two sets has.
    """
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
