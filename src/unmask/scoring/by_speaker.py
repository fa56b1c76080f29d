"""Counting the pairs of a plan once more, by speaker: what the speaker bootstrap needs to know.

Every pair of two speakers counts for both of them. The table has a row per speaker and a column
per bin of scores, so it stays small; counts are integers and do not depend on blocks or places.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray, Places, Rows32, ceiling
from unmask.run import Arrays, Range, Task, load, narrow, ranges_of, tensor
from unmask.scoring.counting import UNIT
from unmask.scoring.plan import TILE, Sides, Tile

_STRIP = 1 << 26
_STRIP_ROWS = 64


@dataclass(frozen=True, eq=False)
class BySpeaker:
    """How often scores of each speaker (row) fall into each bin (column), and their losses.

    ``target`` counts pairs within the speaker, ``nontarget`` those with others, ``total`` all
    nontarget pairs, each once; the losses are the summed log(1 + e^∓s).
    """

    edges: FloatArray
    target: IntArray
    nontarget: IntArray
    total: IntArray
    target_loss: FloatArray
    nontarget_loss: FloatArray
    total_loss: float

    def present(self) -> BySpeaker:
        """Without speakers who have no trial."""
        there = self.target.any(axis=1) | self.nontarget.any(axis=1)
        return replace(
            self,
            target=self.target[there],
            nontarget=self.nontarget[there],
            target_loss=self.target_loss[there],
            nontarget_loss=self.nontarget_loss[there],
        )

    @classmethod
    def of_pairs(
        cls,
        edges: FloatArray,
        target: IntArray,
        nontarget: IntArray,
        target_loss: FloatArray,
        nontarget_loss: FloatArray,
    ) -> BySpeaker:
        """Where every nontarget pair is of two speakers: all speakers together have it twice."""
        total, total_loss = nontarget.sum(axis=0) // 2, float(nontarget_loss.sum() / 2)
        return cls(edges, target, nontarget, total, target_loss, nontarget_loss, total_loss)


class Table:
    """Sums over blocks, per speaker."""

    NAMES = ("target", "nontarget", "target_loss", "nontarget_loss")

    def __init__(self, speakers: int, bins: int) -> None:
        self.sums: dict[str, IntArray] = {
            "target": np.zeros((speakers, bins), np.int64),
            "nontarget": np.zeros((speakers, bins), np.int64),
            "target_loss": np.zeros(speakers, np.int64),
            "nontarget_loss": np.zeros(speakers, np.int64),
        }

    def add(self, block: Arrays) -> None:
        """Add what a block counted, from the first speaker of its rows and of its columns on."""
        for side in ("rows", "columns"):
            start = int(block[f"{side}_first"])
            for name, total in self.sums.items():
                part = block[f"{side}_{name}"]
                total[start : start + len(part)] += part

    def counted(self, edges: FloatArray) -> BySpeaker:
        """The table as counts and sums."""
        return BySpeaker.of_pairs(
            edges,
            self.sums["target"],
            self.sums["nontarget"],
            np.asarray(self.sums["target_loss"] * UNIT, np.float64),
            np.asarray(self.sums["nontarget_loss"] * UNIT, np.float64),
        )


class _Side:
    """Counts of the speakers of one side of a block; codes ascend along it."""

    def __init__(self, codes: npt.NDArray[np.int32], start: int, bins: int) -> None:
        self._codes = codes - codes[0]
        self._start = start
        self._bins = bins
        self.first = int(codes[0])
        speakers = int(self._codes[-1]) + 1
        self.target = np.zeros((speakers, bins), np.int64)
        self.nontarget = np.zeros((speakers, bins), np.int64)
        self.target_loss = np.zeros(speakers, np.int64)
        self.nontarget_loss = np.zeros(speakers, np.int64)

    def arrays(self, name: str) -> Arrays:
        """All counts, in as few bytes as they need."""
        tables = {what: getattr(self, what) for what in Table.NAMES}
        narrowed = {f"{name}_{what}": narrow(table) for what, table in tables.items()}
        return {f"{name}_first": np.asarray(self.first), **narrowed}

    def offsets(self, rows: Range) -> tuple[slice, npt.NDArray[np.int64]]:
        """Speakers of some rows, and where the bins of each row's speaker begin among theirs."""
        codes = self._codes[rows[0] - self._start : rows[1] - self._start]
        return slice(int(codes[0]), int(codes[-1]) + 1), (codes - codes[0]) * np.int64(self._bins)

    def count(self, table: IntArray, speakers: slice, cells: npt.NDArray[np.int64]) -> None:
        """Count cells: bins, offset by the speaker."""
        size = (speakers.stop - speakers.start) * self._bins
        found = np.bincount(cells.reshape(-1), minlength=size)
        table[speakers] += found.reshape(-1, self._bins)

    def add_loss(self, table: IntArray, rows: Range, loss: FloatArray) -> None:
        """Add the loss of each row, in whole units per speaker."""
        codes = self._codes[rows[0] - self._start : rows[1] - self._start]
        speakers = slice(int(codes[0]), int(codes[-1]) + 1)
        total = np.bincount(codes - codes[0], loss, minlength=speakers.stop - speakers.start)
        table[speakers] += np.rint(total / UNIT).astype(np.int64)


