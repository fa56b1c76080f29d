"""Scores that are inner products of two different rows of a vector, one for each side."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, length_normalised
from unmask.errors import InputError
from unmask.scoring.moments import Labelled, Rows, as_vectors, average_groups

COHORT = 200
_LEAST = 1e-9


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
        return np.hstack([rows * scale, rows, shift, one]), np.hstack(
            [rows, rows * scale, one, shift]
        )


class _Sided(Protocol):
    def __call__(self, vectors: npt.ArrayLike) -> tuple[FloatArray, FloatArray]: ...


@dataclass(frozen=True, eq=False)
class Fused(TwoSided):
    """Σ w_k·s_k over back-ends: ``members`` give the rows of both sides of each, ``weights`` w."""

    members: Sequence[_Sided]
    weights: FloatArray

    @property
    def name(self) -> str:
        return "fusion"

    def sides(self, vectors: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """The rows of all members beside each other, those of enrolment times the weight."""
        pairs = [member(vectors) for member in self.members]
        left = [w * one for w, (one, _) in zip(self.weights, pairs, strict=True)]
        return np.hstack(left), np.hstack([other for _, other in pairs])
