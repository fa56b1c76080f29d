"""Back-ends whose score is an inner product of prepared rows: cosine, whitening, PLDA."""

from __future__ import annotations

import numpy as np

from unmask.base import FloatArray
from unmask.errors import InputError
from unmask.scoring.backend import Backend
from unmask.scoring.cosine import Cosine, Whitening
from unmask.scoring.plda import Plda


def product_sides(backend: Backend, prepared: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows for the enrolment and for the test side of an inner product that is the score.

    The LLR of PLDA is xᵀy + f(x) + f(y): two more components, (x, f(x), 1)·(y, 1, f(y)), make it
    an inner product. Other back-ends give the same array for both sides.
    """
    if isinstance(backend, Plda):
        rest, own, one = prepared[:, :-1], prepared[:, -1:], np.ones((len(prepared), 1))
        return np.hstack([rest, own, one]), np.hstack([rest, one, own])
    if not isinstance(backend, (Cosine, Whitening)):
        raise InputError(f"back-end: expected cosine, wccn or plda, found {backend.name}")
    return prepared, prepared
