"""Tables of trials in batches: text with or without header, parquet, arrays as columns. They
go into memory (:mod:`.reading`) or to disk (:mod:`.large`), with the same faults in one order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unmask.base import FloatArray, Labels
from unmask.errors import InputError
from unmask.trials.formats import FORMATS, UNKNOWN, Format, encode_labels, format_named
from unmask.trials.ids import CodeBuilder, as_text
from unmask.trials.problems import LABEL, Faults, check_systems, no_trials
from unmask.trials.readers import detect
from unmask.trials.readers.detect import Wanted
from unmask.trials.readers.files import Input
from unmask.trials.readers.guard import ParquetFile, load_parquet
from unmask.trials.readers.text import ABSENT, NEEDED, SPEAKERS, TextTable

BATCH = 1 << 20
IDENTIFIERS = ("enrol", "test", "side")
LABELS = ("label", "digit", "word")


@dataclass(frozen=True)
class Parsed:
    """What a reader makes of a file; ``systems`` are NaN without a score, ``where`` names a row."""

    name: str
    format: Format
    where: Callable[[int], str]
    trials: dict[str, Any]
    systems: dict[str, FloatArray]
    remarks: tuple[str, ...] = ()
    sha256: str = ""


class TypedRows:
    """Rows of a table that carries types: parquet, or arrays that are columns."""

    def __init__(self, name: str, table: pl.DataFrame | ParquetFile) -> None:
        self.name = name
        self.schema = table.schema
        self._table = table
        if not table.height:
            raise no_trials(name)
        self._whole: dict[str, bool] = {}
        kinds = [(name, kind) for name, kind in self.schema.items() if not kind.is_nested()]
        self.names = [name for name, kind in kinds if kind not in (pl.Binary, pl.Object)]
        self.numeric = [name for name, kind in kinds if kind.is_numeric()]

    @cached_property
    def sha256(self) -> str:
        """Digest of the file."""
        with Input(self.name) as source:
            return source.sha256

    def where(self, row: int) -> str:
        """Where a row stands in the file."""
        return f"{self.name}, row {row + 1}"

    def expected(self) -> int:
        """How many rows there are."""
        return self._table.height

    def frames(self, columns: Sequence[str]) -> Iterator[tuple[int, pl.DataFrame]]:
        """Columns in batches, and the part of the bytes that they stand for."""
        size = os.stat(self.name).st_size if os.path.exists(self.name) else 0
        height = self._table.height
        for start in range(0, height, BATCH):
            frame = self._table.select(columns).slice(start, BATCH)
            yield size * min(start + BATCH, height) // height, frame

    def text(self, role: str, column: pl.Series, row: int, faults: Faults) -> pl.Series:
        """Names and labels; every row needs one, but not of metadata."""
        whole = column.dtype.is_float() and self._is_whole(column.name)
        text = as_text(column.cast(pl.Int64, strict=False) if whole else column)
        name, absent = role in NEEDED, text.is_null()
        if name:
            absent |= text.str.strip_chars() == ""
        if role and absent.any():
            kind = 0, self.schema.names().index(column.name)
            expected = f"{'an identifier' if name else 'a value'} in column {column.name!r}"
            faults.note(kind, absent.to_numpy(), row, expected, "none")
        return text.fill_null("")

    def numbers(self, system: int, column: pl.Series, row: int, faults: Faults) -> FloatArray:
        """Scores, NaN where there is none."""
        numbers = column.cast(pl.Float64, strict=False)
        expected = f"a number in column {column.name!r}"
        if numbers.null_count():
            bad = (numbers.is_null() & column.is_not_null()).to_numpy()
            faults.note((1, system, 0), bad, row, expected, column, counted=False)
        nan = numbers.is_nan().fill_null(False).to_numpy()
        faults.note((1, system, 1), nan, row, expected, "NaN")
        return numbers.fill_null(np.nan).to_numpy()

    def _is_whole(self, name: str) -> bool:
        """Whether names or labels are whole numbers written as real ones, in the whole column."""
        if name not in self._whole:
            columns = (frame[name] for _, frame in self.frames([name]))
            self._whole[name] = all((c.is_null() | (c == c.round())).all() for c in columns)
        return self._whole[name]


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows: ``scores`` by system, NaN for none, ``names`` by column; ``done`` bytes read."""

    first: int
    done: int
    rows: int
    scores: dict[str, FloatArray]
    label: Labels | None
    names: dict[str, pl.Series]


