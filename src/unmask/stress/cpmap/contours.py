"""Lines on a C-P map: where the value passes a level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.base import BoolArray, FloatArray
from unmask.stress.cpmap.maps import CpMap


@dataclass(frozen=True, eq=False)
class Contour:
    """The borders between cells below ``level`` and cells at or above it, as straight segments.

    Segment i runs from (``x``, ``y``)[i] to (``x2``, ``y2``)[i] in shares of the classes.
    """

    level: float
    x: FloatArray
    y: FloatArray
    x2: FloatArray
    y2: FloatArray


def contour(cp_map: CpMap, level: float) -> Contour:
    """Borders of the well-defined cells whose value lies below ``level``."""
    below = cp_map.values < level
    x, y = np.append(0.0, cp_map.x), np.append(0.0, cp_map.y)
    row, column = np.nonzero(_borders(below, cp_map.well_defined, axis=1))
    upright = x[column + 1], y[row], x[column + 1], y[row + 1]
    row, column = np.nonzero(_borders(below, cp_map.well_defined, axis=0))
    flat = x[column], y[row + 1], x[column + 1], y[row + 1]
    parts = [np.concatenate(pair) for pair in zip(upright, flat, strict=True)]
    return Contour(level, *parts)


def _borders(below: BoolArray, defined: BoolArray, *, axis: int) -> BoolArray:
    """Neighbours along an axis that are both well-defined and lie on different sides."""
    first = (slice(None),) * axis + (slice(None, -1),)
    second = (slice(None),) * axis + (slice(1, None),)
    return np.asarray((below[first] != below[second]) & defined[first] & defined[second])
