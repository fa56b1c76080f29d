"""Score files and keys larger than memory: gone through in batches, as often as needed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from unmask.base import Floats, Labels
from unmask.errors import InputError
from unmask.trials.detect import take_sample
from unmask.trials.files import GZIP_MAGIC, Input, stem
from unmask.trials.formats import check_format
from unmask.trials.frames import header_of_schema
from unmask.trials.header import Header
from unmask.trials.labels import EXPECTED, VOCABULARY
from unmask.trials.messages import unknown_systems
from unmask.trials.parquet import PARQUET
from unmask.trials.parsed import check_key, only_a_key, source_of
from unmask.trials.plain import LABEL_ROLES, column_names, layout_of
from unmask.trials.registry import Format
from unmask.trials.source import Source
from unmask.trials.streamed_files import GZIP_EXPANSION, Faults, StreamedParquet, StreamedText
from unmask.trials.tables import check_sides, header_of, name_systems, remarks_on, table_format
from unmask.trials.text import sample_lines

IDENTIFIERS = ("enrol", "test", "side")
SPEAKERS = ("enrol_speaker", "test_speaker")
_UNKNOWN = -2


@dataclass(frozen=True, eq=False)
class Batch:
    """Some successive rows: the first one's number, and what was asked for.

    ``scores`` are NaN where a trial has none; ``names`` are by role; ``done`` tells how much of
    the file's bytes has been read.
    """

    first: int
    done: int
    rows: int
    scores: dict[str, Floats]
    label: Labels | None
    names: dict[str, pl.Series]


class Stream:
    """One score file or key: its columns are known, its rows are read batch by batch.

    ``columns`` maps roles (enrol, test, side, label, speakers) to the file's names, ``systems``
    names of systems to columns.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        role: str,
        format: str | None = None,
        systems: Sequence[str] | None = None,
    ) -> None:
        if str(path) == "-":
            raise InputError("-: expected a file that can be read twice, found standard input")
        self.name = str(path)
        self._is_key = role == "a key"
        with Input(path) as source:
            if format is not None:
                check_format(source, format)
            if source.container == "text":
                self._file: StreamedText | StreamedParquet = self._text(
                    source, format=format, role=role, systems=systems
                )
            elif source.container == "parquet" and not source.compressed:
                self._file = self._parquet(source, systems=systems)
            else:
                raise InputError(
                    f"{path}: expected text, gzip or parquet to be read in batches, found "
                    f"{source.container}"
                )
            self.expected_rows = self._file.expected_rows(source)
        if self._is_key:
            check_key(self.name, self.format, "label" in self.columns, self.has_ids)
        elif not self.systems:
            raise only_a_key(self.name, self.format)

    @property
    def has_ids(self) -> bool:
        return "enrol" in self.columns

    @property
    def has_speakers(self) -> bool:
        return all(role in self.columns for role in SPEAKERS)

    @property
    def size(self) -> int:
        """Bytes as stored."""
        return self._file.size

    @property
    def sha256(self) -> str:
        """Digest of the file, which must have been gone through once."""
        return self._file.sha256

    def source(self, remarks: Sequence[str] = ()) -> Source:
        """What the result says about this input, but for the counts."""
        told = tuple(remark for remark in (*self.remarks, *remarks) if remark)
        return source_of(self.name, self.sha256, self.format, (*told, "read in batches"))

    def where(self, row: int) -> str:
        """Where a row stands in the file, for messages."""
        return self._file.where(row)

    def batches(
        self, *, systems: Sequence[str] = (), label: bool = False, names: Sequence[str] = ()
    ) -> Iterator[Batch]:
        """Go through the file once.

        Faults of the columns asked for are raised when all rows have been seen, the same ones and
        in the same order as if the file had been read as a whole.
        """
        file, faults = self._file, Faults(self.where)
        roles = {self.columns[role]: role for role in reversed(names)}
        needed = [*roles, *(self.systems[system] for system in systems)]
        needed += [self.columns["label"]] if label else []
        row = 0
        for done, frame in file.frames(list(dict.fromkeys(needed))):
            text = {
                column: file.text(role, frame[column], row, faults)
                for column, role in roles.items()
            }
            scores = {
                system: file.numbers(i, frame[self.systems[system]], row, faults)
                for i, system in enumerate(systems)
            }
            labels = None
            if label:
                words = file.text("label", frame[self.columns["label"]], row, faults)
                labels = _labels(words, row, faults)
            named = {role: text[self.columns[role]] for role in names}
            yield Batch(row, done, frame.height, scores, labels, named)
            row += frame.height
        if not row:
            raise InputError(f"{self.name}: the file holds no trials")
        faults.refuse()

    def names_at(self, rows: Sequence[int], roles: Sequence[str]) -> list[tuple[str, ...]]:
        """Names in some rows, for messages: the file is read once more."""
        found: dict[int, tuple[str, ...]] = {}
        for batch in self.batches(names=roles):
            for row in rows:
                if batch.first <= row < batch.first + batch.rows:
                    found[row] = tuple(batch.names[role][row - batch.first] for role in roles)
            if len(found) == len(set(rows)):
                break
        return [found[row] for row in rows]

    def _text(
        self, source: Input, *, format: str | None, role: str, systems: Sequence[str] | None
    ) -> StreamedText:
        sample = take_sample(self.name, sample_lines(source))
        chosen = layout_of(source, sample, format=format, role=role, keep=False)
        if chosen is None:
            assert sample.header is not None
            header = header_of(sample, systems=systems)
            self._assign(table_format(sample.header, scored=bool(header.systems)), header, systems)
            layout = " ".join(sample.header)
            return StreamedText(
                self.name, sample.dialect, sample.header, header=True, layout=layout
            )
        self.format, remark = chosen
        self.remarks: tuple[str, ...] = (remark,) if remark else ()
        names = column_names(self.format)
        self.columns = {
            "label" if name in LABEL_ROLES else name: name
            for name in names
            if name in (*LABEL_ROLES, *IDENTIFIERS)
        }
        self.systems = {stem(self.name): "score"} if "score" in names else {}
        unknown = [system for system in systems or () if system not in self.systems]
        if unknown and self.systems:
            raise unknown_systems(self.name, list(self.systems), unknown)
        return StreamedText(
            self.name, sample.dialect, names, header=False, layout=self.format.layout
        )

    def _parquet(self, source: Input, *, systems: Sequence[str] | None) -> StreamedParquet:
        file = StreamedParquet(self.name)
        header = header_of_schema(self.name, file.schema, as_key=self._is_key, systems=systems)
        self._assign(PARQUET, header, systems)
        return file

    def _assign(self, format: Format, header: Header, systems: Sequence[str] | None) -> None:
        check_sides(self.name, header)
        self.format = format
        self.columns = header.roles
        found = {} if self._is_key else {name: name for name in header.systems}
        self.remarks = remarks_on(header, list(found))
        self.systems = found if systems is not None else name_systems(found, stem(self.name))


def _labels(words: pl.Series, row: int, faults: Faults) -> Labels:
    """Labels of a column of words, which are few."""
    labels: Labels = np.full(len(words), _UNKNOWN, np.int8)
    kinds: dict[int, list[str]] = {}
    for word in words.unique().to_list():
        kinds.setdefault(VOCABULARY.get(word.strip().lower(), _UNKNOWN), []).append(word)
    for label, same in kinds.items():
        labels[words.is_in(same).to_numpy()] = label
    faults.note(
        (3,),
        labels == _UNKNOWN,
        row,
        lambda i: f"expected a label ({EXPECTED}), found {words[i]!r}",
        counted=False,
    )
    return labels


def is_large(path: str | Path, limit: int) -> bool:
    """Whether a file has more bytes than a limit; compressed ones count five times."""
    try:
        size = os.stat(path).st_size
        with open(path, "rb") as file:
            packed = file.read(2) == GZIP_MAGIC
    except OSError:
        return False
    return size * (GZIP_EXPANSION if packed else 1) > limit
