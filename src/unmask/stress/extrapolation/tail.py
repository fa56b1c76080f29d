"""Peaks over threshold: locations as they are, with a generalised Pareto tail (ISO/IEC 5152's way).

For each target (or for all alike) the location of an impostor is m_i + s_i·Q(z), z ~ N(0, 1), where
Q is the empirical quantile function of the standardised mean scores, continued by a generalised
Pareto tail. Scores scatter around their location like the residuals of the nearest pairs, with a
log-linear scale. Nothing is fitted to P_FA^N; the warped variant reads thresholds through g(τ).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from unmask.base import FloatArray, IntArray
from unmask.stress.extrapolation.base import Model, Surface, closest_mass, rising
from unmask.stress.extrapolation.moments import Located, Moments
from unmask.stress.extrapolation.warp import Warp, fitted_warp

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
            rates += rising(1.0 - np.interp(away, knots, below))
        return closest_mass(counts) @ (rates / self.centre.size)


def fit_tail(
    name: str,
    located: Located,
    surface: Surface,
    moments: Moments,
    *,
    warped: bool,
) -> TailModel:
    """Measure the tail."""
    drawn = np.arange(located.centre.size)
    reach = located.centre[drawn] + 3 * located.spread[drawn]
    drawn = drawn[np.argsort(reach, kind="stable")]
    if np.unique(reach).size == 1:
        drawn = drawn[:1]
    elif drawn.size > _MOST_TARGETS:
        drawn = drawn[((np.arange(_MOST_TARGETS) + 0.5) * drawn.size / _MOST_TARGETS).astype(int)]
    model = TailModel(
        name,
        located.centre[drawn],
        located.spread[drawn],
        located.quantiles(),
        np.array([moments.near, moments.near_scale, moments.slope]),
        moments.residuals,
        None,
    )
    if not warped:
        return model
    axis = np.linspace(
        2 * surface.thresholds[0] - surface.thresholds[-1],
        2 * surface.thresholds[-1] - surface.thresholds[0],
        2 * _AXIS_POINTS,
    )
    table = model.table(surface.counts, axis)
    return replace(model, warp=fitted_warp(table, axis, surface))
