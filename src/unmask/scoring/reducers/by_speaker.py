"""Counting all pairs once more, by speaker: what the speaker bootstrap needs to know.

Every pair of two speakers counts for both of them. The table has a row per speaker and a column
per bin of scores, so it stays small; counts are integers and do not depend on blocks or places.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray, Places, Rows32, ceiling, lazy
from unmask.run import Arrays, Range, Torch, Xp, accumulate, current_place, narrow, ranges_of
from unmask.scoring.pairs import BLOCK, Block, Pairs, Tile
from unmask.scoring.reducers.among import UNIT

STRIP = 1 << 26
_STRIP_ROWS = 64
_SUMS = ("target", "nontarget", "target_loss", "nontarget_loss")


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


@dataclass(frozen=True, eq=False)
class CountBySpeaker:
    """Pairs, counted by speaker in the bins between ``edges``, as :func:`ceiling` has them."""

    pairs: Pairs
    edges: FloatArray
    speakers: int

    @lazy
    def places(self) -> Places:
        """Gives the bin of a score."""
        return Places(ceiling(self.edges))

    @property
    def bins(self) -> int:
        return self.edges.size + 1

    def total(self, *, block: int = BLOCK) -> BySpeaker:
        """Count all pairs on the current place, in blocks of ``block`` rows and columns."""
        place = current_place()
        blocks = self.pairs.blocks(targets=0, block=block)
        if place.on == "cuda":
            blocks = self.pairs.shares(len(place.devices), ordered=True)
        shape = self.speakers, self.bins
        start = [np.zeros(shape[: 1 if "loss" in name else 2], np.int64) for name in _SUMS]
        total = accumulate(
            count_by_speaker, self, blocks, dict(zip(_SUMS, start, strict=True)), _add
        )
        target_loss, nontarget_loss = (
            np.asarray(total[name] * UNIT, np.float64) for name in _SUMS[2:]
        )
        nontarget = total["nontarget"]
        return BySpeaker(
            self.edges,
            total["target"],
            nontarget,
            nontarget.sum(axis=0) // 2,
            target_loss,
            nontarget_loss,
            float(nontarget_loss.sum() / 2),
        )


def _add(total: Arrays, part: Arrays, block: Block) -> None:
    """Add what a block counted, from the first speaker of its rows and of its columns on."""
    for side in ("rows", "columns"):
        start = int(part[f"{side}_first"])
        for name, table in total.items():
            added = part[f"{side}_{name}"]
            table[start : start + len(added)] += added


class _Side:
    """Counts of the speakers of one side of a block; codes ascend along it."""

    def __init__(self, codes: npt.NDArray[np.int32], start: int, bins: int) -> None:
        self._codes = codes - codes[0]
        self._start = start
        self._bins = bins
        self.first = int(codes[0])
        speakers = int(self._codes[-1]) + 1
        self.target, self.nontarget = np.zeros((2, speakers, bins), np.int64)
        self.target_loss, self.nontarget_loss = np.zeros((2, speakers), np.int64)

    def arrays(self, side: str) -> Arrays:
        """All counts, in as few bytes as they need."""
        tables = {f"{side}_{name}": narrow(getattr(self, name)) for name in _SUMS}
        return {f"{side}_first": np.asarray(self.first), **tables}

    def offsets(self, rows: Range) -> tuple[slice, npt.NDArray[np.int64]]:
        """Speakers of some rows, and where the bins of each row's speaker begin among theirs."""
        codes = self._codes[rows[0] - self._start : rows[1] - self._start]
        return slice(int(codes[0]), int(codes[-1]) + 1), (codes - codes[0]) * np.int64(self._bins)

    def count(self, table: IntArray, speakers: slice, cells: npt.NDArray[np.int64]) -> None:
        """Count cells: bins, offset by the speaker."""
        size = (speakers.stop - speakers.start) * self._bins
        counts = np.bincount(cells.reshape(-1), minlength=size)
        table[speakers] += counts.reshape(-1, self._bins)

    def add_loss(self, table: IntArray, rows: Range, loss: FloatArray) -> None:
        """Add the loss of each row, in whole units per speaker."""
        codes = self._codes[rows[0] - self._start : rows[1] - self._start]
        speakers = slice(int(codes[0]), int(codes[-1]) + 1)
        total = np.bincount(codes - codes[0], loss, minlength=speakers.stop - speakers.start)
        table[speakers] += np.rint(total / UNIT).astype(np.int64)


