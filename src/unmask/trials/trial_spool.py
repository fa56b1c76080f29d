"""Trials on disk as hashes, in partitions that are compared one at a time.

A trial is told by 88 bits of two hashes of its identifiers: among 100 million different trials two
agree in them with a chance of 2·10⁻¹¹.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from unmask.base import Index, Mask
from unmask.trials.scratch import Scratch

UInts = npt.NDArray[np.uint64]
RECORD = 16
PARTITION = 1 << 20
LONGEST = 1 << 22
_BUCKET_BITS = 12
_BUCKETS = 1 << _BUCKET_BITS
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_ROW_BITS = np.uint64(40)
_ROWS = np.uint64((1 << 40) - 1)


def hash_trials(columns: Sequence[pl.Series], *, seed: int) -> tuple[UInts, UInts]:
    """Two hashes h of 64 bits for each row: h = Σ hash(column k)·m^k mod 2⁶⁴, m odd."""
    return _combined(columns, 2 * seed), _combined(columns, 2 * seed + 1)


def _combined(columns: Sequence[pl.Series], seed: int) -> UInts:
    combined: UInts = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        combined *= _MULTIPLIER
        combined += column.hash(seed).to_numpy()
    return combined


class TrialSpool:
    """Hashes of trials with the numbers of their rows.

    A record has two words: the first hash; and 24 bits of the second above the row. Each batch
    lies ordered by the top bits of the first hash, so that the records of a range of them are read
    without the others.
    """

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._path = scratch.file()
        self._starts: list[Index] = []
        self._end = 0

    def append(self, row: int, hashes: tuple[UInts, UInts]) -> None:
        """Write the trials of successive rows."""
        bucket = (hashes[0] >> np.uint64(64 - _BUCKET_BITS)).astype(np.uint16)
        order = np.argsort(bucket, kind="stable")
        records = np.empty((len(order), 2), np.uint64)
        records[:, 0] = hashes[0][order]
        records[:, 1] = hashes[1][order] & ~_ROWS
        records[:, 1] |= order.astype(np.uint64) + np.uint64(row)
        with self._scratch.writing(), open(self._path, "ab") as file:
            file.write(records.data)
        counts = np.bincount(bucket, minlength=_BUCKETS)
        self._starts.append(self._end + np.concatenate([[0], np.cumsum(counts)]))
        self._end += len(order)

    @property
    def counts(self) -> Index:
        """Number of records of each bucket."""
        total: Index = np.sum([np.diff(starts) for starts in self._starts], axis=0, dtype=np.int64)
        return total

    def blocks(self, buckets: range) -> Iterator[UInts]:
        """Records of a range of buckets; equal trials come in the order of their rows."""
        with open(self._path, "rb") as file:
            for starts in self._starts:
                begin, end = int(starts[buckets.start]), int(starts[buckets.stop])
                if end > begin:
                    yield np.fromfile(
                        file, np.uint64, 2 * (end - begin), offset=RECORD * begin - file.tell()
                    ).reshape(-1, 2)


def partitions(*spools: TrialSpool) -> Iterator[range]:
    """Ranges of buckets that together hold about ``PARTITION`` records of all spools."""
    total = np.cumsum(np.sum([spool.counts for spool in spools], axis=0))
    group = np.maximum(total - 1, 0) // PARTITION
    edges = [0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), _BUCKETS]
    yield from (range(start, stop) for start, stop in pairwise(edges))


def rows_of(records: UInts) -> Index:
    """Numbers of the rows."""
    return (records[:, 1] & _ROWS).astype(np.int64)


@dataclass
class Repeats:
    """Trials that came before: how many, the row of the first, and that of the one it repeats."""

    count: int = 0
    again: int = -1
    earlier: int = -1

    def add(self, again: Index, earlier: Index) -> None:
        """Take note of rows and of the rows that they repeat."""
        self.count += len(again)
        first = int(np.argmin(again))
        if self.again < 0 or again[first] < self.again:
            self.again, self.earlier = int(again[first]), int(earlier[first])


def repeated_rows(blocks: Iterable[UInts], repeats: Repeats) -> Iterator[Index]:
    """Rows whose trial came before, part by part; what is held are the first ones of all."""
    held = np.zeros((0, 2), np.uint64)
    waiting: list[UInts] = []
    length = 0
    for block in blocks:
        waiting.append(block)
        length += len(block)
        if length > LONGEST:
            held, again = _reduced(np.concatenate([held, *waiting]), repeats)
            waiting, length = [], 0
            yield again
    yield _reduced(np.concatenate([held, *waiting]), repeats)[1]


def _reduced(records: UInts, repeats: Repeats) -> tuple[UInts, Index]:
    """The first record of each trial, and the rows of all others."""
    order, same = _ordered(records)
    if not same.any():
        return records, np.zeros(0, np.int64)
    later = order[1:][same]
    start = np.arange(len(order))
    start[1:][same] = 0
    earlier = order[np.maximum.accumulate(start)[1:][same]]
    rows = rows_of(records)
    repeats.add(rows[later], rows[earlier])
    kept = np.ones(len(records), bool)
    kept[later] = False
    return records.compress(kept, axis=0), rows[later]


def paired(first: UInts, second: UInts) -> tuple[Index, Index, Index, Index]:
    """Rows of the trials that both have, in both; and of those that only one has.

    Each list has its trials once.
    """
    records = np.concatenate([first, second])
    order, same = _ordered(records)
    rows = rows_of(records)
    one, other = order[:-1][same], order[1:][same]
    lone = np.ones(len(records), bool)
    lone[one] = lone[other] = False
    cut = len(first)
    return rows[one], rows[other], rows[:cut][lone[:cut]], rows[cut:][lone[cut:]]


def _ordered(records: UInts) -> tuple[Index, Mask]:
    """An order that puts equal trials side by side, and whether each equals the one before it.

    Low bits of the hash are sorted together with the position. Where different trials agree in
    these, which is rare, whole records are sorted.
    """
    bits = np.uint64(max(len(records) - 1, 1).bit_length())
    packed = (records[:, 0] << bits) | np.arange(len(records), dtype=np.uint64)
    packed.sort()
    order = (packed & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)
    near = (packed[1:] >> bits) == (packed[:-1] >> bits)
    if not near.any():
        return order, near
    same = _equal(records, order)
    if (near & ~same).any():
        order = np.lexsort((records[:, 1] >> _ROW_BITS, records[:, 0]))
        same = _equal(records, order)
    return order, same


def _equal(records: UInts, order: Index) -> Mask:
    ordered = records.take(order, axis=0)
    equal: Mask = ordered[1:, 0] == ordered[:-1, 0]
    equal &= (ordered[1:, 1] >> _ROW_BITS) == (ordered[:-1, 1] >> _ROW_BITS)
    return equal
