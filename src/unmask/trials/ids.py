"""Identifiers as integer codes into one table of names; trials as single integers: duplicates and
joins by (enrol, test[, side]), never by position.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Self
from unicodedata import category, normalize

import numpy as np
import numpy.typing as npt
import polars as pl

from unmask.base import Codes, FloatArray, IntArray, Labels, as_index, lazy, read_only, visible
from unmask.errors import InputError

_FEW = 2000
_LONG = 128
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_UNLABELLED = 3
_NONE = ("None", "nan", "<NA>", "NaT", "--")
_ODD = r"^\s|\s$|\s\s|^$|[^\x20-\x7e]"
_UNSEEN = "\u034f\u115f\u1160\u3164\ufe0e\ufe0f"
_LOOKS = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеѕіјорсухһԁԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧανιορυıℓ",
    "ABESIJKMHOPCTYXaesijopcyxhdqwABEZHIKMNOPTYXaviopuil",
)
"""Letters of Cyrillic and Greek, and the Latin ones that look like them."""


Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Ids:
    """A column of identifiers: ``names[codes[i]]`` is the identifier of row ``i``.

    Parameters
    ----------
    codes : array of int
        Place of each row's identifier in ``names``.
    names : polars.Series of str
        Different identifiers; :meth:`from_strings` finds them.

    Examples
    --------
    >>> import unmask as um
    >>> speakers = um.Ids.from_strings(["ann", "bob", "ann"])
    >>> speakers.codes.tolist(), list(speakers)
    ([0, 1, 0], ['ann', 'bob', 'ann'])
    """

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
        """Encode strings (any sequence, numpy array or polars series); numbers become text, and
        what is missing (None, NaN) the empty text, which no speaker or utterance may have.
        """
        if isinstance(values, Ids):
            return values
        if isinstance(values, pl.Series):
            series = as_text(values).fill_null("")
        elif isinstance(values, np.ndarray):
            if values.ndim != 1 or values.dtype.kind not in "biufUSMO":
                raise ValueError(f"expected one row of text, got {values.dtype} {values.shape}")
            if values.dtype.kind == "S":
                values = np.char.decode(values, "utf-8")
            if values.dtype.kind in "fM" and not isinstance(values, np.ma.MaskedArray):
                values = np.where(np.isnan(values), "", values.astype(str))
            series = pl.Series([plain_text(value) for value in values.tolist()], dtype=pl.String)
        else:
            series = pl.Series([plain_text(value) for value in values], dtype=pl.String)
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

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_series())

    def decode(self, i: int) -> str:
        """Return the identifier of row ``i``."""
        return str(self.names[int(self.codes[i])])

    def to_series(self) -> pl.Series:
        """Return the identifiers as a polars series of strings."""
        return self.names[self.codes]

    def take(self, index: Any) -> Ids:
        """Select rows by mask or positions; the table of names is shared, not copied."""
        made = Ids(self.codes[as_index(index, len(self))], self.names)
        vars(made)["has_odd"] = self.has_odd  # of the names, whichever of them occur
        return made

    def alphabetical(self) -> Ids:
        """The same identifiers with the names that occur, in order: codes are their ranks."""
        return self._in_order

    @lazy
    def _in_order(self) -> Ids:
        order = self.present.arg_sort().to_numpy()
        rank = np.zeros(len(self.names), np.int32)
        rank[self.used[order]] = np.arange(len(order), dtype=np.int32)
        return Ids(rank[self.codes], self.present[order])

    @lazy
    def present(self) -> pl.Series:
        """The names that occur, in the order of their codes."""
        return self.names[self.used]

    @lazy
    def has_odd(self) -> bool:
        """Whether a name has blanks where names have none, or letters beyond ASCII."""
        return bool(self.names.str.contains(_ODD).any())

    @lazy
    def used(self) -> IntArray:
        """Codes that occur, ascending."""
        return np.flatnonzero(np.bincount(self.codes, minlength=len(self.names)))

    @property
    def n_unique(self) -> int:
        """Return how many different identifiers occur."""
        return len(self.used)


def plain_text(value: Any) -> str:
    """A value as text, empty where it is a mark of Python, NumPy or pandas for none."""
    text = value.decode() if isinstance(value, bytes) else str(value)
    return "" if text in _NONE and not isinstance(value, str) else text


def as_text(column: pl.Series) -> pl.Series:
    """A column of any plain type as text, null for NaN; durations as ISO 8601 has them."""
    if column.dtype == pl.Duration:
        return column.dt.to_string("iso")
    if column.dtype.is_float():
        column = column.fill_nan(None)
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


def text_ids(values: Any, what: str, name: str, *, each: bool = True) -> Ids:
    """Encode text of a file; other data, or no identifier where ``each`` needs one, is an error."""
    try:
        ids = Ids.from_strings(values)
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise InputError(name, f"{what} as text", f"other data ({error})") from error
    if each:
        check_names(what, name, ids)
    return ids


def check_names(what: str, name: str, *columns: Ids) -> None:
    """Refuse rows without an identifier, and identifiers that look the same."""
    if not any(ids.has_odd for ids in columns):
        return
    for ids in columns:
        blank = (_seen(ids.names) == "").to_numpy()[ids.codes]
        if blank.any():
            place = f"{name}, row {int(blank.argmax()) + 1}"
            raise InputError(place, f"an identifier in {what}", f"none ({blank.sum()} in all)")
    refuse_twins(pl.concat([ids.present for ids in columns]), what, name)


def refuse_twins(names: pl.Series, what: str, name: str) -> None:
    """Names that differ by blanks, look-alike letters or Unicode form alone are an error."""
    if not names.str.contains(_ODD).any():
        return
    names = names.unique(maintain_order=True)
    seen = _seen(names)
    twins = seen.filter(seen.is_duplicated())
    if len(twins):
        alike = names.filter(seen == twins[0])
        actual = f"{' and '.join(map(ascii, alike))} ({twins.n_unique()} such names in all)"
        wanted = f"{what} that differ by more than blanks, look-alike letters or Unicode form"
        raise InputError(name, wanted, actual)


def _seen(names: pl.Series) -> pl.Series:
    """Names as readers see them."""
    odd = names.str.contains(_ODD).arg_true()

    def seen(one: str) -> str:
        shown = (c for c in one if category(c) != "Cf" and c not in _UNSEEN)
        return " ".join(normalize("NFKD", "".join(shown)).translate(_LOOKS).split())

    folded = pl.Series([seen(one) for one in names.gather(odd)], dtype=pl.String)
    return names.clone().scatter(odd, folded) if len(odd) else names


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


class CodeBuilder:
    """Encodes a column that arrives in blocks; a long table of names is closed and another begun,
    so that the cost of a block stays bounded.
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
    """One integer per trial, in the tables of ``model`` if given: -1 where it cannot hold one."""
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


