"""Counting nontarget scores among the target scores: the ROC statistic of all pairs.

A block's nontarget scores are sorted in pieces that fit into the cache's neighbourhood, and the
target scores are looked up in them: sorting float32 costs about as much as the product itself. All
counts are integers and the sum for C_llr is kept in whole units of 2⁻³², taken tile by tile: the
result does not depend on the blocks, on who counted them or in which order they arrived. A device
counts whole rows, inside the product where triton is at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, IntArray, Places, Rows32, ceiling
from unmask.run import (
    Arrays,
    Range,
    Torch,
    Xp,
    accumulate,
    current_place,
    narrow,
    ranges_of,
    run,
)
from unmask.scoring.moments import Rows
from unmask.scoring.pairs import BLOCK, Block, Pairs

UNIT = 2.0**-32
PIECE = 1 << 22
LONGEST_PIECE = 1 << 26
STRIP = 1 << 28
WIDEST_COSINE = np.float32(1.001)
_PACKED = ("step", "met", "ties")

Packed = tuple[npt.NDArray[Any], IntArray, IntArray]


def packed(below: IntArray, equal: IntArray) -> Packed:
    """Counts in as few bytes as they need: the differences of ``below``, and the places and values
    of ``equal`` where it is not 0.
    """
    step = np.diff(below, prepend=0)
    met = np.flatnonzero(equal)
    return narrow(step), met, equal[met]


def unpacked(step: npt.NDArray[Any], met: IntArray, ties: IntArray) -> tuple[IntArray, IntArray]:
    """``below`` and ``equal`` from what :func:`packed` made of them."""
    equal = np.zeros(step.size, np.int64)
    equal[met] = ties
    return np.cumsum(step, dtype=np.int64), equal


@dataclass(frozen=True, eq=False)
class TargetScores:
    """Distinct scores of the pairs of one speaker, ascending, and how often each occurs."""

    scores: Rows32
    counts: IntArray

    @classmethod
    def of(cls, pairs: Pairs, *, block: int = BLOCK) -> TargetScores:
        """Those of all pairs; ``block`` is how many enrolment rows a task has."""
        parts = list(run(target_scores, pairs, ranges_of(len(pairs.enrol), block)))
        scores = np.concatenate([np.zeros(0, np.float32), *(part["scores"] for part in parts)])
        counts = np.concatenate([np.zeros(0, np.int64), *(part["counts"] for part in parts)])
        distinct, index = np.unique(scores, return_inverse=True)
        total = np.zeros(distinct.size, np.int64)
        np.add.at(total, index, counts)
        return cls(distinct, total)

    def knots(self, thresholds: Sequence[float]) -> Rows32:
        """Where float32 scores must be counted: at targets, and at the first float32 ≥ a
        threshold.
        """
        return np.unique(np.concatenate([self.scores, ceiling(thresholds)]))


def target_scores(xp: Xp, pairs: Pairs, rows: Range) -> Arrays:
    """Distinct scores of the pairs of one speaker in some rows, and how often each occurs."""
    buffer = np.empty(pairs.grid**2, np.float32)
    own = [tile.scores(buffer)[tile.trials(target=True)] for tile in pairs.band(rows)]
    scores, counts = np.unique(np.concatenate([np.zeros(0, np.float32), *own]), return_counts=True)
    return {"scores": scores, "counts": counts.astype(np.int64)}


@dataclass(frozen=True, eq=False)
class Tally:
    """How many nontargets lie below each knot and how many equal it, of how many in all.

    ``loss`` is the sum of log(1 + eˢ) over them, in units of 2⁻³².
    """

    below: IntArray
    equal: IntArray
    total: int
    loss: int


@dataclass(frozen=True, eq=False)
class CountAmong:
    """The nontargets of pairs, counted among distinct ascending knots."""

    pairs: Pairs
    knots: Rows32

    def total(self, *, targets: int, block: int = BLOCK) -> Tally:
        """Count all pairs on the current place, in blocks of ``block`` rows and columns or, where
        the distinct ``targets`` are many, larger ones.
        """
        place = current_place()
        blocks = self.pairs.blocks(targets=targets, block=block)
        if place.on == "cuda":
            blocks = self.pairs.shares(len(place.devices), ordered=False)
        none = np.zeros(self.knots.size, np.int64)
        start: Arrays = {"below": none, "equal": none.copy(), **_sums(0, 0)}
        total = accumulate(count_block, self, blocks, start, _add)
        trials, loss = (int(str(total[name])) for name in ("total", "loss"))
        return Tally(total["below"], total["equal"], trials, loss)


def _part(below: IntArray, equal: IntArray, total: int, loss: int) -> Arrays:
    """Counts as they travel."""
    return {**dict(zip(_PACKED, packed(below, equal), strict=True)), **_sums(total, loss)}


def _sums(total: int, loss: int) -> Arrays:
    """Whole numbers of any size."""
    return {"total": np.asarray(str(total)), "loss": np.asarray(str(loss))}


def _add(total: Arrays, part: Arrays, block: Block) -> None:
    below, equal = unpacked(*(part[name] for name in _PACKED))
    total["below"] += below
    total["equal"] += equal
    total |= _sums(*(int(str(total[name])) + int(str(part[name])) for name in ("total", "loss")))


def count_block(xp: Xp, counting: CountAmong, block: Block) -> Arrays:
    """Nontarget scores of a block, counted among the knots."""
    if isinstance(xp, Torch):
        return _on_device(xp, counting, block)
    pairs, knots = counting.pairs, counting.knots
    below, equal = np.zeros((2, knots.size), np.int64)
    capacity = min(max(PIECE, 8 * knots.size), LONGEST_PIECE)
    piece = np.empty(capacity, np.float32)
    spare = np.empty(pairs.grid**2, np.float32)
    filled = total = loss = 0
    for tile in pairs.tiles(block):
        if filled + tile.size > capacity:
            add_counts(below, equal, piece[:filled], knots)
            filled = 0
        scores = tile.scores(piece[filled:]).reshape(-1)
        if not tile.is_plain:
            kept = scores[tile.trials(target=False).reshape(-1)]
            scores = piece[filled : filled + kept.size]
            scores[:] = kept
        losses = xp.softplus(scores, wide=pairs.llr, out=spare[: scores.size])
        loss += round(float(losses.sum(dtype=np.float64)) / UNIT)
        filled += scores.size
        total += scores.size
    add_counts(below, equal, piece[:filled], knots)
    return _part(below, equal, total, loss)


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
    enrol, test = xp.put(pairs.enrol.rows), xp.put(pairs.test.rows)
    one, other = xp.put(pairs.enrol.speaker), xp.put(pairs.test.speaker)
    possible = np.ones(knots.size, bool) if pairs.llr else np.abs(knots) <= WIDEST_COSINE
    places = Places(knots[possible], "both")
    last = 2 * places.boundaries.size + 1
    cells = xp.zeros(last + 1)
    fused = fuses(xp)
    column = xp.arange(0, len(test))
    loss = 0.0
    for top, bottom in ranges_of(block[1] - block[0], xp.chunk(1, STRIP, len(test))):
        rows = slice(block[0] + top, block[0] + bottom)
        scores = xp.product(enrol[rows], test)
        counted = one[rows, None] != other[None, :]
        if pairs.unordered:
            counted &= column[rows, None] < column[None, :]
        if not fused:
            cells += xp.bincount(xp.where(counted, xp.among(places, scores), last), last + 1)
        losses = xp.softplus(scores, wide=pairs.llr) * counted
        loss += float(losses.sum(dtype=xp.torch.float64))
    if not fused:
        counts: IntArray = xp.host(cells[:-1])
        return tally_of(counts[1::2], counts[::2], knots, possible, loss)
    from unmask.scoring.triton_roc import count_nontargets

    bounds = xp.put(places.boundaries)
    ties = count_nontargets(
        enrol, test, one, other, bounds, symmetric=pairs.unordered, rows=(block[0], block[1])
    )
    return tally_of(ties.equal, ties.between, knots, possible, loss)


def fuses(xp: Torch) -> bool:
    """Whether triton can count on the device, inside the product."""
    return xp.device.startswith("cuda")


def tally_of(
    equal: IntArray,
    between: IntArray,
    knots: Rows32,
    possible: BoolArray | npt.NDArray[Any],
    loss: float,
) -> Arrays:
    """Counts of gaps and ties as those at all knots; impossible ones have no scores beyond."""
    total = int(equal.sum() + between.sum())
    below = np.where(knots > 0, total, 0).astype(np.int64)
    below[possible] = np.cumsum(between[:-1]) + np.cumsum(equal) - equal
    ties = np.zeros(knots.size, np.int64)
    ties[possible] = equal
    return _part(below, ties, total, round(loss / UNIT))
