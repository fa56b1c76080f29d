"""How a system fails: C-P maps over hard trials, worst-case false alarms, extrapolation."""

from unmask.stress.cpmap.configs import (
    ConfigScores,
    CpConfig,
    CpPosition,
    PositionIntervals,
    cp_position,
    enrolment_fixed,
    full_cross_pairing,
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
from unmask.stress.cpmap.intervals import CpUncertainty, cp_intervals, delta_cp_intervals
from unmask.stress.cpmap.maps import (
    Contour,
    CpIntervals,
    CpMap,
    CpMetric,
    CpSummary,
    contour,
    cp_map,
)
from unmask.stress.cpmap.systems import CpAssessment, cells_table, cp_maps
from unmask.stress.embeddings_study import PER_PAIR, worst_case_study_of_embeddings
from unmask.stress.extrapolation import (
    Extrapolation,
    ModelComparison,
    Population,
    Prediction,
    compare_models,
    extrapolate,
    truth_of,
)
from unmask.stress.study import Needed, WorstCaseStudy, worst_case_study
from unmask.stress.worst_case.embeddings import worst_case_of_embeddings
from unmask.stress.worst_case.inputs import pairs_of_embeddings, pairs_of_scores
from unmask.stress.worst_case.pairs import PairScores
from unmask.stress.worst_case.rates import (
    WorstCase,
    measure_worst_case,
    simulate_worst_case,
    worst_case_by_target,
    worst_case_false_alarms,
)
from unmask.stress.worst_case.thresholds import Operating, operating_thresholds, thresholds_of_roc

__all__ = [
    "OUTCOMES",
    "PER_PAIR",
    "ConfigScores",
    "Contour",
    "CpAssessment",
    "CpConfig",
    "CpIntervals",
    "CpMap",
    "CpMetric",
    "CpPosition",
    "CpRoadmap",
    "CpSummary",
    "CpUncertainty",
    "DeltaCpMap",
    "DeltaIntervals",
    "Extrapolation",
    "ModelComparison",
    "Needed",
    "Operating",
    "PairScores",
    "Population",
    "PositionIntervals",
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
    "enrolment_fixed",
    "extrapolate",
    "full_cross_pairing",
    "measure_worst_case",
    "operating_thresholds",
    "pairs_of_embeddings",
    "pairs_of_scores",
    "simulate_worst_case",
    "thresholds_of_roc",
    "trial_bias",
    "truth_of",
    "worst_case_by_target",
    "worst_case_false_alarms",
    "worst_case_of_embeddings",
    "worst_case_study",
    "worst_case_study_of_embeddings",
]
