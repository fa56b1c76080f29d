"""What a back-end is: prepare vectors once, then score any block of pairs by a matrix product."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, length_normalised
from unmask.errors import InputError

__all__ = ["Backend", "Coded", "Codes", "Labelled", "Rows", "as_vectors", "length_normalised"]

Rows = npt.NDArray[np.floating[Any]]
Codes = npt.NDArray[np.integer[Any]]


@runtime_checkable
class Backend(Protocol):
    """Compares speaker embeddings; a higher score says "same speaker" more strongly.

    ``prepare`` does everything that depends on one vector alone. ``score_block`` compares every
    enrolment row with every test row; the result has the precision of the rows, so prepared rows
    cast to float32 are scored by a float32 product.
    """

    @property
    def name(self) -> str: ...

    def prepare(self, vectors: npt.ArrayLike) -> FloatArray: ...

    def score_block(self, enrol: Rows, test: Rows) -> Rows: ...


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
