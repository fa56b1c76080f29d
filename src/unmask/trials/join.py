"""Trials as single integers: duplicates and joins by (enrol, test[, side]), never by position."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import PurePath

import numpy as np
import polars as pl

from unmask.base import BoolArray, FloatArray, IntArray, Labels
from unmask.trials.ids import Ids, lookup

Columns = tuple[Ids, Ids, Ids | None]
"""Enrol, test and side of every trial."""


def trial_codes(columns: Columns) -> IntArray:
    """One integer per row, equal where the trial is the same."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in (column for column in columns if column is not None):
        codes *= len(column.names)
        codes += column.codes
    return codes


def codes_like(columns: Columns, model: Columns) -> IntArray:
    """Trial codes of one list in the tables of another; -1 for trials that it cannot hold."""
    codes = np.zeros(len(columns[0]), np.int64)
    unknown = np.zeros(len(codes), bool)
    for column, like in zip(columns, model, strict=True):
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
    seen: dict[str, int] = {}
    return [[_numbered(name, seen) for name in group] for group in named]


def _numbered(name: str, seen: dict[str, int]) -> str:
    seen[name] = seen.get(name, 0) + 1
    return name if seen[name] == 1 else f"{name} ({seen[name]})"
