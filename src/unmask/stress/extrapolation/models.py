"""The models by name: fit one, fit it again, take the mean of several."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from unmask.base import FloatArray, IntArray
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
from unmask.stress.extrapolation.tail import fit_tail

_PLDA = ("plda", "plda+")
_TAIL = ("gpd", "gpd-target", "gpd-target+")

MODELS: tuple[str, ...] = ("ls-generative", *RECIPES, *_PLDA, *_TAIL)
"""Every model, in the order of the comparison table."""

CANDIDATES: tuple[str, ...] = ("ls-target+", "ls+")
"""Those that ``auto`` averages, as far as they fit about equally well."""

FAMILY = "ls-family+"
"""The model whose families of voices the data cannot exclude: it raises the upper end."""


@dataclass(frozen=True, eq=False)
class Stack(Model):
    """The mean of several models that fit about equally well: rates are the mean of theirs."""

    members: tuple[Model, ...]
    name: str = "stack"

    def rates(self, counts: IntArray, thresholds: FloatArray) -> FloatArray:
        return np.asarray(np.mean([one.rates(counts, thresholds) for one in self.members], axis=0))


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


def checked_name(name: str) -> str:
    """The name of a model, or an error that lists them."""
    if name not in MODELS:
        raise InputError(f"model: expected auto or one of {', '.join(MODELS)}, found {name}")
    return name
