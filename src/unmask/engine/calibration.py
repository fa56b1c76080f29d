"""Calibration that an adversary could do: fit on one set of scores, apply to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from unmask.base import FloatArray, as_numbers, as_scores
from unmask.engine.operating import Cost
from unmask.engine.roc import Roc
from unmask.errors import InputError

_STEPS = 100
_TOLERANCE = 1e-12
_LARGEST_SLOPE = 1e12
_LEAST_DECREASE = 0.25


@dataclass(frozen=True)
class LinearCalibration:
    """llr = scale·score + offset. ``separable``: the classes do not overlap, so no finite scale
    fits best and the scale given is only the largest tried.
    """

    scale: float
    offset: float
    separable: bool = False

    def apply(self, scores: npt.ArrayLike) -> FloatArray:
        """``scores`` as natural-log LLRs."""
        values = as_numbers(scores, "scores")
        if self.scale == 0:
            return np.full(values.shape, self.offset)
        return self.scale * values + self.offset


@dataclass(frozen=True, eq=False)
class IsotonicCalibration:
    """A piecewise-linear non-decreasing map: constant on each PAV block and outside the training
    range, interpolated between blocks. Next to a block of infinite LLR the finite side reaches
    up to that block, since nothing lies between a number and infinity.
    """

    score: FloatArray
    llr: FloatArray
    laplace: bool

    def apply(self, scores: npt.ArrayLike) -> FloatArray:
        """``scores`` as natural-log LLRs; ±inf where the training block was pure."""
        values = as_numbers(scores, "scores")
        finite = np.isfinite(self.llr)
        if not finite.any():
            return self._step(values)
        result = np.interp(values, self.score[finite], self.llr[finite])
        low, high = self.llr == -np.inf, self.llr == np.inf
        if low.any():
            result = np.where(values <= self.score[low].max(), -np.inf, result)
        if high.any():
            result = np.where(values >= self.score[high].min(), np.inf, result)
        return np.asarray(result)

    def _step(self, values: FloatArray) -> FloatArray:
        """Both classes pure: −inf up to the middle of the gap between them, +inf above it."""
        bottom = self.score[self.llr == -np.inf].max()
        top = self.score[self.llr == np.inf].min()
        return np.where(values > bottom + (top - bottom) / 2, np.inf, -np.inf)


def calibrate(
    target: npt.ArrayLike,
    nontarget: npt.ArrayLike,
    estimator: str = "linear",
    *,
    prior: float = 0.5,
    laplace: bool = True,
) -> LinearCalibration | IsotonicCalibration:
    """A map from scores to natural-log LLRs, fitted to ``target`` and ``nontarget`` scores.

    ``estimator`` is ``linear``: prior-weighted logistic regression, affine in the score (Brümmer
    and du Preez 2006, Brümmer 2010). It minimises π·mean softplus(−(αs + β + logit π)) over targets
    + (1−π)·mean softplus(αs + β + logit π) over nontargets at the ``prior`` π, by Newton's steps on
    standardised scores. Or ``isotonic``: the PAV map of the scores; ``laplace`` adds a pseudo-trial
    of each class at each end, so that no LLR is infinite. ``apply`` of the result calibrates other
    scores.
    """
    a, b = as_scores(target, "target"), as_scores(nontarget, "nontarget")
    if estimator == "linear":
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            raise InputError("linear calibration needs finite scores: some are infinite")
        is_target = np.repeat([1.0, 0.0], [a.size, b.size])
        return weighted_line(np.concatenate([a, b]), is_target, 1 - is_target, prior=prior)
    if estimator != "isotonic":
        raise InputError("calibration estimator", "linear or isotonic", estimator)
    roc = Roc.from_scores(a, b)
    pav = roc.pav_laplace if laplace else roc.pav
    ranges = np.stack(block_ranges(a, b, pav.boundaries), axis=1)
    return IsotonicCalibration(ranges.reshape(-1), np.repeat(pav.llr, 2), laplace)


def weighted_line(
    scores: FloatArray, target: FloatArray, nontarget: FloatArray, *, prior: float = 0.5
) -> LinearCalibration:
    """Logistic regression of ``scores`` at the ``prior``, each of which weighs ``target`` as a
    target and ``nontarget`` as a nontarget.
    """
    log_odds = -Cost(prior, 1.0, 1.0).bayes_threshold
    sides = [(w > 0, share * w / w.sum()) for w, share in ((target, prior), (nontarget, 1 - prior))]
    both = np.concatenate([scores[kept] for kept, _ in sides])
    low, centre, high = (float(score) for score in np.quantile(both, (0.25, 0.5, 0.75)))
    spread = high - low or float(both.std())
    if spread == 0:
        return LinearCalibration(0.0, 0.0)
    label = np.repeat([1.0, -1.0], [int(kept.sum()) for kept, _ in sides])
    weight = np.concatenate([share[kept] for kept, share in sides])
    slopes, bias, separable = _newton([(both - centre) / spread], label, weight, log_odds)
    scale = float(slopes[0]) / spread
    return LinearCalibration(scale, bias - scale * centre, separable)


def fusion_weights(
    target: npt.ArrayLike, nontarget: npt.ArrayLike, *, prior: float = 0.5
) -> FloatArray:
    """Weights of several scores of one trial (columns), by the logistic regression of
    :func:`calibrate` on ``target`` and ``nontarget`` trials (rows) at this ``prior``.
    """
    a, b = as_numbers(target, "target"), as_numbers(nontarget, "nontarget")
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1] or not (a.size and b.size):
        wanted = "target and nontarget trials with a column per system"
        raise InputError("fusion", wanted, f"shapes {a.shape} and {b.shape}")
    both = np.concatenate([a, b])
    if not np.isfinite(both).all():
        raise InputError("fusion needs finite scores: some are infinite")
    spread = both.std(axis=0)
    spread = np.where(spread > 0, spread, np.inf)
    label = np.repeat([1.0, -1.0], [len(a), len(b)])
    weight = np.repeat([prior / len(a), (1 - prior) / len(b)], [len(a), len(b)])
    log_odds = -Cost(prior, 1.0, 1.0).bayes_threshold
    columns = [*((both - both.mean(axis=0)) / spread).T]
    return np.asarray(_newton(columns, label, weight, log_odds)[0] / spread)


def _newton(
    design: Sequence[FloatArray], label: FloatArray, weight: FloatArray, log_odds: float
) -> tuple[FloatArray, float, bool]:
    """Slope of each column and bias; the damped Newton step halves until the loss falls."""

    def linear(parameters: FloatArray) -> FloatArray:
        parts = [slope * column for slope, column in zip(parameters, design, strict=False)]
        return np.asarray(sum(parts[1:], parts[0]) + parameters[-1])

    def loss(parameters: FloatArray) -> float:
        return float(np.dot(weight, np.logaddexp(0.0, -label * (linear(parameters) + log_odds))))

    size = len(design)
    parameters = np.zeros(size + 1)
    hessian = np.empty((size + 1, size + 1))
    current = loss(parameters)
    for _ in range(_STEPS):
        logit = linear(parameters) + log_odds
        wrong = weight * expit(-label * logit)
        gradient = np.array([*(np.dot(wrong, label * one) for one in design), np.dot(wrong, label)])
        curve = weight * expit(logit) * expit(-logit)
        for i, column in enumerate(design):
            hessian[i, :-1] = [np.dot(curve, column * other) for other in design]
            hessian[i, -1] = hessian[-1, i] = np.dot(curve, column)
        hessian[-1, -1] = curve.sum()
        if np.abs(gradient).max() < _TOLERANCE or np.abs(parameters[:-1]).max() > _LARGEST_SLOPE:
            break
        step = np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        length, slope = 1.0, _LEAST_DECREASE * float(np.dot(gradient, step))
        while (new := loss(parameters + length * step)) > current - length * slope:
            length /= 2
            if length < _TOLERANCE:
                break
        if new >= current:
            break
        parameters, current = parameters + length * step, new
    margin = label * linear(parameters)
    separable = bool(margin.min() > 0) or current < 1e-9
    return parameters[:-1], float(parameters[-1]), separable


def block_ranges(
    target: FloatArray, nontarget: FloatArray, boundaries: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest score of each block."""
    low = np.full(boundaries.size + 1, np.inf)
    high = np.full(boundaries.size + 1, -np.inf)
    for scores in (target, nontarget):
        block = np.searchsorted(boundaries, scores, side="right")
        np.minimum.at(low, block, scores)
        np.maximum.at(high, block, scores)
    return low, high
