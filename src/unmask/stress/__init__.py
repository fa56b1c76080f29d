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
    measure_worst_case,
    simulate_worst_case,
    worst_case_by_target,
    worst_case_false_alarms,
)
from unmask.stress.worst_case_input import pairs_of_embeddings, pairs_of_scores
from unmask.stress.worst_case_pairs import PairScores
from unmask.stress.worst_case_study import WorstCaseStudy, worst_case_study

__all__ = [
    "Comparison",
    "Extrapolation",
    "PairScores",
    "Population",
    "Prediction",
    "WorstCase",
    "WorstCaseStudy",
    "compare_models",
    "extrapolate",
    "measure_worst_case",
    "pairs_of_embeddings",
    "pairs_of_scores",
    "simulate_worst_case",
    "truth_of",
    "worst_case_by_target",
    "worst_case_false_alarms",
    "worst_case_study",
]
