"""Numbers that already exist into charts; nothing is computed here."""

from __future__ import annotations

from unmask.figures.calibration import calibration_plot, pav_map
from unmask.figures.cp_maps import cp_map_figure, delta_cp_map_figure
from unmask.figures.cp_roadmap import roadmap_figure
from unmask.figures.densities import score_histograms, trial_bias_figure
from unmask.figures.differences import (
    det_with_bands,
    difference_intervals,
    worst_case_of_systems,
)
from unmask.figures.evidence import calibration_profiles, disclosure_profiles, ece_profile
from unmask.figures.figure import Chart, Figure, join, require_systems, table
from unmask.figures.image import PNG_PIXELS_PER_INCH, save, save_all, svg
from unmask.figures.learning import learning_curves
from unmask.figures.legal import RiskLine, legal_figures, legal_panel, risk_comparison
from unmask.figures.page import POLICY, STYLE, fragment, javascript, script_json
from unmask.figures.plane import PlanePoint, cost_plane, pareto
from unmask.figures.safeguards import Point, distinctiveness, speaker_protection
from unmask.figures.similarity import similarity_matrices, zoo_plots
from unmask.figures.speakers import Strip, rank_histograms, speaker_risks, speaker_strip
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
from unmask.figures.worst_case import (
    GrowthLine,
    needed_thresholds,
    worst_case_curves,
    worst_case_figures,
    worst_case_growth,
    worst_case_map,
)

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
    "PlanePoint",
    "Point",
    "RiskLine",
    "Strip",
    "attacker_dashes",
    "calibration_plot",
    "calibration_profiles",
    "cost_plane",
    "cp_map_figure",
    "delta_cp_map_figure",
    "det",
    "det_with_bands",
    "difference_intervals",
    "disclosure_profiles",
    "distinctiveness",
    "ece_profile",
    "fragment",
    "javascript",
    "join",
    "learning_curves",
    "legal_figures",
    "legal_panel",
    "needed_thresholds",
    "pareto",
    "pav_map",
    "rank_histograms",
    "require_systems",
    "risk_comparison",
    "roadmap_figure",
    "roc_hull",
    "save",
    "save_all",
    "score_histograms",
    "script_json",
    "shorten",
    "similarity_matrices",
    "speaker_protection",
    "speaker_risks",
    "speaker_strip",
    "svg",
    "system_colours",
    "table",
    "trial_bias_figure",
    "worst_case_curves",
    "worst_case_figures",
    "worst_case_growth",
    "worst_case_map",
    "worst_case_of_systems",
    "zoo_plots",
]
