"""Cosine similarity, plain, after a linear map that whitens the vectors, or normalised by a cohort;
and scores that are inner products of two different rows of a vector, one for each side.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, length_normalised
from unmask.errors import InputError
from unmask.scoring.moments import (
    Labelled,
    Moments,
    Rows,
    as_vectors,
    average_groups,
    discriminants,
    shrunk,
)

LDA_DIRECTIONS = 20
COHORT = 200
_LEAST = 1e-9


@dataclass(frozen=True)
class Cosine:
    """s(x, y) = xᵀy / (‖x‖·‖y‖)."""

    @property
    def name(self) -> str:
        return "cosine"

    def prepare(self, vectors: npt.ArrayLike) -> FloatArray:
        """Length-normalised rows."""
        return length_normalised(as_vectors(vectors))

    def score_block(self, enrol: Rows, test: Rows) -> Rows:
        """Cosines of every enrolment row with every test row."""
        return np.asarray(enrol @ test.T)


@dataclass(frozen=True, eq=False)
class Whitening:
    """Centre, map so that a covariance becomes the identity, then cosine.

    ``within``: the within-speaker covariance (WCCN), which plays down the directions in which one
    speaker varies. ``total``: the covariance of all vectors.
    """

    centre: FloatArray
    projection: FloatArray
    covariance: str

    @classmethod
    def fit(
        cls, embeddings: Labelled, *, covariance: str = "within", shrinkage: float = 0.1
    ) -> Whitening:
        """Estimate from labelled embeddings, length-normalised first.

        The covariance C becomes (1 − λ)·C + λ·(tr C / d)·I with λ = ``shrinkage``.
        """
        vectors = length_normalised(as_vectors(embeddings.vectors))
        moments = Moments.of(vectors, embeddings.speakers.codes)
        if covariance == "within":
            matrix = moments.within
        elif covariance == "total":
            matrix = np.cov(vectors, rowvar=False, bias=True)
        else:
            raise InputError(f"whitening: expected within or total, found {covariance}")
        inverse = np.linalg.inv(shrunk(np.atleast_2d(matrix), shrinkage))
        projection = np.asarray(np.linalg.cholesky((inverse + inverse.T) / 2), dtype=np.float64)
        return cls(vectors.mean(axis=0), projection, covariance)

    @property
    def name(self) -> str:
        return "wccn" if self.covariance == "within" else "whitening"

    def prepare(self, vectors: npt.ArrayLike) -> FloatArray:
        """Normalised, centred, whitened and normalised again."""
        rows = length_normalised(as_vectors(vectors, dimension=self.centre.size))
        return length_normalised((rows - self.centre) @ self.projection)

    def score_block(self, enrol: Rows, test: Rows) -> Rows:
        """Cosines of every enrolment row with every test row."""
        return np.asarray(enrol @ test.T)


class Projected(Whitening):
    """Length-normalise, centre, project by any matrix, and take the cosine."""

    @property
    def name(self) -> str:
        return self.covariance

    @classmethod
    def centred(cls, embeddings: Labelled) -> Projected:
        """Cosine about the mean of the training vectors."""
        rows = length_normalised(as_vectors(embeddings.vectors))
        return cls(rows.mean(axis=0), np.eye(rows.shape[1]), "centred")

    @classmethod
    def lda(
        cls, embeddings: Labelled, *, directions: int = LDA_DIRECTIONS, shrinkage: float = 0.1
    ) -> Projected:
        """Cosine in the ``directions`` of largest between- over within-speaker variance, or in as
        many as there are; ``shrinkage`` as in :meth:`Whitening.fit`.
        """
        rows = length_normalised(as_vectors(embeddings.vectors))
        centre = rows.mean(axis=0)
        moments = Moments.of(rows - centre, embeddings.speakers.codes)
        few = min(directions, moments.counts.size - 1, rows.shape[1])
        return cls(centre, discriminants(moments, few, shrinkage), "lda")


class TwoSided(ABC):
    """A back-end whose prepared rows hold the row for enrolment, then that for the test side."""

    @abstractmethod
    def sides(self, vectors: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Rows for the enrolment and for the test side; their inner product is the score."""

    def prepare(self, vectors: npt.ArrayLike) -> FloatArray:
        """Both rows of each vector, one after the other."""
        return np.hstack(self.sides(vectors))

    def score_block(self, enrol: Rows, test: Rows) -> Rows:
        """Inner products of the enrolment rows with the test rows."""
        width = enrol.shape[1] // 2
        return np.asarray(enrol[:, :width] @ test[:, width:].T)


@dataclass(frozen=True, eq=False)
class AsNorm(TwoSided):
    r"""Adaptive symmetric score normalisation of the cosine (Matějka et al. 2017).

    .. math:: ½ \left(\frac{s − μ_e}{σ_e} + \frac{s − μ_t}{σ_t}\right)

    with mean μ and standard deviation σ of the ``top`` highest scores of either vector with the
    ``cohort``. It is an inner product: (x/2σ_e, x, −μ_e/2σ_e, 1)·(y, y/2σ_t, 1, −μ_t/2σ_t).
    """

    cohort: FloatArray
    top: int

    @classmethod
    def fit(cls, embeddings: Labelled, *, top: int = COHORT) -> AsNorm:
        """The average voice of each speaker of ``embeddings`` is the cohort; of them the ``top``
        closest count, or all where there are fewer.
        """
        cohort = average_groups(embeddings.vectors, embeddings.speakers.codes)
        if len(cohort) < 2:
            raise InputError(
                f"AS-norm: expected a cohort of 2 speakers or more, found {len(cohort)}"
            )
        return cls(cohort, min(top, len(cohort)))

    @property
    def name(self) -> str:
        return "asnorm"

    def sides(self, vectors: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Rows that hold the vector, its mean and its standard deviation."""
        rows = length_normalised(as_vectors(vectors, dimension=self.cohort.shape[1]))
        scores = np.partition(rows @ self.cohort.T, len(self.cohort) - self.top, axis=1)
        closest = scores[:, len(self.cohort) - self.top :]
        scale = 1 / (2 * np.maximum(closest.std(axis=1, keepdims=True), _LEAST))
        shift, one = -closest.mean(axis=1, keepdims=True) * scale, np.ones((len(rows), 1))
        left, right = [rows * scale, rows, shift, one], [rows, rows * scale, one, shift]
        return np.hstack(left), np.hstack(right)


@dataclass(frozen=True, eq=False)
class Fused(TwoSided):
    """Σ w_k·s_k over back-ends: ``members`` give the rows of both sides of each, ``weights`` w."""

    members: Sequence[Callable[[npt.ArrayLike], tuple[FloatArray, FloatArray]]]
    weights: FloatArray

    @property
    def name(self) -> str:
        return "fusion"

    def sides(self, vectors: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """The rows of all members beside each other, those of enrolment times the weight."""
        pairs = [member(vectors) for member in self.members]
        left = [w * one for w, (one, _) in zip(self.weights, pairs, strict=True)]
        return np.hstack(left), np.hstack([other for _, other in pairs])
