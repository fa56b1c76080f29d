"""Score files and keys larger than memory: gone through in batches, as often as needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from unmask.errors import InputError
from unmask.trials.arrays import Floats, Labels
from unmask.trials.detect import Sample, candidates, choose, take_sample
from unmask.trials.files import Input, stem
from unmask.trials.header import interpret, is_number
from unmask.trials.labels import EXPECTED, VOCABULARY
from unmask.trials.layouts import LAYOUTS
from unmask.trials.plain import LABEL_ROLES, layout_named
from unmask.trials.source import Source
from unmask.trials.tables import name_systems
from unmask.trials.text import ABSENT, Numbers, TextTable, sample_lines

Progress = Callable[[int, int], None]
BATCH = 1 << 21
_UNKNOWN = -2
IDENTIFIERS = ("enrol", "test", "side")


@dataclass(frozen=True, eq=False)
class Batch:
    """Some successive rows: the first one's number and what was asked for."""

    first: int
    scores: Floats | None
    label: Labels | None
    ids: dict[str, pl.Series]


class Stream:
    """One score file or key: its columns are known, its rows are read batch by batch.

    ``columns`` maps roles (enrol, test, side, label) to the file's names, ``systems`` names of
    systems to columns. Repeated trials are not looked for.
    """

    def __init__(self, path: str | Path, *, role: str, format: str | None = None) -> None:
        if str(path) == "-":
            raise InputError("-: expected a file that can be read twice, found standard input")
        self.path = Path(path)
        self.name = str(path)
        self.role = role
        with Input(path) as source:
            container = source.container
            if container == "text":
                sample = take_sample(source.name, sample_lines(source))
                self._read: Callable[..., Iterator[tuple[int, pl.DataFrame]]] = self._text
                self.format = self._describe_text(sample, format)
            elif container == "parquet" and not source.compressed:
                self._read = self._parquet
                self.format = self._describe_parquet()
            else:
                raise InputError(
                    f"{path}: expected text, gzip or parquet to be read in batches, "
                    f"found {container}"
                )
        if not self.systems and role != "a key":
            raise InputError(f"{path}: expected scores, found {self.format} without scores")
        if role == "a key" and not {"enrol", "test", "label"} <= self.columns.keys():
            raise InputError(f"{path}: expected a key with enrol, test and label, found none")
        self.sha256 = ""

    @property
    def size(self) -> int:
        """Bytes (or rows of a parquet file) of one pass."""
        if self._read == self._parquet:
            return int(pl.scan_parquet(self.path).select(pl.len()).collect().item())
        return self.path.stat().st_size

    def source(self, target: int, nontarget: int) -> Source:
        """What the result says about this input; the file must have been read once."""
        return Source(
            self.name,
            self.sha256,
            self.format,
            target=target,
            nontarget=nontarget,
            detected=f"{self.format}, read in batches",
        )

    def batches(
        self,
        *,
        system: str | None,
        ids: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[Batch]:
        """Go through the file once; ``progress`` gets what part of :attr:`size` is done."""
        columns = {
            role: name
            for role, name in self.columns.items()
            if role == "label" or (ids and role in IDENTIFIERS)
        }
        score = None if system is None else self.systems[system]
        row = 0
        for done, frame in self._read([*columns.values(), *([score] if score else [])]):
            label = self._labels(frame[columns["label"]], row) if "label" in columns else None
            named = {role: frame[columns[role]] for role in IDENTIFIERS if role in columns}
            yield Batch(row, self._scores(frame[score], row) if score else None, label, named)
            row += frame.height
            if progress is not None:
                progress(done)
        if not row:
            raise InputError(f"{self.name}: the file holds no trials")

    def where(self, row: int) -> str:
        """Where a row stands in the file, for messages."""
        return f"{self.name}, line {row + self._first_line}"

    def _describe_text(self, sample: Sample, format: str | None) -> str:
        as_key = self.role == "a key"
        named = None if format is None else layout_named(format)
        if sample.header is not None and named is None:
            numeric = [
                name
                for i, name in enumerate(sample.header)
                if all(value in ABSENT or is_number(value) for value in set(sample.columns[i]))
            ]
            self._assign(sample.header, numeric, f"{self.name}, line 1")
            self._layout, self._names = " ".join(sample.header), list(sample.header)
            self._first_line, told = 2, "long"
        else:
            allowed = [
                layout for layout in LAYOUTS if (layout.has_labels if as_key else layout.has_scores)
            ]
            unique = {i: set(values) for i, values in sample.columns.items()}
            layout = named or choose(sample, candidates(unique), allowed, role=self.role)[0]
            self._layout, self._first_line, told = layout.layout, 1, layout.name
            self._names = [f"{role} {i}" for i, role in enumerate(layout.roles)]
            roles = dict(zip(layout.roles, self._names, strict=True))
            self.columns = {
                "label" if role in LABEL_ROLES else role: name
                for role, name in roles.items()
                if role in (*LABEL_ROLES, *IDENTIFIERS)
            }
            self.systems = {stem(self.name): roles["score"]} if "score" in roles else {}
        self._dialect = sample.dialect
        return told

    def _describe_parquet(self) -> str:
        try:
            schema = pl.scan_parquet(self.path).collect_schema()
        except (OSError, pl.exceptions.PolarsError) as error:
            raise InputError(f"{self.name}: the parquet file cannot be read ({error})") from None
        plain = [name for name, kind in schema.items() if not kind.is_nested()]
        self._assign(plain, [name for name in plain if schema[name].is_numeric()], self.name)
        self._first_line = 1
        return "parquet"

    def _assign(self, names: Sequence[str], numeric: Sequence[str], where: str) -> None:
        header = interpret(names, numeric, where=where)
        self.columns = {role: name for role, name in header.roles.items() if role != "score"}
        empty = Numbers(np.zeros(0), None)
        found = name_systems(dict.fromkeys(header.systems, empty), stem(self.name))
        self.systems = dict(zip(found, header.systems, strict=True))

    def _text(self, columns: Sequence[str]) -> Iterator[tuple[int, pl.DataFrame]]:
        with Input(self.path) as source:
            table = TextTable(
                source,
                self._dialect,
                self._names,
                header=self._first_line == 2,
                layout=self._layout,
            )
            for frame in table.frames():
                yield source._file.tell(), frame.select(list(dict.fromkeys(columns)))
            self.sha256 = source.sha256

    def _parquet(self, columns: Sequence[str]) -> Iterator[tuple[int, pl.DataFrame]]:
        scan = pl.scan_parquet(self.path).select(list(dict.fromkeys(columns)))
        for start in range(0, self.size, BATCH):
            frame = scan.slice(start, BATCH).collect()
            yield start + frame.height, frame
        with Input(self.path) as source:
            self.sha256 = source.sha256

    def _scores(self, column: pl.Series, row: int) -> Floats:
        numbers = column.cast(pl.Float64, strict=False)
        values: Floats = numbers.to_numpy()
        bad = np.isnan(values) if not numbers.null_count() else numbers.is_null().to_numpy()
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            found = "NaN" if not numbers.null_count() else repr(column[i])
            raise InputError(f"{self.where(row + i)}: expected a score, found {found}")
        return values

    def _labels(self, column: pl.Series, row: int) -> Labels:
        text = column.cast(pl.Int64) if column.dtype.is_float() else column
        words = text.cast(pl.String).str.strip_chars().str.to_lowercase()
        coded = words.replace_strict(VOCABULARY, default=_UNKNOWN, return_dtype=pl.Int8)
        labels: Labels = coded.fill_null(_UNKNOWN).to_numpy()
        if (labels == _UNKNOWN).any():
            i = int(np.flatnonzero(labels == _UNKNOWN)[0])
            raise InputError(
                f"{self.where(row + i)}: expected a label ({EXPECTED}), found {column[i]!r}"
            )
        return labels


def is_large(path: str | Path, limit: int) -> bool:
    """Whether a file has more bytes than a limit; compressed ones count five times."""
    try:
        size = os.stat(path).st_size
        with open(path, "rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
    except OSError:
        return False
    return size * (5 if packed else 1) > limit
