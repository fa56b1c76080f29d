"""Comparisons of speakers in bins of scores: all that a resample of the speakers is made from.

A replicate draws speakers with replacement and calibrates anew. It needs no score again: with the
scores of every pair of speakers counted in fine bins, its statistic is a weighted sum of counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray, Places, lazy
from unmask.engine import Roc

CELLS = 1 << 25
FEWEST, MOST = 96, 512
_LEAST_PARTNERS = 32

Counts = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Layout:
    """Edges of the bins, and which pairs of speakers are counted: (i, i + offset mod speakers).

    All pairs where there is room; else as many partners for every speaker as there is room for,
    evenly spread and in both orders.
    """

    edges: FloatArray
    offsets: IntArray
    speakers: int

    @classmethod
    def of(cls, roc: Roc, speakers: int) -> Layout:
        """Bins and pairs for a set with this statistic."""
        bins = int(np.clip(CELLS // speakers**2, FEWEST, MOST))
        partners = max(CELLS // (speakers * bins) - 1, _LEAST_PARTNERS)
        return cls(edges_of(roc, bins), offsets_of(speakers, partners), speakers)

    @property
    def bins(self) -> int:
        return self.edges.size + 1

    @property
    def partners(self) -> int:
        """With how many others each speaker is compared; 0 for all."""
        return self.offsets.size - 1 if self.offsets.size < self.speakers else 0

    @lazy
    def lookup(self) -> Places:
        """Gives the bin of each score."""
        return Places(self.edges)

    @lazy
    def column(self) -> IntArray:
        """Where each offset stands among those counted, −1 for all others."""
        column = np.full(self.speakers, -1, dtype=np.int64)
        column[self.offsets] = np.arange(self.offsets.size)
        return column

    def shape(self, rows: int) -> tuple[int, int, int]:
        """Of the counts of so many speakers."""
        return rows, self.offsets.size, self.bins

    def size(self, rows: int) -> int:
        """How many counts so many speakers have."""
        return rows * self.offsets.size * self.bins

    def cells(self, one: IntArray, other: IntArray, start: int) -> IntArray:
        """First count of each pair of speakers among those of speakers from ``start`` on; −1 for
        pairs that are not counted.
        """
        column = self.column[(other - one) % self.speakers]
        first = ((one - start) * self.offsets.size + column) * self.bins
        return np.where(column < 0, -1, first)


def edges_of(roc: Roc, bins: int) -> FloatArray:
    """Edges at target scores: all of them where there is room, else evenly many per class and
    ever closer towards both ends, where few comparisons decide.
    """
    scores = roc.scores[roc.target > 0]
    if 2 * scores.size < bins:
        return np.unique(np.concatenate([scores, np.nextafter(scores, np.inf)]))
    kept = roc.target > 0
    targets = np.cumsum(roc.target)[kept]
    nontargets = np.cumsum(roc.between[:-1] + roc.equal)[kept]
    places = []
    for rank in (targets, nontargets):
        total = max(float(rank[-1]), 2.0)
        even = np.linspace(0, total, bins // 4)
        tail = np.geomspace(1, total / 2, bins // 8)
        places += [np.searchsorted(rank, at) for at in (even, tail, total - tail)]
    chosen = np.minimum(np.unique(np.concatenate(places)), scores.size - 1)
    return np.unique(scores[chosen])


def offsets_of(speakers: int, partners: int) -> IntArray:
    """0, and offsets to about so many partners, each with its opposite."""
    if partners >= speakers - 1:
        return np.arange(speakers)
    half = np.round(np.linspace(1, speakers // 2, max(partners // 2, 1))).astype(np.int64)
    return np.unique(np.concatenate([[0], half, speakers - half]))


@dataclass(frozen=True, eq=False)
class Binned:
    """Counts of one set in bins, from low scores to high.

    ``own`` has a row per speaker, ``other`` one per pair of different speakers that was compared,
    ``first`` and ``second``. Where a pair scores the same in both orders, or where the orders are
    pooled, both stand in one row. ``partners`` are those of the layout.
    """

    own: FloatArray
    other: npt.NDArray[np.float32]
    first: IntArray
    second: IntArray
    partners: int = 0

    @classmethod
    def of(cls, counts: Counts, layout: Layout, *, mirror: bool = False) -> Binned:
        """From counts by (speaker, offset, bin), speaker after speaker; ``mirror`` pools both
        orders.
        """
        speakers, offsets = layout.speakers, layout.offsets[1:]
        back = layout.column[(speakers - offsets) % speakers]
        others = (np.arange(speakers)[:, None] + offsets) % speakers
        ahead = others > np.arange(speakers)[:, None]

        def rows_of(one: int) -> tuple[Counts, Counts]:
            """Counts of a speaker with those who come later, and of them with the speaker."""
            later = np.flatnonzero(ahead[one])
            return counts[one, 1 + later], counts[others[one, later], back[later]]

        pooled = mirror or all(np.array_equal(*rows_of(one)) for one in range(speakers))
        chosen = ahead if pooled else np.ones_like(ahead)
        first, second = np.nonzero(chosen)[0], others[chosen]
        rows = np.empty((first.size, layout.bins), np.float32)
        start = 0
        for one in range(speakers):
            own = np.add(*rows_of(one)) if pooled else counts[one, 1:]
            rows[start : start + len(own)] = own
            start += len(own)
        real = rows.any(axis=1)
        if not real.all():
            rows, first, second = rows[real], first[real], second[real]
        return cls(counts[:, 0].astype(np.float64), rows, first, second, layout.partners)

    @cached_property
    def own_number(self) -> FloatArray:
        """How many comparisons each speaker has."""
        return np.asarray(self.own.sum(axis=1))

    @cached_property
    def other_number(self) -> FloatArray:
        """The same of each pair."""
        return np.asarray(self.other.sum(axis=1, dtype=np.float64))

    def negated(self) -> Binned:
        """The same of the negated scores."""
        return replace(self, own=self.own[:, ::-1], other=self.other[:, ::-1])

    def weighted(self, weight: npt.NDArray[np.float32]) -> FloatArray:
        """Comparisons of two speakers in each bin, each pair with its weight: whole numbers, so the
        product may be taken with the bins in the order in which they lie in memory.
        """
        if self.other.strides[1] > 0:
            return (weight @ self.other).astype(np.float64)
        return (weight @ self.other[:, ::-1])[:, ::-1].astype(np.float64)


def counted(layout: Layout, scores: npt.NDArray[Any], one: IntArray, other: IntArray) -> Counts:
    """Counts of a list of scores of the speakers ``one`` against ``other``."""
    cell = layout.cells(one, other, 0)
    kept = cell >= 0
    flat = cell[kept] + layout.lookup(scores[kept])
    counts = np.bincount(flat, minlength=layout.size(layout.speakers))
    return counts.astype(np.int32).reshape(layout.shape(layout.speakers))
