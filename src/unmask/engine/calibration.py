"""Calibration that an adversary could do: fit on one set of scores, apply to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from unmask.base import FloatArray, as_numbers, as_scores
from unmask.engine.operating import Cost
from unmask.engine.roc import Roc
from unmask.errors import InputError
from unmask.trials import Scores, is_frame, read_scores

if TYPE_CHECKING:
    from unmask.engine.fusion import CalibratedScores, Map

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


@overload
def calibrate(
    target: Scores,
    nontarget: None = None,
    estimator: str = "linear",
    *,
    prior: float = 0.5,
    laplace: bool = True,
    train: Scores | Map | None = None,
    quality: Sequence[str] = (),
    folds: int = 5,
    seed: int = 0,
) -> CalibratedScores: ...
@overload
def calibrate(
    target: npt.ArrayLike,
    nontarget: npt.ArrayLike,
    estimator: str = "linear",
    *,
    prior: float = 0.5,
    laplace: bool = True,
) -> LinearCalibration | IsotonicCalibration: ...
def calibrate(
    target: Any,
    nontarget: Any = None,
    estimator: str = "linear",
    *,
    prior: float = 0.5,
    laplace: bool = True,
    train: Scores | Map | None = None,
    quality: Sequence[str] = (),
    folds: int = 5,
    seed: int = 0,
) -> LinearCalibration | IsotonicCalibration | CalibratedScores:
    """Turn scores into natural-log likelihood ratios (LLRs).

    ``linear`` is prior-weighted logistic regression, affine in the score (Brümmer and du Preez
    2006, Brümmer 2010): it minimises π·mean softplus(−(αs + β + logit π)) over targets +
    (1−π)·mean softplus(αs + β + logit π) over nontargets. ``isotonic`` is the PAV map.

    Two arrays give a map, whose ``apply`` calibrates other scores. A table of scores is calibrated
    itself: by a map of the development list ``train``, or cross-fitted by speaker. Then speakers
    fall into ``folds``, and a trial of folds i and j gets the map of all trials without a speaker
    of i or j: folds·(folds + 1)/2 maps, none of which saw a speaker whom it judges.

    Parameters
    ----------
    target : array_like or Scores
        Target scores, or a table of one system to calibrate.
    nontarget : array_like, optional
        Nontarget scores, beside an array of target scores.
    estimator : {"linear", "isotonic"}
        Which map is fitted.
    prior : float
        π, the prior at which the linear map is fitted.
    laplace : bool
        Add a pseudo-trial of each class at both ends of the isotonic map, so that no LLR is
        infinite.
    train : Scores or map, optional
        Development list, labelled, of other speakers; or the map of an earlier call.
    quality : sequence of str
        Columns of numbers, such as ``duration``, that enter the linear map additively (QMF);
        ``log:duration`` takes the logarithm.
    folds : int
        Groups of speakers for cross-fitting.
    seed : int
        Of the draw of these groups.

    Returns
    -------
    LinearCalibration, IsotonicCalibration or CalibratedScores
        The map of two arrays; of a table, its LLRs with the map.

    Examples
    --------
    >>> import unmask as um
    >>> line = um.calibrate([1.0, 2.0, 4.0], [0.0, 1.5, 3.0])
    >>> print(f"{line.scale:.3f} {line.offset:.3f}")
    0.527 -1.005
    >>> line.apply([2.0]).round(3)
    array([0.049])
    """
    if nontarget is None and (isinstance(target, Scores) or is_frame(target)):
        from unmask.engine.fusion import Fitting, calibrated

        how = Fitting(estimator, prior, laplace, tuple(quality), folds, seed)
        return calibrated(read_table(target), train, how)
    if nontarget is None or train is not None or quality:
        wanted = "nontarget scores beside those of targets" if nontarget is None else "a table"
        raise InputError("calibration", wanted, "none" if nontarget is None else "two arrays")
    a, b = as_scores(target, "target"), as_scores(nontarget, "nontarget")
    if estimator == "linear":
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            raise InputError("linear calibration needs finite scores: some are infinite")
        is_target = np.repeat([1.0, 0.0], [a.size, b.size])
        return weighted_line(np.concatenate([a, b]), is_target, 1 - is_target, prior=prior)
    if estimator != "isotonic":
        raise InputError("calibration estimator", "linear or isotonic", estimator)
    return isotonic(a, b, laplace=laplace)


def isotonic(
    target: FloatArray, nontarget: FloatArray, *, laplace: bool = True
) -> IsotonicCalibration:
    """The PAV map of scores."""
    roc = Roc.from_scores(target, nontarget)
    pav = roc.pav_laplace if laplace else roc.pav
    ranges = np.stack(block_ranges(target, nontarget, pav.boundaries), axis=1)
    return IsotonicCalibration(ranges.reshape(-1), np.repeat(pav.llr, 2), laplace)


def read_table(data: Any) -> Scores:
    """A table of scores as it is, or that of a data frame."""
    return data if isinstance(data, Scores) else read_scores(data)


def weighted_line(
    scores: FloatArray, target: FloatArray, nontarget: FloatArray, *, prior: float = 0.5
) -> LinearCalibration:
    """Logistic regression of ``scores`` at the ``prior``, each of which weighs ``target`` as a
    target and ``nontarget`` as a nontarget.
    """
    slopes, offset, separable = logistic([scores], target, nontarget, prior=prior)
    return LinearCalibration(float(slopes[0]), offset, separable)


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
    is_target = np.repeat([1.0, 0.0], [len(a), len(b)])
    return logistic([*both.T], is_target, 1 - is_target, prior=prior)[0]


def logistic(
    columns: Sequence[FloatArray], target: FloatArray, nontarget: FloatArray, *, prior: float
) -> tuple[FloatArray, float, bool]:
    """The slope of each column, the offset, and whether the classes do not overlap: the regression
    of :func:`calibrate` on trials that weigh ``target`` as targets and ``nontarget`` as nontargets.
    """
    log_odds = -Cost(prior, 1.0, 1.0).bayes_threshold
    sides = [(w > 0, share * w / w.sum()) for w, share in ((target, prior), (nontarget, 1 - prior))]
    label = np.repeat([1.0, -1.0], [int(kept.sum()) for kept, _ in sides])
    weight = np.concatenate([share[kept] for kept, share in sides])
    design, centres, spreads = [], [], []
    for column in columns:
        both = np.concatenate([column[kept] for kept, _ in sides])
        low, centre, high = (float(score) for score in np.quantile(both, (0.25, 0.5, 0.75)))
        spread = high - low or float(both.std()) or np.inf
        design.append((both - centre) / spread)
        centres.append(centre)
        spreads.append(spread)
    slopes, bias, separable = _newton(design, label, weight, log_odds)
    slopes = slopes / np.array(spreads)
    return slopes, float(bias - slopes @ np.array(centres)), separable


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
