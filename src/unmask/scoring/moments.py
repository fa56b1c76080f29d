"""Labelled vectors: checks, averages, and the moments that every trained back-end starts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from unmask.base import FloatArray, IntArray, length_normalised
from unmask.errors import InputError

Rows = npt.NDArray[np.floating[Any]]
Codes = npt.NDArray[np.integer[Any]]


class Coded(Protocol):
    """A column of identifiers as integer codes."""

    @property
    def codes(self) -> Codes: ...


class Labelled(Protocol):
    """Vectors with the speaker of each: all that training a back-end needs of a set."""

    @property
    def vectors(self) -> Rows: ...

    @property
    def speakers(self) -> Coded: ...


def as_vectors(values: npt.ArrayLike, *, dimension: int | None = None) -> FloatArray:
    """Finite float64 vectors, one per row."""
    vectors = np.asarray(values, dtype=np.float64)
    if vectors.ndim != 2 or vectors.shape[1] == 0:
        raise InputError(f"embeddings: expected shape (vectors, dimension), found {vectors.shape}")
    if dimension is not None and vectors.shape[1] != dimension:
        raise InputError(
            f"embeddings: expected {dimension} dimensions as in the back-end's training set,"
            f" found {vectors.shape[1]}"
        )
    if not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise InputError(f"embeddings: row {row} is not finite")
    return vectors


def average_groups(vectors: npt.ArrayLike, groups: Codes) -> FloatArray:
    """Length-normalise, average over each group, normalise again; rows in order of the code.

    A group is a speaker, or a conversation of L utterances. Rows with a negative code belong to
    no group and are left out.
    """
    rows = as_vectors(vectors)
    if groups.shape != (rows.shape[0],):
        raise InputError(
            f"groups: expected {rows.shape[0]} codes, one per vector, found shape {groups.shape}"
        )
    member = groups >= 0
    if not member.any():
        raise InputError("averaging: no vector belongs to a group")
    means = group_means(length_normalised(rows[member]), groups[member])[1]
    return length_normalised(means)


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


def discriminants(moments: Moments, directions: int, shrinkage: float) -> FloatArray:
    """LDA: the directions of largest between- over within-speaker variance, within = I."""
    dimension = moments.means.shape[1]
    most = min(dimension, moments.counts.size - 1)
    if not 1 <= directions <= most:
        raise InputError(
            f"LDA: expected 1 to {most} directions for {moments.counts.size} speakers"
            f" in {dimension} dimensions, found {directions}"
        )
    centred = moments.means - np.average(moments.means, axis=0, weights=moments.counts)
    between = (centred * moments.counts[:, None]).T @ centred / moments.size
    _, basis = eigh(between, shrunk(moments.within, shrinkage))
    return np.asarray(basis[:, ::-1][:, :directions])
