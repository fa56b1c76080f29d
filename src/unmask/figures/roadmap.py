"""The roadmap: a chain of systems, each map and each step between them."""

from __future__ import annotations

import altair as alt

from unmask.errors import InputError
from unmask.figures.cp_cells import not_drawn, panel_for
from unmask.figures.cp_map import SPACING, map_panel, order_of, side_for, value_title
from unmask.figures.delta_cp_map import delta_panel, reach
from unmask.figures.figure import Figure
from unmask.figures.theme import WIDE
from unmask.stress.cpmap_delta import CpRoadmap


def roadmap_figure(
    roadmap: CpRoadmap,
    *,
    width: float = WIDE,
    name: str = "cp_roadmap",
    title: str = "Roadmap: maps of the systems in order, and what each step gained",
) -> Figure:
    """Maps in the upper row on one scale; below each system its change against the one before."""
    if not roadmap.deltas:
        raise InputError(f"roadmap: expected at least two systems, found {len(roadmap.maps)}")
    count = len(roadmap.maps)
    side = max(50.0, side_for(count, count, width))
    maps = [map_panel(cp.system, cp, side=side, left=i == 0) for i, cp in enumerate(roadmap.maps)]
    limit = reach(roadmap.deltas)
    steps = [
        delta_panel(delta, side=side, limit=limit, left=i == 0)
        for i, delta in enumerate(roadmap.deltas)
    ]
    upper = alt.hconcat(*maps, spacing=SPACING)
    lower = alt.hconcat(*steps, spacing=SPACING)
    chart = alt.vconcat(upper, lower, spacing=34).resolve_scale(color="independent")
    names = ", ".join(cp.system for cp in roadmap.maps)
    chart = chart.properties(description=f"Roadmap of {names}: C-P maps and delta C-P maps")
    first = roadmap.maps[0]
    steps_told = "; ".join(
        f"{d.reference} → {d.test} wins {100 * d.win:.1f} %, ties {100 * d.tie:.1f} %, "
        f"loses {100 * d.lose:.1f} %"
        for d in roadmap.deltas
    )
    caption = (
        f"Above: {value_title(first)} of each system, the value on all trials beside its name. "
        "Below: relative change against the system before, blue where the newer one makes fewer "
        f"errors, with the shares of well-defined cells it wins, ties and loses. {order_of(first)} "
        f"{steps_told}."
    )
    thinned = not_drawn(panel_for(first, side=side))
    return Figure(name, title, " ".join([caption, *thinned]), chart)
