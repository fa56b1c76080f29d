"""Which pairs of rows are scored, and in which tiles, apart from where that happens.

Rows are ordered by speaker, so pairs of one speaker lie in tiles around the diagonal; tiles lie on
a fixed grid, so a score has the same bits whatever the block, the task of a job, it belongs to.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from unmask.base import Groups, IntArray
from unmask.errors import InputError
from unmask.run import Range, Xp, current_place, ranges_of

TILE = 1024
BLOCK = 8192
MOST_TRIALS = 1 << 30
CELLS = 1 << 24
WIDEST_COSINE = np.float32(1.001)
ALL, OTHERS, UNORDERED = "all", "others", "unordered"
Block = tuple[int, int, int, int]
"""First and last enrolment row of a task (the last one is not in it), then its test rows."""
_COMPARED = {"<": operator.lt, "==": operator.eq, "!=": operator.ne}


class ScoreSource(Protocol):
    """Gives scores of enrolment with test rows, in ``out`` if given: ``Sides``, or a matrix."""

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def scores(self, xp: Xp, rows: Range, columns: Range, out: Any = None) -> Any: ...


@dataclass(frozen=True, eq=False)
class Rule:
    """Only the pairs whose codes of row and column compare so: ``<`` (handed in before), ``==`` (of
    one session) or ``!=`` (of two); and only those ``within`` one group, where groups are given.
    Columns that are no rows have codes of their own (``across``).
    """

    codes: IntArray
    holds: str
    within: IntArray | None = None
    across: IntArray | None = None

    def __call__(self, xp: Xp, rows: Range, columns: Range) -> Any:
        codes = xp.put(self.codes)
        others = codes if self.across is None else xp.put(self.across)
        holds = _COMPARED[self.holds](codes[slice(*rows), None], others[slice(*columns)])
        if self.within is None:
            return holds
        return holds & Rule(self.within, "==")(xp, rows, columns)


def _tiles_of(
    xp: Xp, block: Block, tile: tuple[int, int], cells: int | None = None
) -> Iterator[tuple[Range, Range]]:
    """Rows and columns of the tiles of a block: those of a grid that begins with it on a processor;
    on a device all columns, and rows that make about so many ``cells``. Without a number they are
    those of the grid, or a half, a quarter of them …: the same in every block.
    """
    top, bottom, left, right = block
    across = xp.chunk(tile[1], right - left, 1)
    most = down = xp.chunk(tile[0], cells or CELLS, right - left)
    if cells is None:
        down = tile[0]
        while down > most:
            down //= 2
    for row in range(top, bottom, down):
        for column in range(left, right, across):
            yield (row, min(row + down, bottom)), (column, min(column + across, right))


@dataclass(frozen=True, eq=False)
class PairGrid:
    """Pairs of an enrolment and a test row, each side by speaker: ``which`` of them count is
    ``all``, all ``others`` than that of a row with itself, each ``unordered`` one of two once, or
    those others of a :class:`Rule`.

    ``wide`` says that scores may be larger than cosines are, ``tile`` how many rows and columns a
    tile has; the grid of tiles is ``fixed``, or begins with every block, where bits may differ.
    Reducers go through its tiles.
    """

    source: ScoreSource
    enrol: Groups
    test: Groups
    which: Rule | str = ALL
    wide: bool = False
    tile: tuple[int, int] = (TILE, TILE)
    fixed: bool = True

    def __post_init__(self) -> None:
        if self.which == UNORDERED and len(self.enrol) != len(self.test):
            raise InputError("unordered pairs: expected one set of rows on both sides")

    def ranges(self, trials: int) -> list[Range]:
        """Ranges of rows on the grid, each of at least so many pairs."""
        step = max(1, -(-trials // (self.tile[0] * len(self.test)))) * self.tile[0]
        return ranges_of(len(self.enrol), step)

    def whole(self, ranges: list[Range]) -> list[Block]:
        """Blocks of whole rows."""
        return [(*rows, 0, len(self.test)) for rows in ranges]

    def blocks(self, *, targets: int, block: int = BLOCK) -> list[Block]:
        """Tasks that cover every pair once, on devices one for each.

        Counts take room that grows with the distinct target scores, so a task has at least 128
        times as many trials, up to :data:`MOST_TRIALS`.
        """
        place = current_place()
        if place.on == "cuda":
            return self.shares(len(place.devices))
        wanted = min(max(block * block, 128 * targets), MOST_TRIALS)
        side = max(1, int(np.sqrt(wanted)) // self.tile[0]) * self.tile[0]
        return [
            (*rows, *columns)
            for rows in ranges_of(len(self.enrol), side)
            for columns in ranges_of(len(self.test), side)
            if self.which != UNORDERED or columns[1] - 1 > rows[0]
        ]

    def shares(self, parts: int) -> list[Block]:
        """Blocks of whole rows on the grid with about as many of the pairs that count each."""
        share = np.linspace(0, 1, parts + 1)
        if self.which == UNORDERED:
            share = 1 - np.sqrt(1 - share)
        rows, step = len(self.enrol), self.tile[0]
        cut = np.minimum(np.round(share * rows / step).astype(int) * step, rows)
        cut[-1] = rows
        return self.whole([(int(a), int(b)) for a, b in pairwise(cut) if a < b])

    def kept(self, xp: Xp, rows: Range) -> npt.NDArray[Any]:
        """The scores of some rows with all columns, few enough to be held."""
        scores = np.empty((rows[1] - rows[0], len(self.test)), self.source.dtype)
        for tile in self.tiles(xp, (*rows, 0, len(self.test))):
            inside = slice(tile.rows[0] - rows[0], tile.rows[1] - rows[0])
            scores[inside, slice(*tile.columns)] = xp.host(tile.scores)
        return scores

    def tiles(
        self, xp: Xp, block: Block, *, cells: int | None = None, band: bool = False
    ) -> Iterator[Tile]:
        """Tiles of a block that hold a trial; ``band``: those that may hold one of one speaker."""
        if self.fixed and (block[0] % self.tile[0] or block[2] % self.tile[1]):
            wanted = f"multiples of {self.tile[0]} rows and {self.tile[1]} columns"
            raise InputError("first row and column of a block", wanted, f"{block[0]}, {block[2]}")
        for part in self._band(xp, block, cells) if band else (block,):
            for rows, (left, right) in _tiles_of(xp, part, self.tile, cells):
                if self.which != UNORDERED:
                    yield Tile(xp, self, rows, (left, right))
                elif right - 1 > rows[0]:
                    yield Tile(xp, self, rows, (max(left, rows[0]), right))

    def _band(self, xp: Xp, block: Block, cells: int | None) -> Iterator[Block]:
        """Parts of whole rows with those tiles alone that pairs of one speaker may lie in."""
        codes, width = self.test.codes, len(self.test)
        across = xp.chunk(self.tile[1], width, 1)
        for rows, _ in _tiles_of(xp, (*block[:2], 0, width), (self.tile[0], width), cells):
            spoken = self.enrol.within(*rows)
            first, last = np.searchsorted(codes, (spoken.start, spoken.stop)).tolist()
            if first < last:
                yield (*rows, first // across * across, min(-(-last // across) * across, width))


@dataclass(frozen=True, eq=False)
class Tile:
    """Some rows against some columns, where their worker has its arrays: one product."""

    xp: Xp
    grid: PairGrid
    rows: Range
    columns: Range

    @property
    def size(self) -> int:
        """Number of scores."""
        return (self.rows[1] - self.rows[0]) * (self.columns[1] - self.columns[0])

    def into(self, out: Any) -> Any:
        """Scores of the tile at the front of a buffer."""
        return self.grid.source.scores(self.xp, self.rows, self.columns, out)

    @cached_property
    def scores(self) -> Any:
        return self.into(None)

    @cached_property
    def cuts(self) -> tuple[IntArray, IntArray]:
        """Where the speakers of the rows and of the columns begin, and where the last ones end."""
        return self.grid.enrol.cuts(*self.rows), self.grid.test.cuts(*self.columns)

    @property
    def speakers(self) -> tuple[range, range]:
        """The speakers of the rows and of the columns."""
        return self.grid.enrol.within(*self.rows), self.grid.test.within(*self.columns)

    @property
    def diagonal(self) -> tuple[Any, Any]:
        """Index of the pairs of a row with itself, or with its own protected version."""
        start = max(self.rows[0], self.columns[0])
        both = self.xp.arange(start, max(start, min(self.rows[1], self.columns[1])))
        return both - self.rows[0], both - self.columns[0]

    @cached_property
    def _skipped(self) -> Any:
        """Index of the pairs that do not count."""
        which = self.grid.which
        if which == OTHERS:
            return self.diagonal
        if isinstance(which, Rule):
            dropped = ~which(self.xp, self.rows, self.columns)
            if which.across is None:
                dropped[self.diagonal] = True
            return dropped
        return self.xp.arange(*self.rows)[:, None] >= self.xp.arange(*self.columns)[None, :]

    def skip(self, values: Any, value: int | bool) -> Any:
        """Set a value at the pairs that do not count, in place."""
        upper = self.grid.which == UNORDERED and self.columns[0] >= self.rows[1]
        if self.grid.which != ALL and not upper:
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
        if isinstance(self.grid.which, Rule):
            return self.xp.host(fold(~self._skipped)).astype(np.int64)
        number = np.multiply.outer(np.diff(rows), np.diff(columns))
        if self.grid.which != ALL:
            top, left = self.speakers
            same = self.grid.enrol.codes[self.xp.host(self.diagonal[0]) + self.rows[0]]
            np.subtract.at(number, (same - top.start, same - left.start), 1)
        return number

    @property
    def is_plain(self) -> bool:
        """Whether all pairs are nontarget trials, as a look at the ends tells."""
        enrol, test, which = self.grid.enrol.codes, self.grid.test.codes, self.grid.which
        if isinstance(which, Rule) or (which == UNORDERED and self.columns[0] < self.rows[1]):
            return False
        return bool(
            enrol[self.rows[1] - 1] < test[self.columns[0]]
            or test[self.columns[1] - 1] < enrol[self.rows[0]]
        )

    def trials(self, *, target: bool) -> Any:
        """Which pairs are trials of a class."""
        enrol = self.xp.put(self.grid.enrol.codes)[slice(*self.rows), None]
        test = self.xp.put(self.grid.test.codes)[None, slice(*self.columns)]
        return self.skip(enrol == test if target else enrol != test, False)
