"""Values of pairs of segments, put together per pair of speakers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray
from unmask.privacy.similarity.bins import Counts, Layout
from unmask.privacy.similarity.device import DeviceSets, Strip
from unmask.privacy.similarity.pairs import Tile


@dataclass(frozen=True, eq=False)
class TileFold:
    """Where the speakers of a tile begin among its rows and columns, and where the last one ends.

    Rows are added first, in whole vectors, then columns.
    """

    tile: Tile
    rows: IntArray
    columns: IntArray

    @classmethod
    def of(cls, tile: Tile) -> TileFold:
        segments = tile.pairs.segments
        return cls(tile, *(segments.cuts(*side) for side in (tile.rows, tile.columns)))

    @property
    def speakers(self) -> tuple[range, range]:
        """The speakers of the rows and of the columns."""
        segments = self.tile.pairs.segments
        return segments.spoken(*self.tile.rows), segments.spoken(*self.tile.columns)

    def __call__(self, values: npt.NDArray[Any], how: np.ufunc = np.add) -> npt.NDArray[Any]:
        """One value per pair of speakers."""
        rows = [how.reduce(values[top:bottom], axis=0) for top, bottom in pairwise(self.rows)]
        return np.asarray(how.reduceat(np.stack(rows), self.columns[:-1], axis=1))

    def own(self) -> Iterator[tuple[slice, slice]]:
        """The pairs of each speaker with himself."""
        top, left = self.speakers
        for speaker in range(max(top.start, left.start), min(top.stop, left.stop)):
            i, j = speaker - top.start, speaker - left.start
            yield (
                slice(self.rows[i], self.rows[i + 1]),
                slice(self.columns[j], self.columns[j + 1]),
            )

    def count(self) -> IntArray:
        """How many pairs count."""
        rule = self.tile.pairs.rule
        if rule is not None:
            kept = rule(self.tile.rows, self.tile.columns)
            kept[self.tile.diagonal] = False
            return np.asarray(self(kept.astype(np.int64)))
        number = np.multiply.outer(np.diff(self.rows), np.diff(self.columns))
        top, left = self.speakers
        same = self.tile.pairs.segments.codes[self.tile.diagonal[0] + self.tile.rows[0]]
        np.subtract.at(number, (same - top.start, same - left.start), 1)
        return number

    def counts(self, layout: Layout, scores: npt.NDArray[Any], skipped: Any) -> Counts:
        """How many scores of each pair of speakers lie in each bin, by the speakers of the rows."""
        top, left = self.speakers
        one, other = np.arange(top.start, top.stop), np.arange(left.start, left.stop)
        size = layout.size(len(top))
        cells = layout.cells(one[:, None], other, top.start)
        rows, columns = (
            np.repeat(range(side.size - 1), np.diff(side)) for side in (self.rows, self.columns)
        )
        cell = cells[np.ix_(rows, columns)]
        cell[skipped] = -1
        place = np.where(cell < 0, size, cell + layout.lookup(scores))
        counts = np.bincount(place.reshape(-1), minlength=size + 1)[:size]
        return counts.astype(np.int32).reshape(layout.shape(len(top)))


class StripFold:
    """The same for tensors of some rows × all segments, on their device.

    Sums over rows are products with columns that tell the speaker, sums over columns differences
    of running sums: both always add up in the same order.
    """

    def __init__(self, opened: DeviceSets, strip: Strip) -> None:
        import torch

        segments = opened.sets.segments
        self._torch = torch
        self._codes = opened.on(segments.codes)
        self.speakers = segments.spoken(*strip.rows)
        self._owner = self._codes[slice(*strip.rows)] - self.speakers.start
        number = torch.arange(len(self.speakers), device=opened.device)
        self._tells = (number[:, None] == self._owner).to(torch.float64)
        self._opened = opened
        self._first = torch.searchsorted(
            self._codes, torch.arange(segments.speakers + 1, device=opened.device)
        )

    def __call__(self, values: Any) -> FloatArray:
        """Sum per pair of speakers."""
        running = self._torch.cumsum(self._tells @ values, dim=1)
        at = self._torch.nn.functional.pad(running, (1, 0))[:, self._first]
        return np.asarray((at[:, 1:] - at[:, :-1]).cpu().numpy())

    def extreme(self, steps: Any, how: str, start: int) -> npt.NDArray[np.int32]:
        """``amin`` or ``amax`` per pair of speakers."""
        rows = steps.new_full((len(self.speakers), steps.shape[1]), start)
        rows.scatter_reduce_(0, self._owner[:, None].expand_as(steps), steps, how)
        cells = steps.new_full((len(self.speakers), len(self._first) - 1), start)
        cells.scatter_reduce_(1, self._codes.expand_as(rows), rows, how)
        return np.asarray(cells.cpu().numpy().astype(np.int32))

    def counts(self, layout: Layout, edges: Any, strip: Strip) -> Counts:
        """How many scores of each pair of speakers lie in each bin, by the speakers of the rows."""
        torch = self._torch
        one, other = np.arange(self.speakers.start, self.speakers.stop), np.arange(layout.speakers)
        cells = self._opened.put(layout.cells(one[:, None], other, self.speakers.start))
        size = layout.size(len(self.speakers))
        cell = cells[self._owner[:, None], self._codes]
        place = cell + torch.bucketize(strip.scores, edges, right=True)
        place = torch.where((cell >= 0) & strip.kept, place, size)
        counts = torch.bincount(place.view(-1), minlength=size + 1)[:size]
        return np.asarray(counts.cpu().numpy().astype(np.int32).reshape(layout.shape(len(one))))
