"""The ROC statistic and all that follows from it."""

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

__all__ = [
    "Detection",
    "Roc",
    "Zebra",
    "act_dcf",
    "cllr",
    "d_sys",
    "detection",
    "ece",
    "eer",
    "min_cllr",
    "min_dcf",
    "tpr_at_fpr",
    "zebra",
]
