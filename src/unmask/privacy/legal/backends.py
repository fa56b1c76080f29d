"""Back-ends of an attacker as inner products: cosine, WCCN, PLDA."""

from __future__ import annotations

import numpy.typing as npt

from unmask.base import FloatArray
from unmask.errors import InputError
from unmask.scoring import Backend, Cosine, Plda, Whitening, product_sides
from unmask.trials import Embeddings

NAMES = ("cosine", "wccn", "plda")


def train_backend(name: str, train: Embeddings | None = None) -> Backend:
    """A back-end by name; ``wccn`` and ``plda`` need the attacker's own training speech."""
    if name not in NAMES:
        raise InputError(f"back-end: expected {', '.join(NAMES)}, found {name}")
    if name == "cosine":
        return Cosine()
    if train is None:
        raise InputError(f"back-end {name}: expected embeddings to train on, found none")
    return Whitening.fit(train) if name == "wccn" else Plda.fit(train)


def as_backend(backend: Backend | str) -> Backend:
    """A trained back-end, or ``"cosine"``."""
    return train_backend(backend) if isinstance(backend, str) else backend


def inner_products(
    backend: Backend | str, enrol: npt.ArrayLike, test: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Vectors of both sides whose inner product is the back-end's score."""
    backend = as_backend(backend)
    left, _ = product_sides(backend, backend.prepare(enrol))
    _, right = product_sides(backend, backend.prepare(test))
    return left, right
