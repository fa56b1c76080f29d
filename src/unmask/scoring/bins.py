"""Putting very many single-precision scores into a few hundred bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.arrays import BoolArray, FloatArray
from unmask.scoring.plan import Rows32

BUCKETS = 1 << 15


@dataclass(frozen=True, eq=False)
class Bins:
    """Bin k holds the scores from the k-th edge (counted from 1) to below the next; bin 0 the rest.

    A score falls into one of 2¹⁵ equal buckets by a rounding that never decreases, and a bucket
    holds one edge at most: one comparison decides.
    """

    edges: Rows32
    below: npt.NDArray[np.int16]
    edge: Rows32

    @classmethod
    def of(cls, edges: Rows32) -> Bins:
        """Bins of ascending edges of which no two share a bucket (see :func:`separable`)."""
        bucket = _bucket(edges, edges)
        edge = np.full(BUCKETS, np.inf, np.float32)
        edge[bucket] = edges
        return cls(edges, np.searchsorted(bucket, np.arange(BUCKETS)).astype(np.int16), edge)

    @property
    def count(self) -> int:
        """Number of bins."""
        return self.edges.size + 1

    def __call__(self, scores: Rows32) -> npt.NDArray[np.int16]:
        """Bin of every score; NaN has none and is not expected."""
        bucket = _bucket(scores, self.edges)
        found = self.below[bucket]
        found += scores >= self.edge[bucket]
        return found


def separable(edges: FloatArray, *, wanted: BoolArray) -> FloatArray:
    """Distinct edges, ascending, one per bucket: a ``wanted`` one, or else the lowest."""
    order = np.lexsort((edges, ~wanted))
    distinct, first = np.unique(edges[order], return_index=True)
    rank = (~wanted[order])[first]
    single = ceiling(distinct)
    bucket = _bucket(single, single)
    by_bucket = np.lexsort((distinct, rank, bucket))
    _, chosen = np.unique(bucket[by_bucket], return_index=True)
    return np.asarray(distinct[np.sort(by_bucket[chosen])])


def ceiling(thresholds: npt.ArrayLike) -> Rows32:
    """The lowest float32 that reaches each threshold."""
    exact = np.asarray(thresholds, np.float64)
    rounded = exact.astype(np.float32)
    return np.where(rounded < exact, np.nextafter(rounded, np.float32(np.inf)), rounded)


def _bucket(scores: Rows32, edges: Rows32) -> npt.NDArray[np.int16]:
    """A bucket for each score, over the span of the edges; never decreases with the score."""
    lowest = edges[0] if edges.size else np.float32(0)
    span = edges[-1] - lowest if edges.size else np.float32(0)
    with np.errstate(over="ignore"):
        scale = np.float32(BUCKETS - 3) / span if span > 0 else np.float32(1)
    if not np.isfinite(scale):
        scale = np.float32(1)
    place = scores - lowest
    place *= scale
    place += np.float32(1)
    np.clip(place, 0, BUCKETS - 1, out=place)
    return place.astype(np.int16)
