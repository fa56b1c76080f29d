"""The models: location and scale, and PLDA in score space (Sholokhov 2020, sections 2.3 and 3),
trained on P_FA^N directly and without drawing impostors; and a tail that is measured.

**Location and scale.** The scores of a pair are location + scale·e with e from a base distribution,
and the closest of N impostors has the largest of N locations (steps 1 to 3 of section 3.1). In
units of the spread of locations, for a target with effect b ~ N(0, 1):

    location = ω·b + exp(η·b)·Q(z),  Q(z) = (exp(κz) − 1)/κ,  z ~ N(0, 1)
    log scale = α + β·location + ν·n,  n ~ N(0, 1)

ω and η say that some targets have closer neighbours than others, κ bends the locations' quantile
function, β lets near impostors have other scales than far ones. With families of voices
(``family``) a share ε of all impostors lies around δ with spread ω instead: few, but far out they
decide; ε is held near 2·10⁻⁶ unless the rates ask for more. The base is Gaussian or a
piecewise-linear distribution function over fixed knots (``cdf``).

**PLDA.** Vectors are φ = y + ε (eq. 5, centred), identity variables y of N(0, 1) and residuals ε of
N(0, d_k) in each of D dimensions. With t = 1 + d, a = 1/(t² − 1), b = a/t, the log-likelihood ratio
of two vectors (eq. 6) is, up to a constant, Σ a·φ_e·φ_t − ½b·(φ_e² + φ_t²). For a target y_e, an
impostor's similarity S = Σ a·y_e·y_t − ½b·y_t² has the cumulant generating function

    K(θ) = Σ −½ log(1 + bθ) + ½ θ²a²y_e²/(1 + bθ).

The saddle point gives its distribution function in the form Φ(r*) (Barndorff-Nielsen), with
r²/2 = θK′ − K and r* = r + log(θ√K″/r)/r; at that point y_t is normal with mean θ·a·y_e/(1 + bθ)
and variance 1/(1 + bθ). A score scatters around its similarity with three cumulants of the
quadratic form in the residuals, read through the Wilson–Hilferty transform because the scatter is
skewed.

**Peaks over threshold** (ISO/IEC 5152's way) rest on the scores alone. For each target (or for all
alike) the location of an impostor is m_i + s_i·Q(z), z ~ N(0, 1), where Q is the empirical quantile
function of the standardised mean scores, continued by a generalised Pareto tail. Scores scatter
around their location like the residuals of the nearest pairs, with a log-linear scale.

Warped models (``+``) read thresholds through a free monotone function, others through (τ − m)/s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.special import ndtr, ndtri, softmax

from unmask.base import FloatArray, IntArray
from unmask.errors import InputError
from unmask.stress.extrapolation import base
from unmask.stress.extrapolation.base import EDGES, FIT_EDGES, Model, StartValues, Warp
from unmask.stress.impostors.rates import Rates

KNOTS: FloatArray = np.concatenate([[-8.0], np.linspace(-3.0, 3.0, 13), [8.0]])
DIMENSION = 10
_AXIS: FloatArray = np.linspace(-6.0, 10.0, 128)
_PLDA_AXIS: FloatArray = np.linspace(-5.0, 4.5, 96)
_SCALE_NODES = 3
_ONE_SCALE = 0.01  # scales that vary less than this share are one scale
_TARGET_NODES = 7
_LOCATIONS: FloatArray = np.linspace(-8.0, 24.0, 481)
_ENROLLED = 64
_TILT: FloatArray = np.geomspace(0.02, 1e6, 120)

_AFFINE = ("location", "log_spread")
_SCALE = ("log_scale", "log_scale_spread")
_TARGET = ("slope", "target_spread", "bend")
_BASE = tuple(f"base{k}" for k in range(KNOTS.size - 1))
_WITHIN = tuple(f"log_within{k}" for k in range(DIMENSION))
PARAMETERS: dict[str, tuple[str, ...]] = {
    "ls": (*_AFFINE, *_SCALE),
    "ls+": _SCALE,
    "ls-cdf": (*_AFFINE, "log_scale_spread", *_BASE),
    "ls-cdf+": ("log_scale_spread", *_BASE),
    "ls-target": (*_AFFINE, *_SCALE, "slope", "target_shift", "target_spread", "bend"),
    "ls-target+": (*_SCALE, *_TARGET),
    "ls-family+": (*_SCALE, *_TARGET, "family", "family_shift", "family_spread"),
    "plda": (*_WITHIN, *_AFFINE),
    "plda+": _WITHIN,
}
"""What each model fits to the rates."""

_TAIL = ("gpd", "gpd-target", "gpd-target+")

MODELS: tuple[str, ...] = ("ls-generative", *PARAMETERS, *_TAIL)
"""Every model, in the order of the comparison table."""

# Least and largest value of a parameter, and the scale on which it moves.
_RANGES: dict[str, tuple[float, float, float]] = {
    "log_scale": (-4.0, 2.0, 0.1),
    "log_scale_spread": (-6.0, 0.7, 0.5),
    "slope": (-1.0, 1.0, 0.05),
    "target_shift": (-2.0, 2.0, 0.1),
    "target_spread": (-0.8, 0.8, 0.1),
    "bend": (-0.4, 0.4, 0.05),
    "family": (-16.0, -3.0, 0.1),
    "family_shift": (1.0, 9.0, 0.1),
    "family_spread": (-2.0, 0.7, 0.1),
} | dict.fromkeys(_WITHIN, (-6.0, 6.0, 0.3))
# Near which value a parameter is held, and how strongly.
_HELD: dict[str, tuple[float, float]] = {
    "family": (-13.0, 0.003),
    "family_shift": (4.0, 0.01),
    "family_spread": (-0.7, 0.01),
} | {
    name: (float(value), 1e-3)
    for name, value in zip(_WITHIN, np.log(np.geomspace(0.4, 4.0, DIMENSION)), strict=True)
}


def fits_rates(name: str) -> bool:
    """Whether a model is fitted to P_FA^N and reads nothing off the scores but a start."""
    return name not in (*_TAIL, "ls-generative")


def fit_model(
    name: str,
    surface: Rates,
    moments: StartValues,
    *,
    start: Model | None = None,
    brief: bool = False,
) -> Model:
    """Fit one model; ``start`` continues from a fit, for a few steps only where it is ``brief``."""
    if name == "ls-generative":
        return fit_generative(moments)
    if name in PARAMETERS:
        begin = start if isinstance(start, Parametric) else None
        return fit_parametric(name, surface, moments, begin, brief=brief)
    return fit_tail(checked_name(name), surface, moments)


def checked_name(name: str) -> str:
    """The name of a model, or an error that lists them."""
    if name not in MODELS:
        raise InputError(f"model: expected auto or one of {', '.join(MODELS)}, found {name}")
    return name


@dataclass(frozen=True, eq=False)
class Parametric(Model):
    """A fitted model: its parameters, and how thresholds are read."""

    name: str
    given: Mapping[str, float]
    warp: Warp | None

    def rates(self, counts: IntArray, thresholds: FloatArray) -> FloatArray:
        return np.clip(self.table(counts, self.axis(thresholds)), 0.0, 1.0)

    def axis(self, thresholds: FloatArray) -> FloatArray:
        """Thresholds in units of the model: warped, or (τ − m)/s without a warping."""
        if self.warp is not None:
            return self.warp(thresholds)
        location, log_unit = (self.given.get(name, 0.0) for name in _AFFINE)
        return np.asarray((thresholds - location) / np.exp(log_unit))

    def table(self, counts: IntArray, axis: FloatArray, edges: FloatArray = EDGES) -> FloatArray:
        """P_N (counts, axis), on the axis of its own units."""
        if not self.name.startswith("plda"):
            return location_table(self.given, counts, axis, edges)
        return plda_table(np.exp([self.given[name] for name in _WITHIN]), counts, axis, edges)


def fit_parametric(
    name: str,
    surface: Rates,
    moments: StartValues,
    start: Parametric | None = None,
    *,
    brief: bool = False,
) -> Parametric:
    """Levenberg–Marquardt, the warping eliminated; from ``start``, few steps where ``brief``."""
    from scipy.optimize import least_squares

    names, warped, general = PARAMETERS[name], name.endswith("+"), "cdf" in name
    plda = name.startswith("plda")
    axis = _PLDA_AXIS if plda else _AXIS
    begin = _start(moments, moments.scale if plda else moments.spread)
    begin |= start.given if start is not None else {}
    if general and start is None:
        plain = fit_parametric(name.replace("-cdf", ""), surface, moments).given
        begin |= {**plain, **gaussian_base(np.exp(plain["log_scale"]))}

    weights = base.weights_of(surface.counts)

    def residual(vector: FloatArray) -> FloatArray:
        """Weighted errors on the training cells, thresholds warped as is best."""
        given = dict(zip(names, vector, strict=True))
        model = Parametric(name, given, None)
        places = axis if warped else model.axis(surface.thresholds)
        rates = model.table(surface.counts, places, FIT_EDGES)
        if warped:
            _, rates = base.eliminate(rates, axis, surface.values, weights)
        errors = np.sqrt(weights)[:, None] * (rates - surface.values)
        near = [_HELD[one][1] * (given[one] - _HELD[one][0]) for one in names if one in _HELD]
        return np.concatenate([errors.ravel(), near])

    usual = (-np.inf, np.inf, 0.3 if plda else 0.1)
    low, high, step = zip(*(_RANGES.get(one, usual) for one in names), strict=True)
    most = 15 if plda else 12 if general or start is not None else 40
    solution = least_squares(
        residual,
        [begin[one] for one in names],
        bounds=(low, high),
        diff_step=1e-4,
        x_scale=step,
        ftol=1e-5 if plda else 1e-7,
        xtol=1e-4 if plda else 1e-6,
        max_nfev=3 if brief else most,
    )
    fitted = Parametric(name, dict(zip(names, solution.x.tolist(), strict=True)), None)
    if not warped:
        return fitted
    return replace(fitted, warp=base.fitted_warp(fitted.table(surface.counts, axis), axis, surface))


def _start(moments: StartValues, spread: float) -> dict[str, float]:
    return {
        **{name: centre for name, (centre, _) in _HELD.items()},
        "location": moments.location,
        "log_spread": float(np.log(spread)),
        "log_scale": float(np.clip(np.log(moments.scale / moments.spread), -3.9, 1.9)),
        "log_scale_spread": float(np.log(np.clip(moments.log_scale_spread, 0.02, 1.9))),
        "slope": 0.0,
        "target_shift": 0.05,
        "target_spread": 0.05,
        "bend": 0.0,
        "family": -8.5,
    }


def gaussian_base(scale: float) -> dict[str, float]:
    """Steps of the base that make it a normal distribution of this standard deviation."""
    steps = np.maximum(np.diff(ndtr(KNOTS / scale)), 1e-4)
    return dict(zip(_BASE, np.log(steps).tolist(), strict=True))


def fit_generative(moments: StartValues) -> Parametric:
    """The authors' earlier model (Sholokhov 2020, reference [3]), fitted to the scores: normal
    locations, with the variance of the pairs' means less their noise σ²/L, and log-normal scales,
    with mean and variance of the logarithms of the deviations less their bias ½ψ((L−1)/2) − ½
    log((L−1)/2) and noise ¼ψ′((L−1)/2).
    """
    log_spread = 0.5 * float(
        np.log(max(moments.spread**2 - moments.noise, 1e-6 * moments.spread**2))
    )
    return Parametric(
        "ls-generative",
        {
            "location": moments.location,
            "log_spread": log_spread,
            "log_scale": moments.log_scale - log_spread,
            "log_scale_spread": float(np.log(max(moments.log_scale_spread, 1e-3))),
        },
        None,
    )


def location_table(
    given: Mapping[str, float], counts: IntArray, axis: FloatArray, edges: FloatArray = EDGES
) -> FloatArray:
    """P_N (counts, axis) at thresholds in units of the location's spread."""
    shift, spread = given.get("target_shift", 0.0), given.get("target_spread", 0.0)
    slope = given.get("slope", 0.0)
    effects, of_effect = base.normal_nodes(_TARGET_NODES if shift or spread else 1)
    heights = None
    if "base0" in given:
        steps = softmax([given[name] for name in _BASE])
        heights = np.concatenate([[0.0], np.cumsum(steps)])
    varied = float(np.exp(given["log_scale_spread"]))
    noise, of_noise = base.normal_nodes(_SCALE_NODES if varied > _ONE_SCALE else 1)
    quantile = quantiles(given, base.centres(edges))
    location = shift * effects[:, None] + np.exp(spread * effects)[:, None] * quantile
    log_scale = given.get("log_scale", 0.0) + slope * np.clip(location, -8, 20)
    rates = np.zeros((*location.shape, axis.size))
    for node, weight in zip(noise, of_noise, strict=True):
        distance = location[:, :, None] - axis
        distance /= np.exp(np.clip(log_scale + varied * node, -12, 12))[:, :, None]
        if heights is None:
            rates += np.multiply(weight, ndtr(distance, out=distance), out=distance)
        else:  # P(e > −distance) under the piecewise-linear base
            rates += weight * (1.0 - np.interp(-distance, KNOTS, heights, left=0.0, right=1.0))
    return base.closest_mass(counts, edges) @ np.tensordot(of_effect, base.rising(rates), axes=1)