def codes_of_pairs(columns: Columns) -> IntArray:
    """The same for either order of the two sides; with a side of the segment, for one of them."""
    if columns[2] is not None:
        return trial_codes(columns)
    names, sides = unify(columns[:2])
    return np.minimum(*sides).astype(np.int64) * len(names) + np.maximum(*sides)


def repeats(keys: Sequence[IntArray | Hashes], label: Labels | None = None) -> tuple[IntArray, int]:
    """Rows whose ``keys`` came before, of those with labels the ones labelled unlike the first, in
    order; and where the keys of the first of these rows came before.
    """
    frame = pl.DataFrame({f"key {number}": key for number, key in enumerate(keys)})
    names, rows = frame.columns, np.zeros(0, np.int64)
    if frame["key 0"].n_unique() == frame.height:
        return rows, 0
    if label is None:
        every = frame.to_series() if len(names) == 1 else frame.to_struct()
        rows = np.flatnonzero(~every.is_first_distinct().to_numpy())
    else:
        frame = frame.with_columns(label=label, row=pl.int_range(pl.len()))
        spread = pl.col("label").max() != pl.col("label").min()
        unclear = frame.group_by(names).agg(spread).filter("label")
        first = pl.col("label").sort_by("row").first().over(names)
        wrong = frame.join(unclear, on=names, how="semi").filter(pl.col("label") != first)
        rows = np.sort(wrong["row"].to_numpy())
    before = np.logical_and.reduce([key == key[rows[:1]] for key in keys if rows.size])
    return rows, int(np.argmax(before))


