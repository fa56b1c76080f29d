"""What a back-end is, how it is named and trained, and the scores of all pairs of two small sets.

A matrix product rounds differently for different shapes: scores come from tiles on a fixed grid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray
from unmask.errors import InputError
from unmask.run import one_blas_thread, ranges_of
from unmask.scoring.cosine import AsNorm, Cosine, Projected, Rows, TwoSided, Whitening
from unmask.scoring.plda import Plda
from unmask.trials import Embeddings

TILE_ROWS = 256
TILE_COLUMNS = 4096


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


TRAINED: Mapping[str, Callable[..., Backend]] = {
    "wccn": Whitening.fit,
    "plda": Plda.fit,
    "centred": Projected.centred,
    "lda": Projected.lda,
    "asnorm": AsNorm.fit,
}
"""Back-ends that are trained on labelled embeddings, by name; cosine needs no training."""


def backend_named(
    backend: Backend | str | Path, data: Embeddings | None = None, **options: Any
) -> Backend:
    """A back-end as it is; one that was saved, where its file is named (npz); or one by name
    (cosine, wccn, plda, centred, lda, asnorm), trained on ``data``.

    ``options`` are those of its ``fit``: the ``lda`` of PLDA, a ``shrinkage``.
    """
    if not isinstance(backend, str | Path):
        return backend
    if Path(backend).suffix == ".npz":
        return Plda.load(backend)
    name = str(backend)
    if name == "cosine":
        return Cosine()
    if name not in TRAINED:
        names = ", ".join(["cosine", *TRAINED])
        raise InputError("back-end", f"{names} or a file (npz)", name)
    if data is None:
        raise InputError(f"back-end {name}", "embeddings to train on", "none")
    with one_blas_thread():
        return TRAINED[name](data, **options)


def product_sides(backend: Backend, prepared: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows for the enrolment and for the test side of an inner product that is the score.

    The LLR of PLDA is xᵀy + f(x) + f(y): two more components, (x, f(x), 1)·(y, 1, f(y)), make it
    an inner product. Two-sided back-ends hold both rows. Others give the same array for both.
    """
    if isinstance(backend, TwoSided):
        width = prepared.shape[1] // 2
        return prepared[:, :width], prepared[:, width:]
    if isinstance(backend, Plda):
        rest, own, one = prepared[:, :-1], prepared[:, -1:], np.ones((len(prepared), 1))
        return np.hstack([rest, own, one]), np.hstack([rest, one, own])
    if not isinstance(backend, Cosine):
        raise InputError("back-end", "cosine, wccn or plda", backend.name)
    return prepared, prepared


@dataclass(frozen=True, eq=False)
class Fused(TwoSided):
    """Σ w_k·s_k: the sum of the scores of ``members``, each times its weight."""

    members: Sequence[Backend]
    weights: FloatArray

    @property
    def name(self) -> str:
        return "fusion"

    def sides(self, vectors: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        """The rows of all members beside each other, those of enrolment times the weight."""
        pairs = [product_sides(one, one.prepare(vectors)) for one in self.members]
        left = [w * one for w, (one, _) in zip(self.weights, pairs, strict=True)]
        return np.hstack(left), np.hstack([other for _, other in pairs])


def score_matrix(backend: Backend, enrol: npt.ArrayLike, test: npt.ArrayLike) -> FloatArray:
    """Scores of all enrolment vectors with all test vectors, tile by tile."""
    left, right = backend.prepare(enrol), backend.prepare(test)
    scores = np.empty((len(left), len(right)))
    for top, bottom in ranges_of(len(left), TILE_ROWS):
        for start, stop in ranges_of(len(right), TILE_COLUMNS):
            tile = backend.score_block(left[top:bottom], right[start:stop])
            scores[top:bottom, start:stop] = tile
    return scores