def count_by_speaker(task: Task) -> Arrays:
    """Counts of a block by the speakers of its rows and of its columns."""
    sides = Sides.open(task.folder)
    place = Places(load(task.folder, "bins"))
    bins = place.boundaries.size + 1
    enrol = np.asarray(sides.enrol_speaker[slice(*task.rows)])
    test = np.asarray(sides.test_speaker[slice(*task.columns)])
    rows = _Side(enrol, task.rows[0], bins)
    columns = _Side(test, task.columns[0], bins)
    buffer = np.empty(TILE * TILE, np.float32)
    for tile in sides.tiles(task):
        _count(tile, place, rows, columns, buffer)
    return {**rows.arrays("rows"), **columns.arrays("columns")}


def _count(tile: Tile, place: Places, rows: _Side, columns: _Side, buffer: Rows32) -> None:
    """Count a tile, a strip of rows at a time: strips stay in the cache."""
    scores = tile.scores(buffer)
    own = other = None
    if not tile.is_plain:
        own, other = tile.trials(target=True), tile.trials(target=False)
    tested, column = columns.offsets(tile.columns)
    accepted = np.zeros(scores.shape[1])
    for top, bottom in ranges_of(len(scores), _STRIP_ROWS):
        strip = scores[top:bottom]
        numbers = tile.rows[0] + top, tile.rows[0] + bottom
        enrolled, row = rows.offsets(numbers)
        bin_of = place(strip)
        in_row, in_column = bin_of + row[:, None], bin_of + column[None, :]
        loss = _softplus(strip, llr=tile.sides.plan.llr)
        if own is not None and other is not None:
            within, between = own[top:bottom], other[top:bottom]
            rows.count(rows.target, enrolled, in_row[within])
            missed = np.where(within, _softplus(-strip, llr=tile.sides.plan.llr), 0)
            rows.add_loss(rows.target_loss, numbers, missed.sum(axis=1, dtype=np.float64))
            in_row, in_column = in_row[between], in_column[between]
            loss = np.where(between, loss, 0)
        rows.count(rows.nontarget, enrolled, in_row)
        columns.count(columns.nontarget, tested, in_column)
        rows.add_loss(rows.nontarget_loss, numbers, loss.sum(axis=1, dtype=np.float64))
        accepted += loss.sum(axis=0, dtype=np.float64)
    columns.add_loss(columns.nontarget_loss, tile.columns, accepted)


def _softplus(scores: Rows32, *, llr: bool) -> npt.NDArray[np.floating[Any]]:
    """log(1 + eˢ); cosines stay in float32, LLRs may be large and do not."""
    if llr:
        return np.asarray(np.logaddexp(0.0, scores.astype(np.float64)))
    room = np.exp(scores)
    room += 1
    np.log(room, out=room)
    return room


def by_speaker_on_device(
    sides: Sides, edges: FloatArray, speakers: int, device: str, rows: Range
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """The same for some enrolment rows on a CUDA device.

    Where each unordered pair is a trial, all ordered ones are gone through: a row's own speaker is
    enough then, and pairs within a speaker come twice. Gives targets, nontargets and their losses.
    """
    import torch

    put = partial(tensor, device=device)
    plan = sides.plan
    test, other = put(sides.test), put(sides.test_speaker).long()
    bounds = put(ceiling(edges))
    bins = edges.size + 1
    counts = [torch.zeros(speakers * bins, dtype=torch.int64, device=device) for _ in range(2)]
    losses = [torch.zeros(speakers, dtype=torch.float64, device=device) for _ in range(2)]

    def add(kind: int, speaker: Any, bin_of: Any, loss: Any) -> None:
        counts[kind] += torch.bincount(speaker * bins + bin_of, minlength=speakers * bins)
        losses[kind].index_add_(0, speaker, loss)

    for start, stop in ranges_of(rows[1] - rows[0], max(1, _STRIP // plan.test)):
        part = slice(rows[0] + start, rows[0] + stop)
        own = put(sides.enrol_speaker[part]).long()[:, None]
        scores = put(sides.enrol[part]) @ test.T
        bin_of = torch.bucketize(scores, bounds, right=True)
        within = own == other[None, :]
        between = ~within
        if plan.symmetric:
            number = torch.arange(part.start, part.stop, device=device)
            within[number - part.start, number] = False
        for kind, chosen in enumerate((within, between)):
            loss = torch.nn.functional.softplus(scores[chosen] * (1 if kind else -1)).double()
            add(kind, own.expand_as(chosen)[chosen], bin_of[chosen], loss)
            if kind and not plan.symmetric:
                add(kind, other[None, :].expand_as(chosen)[chosen], bin_of[chosen], loss)
    target, nontarget = (table.view(speakers, bins).cpu().numpy() for table in counts)
    missed, accepted = (loss.cpu().numpy() for loss in losses)
    return target, nontarget, missed, accepted
