"""Numbers that already exist into charts; nothing is computed here."""

from __future__ import annotations

from unmask.figures.calibration import calibration_plot, pav_map
from unmask.figures.cp_maps import cp_map_figure, delta_cp_map_figure, roadmap_figure
from unmask.figures.densities import score_histograms, trial_bias_figure
from unmask.figures.evidence import calibration_profiles, disclosure_profiles, ece_profile
from unmask.figures.figure import Chart, Figure, join, require_systems, table
from unmask.figures.image import PNG_PIXELS_PER_INCH, save, save_all, svg
from unmask.figures.legal import RiskLine, legal_figures
from unmask.figures.page import POLICY, STYLE, fragment, javascript, script_json
from unmask.figures.safeguards import Point, speaker_protection
from unmask.figures.similarity import similarity_matrices, zoo_plots
from unmask.figures.speakers import Strip
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
from unmask.figures.tradeoff import det, roc_hull
from unmask.figures.worst_case import GrowthLine, worst_case_figures

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
