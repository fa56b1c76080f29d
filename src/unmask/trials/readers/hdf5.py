"""HDF5: the four spellings of BOSARIS scores and keys, and what embeddings share with them."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from unmask.errors import InputError
from unmask.run import check_memory
from unmask.trials.formats import BOSARIS, BOSARIS_KEY
from unmask.trials.readers.files import Input
from unmask.trials.readers.numpy import parse_matrix
from unmask.trials.readers.tables import Parsed

T = TypeVar("T")
ROWS = ("ID/row_ids", "modelset", "model_names", "enroll_ids", "enrol_ids")
COLUMNS = ("ID/column_ids", "segset", "test_names", "test_ids")
SCORES = ("scores", "score_mat", "scoremat")
MASKS = ("score_mask", "scoremask", "mask")


def read_hdf5(source: Input, read: Callable[[Any], T]) -> T:
    """Open an HDF5 input and apply ``read`` to the file; all failures become our own error."""
    try:
        import h5py
    except ImportError as error:
        raise InputError(
            f"{source.name}: reading HDF5 needs h5py (pip install 'unmask[formats]')"
        ) from error
    data = source.read_all()
    try:
        with h5py.File(io.BytesIO(data), "r") as file:
            return read(file)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{source.name}: the HDF5 file cannot be read ({error})") from error


def datasets(file: Any) -> dict[str, Any]:
    """Every dataset of a file by its path."""
    found: dict[str, Any] = {}

    def visit(name: str, item: Any) -> None:
        if hasattr(item, "shape"):
            if item.external or item.is_virtual:
                raise ValueError(f"the dataset {name} lies in other files, which are not read")
            found[name] = item

    file.visititems(visit)
    check_memory(sum(int(item.nbytes) for item in found.values()), "HDF5", "numbers")
    return found


def strings(dataset: Any) -> np.ndarray:
    """Text of a dataset, whether stored as fixed or variable length, padding removed."""
    values = np.asarray(dataset[()]).ravel()
    if values.dtype.kind == "O":
        values = np.array(
            [v.decode("utf-8") if isinstance(v, bytes) else str(v) for v in values], dtype=str
        )
    elif values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8")
    elif values.dtype.kind not in "iuU":
        raise ValueError(f"expected text, found {values.dtype}")
    return np.char.rstrip(values.astype(str), " \0")


def is_bosaris(names: Mapping[str, Any]) -> bool:
    """Whether the datasets include names of rows and columns of a score matrix or key."""
    return any(row in names for row in ROWS) and any(column in names for column in COLUMNS)


def parse_bosaris(source: Input, *, as_key: bool) -> Parsed:
    """Read scores or a key in any of the four spellings."""

    def read(file: Any) -> Parsed:
        found = datasets(file)
        if not is_bosaris(found):
            raise InputError(
                f"{source.name}: expected {BOSARIS.layout}, found {', '.join(found) or 'nothing'}"
            )
        rows = strings(found[next(name for name in ROWS if name in found)])
        columns = strings(found[next(name for name in COLUMNS if name in found)])
        label, mask = _label_and_mask(found)
        name = _first(found, SCORES)
        if name is None and label is None:
            raise InputError(
                f"{source.name}: expected scores or labels, found an index of trials without either"
            )
        scores = None if name is None or as_key else found[name][()]
        return parse_matrix(
            source.name,
            source.stem,
            BOSARIS_KEY if name is None else BOSARIS,
            rows=rows,
            columns=columns,
            scores=scores,
            mask=mask,
            label=label,
        )

    return read_hdf5(source, read)


def _first(found: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in found), None)


def _label_and_mask(found: Mapping[str, Any]) -> tuple[Any, Any]:
    name = _first(found, MASKS)
    mask = None if name is None else found[name][()]
    if "tar_mask" in found and "non_mask" in found:
        target, nontarget = found["tar_mask"][()] != 0, found["non_mask"][()] != 0
        if (target & nontarget).any():
            raise ValueError("expected a trial in one class, found trials in both")
        return target.astype(np.int8) - nontarget.astype(np.int8), mask
    if "trial_mask" in found:
        trial = found["trial_mask"][()]
        if (trial == -1).any():
            return trial, mask
        return None, trial if mask is None else mask
    return None, mask


def texts(dataset: Any) -> np.ndarray:
    """A one-dimensional dataset as text, whatever it holds."""
    values = np.asarray(dataset[()]).ravel()
    return values.astype(str) if values.dtype.kind in "biuf" else strings(dataset)
