"""Text tables in blocks of lines: any run of separators, exact line numbers in errors."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import polars as pl

from unmask.base import BoolArray, FloatArray
from unmask.errors import InputError
from unmask.trials.ids import CodeBuilder, Ids
from unmask.trials.problems import Faults, no_number, no_trials
from unmask.trials.readers.files import Input

ABSENT = ("-", "")
GZIP_EXPANSION = 5
SPEAKERS = ("enrol_speaker", "test_speaker")
NEEDED = ("enrol", "test", *SPEAKERS)
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
            try:
                fields = next(csv.reader([line], delimiter=self.separator, skipinitialspace=True))
            except csv.Error:
                return [line]
        else:
            fields = line.split(self.separator)
        return [field.strip(" ") for field in fields]


def sample_lines(source: Input) -> list[str]:
    """First lines of a text input, complete ones only; refuses empty and binary input."""
    head = source.head.removeprefix(b"\xef\xbb\xbf")
    if not head.strip():
        raise InputError(f"{source.name}: the file is empty")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(source.name, "text in UTF-8", "UTF-16; save it as UTF-8")
    if b"\0" in head:
        raise InputError(source.name, "text", "a binary file of no known format")
    lines = head.replace(b"\r\n", b"\n").split(b"\n")
    if not source.drained and len(lines) > 1:
        lines = lines[:-1]
    lines = lines[:SAMPLE_LINES]
    while lines and not lines[-1].strip():
        lines.pop()
    return [_decoded(line, source.name, number) for number, line in enumerate(lines, 1)]


def _decoded(line: bytes, name: str, number: int) -> str:
    """A line as text; binary data and an empty line are errors."""
    where = f"{name}, line {number}"
    if b"\0" in line:
        raise InputError(where, "text", "binary data")
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(where, "UTF-8 text", "other bytes") from error
    if not text.strip():  # of blanks beyond ASCII and separators too
        raise InputError(where, "a trial", "an empty line")
    return text


@dataclass(eq=False)
class TextTable:
    """Rows of a text table, block by block; ``layout`` is what messages expect, ``header`` whether
    the first line holds ``names``. With ``again`` the file is opened anew for each pass.
    """

    source: Input
    dialect: Dialect
    names: Sequence[str]
    layout: str
    numeric: Sequence[str] = ()
    again: bool = False
    header: bool = False
    sha256: str = ""

    @property
    def name(self) -> str:
        return self.source.name

    def where(self, row: int) -> str:
        """Where a row stands in the file."""
        return f"{self.name}, line {row + 1 + self.header}"

    def expected(self) -> int:
        """About how many rows there are, from the length of the first lines."""
        source = self.source
        lines = max(source.head.count(b"\n"), 1)
        stored = os.stat(self.name).st_size * (GZIP_EXPANSION if source.compressed else 1)
        return lines if source.drained else stored * lines // len(source.head)

    def frames(self, columns: Sequence[str]) -> Iterator[tuple[int, pl.DataFrame]]:
        """Some columns as text, block by block, and how many bytes have been read."""
        line, blank = 1, 0
        with Input(self.name) if self.again else nullcontext(self.source) as source:
            for block in source.blocks():
                if line == 1 and self.header:
                    block, line = block[block.find(b"\n") + 1 :], 2
                if blank and block.strip():
                    _decoded(b"", self.name, blank)
                body = _without_blank_end(block)
                if body:
                    frame = self._parse(body, line)
                    line += frame.height
                    yield source.position, frame.select(columns)
                if len(body) < len(block) and not blank:
                    blank = line
            self.sha256 = source.sha256

    def text(self, role: str, column: pl.Series, row: int, faults: Faults) -> pl.Series:
        """Names; in a table with a header every row needs one."""
        column = column.fill_null("")
        if self.header and role in NEEDED and (column.str.len_bytes() <= 1).any():
            absent, expected = column.is_in(ABSENT), f"an identifier in column {column.name!r}"
            faults.note((2, NEEDED.index(role)), absent.to_numpy(), row, expected, "none")
        return column

    def numbers(self, system: int, column: pl.Series, row: int, faults: Faults) -> FloatArray:
        """Scores of the rows from ``row`` on, NaN where there is none."""
        column, expected = column.fill_null(""), f"a number in column {column.name!r}"
        parsed = column.cast(pl.Float64, strict=False)
        gaps: BoolArray = (
            column.is_in(ABSENT).to_numpy() if parsed.null_count() else np.zeros(len(column), bool)
        )
        if parsed.null_count() > gaps.sum():
            bad = int(np.flatnonzero(parsed.is_null().to_numpy() & ~gaps)[0])
            raise InputError(self.where(row + bad), expected, no_number(column[bad]))
        values = parsed.fill_null(np.nan).to_numpy()
        if np.isinf(values).any():
            words = column.str.to_lowercase().str.contains("inf", literal=True).to_numpy()
            large = np.flatnonzero(np.isinf(values) & ~words)
            if large.size:
                raise InputError(
                    f"{self.where(row + int(large[0]))}: expected a number that double precision "
                    f"holds in column {column.name!r}, found {column[int(large[0])][:40]!r}"
                )
        faults.note((1, system), np.isnan(values) & ~gaps, row, expected, "NaN")
        return values

    def _parse(self, block: bytes, first: int) -> pl.DataFrame:
        """Parse a block of lines. Where something is odd, it is looked at closely."""
        if b"\0" in block:
            self._diagnose(block, first)
        separator = self.dialect.separator
        if separator != " ":
            frame = self._csv(block, separator)
            whole = frame is not None and frame.height == block.count(b"\n")
            if frame is None or not whole or frame[self.names[-1]].null_count():
                self._diagnose(block, first, separator)
            if not whole:
                frame = None
        else:
            tabs = b"\t" in block
            frame = None
            if not tabs or b" " not in block:
                separator = "\t" if tabs else " "
                frame = self._csv(block, separator)
            if frame is None or any(column.null_count() for column in frame):
                block = _single_blanks(block)
                self._diagnose(block, first, " ")
                frame = self._csv(block, " ")
        if frame is None:
            raise InputError(f"{self.name}: cannot be read as a table ({self.layout})")
        return frame

    def _csv(self, block: bytes, separator: str) -> pl.DataFrame | None:
        try:
            frame = pl.read_csv(
                block,
                has_header=False,
                separator=separator,
                quote_char='"' if self.dialect.quoted and b'"' in block else None,
                schema=dict.fromkeys(self.names, pl.String),
            )
        except pl.exceptions.PolarsError:
            return None
        if separator in ",;" and b" " in block:
            frame = frame.with_columns(pl.all().str.strip_chars(" "))
        return frame

    def _diagnose(self, block: bytes, first: int, separator: str = "\n") -> None:
        """Find the first line that does not fit and say so; returns if all of them do."""
        for number, line in enumerate(block.removesuffix(b"\n").split(b"\n"), first):
            text, where = _decoded(line, self.name, number), f"{self.name}, line {number}"
            if separator == "\n":
                continue
            fields = line.count(separator.encode()) + 1
            if self.dialect.quoted and b'"' in line:
                try:
                    fields = len(next(csv.reader([text], delimiter=separator, strict=True)))
                except (csv.Error, StopIteration):
                    closed = "quotes that are closed in the same line"
                    raise InputError(where, closed, "one that is not") from None
            if fields != len(self.names):
                raise InputError(where, f"{len(self.names)} columns ({self.layout})", fields)


def read_columns(
    source: Input, names: Sequence[str], *, layout: str
) -> tuple[list[Ids], Callable[[int], str]]:
    """All columns of a text table without header, and what names a row of it in messages."""
    sample_lines(source)
    table = TextTable(source, Dialect(" "), names, layout=layout)
    encoders = [CodeBuilder() for _ in names]
    for _, frame in table.frames(names):
        for encoder, column in zip(encoders, frame, strict=True):
            encoder.add(column.fill_null(""))
    columns = [encoder.finish() for encoder in encoders]
    if not len(columns[0]):
        raise no_trials(source.name)
    return columns, table.where


def _without_blank_end(block: bytes) -> bytes:
    """Cut off lines at the end that hold nothing but blanks."""
    if not block.endswith((b"\n\n", b" \n", b"\t\n")) and block != b"\n":
        return block
    core = block.rstrip(b" \t\n")
    return block[: block.find(b"\n", len(core)) + 1] if core else b""


def _single_blanks(block: bytes) -> bytes:
    """Reduce every run of blanks and tabs to one blank, and none at the ends of lines."""
    block = block.replace(b"\t", b" ")
    while b"  " in block:
        block = block.replace(b"  ", b" ")
    return block.replace(b" \n", b"\n").replace(b"\n ", b"\n").removeprefix(b" ")
