"""Cosine similarity, plain, after a linear map that whitens the vectors, or normalised by a cohort;
and the moments of labelled vectors that every trained back-end starts from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

from unmask.base import FloatArray, IntArray, as_numbers, length_normalised
from unmask.errors import InputError
from unmask.scoring.sides import Backend, Sides
from unmask.trials import Embeddings

Rows = npt.NDArray[np.floating[Any]]
Codes = npt.NDArray[np.integer[Any]]
LDA_DIRECTIONS = 20
COHORT = 200
_LEAST = 1e-9
_EQUAL = 1e-12
"""Share of the variance between people up to which that within them is rounding."""


def as_vectors(values: npt.ArrayLike, *, dimension: int | None = None) -> FloatArray:
    """Finite float64 vectors, one per row."""
    vectors = as_numbers(values, "embeddings")
    if vectors.ndim != 2 or vectors.shape[1] == 0:
        raise InputError("embeddings", "shape (vectors, dimension)", vectors.shape)
    if dimension is not None and vectors.shape[1] != dimension:
        wanted = f"{dimension} dimensions as in the back-end's training set"
        raise InputError("embeddings", wanted, vectors.shape[1])
    if not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise InputError(f"embeddings: row {row} is not finite")
    return vectors


def unit_rows(values: npt.ArrayLike, *, dimension: int | None = None) -> FloatArray:
    """The same at length one."""
    return length_normalised(as_vectors(values, dimension=dimension))


def average_groups(vectors: npt.ArrayLike, groups: Codes) -> FloatArray:
    """Length-normalise, average over each group, a speaker or a conversation, normalise again; rows
    in order of the code, those of a negative one left out.
    """
    rows = as_vectors(vectors)
    if groups.shape != (rows.shape[0],):
        wanted = f"{rows.shape[0]} codes, one per vector"
        raise InputError("groups", wanted, f"shape {groups.shape}")
    member = groups >= 0
    if not member.any():
        raise InputError("averaging: no vector belongs to a group")
    means = group_means(length_normalised(rows[member]), groups[member])[1]
    return length_normalised(means)


@dataclass(frozen=True, eq=False)
class SpeakerMoments:
    """Per-speaker counts and means, and the pooled scatter within speakers."""

    counts: IntArray
    means: FloatArray
    scatter: FloatArray

    @classmethod
    def of(cls, vectors: FloatArray, codes: Codes) -> SpeakerMoments:
        """Count from rows; the codes may have gaps."""
        if codes.shape != (vectors.shape[0],):
            wanted = f"{vectors.shape[0]} of them, one per vector"
            raise InputError("speakers", wanted, f"shape {codes.shape}")
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


def refuse_equal_recordings(moments: SpeakerMoments, name: str) -> None:
    """Refuse people whose recordings all equal each other.

    The covariance within them is 0, or what rounding leaves of that, and has no inverse.
    """
    between = float(moments.means.var(axis=0).sum())
    if np.trace(moments.within) <= _EQUAL * between:
        raise InputError(f"back-end {name}", "recordings of a person that differ", "equal ones")


def shrunk(matrix: FloatArray, shrinkage: float) -> FloatArray:
    """(1 − λ)·C + λ·(tr C / d)·I, which has an inverse for any λ > 0."""
    if not 0 <= shrinkage <= 1:
        raise InputError("shrinkage", "a number from 0 to 1", shrinkage)
    level = np.trace(matrix) / matrix.shape[0]
    return np.asarray((1 - shrinkage) * matrix + shrinkage * level * np.eye(matrix.shape[0]))


def discriminants(moments: SpeakerMoments, directions: int, shrinkage: float) -> FloatArray:
    """LDA: the directions of largest between- over within-speaker variance, within = I."""
    dimension = moments.means.shape[1]
    most = min(dimension, moments.counts.size - 1)
    if not 1 <= directions <= most:
        raise InputError(
            f"LDA: expected 1 to {most} directions for {moments.counts.size} speakers"
            f" in {dimension} dimensions, found {directions}"
        )
    refuse_equal_recordings(moments, "lda")
    centred = moments.means - np.average(moments.means, axis=0, weights=moments.counts)
    between = (centred * moments.counts[:, None]).T @ centred / moments.size
    _, basis = eigh(between, shrunk(moments.within, shrinkage))
    return np.asarray(basis[:, ::-1][:, :directions])


@dataclass(frozen=True)
class Cosine:
    """Cosine similarity: s(x, y) = xᵀy / (‖x‖·‖y‖).

    Examples
    --------
    >>> import unmask as um
    >>> rows = um.Cosine().sides([[3.0, 4.0], [4.0, 3.0]])
    >>> (rows.enrol @ rows.test.T).round(2)
    array([[1.  , 0.96],
           [0.96, 1.  ]])
    """

    name = "cosine"

    def sides(self, vectors: npt.ArrayLike) -> Sides:
        """Length-normalised rows."""
        rows = unit_rows(vectors)
        return Sides(rows, rows)


@dataclass(frozen=True, eq=False)
class Whitening(Cosine):
    """Centre, map so that a covariance becomes the identity, then cosine.

    ``within``: the within-speaker covariance (WCCN), which plays down the directions in which one
    speaker varies. ``total``: the covariance of all vectors. :meth:`fit` makes it.

    Parameters
    ----------
    centre : array (dimension,)
        Mean of the training vectors, at length one.
    projection : array (dimension, dimension)
        Map of the centred vectors.
    name : str
        Name in tables.

    Examples
    --------
    >>> import numpy as np, unmask as um
    >>> rng = np.random.default_rng(0)
    >>> who = np.repeat(np.arange(50), 10)
    >>> vectors = rng.normal(size=(50, 4))[who] + rng.normal(size=(500, 4)) * [0.1, 0.1, 3, 3]
    >>> voices = um.Embeddings(vectors, who)
    >>> trained = um.Whitening.fit(voices)
    >>> eer = [um.evaluate(voices, backend=one, replicates=0)["eer"].value
    ...        for one in (um.Cosine(), trained)]
    >>> eer[1] < eer[0]
    True
    """

    centre: FloatArray
    projection: FloatArray
    name: str

    @classmethod
    def fit(
        cls, embeddings: Embeddings, *, covariance: str = "within", shrinkage: float = 0.1
    ) -> Whitening:
        """Estimate from labelled embeddings, length-normalised first.

        The covariance C becomes (1 − λ)·C + λ·(tr C / d)·I with λ = ``shrinkage``.
        """
        vectors = unit_rows(embeddings.vectors)
        moments = SpeakerMoments.of(vectors, embeddings.speakers.codes)
        if covariance == "within":
            matrix = moments.within
        elif covariance == "total":
            matrix = np.cov(vectors, rowvar=False, bias=True)
        else:
            raise InputError("whitening", "within or total", covariance)
        name = "wccn" if covariance == "within" else "whitening"
        if not np.any(matrix):
            raise InputError(f"back-end {name}", "vectors that differ", "equal ones")
        if covariance == "within":
            refuse_equal_recordings(moments, name)
        inverse = np.linalg.inv(shrunk(np.atleast_2d(matrix), shrinkage))
        projection = np.asarray(np.linalg.cholesky((inverse + inverse.T) / 2), dtype=np.float64)
        return cls(vectors.mean(axis=0), projection, name)

    def sides(self, vectors: npt.ArrayLike) -> Sides:
        """Normalised, centred, whitened and normalised again."""
        rows = unit_rows(vectors, dimension=self.centre.size)
        rows = length_normalised((rows - self.centre) @ self.projection)
        return Sides(rows, rows)


class Projected(Whitening):
    """Length-normalise, centre, project by any matrix, and take the cosine."""

    @classmethod
    def centred(cls, embeddings: Embeddings) -> Projected:
        """Cosine about the mean of the training vectors."""
        rows = unit_rows(embeddings.vectors)
        return cls(rows.mean(axis=0), np.eye(rows.shape[1]), "centred")

    @classmethod
    def lda(
        cls, embeddings: Embeddings, *, directions: int = LDA_DIRECTIONS, shrinkage: float = 0.1
    ) -> Projected:
        """Cosine in the ``directions`` of largest between- over within-speaker variance, or all."""
        rows = unit_rows(embeddings.vectors)
        centre = rows.mean(axis=0)
        moments = SpeakerMoments.of(rows - centre, embeddings.speakers.codes)
        few = min(directions, moments.counts.size - 1, rows.shape[1])
        return cls(centre, discriminants(moments, few, shrinkage), "lda")


@dataclass(frozen=True, eq=False)
class AsNorm:
    r"""Adaptive symmetric normalisation of the scores of a back-end (Matějka et al. 2017).

    .. math:: ½ \left(\frac{s − μ_e}{σ_e} + \frac{s − μ_t}{σ_t}\right)

    with mean μ and standard deviation σ of the ``top`` highest scores of either vector with the
    ``cohort``. It is an inner product: (x/2σ_e, x, −μ_e/2σ_e, 1)·(y, y/2σ_t, 1, −μ_t/2σ_t).
    """

    cohort: FloatArray
    top: int
    backend: Backend = Cosine()

    @classmethod
    def fit(
        cls, embeddings: Embeddings, *, top: int = COHORT, backend: Backend | None = None
    ) -> AsNorm:
        """The average voice of each speaker of ``embeddings`` is the cohort; of them the ``top``
        closest count, or all where there are fewer. The ``backend`` is the cosine unless given.
        """
        cohort = average_groups(embeddings.vectors, embeddings.speakers.codes)
        if len(cohort) < 2:
            raise InputError("AS-norm", "a cohort of 2 speakers or more", len(cohort))
        if top < 2:
            raise InputError("AS-norm", "2 of the cohort or more", top)
        return cls(cohort, min(top, len(cohort)), backend or Cosine())

    @property
    def name(self) -> str:
        own = self.backend.name
        return "asnorm" if own == "cosine" else f"{own}-asnorm"

    def sides(self, vectors: npt.ArrayLike) -> Sides:
        """Rows that hold the vector, its mean and its standard deviation."""
        as_vectors(vectors, dimension=self.cohort.shape[1])
        own, cohort = self.backend.sides(vectors), self.backend.sides(self.cohort)
        scale, shift = self._moments(own.enrol, cohort.test)
        left = [own.enrol * scale, own.enrol, shift, np.ones_like(scale)]
        if own.test is not own.enrol:
            scale, shift = self._moments(own.test, cohort.enrol)
        right = [own.test, own.test * scale, np.ones_like(scale), shift]
        return Sides(np.hstack(left), np.hstack(right))

    def _moments(self, rows: FloatArray, cohort: FloatArray) -> tuple[FloatArray, FloatArray]:
        """1/2σ and −μ/2σ of the closest of the cohort to each row."""
        scores = np.partition(rows @ cohort.T, len(cohort) - self.top, axis=1)
        closest = scores[:, len(cohort) - self.top :]
        scale = 1 / (2 * np.maximum(closest.std(axis=1, keepdims=True), _LEAST))
        return scale, -closest.mean(axis=1, keepdims=True) * scale
