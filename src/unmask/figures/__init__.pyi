from unmask.figures.cp_maps import (
    cp_map_figure as cp_map_figure,
    delta_cp_map_figure as delta_cp_map_figure,
    roadmap_figure as roadmap_figure,
)
from unmask.figures.detection import (
    det as det,
    difference_intervals as difference_intervals,
    roc_hull as roc_hull,
    score_histograms as score_histograms,
    trial_bias_figure as trial_bias_figure,
)
from unmask.figures.evidence import (
    calibration_plot as calibration_plot,
    calibration_profiles as calibration_profiles,
    disclosure_profiles as disclosure_profiles,
    ece_profile as ece_profile,
    pav_map as pav_map,
)
from unmask.figures.figure import Figure as Figure
from unmask.figures.image import (
    POLICY as POLICY,
    STYLE as STYLE,
    fragment as fragment,
    images as images,
    javascript as javascript,
    save as save,
    save_all as save_all,
    svg as svg,
)
from unmask.figures.legal import (
    RiskLine as RiskLine,
    Strip as Strip,
    learning_curves as learning_curves,
    legal_figures as legal_figures,
    legal_panel as legal_panel,
    rank_histograms as rank_histograms,
    risk_comparison as risk_comparison,
    speaker_risks as speaker_risks,
    speaker_strip as speaker_strip,
)
from unmask.figures.privacy import (
    PlanePoint as PlanePoint,
    Point as Point,
    cost_plane as cost_plane,
    distinctiveness as distinctiveness,
    pareto as pareto,
    similarity_matrices as similarity_matrices,
    speaker_protection as speaker_protection,
    zoo_plots as zoo_plots,
)
from unmask.figures.theme import (
    NARROW as NARROW,
    ORIGINAL as ORIGINAL,
    WIDE as WIDE,
    at_width as at_width,
    system_colours as system_colours,
)
from unmask.figures.worst_case import (
    GrowthLine as GrowthLine,
    needed_thresholds as needed_thresholds,
    worst_case_curves as worst_case_curves,
    worst_case_figures as worst_case_figures,
    worst_case_growth as worst_case_growth,
    worst_case_map as worst_case_map,
    worst_case_of_systems as worst_case_of_systems,
)
