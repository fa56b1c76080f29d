"""How a system fails: C-P maps over hard trials, worst-case false alarms, extrapolation."""

from unmask.stress.cpmap.comparison import (
    OUTCOMES as OUTCOMES,
    CpConfig as CpConfig,
    CpPosition as CpPosition,
    CpRoadmap as CpRoadmap,
    DeltaCpMap as DeltaCpMap,
    DeltaIntervals as DeltaIntervals,
    cp_position as cp_position,
    delta_cp_map as delta_cp_map,
)
from unmask.stress.cpmap.intervals import cp_intervals as cp_intervals
from unmask.stress.cpmap.maps import (
    Contour as Contour,
    CpMap as CpMap,
    CpMetric as CpMetric,
    contour as contour,
    cp_map as cp_map,
)
from unmask.stress.cpmap.systems import (
    ConfigScores as ConfigScores,
    CpAssessment as CpAssessment,
    cells_table as cells_table,
    cp_maps as cp_maps,
    trial_bias as trial_bias,
)
from unmask.stress.extrapolation.choose import (
    ModelComparison as ModelComparison,
    compare_models as compare_models,
    extrapolate as extrapolate,
    truth_of as truth_of,
)
from unmask.stress.extrapolation.fitted import (
    Extrapolation as Extrapolation,
    Prediction as Prediction,
)
from unmask.stress.extrapolation.models import MODELS as MODELS
from unmask.stress.impostors.pair_scores import (
    LEAST_SPEAKERS as LEAST_SPEAKERS,
    PairScores as PairScores,
    groups_of as groups_of,
    pairs as pairs,
)
from unmask.stress.impostors.rates import (
    WorstCase as WorstCase,
    simulate_worst_case as simulate_worst_case,
    worst_case_false_alarms as worst_case_false_alarms,
)
from unmask.stress.impostors.uncertainty import GROUPS as GROUPS
from unmask.stress.study import (
    PER_PAIR as PER_PAIR,
    Needed as Needed,
    Operating as Operating,
    WorstCaseStudy as WorstCaseStudy,
    thresholds_of_roc as thresholds_of_roc,
    worst_case as worst_case,
)
