"""Location-scale models (Sholokhov 2020, section 3.1), trained on P_FA^N directly.

The scores of a pair are location + scale·e with e from a base distribution, and the closest of N
impostors has the largest of N locations (steps 1 to 3 of the section). In units of the spread
of locations, for a target with effect b ~ N(0, 1):

    location = ω·b + exp(η·b)·Q(z),  Q(z) = (exp(κz) − 1)/κ,  z ~ N(0, 1)
    log scale = α + β·location + ν·n,  n ~ N(0, 1)

ω and η say that some targets have closer neighbours than others, κ bends the locations' quantile
function, β lets near impostors have other scales than far ones. With families of voices
(``family``) a share ε of all impostors lies around δ with spread ω instead: few, but far out they
decide; ε is held near 2·10⁻⁶ unless the rates ask for more. The base is Gaussian or a
piecewise-linear distribution function over fixed knots (``cdf``). Warped models read thresholds
through a free monotone function; the others through (τ − m)/s.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri, softmax

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
    normal_nodes,
    read,
    rising,
)
from unmask.stress.extrapolation.moments import Moments

KNOTS: FloatArray = np.concatenate([[-8.0], np.linspace(-3.0, 3.0, 13), [8.0]])
_AXIS: FloatArray = np.linspace(-6.0, 10.0, 128)
_SCALE_NODES = 3
_ONE_SCALE = 0.01  # scales that vary less than this share are one scale
_TARGET_NODES = 7
_FAMILY = ("family", "family_shift", "family_spread")
_FAMILY_START = {"family": -13.0, "family_shift": 4.0, "family_spread": -0.7}
_HOLD = {"family": 0.003, "family_shift": 0.01, "family_spread": 0.01}
_LOCATIONS: FloatArray = np.linspace(-8.0, 24.0, 481)


@dataclass(frozen=True)
class Recipe:
    """Which parameters a named model fits, and whether it warps and has a general base."""

    name: str
    extras: tuple[str, ...] = ()
    warped: bool = False
    general: bool = False

    @property
    def parameters(self) -> tuple[str, ...]:
        affine = () if self.warped else ("location", "log_spread")
        scale = ("log_scale_spread",) if self.general else ("log_scale", "log_scale_spread")
        base = tuple(f"base{k}" for k in range(KNOTS.size - 1)) if self.general else ()
        return (*affine, *scale, *self.extras, *base)


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        Recipe("ls"),
        Recipe("ls+", warped=True),
        Recipe("ls-cdf", general=True),
        Recipe("ls-cdf+", warped=True, general=True),
        Recipe("ls-target", ("slope", "target_shift", "target_spread", "bend")),
        Recipe("ls-target+", ("slope", "target_spread", "bend"), warped=True),
        Recipe("ls-family+", ("slope", "target_spread", "bend", *_FAMILY), warped=True),
    )
}


def rate_table(
    given: Mapping[str, float], counts: IntArray, axis: FloatArray, edges: FloatArray = EDGES
) -> FloatArray:
    """P_N (counts, axis) at thresholds in units of the location's spread."""
    shift, spread = given.get("target_shift", 0.0), given.get("target_spread", 0.0)
    slope = given.get("slope", 0.0)
    effects, of_effect = normal_nodes(_TARGET_NODES if shift or spread else 1)
    heights = _base(given)
    varied = float(np.exp(given["log_scale_spread"]))
    noise, of_noise = normal_nodes(_SCALE_NODES if varied > _ONE_SCALE else 1)
    quantile = quantiles(given, centres(edges))
    location = shift * effects[:, None] + np.exp(spread * effects)[:, None] * quantile
    log_scale = given.get("log_scale", 0.0) + slope * np.clip(location, -8, 20)
    rates = np.zeros((*location.shape, axis.size))
    for node, weight in zip(noise, of_noise, strict=True):
        scale = np.exp(np.clip(log_scale + varied * node, -12, 12))
        distance = (location[:, :, None] - axis) / scale[:, :, None]
        if heights is None:
            rates += weight * ndtr(distance)
        else:  # P(e > −distance) under the piecewise-linear base
            rates += weight * (1.0 - np.interp(-distance, KNOTS, heights, left=0.0, right=1.0))
    return closest_mass(counts, edges) @ np.tensordot(of_effect, rising(rates), axes=1)


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


def _base(given: Mapping[str, float]) -> FloatArray | None:
    """Heights of the general base distribution at the knots."""
    if "base0" not in given:
        return None
    steps = softmax([given[f"base{k}"] for k in range(KNOTS.size - 1)])
    return np.concatenate([[0.0], np.cumsum(steps)])


