"""What becomes of the tiles of all pairs: small, addable summaries.

Nontarget scores are counted among the target scores, which is the ROC statistic of all pairs, and
for the speaker bootstrap by speaker and bin. Counts are integers and losses whole units of 2⁻³²,
taken tile by tile: neither blocks nor workers nor their order change the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, BySpeaker, FloatArray, IntArray, Lookup, ceiling, lazy
from unmask.run import Arrays, Range, Torch, Xp, accumulate, narrow, ranges_of, run
from unmask.scoring.cosine import Rows
from unmask.scoring.pairs import BLOCK, UNORDERED, WIDEST_COSINE, Block, PairGrid, Tile
from unmask.scoring.sides import Sides

UNIT = 2.0**-32
PIECE = 1 << 24
LONGEST_PIECE = 1 << 28
"""Bytes of scores that are sorted at a time."""
STRIP = 1 << 28
_STRIP_ROWS = 64
_PACKED = ("step", "met", "ties")
_WHOLE = ("total", "nan", "loss")
_SUMS = ("target", "nontarget", "target_loss", "nontarget_loss")


def packed(below: IntArray, equal: IntArray) -> tuple[npt.NDArray[Any], IntArray, IntArray]:
    """Counts in few bytes: differences of ``below``, numbers and values of ``equal`` but for 0."""
    met = np.flatnonzero(equal)
    return narrow(np.diff(below, prepend=0)), met, equal[met]


def unpacked(step: npt.NDArray[Any], met: IntArray, ties: IntArray) -> tuple[IntArray, IntArray]:
    """``below`` and ``equal`` from what :func:`packed` made of them."""
    equal = np.zeros(step.size, np.int64)
    equal[met] = ties
    return np.cumsum(step, dtype=np.int64), equal


@dataclass(frozen=True, eq=False)
class TargetScores:
    """Distinct scores of the pairs of one speaker, ascending, and how often each occurs."""

    scores: Rows
    counts: IntArray

    @classmethod
    def of(cls, pairs: PairGrid, ranges: Sequence[Range] | None = None) -> TargetScores:
        """Those of all pairs, in tasks of ``ranges`` of enrolment rows, of 8,192 unless given."""
        parts = list(run(target_scores, pairs, ranges or ranges_of(len(pairs.enrol), BLOCK)))
        none = np.zeros(0, pairs.source.dtype)
        scores = np.concatenate([none, *(part["scores"] for part in parts)])
        counts = np.concatenate([np.zeros(0), *(part["counts"] for part in parts)])
        distinct, index = np.unique(scores, return_inverse=True)
        return cls(distinct, np.bincount(index, counts, distinct.size).astype(np.int64))

    def knots(self, thresholds: Sequence[float]) -> Rows:
        """Where float32 scores are counted: at targets, and at the first float32 ≥ a threshold."""
        return np.unique(np.concatenate([self.scores, ceiling(thresholds)]))


def target_scores(xp: Xp, pairs: PairGrid, rows: Range) -> Arrays:
    """Distinct scores of the pairs of one speaker in some rows, and how often each occurs."""
    kind = pairs.source.dtype
    buffer = np.empty(int(np.prod(pairs.tile)), kind)
    tiles = pairs.tiles(xp, (*rows, 0, len(pairs.test)), band=True)
    own = [xp.host(tile.into(buffer)[tile.trials(target=True)]) for tile in tiles]
    scores, counts = np.unique(np.concatenate([np.zeros(0, kind), *own]), return_counts=True)
    return {"scores": scores, "counts": counts.astype(np.int64)}


@dataclass(frozen=True, eq=False)
class Tally:
    """How many nontargets of a ``total`` lie below each knot, equal it, are ``nan``; ``loss`` is
    their sum of log(1 + eˢ), in units of 2⁻³².
    """

    below: IntArray
    equal: IntArray
    total: int
    nan: int
    loss: int


@dataclass(frozen=True, eq=False)
class CountAmong:
    """Nontargets of pairs among ascending knots, with loss; ``may_lack``: some may be NaN."""

    pairs: PairGrid
    knots: Rows
    with_loss: bool = True
    may_lack: bool = False

    def total(self, *, targets: int, block: int = BLOCK) -> Tally:
        """Count all pairs on the current place; many distinct ``targets`` enlarge blocks."""
        return self.over(self.pairs.blocks(targets=targets, block=block))

    def over(self, blocks: Sequence[Block]) -> Tally:
        """Count blocks on the current place."""
        none = np.zeros(self.knots.size, np.int64)
        start: Arrays = {"below": none, "equal": none.copy(), **_sums(0, 0, 0)}
        total = accumulate(count_block, self, blocks, start, _add)
        return Tally(total["below"], total["equal"], *(int(str(total[name])) for name in _WHOLE))


def _part(below: IntArray, equal: IntArray, *sums: int) -> Arrays:
    """Counts as they travel."""
    return {**dict(zip(_PACKED, packed(below, equal), strict=True)), **_sums(*sums)}


def _sums(*sums: int) -> Arrays:
    """Whole numbers of any size."""
    return {name: np.asarray(str(one)) for name, one in zip(_WHOLE, sums, strict=True)}


def _add(total: Arrays, part: Arrays, block: Block) -> None:
    below, equal = unpacked(*(part[name] for name in _PACKED))
    total["below"] += below
    total["equal"] += equal
    total |= _sums(*(int(str(total[name])) + int(str(part[name])) for name in _WHOLE))


def count_block(xp: Xp, counting: CountAmong, block: Block) -> Arrays:
    """Nontarget scores of a block, counted among the knots.

    A processor sorts them in pieces and looks the knots up, three times as fast for many knots as
    to look every score up, which a device does.
    """
    if isinstance(xp, Torch):
        return _on_device(xp, counting, block)
    pairs, knots, kind = counting.pairs, counting.knots, counting.pairs.source.dtype
    below, equal = np.zeros((2, knots.size), np.int64)
    capacity = min(max(PIECE // kind.itemsize, 8 * knots.size), LONGEST_PIECE // kind.itemsize)
    piece = np.empty(capacity, kind)
    spare = np.empty(int(np.prod(pairs.tile)) if counting.with_loss else 0, kind)
    filled = total = unknown = loss = 0
    for tile in pairs.tiles(xp, block):
        if filled + tile.size > capacity:
            add_counts(below, equal, piece[:filled], knots)
            filled = 0
        scores = tile.into(piece[filled:]).reshape(-1)
        if not tile.is_plain:
            kept = scores[tile.trials(target=False).reshape(-1)]
            scores = piece[filled : filled + kept.size]
            scores[:] = kept
        if counting.may_lack:
            unknown += int(np.isnan(scores).sum())
        if counting.with_loss:
            losses = xp.softplus(scores, wide=pairs.wide, out=spare[: scores.size])
            loss += round(float(losses.sum(dtype=np.float64)) / UNIT)
        filled += scores.size
        total += scores.size
    add_counts(below, equal, piece[:filled], knots)
    return _part(below, equal, total, unknown, loss)


def add_counts(below: IntArray, equal: IntArray, piece: Rows, knots: Rows) -> None:
    """Count a piece of scores into ``below`` and ``equal``, in place; the piece is sorted."""
    if not piece.size:
        return
    piece.sort()
    lower = np.searchsorted(piece, knots)
    below += lower
    met = np.flatnonzero(piece[np.minimum(lower, piece.size - 1)] == knots)
    met = met[lower[met] < piece.size]
    equal[met] += np.searchsorted(piece, knots[met], side="right") - lower[met]


def _on_device(xp: Torch, counting: CountAmong, block: Block) -> Arrays:
    """The same for whole rows: triton counts inside its product, plain torch in strips."""
    pairs, knots = counting.pairs, counting.knots
    possible = np.ones(knots.size, bool) if pairs.wide else np.abs(knots) <= WIDEST_COSINE
    lookup = Lookup(knots[possible], "both")
    last = 2 * lookup.boundaries.size + 1
    cells = xp.zeros(last + 1)
    single = pairs.source.dtype == np.float32
    fused = fuses(xp) and single
    unknown, loss = 0, 0.0
    for tile in pairs.tiles(xp, block, cells=STRIP if single else None):
        scores, counted = tile.scores, tile.trials(target=False)
        if not fused:
            cells += xp.bincount(xp.where(counted, xp.among(lookup, scores), last), last + 1)
        if counting.may_lack:
            unknown += int((xp.isnan(scores) & counted).sum())
        if counting.with_loss:
            losses = xp.softplus(scores, wide=pairs.wide) * counted
            loss += float(losses.sum(dtype=xp.torch.float64))
    whole = unknown, round(loss / UNIT)
    if not fused:
        counts: IntArray = xp.host(cells[:-1])
        return tally_of(counts[1::2], counts[::2], knots, possible, *whole)
    from unmask.scoring.triton_roc import count_nontargets

    assert isinstance(pairs.source, Sides)
    enrol, test = xp.put(pairs.source.enrol), xp.put(pairs.source.test)
    one, other = xp.put(pairs.enrol.codes), xp.put(pairs.test.codes)
    bounds, unordered = xp.put(lookup.boundaries), pairs.which == UNORDERED
    ties = count_nontargets(
        enrol, test, one, other, bounds, symmetric=unordered, rows=(block[0], block[1])
    )
    return tally_of(ties.equal, ties.between, knots, possible, *whole)


def fuses(xp: Torch) -> bool:
    """Whether triton can count on the device, inside the product."""
    return xp.device.startswith("cuda")


def tally_of(
    equal: IntArray,
    between: IntArray,
    knots: Rows,
    possible: BoolArray | npt.NDArray[Any],
    unknown: int,
    loss: int,
) -> Arrays:
    """Counts of gaps and ties as those at all knots; impossible ones have no scores beyond."""
    total = int(equal.sum() + between.sum())
    below = np.where(knots > 0, total, 0).astype(np.int64)
    below[possible] = np.cumsum(between[:-1]) + np.cumsum(equal) - equal
    ties = np.zeros(knots.size, np.int64)
    ties[possible] = equal
    return _part(below, ties, total, unknown, loss)


@dataclass(frozen=True, eq=False)
class CountBySpeaker:
    """Pairs, counted by speaker in the bins between ``edges``, as :func:`ceiling` has them."""

    pairs: PairGrid
    edges: FloatArray
    speakers: int

    @lazy
    def lookup(self) -> Lookup:
        """Gives the bin of a score."""
        return Lookup(ceiling(self.edges))

    @property
    def bins(self) -> int:
        return self.edges.size + 1

    def total(self, *, block: int = BLOCK) -> BySpeaker:
        """Count all pairs on the current place, in blocks of ``block`` rows and columns."""
        blocks = self.pairs.blocks(targets=0, block=block)
        shape = self.speakers, self.bins
        start = [np.zeros(shape[: 1 if "loss" in name else 2], np.int64) for name in _SUMS]
        total = accumulate(
            count_by_speaker, self, blocks, dict(zip(_SUMS, start, strict=True)), _add_speakers
        )
        target, nontarget = total["target"], total["nontarget"]
        losses = [np.asarray(total[name] * UNIT, np.float64) for name in _SUMS[2:]]
        counts = target, nontarget, nontarget.sum(axis=0) // 2
        return BySpeaker(self.edges, *counts, losses[0], losses[1], float(losses[1].sum() / 2))


def _add_speakers(total: Arrays, part: Arrays, block: Block) -> None:
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

    def part(self, rows: Range) -> tuple[slice, IntArray]:
        """Speakers of some rows, and the number of each row's speaker among them."""
        codes = self._codes[rows[0] - self._start : rows[1] - self._start].astype(np.int64)
        return slice(int(codes[0]), int(codes[-1]) + 1), codes - codes[0]

    def count(self, xp: Xp, table: IntArray, speakers: slice, cells: Any) -> None:
        """Count cells: bins, offset by the speaker."""
        size = (speakers.stop - speakers.start) * self._bins
        table[speakers] += xp.host(xp.bincount(cells, size)).reshape(-1, self._bins)

    def add_loss(self, table: IntArray, rows: Range, loss: FloatArray) -> None:
        """Add the loss of each row, in whole units per speaker."""
        speakers, codes = self.part(rows)
        table[speakers] += np.rint(np.bincount(codes, loss) / UNIT).astype(np.int64)


