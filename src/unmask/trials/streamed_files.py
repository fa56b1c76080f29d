"""Text and parquet read in batches: what a column must hold, and what is said if it does not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl

from unmask.base import Floats, Mask
from unmask.errors import InputError
from unmask.trials.files import Input
from unmask.trials.frames import as_text, is_whole
from unmask.trials.text import ABSENT, Dialect, TextTable, parse_numbers

BATCH = 1 << 20
GZIP_EXPANSION = 5
NEEDED = ("enrol", "test", "enrol_speaker", "test_speaker")


class Faults:
    """What is wrong with a file: of every kind the first row and the number of rows.

    Kinds are ordered as a reader of whole columns would come upon them.
    """

    def __init__(self, where: Callable[[int], str]) -> None:
        self._where = where
        self._told: dict[tuple[int, ...], str] = {}
        self._count: dict[tuple[int, ...], int] = {}

    def note(
        self,
        kind: tuple[int, ...],
        bad: Mask,
        row: int,
        told: Callable[[int], str],
        *,
        counted: bool = True,
    ) -> None:
        """Take note of bad rows; ``told`` says what was expected and found in one of them."""
        count = int(np.count_nonzero(bad))
        if not count:
            return
        if kind not in self._told:
            first = int(np.flatnonzero(bad)[0])
            self._told[kind] = f"{self._where(row + first)}: {told(first)}"
        if counted:
            self._count[kind] = self._count.get(kind, 0) + count

    def refuse(self) -> None:
        """Raise the first kind of fault that was found."""
        if self._told:
            kind = min(self._told)
            count = f" ({self._count[kind]} in all)" if kind in self._count else ""
            raise InputError(self._told[kind] + count)


class StreamedText:
    """A text table, compressed or not."""

    def __init__(
        self, name: str, dialect: Dialect, names: Sequence[str], *, header: bool, layout: str
    ) -> None:
        self.name = name
        self.sha256 = ""
        self._dialect = dialect
        self._names = list(names)
        self._header = header
        self._layout = layout

    @property
    def size(self) -> int:
        """Bytes as stored."""
        return os.stat(self.name).st_size

    def expected_rows(self, source: Input) -> int:
        """About how many rows there are, from the length of the first lines."""
        lines = max(source.head.count(b"\n"), 1)
        stored = self.size * (GZIP_EXPANSION if source.compressed else 1)
        return lines if source.drained else stored * lines // len(source.head)

    def where(self, row: int) -> str:
        """Where a row stands in the file."""
        return f"{self.name}, line {row + 1 + self._header}"

    def frames(self, columns: Sequence[str]) -> Iterator[tuple[int, pl.DataFrame]]:
        """Columns as text, in batches, and how many bytes have been read."""
        with Input(self.name) as source:
            table = TextTable(
                source, self._dialect, self._names, header=self._header, layout=self._layout
            )
            for frame in table.frames():
                for part in frame.select(columns).iter_slices(BATCH):
                    yield source.position, part
            self.sha256 = source.sha256

    def text(self, role: str, column: pl.Series, row: int, faults: Faults) -> pl.Series:
        """Names; in a table with a header every row needs one."""
        column = column.fill_null("")
        if self._header and role in NEEDED and (column.str.len_bytes() <= 1).any():
            faults.note(
                (2, NEEDED.index(role)),
                column.is_in(ABSENT).to_numpy(),
                row,
                lambda i: f"expected an identifier in column {column.name!r}, found none",
            )
        return column

    def numbers(self, system: int, column: pl.Series, row: int, faults: Faults) -> Floats:
        """Scores, NaN where there is none."""
        values, absent = parse_numbers(column, row, self.where)
        faults.note((1, system), np.isnan(values), row, lambda i: _nan(column))
        return np.where(absent, np.nan, values) if absent.any() else values


class StreamedParquet:
    """A parquet table."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sha256 = ""
        self._scan = pl.scan_parquet(Path(name))
        with _reading(name):
            self.schema = self._scan.collect_schema()
            self.rows = int(self._scan.select(pl.len()).collect().item())
        if not self.rows:
            raise InputError(f"{name}: the file holds no trials")
        self._whole: dict[str, bool] = {}

    @property
    def size(self) -> int:
        """Bytes as stored."""
        return os.stat(self.name).st_size

    def expected_rows(self, source: Input) -> int:
        """How many rows there are."""
        return self.rows

    def where(self, row: int) -> str:
        """Where a row stands in the file."""
        return f"{self.name}, row {row + 1}"

    def frames(self, columns: Sequence[str]) -> Iterator[tuple[int, pl.DataFrame]]:
        """Columns in batches, and the part of the bytes that they stand for."""
        size, scan = self.size, self._scan.select(columns)
        for start in range(0, self.rows, BATCH):
            with _reading(self.name):
                frame = scan.slice(start, BATCH).collect()
            yield size * min(start + BATCH, self.rows) // self.rows, frame
        with Input(self.name) as source:
            self.sha256 = source.sha256

    def text(self, role: str, column: pl.Series, row: int, faults: Faults) -> pl.Series:
        """Names and labels; every row needs one."""
        text = as_text(column, whole=self._is_whole(column))
        if text.null_count():
            faults.note(
                (0, self.schema.names().index(column.name)),
                text.is_null().to_numpy(),
                row,
                lambda i: f"expected a value in column {column.name!r}, found none",
            )
        return text.fill_null("")

    def numbers(self, system: int, column: pl.Series, row: int, faults: Faults) -> Floats:
        """Scores, NaN where there is none."""
        numbers = column.cast(pl.Float64, strict=False)
        if numbers.null_count():
            unreadable = numbers.is_null() & column.is_not_null()
            faults.note(
                (1, system, 0),
                unreadable.to_numpy(),
                row,
                lambda i: f"expected a number in column {column.name!r}, found {column[i]!r}",
                counted=False,
            )
        nan = numbers.is_nan().fill_null(False).to_numpy()
        faults.note((1, system, 1), nan, row, lambda i: _nan(column))
        return numbers.fill_null(np.nan).to_numpy()

    def _is_whole(self, column: pl.Series) -> bool:
        """Whether names or labels are whole numbers written as real ones, in the whole column."""
        if not column.dtype.is_float():
            return False
        name = column.name
        if name not in self._whole:
            self._whole[name] = all(is_whole(frame[name]) for _, frame in self.frames([name]))
        return self._whole[name]


def _nan(column: pl.Series) -> str:
    return f"expected a number in column {column.name!r}, found NaN"


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Turns what polars finds wrong with a parquet file into an InputError."""
    try:
        yield
    except (Exception, pl.exceptions.PanicException) as error:
        told = str(error).split("\n")[0]
        raise InputError(f"{name}: the parquet file cannot be read ({told})") from error
