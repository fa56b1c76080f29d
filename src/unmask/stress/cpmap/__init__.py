"""C-P maps and delta C-P maps over trial configurations (Li 2022)."""

from unmask.stress.cpmap.bias import ConfigScores
from unmask.stress.cpmap.contours import Contour, contour
from unmask.stress.cpmap.delta import OUTCOMES, CpRoadmap, DeltaCpMap
from unmask.stress.cpmap.maps import CpMap
from unmask.stress.cpmap.positions import CpPosition
from unmask.stress.cpmap.systems import CpAssessment, assess_cp_maps

__all__ = [
    "OUTCOMES",
    "ConfigScores",
    "Contour",
    "CpAssessment",
    "CpMap",
    "CpPosition",
    "CpRoadmap",
    "DeltaCpMap",
    "assess_cp_maps",
    "contour",
]
