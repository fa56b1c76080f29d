"""How a system fails: C-P maps over hard trials, worst-case false alarms."""

from unmask.stress.cpmap import CpMap, CpMetric, CpSummary, cp_map
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
    "CpMap",
    "CpMetric",
    "CpPosition",
    "CpRoadmap",
    "CpSummary",
    "DeltaCpMap",
    "DeltaIntervals",
    "cp_map",
    "cp_position",
    "cp_roadmap",
    "delta_cp_intervals",
    "delta_cp_map",
    "enrolment_fixed",
    "full_cross_pairing",
]
