"""Identifiers as integer codes into one table of names; trials as single integers: duplicates and
joins by (enrol, test[, side]), never by position.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np
import polars as pl

from unmask.base import BoolArray, Codes, FloatArray, IntArray, Labels, as_index, read_only, visible
from unmask.errors import InputError

_FEW = 2000


@dataclass(frozen=True, eq=False)
class Ids:
    """A column of identifiers: ``names[codes[i]]`` is the identifier of row ``i``."""

    codes: Codes
    names: pl.Series

    def __post_init__(self) -> None:
        codes = np.ascontiguousarray(self.codes, dtype=np.int32)
        if codes.ndim != 1:
            raise ValueError(f"codes must be one-dimensional, got shape {codes.shape}")
        if self.names.dtype != pl.String:
            raise ValueError(f"names must be strings, got {self.names.dtype}")
        if codes.size and (codes.min() < 0 or codes.max() >= len(self.names)):
            raise ValueError(f"codes must lie in 0 … {len(self.names) - 1}")
        object.__setattr__(self, "codes", read_only(codes))

    def __repr__(self) -> str:
        some = ", ".join([*self.names.head(3), *(["…"] if len(self.names) > 3 else [])])
        return visible(f"Ids({len(self):,} rows, {self.n_unique:,} identifiers of {some})")

    @classmethod
    def from_strings(cls, values: Ids | pl.Series | Iterable[Any]) -> Ids:
        """Encode strings (any sequence, numpy array or polars series); numbers become text."""
        if isinstance(values, Ids):
            return values
        if isinstance(values, pl.Series):
            series = as_text(values)
        elif isinstance(values, np.ndarray):
            if values.ndim != 1 or values.dtype.kind not in "biufUSMO":
                raise ValueError(f"expected one row of text, got {values.dtype} {values.shape}")
            if values.dtype.kind == "S":
                values = np.char.decode(values, "utf-8")
            series = pl.Series(values.astype(str).tolist(), dtype=pl.String)
        else:
            series = pl.Series([str(value) for value in values], dtype=pl.String)
        if series.null_count():
            raise ValueError(f"{series.null_count()} identifiers are missing")
        names = series.unique(maintain_order=True)
        return cls(lookup(series, names), names)

    @classmethod
    def concatenate(cls, parts: Sequence[Ids]) -> Ids:
        """Put columns end to end under one table of names."""
        if len(parts) == 1:
            return parts[0]
        names, shared = unify(parts)
        return cls(np.concatenate(shared), names)

    def __len__(self) -> int:
        return len(self.codes)

    def decode(self, i: int) -> str:
        """Return the identifier of row ``i``."""
        return str(self.names[int(self.codes[i])])

    def to_series(self) -> pl.Series:
        """Return the identifiers as a polars series of strings."""
        return self.names.gather(self.codes)

    def take(self, index: Any) -> Ids:
        """Select rows by mask or positions; the table of names is shared, not copied."""
        return Ids(self.codes[as_index(index, len(self))], self.names)

    def alphabetical(self) -> Ids:
        """The same identifiers with the names that occur, in order: codes are their ranks."""
        names = self.names.gather(self.used)
        order = names.arg_sort().to_numpy()
        rank = np.zeros(len(self.names), np.int32)
        rank[self.used[order]] = np.arange(len(order), dtype=np.int32)
        return Ids(rank[self.codes], names.gather(order))

    @property
    def used(self) -> IntArray:
        """Codes that occur, ascending."""
        return np.flatnonzero(np.bincount(self.codes, minlength=len(self.names)))

    @property
    def n_unique(self) -> int:
        """Return how many different identifiers occur."""
        return len(self.used)


def as_text(column: pl.Series) -> pl.Series:
    """A column of any plain type as text; durations as ISO 8601 has them."""
    if column.dtype == pl.Duration:
        return column.dt.to_string("iso")
    return column.cast(pl.String, strict=False)


def lookup(values: pl.Series, names: pl.Series) -> Codes:
    """Position of each value in ``names``; -1 where it is absent."""
    if len(values) + len(names) < _FEW:
        known = {name: code for code, name in reversed(list(enumerate(names.to_list())))}
        return np.array([known.get(value, -1) for value in values.to_list()], dtype=np.int32)
    table = pl.DataFrame({"name": names, "code": np.arange(len(names), dtype=np.int32)})
    joined = pl.DataFrame({"name": values}).join(
        table, on="name", how="left", maintain_order="left"
    )
    codes: Codes = joined["code"].fill_null(-1).to_numpy()
    return codes


def unify(parts: Sequence[Ids]) -> tuple[pl.Series, list[Codes]]:
    """Bring several columns under one table of names; return it and each column's new codes."""
    first = parts[0].names
    if all(part.names is first for part in parts[1:]):
        return first, [part.codes for part in parts]
    names = pl.concat([part.names for part in parts], rechunk=True).unique(maintain_order=True)
    return names, [
        lookup(part.names, names)[part.codes] if len(part) else part.codes for part in parts
    ]


def share(first: Ids, second: Ids) -> tuple[Ids, Ids]:
    """Return both columns under one table of names."""
    names, (a, b) = unify([first, second])
    return Ids(a, names), Ids(b, names)


def text_ids(values: Any, what: str, name: str) -> Ids:
    """Encode text that came from a file; anything else there is an error that names the file."""
    try:
        return Ids.from_strings(values)
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise InputError(name, f"{what} as text", f"other data ({error})") from error


