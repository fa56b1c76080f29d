"""How a system fails: C-P maps over hard trials, worst-case false alarms."""

from unmask.stress.cpmap import CpMap, CpMetric, CpSummary, cp_map
from unmask.stress.cpmap_assess import CpAssessment, assess_cp_maps
from unmask.stress.cpmap_contours import Contour, contour
from unmask.stress.cpmap_delta import (
    CpRoadmap,
    DeltaCpMap,
    DeltaIntervals,
    cp_roadmap,
    delta_cp_map,
)
from unmask.stress.cpmap_intervals import delta_cp_intervals
from unmask.stress.cpmap_positions import (
    CpPosition,
    cp_position,
    enrolment_fixed,
    full_cross_pairing,
)

__all__ = [
    "Contour",
    "CpAssessment",
    "CpMap",
    "CpMetric",
    "CpPosition",
    "CpRoadmap",
    "CpSummary",
    "DeltaCpMap",
    "DeltaIntervals",
    "assess_cp_maps",
    "contour",
    "cp_map",
    "cp_position",
    "cp_roadmap",
    "delta_cp_intervals",
    "delta_cp_map",
    "enrolment_fixed",
    "full_cross_pairing",
]
