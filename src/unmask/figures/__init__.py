"""Numbers that already exist into charts; nothing is computed here."""

from typing import TYPE_CHECKING

from unmask._doors import open_door

if TYPE_CHECKING:
    from unmask.figures.cp_maps import cp_map_figure, delta_cp_map_figure, roadmap_figure
    from unmask.figures.detection import SPOOF_SHADES, a_dcf_curves, det, difference_intervals
    from unmask.figures.detection import group_intervals, score_histograms, t_eer_paths
    from unmask.figures.detection import trial_bias_figure
    from unmask.figures.evidence import calibration_plot, calibration_profiles, disclosure_profiles
    from unmask.figures.evidence import ece_profile, pav_map, tippett_plot
    from unmask.figures.figure import Figure
    from unmask.figures.image import POLICY, STYLE, fragment, images, javascript, policy_of
    from unmask.figures.image import save, save_all, svg
    from unmask.figures.legal import RiskLine, Strip, learning_curves, legal_figures, legal_panel
    from unmask.figures.legal import rank_histograms, risk_comparison, speaker_risks, speaker_strip
    from unmask.figures.privacy import PlanePoint, Point, cost_plane, distinctiveness, level_trade
    from unmask.figures.privacy import pareto, similarity_matrices, speaker_protection, zoo_plots
    from unmask.figures.theme import NARROW, NIGHT, ORIGINAL, WIDE, Layout, layout, system_colours
    from unmask.figures.worst_case import GrowthLine, needed_thresholds, worst_case_curves
    from unmask.figures.worst_case import worst_case_figures, worst_case_growth, worst_case_map
    from unmask.figures.worst_case import worst_case_of_systems

_REMOVED = {
    "roc_hull": "draw det(curves), which has the same rates on axes that resolve small ones",
    "worst_case_models": "print the study: its table has every model that was asked for",
}
open_door(__name__, removed=_REMOVED)