def quantiles(given: Mapping[str, float], z: FloatArray) -> FloatArray:
    """Q(z): the location of an impostor at each normal quantile, families included."""
    bend = given.get("bend", 0.0)
    if "family" not in given:
        return np.asarray(np.expm1(bend * z) / bend if abs(bend) > 1e-9 else z)
    plain = grid = _LOCATIONS
    if abs(bend) > 1e-9:
        # Beyond the end of a bounded location nobody but the family lies.
        plain = np.log(np.maximum(1 + bend * grid, 1e-300)) / bend
    share = np.exp(given["family"])
    above = (1 - share) * ndtr(-plain) + share * ndtr(
        (given["family_shift"] - grid) / np.exp(given["family_spread"])
    )
    reached = np.where(above < 0.5, -ndtri(np.maximum(above, 1e-300)), plain)
    return np.asarray(np.interp(z, np.maximum.accumulate(reached), grid))


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
    y = _enrolled(_ENROLLED, within.size)
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


def plda_table(
    within: FloatArray, counts: IntArray, axis: FloatArray, edges: FloatArray
) -> FloatArray:
    """P_N (counts, axis); the axis is in standard deviations of the scores around their mean."""
    location, deviation, skew = (part[:, :, None] for part in _located(within, base.centres(edges)))
    centre, unit = score_moments(within)
    skew = np.where(np.abs(skew) < 1e-4, 1e-4, skew)
    distance = (centre + unit * axis - location) / deviation
    root = np.cbrt(np.maximum(1 + 0.5 * skew * distance, 0.0))
    normal = 6 / skew * (root - 1) + skew / 6
    rates = base.rising(ndtr(-normal)).mean(axis=0)
    return np.asarray(base.closest_mass(counts, edges) @ rates)


