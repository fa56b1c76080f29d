"""A plan of blocks: which pairs of rows are scored, apart from where that happens.

Prepared rows lie on disk, ordered by speaker, and are mapped into memory by whoever works on them.
A task is a path and two ranges. Scores come from the product of two tiles on a fixed grid, so a
score has the same bits whatever the block it belongs to, and pairs of one speaker lie in the few
tiles around the diagonal: all others hold nontargets alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unmask.base import Codes32, Rows32
from unmask.errors import InputError
from unmask.run import Range, Task, _vanished, load, ranges_of, write_whole

TILE = 1024
BLOCK = 8192
MOST_TRIALS = 1 << 30


@dataclass(frozen=True)
class Plan:
    """Pairs of ``enrol`` and ``test`` rows in a folder; each unordered pair once if symmetric.

    ``llr`` says that scores are log-likelihood ratios and not cosines.
    """

    folder: Path
    enrol: int
    test: int
    dimension: int
    symmetric: bool
    llr: bool

    def __post_init__(self) -> None:
        if self.symmetric and self.enrol != self.test:
            raise InputError("unordered pairs: expected one set of rows on both sides")

    @property
    def pairs(self) -> int:
        """Number of trials of both classes."""
        return self.enrol * (self.enrol - 1) // 2 if self.symmetric else self.enrol * self.test

    def blocks(self, *, targets: int, block: int = BLOCK) -> list[Task]:
        """Tasks that cover every pair once.

        Counts take room that grows with the distinct target scores, so a task has at least 128
        times as many trials, up to :data:`MOST_TRIALS`.
        """
        wanted = min(max(block * block, 128 * targets), MOST_TRIALS)
        side = max(1, int(np.sqrt(wanted)) // TILE) * TILE
        return [
            Task(str(self.folder), rows, columns)
            for rows in ranges_of(self.enrol, side)
            for columns in ranges_of(self.test, side)
            if not self.symmetric or columns[1] - 1 > rows[0]
        ]

    def bands(self, *, block: int = BLOCK) -> list[Task]:
        """Tasks that cover every pair of one speaker once."""
        return [
            Task(str(self.folder), rows, (0, self.test)) for rows in ranges_of(self.enrol, block)
        ]

    def write(self) -> None:
        """Describe the plan in its folder."""
        told = {
            "enrol": self.enrol,
            "test": self.test,
            "dimension": self.dimension,
            "symmetric": self.symmetric,
            "llr": self.llr,
        }
        write_whole(self.folder / "plan.json", json.dumps(told).encode())

    @classmethod
    def read(cls, folder: str | Path) -> Plan:
        """Read what :meth:`write` wrote."""
        path = Path(folder) / "plan.json"
        try:
            return cls(Path(folder), **json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise _vanished(path) from None


@dataclass(frozen=True, eq=False)
class Sides:
    """Rows and speakers of both sides, mapped from disk; speakers ascend."""

    plan: Plan
    enrol: Rows32
    test: Rows32
    enrol_speaker: Codes32
    test_speaker: Codes32

    @classmethod
    def open(cls, folder: str | Path) -> Sides:
        """Map the arrays of a folder; one that is gone is an error that names it."""
        plan = Plan.read(folder)
        enrol, speakers = load(folder, "enrol"), load(folder, "enrol_speaker")
        if (Path(folder) / "test.npy").exists() or not plan.symmetric:
            return cls(plan, enrol, load(folder, "test"), speakers, load(folder, "test_speaker"))
        return cls(plan, enrol, enrol, speakers, speakers)

    def tiles(self, task: Task) -> Iterator[Tile]:
        """Tiles of a block that hold a trial."""
        for top, bottom in _grid(*task.rows):
            for left, right in _grid(*task.columns):
                if not self.plan.symmetric or right - 1 > top:
                    yield Tile(self, (top, bottom), (left, right))

    def band(self, task: Task) -> Iterator[Tile]:
        """Tiles of a block of rows that may hold a pair of one speaker."""
        for top, bottom in _grid(*task.rows):
            first, last = self.enrol_speaker[top], self.enrol_speaker[bottom - 1]
            start = int(np.searchsorted(self.test_speaker, first))
            stop = int(np.searchsorted(self.test_speaker, last, side="right"))
            if self.plan.symmetric:
                start = max(start, top)
            if start >= stop:
                continue
            for left in range(start // TILE * TILE, stop, TILE):
                yield Tile(self, (top, bottom), (left, min(left + TILE, self.plan.test)))


@dataclass(frozen=True, eq=False)
class Tile:
    """One product of the grid."""

    sides: Sides
    rows: Range
    columns: Range

    @property
    def size(self) -> int:
        """Number of scores."""
        return (self.rows[1] - self.rows[0]) * (self.columns[1] - self.columns[0])

    def scores(self, out: Rows32) -> Rows32:
        """Scores of the tile, written to the front of ``out``."""
        shape = self.rows[1] - self.rows[0], self.columns[1] - self.columns[0]
        view = out[: self.size].reshape(shape)
        enrol = self.sides.enrol[self.rows[0] : self.rows[1]]
        test = self.sides.test[self.columns[0] : self.columns[1]]
        np.matmul(enrol, test.T, out=view)
        return view

    @property
    def is_plain(self) -> bool:
        """Whether all pairs are nontarget trials, as a look at the ends tells."""
        sides, (top, bottom), (left, right) = self.sides, self.rows, self.columns
        if sides.plan.symmetric and left < bottom:
            return False
        return bool(
            sides.enrol_speaker[bottom - 1] < sides.test_speaker[left]
            or sides.test_speaker[right - 1] < sides.enrol_speaker[top]
        )

    def trials(self, *, target: bool) -> npt.NDArray[np.bool_]:
        """Which pairs are trials of a class."""
        enrol = self.sides.enrol_speaker[self.rows[0] : self.rows[1], None]
        test = self.sides.test_speaker[None, self.columns[0] : self.columns[1]]
        wanted = enrol == test if target else enrol != test
        if self.sides.plan.symmetric and self.columns[0] < self.rows[1]:
            wanted &= np.arange(*self.rows)[:, None] < np.arange(*self.columns)[None, :]
        return np.asarray(wanted)


def _grid(start: int, stop: int) -> list[Range]:
    if start % TILE:
        raise InputError(f"blocks begin at a multiple of {TILE} rows, found {start}")
    return [(top, min(top + TILE, stop)) for top in range(start, stop, TILE)]
