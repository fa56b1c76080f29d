"""Numbers that already exist into charts; nothing is computed here."""

from __future__ import annotations

from unmask.figures.data import join, require_systems, table
from unmask.figures.figure import Chart, Figure
from unmask.figures.page import STYLE, fragment, javascript, script_json
from unmask.figures.save import save, save_all
from unmask.figures.theme import NARROW, WIDE, attacker_dashes, shorten, system_colours

__all__ = [
    "NARROW",
    "STYLE",
    "WIDE",
    "Chart",
    "Figure",
    "attacker_dashes",
    "fragment",
    "javascript",
    "join",
    "require_systems",
    "save",
    "save_all",
    "script_json",
    "shorten",
    "system_colours",
    "table",
]
