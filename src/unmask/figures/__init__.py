"""Numbers that already exist into charts; nothing is computed here.

A name is loaded with its module at first use, so that nobody who draws nothing waits for altair;
``__init__.pyi`` says the same to type checkers.
"""

from importlib import import_module
from typing import Any

_NAMES = {
    "cp_maps": "cp_map_figure delta_cp_map_figure roadmap_figure",
    "detection": "det difference_intervals roc_hull score_histograms trial_bias_figure",
    "evidence": """
        calibration_plot calibration_profiles disclosure_profiles ece_profile pav_map
    """,
    "figure": "Figure",
    "image": "POLICY STYLE fragment images javascript save save_all svg",
    "legal": """
        RiskLine Strip learning_curves legal_figures legal_panel rank_histograms risk_comparison
        speaker_risks speaker_strip
    """,
    "privacy": """
        PlanePoint Point cost_plane distinctiveness pareto similarity_matrices speaker_protection
        zoo_plots
    """,
    "theme": "NARROW ORIGINAL WIDE at_width system_colours",
    "worst_case": """
        GrowthLine needed_thresholds worst_case_curves worst_case_figures worst_case_growth
        worst_case_map worst_case_of_systems
    """,
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'unmask.figures' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"unmask.figures.{_MODULE_OF[name]}"), name)
    return value
