"""The ROC statistic and all that follows from it."""

from unmask.detection.battery import Battery
from unmask.detection.calibration import (
    IsotonicCalibration,
    LinearCalibration,
    fit_isotonic,
    fit_linear,
)
from unmask.detection.compare import Comparison, compare
from unmask.detection.cross_pairing import cross_pairing
from unmask.detection.evaluate import Evaluation, evaluate
from unmask.detection.metrics import (
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
    tpr_at_fpr,
    zebra,
)
from unmask.detection.roc import Roc
from unmask.detection.stream import stream_scores

__all__ = [
    "Battery",
    "Comparison",
    "Detection",
    "Evaluation",
    "IsotonicCalibration",
    "LinearCalibration",
    "Roc",
    "Zebra",
    "act_dcf",
    "cllr",
    "compare",
    "cross_pairing",
    "d_sys",
    "detection",
    "ece",
    "eer",
    "evaluate",
    "fit_isotonic",
    "fit_linear",
    "min_cllr",
    "min_dcf",
    "stream_scores",
    "tpr_at_fpr",
    "zebra",
]
