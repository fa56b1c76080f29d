"""How a system fails: C-P maps over hard trials, worst-case false alarms, extrapolation."""

from typing import TYPE_CHECKING

from unmask._doors import open_door

if TYPE_CHECKING:
    from unmask.stress.cpmap.comparison import OUTCOMES, CpConfig, CpPosition, CpRoadmap, DeltaCpMap
    from unmask.stress.cpmap.comparison import DeltaIntervals, cp_position, delta_cp_map
    from unmask.stress.cpmap.intervals import cp_intervals
    from unmask.stress.cpmap.maps import Contour, CpMap, CpMetric, contour, cp_map
    from unmask.stress.cpmap.people import hardest_people
    from unmask.stress.cpmap.systems import ConfigScores, CpAssessment, cells_table, cp_maps
    from unmask.stress.cpmap.systems import trial_bias
    from unmask.stress.extrapolation.choose import ModelComparison, compare_models, extrapolate
    from unmask.stress.extrapolation.choose import truth_of
    from unmask.stress.extrapolation.fitted import Extrapolation, Prediction
    from unmask.stress.extrapolation.models import MODELS
    from unmask.stress.impostors.pair_scores import LEAST_SPEAKERS, POOLED, ImpostorProtocol
    from unmask.stress.impostors.pair_scores import PairScores, groups_of, sex_column, speaker_pairs
    from unmask.stress.impostors.rates import WorstCase, worst_case_false_alarms
    from unmask.stress.impostors.uncertainty import GROUPS
    from unmask.stress.study import Needed, Operating, WorstCaseStudy, thresholds_of_roc
    from unmask.stress.study import worst_case, worst_case_study

open_door(__name__)
