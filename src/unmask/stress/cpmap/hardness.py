"""The order of the trials on the axes of a C-P map: hardest first."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from unmask.base import BoolArray, FloatArray, IntArray, reject_nan
from unmask.errors import InputError

Hardness = npt.ArrayLike | Sequence[npt.ArrayLike]
COMBINATIONS = ("rank", "mean")


@dataclass(frozen=True, eq=False)
class Order:
    """How the trials of one class stand on their axis; :func:`ordered` makes it for a map.

    ``hardest_first`` lists trial numbers; ``place`` is where each trial stands, in (0, 1): trials
    that nothing tells apart share the mean of their places. ``digest`` names the order that the
    hardness gives, ties included, whatever its scale: two systems with one digest are ordered
    alike. ``tied`` is the size of the largest group of equal hardness, within which the system's
    own scores decide. ``own`` tells that the system's own scores are among those that order.
    ``unlike`` is how many times wider the widest reference spreads than the narrowest, where their
    scores are averaged.
    """

    hardest_first: IntArray
    place: FloatArray
    digest: str
    tied: int
    own: bool
    unlike: float = 1.0


def ordered(scores: FloatArray, hardness: Hardness | None, *, combine: str, name: str) -> Order:
    """Sort one class, hardest first; ties by the own score, so the input order plays no part.

    Targets are hard where the reference is low, nontargets where it is high. Without hardness the
    system's own scores order. Several references become one by the mean of their ranks within the
    class (``rank``; ties share the mean rank) or of their scores (``mean``).
    """
    if combine not in COMBINATIONS:
        raise InputError(f"hardness: expected combine rank or mean, found {combine}")
    sign = -1.0 if name == "nontarget" else 1.0
    rows = [scores]
    if hardness is not None:
        name = f"{name} hardness"
        rows = [_column(row, scores.size, name) for row in references(hardness, name)]
    reference = sign * combined(rows, combine=combine, name=name)
    hardest_first = np.lexsort([sign * scores, reference])
    groups = _groups(reference[hardest_first])
    starts = np.append(np.flatnonzero(groups), groups.size)
    codes = np.empty(groups.size, np.int64)
    codes[hardest_first] = np.cumsum(groups)
    return Order(
        hardest_first,
        _mean_places(hardest_first, groups | _groups(scores[hardest_first])),
        hashlib.blake2b(codes.tobytes(), digest_size=8).hexdigest(),
        int(np.diff(starts).max()),
        own=hardness is None or any(_alike(row, scores) for row in rows),
        unlike=_unlike(rows) if combine == "mean" and len(rows) > 1 else 1.0,
    )


def combined(rows: list[FloatArray], *, combine: str, name: str) -> FloatArray:
    """One reference score per trial: that of one system, or the mean over systems."""
    if len(rows) == 1:
        return rows[0]
    if combine == "rank":
        rows = [rankdata(row) for row in rows]
    with np.errstate(invalid="ignore"):
        mean = np.mean(rows, axis=0)
    reject_nan(mean, f"mean {name}")
    return np.asarray(mean)


def references(hardness: Any, name: str = "hardness") -> list[Any]:
    """A single array is one reference; a sequence of arrays (or two dimensions) is several."""
    if isinstance(hardness, np.ndarray):
        rows = [hardness] if hardness.ndim == 1 else list(hardness)
    else:
        rows = list(hardness)
        if rows and all(np.ndim(row) == 0 for row in rows):
            rows = [rows]
    if not rows:
        raise InputError(f"{name}: expected at least one reference, found none")
    return rows


def _groups(keys: FloatArray) -> BoolArray:
    """True where a sorted key differs from the one before."""
    changes = np.ones(keys.size, bool)
    changes[1:] = keys[1:] != keys[:-1]
    return changes


def _alike(row: FloatArray, scores: FloatArray) -> bool:
    """Whether two columns put the trials in one order, ties included."""
    by_row = np.argsort(row, kind="stable")
    in_order = scores[by_row]
    return bool(
        np.all(in_order[1:] >= in_order[:-1])
        and np.array_equal(_groups(row[by_row]), _groups(in_order))
    )


def _unlike(rows: list[FloatArray]) -> float:
    """How many times wider the widest column spreads than the narrowest (quartiles)."""
    spreads = [np.subtract(*np.quantile(row, (0.75, 0.25), method="lower")) for row in rows]
    widest, narrowest = max(spreads), min(spreads)
    if widest == 0 or not np.isfinite(widest):
        return 1.0
    return float(widest / narrowest) if narrowest > 0 else float("inf")


def _mean_places(hardest_first: IntArray, groups: BoolArray) -> FloatArray:
    size = groups.size
    starts = np.append(np.flatnonzero(groups), size)
    middle = (starts[:-1] + starts[1:]) / (2 * size)
    place = np.empty(size)
    place[hardest_first] = np.repeat(middle, np.diff(starts))
    return place


def _column(values: npt.ArrayLike, size: int, name: str) -> FloatArray:
    try:
        column = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: expected numbers: {error}") from None
    if column.shape != (size,):
        shape = column.size if column.ndim == 1 else f"shape {column.shape}"
        raise InputError(f"{name}: expected {size} values, one per trial, found {shape}")
    reject_nan(column, name)
    return column
