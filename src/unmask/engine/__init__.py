"""The ROC statistic and all that follows from it."""

from unmask.engine.bands import DetBand, det_bands
from unmask.engine.bootstrap import Units, auto_replicates, speaker_count, units_of
from unmask.engine.calibration import (
    IsotonicCalibration,
    LinearCalibration,
    calibrate,
    fusion_weights,
    weighted_line,
)
from unmask.engine.comparison import Comparison, compare
from unmask.engine.curves import Array, DetCurve, EceProfile, Histogram, PavMap, Reliability
from unmask.engine.evaluation import Battery, Evaluation, SystemResult, evaluate, group_masks
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
from unmask.engine.operating import Cost, Pav, Polygon, equal_error, equal_errors, first_of_blocks
from unmask.engine.pairing import cross_pairing, roc_of_pairs
from unmask.engine.roc import Roc
from unmask.engine.stream import stream_scores

__all__ = [
    "Array",
    "Battery",
    "Comparison",
    "Cost",
    "DetBand",
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
    "Reliability",
    "Roc",
    "SystemResult",
    "Units",
    "Zebra",
    "act_dcf",
    "auto_replicates",
    "calibrate",
    "cllr",
    "compare",
    "cross_pairing",
    "d_sys",
    "det_bands",
    "detection",
    "ece",
    "eer",
    "equal_error",
    "equal_errors",
    "evaluate",
    "first_of_blocks",
    "fusion_weights",
    "group_masks",
    "min_cllr",
    "min_dcf",
    "negated_warnings",
    "roc_of_pairs",
    "speaker_count",
    "stream_scores",
    "tpr_at_fpr",
    "units_of",
    "weighted_line",
    "zebra",
    "zebra_of",
]
