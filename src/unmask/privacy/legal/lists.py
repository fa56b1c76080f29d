"""Nontargets of nested lists of enrolment speakers, counted among the target scores.

Enrolment speakers stand in one order. A list of N' holds the first N' − 1 of them who are not the
test speaker. One pass over the scores serves all N': between two of them, every score is counted
where it lies among the target scores (its code) and, more coarsely, for the groups of speakers that
its test and its enrolment speaker belong to, which intervals draw.

Scores are products in double precision of tiles on a fixed grid, so a score has the same bits
whatever the task, and a tie is a tie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from unmask.base import FloatArray, IntArray, Places, lazy
from unmask.run import ArrayFields, Arrays, Range, code_among, narrow, ranges_of, tensor

TILE_ROWS, TILE_COLUMNS = 256, 1024
ROWS = 5 * TILE_ROWS
_DEVICE_SCORES = 1 << 25


@dataclass(frozen=True, eq=False)
class Lists(ArrayFields):
    """Rows whose inner products are scores; ``place[i]`` is the row of ``enrol`` that belongs to
    test row i, and ascends. ``cuts`` are the numbers N' − 1, ascending.

    ``knots`` are the distinct target scores and ``coarse`` gives the bin of every code of theirs,
    once they are known. ``test_group`` and ``enrol_group`` number the groups of speakers. With side
    information a pair whose codes differ scores −inf.
    """

    enrol: FloatArray
    test: FloatArray
    place: IntArray
    cuts: IntArray
    knots: FloatArray
    coarse: IntArray
    test_group: IntArray
    enrol_group: IntArray
    test_side: IntArray | None = None
    enrol_side: IntArray | None = None

    @lazy
    def code(self) -> Places:
        """Gives 2j for a score in the gap below target score j, 2j + 1 for one that equals it."""
        return Places(self.knots, "both")

    @property
    def codes(self) -> int:
        """Number of codes: a gap below each target score, each of these, and the gap above."""
        return 2 * self.knots.size + 1

    @property
    def columns(self) -> int:
        """How many enrolment rows are looked at."""
        return int(self.cuts[-1]) + 1

    @property
    def bins(self) -> int:
        """Number of coarse bins; a last one takes what is not counted."""
        return int(self.coarse[-1])

    @property
    def groups(self) -> int:
        """Number of groups of speakers."""
        return int(self.test_group.max()) + 1

    @property
    def segments(self) -> list[Range]:
        """Ranges of enrolment rows between one cut and the next."""
        return [(int(start), int(stop)) for start, stop in pairwise([0, *self.cuts])]

    def tile(self, top: int, left: int) -> FloatArray:
        """Scores of one product of the grid."""
        rows, columns = slice(top, top + TILE_ROWS), slice(left, left + TILE_COLUMNS)
        scores = np.asarray(self.test[rows] @ self.enrol[columns].T)
        if self.test_side is not None and self.enrol_side is not None:
            scores[self.test_side[rows, None] != self.enrol_side[columns]] = -np.inf
        return scores

    def owned(self, rows: Range, columns: Range) -> tuple[IntArray, IntArray]:
        """Pairs of one speaker in a tile, numbered within it."""
        place = self.place[slice(*rows)]
        here = np.flatnonzero((place >= columns[0]) & (place < columns[1]))
        return here, place[here] - columns[0]


def own_scores(lists: Lists, rows: Range) -> Arrays:
    """Target scores of some test rows."""
    found = np.empty(rows[1] - rows[0])
    for top, bottom in _tiles(rows):
        first, last = lists.place[top], lists.place[bottom - 1]
        for left in range(int(first) // TILE_COLUMNS * TILE_COLUMNS, int(last) + 1, TILE_COLUMNS):
            i, j = lists.owned((top, bottom), (left, left + TILE_COLUMNS))
            if i.size:
                found[top - rows[0] + i] = lists.tile(top, left)[i, j]
    return {"own": found}


def count_lists(lists: Lists, rows: Range) -> Arrays:
    """Counts of some test rows in every segment.

    ``counts`` holds how many scores have each code, ``spread`` how many of each pair of groups lie
    in each coarse bin (segments × test groups × enrolment groups × bins). ``extra`` is the code of
    the score that joins a row's list where its own speaker is among the first N' − 1, else −1.
    """
    segments, codes, groups, bins = lists.segments, lists.codes, lists.groups, lists.bins + 1
    counts = np.zeros((len(segments), codes + 1), dtype=np.int64)
    size = groups * groups * bins if lists.bins else 0
    spread = np.zeros((len(segments), size), dtype=np.int64)
    extra = np.full((len(segments), rows[1] - rows[0]), -1, dtype=np.int64)
    for top, bottom in _tiles(rows):
        within = slice(top - rows[0], bottom - rows[0])
        offset = (lists.test_group[top:bottom] * groups * bins)[:, None]
        for left, right in ranges_of(lists.columns, TILE_COLUMNS):
            found = lists.code(lists.tile(top, left))[:, : right - left]
            found[lists.owned((top, bottom), (left, right))] = codes
            pair = offset + lists.enrol_group[left:right] * bins
            for s, (start, stop) in enumerate(segments):
                part = slice(max(start - left, 0), max(stop - left, 0))
                some = found[:, part]
                if some.size:
                    counts[s] += np.bincount(some.reshape(-1), minlength=codes + 1)
                    if lists.bins:
                        which = (lists.coarse.take(some) + pair[:, part]).reshape(-1)
                        spread[s] += np.bincount(which, minlength=size)
                if left <= stop < right:
                    inside = lists.place[top:bottom] < stop
                    extra[s, within][inside] = found[inside, stop - left]
    return _compact(lists, counts, spread, extra)


def own_scores_on_device(lists: Lists, device: str) -> Callable[[Range], Arrays]:
    """The same on a CUDA device, from the very products that are counted there."""
    put, products = partial(tensor, device=device), _products(lists, device)

    def own(rows: Range) -> Arrays:
        found = []
        for part, scores in products(rows):
            place = put(lists.place[slice(*part)])
            found.append(scores.gather(1, place[:, None])[:, 0].cpu().numpy())
        return {"own": np.concatenate(found)}

    return own


def count_lists_on_device(lists: Lists, device: str) -> Callable[[Range], Arrays]:
    """The same on a CUDA device."""
    import torch

    put, products = partial(tensor, device=device), _products(lists, device)
    segments, codes, bins = lists.segments, lists.codes, lists.bins
    segment = np.repeat(np.arange(len(segments)), [stop - start for start, stop in segments])

    def count(rows: Range) -> Arrays:
        counts = np.zeros((len(segments), codes + 1), dtype=np.int64)
        size = lists.groups * lists.groups * (bins + 1) if bins else 0
        spread = np.zeros((len(segments), size), dtype=np.int64)
        extra = []
        for part, scores in products(rows):
            found = code_among(put(lists.knots), scores)
            place = put(lists.place[slice(*part)])
            found.scatter_(1, place[:, None], codes)
            extra.append(
                torch.stack([torch.where(place < n, found[:, n], -1) for n in lists.cuts.tolist()])
                .cpu()
                .numpy()
            )
            found, which = found[:, : len(segment)], put(segment)
            counted = torch.bincount(
                (which * (codes + 1) + found).reshape(-1), minlength=counts.size
            )
            counts += counted.cpu().numpy().reshape(counts.shape)
            if bins:
                row = put(lists.test_group[slice(*part)] * lists.groups)[:, None]
                pair = (row + put(lists.enrol_group[: len(segment)])) * (bins + 1)
                flat = which * size + pair + put(lists.coarse)[found]
                binned = torch.bincount(flat.reshape(-1), minlength=spread.size)
                spread += binned.cpu().numpy().reshape(spread.shape)
        return _compact(lists, counts, spread, np.concatenate(extra, axis=1))

    return count


def _products(lists: Lists, device: str) -> Callable[[Range], Iterator[tuple[Range, Any]]]:
    """Scores of test rows with all enrolment rows on a device, a few rows at a time."""
    import torch

    put = partial(tensor, device=device)
    enrol = put(lists.enrol)
    enrol_side = None if lists.enrol_side is None else put(lists.enrol_side)
    step = max(1, _DEVICE_SCORES // len(lists.enrol))

    def products(rows: Range) -> Iterator[tuple[Range, Any]]:
        for start in range(rows[0], rows[1], step):
            part = start, min(start + step, rows[1])
            scores = put(lists.test[slice(*part)]) @ enrol.T
            if lists.test_side is not None and enrol_side is not None:
                differ = put(lists.test_side[slice(*part)])[:, None] != enrol_side[None, :]
                scores.masked_fill_(differ, -torch.inf)
            yield part, scores

    return products


def _tiles(rows: Range) -> list[Range]:
    return [(top, min(top + TILE_ROWS, rows[1])) for top in range(*rows, TILE_ROWS)]


def _compact(lists: Lists, counts: IntArray, spread: IntArray, extra: IntArray) -> Arrays:
    """In as few bytes as the numbers need, without what is not counted."""
    shape = (len(counts), lists.groups, lists.groups, lists.bins + 1)
    spread = spread.reshape(shape if lists.bins else (len(counts), 0, 0, 1))
    return {
        "counts": narrow(counts[:, :-1]),
        "spread": narrow(spread[..., :-1]),
        "extra": extra.astype(np.int32),
    }
