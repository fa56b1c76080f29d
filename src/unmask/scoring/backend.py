"""How a back-end is named and trained, and the fusion of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray
from unmask.errors import InputError
from unmask.run import one_blas_thread
from unmask.scoring.cosine import AsNorm, Cosine, Projected, Whitening
from unmask.scoring.plda import Plda
from unmask.scoring.sides import Backend, Sides, sides_of
from unmask.trials import Embeddings

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
        if not all(hasattr(backend, part) for part in ("name", "sides")):
            wanted = "a name, a file, or an object with a name and sides(vectors)"
            raise InputError("back-end", wanted, type(backend).__name__)
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


@dataclass(frozen=True, eq=False)
class Fused:
    """Σ w_k·s_k: the sum of the scores of ``members``, each times its weight."""

    members: Sequence[Backend]
    weights: FloatArray

    @property
    def name(self) -> str:
        return "fusion"

    def sides(self, vectors: npt.ArrayLike) -> Sides:
        """The rows of all members beside each other, those of enrolment times the weight."""
        rows = [sides_of(one, vectors) for one in self.members]
        left = [w * one.enrol for w, one in zip(self.weights, rows, strict=True)]
        return Sides(np.hstack(left), np.hstack([one.test for one in rows]))
