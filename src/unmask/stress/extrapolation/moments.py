"""What the scores say without any fit: where pairs lie, how they scatter, how the tail falls.

And the models that rest on it alone, peaks over threshold (ISO/IEC 5152's way). For each target (or
for all alike) the location of an impostor is m_i + s_i·Q(z), z ~ N(0, 1), where Q is the empirical
quantile function of the standardised mean scores, continued by a generalised Pareto tail. Scores
scatter around their location like the residuals of the nearest pairs, with a log-linear scale.
Nothing is fitted to P_FA^N; the warped variant reads thresholds through g(τ).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import digamma, ndtr, polygamma

from unmask.base import FloatArray, IntArray
from unmask.stress.extrapolation.base import (
    EDGES,
    Model,
    Warp,
    centres,
    closest_mass,
    fitted_warp,
    rising,
)
from unmask.stress.impostors.pair_scores import PairScores
from unmask.stress.impostors.rates import Rates

TAIL = 0.02
_LEAST_TAIL = 30
_NEAR = 0.05
_MOST_TARGETS = 250
_AXIS_POINTS = 160
_PROBABILITIES: FloatArray = (np.arange(301) + 0.5) / 301


@dataclass(frozen=True, eq=False)
class Located:
    """Locations of all pairs, standardised within their target or all alike, sorted once."""

    centre: FloatArray
    spread: FloatArray
    ordered: FloatArray

    @classmethod
    def of(cls, pairs: PairScores, *, by_target: bool) -> Located:
        """Standardise each pair's mean score."""
        targets = len(pairs.target_names)
        size = np.bincount(pairs.target, minlength=targets)
        centre = np.bincount(pairs.target, pairs.similarity) / size
        spread = np.sqrt(
            np.bincount(pairs.target, (pairs.similarity - centre[pairs.target]) ** 2) / (size - 1)
        )
        if not by_target:
            centre = np.full(targets, pairs.similarity.mean())
            spread = np.full(targets, pairs.similarity.std())
        spread = np.maximum(spread, 1e-9 * max(float(np.ptp(pairs.similarity)), 1e-300))
        z = (pairs.similarity - centre[pairs.target]) / spread[pairs.target]
        return cls(centre, spread, np.sort(z))

    def quantiles(self) -> FloatArray:
        """Location at the grid's normal quantiles: empirical, with a generalised Pareto tail."""
        values = self.ordered
        share = (np.arange(values.size) + 0.5) / values.size
        tail = max(TAIL, min(_LEAST_TAIL / values.size, 0.5))
        z = centres(EDGES)
        body = np.interp(ndtr(z), share, values)
        edge = float(np.interp(1 - tail, share, values))
        excess = values[values > edge] - edge
        shape, scale = pareto_tail(excess, np.ones(excess.size))
        beyond = ndtr(-z) / tail
        far = edge + scale * (
            np.expm1(-shape * np.log(np.maximum(beyond, 1e-300))) / shape
            if abs(shape) > 1e-9
            else -np.log(np.maximum(beyond, 1e-300))
        )
        return np.maximum.accumulate(np.where(beyond < 1, far, body))


def pareto_tail(excess: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Shape and scale of a generalised Pareto tail by probability-weighted moments.

    With a_0 = E[X] and a_1 = E[X·(1 − F(X))]: shape = 2 − a_0/(a_0 − 2a_1),
    scale = 2·a_0·a_1/(a_0 − 2a_1).
    """
    order = np.argsort(excess)
    x, w = excess[order], weights[order]
    total = np.cumsum(w)
    survival = 1 - (total - 0.5 * w) / total[-1]
    first = float(np.average(x, weights=w))
    second = float(np.average(x * survival, weights=w))
    gap = max(first - 2 * second, 1e-12 * first)
    shape = float(np.clip(2 - first / gap, -0.5, 0.3))
    return shape, first * (1 - shape)


@dataclass(frozen=True, eq=False)
class Moments:
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
    def of(cls, pairs: PairScores) -> Moments:
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
            Located.of(pairs, by_target=True),
            Located.of(pairs, by_target=False),
        )


def _residuals(pairs: PairScores) -> tuple[FloatArray, FloatArray]:
    """How scores scatter around the mean of near pairs: the location and scale there, the slope of
    the log scale in the location, and quantiles of the standardised residuals.
    """
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


@dataclass(frozen=True, eq=False)
class TailModel(Model):
    """Locations per target, their tail, and the scatter of scores around them."""

    name: str
    centre: FloatArray
    spread: FloatArray
    quantile: FloatArray
    near: FloatArray
    residuals: FloatArray
    warp: Warp | None

    def rates(self, counts: IntArray, thresholds: FloatArray) -> FloatArray:
        axis = thresholds if self.warp is None else self.warp(thresholds)
        return np.clip(self.table(counts, axis), 0.0, 1.0)

    def table(self, counts: IntArray, axis: FloatArray) -> FloatArray:
        """P_N (counts, axis) without warping."""
        middle, scale, slope = self.near
        share = (np.arange(self.residuals.size) + 0.5) / self.residuals.size
        below = np.concatenate([[0.0], share, [1.0]])
        step = np.diff(self.residuals)[[0, -1]] * 4
        knots = np.concatenate(
            [[self.residuals[0] - step[0]], self.residuals, [self.residuals[-1] + step[1]]]
        )
        rates = np.zeros((self.quantile.size, axis.size))
        finite = np.nan_to_num(axis, posinf=1e12, neginf=-1e12)
        for centre, spread in zip(self.centre, self.spread, strict=True):
            location = centre + spread * self.quantile
            width = scale * np.exp(np.clip(slope * (location - middle), -3, 3))
            away = (finite - location[:, None]) / width[:, None]
            rates += rising(1.0 - np.interp(away, knots, below))
        return closest_mass(counts) @ (rates / self.centre.size)


def fit_tail(name: str, surface: Rates, moments: Moments) -> TailModel:
    """Measure the tail, of all targets alike (``gpd``) or of each; ``+`` warps thresholds."""
    located = moments.pooled if name == "gpd" else moments.by_target
    reach = located.centre + 3 * located.spread
    drawn = np.argsort(reach, kind="stable")
    if np.unique(reach).size == 1:
        drawn = drawn[:1]
    elif drawn.size > _MOST_TARGETS:
        drawn = drawn[((np.arange(_MOST_TARGETS) + 0.5) * drawn.size / _MOST_TARGETS).astype(int)]
    model = TailModel(
        name,
        located.centre[drawn],
        located.spread[drawn],
        located.quantiles(),
        moments.near,
        moments.residuals,
        None,
    )
    if not name.endswith("+"):
        return model
    low, high = surface.thresholds[[0, -1]]
    axis = np.linspace(2 * low - high, 2 * high - low, 2 * _AXIS_POINTS)
    table = model.table(surface.counts, axis)
    return replace(model, warp=fitted_warp(table, axis, surface))
