"""Text tables in blocks of lines: any single or repeated separator, exact line numbers in errors."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from unmask.errors import InputError
from unmask.trials.arrays import Floats, Mask
from unmask.trials.files import Input
from unmask.trials.ids import Ids

ABSENT = ("-", "")
SAMPLE_LINES = 20_000


@dataclass(frozen=True)
class Dialect:
    """How lines are cut into fields. ``separator`` is a comma, semicolon, tab or ``" "``: the last
    stands for any run of blanks and tabs, the others are taken as they are, empty fields included.
    """

    separator: str
    quoted: bool = False

    def split(self, line: str) -> list[str]:
        """Cut one line into fields."""
        if self.separator == " ":
            return line.split()
        if self.quoted and '"' in line:
            return next(csv.reader([line], delimiter=self.separator), [])
        return line.split(self.separator)


@dataclass(frozen=True)
class Numbers:
    """A column of numbers; ``absent`` marks the rows that hold nothing (empty or ``-``)."""

    values: Floats
    absent: Mask | None


def sample_lines(source: Input) -> list[str]:
    """First lines of a text input, complete ones only; refuses empty and binary input."""
    head = source.head.removeprefix(b"\xef\xbb\xbf")
    if not head.strip():
        raise InputError(f"{source.name}: the file is empty")
    if b"\0" in head:
        raise InputError(f"{source.name}: expected text, found a binary file of no known format")
    lines = head.replace(b"\r\n", b"\n").split(b"\n")
    if len(head) == len(source.head) >= 1 << 20 and len(lines) > 1:
        lines = lines[:-1]
    lines = lines[:SAMPLE_LINES]
    while lines and not lines[-1].strip():
        lines.pop()
    decoded = []
    for number, line in enumerate(lines, 1):
        try:
            decoded.append(line.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise InputError(f"{source.name}, line {number}: expected UTF-8 text, found other bytes") from error
        if not line.strip():
            raise InputError(f"{source.name}, line {number}: expected a trial, found an empty line")
    return decoded


class TextTable:
    """Reads chosen columns of a text table: identifiers become codes, numbers become floats."""

    def __init__(
        self,
        source: Input,
        dialect: Dialect,
        names: Sequence[str],
        *,
        header: bool,
        layout: str,
    ) -> None:
        self.source = source
        self.dialect = dialect
        self.names = list(names)
        self.first_line = 2 if header else 1
        self._header = header
        self._layout = layout

    def line(self, row: int) -> str:
        """Where row ``row`` stands in the file, for messages."""
        return f"{self.source.name}, line {row + self.first_line}"

    def read(self, ids: Sequence[str], numbers: Sequence[str]) -> tuple[dict[str, Ids], dict[str, Numbers]]:
        """Read the columns ``ids`` and ``numbers`` of the whole table."""
        encoded: dict[str, list[Ids]] = {name: [] for name in ids}
        values: dict[str, list[Floats]] = {name: [] for name in numbers}
        absent: dict[str, list[Mask]] = {name: [] for name in numbers}
        rows = 0
        for frame in self._frames():
            for name in ids:
                column = frame[name]
                encoded[name].append(Ids.from_strings(column.fill_null("")))
            for name in numbers:
                parsed, gaps = self._numbers(name, frame[name], rows)
                values[name].append(parsed)
                absent[name].append(gaps)
            rows += frame.height
        if not rows:
            raise InputError(f"{self.source.name}: the file holds no trials")
        return (
            {name: Ids.concatenate(parts) for name, parts in encoded.items()},
            {name: _join_numbers(values[name], absent[name]) for name in numbers},
        )

    def _numbers(self, name: str, column: pl.Series, start: int) -> tuple[Floats, Mask]:
        column = column.fill_null("")
        parsed = column.cast(pl.Float64, strict=False)
        gaps: Mask = column.is_in(ABSENT).to_numpy() if parsed.null_count() else np.zeros(len(column), bool)
        if parsed.null_count() > gaps.sum():
            row = int(np.flatnonzero(parsed.is_null().to_numpy() & ~gaps)[0])
            raise InputError(
                f"{self.line(start + row)}: expected a number in column {name!r}, found {column[row]!r}"
            )
        values = parsed.fill_null(0.0).to_numpy()
        nan = np.isnan(values)
        if nan.any():
            first = start + int(np.flatnonzero(nan)[0])
            raise InputError(
                f"{self.line(first)}: expected a number in column {name!r}, found NaN "
                f"({int(nan.sum())} in this part of the file)"
            )
        return values, gaps

    def _frames(self) -> Iterator[pl.DataFrame]:
        line = 1
        pending_blank = 0
        for block in self.source.blocks():
            if line == 1 and self._header:
                cut = block.find(b"\n") + 1
                block, line = block[cut:], 2
            if pending_blank and block.strip():
                self._empty_line(pending_blank)
            core = block.rstrip(b" \t\n")
            end = block.find(b"\n", len(core)) + 1 if core else 0
            body = block[:end]
            if end < len(block) and not pending_blank:
                pending_blank = line + body.count(b"\n")
            if body:
                yield self._parse(body, line)
            line += block.count(b"\n")

    def _parse(self, block: bytes, first: int) -> pl.DataFrame:
        separator = self.dialect.separator
        if b"\0" in block:
            self._diagnose(block, first)
        if separator == " ":
            block, separator = _single_separator(block)
        mark = separator.encode()
        width = len(self.names)
        lines = block.count(b"\n")
        quoted = self.dialect.quoted and b'"' in block
        if not quoted and block.count(mark) != lines * (width - 1):
            self._diagnose(block, first, separator)
        try:
            frame = pl.read_csv(
                block,
                has_header=False,
                separator=separator,
                quote_char='"' if quoted else None,
                schema={name: pl.String for name in self.names},
            )
        except pl.exceptions.PolarsError as error:
            self._diagnose(block, first, separator)
            raise InputError(f"{self.source.name}: cannot be read as a table ({error})") from error
        if frame.height != lines:
            self._diagnose(block, first, separator)
            raise InputError(f"{self.source.name}: expected {lines} rows, found {frame.height}")
        if block.startswith(b"\n") or b"\n\n" in block:
            self._diagnose(block, first, separator)
        return frame

    def _empty_line(self, number: int) -> None:
        raise InputError(f"{self.source.name}, line {number}: expected a trial, found an empty line")

    def _diagnose(self, block: bytes, first: int, separator: str = "\n") -> None:
        """Find the first line that does not fit and say so; returns if all of them do."""
        mark = separator.encode()
        for number, line in enumerate(block.removesuffix(b"\n").split(b"\n"), first):
            where = f"{self.source.name}, line {number}"
            if b"\0" in line:
                raise InputError(f"{where}: expected text, found binary data")
            if not line.strip():
                self._empty_line(number)
            found = line.count(mark) + 1
            if separator != "\n" and found != len(self.names) and b'"' not in line:
                raise InputError(
                    f"{where}: expected {len(self.names)} columns ({self._layout}), found {found}"
                )
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise InputError(f"{where}: expected UTF-8 text, found other bytes") from error


def _single_separator(block: bytes) -> tuple[bytes, str]:
    """Reduce every run of blanks and tabs to one separator, without work where that is so already."""
    tabs, blanks = b"\t" in block, b" " in block
    mark = b"\t" if tabs and not blanks else b" "
    if tabs and blanks:
        block = block.replace(b"\t", b" ")
    while mark * 2 in block:
        block = block.replace(mark * 2, mark)
    if mark + b"\n" in block:
        block = block.replace(mark + b"\n", b"\n")
    if b"\n" + mark in block:
        block = block.replace(b"\n" + mark, b"\n")
    return block.removeprefix(mark), mark.decode()


def _join_numbers(values: list[Floats], absent: list[Mask]) -> Numbers:
    gaps = np.concatenate(absent)
    return Numbers(np.concatenate(values), gaps if gaps.any() else None)


def columns_of_sample(lines: Sequence[str], dialect: Dialect, name: str, first: int) -> Mapping[int, list[str]]:
    """Transpose sample lines into columns; all lines must have as many fields as the first."""
    table = [dialect.split(line) for line in lines]
    width = len(table[0])
    for number, fields in enumerate(table, first):
        if len(fields) != width:
            raise InputError(
                f"{name}, line {number}: expected {width} columns as in line {first}, "
                f"found {len(fields)}"
            )
    return {i: [fields[i] for fields in table] for i in range(width)}
