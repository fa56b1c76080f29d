"""Rows by group: those of one speaker stand together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from unmask.base.arrays import FloatArray, IntArray, lazy

K = TypeVar("K")
V = TypeVar("V")


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """The values of each key, both in the order given."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


@dataclass(frozen=True, eq=False)
class Groups:
    """``codes`` of rows ascend: group k has ``counts[k]`` rows from ``first[k]`` on."""

    codes: npt.NDArray[np.integer[Any]]
    names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.codes)

    @lazy
    def counts(self) -> IntArray:
        """Rows of each group."""
        return np.bincount(self.codes, minlength=len(self.names))

    @lazy
    def first(self) -> IntArray:
        """The first row of each group."""
        return np.cumsum(self.counts) - self.counts

    @lazy
    def slot(self) -> IntArray:
        """Number of each row within its group."""
        return np.asarray(np.arange(len(self)) - self.first[self.codes])

    @property
    def size(self) -> int:
        """Number of groups."""
        return self.counts.size

    def rows(self, groups: IntArray) -> IntArray:
        """All rows of some groups."""
        sizes = self.counts[groups]
        first = np.repeat(self.first[groups] - (np.cumsum(sizes) - sizes), sizes)
        return np.asarray(first + np.arange(len(first)))

    def within(self, start: int, stop: int) -> range:
        """The groups of the rows from ``start`` to ``stop``."""
        return range(int(self.codes[start]), int(self.codes[stop - 1]) + 1)

    def cuts(self, start: int, stop: int) -> IntArray:
        """Where each group :meth:`within` these rows begins, and the last ends, from 0 on."""
        groups = self.within(start, stop)
        first = self.first[groups.start : groups.stop] - start
        return np.append(np.maximum(first, 0), stop - start)


@dataclass(frozen=True, eq=False)
class BySpeaker:
    """How often scores of a speaker (row) fall into each bin (column): ``target`` pairs within,
    ``nontarget`` with others, ``total`` all of these once; losses are summed log(1 + e^∓s).
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
