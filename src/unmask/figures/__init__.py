"""Numbers that already exist into charts; nothing is computed here."""

from __future__ import annotations

from unmask.figures.calibration import calibration_plot
from unmask.figures.cp_map import cp_map_figure
from unmask.figures.data import join, require_systems, table
from unmask.figures.delta_cp_map import delta_cp_map_figure
from unmask.figures.det import det
from unmask.figures.disclosure import calibration_profiles, disclosure_profiles
from unmask.figures.distinctiveness import Point
from unmask.figures.ece import ece_profile
from unmask.figures.figure import Chart, Figure
from unmask.figures.histogram import score_histograms
from unmask.figures.image import PNG_PIXELS_PER_INCH, svg
from unmask.figures.legal import legal_figures
from unmask.figures.page import POLICY, STYLE, fragment, javascript, script_json
from unmask.figures.pav import pav_map
from unmask.figures.protection import speaker_protection
from unmask.figures.risk_comparison import RiskLine
from unmask.figures.roadmap import roadmap_figure
from unmask.figures.roc_hull import roc_hull
from unmask.figures.save import save, save_all
from unmask.figures.similarity import similarity_matrices
from unmask.figures.speaker_strip import Strip
from unmask.figures.theme import (
    NARROW,
    NONTARGET,
    ORIGINAL,
    PIXELS_PER_INCH,
    TARGET,
    WIDE,
    attacker_dashes,
    shorten,
    system_colours,
)
from unmask.figures.trial_bias import trial_bias_figure
from unmask.figures.worst_case import worst_case_figures
from unmask.figures.worst_case_growth import GrowthLine
from unmask.figures.zoo import zoo_plots

__all__ = [
    "NARROW",
    "NONTARGET",
    "ORIGINAL",
    "PIXELS_PER_INCH",
    "PNG_PIXELS_PER_INCH",
    "POLICY",
    "STYLE",
    "TARGET",
    "WIDE",
    "Chart",
    "Figure",
    "GrowthLine",
    "Point",
    "RiskLine",
    "Strip",
    "attacker_dashes",
    "calibration_plot",
    "calibration_profiles",
    "cp_map_figure",
    "delta_cp_map_figure",
    "det",
    "disclosure_profiles",
    "ece_profile",
    "fragment",
    "javascript",
    "join",
    "legal_figures",
    "pav_map",
    "require_systems",
    "roadmap_figure",
    "roc_hull",
    "save",
    "save_all",
    "score_histograms",
    "script_json",
    "shorten",
    "similarity_matrices",
    "speaker_protection",
    "svg",
    "system_colours",
    "table",
    "trial_bias_figure",
    "worst_case_figures",
    "zoo_plots",
]
