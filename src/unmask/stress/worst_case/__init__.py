"""Worst-case false alarms with N impostors (Sholokhov 2020)."""

from unmask.stress.worst_case.checks import LEAST_SPEAKERS
from unmask.stress.worst_case.inputs import pairs_of_embeddings, pairs_of_scores
from unmask.stress.worst_case.jackknife import GROUPS
from unmask.stress.worst_case.pairs import PairScores
from unmask.stress.worst_case.rates import WorstCase, measure_worst_case

__all__ = [
    "GROUPS",
    "LEAST_SPEAKERS",
    "PairScores",
    "WorstCase",
    "measure_worst_case",
    "pairs_of_embeddings",
    "pairs_of_scores",
]