def match(codes: IntArray, others: IntArray) -> IntArray:
    """Row in ``others``, all different, of each entry of ``codes``; -1 where it has none, and of
    -1.
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
        order = np.argsort(codes)
        return codes[order], order
    packed = ((codes + 1) << bits) | np.arange(len(codes), dtype=np.int64)
    packed.sort()
    return (packed >> bits) - 1, packed & ((1 << bits) - 1)


def mixed(words: Hashes) -> Hashes:
    """Hashes of 64 bits whose every bit depends on all bits of ``words`` (SplitMix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def name_hashes(names: pl.Series) -> Hashes:
    """A hash of each name that no version of any library changes: its words of 8 bytes w_k give
    Σ w_k·m^k mod 2⁶⁴, m odd, mixed; of a long name, those of its SHA-256.
    """
    sizes = names.str.len_bytes()
    if len(names) and int(sizes.max()) > _LONG:  # type: ignore[arg-type]
        encoded = (name.encode() for name in names.to_list())
        short = [n if len(n) <= _LONG else hashlib.sha256(n).digest() for n in encoded]
        data, width = b"".join(name.ljust(_LONG, b"\0") for name in short), _LONG
    else:
        width = 8 * -(-max(int(sizes.max() or 0), 1) // 8)  # type: ignore[arg-type]
        if sizes.sum() == names.str.len_chars().sum():
            data = names.str.pad_end(width, "\0").str.join("").item().encode()
        else:
            data = b"".join(name.encode().ljust(width, b"\0") for name in names.to_list())
    words = np.frombuffer(data, "<u8").reshape(len(names), width // 8)
    hashes = np.zeros(len(names), np.uint64)
    for word in words.T[::-1]:
        hashes = hashes * MULTIPLIER + word
    return mixed(hashes)


def pair_hashes(enrol: Hashes, test: Hashes) -> Hashes:
    """One hash per trial of those of its sides: but for the last bit, the same either way round."""
    low, high = np.minimum(enrol, test), np.maximum(enrol, test)
    return (mixed(low * MULTIPLIER + high) << np.uint64(1)) | (enrol > test)


class Digest:
    """Eight hex digits that name labelled trials, whatever their order: a sum of a hash of each."""

    def __init__(self) -> None:
        self.count = self.total = 0

    def add(self, hashes: Hashes, label: Labels | None) -> Self:
        """Take trials with their labels."""
        kind = np.full(len(hashes), _UNLABELLED) if label is None else label + 1
        self.count += len(hashes)
        self.total += int(mixed(hashes + (kind + 1).astype(np.uint64) * MULTIPLIER).sum())
        return self

    def __str__(self) -> str:
        text = f"unmask trials 2\n{self.count}\n{self.total % 2**64:016x}\n"
        return hashlib.sha256(text.encode()).hexdigest()[:8]


def trial_hashes(columns: Columns) -> Hashes:
    """A hash of each trial, of the names of enrolment and test."""
    return pair_hashes(*(name_hashes(ids.names)[ids.codes] for ids in columns[:2]))


def score_hashes(systems: Sequence[FloatArray]) -> Hashes:
    """A hash for each row of scores."""
    hashes = np.zeros(len(systems[0]), np.uint64)
    for values in systems:
        hashes = mixed(hashes * MULTIPLIER + (values + 0.0).view(np.uint64))
    return hashes


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
