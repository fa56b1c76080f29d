"""Measure how recognisable a voice is: verification, its worst case, and anonymisation."""

from unmask._version import __version__
from unmask.detection import (
    Detection,
    Roc,
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
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval
from unmask.scoring import Cosine, Plda, Whitening

__all__ = [
    "Cosine",
    "Detection",
    "Estimate",
    "InputError",
    "Interval",
    "Plda",
    "Roc",
    "Whitening",
    "Zebra",
    "__version__",
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