@dataclass(frozen=True, eq=False)
class TableFile:
    """A file of scores or labels, read batch by batch: ``columns`` by role, columns of ``systems``
    by name, and the ``metadata`` that describe trials.
    """

    rows: TextTable | TypedRows
    format: Format
    columns: Mapping[str, str]
    systems: Mapping[str, str]
    metadata: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The file's name."""
        return self.rows.name

    @property
    def has_label(self) -> bool:
        """Whether trials have labels: a column, or the claimed and the real speaker of Bob."""
        return "label" in self.columns or self.format.name.startswith("bob")

    @property
    def has_ids(self) -> bool:
        """Whether trials have names."""
        return "enrol" in self.columns

    @property
    def has_speakers(self) -> bool:
        """Whether speakers of both sides are known."""
        return all(role in self.columns for role in SPEAKERS)

    def batches(self, *, metadata: bool = False) -> Iterator[Batch]:
        """Go through the file once, with ``metadata`` if asked for; faults come at its end."""
        faults = Faults(self.rows.where)
        roles = {self.columns[r]: r for r in (*SPEAKERS, *IDENTIFIERS[::-1]) if r in self.columns}
        roles = {**dict.fromkeys(self.metadata if metadata else (), ""), **roles}
        word = self.columns.get("label")
        sides = [self.columns[role] for role in SPEAKERS if role in self.columns]
        needed = dict.fromkeys([*roles, *self.systems.values(), *([word] if word else [])])
        row = 0
        blocks = self.rows.frames(list(needed))
        for done, frame in ((done, part) for done, b in blocks for part in b.iter_slices(BATCH)):
            names = {
                column: self.rows.text(role, frame[column], row, faults)
                for column, role in roles.items()
            }
            scores = {
                system: self.rows.numbers(i, frame[column], row, faults)
                for i, (system, column) in enumerate(self.systems.items())
            }
            label = None
            if word:
                words = self.rows.text("label", frame[word], row, faults)
                label = encode_labels(words.alias(detect.normalise(word)))
                faults.note((3,), label == UNKNOWN, row, LABEL, words, counted=False)
            elif self.has_label:
                enrol, test = (names[side] for side in sides)
                label = (enrol == test).cast(pl.Int8).to_numpy()
            yield Batch(row, done, frame.height, scores, label, names)
            row += frame.height
        if not row:
            raise no_trials(self.name)
        faults.refuse()

    def in_memory(self) -> Parsed:
        """Read the whole file."""
        encoders: dict[str, CodeBuilder] = {}
        scores: dict[str, list[FloatArray]] = {system: [] for system in self.systems}
        labels: list[Labels] = []
        for batch in self.batches(metadata=True):
            for column, values in batch.names.items():
                encoders.setdefault(column, CodeBuilder()).add(values)
            for system, numbers in batch.scores.items():
                scores[system].append(numbers)
            labels += [] if batch.label is None else [batch.label]
        ids = {column: encoder.finish() for column, encoder in encoders.items()}
        columns = {detect.normalise(column): ids[column] for column in self.metadata}
        if "side" in self.columns:
            columns["side"] = ids[self.columns["side"]]
        sides = ("enrol", "test", *(SPEAKERS if self.has_speakers else ()))
        trials: dict[str, Any] = {side: ids.get(self.columns.get(side, "")) for side in sides}
        trials |= {"label": np.concatenate(labels) if labels else None, "columns": columns}
        systems = {system: np.concatenate(parts) for system, parts in scores.items()}
        return Parsed(self.name, self.format, self.rows.where, trials, systems, self.remarks)

    def trial(self, row: int) -> str:
        """Names of the trial in a row, for messages: the file is read once more."""
        columns = [self.columns[role] for role in IDENTIFIERS[:2]]
        first = 0
        for _, frame in self.rows.frames(list(dict.fromkeys(columns))):
            if row < first + frame.height:
                at = [frame[column].slice(row - first, 1) for column in columns]
                faults = Faults(self.rows.where)
                return " ".join(self.rows.text("", column, row, faults)[0] for column in at)
            first += frame.height
        raise IndexError(row)