_MOST_TARGETS = 250
_AXIS_POINTS = 160


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
            rates += base.rising(1.0 - np.interp(away, knots, below))
        return base.closest_mass(counts) @ (rates / self.centre.size)


def fit_tail(name: str, surface: Rates, moments: StartValues) -> TailModel:
    """Measure the tail, of all targets alike (``gpd``) or of each; ``+`` warps thresholds."""
    centre, spread, ordered = moments.pooled if name == "gpd" else moments.by_target
    reach = centre + 3 * spread
    drawn = np.argsort(reach, kind="stable")
    if np.unique(reach).size == 1:
        drawn = drawn[:1]
    elif drawn.size > _MOST_TARGETS:
        drawn = drawn[((np.arange(_MOST_TARGETS) + 0.5) * drawn.size / _MOST_TARGETS).astype(int)]
    model = TailModel(
        name,
        centre[drawn],
        spread[drawn],
        base.tail_quantiles(ordered),
        moments.near,
        moments.residuals,
        None,
    )
    if not name.endswith("+"):
        return model
    low, high = surface.thresholds[[0, -1]]
    axis = np.linspace(2 * low - high, 2 * high - low, 2 * _AXIS_POINTS)
    table = model.table(surface.counts, axis)
    return replace(model, warp=base.fitted_warp(table, axis, surface))
