"""Maps that bring enrolment and protected speech together, fitted to sets of vectors: a safeguard
that moves all voices alike leaves their arrangement as it was, turned, stretched and moved.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from unmask.base import FloatArray
from unmask.errors import InputError
from unmask.scoring.cosine import Cosine, shrunk, unit_rows
from unmask.trials import Embeddings

SHRINKAGE = 0.1
ROUNDS = 30
MOST_ROWS = 1500
Maps = tuple[Callable[[npt.ArrayLike], FloatArray], Callable[[npt.ArrayLike], FloatArray]]
"""Of enrolment and of attacked vectors."""


@dataclass(frozen=True)
class AlignedCosine(Cosine):
    """The cosine of vectors that an alignment has brought together, known by its name."""

    name: str


@dataclass(frozen=True, eq=False)
class Alignment:
    """x ↦ (x / ‖x‖ − centre) · matrix; made by the functions of this module."""

    centre: FloatArray
    matrix: FloatArray

    def apply(self, vectors: npt.ArrayLike) -> FloatArray:
        """``vectors`` at length one, centred and mapped."""
        rows = unit_rows(vectors, dimension=self.centre.size)
        return np.asarray((rows - self.centre) @ self.matrix)


def centring(vectors: npt.ArrayLike) -> Alignment:
    """Take the mean of ``vectors`` off, and change nothing else."""
    rows = unit_rows(vectors)
    return Alignment(rows.mean(axis=0), np.eye(rows.shape[1]))


def whitening(vectors: npt.ArrayLike, *, shrinkage: float = SHRINKAGE) -> Alignment:
    """C^−½ with the covariance C of ``vectors``, which needs no label: theirs becomes the identity.

    C is shrunk towards a multiple of the identity: (1 − λ)·C + λ·(tr C / d)·I, λ = ``shrinkage``.
    """
    centre, covariance = _moments(vectors, shrinkage)
    return Alignment(centre, _power(covariance, -0.5))


def coral(
    source: npt.ArrayLike, target: npt.ArrayLike, *, shrinkage: float = SHRINKAGE
) -> Alignment:
    """C_s^−½ · C_t^½ (Sun, Feng and Saenko 2016): ``source`` gets the moments of ``target``."""
    centre, own = _moments(source, shrinkage)
    _, other = _moments(target, shrinkage)
    return Alignment(centre, _power(own, -0.5) @ _power(other, 0.5))


def procrustes(source: npt.ArrayLike, target: npt.ArrayLike) -> Alignment:
    """The rotation Q with the least Σ ‖x_i·Q − y_i‖² over the pairs of rows of ``source`` and
    ``target``, each about its own mean: U·Vᵀ where U·S·Vᵀ = Xᵀ·Y (Schönemann 1966; on x-vectors
    before and after anonymisation, Champion et al. 2021).
    """
    x, y = centring(source), centring(target)
    left, right = x.apply(source), y.apply(target)
    if left.shape != right.shape:
        wanted = "as many vectors of one dimension on both sides"
        raise InputError("Procrustes", wanted, f"{left.shape} and {right.shape}")
    return Alignment(x.centre, _rotation(left, right))


def wasserstein_procrustes(
    source: npt.ArrayLike, target: npt.ArrayLike, *, rounds: int = ROUNDS, seed: int = 0
) -> Alignment:
    """A rotation without pairs, and with no label: min over rotations Q and matchings π of
    Σ ‖x_i·Q − y_π(i)‖² (Grave, Joulin and Berthet 2019; on x-vectors Champion et al. 2021).

    Given Q the matching is an assignment problem, solved exactly; given the matching Q is that of
    :func:`procrustes`; the two alternate, from Q = I, until nothing changes or for ``rounds``. Rows
    of ``source`` and ``target`` are compared at length one, each about its own mean; of more than
    1,500 a sample drawn with ``seed`` is matched. The smaller side is matched whole, so the attack
    gains where the people of both sides are the same, in about equal shares.
    """
    from scipy.optimize import linear_sum_assignment

    x, y = centring(source), centring(target)
    if x.centre.size != y.centre.size:
        actual = f"{x.centre.size} and {y.centre.size}"
        raise InputError("embeddings", "one dimension on both sides", actual)
    rng = np.random.default_rng(seed)
    sides = []
    for rows in (x.apply(source), y.apply(target)):
        if len(rows) > MOST_ROWS:
            rows = rows[np.sort(rng.choice(len(rows), MOST_ROWS, replace=False))]
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        sides.append(rows / np.where(length > 0, length, 1.0))
    left, right = sides
    matrix = np.eye(x.centre.size)
    matched: list[int] = []
    for _ in range(rounds):
        i, j = linear_sum_assignment(left @ matrix @ right.T, maximize=True)
        if matched == (matched := [*i, *j]):
            break
        matrix = _rotation(left[i], right[j])
    return Alignment(x.centre, matrix)


def align_by_whitening(enrol: Embeddings, attacked: npt.ArrayLike) -> Maps:
    """Either side whitened by its own covariance."""
    return whitening(enrol.vectors).apply, whitening(attacked).apply


def align_by_coral(enrol: Embeddings, attacked: npt.ArrayLike) -> Maps:
    """Enrolment gets the second moments of attacked speech."""
    return coral(enrol.vectors, attacked).apply, centring(attacked).apply


def align_by_wasserstein(enrol: Embeddings, attacked: npt.ArrayLike) -> Maps:
    """Enrolment is turned towards attacked speech."""
    return wasserstein_procrustes(enrol.vectors, attacked).apply, centring(attacked).apply


def align_by_pairs(
    enrol: Embeddings,
    attacked: npt.ArrayLike,
    train: Embeddings | None,
    pairs: tuple[Embeddings, Embeddings],
) -> Maps:
    """Enrolment is turned as the pairs of utterances that both training sets have."""
    first, second = pairs
    if first.utterances is None or second.utterances is None:
        raise InputError("pairs: expected a name for every utterance, found none")
    names = first.utterances.to_series(), second.utterances.to_series()
    here = pl.DataFrame({"name": names[0], "first": np.arange(len(first))})
    there = pl.DataFrame({"name": names[1], "second": np.arange(len(second))})
    both = here.join(there, on="name", how="inner", maintain_order="left")
    if len(both) < 2:
        wanted = "utterances that are in the original and in the protected training set"
        raise InputError("pairs", wanted, len(both))
    rows = both["first"].to_numpy(), both["second"].to_numpy()
    turn = procrustes(first.vectors[rows[0]], second.vectors[rows[1]]).matrix
    return Alignment(centring(enrol.vectors).centre, turn).apply, centring(attacked).apply


def _rotation(x: FloatArray, y: FloatArray) -> FloatArray:
    left, _, right = np.linalg.svd(x.T @ y)
    return np.asarray(left @ right)


def _moments(vectors: npt.ArrayLike, shrinkage: float) -> tuple[FloatArray, FloatArray]:
    rows = unit_rows(vectors)
    if len(rows) < 2:
        raise InputError("alignment", "2 vectors or more", len(rows))
    covariance = np.atleast_2d(np.cov(rows, rowvar=False, bias=True))
    return rows.mean(axis=0), shrunk(covariance, shrinkage)


def _power(matrix: FloatArray, power: float) -> FloatArray:
    value, basis = np.linalg.eigh(matrix)
    if value[0] <= 1e-14 * max(float(value[-1]), 0.0):
        raise InputError("alignment", "vectors that vary in every direction", "too few")
    return np.asarray((basis * value**power) @ basis.T)
