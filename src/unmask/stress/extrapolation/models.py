"""The models by name: fit one, make one from saved numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from unmask.base import FloatArray
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
from unmask.stress.extrapolation.stack import STACK, Stack
from unmask.stress.extrapolation.tail import TailModel, fit_tail

_PLDA = ("plda", "plda+")
_TAIL = ("gpd", "gpd-target", "gpd-target+")

MODELS: tuple[str, ...] = ("ls-generative", *RECIPES, *_PLDA, *_TAIL)
"""Every model, in the order of the comparison table."""

CANDIDATES: tuple[str, ...] = ("ls-target+", "ls+")
"""Those that ``auto`` averages, as far as they fit about equally well."""

FAMILY = "ls-family+"
"""The model whose families of voices the data cannot exclude: it raises the upper end."""


def fits_rates(name: str) -> bool:
    """Whether a model is fitted to P_FA^N and reads nothing off the scores but a start."""
    return name not in (*_TAIL, "ls-generative")


def fit_model(
    name: str,
    surface: Surface,
    moments: Moments,
    *,
    start: Model | None = None,
    brief: bool = False,
) -> Model:
    """Fit one model; ``start`` continues from a fit, for a few steps only where it is ``brief``."""
    if name == "ls-generative":
        return fit_generative(moments)
    if name in RECIPES:
        begin = start if isinstance(start, LocationScale) else None
        return fit_location_scale(RECIPES[name], surface, moments, begin, brief=brief)
    if name in _PLDA:
        return fit_plda(
            name, surface, moments, start if isinstance(start, Plda) else None, brief=brief
        )
    located = moments.pooled if name == "gpd" else moments.by_target
    return fit_tail(checked_name(name), located, surface, moments, warped=name.endswith("+"))


def refit(model: Model, surface: Surface, moments: Callable[[], Moments], first: Moments) -> Model:
    """The same model on another surface; ``moments`` of the scores behind it are measured only for
    models that rest on them, ``first`` are those of the first fit.
    """
    if isinstance(model, Stack):
        return Stack(tuple(refit(one, surface, moments, first) for one in model.members))
    rests = model.name == "ls-generative" or model.name in _TAIL
    return fit_model(model.name, surface, moments() if rests else first, start=model, brief=True)


def restore_model(name: str, arrays: Mapping[str, FloatArray]) -> Model:
    """A model from what its :meth:`~Model.numbers` gave."""
    if name == STACK:
        return Stack(
            tuple(
                restore_model(str(member), _under(arrays, f"{k}."))
                for k, member in enumerate(arrays["names"])
            )
        )
    if name in _PLDA:
        return Plda.restore(name, arrays)
    if name in _TAIL:
        return TailModel.restore(name, arrays)
    return LocationScale.restore(checked_name(name), arrays)


def _under(arrays: Mapping[str, FloatArray], start: str) -> dict[str, FloatArray]:
    return {key[len(start) :]: v for key, v in arrays.items() if key.startswith(start)}


def checked_name(name: str) -> str:
    """The name of a model, or an error that lists them."""
    if name not in MODELS:
        raise InputError(f"model: expected auto or one of {', '.join(MODELS)}, found {name}")
    return name
