"""Which pairs of rows are scored, and in which tiles, apart from where that happens.

Rows are ordered by speaker, so pairs of one speaker lie in tiles around the diagonal; tiles lie on
a fixed grid, so a score has the same bits whatever the block, the task of a job, it belongs to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from unmask.base import Codes, Rows32
from unmask.errors import InputError
from unmask.run import Range, Xp, ranges_of

TILE = 1024
BLOCK = 8192
MOST_TRIALS = 1 << 30
WIDEST_COSINE = np.float32(1.001)
Block = tuple[int, int, int, int]
"""First and last enrolment row of a task (the last one is not in it), then its test rows."""


@dataclass(frozen=True, eq=False)
class Side:
    """Rows whose inner products are scores, and their speakers, ascending; arrays or maps."""

    rows: Rows32
    speaker: Codes

    def __len__(self) -> int:
        return len(self.speaker)


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairs of an enrolment and a test row, each unordered pair once if ``unordered``.

    ``wide`` says that scores may be larger than cosines are, ``grid`` how many rows and columns a
    tile has. :class:`~unmask.scoring.Layout` makes it, reducers go through its tiles.
    """

    enrol: Side
    test: Side
    unordered: bool
    wide: bool
    grid: int = TILE

    def __post_init__(self) -> None:
        if self.unordered and len(self.enrol) != len(self.test):
            raise InputError("unordered pairs: expected one set of rows on both sides")

    def blocks(self, *, targets: int, block: int = BLOCK) -> list[Block]:
        """Tasks that cover every pair once.

        Counts take room that grows with the distinct target scores, so a task has at least 128
        times as many trials, up to :data:`MOST_TRIALS`.
        """
        wanted = min(max(block * block, 128 * targets), MOST_TRIALS)
        side = max(1, int(np.sqrt(wanted)) // self.grid) * self.grid
        return [
            (*rows, *columns)
            for rows in ranges_of(len(self.enrol), side)
            for columns in ranges_of(len(self.test), side)
            if not self.unordered or columns[1] - 1 > rows[0]
        ]

    def shares(self, parts: int) -> list[Block]:
        """Blocks of whole rows on the grid with about as many of the pairs that count each."""
        share = np.linspace(0, 1, parts + 1)
        if self.unordered:
            share = 1 - np.sqrt(1 - share)
        rows = len(self.enrol)
        cut = np.minimum(np.round(share * rows / self.grid).astype(int) * self.grid, rows)
        cut[-1] = rows
        return [(int(a), int(b), 0, len(self.test)) for a, b in pairwise(cut) if a < b]

    def tiles(self, xp: Xp, block: Block, *, cells: int = 1) -> Iterator[Tile]:
        """Tiles of a block that hold a trial: those of the grid on a processor, on a device whole
        rows with about so many ``cells``.
        """
        width = block[3] - block[2]
        across = xp.chunk(self.grid, width, 1)
        for top, bottom in self._cut(*block[:2], xp.chunk(self.grid, cells, width)):
            for left, right in self._cut(*block[2:], across):
                if not self.unordered:
                    yield Tile(xp, self, (top, bottom), (left, right))
                elif right - 1 > top:
                    yield Tile(xp, self, (top, bottom), (max(left, top), right))

    def band(self, xp: Xp, rows: Range) -> Iterator[Tile]:
        """Tiles of some rows that may hold a pair of one speaker."""
        for top, bottom in self._cut(*rows, self.grid):
            first, last = self.enrol.speaker[top], self.enrol.speaker[bottom - 1]
            start = int(np.searchsorted(self.test.speaker, first))
            stop = int(np.searchsorted(self.test.speaker, last, side="right"))
            if self.unordered:
                start = max(start, top)
            if start >= stop:
                continue
            for left in range(start // self.grid * self.grid, stop, self.grid):
                yield Tile(xp, self, (top, bottom), (left, min(left + self.grid, len(self.test))))

    def _cut(self, start: int, stop: int, step: int) -> list[Range]:
        if start % self.grid:
            raise InputError(f"blocks begin at a multiple of {self.grid} rows, found {start}")
        return [(top, min(top + step, stop)) for top in range(start, stop, step)]


@dataclass(frozen=True, eq=False)
class Tile:
    """Some rows against some columns: one product."""

    xp: Xp
    pairs: Pairs
    rows: Range
    columns: Range

    @property
    def size(self) -> int:
        """Number of scores."""
        return (self.rows[1] - self.rows[0]) * (self.columns[1] - self.columns[0])

    def scores(self, out: Rows32 | None = None) -> Any:
        """Scores of the tile, written to the front of ``out``, if there is one."""
        enrol = self.xp.put(self.pairs.enrol.rows)[slice(*self.rows)]
        return self.xp.product(enrol, self.xp.put(self.pairs.test.rows)[slice(*self.columns)], out)

    @property
    def is_plain(self) -> bool:
        """Whether all pairs are nontarget trials, as a look at the ends tells."""
        enrol, test = self.pairs.enrol.speaker, self.pairs.test.speaker
        if self.pairs.unordered and self.columns[0] < self.rows[1]:
            return False
        return bool(
            enrol[self.rows[1] - 1] < test[self.columns[0]]
            or test[self.columns[1] - 1] < enrol[self.rows[0]]
        )

    def trials(self, *, target: bool) -> Any:
        """Which pairs are trials of a class."""
        xp = self.xp
        enrol = xp.put(self.pairs.enrol.speaker)[slice(*self.rows), None]
        test = xp.put(self.pairs.test.speaker)[None, slice(*self.columns)]
        wanted = enrol == test if target else enrol != test
        if self.pairs.unordered and self.columns[0] < self.rows[1]:
            wanted &= xp.arange(*self.rows)[:, None] < xp.arange(*self.columns)[None, :]
        return wanted
