"""Names for the array types that trials are made of, and the checks they share."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int32]
Labels = NDArray[np.int8]
Floats = NDArray[np.float64]
Vectors = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]
Index = NDArray[np.int64]

T = TypeVar("T", bound=np.generic)


def read_only(array: NDArray[T]) -> NDArray[T]:
    """Return a view that cannot be written through; the caller's own array stays as it was."""
    view = array.view()
    view.flags.writeable = False
    return view


def as_index(selection: Any, length: int) -> Index:
    """Turn a boolean mask or an array of positions into positions."""
    array = np.asarray(selection)
    if array.dtype == np.bool_:
        if array.shape != (length,):
            raise ValueError(f"a mask of {length} entries is needed, got shape {array.shape}")
        return np.flatnonzero(array)
    return array.astype(np.int64, casting="same_kind") if array.size else np.zeros(0, np.int64)
