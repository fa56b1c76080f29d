"""The place of very many scores among sorted boundaries: a binary search without searching.

The span of the boundaries is cut into equal buckets. One without boundaries tells the place at a
look; a score of any other is compared with its last boundary, and searched for where it has more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from unmask.base.arrays import IntArray, Rows32, lazy

Floats = npt.NDArray[np.floating[Any]]
Side = Literal["left", "right"]
_PER_BOUNDARY = 64
_FEWEST, _MOST = 1 << 12, 1 << 18
_TOGETHER = 1 << 14
_SHORT_OF: dict[Side, Callable[..., Any]] = {"left": np.less_equal, "right": np.less}
"""Whether a score does not reach the place after a boundary."""


@dataclass(frozen=True, eq=False)
class Lookup:
    """How many ascending boundaries lie below each score (side "left"), or below it or at it
    ("right"): what ``np.searchsorted`` gives, for ±inf and NaN as well.

    Side "both" is the sum of the two. Of distinct boundaries it makes a code: 2j in the gap below
    boundary j, 2j + 1 at the boundary itself.
    """

    boundaries: Floats
    side: Literal["left", "right", "both"] = "right"

    def __call__(self, scores: Floats) -> IntArray:
        """Place of every score, whatever their shape; pieces of the work stay in the cache."""
        kind = self.boundaries.dtype
        wider = np.result_type(scores, kind)
        if wider != kind:
            return Lookup(self.boundaries.astype(wider), self.side)(scores)
        table, crowded = self._table
        flat = scores.reshape(-1)
        numbers = np.empty(flat.size, np.int64)
        for start in range(0, flat.size, _TOGETHER):
            piece = flat[start : start + _TOGETHER].astype(kind, copy=False)
            part = numbers[start : start + _TOGETHER]
            table.take(self._bucket(piece), out=part, mode="clip")
            unsure = np.flatnonzero(part < 0)
            if unsure.size:
                some, most = piece[unsure], ~part[unsure]
                settled = (self._settled(some, most, side, crowded) for side in self._sides)
                part[unsure] = sum(settled)
        return numbers.reshape(scores.shape)

    @property
    def _sides(self) -> tuple[Side, ...]:
        return ("left", "right") if self.side == "both" else (self.side,)

    def _settled(self, scores: Floats, most: IntArray, side: Side, crowded: bool) -> IntArray:
        """Places of scores in buckets that end with boundary number ``most``, counted from 1."""
        short_of = _SHORT_OF[side]
        place = np.asarray(most - short_of(scores, self._before[most]))
        if crowded:
            lower = np.flatnonzero(short_of(scores, self._before[place]))
            place[lower] = np.searchsorted(self.boundaries, scores[lower], side=side)
        return place

    @lazy
    def _before(self) -> Floats:
        """The boundary before each place; no score is short of NaN, which stands before place 0."""
        return np.concatenate([np.full(1, np.nan, self.boundaries.dtype), self.boundaries])

    @lazy
    def _buckets(self) -> tuple[Any, Any, int]:
        """Where the first bucket begins, buckets per unit, the last bucket."""
        kind = self.boundaries.dtype.type
        size = 1 << int(_PER_BOUNDARY * self.boundaries.size).bit_length()
        size = min(max(size, _FEWEST), _MOST)
        finite = self.boundaries[np.isfinite(self.boundaries)]
        lowest, highest = finite[[0, -1]] if finite.size else np.zeros(2, kind)
        with np.errstate(over="ignore", divide="ignore"):
            scale = kind(size - 3) / (highest - lowest)
            scale = scale if 0 < scale < np.inf else kind(1)
            top = highest + kind(1.5) / scale
        return top if np.isfinite(top) else highest, scale, size - 1

    def _bucket(self, scores: Floats) -> npt.NDArray[np.intp]:
        """A bucket for each score, the highest in the first; NaN falls below 0 or into it."""
        top, scale, last = self._buckets
        with np.errstate(over="ignore", invalid="ignore"):
            position = top - scores
            position *= scale
            np.clip(position, 0, last, out=position)
            bucket: npt.NDArray[np.intp] = position.astype(np.intp)
        return bucket

    @lazy
    def _table(self) -> tuple[IntArray, bool]:
        """Place of each bucket, or ~most where it holds boundaries; whether any holds several."""
        inside = np.bincount(self._bucket(self.boundaries), minlength=self._buckets[2] + 1)
        most = self.boundaries.size - (np.cumsum(inside) - inside)
        return np.where(inside > 0, ~most, len(self._sides) * most), bool(inside.max() > 1)


def ceiling(thresholds: npt.ArrayLike) -> Rows32:
    """The lowest float32 that reaches each threshold."""
    exact = np.asarray(thresholds, np.float64)
    rounded = exact.astype(np.float32)
    return np.where(rounded < exact, np.nextafter(rounded, np.float32(np.inf)), rounded)