def open_table(source: Input, wanted: Wanted, *, again: bool = False) -> TableFile | None:
    """A text or parquet file as a table, ``None`` for another kind; ``role`` is what messages say
    is wanted. With ``again`` it is opened for every pass, else held in memory if need be.
    """
    if source.container == "parquet" and not (again and source.compressed):
        table = ParquetFile.opened(Path(source.name)) if again else load_parquet(source)
        rows = TypedRows(source.name, table)
        return open_headed(rows, source.stem, wanted, format="parquet")
    if source.container != "text":
        return None
    if wanted.columns is not None and wanted.format and format_named(wanted.format).roles:
        raise InputError("columns", "no fixed layout beside them", wanted.format)
    sample = detect.TextSample.of(source, wanted.columns)
    chosen = sample.layout(wanted, keep=not again)
    if chosen is None:
        assert sample.header is not None
        names, layout = sample.header, " ".join(sample.header)
        numeric = [
            name
            for i, name in enumerate(names)
            if all(value in ABSENT or detect.is_number(value) for value in set(sample.columns[i]))
        ]
        text = TextTable(source, sample.dialect, names, layout, numeric, again, sample.titled)
        return open_headed(text, source.stem, wanted)
    layout_format, remark = chosen
    names = tuple(
        f"{role} {i}" if role == "number" else role for i, role in enumerate(layout_format.roles)
    )
    known = {
        "label" if name in LABELS else name: name
        for name in names
        if name in (*LABELS, *IDENTIFIERS, *SPEAKERS)
    }
    if "enrol_speaker" in known:
        known.setdefault("enrol", known["enrol_speaker"])
    scored = {source.stem: "score"} if "score" in names else {}
    check_systems(source.name, list(scored), wanted.systems)
    text = TextTable(source, sample.dialect, names, layout_format.layout, again=again)
    return TableFile(text, layout_format, known, scored, remarks=(remark,) if remark else ())


def _table_format(names: Sequence[str], scored: bool) -> str:
    """Which of the formats with a header these column names are."""
    columns, kind = {detect.normalise(name) for name in names}, "score" if scored else "key"
    for entry in FORMATS:
        if entry.kind == kind and any(words <= columns for words in entry.header):
            return entry.name
    return "long" if scored else "long-key"


def open_headed(
    rows: TextTable | TypedRows, stem: str, wanted: Wanted, *, format: str | None = None
) -> TableFile:
    """A table whose columns say their roles; a lone system with a vague name is called ``stem``."""
    where = f"{rows.name}, line 1" if isinstance(rows, TextTable) else rows.name
    roles, scored, described = detect.interpret(rows.names, rows.numeric, wanted, where=where)
    format = format or _table_format(rows.names, bool(scored))
    if isinstance(rows, TypedRows) and (
        not roles.keys() & {"enrol", "test", "label"} or not (scored or wanted.as_key)
    ):
        expected = "columns such as enrol, test, label and one per system"
        raise InputError(rows.name, expected, ", ".join(rows.schema) or "none")
    sides = [role for role in ("enrol", "test") if role in roles]
    if len(sides) == 1:
        other = "test" if sides == ["enrol"] else "enrol"
        actual = f"{roles[sides[0]]!r} and none for {other}"
        raise InputError(rows.name, "columns for enrol and test", actual)
    chosen = {} if wanted.as_key else {name: name for name in scored}
    remarks = [f"systems: {', '.join(chosen)}"] if chosen else []
    if wanted.columns is not None:
        given = detect.named_columns(wanted.columns).items()
        told = " ".join(f"{role}={','.join(names)}" for role, names in given)
        remarks.insert(0, f"columns as named: {told}")
    if ("enrol_speaker" in roles) != ("test_speaker" in roles):
        remarks.append("speakers known on one side only, so not used")
    metadata: dict[str, str] = {}
    for column in described:
        other = metadata.setdefault(detect.normalise(column), column)
        if other != column:
            raise InputError(rows.name, "columns of different names", f"{other!r} and {column!r}")
    named = dict.fromkeys([*metadata, *(["side"] if "side" in roles else [])])
    remarks += [f"metadata: {', '.join(named)}"] if named else []
    plain = [detect.normalise(name) in detect.GENERIC_SCORES or name.isdigit() for name in chosen]
    if not wanted.systems and plain == [True]:
        chosen = dict.fromkeys([stem], *chosen)
    return TableFile(rows, format_named(format), roles, chosen, described, tuple(remarks))
