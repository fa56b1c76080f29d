"""HDF5: the four spellings of BOSARIS scores and keys, and what embeddings share with them.

Files are opened by another process (:mod:`.guard`).
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.errors import InputError
from unmask.run import load_arrays
from unmask.trials.formats import BOSARIS, BOSARIS_KEY
from unmask.trials.readers.files import Input
from unmask.trials.readers.guard import decoded
from unmask.trials.readers.numpy import parse_matrix
from unmask.trials.readers.tables import Parsed

ROWS = ("ID/row_ids", "modelset", "model_names", "enroll_ids", "enrol_ids")
COLUMNS = ("ID/column_ids", "segset", "test_names", "test_ids")
SCORES = ("scores", "score_mat", "scoremat")
MASKS = ("score_mask", "scoremask", "mask")


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
    def texts(self) -> npt.NDArray[np.str_]:
        """Text, or any numbers as such."""
        return self.values.ravel().astype(str) if self.kind == "numbers" else self.strings


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
    found = datasets(source)
    if not is_bosaris(found):
        raise InputError(
            f"{source.name}: expected {BOSARIS.layout}, found {', '.join(found) or 'nothing'}"
        )
    try:
        rows = found[next(name for name in ROWS if name in found)].strings
        columns = found[next(name for name in COLUMNS if name in found)].strings
        label, mask = _label_and_mask(found)
        name = _first(found, SCORES)
        scores = None if name is None or as_key else found[name].numbers
    except ValueError as error:
        raise InputError(f"{source.name}: {error}") from None
    if name is None and label is None:
        raise InputError(
            f"{source.name}: expected scores or labels, found an index of trials without either"
        )
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


def _first(found: Mapping[str, Dataset], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in found), None)


def _label_and_mask(found: Mapping[str, Dataset]) -> tuple[Any, Any]:
    name = _first(found, MASKS)
    mask = None if name is None else found[name].numbers
    if "tar_mask" in found and "non_mask" in found:
        target, nontarget = found["tar_mask"].numbers != 0, found["non_mask"].numbers != 0
        if (target & nontarget).any():
            raise ValueError("expected a trial in one class, found trials in both")
        return target.astype(np.int8) - nontarget.astype(np.int8), mask
    if "trial_mask" in found:
        trial = found["trial_mask"].numbers
        if (trial == -1).any():
            return trial, mask
        return None, trial if mask is None else mask
    return None, mask
