"""Counting the scores of a block among the target scores; results are small and add up.

A block's nontarget scores are sorted in pieces that fit into the cache's neighbourhood, and the
target scores are looked up in them: sorting float32 costs about as much as the product itself. All
counts are integers and the sum for C_llr is kept in whole units of 2⁻³², taken tile by tile: the
result does not depend on the blocks, on who counted them or in which order they arrived.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import IntArray, Rows32
from unmask.run import Task, load, narrow
from unmask.scoring.backend import Rows
from unmask.scoring.plan import TILE, Sides

UNIT = 2.0**-32
PIECE = 1 << 22
LONGEST_PIECE = 1 << 26
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
    def merge(cls, parts: list[TargetScores]) -> TargetScores:
        """Put the scores of disjoint sets of pairs together."""
        scores = np.concatenate([np.zeros(0, np.float32), *(part.scores for part in parts)])
        counts = np.concatenate([np.zeros(0, np.int64), *(part.counts for part in parts)])
        distinct, place = np.unique(scores, return_inverse=True)
        total = np.zeros(distinct.size, np.int64)
        np.add.at(total, place, counts)
        return cls(distinct, total)


@dataclass(frozen=True, eq=False)
class Tally:
    """How many nontargets lie below each knot and how many equal it, of how many in all.

    ``loss`` is the sum of log(1 + eˢ) over them, in units of 2⁻³². It travels as the differences
    of ``below`` in as few bytes as they need, and ``equal`` where it is not 0.
    """

    below: IntArray
    equal: IntArray
    total: int
    loss: int

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.below + other.below,
            self.equal + other.equal,
            self.total + other.total,
            self.loss + other.loss,
        )

    def __getstate__(self) -> tuple[Packed, int, int]:
        return packed(self.below, self.equal), self.total, self.loss

    def __setstate__(self, state: tuple[Packed, int, int]) -> None:
        counts, total, loss = state
        below, equal = unpacked(*counts)
        values = {"below": below, "equal": equal, "total": total, "loss": loss}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def empty(cls, knots: int) -> Tally:
        """Nothing counted yet."""
        return cls(np.zeros(knots, np.int64), np.zeros(knots, np.int64), 0, 0)


def target_scores(task: Task) -> TargetScores:
    """Scores of the pairs of one speaker in a block of rows."""
    sides = Sides.open(task.folder)
    buffer = np.empty(TILE * TILE, np.float32)
    found = [tile.scores(buffer)[tile.trials(target=True)] for tile in sides.band(task)]
    scores, counts = np.unique(
        np.concatenate([np.zeros(0, np.float32), *found]), return_counts=True
    )
    return TargetScores(scores, counts.astype(np.int64))


def count_block(task: Task) -> Tally:
    """Nontarget scores of a block, counted among the knots of the plan."""
    sides = Sides.open(task.folder)
    knots: Rows32 = load(task.folder, "knots")
    tally = Tally.empty(knots.size)
    capacity = min(max(PIECE, 8 * knots.size), LONGEST_PIECE)
    piece = np.empty(capacity, np.float32)
    spare = np.empty(TILE * TILE, np.float32)
    held = total = loss = 0
    for tile in sides.tiles(task):
        if held + tile.size > capacity:
            add_counts(tally.below, tally.equal, piece[:held], knots)
            held = 0
        scores = tile.scores(piece[held:]).reshape(-1)
        if not tile.is_plain:
            kept = scores[tile.trials(target=False).reshape(-1)]
            scores = piece[held : held + kept.size]
            scores[:] = kept
        loss += _loss(scores, spare, llr=sides.plan.llr)
        held += scores.size
        total += scores.size
    add_counts(tally.below, tally.equal, piece[:held], knots)
    return Tally(tally.below, tally.equal, total, loss)


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


def _loss(scores: Rows32, spare: Rows32, *, llr: bool) -> int:
    """Sum of log(1 + eˢ) in units; cosines stay in float32, LLRs may be large and do not."""
    if llr:
        wide = scores.astype(np.float64)
        return softplus_units(wide)
    room = spare[: scores.size]
    np.exp(scores, out=room)
    room += 1
    np.log(room, out=room)
    return round(float(room.sum(dtype=np.float64)) / UNIT)


def softplus_units(scores: npt.NDArray[np.float64]) -> int:
    """Sum of log(1 + eˢ) in units of 2⁻³²."""
    return round(float(np.logaddexp(0.0, scores).sum()) / UNIT)
