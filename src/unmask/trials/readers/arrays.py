"""Scores, keys and embeddings in arrays of NumPy and HDF5 files: by class, with labels, as columns,
as matrices of trials in the four spellings of BOSARIS. Nothing is unpickled.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from unmask.base import FloatArray, Labels
from unmask.errors import InputError
from unmask.run import load_arrays, npy_array
from unmask.trials.formats import NONTARGET, TARGET, UNKNOWN, encode_labels, format_named
from unmask.trials.ids import text_ids
from unmask.trials.problems import LABEL, no_trials, refuse_nan
from unmask.trials.readers.detect import Wanted
from unmask.trials.readers.files import Input
from unmask.trials.readers.guard import decoded
from unmask.trials.readers.tables import Parsed, TypedRows, open_headed

CLASSES = (("tar", "non"), ("target", "nontarget"), ("tgt", "imp"))
ROWS = ("ID/row_ids", "modelset", "model_names", "enroll_ids", "enrol_ids")
COLUMNS = ("ID/column_ids", "segset", "test_names", "test_ids")
SCORES = ("scores", "score_mat", "scoremat")
MASKS = ("score_mask", "scoremask", "mask")


def load_npz(source: Input) -> dict[str, np.ndarray]:
    """Arrays of an archive, never unpickling anything."""
    return load_arrays(io.BytesIO(source.read_all()), source.name)


def parse_npz(source: Input, wanted: Wanted) -> Parsed:
    """Read scores or a key; arrays that are named as columns are those of a table."""
    arrays, name, columns = load_npz(source), source.name, wanted.columns
    for pair in CLASSES if columns is None else ():
        if set(pair) <= arrays.keys():
            parts = [_numbers(arrays[one], name, f"{one} scores") for one in pair]
            label = np.repeat(np.array([TARGET, NONTARGET], np.int8), [len(part) for part in parts])
            return _unnamed(source, np.concatenate(parts), label, "scores of the two classes")
    scores, labels = arrays.get("scores"), arrays.get("labels")
    if scores is not None and scores.ndim == 2 and {"enrol", "test"} <= arrays.keys():
        cells = {
            "scores": None if wanted.as_key else scores,
            "mask": arrays.get("mask"),
            "labels": None if labels is None else _classes(labels, name),
        }
        return _matrix(source, "npz", arrays["enrol"], arrays["test"], cells)
    if scores is not None and labels is not None and len(arrays) == 2 and columns is None:
        values = _numbers(scores, name, "scores")
        if labels.shape != values.shape:
            raise InputError(name, "as many labels as scores", f"{labels.shape} and {values.shape}")
        label = _labels_of(_words(labels, name), lambda row: f"{name}, entry {row + 1}")
        return _unnamed(source, values, label, "scores and labels")
    lengths = {array.shape for array in arrays.values()}
    if len(lengths) != 1 or len(next(iter(lengths))) != 1:
        held = ", ".join(f"{key} {array.shape}" for key, array in arrays.items())
        hint = ": unmask eval --pairs all makes trials of embeddings" if "embed" in held else ""
        layout = format_named("npz").layout
        raise InputError(name, layout, f"{held or 'an empty archive'}{hint}")
    spelled = {} if columns is not None else {"labels": "label"}
    table = {spelled.get(key, key): _series(array, name) for key, array in arrays.items()}
    rows = TypedRows(name, pl.DataFrame(table))
    return open_headed(rows, source.stem, wanted, format="npz").in_memory()


def _series(array: np.ndarray, name: str) -> pl.Series:
    if array.dtype.kind in "biuf":
        return pl.Series(array if array.dtype != np.float16 else array.astype(np.float32))
    if array.dtype.kind in "US":
        return text_ids(array, "columns", name, each=False).to_series()
    raise InputError(name, "numbers or text", array.dtype)


def _numbers(array: np.ndarray, name: str, what: str) -> np.ndarray:
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise InputError(name, f"{what} as one row of numbers", f"{array.dtype} {array.shape}")
    values = array.astype(np.float64)
    refuse_nan(values, lambda i: f"{name}, {what}, entry {i + 1}", "a number")
    return values


def _unnamed(source: Input, scores: FloatArray, label: Labels, what: str) -> Parsed:
    """Scores and labels of trials without names."""
    if not len(label):
        raise no_trials(source.name)
    remarks = (f"{what}, no identifiers of trials",)
    where = lambda row: f"{source.name}, entry {row + 1}"  # noqa: E731
    trials = {"enrol": None, "test": None, "label": label}
    return Parsed(source.name, format_named("npz"), where, trials, {source.stem: scores}, remarks)


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
        raise InputError(where(int(bad[0])), LABEL, repr(words[int(bad[0])]))
    return labels


def _classes(labels: np.ndarray, name: str, nontarget: int | None = None) -> np.ndarray:
    """Labels of a matrix in words or numbers, ``UNKNOWN`` for no trial. In numbers 1 is a target,
    -1 a nontarget and 0 no trial; unless ``nontarget`` is given, 0 is one where -1 is absent.
    """
    if labels.dtype.kind in "US":
        words = _labels_of(_words(labels, name), lambda row: f"{name}, labels, entry {row + 1}")
        return words.reshape(labels.shape)
    if labels.dtype.kind not in "biuf":
        raise InputError(name, "labels as numbers or words", labels.dtype)
    odd = ~np.isin(labels, (-1, 0, 1))
    if odd.any():
        raise InputError(name, "labels 1, -1 or 0", f"{labels[odd][0]!r}")
    if nontarget is None:
        nontarget = -1 if (labels == -1).any() else 0
    return np.select([labels == 1, labels == nontarget], [TARGET, NONTARGET], UNKNOWN)


def _matrix(
    source: Input, format: str, rows: Any, columns: Any, cells: Mapping[str, Any]
) -> Parsed:
    """Read the scores of a matrix: those in ``mask`` and with known ``labels`` are trials."""
    name = source.name
    enrol, test = text_ids(rows, "enrol", name), text_ids(columns, "test", name)
    shape = (len(enrol), len(test))
    scores, mask, labels = (
        _fit(cells[what], shape, name, what) for what in ("scores", "mask", "labels")
    )
    chosen = np.ones(shape, bool)
    if mask is not None:
        chosen &= mask != 0
    if labels is not None:
        chosen &= labels != UNKNOWN
    i, j = np.nonzero(chosen)
    if not len(i):
        raise no_trials(name)

    def where(row: int) -> str:
        return f"{name}, cell ({int(i[row]) + 1}, {int(j[row]) + 1})"

    systems = {}
    if scores is not None:
        values = systems[source.stem] = scores[i, j].astype(np.float64)
        refuse_nan(values, where, "a score")
    if labels is not None:
        labels = labels[i, j].astype(np.int8)
    trials = {"enrol": enrol.take(i), "test": test.take(j), "label": labels}
    return Parsed(name, format_named(format), where, trials, systems)


def _fit(table: Any, shape: tuple[int, int], name: str, what: str) -> Any:
    if table is None:
        return None
    array = np.asarray(table)
    if array.dtype.kind not in "biuf":
        raise InputError(name, f"{what} as numbers", array.dtype)
    if array.shape == shape:
        return array
    if array.shape == shape[::-1]:
        return array.T
    wanted = f"{what} of {shape[0]} x {shape[1]}, as many as names"
    raise InputError(name, wanted, " x ".join(map(str, array.shape)))


def load_npy(source: Input) -> np.ndarray:
    """The array of an npy file, never unpickling anything."""
    try:
        return npy_array(source.read_all())
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{source.name}: the npy file cannot be read ({error})") from error


@dataclass(frozen=True, eq=False)
class Dataset:
    """What a dataset holds: ``kind`` is numbers, text or the name of something else."""

    name: str
    kind: str
    values: npt.NDArray[Any]
    speaker: str | None

    @property
    def numbers(self) -> npt.NDArray[Any]:
        """The numbers, in their shape."""
        if self.kind != "numbers":
            raise InputError(f"expected numbers in {self.name}, found {self.kind}")
        return self.values

    @property
    def strings(self) -> npt.NDArray[np.str_]:
        """Names; whole numbers serve as such."""
        if self.kind == "text":
            return np.array(json.loads(self.values.tobytes()), dtype=str)
        if self.kind != "numbers" or self.values.dtype.kind not in "iu":
            raise InputError(f"expected text in {self.name}, found {self.kind}")
        return self.values.ravel().astype(str)

    @property
    def texts(self) -> npt.NDArray[Any]:
        """Text, or any numbers that serve as such."""
        return self.values.ravel() if self.kind == "numbers" else self.strings


def datasets(source: Input) -> dict[str, Dataset]:
    """Every dataset of an HDF5 input by its path."""
    if find_spec("h5py") is None:
        raise InputError(f"{source.name}: reading HDF5 needs h5py (pip install 'unmask[formats]')")
    arrays = load_arrays(
        io.BytesIO(decoded(source.read_all(), source.name, "hdf5", "HDF5")), source.name
    )
    about = json.loads(arrays["about"].tobytes())
    return {
        name: Dataset(name, kind, arrays[f"a{n}"], speaker)
        for n, (name, kind, speaker) in enumerate(about)
    }


def is_bosaris(names: Mapping[str, Any]) -> bool:
    """Whether the datasets include names of rows and columns of a score matrix or key."""
    return any(row in names for row in ROWS) and any(column in names for column in COLUMNS)


def parse_bosaris(source: Input, *, as_key: bool) -> Parsed:
    """Read scores or a key in any of the four spellings."""
    data = datasets(source)
    if not is_bosaris(data):
        raise InputError(source.name, format_named("bosaris").layout, ", ".join(data) or "nothing")

    def first(names: tuple[str, ...]) -> Dataset | None:
        return next((data[name] for name in names if name in data), None)

    try:
        rows, columns = (dataset.strings for dataset in map(first, (ROWS, COLUMNS)) if dataset)
        scores, mask, labels = first(SCORES), first(MASKS), None
        chosen = mask.numbers if mask else None
        if "tar_mask" in data and "non_mask" in data:
            target, nontarget = (data[kind].numbers != 0 for kind in ("tar_mask", "non_mask"))
            if (target & nontarget).any():
                raise ValueError("expected a trial in one class, found trials in both")
            labels = target.astype(np.int8) - nontarget.astype(np.int8)
        elif "trial_mask" in data:
            trial = data["trial_mask"].numbers
            if (trial == -1).any():
                labels = trial
            elif chosen is None:
                chosen = trial
        values = scores.numbers if scores and not as_key else None
    except ValueError as error:
        raise InputError(f"{source.name}: {error}") from None
    if scores is None and labels is None:
        raise InputError(source.name, "scores or labels", "an index of trials without either")
    labels = None if labels is None else _classes(labels, source.name, -1)
    cells = {"scores": values, "mask": chosen, "labels": labels}
    return _matrix(source, "bosaris" if scores else "bosaris-key", rows, columns, cells)
