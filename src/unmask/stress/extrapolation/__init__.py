"""Worst-case false alarms beyond the impostors at hand: models, their choice, their comparison."""

from unmask.stress.extrapolation.choose import extrapolate
from unmask.stress.extrapolation.compare import (
    ModelComparison,
    ModelError,
    compare_models,
    truth_of,
)
from unmask.stress.extrapolation.fitted import Extrapolation, Prediction
from unmask.stress.extrapolation.models import CANDIDATES, MODELS
from unmask.stress.extrapolation.populations import Population

__all__ = [
    "CANDIDATES",
    "MODELS",
    "Extrapolation",
    "ModelComparison",
    "ModelError",
    "Population",
    "Prediction",
    "compare_models",
    "extrapolate",
    "truth_of",
]
