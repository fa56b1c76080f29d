"""How a system fails: C-P maps over hard trials, worst-case false alarms, extrapolation."""

from unmask.stress.cpmap.configs import (
    ConfigScores,
    CpConfig,
    CpPosition,
    cp_position,
    trial_bias,
)
from unmask.stress.cpmap.delta import (
    OUTCOMES,
    CpRoadmap,
    DeltaCpMap,
    DeltaIntervals,
    cp_roadmap,
    delta_cp_map,
)
from unmask.stress.cpmap.intervals import cp_intervals, delta_cp_intervals
from unmask.stress.cpmap.maps import (
    Contour,
    CpMap,
    CpMetric,
    CpSummary,
    contour,
    cp_map,
)
from unmask.stress.cpmap.systems import CpAssessment, cells_table, cp_maps
from unmask.stress.extrapolation.choose import (
    ModelComparison,
    compare_models,
    extrapolate,
    truth_of,
)
from unmask.stress.extrapolation.fitted import Extrapolation, Prediction
from unmask.stress.extrapolation.models import MODELS
from unmask.stress.impostors.inputs import groups_of, pairs
from unmask.stress.impostors.pair_scores import LEAST_SPEAKERS, PairScores
from unmask.stress.impostors.rates import (
    WorstCase,
    simulate_worst_case,
    worst_case_by_target,
    worst_case_false_alarms,
)
from unmask.stress.impostors.uncertainty import GROUPS
from unmask.stress.study import (
    PER_PAIR,
    Needed,
    Operating,
    WorstCaseStudy,
    thresholds_of_roc,
    worst_case,
)

__all__ = [
    "GROUPS",
    "LEAST_SPEAKERS",
    "MODELS",
    "OUTCOMES",
    "PER_PAIR",
    "ConfigScores",
    "Contour",
    "CpAssessment",
    "CpConfig",
    "CpMap",
    "CpMetric",
    "CpPosition",
    "CpRoadmap",
    "CpSummary",
    "DeltaCpMap",
    "DeltaIntervals",
    "Extrapolation",
    "ModelComparison",
    "Needed",
    "Operating",
    "PairScores",
    "Prediction",
    "WorstCase",
    "WorstCaseStudy",
    "cells_table",
    "compare_models",
    "contour",
    "cp_intervals",
    "cp_map",
    "cp_maps",
    "cp_position",
    "cp_roadmap",
    "delta_cp_intervals",
    "delta_cp_map",
    "extrapolate",
    "groups_of",
    "pairs",
    "simulate_worst_case",
    "thresholds_of_roc",
    "trial_bias",
    "truth_of",
    "worst_case",
    "worst_case_by_target",
    "worst_case_false_alarms",
]
