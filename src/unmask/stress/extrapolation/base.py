"""What every extrapolation model shares: training cells, moments of the scores, how N enters, how
thresholds are read.

N enters only through the weights of a grid of a standard normal location z with edges z_g:
P_N(τ) = Σ_g [Φ(z_{g+1})^N − Φ(z_g)^N]·q_g(τ), where q_g(τ) is the false-alarm rate of an impostor
at that location: no sampling, and the same cost for N = 10 and N = 10⁹.

Scores may be warped by a monotone h, written as a warping of thresholds: h(s) > τ where
s > g(τ) = h⁻¹(τ). Given the rest of the model, each g(τ) is a problem in one dimension, searched on
a table, refined by Gauss–Newton, and so eliminated from the fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.special import digamma, log_ndtr, ndtr, polygamma

from unmask.base import FloatArray, IntArray, pareto_tail
from unmask.errors import InputError
from unmask.stress.impostors.pair_scores import PairScores
from unmask.stress.impostors.rates import Rates, crossed_rates
from unmask.stress.impostors.uncertainty import CrossFitted, Leaving, interval

UPPER = 0.3
LOWER_WEIGHT = 0.2
_TRIM = 5e-4
_LEAST_COUNT = 3
_SAMPLE = 1_000_000
_STEPS = 4
_END = 6
_TELLING = 20  # scores above a threshold, below which its rate says little

EDGES: FloatArray = np.linspace(-7.0, 9.5, 221)
"""Cells of predictions: reach far enough for N = 10⁹ and beyond."""

FIT_EDGES: FloatArray = np.linspace(-4.5, 6.0, 73)
"""Coarser cells, enough for the counts that a model is fitted to."""


def training_surface(crossed: CrossFitted, max_count: int, groups: Leaving | None = None) -> Rates:
    """Rates on the cells from which models are fitted, for N up to ``max_count``."""
    counts = training_counts(checked_max_count(max_count, crossed.whole))
    thresholds = training_thresholds(crossed.whole, max_count)
    return crossed_rates(crossed, thresholds, counts, groups)


def weights_of(counts: IntArray) -> FloatArray:
    """Weight of each count in a fit: those of the upper part, [0.3, 1]·N_max, count fully."""
    return np.where(counts >= UPPER * counts.max(), 1.0, LOWER_WEIGHT)


def checked_max_count(max_count: int, pairs: PairScores) -> int:
    """A largest training count that the pairs allow."""
    if not _LEAST_COUNT <= max_count <= pairs.max_count:
        raise InputError("max_count", f"{_LEAST_COUNT} to {pairs.max_count}", max_count)
    return max_count


def training_counts(max_count: int) -> IntArray:
    """N = 1 and powers up to the upper part of [1, max_count], then even steps through it."""
    low = np.geomspace(1, max(UPPER * max_count, 1.0), 8)
    high = np.linspace(UPPER * max_count, max_count, 12)
    return np.unique(np.rint(np.concatenate([low, high])).astype(np.int64).clip(1))


def training_thresholds(pairs: PairScores, max_count: int) -> FloatArray:
    """Even steps over the range in which rates move at all, and finer ones over the closest's."""
    rank = np.maximum(pairs.impostors // max_count, 1)
    order = np.lexsort((-pairs.similarity, pairs.target))
    closest = order[pairs.first[:-1] + rank - 1]
    near = np.concatenate([pairs.scores[pairs.start[p] : pairs.start[p + 1]] for p in closest])
    some = pairs.scores[:: max(pairs.scores.size // _SAMPLE, 1)]
    trim = min(max(_TRIM, _TELLING / near.size), 0.05)
    wide = np.linspace(np.quantile(some, _TRIM), np.quantile(near, 1 - trim), 48)
    first, last = np.quantile(near, [0.01, 1 - max(0.01, trim)])
    fine = np.linspace(float(first), float(last), 40)
    return np.unique(np.concatenate([wide, fine]))


@dataclass(frozen=True, eq=False)
class MeasuredFloor:
    """P_FA^M over rising ``thresholds``, the same without each group of speakers (first axis), and
    the number of choices behind it: P_FA^N rises with N, so these are floors for every N ≥ M.
    """

    thresholds: FloatArray
    values: FloatArray
    without: FloatArray
    cases: float

    @classmethod
    def of(cls, surface: Rates, cases: float, highest: float) -> MeasuredFloor:
        """The row of the largest count, and the rate of 0 at the ``highest`` score of all."""
        last, gone = surface.values[-1], surface.without[:, -1]
        if highest <= surface.thresholds[-1]:
            return cls(surface.thresholds, last, gone, cases)
        return cls(
            np.append(surface.thresholds, highest),
            np.append(last, 0.0),
            np.pad(gone, ((0, 0), (0, 1))),
            cases,
        )

    def rates(self, thresholds: FloatArray) -> FloatArray:
        """The rate at any threshold, linear between those measured and 0 beyond them."""
        falling = np.maximum.accumulate(self.values[::-1])[::-1]
        return np.asarray(np.interp(thresholds, self.thresholds, falling, right=0.0))

    def ends(self, thresholds: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Both ends of the interval, falling with the threshold."""
        low, high = interval(
            self.values[None], self.without[:, None], level, cases=np.array([self.cases])
        )
        low, high = np.minimum.accumulate(low[0]), np.maximum.accumulate(high[0][::-1])[::-1]
        return (
            np.interp(thresholds, self.thresholds, low, right=0.0),
            np.interp(thresholds, self.thresholds, high, left=1.0),
        )


def centres(edges: FloatArray) -> FloatArray:
    """Middle of each cell."""
    return np.asarray((edges[1:] + edges[:-1]) / 2)


def closest_mass(counts: npt.ArrayLike, edges: FloatArray = EDGES) -> FloatArray:
    """Probability (counts, grid cells) that the closest of N impostors lies in each cell."""
    n = np.asarray(counts, dtype=np.float64)[:, None]
    below = np.exp(n * log_ndtr(edges))
    below[:, 0], below[:, -1] = 0.0, 1.0
    return np.diff(below, axis=1)


@cache
def normal_nodes(size: int) -> tuple[FloatArray, FloatArray]:
    """Gauss–Hermite nodes and weights of the standard normal distribution."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(size)
    return nodes, weights / weights.sum()


def rising(rates: FloatArray) -> FloatArray:
    """The rates, made never to fall as the impostor comes closer: so all is monotone in N."""
    for farther, closer in pairwise(np.moveaxis(rates, -2, 0)):
        np.maximum(farther, closer, out=closer)
    return rates


class Model(ABC):
    """A fitted model: rates for any N and τ, and the numbers it consists of."""

    name: str

    @abstractmethod
    def rates(self, counts: IntArray, thresholds: FloatArray) -> FloatArray:
        """P_FA^N(τ), an array (counts, thresholds)."""


@dataclass(frozen=True, eq=False)
class Stack(Model):
    """The mean of several models that fit about equally well: rates are the mean of theirs."""

    members: tuple[Model, ...]
    name: str = "stack"

    def rates(self, counts: IntArray, thresholds: FloatArray) -> FloatArray:
        return np.asarray(np.mean([one.rates(counts, thresholds) for one in self.members], axis=0))


def eliminate(
    table: FloatArray, axis: FloatArray, wanted: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The best value of each threshold, and the rates (counts, thresholds) it gives: ``table`` are
    the model's rates (counts, axis), ``wanted`` the measured ones, ``weights`` those of counts.
    """
    from scipy.interpolate import CubicSpline

    cost = (weights @ table**2)[:, None] - 2 * (table.T * weights) @ wanted
    start = axis[np.argmin(cost, axis=0)]
    spline = CubicSpline(axis, table, axis=1)
    slope = spline.derivative()
    reach = 1.5 * (axis[1] - axis[0])
    value = start
    for _ in range(_STEPS):
        steep = slope(value)
        step = (weights @ (steep * (spline(value) - wanted))) / (weights @ steep**2 + 1e-12)
        value = np.clip(np.clip(value - step, start - reach, start + reach), axis[0], axis[-1])
    return value, np.asarray(spline(value))


@dataclass(frozen=True, eq=False)
class Warp:
    """g(τ): strictly rising through the training thresholds, straight beyond them."""

    thresholds: FloatArray
    values: FloatArray

    @classmethod
    def through(cls, thresholds: FloatArray, values: FloatArray, certainty: FloatArray) -> Warp:
        """Rising least-squares fit; ``certainty`` weighs each value."""
        from scipy.optimize import isotonic_regression

        risen = isotonic_regression(values, weights=np.maximum(certainty, 1e-9)).x
        span = float(risen[-1] - risen[0]) or 1.0
        rise = np.linspace(0.0, 1e-6 * span, risen.size)
        return cls(thresholds, np.asarray(risen + rise))

    def __call__(self, thresholds: FloatArray) -> FloatArray:
        """Warped thresholds; ±inf stay."""
        from scipy.interpolate import PchipInterpolator

        known, values = self.thresholds, self.values
        inside = np.clip(thresholds, known[0], known[-1])
        result = PchipInterpolator(known, values)(inside)
        low = self._slope(slice(None, _END)) * np.minimum(thresholds - known[0], 0.0)
        high = self._slope(slice(-_END, None)) * np.maximum(thresholds - known[-1], 0.0)
        return np.asarray(result + low + high)

    def _slope(self, end: slice) -> float:
        known, values = self.thresholds[end], self.values[end]
        whole = (self.values[-1] - self.values[0]) / (self.thresholds[-1] - self.thresholds[0])
        slope = (values[-1] - values[0]) / (known[-1] - known[0])
        return float(np.clip(slope, whole / 3, whole * 3))


def fitted_warp(table: FloatArray, axis: FloatArray, surface: Rates) -> Warp:
    """The monotone warping under which a model's table comes closest to the rates measured."""
    weights = weights_of(surface.counts)
    values, _ = eliminate(table, axis, surface.values, weights)
    steep = np.gradient(table, axis, axis=1)
    at = np.stack([np.interp(values, axis, row) for row in steep])
    return Warp.through(surface.thresholds, values, weights @ at**2)


TAIL = 0.02
_LEAST_TAIL = 30
_NEAR = 0.05
_PROBABILITIES: FloatArray = (np.arange(301) + 0.5) / 301


Located = tuple[FloatArray, FloatArray, FloatArray]


def located(pairs: PairScores, *, by_target: bool) -> Located:
    """Centre and spread of locations, by target or of all, and standardised ones, sorted."""
    targets = len(pairs.target_names)
    centre = np.full(targets, pairs.similarity.mean())
    spread = np.full(targets, pairs.similarity.std())
    if by_target:
        size = np.bincount(pairs.target, minlength=targets)
        centre = np.bincount(pairs.target, pairs.similarity) / size
        away = (pairs.similarity - centre[pairs.target]) ** 2
        spread = np.sqrt(np.bincount(pairs.target, away) / (size - 1))
    spread = np.maximum(spread, 1e-9 * max(float(np.ptp(pairs.similarity)), 1e-300))
    return centre, spread, np.sort((pairs.similarity - centre[pairs.target]) / spread[pairs.target])


def tail_quantiles(ordered: FloatArray) -> FloatArray:
    """Location at the grid's normal quantiles: empirical, with a generalised Pareto tail."""
    share = (np.arange(ordered.size) + 0.5) / ordered.size
    tail = max(TAIL, min(_LEAST_TAIL / ordered.size, 0.5))
    z = centres(EDGES)
    body = np.interp(ndtr(z), share, ordered)
    edge = float(np.interp(1 - tail, share, ordered))
    shape, scale = pareto_tail(ordered[ordered > edge] - edge)
    beyond = ndtr(-z) / tail
    logs = -np.log(np.maximum(beyond, 1e-300))
    far = edge + scale * (np.expm1(shape * logs) / shape if abs(shape) > 1e-9 else logs)
    return np.maximum.accumulate(np.where(beyond < 1, far, body))


@dataclass(frozen=True, eq=False)
class StartValues:
    """Start values of the fits, and the parts of the models that are not fitted at all."""

    location: float
    spread: float
    scale: float
    noise: float
    log_scale: float
    log_scale_spread: float
    near: FloatArray
    residuals: FloatArray
    by_target: Located
    pooled: Located

    @classmethod
    def of(cls, pairs: PairScores) -> StartValues:
        """Measure a set of pairs."""
        deviation = pairs.deviation * np.sqrt(pairs.sizes / (pairs.sizes - 1))
        freedom = (pairs.sizes - 1) / 2
        log_scale = np.log(np.maximum(deviation, 1e-12 * float(np.ptp(pairs.scores))))
        # (n − 1)·S²/σ² is χ² with n − 1 degrees of freedom, which tells the bias and the noise of
        # the logarithm of a sample deviation.
        log_scale -= 0.5 * (digamma(freedom) - np.log(freedom))
        own = float(np.mean(0.25 * polygamma(1, freedom)))
        spread = float(pairs.similarity.std())
        near, residuals = _residuals(pairs)
        return cls(
            float(pairs.similarity.mean()),
            max(spread, 1e-9 * float(np.ptp(pairs.scores))),
            float(np.sqrt(np.mean(deviation**2))),
            float(np.mean(deviation**2 / pairs.sizes)),
            float(log_scale.mean()),
            float(np.sqrt(max(log_scale.var() - own, 0.0))),
            near,
            residuals,
            located(pairs, by_target=True),
            located(pairs, by_target=False),
        )


def _residuals(pairs: PairScores) -> tuple[FloatArray, FloatArray]:
    """Location and scale of near pairs, slope of the log scale, quantiles of the residuals."""
    location = pairs.similarity
    order = np.argsort(location)
    bins = np.array_split(order[order.size // 2 :], 12 if order.size >= 240 else 3)
    middle = np.array([location[b].mean() for b in bins])
    log_rms = np.array([0.5 * np.log(np.mean(pairs.deviation[b] ** 2) + 1e-300) for b in bins])
    slope = float(np.polyfit(middle, log_rms, 1)[0]) if np.ptp(middle) > 0 else 0.0
    near = order[-max(int(_NEAR * order.size), 20) :]
    chosen = np.zeros(order.size, dtype=np.bool_)
    chosen[near] = True
    centre = float(location[near].mean())
    of_score = np.repeat(chosen, pairs.sizes)
    mean = np.repeat(location[chosen], pairs.sizes[chosen])
    residual = (pairs.scores[of_score] - mean) * np.exp(-slope * (mean - centre))
    scale = float(residual.std()) or 1e-9
    return np.array([centre, scale, slope]), np.quantile(residual / scale, _PROBABILITIES)
