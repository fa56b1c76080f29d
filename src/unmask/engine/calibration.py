"""Calibration that an adversary could do: fit on one set of scores, apply to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from unmask.base import BoolArray, FloatArray, as_numbers, as_scores
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
# Trials per coefficient that must lie in the overlap of the classes, by the penalised map. With ten
# times as many by the plain map, the penalised one need not be fitted to know.
_LEAST_OVERLAP = 10
_CLEAR_OVERLAP = 10


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
    up to that block, since nothing lies between a number and infinity. ``system`` names what it
    was fitted to, if that is known.
    """

    score: FloatArray
    llr: FloatArray
    laplace: bool
    system: str = ""

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
    of i or j: folds·(folds + 1)/2 maps, none of which saw a speaker whom it judges. Of a table,
    linear maps of classes that hardly overlap (fewer than 10 trials per coefficient) are fitted
    with Firth's penalty; a notice says how many.

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
    if isinstance(nontarget, str):
        wanted = f"the estimator by its name (estimator={nontarget!r})"
        raise InputError("calibration", wanted, f"{nontarget!r} in place of nontarget scores")
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
    trials = _TrainingTrials.of(columns, target, nontarget, prior)
    parameters, is_separable = _newton(trials)
    return *trials.unscaled(parameters), is_separable


def steady_logistic(
    columns: Sequence[FloatArray], is_target: BoolArray, is_nontarget: BoolArray, *, prior: float
) -> tuple[FloatArray, float, bool]:
    """Fit the regression of :func:`calibrate` so that it exists whatever the trials are.

    Of separable trials there is no best map, and of nearly separable ones it is all but vertical.
    Where fewer than 10 trials per coefficient lie in the overlap of the classes, the map is that of
    Firth's penalty (1993).

    Returns
    -------
    slopes, offset, is_penalised
        The slope of each column, the offset, and whether the penalty was needed.
    """
    trials = _TrainingTrials.of(columns, is_target, is_nontarget, prior)
    needed = _LEAST_OVERLAP * (len(columns) + 1)
    parameters, _ = _newton(trials)
    if trials.overlap(parameters) < _CLEAR_OVERLAP * needed:
        penalised, _ = _newton(trials, penalty=trials.firth_weight)
        if trials.overlap(penalised) < needed:
            return *trials.unscaled(penalised), True
    return *trials.unscaled(parameters), False


@dataclass(frozen=True, eq=False)
class _TrainingTrials:
    """Trials of a logistic regression, targets first, their columns centred and scaled.

    Attributes
    ----------
    design
        The columns, each less its median and divided by its interquartile range.
    label
        1 for a target, −1 for a nontarget.
    weight
        Of each trial: those of targets add up to the prior, all to 1.
    log_odds
        The logit of the prior, which is added to every LLR.
    """

    design: Sequence[FloatArray]
    label: FloatArray
    weight: FloatArray
    log_odds: float
    centres: FloatArray
    spreads: FloatArray

    @classmethod
    def of(
        cls,
        columns: Sequence[FloatArray],
        target: FloatArray | BoolArray,
        nontarget: FloatArray | BoolArray,
        prior: float,
    ) -> _TrainingTrials:
        """Trials that weigh ``target`` as targets and ``nontarget`` as nontargets."""
        log_odds = -Cost(prior, 1.0, 1.0).bayes_threshold
        is_side = [weights > 0 for weights in (target, nontarget)]
        shares = [
            share * weights[used] / weights.sum()
            for weights, used, share in zip(
                (target, nontarget), is_side, (prior, 1 - prior), strict=True
            )
        ]
        label = np.repeat([1.0, -1.0], [share.size for share in shares])
        design, centres, spreads = [], [], []
        for column in columns:
            both = np.concatenate([column[used] for used in is_side])
            low, centre, high = (float(score) for score in np.quantile(both, (0.25, 0.5, 0.75)))
            spread = high - low or float(both.std()) or np.inf
            design.append((both - centre) / spread)
            centres.append(centre)
            spreads.append(spread)
        scaling = np.array(centres), np.array(spreads)
        return cls(design, label, np.concatenate(shares), log_odds, *scaling)

    def linear(self, parameters: FloatArray) -> FloatArray:
        """The LLR of each trial by the slopes and the offset in ``parameters``."""
        parts = [slope * x for slope, x in zip(parameters, self.design, strict=False)]
        return np.asarray(sum(parts[1:], parts[0]) + parameters[-1])

    def unscaled(self, parameters: FloatArray) -> tuple[FloatArray, float]:
        """Slopes and offset for columns as they were given."""
        slopes = parameters[:-1] / self.spreads
        return slopes, float(parameters[-1] - slopes @ self.centres)

    def overlap(self, parameters: FloatArray) -> int:
        """How many trials lie in the overlap of the classes, by the LLRs of ``parameters``.

        Those are targets at or below the highest nontarget and nontargets at or above the lowest
        target.
        """
        llr = self.linear(parameters)
        target, nontarget = llr[self.label > 0], llr[self.label < 0]
        crossed = int((target <= nontarget.max()).sum())
        return crossed + int((nontarget >= target.min()).sum())

    @property
    def firth_weight(self) -> float:
        """The weight of Firth's penalty beside trials whose weights add up to 1.

        Trials weigh twice the number of the rarer class in all. If they weighed their own number, a
        rare target would weigh as much as many trials, and the penalty would vanish beside it.
        """
        targets = int((self.label > 0).sum())
        return 1 / (2 * min(targets, self.label.size - targets))


