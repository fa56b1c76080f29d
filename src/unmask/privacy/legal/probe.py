"""A small probe: multinomial logistic regression with an L2 penalty, folds that split speakers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from unmask.base import FloatArray, IntArray

_STOP = {"maxiter": 200, "ftol": 1e-6, "gtol": 1e-4}
_NEGLIGIBLE = 1e-12


@dataclass(frozen=True, eq=False)
class Probe:
    """Class scores x ↦ ((x − mean)/scale)·weights + bias."""

    mean: FloatArray
    scale: FloatArray
    weights: FloatArray
    bias: FloatArray

    @classmethod
    def fit(cls, vectors: FloatArray, labels: IntArray, classes: int, *, penalty: float) -> Probe:
        """Minimise the mean cross-entropy + penalty·‖weights‖²/(2n), features standardised.

        The bias is not penalised. A class that does not occur is never predicted.
        """
        mean, scale = vectors.mean(axis=0), vectors.std(axis=0)
        scale = np.where(scale > _NEGLIGIBLE, scale, 1.0)
        features = (vectors - mean) / scale
        size, dimension = features.shape
        present, dense = np.unique(labels, return_inverse=True)
        truth = np.zeros((size, len(present)))
        rows = np.arange(size)
        truth[rows, dense] = 1.0

        def loss(flat: FloatArray) -> tuple[float, FloatArray]:
            both = flat.reshape(dimension + 1, len(present))
            scores = features @ both[:-1] + both[-1]
            scores -= scores.max(axis=1, keepdims=True)
            odds = np.exp(scores)
            total = odds.sum(axis=1, keepdims=True)
            entropy = np.log(total).sum() - scores[rows, dense].sum()
            rest = (odds / total - truth) / size
            slope = np.vstack([features.T @ rest + penalty * both[:-1] / size, rest.sum(axis=0)])
            return (entropy + penalty * (both[:-1] ** 2).sum() / 2) / size, slope.ravel()

        start = np.zeros((dimension + 1) * len(present))
        best = minimize(loss, start, jac=True, method="L-BFGS-B", options=_STOP).x
        both = best.reshape(dimension + 1, len(present))
        weights, bias = np.zeros((dimension, classes)), np.full(classes, -np.inf)
        weights[:, present], bias[present] = both[:-1], both[-1]
        return cls(mean, scale, weights, bias)

    def predict(self, vectors: FloatArray) -> IntArray:
        """The most likely class of each vector."""
        scores = (vectors - self.mean) / self.scale @ self.weights + self.bias
        return np.asarray(scores.argmax(axis=1))


def speaker_folds(
    speakers: npt.NDArray[np.integer],
    labels: IntArray,
    folds: int,
    rng: np.random.Generator,
) -> IntArray:
    """Fold of every row: all rows of a speaker share one, and classes are spread over folds."""
    names, first, dense = np.unique(speakers, return_index=True, return_inverse=True)
    order = rng.permutation(len(names))
    order = order[np.argsort(labels[first[order]], kind="stable")]
    fold = np.empty(len(names), dtype=np.int64)
    fold[order] = np.arange(len(names)) % folds
    return fold[dense]


def cross_validated(
    vectors: FloatArray,
    labels: IntArray,
    classes: int,
    fold: IntArray,
    *,
    penalty: float,
) -> IntArray:
    """Predictions for every row by a probe trained on the speakers of the other folds."""
    predicted = np.empty(len(labels), dtype=np.int64)
    for held_out in np.unique(fold):
        test = fold == held_out
        probe = Probe.fit(vectors[~test], labels[~test], classes, penalty=penalty)
        predicted[test] = probe.predict(vectors[test])
    return predicted
