"""The ROC statistic and all that follows from it."""

from unmask.engine.battery import Battery
from unmask.engine.bootstrap import Progress, Units, child_of
from unmask.engine.calibration import (
    IsotonicCalibration,
    LinearCalibration,
    fit_isotonic,
    fit_linear,
)
from unmask.engine.comparison import Comparison, compare
from unmask.engine.curves import Array, DetCurve, EceProfile, Histogram, PavMap, Reliability
from unmask.engine.evaluation import Evaluation, SystemResult, evaluate, group_masks
from unmask.engine.metrics import (
    Detection,
    Zebra,
    act_dcf,
    cllr,
    d_sys,
    detection,
    ece,
    eer,
    min_cllr,
    min_dcf,
    negated_warnings,
    tpr_at_fpr,
    zebra,
    zebra_of,
)
from unmask.engine.operating import Cost, Polygon, equal_error, equal_errors
from unmask.engine.pairing import cross_pairing, roc_of_pairs
from unmask.engine.pav import Pav, first_of_blocks
from unmask.engine.roc import Roc
from unmask.engine.stream import stream_scores
from unmask.engine.units import auto_replicates, speaker_count, units_of

__all__ = [
    "Array",
    "Battery",
    "Comparison",
    "Cost",
    "DetCurve",
    "Detection",
    "EceProfile",
    "Evaluation",
    "Histogram",
    "IsotonicCalibration",
    "LinearCalibration",
    "Pav",
    "PavMap",
    "Polygon",
    "Progress",
    "Reliability",
    "Roc",
    "SystemResult",
    "Units",
    "Zebra",
    "act_dcf",
    "auto_replicates",
    "child_of",
    "cllr",
    "compare",
    "cross_pairing",
    "d_sys",
    "detection",
    "ece",
    "eer",
    "equal_error",
    "equal_errors",
    "evaluate",
    "first_of_blocks",
    "fit_isotonic",
    "fit_linear",
    "group_masks",
    "min_cllr",
    "min_dcf",
    "negated_warnings",
    "roc_of_pairs",
    "speaker_count",
    "stream_scores",
    "tpr_at_fpr",
    "units_of",
    "zebra",
    "zebra_of",
]
