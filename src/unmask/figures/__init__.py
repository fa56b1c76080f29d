"""Numbers that already exist into charts; nothing is computed here."""

from __future__ import annotations

from unmask.figures.calibration import calibration_plot
from unmask.figures.data import join, require_systems, table
from unmask.figures.det import det
from unmask.figures.ece import ece_profile
from unmask.figures.figure import Chart, Figure
from unmask.figures.histogram import score_histograms
from unmask.figures.page import STYLE, fragment, javascript, script_json
from unmask.figures.pav import pav_map
from unmask.figures.roc_hull import roc_hull
from unmask.figures.save import save, save_all
from unmask.figures.theme import NARROW, WIDE, attacker_dashes, shorten, system_colours

__all__ = [
    "NARROW",
    "STYLE",
    "WIDE",
    "Chart",
    "Figure",
    "attacker_dashes",
    "calibration_plot",
    "det",
    "ece_profile",
    "fragment",
    "javascript",
    "join",
    "pav_map",
    "require_systems",
    "roc_hull",
    "save",
    "save_all",
    "score_histograms",
    "script_json",
    "shorten",
    "system_colours",
    "table",
]
