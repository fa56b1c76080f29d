"""A step function applied to very many scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.arrays import FloatArray

_BUCKETS = 1 << 16
_CHUNK = 1 << 15


@dataclass(frozen=True, eq=False)
class StepLookup:
    """Index of the step of each score; equals a binary search in ``boundaries``, several times
    faster.

    A score falls into one of many equal buckets by a rounding that never decreases, so boundaries
    of lower buckets lie below the score and those of higher buckets above it: only the boundaries
    of its own bucket have to be compared, and nearly all buckets hold one at most (``first``, NaN
    where there is none).
    """

    boundaries: FloatArray
    lowest: float
    scale: float
    below: npt.NDArray[np.int32]
    first: FloatArray
    crowded: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, boundaries: FloatArray) -> StepLookup:
        """Prepare the buckets of ascending boundaries."""
        finite = boundaries[np.isfinite(boundaries)]
        lowest = float(finite[0]) if finite.size else 0.0
        with np.errstate(over="ignore"):
            span = float(finite[-1] - finite[0]) if finite.size else 0.0
        scale = (_BUCKETS - 3) / span if span > 0 else 1.0
        if not np.isfinite(scale):
            scale = 1.0
        bucket = _bucket(boundaries, lowest, scale)
        first = np.full(_BUCKETS, np.nan)
        first[bucket[::-1]] = boundaries[::-1]
        numbers = np.arange(_BUCKETS)
        return cls(
            boundaries,
            lowest,
            scale,
            np.searchsorted(bucket, numbers).astype(np.int32),
            first,
            np.bincount(bucket, minlength=_BUCKETS) > 1,
        )

    def __call__(self, scores: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.int32]:
        """How many boundaries are at most each score; the scores may have any shape."""
        flat = scores.reshape(-1)
        steps = np.empty(flat.size, dtype=np.int32)
        for start in range(0, flat.size, _CHUNK):
            piece = flat[start : start + _CHUNK]
            bucket = _bucket(piece, self.lowest, self.scale)
            found = self.below[bucket]
            found += piece >= self.first[bucket]
            many = np.flatnonzero(self.crowded[bucket])
            found[many] = np.searchsorted(self.boundaries, piece[many], side="right")
            steps[start : start + _CHUNK] = found
        return steps.reshape(scores.shape)


def _bucket(
    scores: npt.NDArray[np.floating[Any]], lowest: float, scale: float
) -> npt.NDArray[np.int32]:
    """A bucket from 0 to the last; never decreases with the score. NaN falls into the first."""
    with np.errstate(over="ignore"):
        place = np.asarray(scores, dtype=np.float64) - lowest
        place *= scale
    place += 1.0
    np.fmax(place, 0.0, out=place)
    np.fmin(place, _BUCKETS - 1.0, out=place)
    return place.astype(np.int32)
