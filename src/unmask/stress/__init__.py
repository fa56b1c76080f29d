"""How a system fails: worst-case false alarms and their extrapolation."""

from unmask.stress.extrapolation import (
    Comparison,
    Extrapolation,
    Population,
    Prediction,
    compare_models,
    extrapolate,
    truth_of,
)
from unmask.stress.worst_case import (
    WorstCase,
    simulate_worst_case,
    worst_case,
    worst_case_by_target,
    worst_case_false_alarms,
)
from unmask.stress.worst_case_pairs import PairScores

__all__ = [
    "Comparison",
    "Extrapolation",
    "PairScores",
    "Population",
    "Prediction",
    "WorstCase",
    "compare_models",
    "extrapolate",
    "simulate_worst_case",
    "truth_of",
    "worst_case",
    "worst_case_by_target",
    "worst_case_false_alarms",
]
