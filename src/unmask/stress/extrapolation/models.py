"""The models by name: fit one, make one from saved numbers."""

from __future__ import annotations

from collections.abc import Mapping

from unmask.arrays import FloatArray, IntArray
from unmask.errors import InputError
from unmask.stress.extrapolation.base import Model, Surface
from unmask.stress.extrapolation.location import (
    RECIPES,
    LocationScale,
    fit_generative,
    fit_location_scale,
)
from unmask.stress.extrapolation.moments import Moments
from unmask.stress.extrapolation.plda import Plda, fit_plda
from unmask.stress.extrapolation.tail import TailModel, fit_tail

_PLDA = ("plda", "plda+")
_TAIL = ("gpd", "gpd-target", "gpd-target+")

MODELS: tuple[str, ...] = ("ls-generative", *RECIPES, *_PLDA, *_TAIL)
"""Every model, in the order of the comparison table."""

CANDIDATES: tuple[str, ...] = ("ls+", "ls-cdf+", "ls-target+", "plda+", "gpd-target", "gpd-target+")
"""Those that ``auto`` chooses from."""


def fit_model(
    name: str,
    surface: Surface,
    moments: Moments,
    *,
    start: Model | None = None,
    times: IntArray | None = None,
) -> Model:
    """Fit one model; ``start`` continues from a fit, ``times`` is a bootstrap draw of targets."""
    if name == "ls-generative":
        return fit_generative(moments, times)
    if name in RECIPES:
        begin = start if isinstance(start, LocationScale) else None
        return fit_location_scale(RECIPES[name], surface, moments, begin)
    if name in _PLDA:
        return fit_plda(name, surface, moments, start if isinstance(start, Plda) else None)
    located = moments.pooled if name == "gpd" else moments.by_target
    return fit_tail(checked_name(name), located, surface, moments, times, warped=name.endswith("+"))


def restore_model(name: str, arrays: Mapping[str, FloatArray]) -> Model:
    """A model from what its :meth:`~Model.numbers` gave."""
    if name in _PLDA:
        return Plda.restore(name, arrays)
    if name in _TAIL:
        return TailModel.restore(name, arrays)
    return LocationScale.restore(checked_name(name), arrays)


def checked_name(name: str) -> str:
    """The name of a model, or an error that lists them."""
    if name not in MODELS:
        raise InputError(f"model: expected auto or one of {', '.join(MODELS)}, found {name}")
    return name