@dataclass(frozen=True, eq=False)
class LocationScale(Model):
    """A fitted location-scale model."""

    name: str
    given: Mapping[str, float]
    warp: Warp | None

    def rates(self, counts: IntArray, thresholds: FloatArray) -> FloatArray:
        affine = self.given.get("location", 0.0), self.given.get("log_spread", 0.0)
        axis = read(thresholds, self.warp, *affine)
        return np.clip(rate_table(self.given, counts, axis), 0.0, 1.0)


def fit_location_scale(
    recipe: Recipe,
    surface: Surface,
    moments: Moments,
    start: LocationScale | None = None,
    *,
    brief: bool = False,
) -> LocationScale:
    """Levenberg–Marquardt on the surface, the warping eliminated; from ``start`` if given, for a
    few steps only where it is ``brief``.
    """
    from scipy.optimize import least_squares

    names = recipe.parameters
    begin = _start(moments) | (dict(start.given) if start is not None else {})
    if recipe.general and start is None:
        simple = Recipe(recipe.name, recipe.extras, recipe.warped)
        plain = fit_location_scale(simple, surface, moments).given
        begin |= {name: value for name, value in plain.items() if name in names}
        begin |= gaussian_base(np.exp(plain["log_scale"]))

    def residual(vector: FloatArray) -> FloatArray:
        given = dict(zip(names, vector, strict=True))
        errors = away(
            surface,
            lambda axis: rate_table(given, surface.counts, axis, FIT_EDGES),
            _AXIS,
            None if recipe.warped else (given["location"], given["log_spread"]),
        )
        if "family" not in given:
            return errors
        near = [_HOLD[name] * (given[name] - _FAMILY_START[name]) for name in _FAMILY]
        return np.concatenate([errors, near])

    low, high, step = zip(
        *(_WITHIN.get(name, (-np.inf, np.inf, 0.1)) for name in names), strict=True
    )
    solution = least_squares(
        residual,
        [begin[name] for name in names],
        bounds=(low, high),
        diff_step=1e-4,
        x_scale=step,
        ftol=1e-7,
        xtol=1e-6,
        max_nfev=3 if brief else (12 if recipe.general or start is not None else 40),
    )
    given = dict(zip(names, solution.x.tolist(), strict=True))
    if not recipe.warped:
        return LocationScale(recipe.name, given, None)
    table = rate_table(given, surface.counts, _AXIS)
    return LocationScale(recipe.name, given, fitted_warp(table, _AXIS, surface))


# Least and largest value of a parameter, and the scale on which it moves.
_WITHIN: dict[str, tuple[float, float, float]] = {
    "log_scale": (-4.0, 2.0, 0.1),
    "log_scale_spread": (-6.0, 0.7, 0.5),
    "slope": (-1.0, 1.0, 0.05),
    "target_shift": (-2.0, 2.0, 0.1),
    "target_spread": (-0.8, 0.8, 0.1),
    "bend": (-0.4, 0.4, 0.05),
    "family": (-16.0, -3.0, 0.1),
    "family_shift": (1.0, 9.0, 0.1),
    "family_spread": (-2.0, 0.7, 0.1),
}


def _start(moments: Moments) -> dict[str, float]:
    return {
        "location": moments.location,
        "log_spread": float(np.log(moments.spread)),
        "log_scale": float(np.clip(np.log(moments.scale / moments.spread), -3.9, 1.9)),
        "log_scale_spread": float(np.log(np.clip(moments.log_scale_spread, 0.02, 1.9))),
        "slope": 0.0,
        "target_shift": 0.05,
        "target_spread": 0.05,
        "bend": 0.0,
        **_FAMILY_START,
        "family": -8.5,
    }


def gaussian_base(scale: float) -> dict[str, float]:
    """Steps of the base that make it a normal distribution of this standard deviation."""
    steps = np.maximum(np.diff(ndtr(KNOTS / scale)), 1e-4)
    return {f"base{k}": float(value) for k, value in enumerate(np.log(steps))}


def fit_generative(moments: Moments) -> LocationScale:
    """The authors' earlier model: normal locations, log-normal scales, fitted to the scores and not
    to P_FA^N (Sholokhov 2020, reference [3]).

    The mean and deviation of each pair are sufficient. The location's variance is that of the means
    without what their own noise adds, σ²/L (with equal pairs the maximum of the likelihood); the
    log scale has the mean and variance of the logarithms of the deviations, without their bias and
    noise, ½ψ((L−1)/2) − ½ log((L−1)/2) and ¼ψ′((L−1)/2).
    """
    log_spread = 0.5 * float(
        np.log(max(moments.spread**2 - moments.noise, 1e-6 * moments.spread**2))
    )
    return LocationScale(
        "ls-generative",
        {
            "location": moments.location,
            "log_spread": log_spread,
            "log_scale": moments.log_scale - log_spread,
            "log_scale_spread": float(np.log(max(moments.log_scale_spread, 1e-3))),
        },
        None,
    )
