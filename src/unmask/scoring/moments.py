"""Means and covariances of labelled vectors, which every trained back-end starts from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unmask.base import FloatArray, IntArray
from unmask.errors import InputError
from unmask.scoring.backend import Codes


@dataclass(frozen=True, eq=False)
class Moments:
    """Per-speaker counts and means, and the pooled scatter within speakers."""

    counts: IntArray
    means: FloatArray
    scatter: FloatArray

    @classmethod
    def of(cls, vectors: FloatArray, codes: Codes) -> Moments:
        """Count from rows; the codes may have gaps."""
        if codes.shape != (vectors.shape[0],):
            raise InputError(
                f"speakers: expected {vectors.shape[0]} of them, one per vector,"
                f" found shape {codes.shape}"
            )
        counts, means, dense = group_means(vectors, codes)
        if counts.size < 2:
            raise InputError(f"training a back-end needs 2 speakers or more, found {counts.size}")
        if counts.max() < 2:
            raise InputError("training a back-end needs a speaker with 2 vectors: all have one")
        deviation = vectors - means[dense]
        return cls(counts, means, deviation.T @ deviation)

    @property
    def size(self) -> int:
        """Number of vectors."""
        return int(self.counts.sum())

    @property
    def within(self) -> FloatArray:
        """Unbiased covariance within speakers: scatter / (vectors − speakers)."""
        return self.scatter / (self.size - self.counts.size)

    @property
    def between(self) -> FloatArray:
        """Covariance of the speakers by moments: cov(means) − within·mean(1/n), at least 0.

        A mean of n vectors carries 1/n of the within-speaker covariance, which is taken off;
        directions in which that leaves less than nothing are set to 0.
        """
        spread = np.atleast_2d(np.cov(self.means, rowvar=False))
        value, basis = np.linalg.eigh(spread - self.within * (1 / self.counts).mean())
        return np.asarray((basis * np.maximum(value, 0.0)) @ basis.T)


def group_means(vectors: FloatArray, codes: Codes) -> tuple[IntArray, FloatArray, IntArray]:
    """Size and mean of each group in order of its code, and the group of each row."""
    _, dense, counts = np.unique(codes, return_inverse=True, return_counts=True)
    order = np.argsort(dense, kind="stable")
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    means = np.add.reduceat(vectors[order], first, axis=0) / counts[:, None]
    return counts.astype(np.int64), means, dense.astype(np.int64)


def shrunk(matrix: FloatArray, shrinkage: float) -> FloatArray:
    """(1 − λ)·C + λ·(tr C / d)·I, which has an inverse for any λ > 0."""
    if not 0 <= shrinkage <= 1:
        raise InputError(f"shrinkage: expected a number from 0 to 1, found {shrinkage}")
    level = np.trace(matrix) / matrix.shape[0]
    return np.asarray((1 - shrinkage) * matrix + shrinkage * level * np.eye(matrix.shape[0]))
