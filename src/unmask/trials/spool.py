"""What does not fit into memory, in a temporary folder: columns, and trials to be compared.

A trial is told by two hashes of its identifiers, 128 bits in all: among a billion different trials
two agree in them with a chance of 10⁻²¹. Records of trials lie in buckets, of which some at a time
are looked through for repeated trials or for partners.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from unmask.base import Codes, Index
from unmask.errors import InputError
from unmask.run import check_room, scratch_folder
from unmask.trials.ids import Ids, lookup
from unmask.trials.problems import two_speakers
from unmask.trials.readers.tables import IDENTIFIERS, SPEAKERS
from unmask.trials.speakers import SpeakerRule, speakers_of
from unmask.trials.trial_list import NONTARGET, TARGET

T = TypeVar("T", bound=np.generic)
DROPPED = -2
RECORD = np.dtype([("a", "<u8"), ("b", "<u8"), ("row", "<i8")])
PARTITION = 1 << 20
LONGEST = 1 << 22
_BUCKET_BITS = 12
_BUCKETS = 1 << _BUCKET_BITS
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
Records = npt.NDArray[np.void]


class Scratch:
    """A temporary folder, removed at the end; that the disk has room is checked before."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self.path = self._open.enter_context(scratch_folder())
        self._files = 0

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def check_room(self, needed: int) -> None:
        """Refuse what the disk has no room for."""
        check_room(self.path, needed, "temporary files", named=self.path.parent)

    def file(self) -> Path:
        """A new file's path."""
        self._files += 1
        return self.path / str(self._files)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turns what can go wrong while writing into an InputError."""
        try:
            yield
        except OSError as error:
            raise InputError(
                f"{self.path.parent}: temporary files cannot be written ({error.strerror}); the "
                "variable TMPDIR names another folder"
            ) from error


class Column(Generic[T]):
    """Numbers on disk, one per row of a file."""

    def __init__(self, scratch: Scratch, dtype: type[T]) -> None:
        self._scratch = scratch
        self._dtype: np.dtype[T] = np.dtype(dtype)
        self._path = scratch.file()
        self._rows = 0
        with scratch.writing():
            self._path.touch()

    @classmethod
    def zeros(cls, scratch: Scratch, dtype: type[T], rows: int) -> Column[T]:
        """A column that is zero in all its rows."""
        column = cls(scratch, dtype)
        with scratch.writing(), open(column._path, "r+b") as file:
            file.truncate(rows * column._dtype.itemsize)
        column._rows = rows
        return column

    def append(self, values: npt.NDArray[T]) -> None:
        """Write the next rows."""
        with self._scratch.writing(), open(self._path, "ab") as file:
            file.write(np.ascontiguousarray(values, dtype=self._dtype).data)
        self._rows += len(values)

    def read(self, start: int, stop: int) -> npt.NDArray[T]:
        """Successive rows."""
        return np.fromfile(
            self._path, self._dtype, stop - start, offset=start * self._dtype.itemsize
        )

    def at(self, rows: Index) -> npt.NDArray[T]:
        """Some rows, in any order."""
        return np.asarray(self._map()[rows])

    def put(self, rows: Index, values: Any) -> None:
        """Change some rows."""
        if len(rows):
            self._map()[rows] = values

    def _map(self) -> np.memmap[Any, np.dtype[T]]:
        return np.memmap(self._path, self._dtype, mode="r+", shape=(self._rows,))


class TrialSpool:
    """Hashes of trials with the numbers of their rows.

    Each batch lies ordered by the top bits of the first hash, so that the records of a range of
    them, the buckets, are read without the others.
    """

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._path = scratch.file()
        self._starts: list[Index] = []
        self._end = 0

    def append(self, row: int, columns: Sequence[pl.Series]) -> None:
        """Write the trials of successive rows, whose identifiers are in ``columns``."""
        first = _hashes(columns, 0)
        bucket = (first >> np.uint64(64 - _BUCKET_BITS)).astype(np.uint16)
        order = np.argsort(bucket, kind="stable")
        records = np.empty(len(order), RECORD)
        records["a"] = first[order]
        records["b"] = _hashes(columns, 1)[order]
        records["row"] = order + row
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

    def blocks(self, buckets: range) -> Iterator[Records]:
        """Records of a range of buckets; equal trials come in the order of their rows."""
        with open(self._path, "rb") as file:
            for starts in self._starts:
                begin, end = int(starts[buckets.start]), int(starts[buckets.stop])
                if end > begin:
                    offset = RECORD.itemsize * begin - file.tell()
                    yield np.fromfile(file, RECORD, end - begin, offset=offset)


def _hashes(columns: Sequence[pl.Series], seed: int) -> npt.NDArray[np.uint64]:
    """A hash h of 64 bits for each row: h = Σ hash(column k)·m^k mod 2⁶⁴, m odd."""
    combined = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        combined *= _MULTIPLIER
        combined += column.hash(seed).to_numpy()
    return combined


def partitions(*spools: TrialSpool) -> Iterator[range]:
    """Ranges of buckets that together hold about ``PARTITION`` records of all spools."""
    total = np.cumsum(np.sum([spool.counts for spool in spools], axis=0))
    group = np.maximum(total - 1, 0) // PARTITION
    edges = [0, *(np.flatnonzero(np.diff(group)) + 1).tolist(), _BUCKETS]
    yield from (range(start, stop) for start, stop in pairwise(edges))


def repeats(blocks: Iterable[Records]) -> Iterator[tuple[Index, Index]]:
    """Rows whose trial came before and the first rows of those trials, part by part.

    What is held are the first ones of all.
    """
    known = np.zeros(0, RECORD)
    waiting: list[Records] = []
    length = 0
    for block in blocks:
        waiting.append(block)
        length += len(block)
        if length > LONGEST:
            known, *rows = _firsts(np.concatenate([known, *waiting]))
            waiting, length = [], 0
            yield rows[0], rows[1]
    _, again, earlier = _firsts(np.concatenate([known, *waiting]))
    yield again, earlier


def _firsts(records: Records) -> tuple[Records, Index, Index]:
    """The first record of each trial; rows of the others, and of the first for each of them."""
    frame = _frame(records)
    if frame["a"].n_unique() == frame.height:
        return records, np.zeros(0, np.int64), np.zeros(0, np.int64)
    several = frame.select("a", "b").is_duplicated()
    same = frame.filter(several).with_columns(pl.col("row").min().over("a", "b").alias("first"))
    later = (same["row"] != same["first"]).to_numpy()
    kept = np.ones(len(records), bool)
    kept[np.flatnonzero(several.to_numpy())[later]] = False
    again, earlier = (same[name].to_numpy()[later] for name in ("row", "first"))
    return records[kept], again, earlier


def partners(first: Records, second: Records) -> tuple[Index, Index, Index, Index]:
    """Rows of the trials that both have, in both; and of those that only one has.

    Each list has its trials once. The first hash alone nearly always tells them apart.
    """
    one, other = _frame(first), _frame(second)
    joined = one.join(other, on="a", how="full", suffix="_other")
    if (joined["b"] != joined["b_other"]).any():
        joined = one.join(other, on=["a", "b"], how="full", suffix="_other")
    rows, others = joined["row"], joined["row_other"]
    both = rows.is_not_null() & others.is_not_null()
    pairs = joined.filter(both)
    return (
        pairs["row"].to_numpy(),
        pairs["row_other"].to_numpy(),
        rows.filter(others.is_null()).to_numpy(),
        others.filter(rows.is_null()).to_numpy(),
    )


def _frame(records: Records) -> pl.DataFrame:
    return pl.DataFrame({name: np.ascontiguousarray(records[name]) for name in ("a", "b", "row")})


@dataclass(frozen=True, eq=False)
class SpeakerCodes:
    """Codes of names on both sides of each row, and the speaker that each code stands for; made of
    a table whose names are on disk, which gives ranges of its rows and their labels.

    ``names[speaker[0][code]]`` is the speaker on the enrolment side, ``speaker[1]`` is for the
    test side.
    """

    sides: tuple[Column[np.int32], Column[np.int32]]
    speaker: tuple[Codes, Codes]
    names: pl.Series

    @classmethod
    def of_columns(cls, table: Any) -> SpeakerCodes:
        """From columns that name the speakers."""
        (first, enrol), (second, test) = (table.names[role] for role in SPEAKERS)
        names = pl.concat([first.names, second.names]).unique(maintain_order=True)
        speaker = (lookup(first.names, names), lookup(second.names, names))
        return cls((enrol, test), speaker, names)

    @classmethod
    def by_rule(cls, table: Any, rule: SpeakerRule) -> SpeakerCodes:
        """From a rule on the identifiers of the trials that are kept."""
        (first, enrol), (second, test) = (table.names[role] for role in IDENTIFIERS[:2])
        used = [np.zeros(len(names), bool) for names in (first.names, second.names)]
        for start, stop in table.ranges():
            _, kept = table.labels(start, stop)
            for seen, column in zip(used, (enrol, test), strict=True):
                codes = column.read(start, stop)
                seen[codes if kept is None else codes[kept]] = True
        of_test = Ids.from_strings(speakers_of(second.names.filter(used[1]), rule))
        known = rule.known(of_test.names)
        of_enrol = Ids.from_strings(speakers_of(first.names.filter(used[0]), rule, known=known))
        names = pl.concat([of_enrol.names, of_test.names]).unique(maintain_order=True)
        speaker = [np.full(len(seen), -1, np.int32) for seen in used]
        for codes, seen, ids in zip(speaker, used, (of_enrol, of_test), strict=True):
            codes[seen] = lookup(ids.names, names)[ids.codes]
        return cls((enrol, test), (speaker[0], speaker[1]), names)

    def read(self, start: int, stop: int) -> tuple[Codes, Codes]:
        """Speakers of successive rows on both sides."""
        enrol, test = (
            speaker[column.read(start, stop)]
            for speaker, column in zip(self.speaker, self.sides, strict=True)
        )
        return enrol, test

    def empty(self, scratch: Scratch, rows: int) -> SpeakerCodes:
        """Room for the speakers of the same trials in another order."""
        enrol, test = (Column.zeros(scratch, np.int32, rows) for _ in self.sides)
        return replace(self, sides=(enrol, test))

    def put(self, rows: Index, other: SpeakerCodes, others: Index) -> None:
        """Take the speakers of some rows from another file's."""
        for column, given in zip(self.sides, other.sides, strict=True):
            column.put(rows, given.at(others))

    def count(self, table: Any, *, check: bool = False) -> tuple[int, int]:
        """Speakers of the trials of both classes and of all; ``check`` refuses targets with two."""
        in_classes, in_all = (np.zeros(len(self.names), bool) for _ in range(2))
        torn, first = 0, ("", "")
        for start, stop in table.ranges():
            label, _ = table.labels(start, stop)
            sides = self.read(start, stop)
            two = np.flatnonzero((label == TARGET) & (sides[0] != sides[1]))
            if two.size and not torn:
                enrol, test = (str(self.names[int(side[two[0]])]) for side in sides)
                first = (enrol, test)
            torn += two.size
            for side in sides:
                in_classes[side[(label == TARGET) | (label == NONTARGET)]] = True
                in_all[side[label != DROPPED]] = True
        if torn and check:
            raise two_speakers(table.name, torn, *first)
        return int(in_classes.sum()), int(in_all.sum())
