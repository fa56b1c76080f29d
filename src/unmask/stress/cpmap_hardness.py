"""The order of the trials on the axes of a C-P map: hardest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.arrays import FloatArray, IntArray, reject_nan
from unmask.errors import InputError

Hardness = npt.ArrayLike | Sequence[npt.ArrayLike]
COMBINATIONS = ("mean", "rank")


@dataclass(frozen=True, eq=False)
class Order:
    """``hardest_first`` lists trial numbers; ``place`` is where each trial stands, in (0, 1).

    Trials that nothing tells apart share the mean of their places.
    """

    hardest_first: IntArray
    place: FloatArray


def combined(references: Hardness, size: int, *, combine: str, name: str) -> FloatArray:
    """One reference score per trial: that of one system, or the mean over systems.

    ``mean`` averages the scores, ``rank`` their ranks within the class (ties share the mean rank).
    """
    if combine not in COMBINATIONS:
        raise InputError(f"hardness: expected combine mean or rank, found {combine}")
    rows = [_column(row, size, name) for row in _rows(references, name)]
    if combine == "rank":
        rows = [_ranks(row) for row in rows]
    if len(rows) == 1:
        return rows[0]
    with np.errstate(invalid="ignore"):
        mean = np.mean(rows, axis=0)
    reject_nan(mean, f"mean {name}")
    return np.asarray(mean)


def order(scores: FloatArray, hardness: FloatArray | None, *, highest_first: bool) -> Order:
    """Sort by hardness, ties by the system's own score, so that the input order plays no part.

    Targets are hard where scores are low, nontargets where they are high (``highest_first``).
    """
    sign = -1.0 if highest_first else 1.0
    keys = [sign * scores] if hardness is None else [sign * hardness, sign * scores]
    hardest_first = np.lexsort(keys[::-1])
    changes = np.zeros(scores.size, bool)
    for key in keys:
        changes[1:] |= np.diff(key[hardest_first]) != 0
    changes[0] = True
    return Order(hardest_first, _mean_places(hardest_first, changes))


def _ranks(values: FloatArray) -> FloatArray:
    """Ranks from the lowest; equal values share the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[place], np.float64)


def _mean_places(hardest_first: IntArray, changes: npt.NDArray[np.bool_]) -> FloatArray:
    size = changes.size
    starts = np.append(np.flatnonzero(changes), size)
    middle = (starts[:-1] + starts[1:]) / (2 * size)
    place = np.empty(size)
    place[hardest_first] = np.repeat(middle, np.diff(starts))
    return place


def _rows(references: Any, name: str) -> list[Any]:
    """A single array is one reference; a sequence of arrays (or two dimensions) is several."""
    if isinstance(references, np.ndarray):
        rows = [references] if references.ndim == 1 else list(references)
    else:
        rows = list(references)
        if rows and all(np.ndim(row) == 0 for row in rows):
            rows = [rows]
    if not rows:
        raise InputError(f"{name}: expected at least one reference, found none")
    return rows


def _column(values: npt.ArrayLike, size: int, name: str) -> FloatArray:
    try:
        column = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: expected numbers: {error}") from None
    if column.shape != (size,):
        found = column.size if column.ndim == 1 else f"shape {column.shape}"
        raise InputError(f"{name}: expected {size} values, one per trial, found {found}")
    reject_nan(column, name)
    return column