def count_by_speaker(xp: Xp, counting: CountBySpeaker, block: Block) -> Arrays:
    """Counts of a block by the speakers of its rows and of its columns."""
    pairs, bins = counting.pairs, counting.bins
    rows = _Side(np.asarray(pairs.enrol.codes[block[0] : block[1]]), block[0], bins)
    columns = _Side(np.asarray(pairs.test.codes[block[2] : block[3]]), block[2], bins)
    for tile in pairs.tiles(xp, block, cells=STRIP // 4):
        _count_tile(counting, tile, rows, columns)
    return {**rows.arrays("rows"), **columns.arrays("columns")}


def _count_tile(counting: CountBySpeaker, tile: Tile, rows: _Side, columns: _Side) -> None:
    """Count a tile, on a processor a strip of rows at a time: strips stay in the cache."""
    xp, wide, bins = tile.xp, tile.grid.wide, counting.bins
    scores = tile.scores
    own = other = None
    if not tile.is_plain:
        own, other = tile.trials(target=True), tile.trials(target=False)
    tested, codes = columns.part(tile.columns)
    column, accepted = xp.put(codes) * bins, np.zeros(codes.size)
    for top, bottom in ranges_of(len(scores), xp.chunk(_STRIP_ROWS, len(scores), 1)):
        strip = scores[top:bottom]
        numbers = tile.rows[0] + top, tile.rows[0] + bottom
        enrolled, codes = rows.part(numbers)
        bin_of = xp.among(counting.lookup, strip)
        in_row, in_column = bin_of + xp.put(codes)[:, None] * bins, bin_of + column
        loss = xp.softplus(strip, wide=wide)
        if own is not None and other is not None:
            within, between = own[top:bottom], other[top:bottom]
            rows.count(xp, rows.target, enrolled, in_row[within])
            missed = xp.totals(xp.where(within, xp.softplus(-strip, wide=wide), 0), 1)
            rows.add_loss(rows.target_loss, numbers, xp.host(missed))
            in_row, in_column = in_row[between], in_column[between]
            loss = xp.where(between, loss, 0)
        rows.count(xp, rows.nontarget, enrolled, in_row)
        columns.count(xp, columns.nontarget, tested, in_column)
        rows.add_loss(rows.nontarget_loss, numbers, xp.host(xp.totals(loss, 1)))
        accepted += xp.host(xp.totals(loss, 0))
    columns.add_loss(columns.nontarget_loss, tile.columns, accepted)
