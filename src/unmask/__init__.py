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
from unmask.stress import (
    CpMap,
    CpPosition,
    CpRoadmap,
    CpSummary,
    DeltaCpMap,
    DeltaIntervals,
    cp_map,
    cp_position,
    cp_roadmap,
    delta_cp_intervals,
    delta_cp_map,
)

__all__ = [
    "CpMap",
    "CpPosition",
    "CpRoadmap",
    "CpSummary",
    "DeltaCpMap",
    "DeltaIntervals",
    "Detection",
    "Estimate",
    "InputError",
    "Interval",
    "Roc",
    "Zebra",
    "__version__",
    "act_dcf",
    "cllr",
    "cp_map",
    "cp_position",
    "cp_roadmap",
    "d_sys",
    "delta_cp_intervals",
    "delta_cp_map",
    "detection",
    "ece",
    "eer",
    "min_cllr",
    "min_dcf",
    "tpr_at_fpr",
    "zebra",
]
