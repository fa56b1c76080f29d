"""Nontargets of nested lists of enrolment speakers, counted among the target scores.

Enrolment speakers stand in one order. A list of N' holds the first N' − 1 of them who are not the
test speaker. One pass over the scores serves all N': between two of them, every score is counted
where it lies among the target scores (its code) and, more coarsely, for the groups of speakers that
its test and its enrolment speaker belong to, which intervals draw.

Scores are products in double precision of tiles on a fixed grid, so a score has the same bits
whatever the task, and a tie is a tie.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from unmask.base import FloatArray, IntArray, Places, lazy
from unmask.run import Arrays, Range, Xp, narrow

TILE_ROWS, TILE_COLUMNS = 256, 1024
ROWS = 5 * TILE_ROWS
_DEVICE_SCORES = 1 << 25


@dataclass(frozen=True, eq=False)
class Lists:
    """Rows whose inner products are scores; ``true[i]`` is the row of ``enrol`` that belongs to
    test row i, and ascends. ``cuts`` are the numbers N' − 1, ascending.

    ``knots`` are the distinct target scores and ``coarse`` gives the bin of every code of theirs,
    once they are known. ``test_group`` and ``enrol_group`` number the groups of speakers. With side
    information a pair whose codes differ scores −inf.
    """

    enrol: FloatArray
    test: FloatArray
    true: IntArray
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

    def strips(self, xp: Xp, rows: Range) -> list[Range]:
        """Some test rows, as many at a time as a tile has."""
        high = xp.chunk(TILE_ROWS, _DEVICE_SCORES, len(self.enrol))
        return [(top, min(top + high, rows[1])) for top in range(*rows, high)]

    def tiles(self, xp: Xp, strip: Range, columns: Range) -> Iterator[tuple[Range, Any]]:
        """Columns and scores of the tiles of a strip that meet the columns; on a device a tile has
        all columns.
        """
        rows, wide = slice(*strip), xp.chunk(TILE_COLUMNS, len(self.enrol), 1)
        for left in range(columns[0] // wide * wide, columns[1], wide):
            whole = slice(left, left + wide)
            scores = xp.product(xp.put(self.test)[rows], xp.put(self.enrol)[whole])
            if self.test_side is not None and self.enrol_side is not None:
                codes = xp.put(self.test_side)[rows, None]
                xp.fill(scores, codes != xp.put(self.enrol_side)[whole], -np.inf)
            right = min(left + wide, columns[1])
            yield (left, right), scores[:, : right - left]

    def owned(self, rows: Range, columns: Range) -> tuple[IntArray, IntArray]:
        """Pairs of one speaker in a tile, numbered within it."""
        true = self.true[slice(*rows)]
        within = np.flatnonzero((true >= columns[0]) & (true < columns[1]))
        return within, true[within] - columns[0]


def own_scores(xp: Xp, lists: Lists, rows: Range) -> Arrays:
    """Target scores of some test rows, from the very products that are counted."""
    own = np.empty(rows[1] - rows[0])
    for strip in lists.strips(xp, rows):
        first, last = lists.true[strip[0]], lists.true[strip[1] - 1]
        for columns, scores in lists.tiles(xp, strip, (int(first), int(last) + 1)):
            i, j = lists.owned(strip, columns)
            own[strip[0] - rows[0] + i] = xp.host(scores[xp.put(i), xp.put(j)])
    return {"own": own}


def count_lists(xp: Xp, lists: Lists, rows: Range) -> Arrays:
    """Counts of some test rows in every segment.

    ``counts`` holds how many scores have each code, ``spread`` how many of each pair of groups lie
    in each coarse bin (segments × test groups × enrolment groups × bins). ``extra`` is the code of
    the score that joins a row's list where its own speaker is among the first N' − 1, else −1.
    """
    segments, codes, groups, bins = lists.segments, lists.codes, lists.groups, lists.bins + 1
    size = groups * groups * bins if lists.bins else 0
    counts = [xp.zeros(codes + 1) for _ in segments]
    spread = [xp.zeros(size) for _ in segments]
    extra = np.full((len(segments), rows[1] - rows[0]), -1, dtype=np.int32)
    coarse, group = xp.put(lists.coarse), xp.put(lists.enrol_group)
    for strip in lists.strips(xp, rows):
        test, within = slice(*strip), slice(strip[0] - rows[0], strip[1] - rows[0])
        offset = xp.put(lists.test_group)[test, None] * (groups * bins)
        for (left, right), scores in lists.tiles(xp, strip, (0, lists.columns)):
            code = xp.among(lists.code, scores)
            i, j = lists.owned(strip, (left, right))
            code[xp.put(i), xp.put(j)] = codes
            for s, (start, stop) in enumerate(segments):
                part = slice(max(start - left, 0), max(min(stop, right) - left, 0))
                if part.start < part.stop:
                    counts[s] += xp.bincount(code[:, part], codes + 1)
                    if lists.bins:
                        pair = offset + group[left:right][part] * bins
                        spread[s] += xp.bincount(coarse.take(code[:, part]) + pair, size)
                if left <= stop < right:
                    joined = xp.host(code[:, stop - left])
                    extra[s, within] = np.where(lists.true[test] < stop, joined, -1)
    shape = (len(segments), groups, groups, bins) if lists.bins else (len(segments), 0, 0, 1)
    return {
        "counts": narrow(np.stack([xp.host(one)[:-1] for one in counts])),
        "spread": narrow(np.stack([xp.host(one) for one in spread]).reshape(shape)[..., :-1]),
        "extra": extra,
    }
