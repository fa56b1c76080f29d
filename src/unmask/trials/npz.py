"""NumPy archives: scores by class, scores with labels, tables of columns, matrices; embeddings."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from unmask.errors import InputError
from unmask.run import check_memory
from unmask.trials.files import Input
from unmask.trials.frames import parse_frame
from unmask.trials.ids import Ids, text_ids
from unmask.trials.matrix import parse_matrix
from unmask.trials.parsed import Parsed, labels_of
from unmask.trials.registry import Format
from unmask.trials.scores import Scores
from unmask.trials.text import Numbers

NPZ = Format(
    "npz",
    "score",
    "NumPy archive of scores",
    "arrays tar, non; or scores, labels; or a matrix scores with enrol, test names; or one array "
    "per column of a long table",
    "np.savez(path, tar=..., non=...)",
    container="npz",
    extensions=(".npz",),
)
CLASSES = (("tar", "non"), ("target", "nontarget"), ("tgt", "imp"))


def load_npz(source: Input) -> dict[str, np.ndarray]:
    """Arrays of an archive, never unpickling anything."""
    try:
        data = io.BytesIO(source.read_all())
        with zipfile.ZipFile(data) as archive:
            check_memory(sum(m.file_size for m in archive.infolist()), source.name, "arrays")
        with np.load(data, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except InputError:
        raise
    except ValueError as error:
        if "pickle" in str(error).lower():
            raise InputError(
                f"{source.name}: expected plain arrays, found pickled objects, which are not read"
            ) from error
        raise InputError(f"{source.name}: the npz file cannot be read ({error})") from error
    except (Exception, zipfile.BadZipFile) as error:
        raise InputError(f"{source.name}: the npz file cannot be read ({error})") from error
    return _check(source.name, arrays)


def _check(name: str, arrays: dict[str, Any]) -> dict[str, np.ndarray]:
    for entry, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise InputError(f"{name}: expected arrays, found {entry}, which is none")
    return arrays


def parse_npz(source: Input, *, as_key: bool, systems: Sequence[str] | None) -> Parsed:
    """Read scores or a key."""
    arrays = load_npz(source)
    name, stem = source.name, source.stem
    for target, nontarget in CLASSES:
        if {target, nontarget} <= arrays.keys():
            return _by_class(name, stem, arrays[target], arrays[nontarget])
    scores = arrays.get("scores")
    if scores is not None and scores.ndim == 2 and {"enrol", "test"} <= arrays.keys():
        label = arrays.get("labels")
        return parse_matrix(
            name,
            stem,
            NPZ,
            rows=arrays["enrol"],
            columns=arrays["test"],
            scores=None if as_key else scores,
            mask=arrays.get("mask"),
            label=None if label is None else _signed(label, name),
        )
    if {"scores", "labels"} == arrays.keys():
        return _with_labels(name, stem, arrays["scores"], arrays["labels"])
    lengths = {array.shape for array in arrays.values()}
    if len(lengths) != 1 or len(next(iter(lengths))) != 1:
        found = ", ".join(f"{key} {array.shape}" for key, array in arrays.items())
        raise InputError(f"{name}: expected {NPZ.layout}, found {found or 'an empty archive'}")
    columns = {"label" if key == "labels" else key: _series(a, name) for key, a in arrays.items()}
    return parse_frame(name, stem, pl.DataFrame(columns), NPZ, as_key=as_key, systems=systems)


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


def _by_class(name: str, stem: str, target: np.ndarray, nontarget: np.ndarray) -> Parsed:
    scores = Scores.from_arrays(
        _numbers(target, name, "target scores"), _numbers(nontarget, name, "nontarget scores")
    )
    if not len(scores):
        raise InputError(f"{name}: the file holds no trials")
    return Parsed(
        name,
        NPZ,
        lambda row: f"{name}, entry {row + 1}",
        label=scores.label,
        systems={stem: Numbers(scores.scores(), None)},
        remarks=("scores of the two classes, no identifiers of trials",),
    )


def _with_labels(name: str, stem: str, scores: np.ndarray, labels: np.ndarray) -> Parsed:
    def where(row: int) -> str:
        return f"{name}, entry {row + 1}"

    values = _numbers(scores, name, "scores")
    if labels.shape != values.shape or not len(values):
        raise InputError(
            f"{name}: expected as many labels as scores, at least one, found {labels.shape} and "
            f"{values.shape}"
        )
    label = labels_of(_words(labels, name), where)
    return Parsed(
        name,
        NPZ,
        where,
        label=label,
        systems={stem: Numbers(values, None)},
        remarks=("scores and labels, no identifiers of trials",),
    )


def _words(labels: np.ndarray, name: str) -> Ids:
    series = _series(labels.ravel(), name)
    if series.dtype.is_float() and (series == series.round()).all():
        series = series.cast(pl.Int64, strict=False)
    return Ids.from_strings(series.cast(pl.String))


def _signed(labels: np.ndarray, name: str) -> np.ndarray:
    """Labels of a matrix as 1, -1 and 0 for no trial; where -1 is absent, 0 means nontarget."""
    if labels.dtype.kind in "US":
        words = labels_of(_words(labels, name), lambda row: f"{name}, labels, entry {row + 1}")
        labels = words.reshape(labels.shape)
    if labels.dtype.kind == "b" or not (labels == -1).any():
        return np.where(labels == 1, 1, np.where(labels == 0, -1, 2))
    return labels