class NameTable:
    """Codes for names that arrive in blocks; a name keeps its code."""

    def __init__(self) -> None:
        self.names = pl.Series([], dtype=pl.String)

    def codes(self, values: pl.Series) -> Codes:
        """Codes of the next block; names that are new come at the end of the table."""
        codes = lookup(values, self.names) if len(self.names) else np.full(len(values), -1, "i4")
        new = codes < 0
        if new.any():
            unknown = values.filter(new)
            names = unknown.unique(maintain_order=True)
            codes = codes.copy()
            codes[new] = lookup(unknown, names) + len(self.names)
            self.names = pl.concat([self.names, names], rechunk=True)
        return codes


class Encoder:
    """Encodes a column that arrives in blocks; readers make one per column.

    A table of names that has become long is closed and another begun, so that the cost of a block
    stays bounded however many names there are.
    """

    LONGEST = 1 << 20

    def __init__(self) -> None:
        self._table = NameTable()
        self._codes: list[Codes] = []
        self._closed: list[Ids] = []

    def add(self, values: pl.Series) -> None:
        """Encode the next block."""
        self._codes.append(self._table.codes(values))
        if len(self._table.names) > self.LONGEST:
            self._close()

    def finish(self) -> Ids:
        """Return the whole column."""
        if self._codes or not self._closed:
            self._close()
        return Ids.concatenate(self._closed)

    def _close(self) -> None:
        codes = np.concatenate([np.zeros(0, np.int32), *self._codes])
        self._closed.append(Ids(codes, self._table.names))
        self._table, self._codes = NameTable(), []


Columns = tuple[Ids, Ids, Ids | None]
"""Enrol, test and side of every trial."""


def trial_codes(columns: Columns, model: Columns | None = None) -> IntArray:
    """One integer per row, equal where the trial is the same; in the tables of ``model``, if given,
    and -1 for trials that it cannot hold.
    """
    codes = np.zeros(len(columns[0]), np.int64)
    unknown = np.zeros(len(codes), bool)
    for column, like in zip(columns, model or columns, strict=True):
        if column is not None and like is not None:
            own = column.codes
            if column.names is not like.names:
                own = lookup(column.names, like.names)[own]
                unknown |= own < 0
            codes *= len(like.names)
            codes += own
    codes[unknown] = -1
    return codes


def first_occurrences(codes: IntArray) -> BoolArray | None:
    """Mask of the rows whose trial did not occur before; ``None`` if all are different."""
    series = pl.Series(codes)
    if series.n_unique() == len(codes):
        return None
    mask: BoolArray = series.is_first_distinct().to_numpy()
    return mask


def match(codes: IntArray, others: IntArray) -> IntArray:
    """Row in ``others`` of each entry of ``codes``; -1 where it has none.

    The entries of ``others`` are all different, but for -1, which matches nothing.
    """
    if len(codes) == len(others) and np.array_equal(codes, others):
        return np.where(codes < 0, -1, np.arange(len(codes), dtype=np.int64))
    wanted, rows = _sorted(codes)
    known, other_rows = _sorted(others)
    partner = np.full(len(codes), -1, np.int64)
    if np.array_equal(wanted, known):
        partner[rows] = other_rows
    elif len(known):
        place = np.searchsorted(known, wanted)
        place[place == len(known)] = 0
        same = known[place] == wanted
        partner[rows[same]] = other_rows[place[same]]
    partner[codes < 0] = -1
    return partner


def _sorted(codes: IntArray) -> tuple[IntArray, IntArray]:
    """Sort codes and say from which row each came; as one integer if both fit, which is faster."""
    bits = max(len(codes) - 1, 0).bit_length()
    largest, smallest = (int(codes.max()), int(codes.min())) if len(codes) else (0, 0)
    if smallest < -1 or (largest + 1).bit_length() + bits > 63:
        order = np.argsort(codes, kind="stable")
        return codes[order], order
    packed = ((codes + 1) << bits) | np.arange(len(codes), dtype=np.int64)
    packed.sort()
    return (packed >> bits) - 1, packed & ((1 << bits) - 1)


def digest_of_trials(columns: Columns, label: Labels | None) -> str:
    """First 8 hex digits of a SHA-256 over the sorted names and the sorted trials with labels."""
    sha = hashlib.sha256(b"unmask trials 1\n")
    codes = np.zeros(len(columns[0]), np.int64)
    for column in (column for column in columns if column is not None):
        ordered = column.alphabetical()
        sha.update("\n".join(ordered.names.to_list()).encode() + b"\n\n")
        codes = codes * len(ordered.names) + ordered.codes
    codes = codes * 4 + (3 if label is None else label.astype(np.int64) + 1)
    codes.sort()
    sha.update(codes.astype("<i8", copy=False).data)
    return sha.hexdigest()[:8]


def digest_of_scores(label: Labels | None, systems: list[FloatArray]) -> str:
    """Digest for scores without identifiers: over the sorted rows of labels and scores."""
    sha = hashlib.sha256(b"unmask scores 1\n")
    columns = [values + 0.0 for values in systems]
    if label is not None:
        columns.append(label.astype(np.float64))
    order = np.lexsort(columns)
    for values in columns:
        sha.update(values[order].astype("<f8", copy=False).tobytes())
    return sha.hexdigest()[:8]


def distinct_names(files: Sequence[str], names: list[list[str]]) -> list[list[str]]:
    """Names of systems over several files; those that two share get the folder of their file."""
    plain = [name for group in names for name in group]
    if len(set(plain)) == len(plain):
        return names
    repeated = {name for name in plain if plain.count(name) > 1}
    folders = [PurePath(file).parent.name for file in files]
    named = [
        [f"{folder}/{name}" if name in repeated and folder else name for name in group]
        for folder, group in zip(folders, names, strict=True)
    ]
    seen: Counter[str] = Counter()
    for group in named:
        for i, name in enumerate(group):
            seen[name] += 1
            group[i] = name if seen[name] == 1 else f"{name} ({seen[name]})"
    return named
