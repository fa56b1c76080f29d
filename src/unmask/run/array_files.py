"""Trained back-ends on disk: named arrays in an npz file, without pickle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from unmask.errors import InputError
from unmask.run.files import atomic_path

Arrays = dict[str, npt.NDArray[Any]]


def write_arrays(path: str | Path, kind: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write under a temporary name in the same folder, then rename."""
    named: dict[str, Any] = {**arrays, "format": np.asarray(kind)}
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **named)


def read_arrays(path: str | Path, kind: str, names: Sequence[str]) -> Arrays:
    """Read arrays of a file of this kind; all ``names`` must be there."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, BadZipFile) as error:
        raise InputError(f"{path}: expected a {kind} file (npz): {error}") from None
    found = str(arrays.pop("format", "no format"))
    if found != kind:
        raise InputError(f"{path}: expected the format {kind}, found {found}")
    missing = [name for name in names if name not in arrays]
    if missing:
        raise InputError(f"{path}: expected the arrays {', '.join(missing)}, found none of them")
    return arrays