def _newton(trials: _TrainingTrials, *, penalty: float = 0.0) -> tuple[FloatArray, bool]:
    """Slope of each column and bias that minimise the loss; whether they separate the classes.

    A damped Newton step halves until the loss falls. With a ``penalty`` the loss is that of Firth:
    −Σ w log p − ½·penalty·log det X'WX, whose steps take X'WX for the curvature.
    """
    design, label, weight = trials.design, trials.label, trials.weight
    size = len(design)

    def loss(parameters: FloatArray) -> float:
        logit = trials.linear(parameters) + trials.log_odds
        plain = float(np.dot(weight, np.logaddexp(0.0, -label * logit)))
        if not penalty:
            return plain
        curve = weight * expit(logit) * expit(-logit)
        sign, log_det = np.linalg.slogdet(information(curve))
        return plain - penalty * log_det / 2 if sign > 0 else np.inf

    def information(curve: FloatArray) -> FloatArray:
        """X'WX, in which the last column of X is 1."""
        matrix = np.empty((size + 1, size + 1))
        for i, column in enumerate(design):
            matrix[i, :-1] = [np.dot(curve, column * other) for other in design]
            matrix[i, -1] = matrix[-1, i] = np.dot(curve, column)
        matrix[-1, -1] = curve.sum()
        return matrix

    ones = np.ones(label.size)
    parameters = np.zeros(size + 1)
    current = loss(parameters)
    for _ in range(_STEPS):
        logit = trials.linear(parameters) + trials.log_odds
        curve = weight * expit(logit) * expit(-logit)
        hessian = information(curve)
        # What each trial pulls towards its class; the penalty adds h·(½ − p), h its leverage.
        pull = label * weight * expit(-label * logit)
        if penalty:
            pull = pull + penalty * _leverage(design, curve, hessian) * (0.5 - expit(logit))
        gradient = np.array([*(np.dot(pull, column) for column in design), np.dot(pull, ones)])
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
    margin = label * trials.linear(parameters)
    is_separable = bool(margin.min() > 0) or (not penalty and current < 1e-9)
    return parameters, is_separable


def _leverage(design: Sequence[FloatArray], curve: FloatArray, hessian: FloatArray) -> FloatArray:
    """The diagonal of W^½ X (X'WX)⁻¹ X' W^½: how much of the fit rests on each trial."""
    columns = [*design, np.ones(curve.size)]
    inverse = np.linalg.pinv(hessian, hermitian=True)
    leverage = np.zeros(curve.size)
    for column, row in zip(columns, inverse, strict=True):
        projected = sum(share * other for share, other in zip(row, columns, strict=True))
        leverage += column * projected
    return curve * leverage


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