def count_by_speaker(xp: Xp, counting: CountBySpeaker, block: Block) -> Arrays:
    """Counts of a block by the speakers of its rows and of its columns."""
    if isinstance(xp, Torch):
        return _on_device(xp, counting, block)
    pairs, bins = counting.pairs, counting.bins
    rows = _Side(np.asarray(pairs.enrol.speaker[block[0] : block[1]]), block[0], bins)
    columns = _Side(np.asarray(pairs.test.speaker[block[2] : block[3]]), block[2], bins)
    buffer = np.empty(pairs.grid**2, np.float32)
    for tile in pairs.tiles(block):
        _count(xp, tile, counting.places, rows, columns, buffer)
    return {**rows.arrays("rows"), **columns.arrays("columns")}


def _count(xp: Xp, tile: Tile, places: Places, rows: _Side, columns: _Side, buffer: Rows32) -> None:
    """Count a tile, a strip of rows at a time: strips stay in the cache."""
    scores, wide = tile.scores(buffer), tile.pairs.llr
    own = other = None
    if not tile.is_plain:
        own, other = tile.trials(target=True), tile.trials(target=False)
    tested, column = columns.offsets(tile.columns)
    accepted = np.zeros(scores.shape[1])
    for top, bottom in ranges_of(len(scores), _STRIP_ROWS):
        strip = scores[top:bottom]
        numbers = tile.rows[0] + top, tile.rows[0] + bottom
        enrolled, row = rows.offsets(numbers)
        bin_of = xp.among(places, strip)
        in_row, in_column = bin_of + row[:, None], bin_of + column[None, :]
        loss = xp.softplus(strip, wide=wide)
        if own is not None and other is not None:
            within, between = own[top:bottom], other[top:bottom]
            rows.count(rows.target, enrolled, in_row[within])
            missed = np.where(within, xp.softplus(-strip, wide=wide), 0)
            rows.add_loss(rows.target_loss, numbers, missed.sum(axis=1, dtype=np.float64))
            in_row, in_column = in_row[between], in_column[between]
            loss = np.where(between, loss, 0)
        rows.count(rows.nontarget, enrolled, in_row)
        columns.count(columns.nontarget, tested, in_column)
        rows.add_loss(rows.nontarget_loss, numbers, loss.sum(axis=1, dtype=np.float64))
        accepted += loss.sum(axis=0, dtype=np.float64)
    columns.add_loss(columns.nontarget_loss, tile.columns, accepted)


def _on_device(xp: Torch, counting: CountBySpeaker, block: Block) -> Arrays:
    """The same for whole rows.

    Where each unordered pair is a trial, nontargets are gone through in both orders: a row's own
    speaker is enough then.
    """
    pairs, bins, speakers = counting.pairs, counting.bins, counting.speakers
    enrol, test = xp.put(pairs.enrol.rows), xp.put(pairs.test.rows)
    other = xp.put(pairs.test.speaker).long()[None, :]
    own_of = xp.put(pairs.enrol.speaker).long()
    column = xp.arange(0, len(test))
    counts = [xp.zeros(speakers * bins) for _ in range(2)]
    losses = [xp.zeros(speakers, "float64") for _ in range(2)]

    def add(kind: int, speaker: Any, bin_of: Any, loss: Any) -> None:
        counts[kind] += xp.bincount(speaker * bins + bin_of, speakers * bins)
        losses[kind] += xp.bincount(speaker, speakers, loss)

    for top, bottom in ranges_of(block[1] - block[0], xp.chunk(1, STRIP, len(test))):
        rows = slice(block[0] + top, block[0] + bottom)
        own, scores = own_of[rows, None], xp.product(enrol[rows], test)
        bin_of = xp.among(counting.places, scores)
        within = own == other
        between = ~within
        if pairs.unordered:
            within &= column[rows, None] < column[None, :]
        for kind, chosen in enumerate((within, between)):
            loss = xp.softplus(scores[chosen] * (1 if kind else -1), wide=pairs.llr)
            add(kind, own.expand_as(chosen)[chosen], bin_of[chosen], loss)
            if kind and not pairs.unordered:
                add(kind, other.expand_as(chosen)[chosen], bin_of[chosen], loss)
    tables = [xp.host(table).reshape(speakers, bins) for table in counts]
    tables += [np.rint(xp.host(loss) / UNIT).astype(np.int64) for loss in losses]
    zero = np.asarray(0)
    part: Arrays = {"rows_first": zero, "columns_first": zero}
    for name, table in zip(_SUMS, tables, strict=True):
        part |= {f"rows_{name}": narrow(table), f"columns_{name}": table[:0]}
    return part
