"""Array types and the checks that every score array passes once, at the door."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from unmask.errors import InputError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Rows32 = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int32]
Labels = npt.NDArray[np.int8]
Vectors = npt.NDArray[np.floating[Any]]

T = TypeVar("T", bound=np.generic)


def as_scores(values: npt.ArrayLike, name: str) -> FloatArray:
    """One-dimensional float64 scores; no empty class and no NaN, but ±inf is an ordinary score."""
    scores = as_numbers(values, name)
    if scores.ndim != 1:
        raise InputError(f"{name} scores", "one dimension", f"shape {scores.shape}")
    if scores.size == 0:
        raise InputError(f"no {name} scores: both classes need at least one trial")
    reject_nan(scores, name)
    return scores


def reject_nan(scores: FloatArray, name: str) -> None:
    """Raise if any score is NaN, naming the first place and the count."""
    if scores.size and np.isnan(scores.min()):
        bad = np.isnan(scores)
        raise InputError(
            f"{name} scores: {int(bad.sum())} of {scores.size} are NaN,"
            f" the first at index {int(bad.argmax())}"
        )


def as_weights(values: npt.ArrayLike | None, size: int, name: str) -> FloatArray | None:
    """Non-negative finite weights, one per score, or ``None`` for weights of one."""
    if values is None:
        return None
    weights = as_numbers(values, name)
    if weights.shape != (size,):
        raise InputError(f"{name} weights", f"{size} numbers", f"shape {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InputError(f"{name} weights: expected finite numbers of at least 0")
    if weights.sum() == 0:
        raise InputError(f"{name} weights: all are 0, so the class is empty")
    return weights


def length_normalised(vectors: FloatArray) -> FloatArray:
    """Each row of ``vectors`` divided by its length; one of zeros has no direction: an error."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not length.all():
        row = int(np.flatnonzero(length[:, 0] == 0)[0])
        raise InputError(f"embeddings: row {row} has length 0 and cannot be normalised")
    return np.asarray(vectors / length)


def weighted_sum(values: FloatArray, weights: FloatArray) -> float:
    """Σ w·v of ``weights`` and ``values``; an infinite value of weight 0 counts for nothing."""
    with np.errstate(invalid="ignore"):
        total = float(np.dot(weights, values))
    if np.isnan(total):
        counted = weights > 0
        total = float(np.dot(weights[counted], values[counted]))
    return total


def as_array(values: Any, name: str) -> npt.NDArray[Any]:
    """An array of values or tensors; masks and complex numbers have no plain values: an error."""
    if isinstance(values, list | tuple) and any(map(_is_more, values[:1])):
        values = [as_array(value, name) for value in values]
    if isinstance(values, np.ma.MaskedArray) and values.mask.any():
        masked = f"{values.mask.sum()} of {values.size} masked: leave them out"
        raise InputError(name, "numbers without a mask", masked)
    try:
        if hasattr(values, "detach"):
            values = values.detach().cpu()
            foreign = str(values.dtype).startswith(("torch.bfloat", "torch.float8"))
            values = (values.float() if foreign else values).numpy()
        array = np.asarray(values)
    except ValueError:
        raise InputError(name, "rows of one length", "uneven ones") from None
    except (RuntimeError, TypeError) as error:
        raise InputError(name, "numbers", f"{type(values).__name__}: {error}") from None
    if array.dtype.kind in "cmM":
        raise InputError(name, "real numbers", array.dtype)
    return array


def _is_more(value: Any) -> bool:
    """Whether a value is a tensor or has a mask, which NumPy would not look at."""
    return hasattr(value, "detach") or isinstance(value, np.ma.MaskedArray)


def as_numbers(values: Any, name: str) -> FloatArray:
    """The same in double precision."""
    array = as_array(values, name)
    try:
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(name, "numbers", f"{type(values).__name__}: {error}") from None


def read_only(array: npt.NDArray[T]) -> npt.NDArray[T]:
    """Return a view that cannot be written through; the caller's own array stays as it was."""
    view = array.view()
    view.flags.writeable = False
    return view


def as_index(selection: Any, length: int) -> IntArray:
    """Turn a boolean mask or an array of positions into positions."""
    array = np.asarray(selection)
    if array.dtype == np.bool_:
        if array.shape != (length,):
            raise ValueError(f"a mask of {length} entries is needed, got shape {array.shape}")
        return np.flatnonzero(array)
    return array.astype(np.int64, casting="same_kind") if array.size else np.zeros(0, np.int64)


if TYPE_CHECKING:
    lazy = cached_property
else:

    class lazy:
        """Computed at first use and kept; threads do not wait, as for Python 3.11's cached one."""

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self.compute, self.__doc__ = compute, compute.__doc__

        def __get__(self, instance: object | None, owner: type[Any]) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self.compute.__name__] = self.compute(instance)
            return value
