"""Cosine similarity, plain or after a linear map that whitens the vectors."""

from __future__ import annotations

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
    discriminants,
    shrunk,
)

LDA_DIRECTIONS = 20


def product_block(enrol: Rows, test: Rows) -> Rows:
    """Inner product of every enrolment row with every test row."""
    return np.asarray(enrol @ test.T)


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
        return product_block(enrol, test)


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
        return product_block(enrol, test)


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
