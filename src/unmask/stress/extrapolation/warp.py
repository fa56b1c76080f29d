"""Monotone warping of scores, written as a warping of thresholds.

A model with warped scores h(s) accepts h(s) > τ where s > g(τ) = h⁻¹(τ). Given the rest of the
model, the value g(τ) of each training threshold is a problem in one dimension and touches no other
threshold: it is searched on a table and refined by Gauss–Newton, and so eliminated from the fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unmask.base import FloatArray
from unmask.stress.extrapolation.base import Surface

_STEPS = 4
_END = 6


def eliminate(
    table: FloatArray, axis: FloatArray, wanted: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The best value of each threshold, and the rates (counts, thresholds) that it gives.

    ``table`` holds the model's rates (counts, axis), ``wanted`` the empirical ones (counts,
    thresholds), ``weights`` one weight per count.
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


def fitted_warp(table: FloatArray, axis: FloatArray, surface: Surface) -> Warp:
    """The monotone warping under which a model's table comes closest to the rates measured."""
    values, _ = eliminate(table, axis, surface.values, surface.weights)
    steep = np.gradient(table, axis, axis=1)
    at = np.stack([np.interp(values, axis, row) for row in steep])
    return Warp.through(surface.thresholds, values, surface.weights @ at**2)


def read(thresholds: FloatArray, warp: Warp | None, location: float, log_unit: float) -> FloatArray:
    """Thresholds on the axis of a model: warped, or (τ − m)/s without a warping."""
    if warp is not None:
        return warp(thresholds)
    return np.asarray((thresholds - location) / np.exp(log_unit))


def away(
    surface: Surface,
    table: Callable[[FloatArray], FloatArray],
    axis: FloatArray,
    affine: tuple[float, float] | None,
) -> FloatArray:
    """Weighted errors of a model on the training cells, from its rates ``table`` on an axis.

    Thresholds are read through the ``affine`` map, or warped as is best where there is none.
    """
    if affine is None:
        _, fitted = eliminate(table(axis), axis, surface.values, surface.weights)
    else:
        fitted = table(read(surface.thresholds, None, *affine))
    return np.asarray((np.sqrt(surface.weights)[:, None] * (fitted - surface.values)).ravel())
