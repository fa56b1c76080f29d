"""Learning curves: the risk under an attacker against the people it was trained on."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt

from unmask.errors import InputError
from unmask.figures.encode import band, count_x, dashed, in_panel, kinds, legend, percent_y, tips
from unmask.figures.figure import Figure, join, table
from unmask.figures.theme import WIDE, system_colours
from unmask.privacy.legal import LearningCurve

_TICKS = (2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)


def learning_curves(
    curves: Mapping[str, LearningCurve],
    *,
    colours: Mapping[str, str] | None = None,
    width: float = WIDE,
    name: str = "learning_curves",
) -> Figure:
    """A line per attack with its interval; chance dashed."""
    if not curves:
        raise InputError("learning curves: expected at least one, found none")
    colours = colours or system_colours(curves)
    rows = join(
        table(
            count=[int(n) for n in curve.people],
            value=curve.value,
            low=curve.limits[0],
            high=curve.limits[1],
            attack=label,
        )
        for label, curve in curves.items()
    )
    people = [int(n) for curve in curves.values() for n in curve.people]
    ends = (min(people) / 1.1, max(people) * 1.1)
    ticks = [n for n in _TICKS if ends[0] <= n <= ends[1]]
    x = count_x("People trained on", ends, ticks or sorted(set(people)))
    y, low = percent_y("value", "Linkability (%)"), percent_y("low", "Linkability (%)")
    colour = kinds(
        "attack",
        {label: colours[label] for label in curves},
        legend=legend(width=width, title=None),
    )
    line = alt.Chart(rows).mark_line(point=True, strokeWidth=1.8)
    hover = tips("attack:N|Attack; count:Q|People trained on; value:Q|Linkability|.3f")
    chance = {1 / curve.candidates for curve in curves.values()}
    layers = alt.layer(
        band(rows, x, low, colour, opacity=0.12),
        dashed(table(value=sorted(chance))).encode(y),
        line.encode(x, y, colour, tooltip=hover),
    )
    chart = in_panel(layers, width=width, ratio=0.5, description="Linkability of each attack")
    some = next(iter(curves.values()))
    caption = (
        f"Linkability of single utterances among {some.candidates} candidates under attackers"
        " trained on more and more people, none of whom is attacked; bands are intervals over the"
        " people attacked, the dashed line is chance. Where a line still rises, more training"
        " speech would link more."
    )
    return Figure(name, "Would more training speech link more?", caption, chart)
