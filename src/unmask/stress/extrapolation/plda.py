"""PLDA in score space (Sholokhov 2020, sections 2.3 and 3.2) without drawing impostors.

Vectors are φ = y + ε (eq. 5, centred), identity variables y of N(0, 1) and residuals ε of N(0, d_k)
in each of D dimensions. With t = 1 + d, a = 1/(t² − 1), b = a/t, the log-likelihood ratio of two
vectors (eq. 6) is, up to a constant, Σ a·φ_e·φ_t − ½b·(φ_e² + φ_t²). For a target y_e, an
impostor's similarity S = Σ a·y_e·y_t − ½b·y_t² has the cumulant generating function

    K(θ) = Σ −½ log(1 + bθ) + ½ θ²a²y_e²/(1 + bθ).

The saddle point gives its distribution function in the form Φ(r*) (Barndorff-Nielsen), with
r²/2 = θK′ − K and r* = r + log(θ√K″/r)/r; at that point y_t is normal with mean θ·a·y_e/(1 + bθ)
and variance 1/(1 + bθ). A score scatters around its similarity with three cumulants of the
quadratic form in the residuals, read through the Wilson–Hilferty transform because the scatter is
skewed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import ndtr, ndtri

from unmask.base import FloatArray, IntArray
from unmask.stress.extrapolation.base import (
    EDGES,
    FIT_EDGES,
    Model,
    Surface,
    Warp,
    away,
    centres,
    closest_mass,
    fitted_warp,
    read,
    rising,
)
from unmask.stress.extrapolation.moments import Moments

DIMENSION = 10
_TARGETS = 64
_AXIS: FloatArray = np.linspace(-5.0, 4.5, 96)
_TILT: FloatArray = np.geomspace(0.02, 1e6, 120)
_START: FloatArray = np.geomspace(0.4, 4.0, DIMENSION)


@cache
def _enrolled(size: int, dimension: int) -> FloatArray:
    """Quasi-random identity variables of the targets; −y would give the same as y."""
    from scipy.stats import qmc

    points = ndtri(qmc.Sobol(dimension, scramble=True, seed=0).random(size))
    return np.asarray(points / np.sqrt(np.mean(points**2, axis=0)))


def _located(
    within: FloatArray, quantiles: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """For each target and grid cell: location, standard deviation and skewness of the scores."""
    t = 1 + within
    a = 1 / (t**2 - 1)
    b = a / t
    y = _enrolled(_TARGETS, within.size)
    spread = np.sqrt(np.sum(0.5 * b**2 + (a * y) ** 2, axis=1))
    tilt = _tilts(spread, quantiles, a, b, y)[:, :, None]
    u = 1 + b * tilt
    mean = tilt * a * y[:, None, :] / u
    square = mean**2 + 1 / u
    similarity = -0.5 * b / u + a**2 * y[:, None, :] ** 2 * (tilt / u - 0.5 * b * (tilt / u) ** 2)
    own = -0.5 * b * y[:, None, :] ** 2 - b * within
    e = y[:, None, :]
    length = (a**2 + b**2) * (square + e**2) - 4 * a * b * e * mean
    product = (a**2 + b**2) * e * mean - a * b * (square + e**2)
    second = within**2 * (a**2 + b**2) + within * length
    third = within**3 * (-6 * a**2 * b - 2 * b**3) + 3 * within**2 * (-b * length + 2 * a * product)
    variance = second.sum(axis=2)
    return (similarity + own).sum(axis=2), np.sqrt(variance), third.sum(axis=2) / variance**1.5


def _tilts(
    spread: FloatArray, quantiles: FloatArray, a: FloatArray, b: FloatArray, y: FloatArray
) -> FloatArray:
    """The saddle point θ (targets, cells) at which S has the normal ``quantiles``."""
    below = -1 / (float(b.max()) + spread[:, None] / _TILT[::-1])
    theta = np.concatenate([below, _TILT / spread[:, None]], axis=1)
    u = 1 + b * theta[:, :, None]
    pull = (a * y)[:, None, :] ** 2
    half = 0.5 * (np.log(u) - (u - 1) / u) + 0.5 * theta[:, :, None] ** 2 * pull / u**2
    curve = np.sum(0.5 * (b / u) ** 2 + pull / u**3, axis=2)
    r = np.sign(theta) * np.sqrt(2 * half.sum(axis=2))
    star = np.maximum.accumulate(r + np.log(theta * np.sqrt(curve) / r) / r, axis=1)
    stretched = np.arcsinh(10 * theta * spread[:, None])
    tilt = np.stack([np.interp(quantiles, s, x) for s, x in zip(star, stretched, strict=True)])
    lowest = theta[:, :1]
    return np.asarray(np.maximum(np.sinh(tilt) / (10 * spread[:, None]), lowest))


def score_moments(within: FloatArray) -> tuple[float, float]:
    """Mean −Σa and standard deviation √Σt²(a² + b²) of the scores of random pairs."""
    t = 1 + within
    a = 1 / (t**2 - 1)
    return -float(a.sum()), float(np.sqrt(np.sum(a**2 * (t**2 + 1))))


def rate_table(
    within: FloatArray, counts: IntArray, axis: FloatArray, edges: FloatArray
) -> FloatArray:
    """P_N (counts, axis); the axis is in standard deviations of the scores around their mean."""
    location, deviation, skew = (part[:, :, None] for part in _located(within, centres(edges)))
    centre, unit = score_moments(within)
    skew = np.where(np.abs(skew) < 1e-4, 1e-4, skew)
    distance = (centre + unit * axis - location) / deviation
    root = np.cbrt(np.maximum(1 + 0.5 * skew * distance, 0.0))
    normal = 6 / skew * (root - 1) + skew / 6
    rates = rising(ndtr(-normal)).mean(axis=0)
    return np.asarray(closest_mass(counts, edges) @ rates)


@dataclass(frozen=True, eq=False)
class Plda(Model):
    """A fitted PLDA score generator: within-speaker variances and how thresholds are read."""

    name: str
    within: FloatArray
    affine: FloatArray
    warp: Warp | None

    def rates(self, counts: IntArray, thresholds: FloatArray) -> FloatArray:
        axis = read(thresholds, self.warp, *self.affine)
        return np.clip(rate_table(self.within, counts, axis, EDGES), 0.0, 1.0)


def fit_plda(
    name: str, surface: Surface, moments: Moments, start: Plda | None, *, brief: bool
) -> Plda:
    """Levenberg–Marquardt over log d_k (and an affine map without warping), warping eliminated."""
    from scipy.optimize import least_squares

    warped = name.endswith("+")
    within = _START if start is None else start.within
    affine = [moments.location, np.log(moments.scale)] if start is None else start.affine
    begin = np.log(within) if warped else np.concatenate([np.log(within), affine])

    def residual(vector: FloatArray) -> FloatArray:
        tried = np.exp(vector[:DIMENSION])
        errors = away(
            surface,
            lambda axis: rate_table(tried, surface.counts, axis, FIT_EDGES),
            _AXIS,
            None if warped else (vector[-2], vector[-1]),
        )
        return np.concatenate([errors, 1e-3 * (vector[:DIMENSION] - np.log(_START))])

    limit = np.full(begin.size, np.inf)
    limit[:DIMENSION] = 6.0
    solution = least_squares(
        residual,
        begin,
        bounds=(-limit, limit),
        diff_step=1e-4,
        x_scale=0.3,
        ftol=1e-5,
        xtol=1e-4,
        max_nfev=3 if brief else 15,
    )
    within = np.exp(solution.x[:DIMENSION])
    if not warped:
        return Plda(name, within, solution.x[DIMENSION:], None)
    table = rate_table(within, surface.counts, _AXIS, EDGES)
    return Plda(name, within, np.zeros(2), fitted_warp(table, _AXIS, surface))
