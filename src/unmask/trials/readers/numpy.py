"""NumPy files: scores by class or with labels, columns, matrices of trials; embeddings.

Matrices of trials are read here for HDF5, too.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from unmask.base import Floats, Labels
from unmask.errors import InputError
from unmask.run import load_arrays, npy_array
from unmask.trials.formats import NPZ, Format
from unmask.trials.ids import text_ids
from unmask.trials.problems import no_label, no_trials
from unmask.trials.readers.files import Input
from unmask.trials.readers.tables import Parsed, TypedRows, open_typed
from unmask.trials.trial_list import NONTARGET, TARGET, UNKNOWN, encode_labels

CLASSES = (("tar", "non"), ("target", "nontarget"), ("tgt", "imp"))


def load_npz(source: Input) -> dict[str, np.ndarray]:
    """Arrays of an archive, never unpickling anything."""
    return load_arrays(io.BytesIO(source.read_all()), source.name)


def parse_npz(source: Input, *, as_key: bool, systems: Sequence[str] | None) -> Parsed:
    """Read scores or a key."""
    arrays = load_npz(source)
    name, stem = source.name, source.stem
    for pair in CLASSES:
        if set(pair) <= arrays.keys():
            parts = [_numbers(arrays[one], name, f"{one} scores") for one in pair]
            label = np.repeat(np.array([TARGET, NONTARGET], np.int8), [len(one) for one in parts])
            return _unnamed(name, stem, np.concatenate(parts), label, "scores of the two classes")
    scores = arrays.get("scores")
    if scores is not None and scores.ndim == 2 and {"enrol", "test"} <= arrays.keys():
        cells = arrays.get("labels")
        return parse_matrix(
            name,
            stem,
            NPZ,
            rows=arrays["enrol"],
            columns=arrays["test"],
            scores=None if as_key else scores,
            mask=arrays.get("mask"),
            label=None if cells is None else _signed(cells, name),
        )
    if {"scores", "labels"} == arrays.keys():
        values, labels = _numbers(arrays["scores"], name, "scores"), arrays["labels"]
        if labels.shape != values.shape:
            raise InputError(
                f"{name}: expected as many labels as scores, found {labels.shape} and"
                f" {values.shape}"
            )
        label = _labels_of(_words(labels, name), lambda row: f"{name}, entry {row + 1}")
        return _unnamed(name, stem, values, label, "scores and labels")
    lengths = {array.shape for array in arrays.values()}
    if len(lengths) != 1 or len(next(iter(lengths))) != 1:
        held = ", ".join(f"{key} {array.shape}" for key, array in arrays.items())
        hint = ": unmask eval --pairs all makes trials of embeddings" if "embed" in held else ""
        raise InputError(f"{name}: expected {NPZ.layout}, found {held or 'an empty archive'}{hint}")
    columns = {"label" if key == "labels" else key: _series(a, name) for key, a in arrays.items()}
    rows = TypedRows(name, pl.DataFrame(columns))
    return open_typed(rows, stem, NPZ, as_key=as_key, systems=systems).in_memory()


def _series(array: np.ndarray, name: str) -> pl.Series:
    if array.dtype.kind in "biuf":
        return pl.Series(array if array.dtype != np.float16 else array.astype(np.float32))
    if array.dtype.kind in "US":
        return text_ids(array, "columns", name).to_series()
    raise InputError(f"{name}: expected numbers or text, found {array.dtype}")


def _numbers(array: np.ndarray, name: str, what: str) -> np.ndarray:
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise InputError(
            f"{name}: expected {what} as one row of numbers, found {array.dtype} {array.shape}"
        )
    values = array.astype(np.float64)
    nan = np.isnan(values)
    if nan.any():
        raise InputError(
            f"{name}, {what}, entry {int(np.flatnonzero(nan)[0]) + 1}: expected a number, found "
            f"NaN ({int(nan.sum())} in all)"
        )
    return values


def _unnamed(name: str, stem: str, scores: Floats, label: Labels, what: str) -> Parsed:
    """Scores and labels of trials without names."""
    if not len(label):
        raise no_trials(name)
    remark = f"{what}, no identifiers of trials"
    where = lambda row: f"{name}, entry {row + 1}"  # noqa: E731
    return Parsed(name, NPZ, where, label=label, systems={stem: scores}, remarks=(remark,))


def _words(labels: np.ndarray, name: str) -> pl.Series:
    series = _series(labels.ravel(), name)
    if series.dtype.is_float() and (series == series.round()).all():
        series = series.cast(pl.Int64, strict=False)
    return series.cast(pl.String)


def _labels_of(words: pl.Series, where: Callable[[int], str]) -> Labels:
    """Labels of a column of words; an unknown word is an error that names its place."""
    labels = encode_labels(words)
    bad = np.flatnonzero(labels == UNKNOWN)
    if bad.size:
        raise no_label(where(int(bad[0])), words[int(bad[0])])
    return labels


def _signed(labels: np.ndarray, name: str) -> np.ndarray:
    """Labels of a matrix as 1, -1 and 0 for no trial; where -1 is absent, 0 means nontarget."""
    if labels.dtype.kind in "US":
        words = _labels_of(_words(labels, name), lambda row: f"{name}, labels, entry {row + 1}")
        labels = words.reshape(labels.shape)
    if labels.dtype.kind == "b" or not (labels == -1).any():
        return np.where(labels == 1, 1, np.where(labels == 0, -1, 2))
    return labels


def parse_matrix(
    name: str,
    stem: str,
    format: Format,
    *,
    rows: Any,
    columns: Any,
    scores: Any = None,
    mask: Any = None,
    label: Any = None,
) -> Parsed:
    """Read the cells of a matrix as trials.

    ``mask`` marks the cells that are trials; ``label`` holds 1 for target, -1 for nontarget and 0
    for no trial. Without either, every cell is one.
    """
    enrol, test = text_ids(rows, "enrol", name), text_ids(columns, "test", name)
    shape = (len(enrol), len(test))
    tables = {"scores": scores, "mask": mask, "labels": label}
    fitted = {what: _fit(table, shape, name, what) for what, table in tables.items()}
    chosen = np.ones(shape, bool)
    if fitted["mask"] is not None:
        chosen &= fitted["mask"] != 0
    if fitted["labels"] is not None:
        unknown = ~np.isin(fitted["labels"], (-1, 0, 1))
        if unknown.any():
            raise InputError(
                f"{name}: expected labels 1, -1 or 0, found {fitted['labels'][unknown][0]!r}"
            )
        chosen &= fitted["labels"] != 0
    i, j = np.nonzero(chosen)
    if not len(i):
        raise no_trials(name)

    def where(row: int) -> str:
        return f"{name}, cell ({int(i[row]) + 1}, {int(j[row]) + 1})"

    labels, values = fitted["labels"], fitted["scores"]
    if values is not None:
        values = values[i, j].astype(np.float64)
        nan = np.flatnonzero(np.isnan(values))
        if nan.size:
            raise InputError(
                f"{where(int(nan[0]))}: expected a score, found NaN ({nan.size} in all)"
            )
    if labels is not None:
        labels = np.where(labels[i, j] == 1, TARGET, NONTARGET).astype(np.int8)
    return Parsed(
        name,
        format,
        where,
        enrol=enrol.take(i),
        test=test.take(j),
        label=labels,
        systems={} if values is None else {stem: values},
    )


def _fit(table: Any, shape: tuple[int, int], name: str, what: str) -> Any:
    if table is None:
        return None
    array = np.asarray(table)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name}: expected {what} as numbers, found {array.dtype}")
    if array.shape == shape:
        return array
    if array.shape == shape[::-1]:
        return array.T
    raise InputError(
        f"{name}: expected {what} of {shape[0]} x {shape[1]}, as many as names, found "
        f"{' x '.join(map(str, array.shape))}"
    )


def load_npy(source: Input) -> np.ndarray:
    """The array of an npy file, never unpickling anything."""
    try:
        return npy_array(source.read_all())
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{source.name}: the npy file cannot be read ({error})") from error
