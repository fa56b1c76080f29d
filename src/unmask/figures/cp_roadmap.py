"""The roadmap of systems that grew from one another: their C-P maps, and what each step gained."""

from __future__ import annotations

from unmask.errors import InputError
from unmask.figures.cp_cells import blank, not_drawn, panel_for
from unmask.figures.cp_maps import (
    SPACING,
    beyond_words,
    delta_panel,
    map_panel,
    order_of,
    proportions,
    reach,
    scale_words,
    shades_of,
    side_for,
    value_title,
)
from unmask.figures.encode import in_grid
from unmask.figures.figure import Figure, Layers
from unmask.figures.theme import WIDE, shorten
from unmask.stress import CpRoadmap

_LEAST_SIDE = 90.0


def roadmap_figure(
    roadmap: CpRoadmap,
    *,
    width: float = WIDE,
    name: str = "cp_roadmap",
    title: str = "Roadmap: maps of the systems, and what each step gained",
) -> Figure:
    """Systems from left to right; below each map its change against the system it grew from.

    The first step from a system goes on in its row, a further one opens a row of its own.
    """
    if not roadmap.deltas:
        raise InputError(f"roadmap: expected at least two systems, found {len(roadmap.maps)}")
    columns = len(roadmap.levels)
    side = max(_LEAST_SIDE, side_for(columns, columns, width))
    limit = reach(roadmap.deltas)
    panels = [
        panel
        for number, (first, names) in enumerate(rows_of(roadmap))
        for row in _rows(roadmap, first, names, side=side, limit=limit, legend=number == 0)
        for panel in row
    ]
    listed = ", ".join(cp.system for cp in roadmap.maps)
    described = f"Roadmap of {listed}: C-P maps and delta C-P maps"
    chart = in_grid(panels, columns=columns, spacing=SPACING, description=described)
    chart = chart.resolve_scale(color="independent")
    return Figure(name, title, " ".join(_roadmap_caption(roadmap, side, limit)), chart)


def _rows(
    roadmap: CpRoadmap, first: int, names: list[str], *, side: float, limit: float, legend: bool
) -> tuple[list[Layers], list[Layers]]:
    """Maps of one row of the drawing and, below them, the steps that lead to them."""
    maps = {cp.system: cp for cp in roadmap.maps}
    steps = {delta.test: delta for delta in roadmap.deltas}
    shades = shades_of(roadmap.maps)
    panel = panel_for(roadmap.maps[0], side=side)
    upper, lower = ([blank(panel)] * first for _ in range(2))
    if first:
        upper[-1] = blank(panel, f"from {shorten(steps[names[0]].reference, limit=14)} →")
    for place, system in enumerate(names, start=first):
        last = legend and system == names[-1]
        upper.append(
            map_panel(
                system,
                maps[system],
                side=side,
                shades=shades,
                left=place == first,
                below=False,
                legend=last,
            )
        )
        if system in steps:
            left = place == max(first, 1)
            lower.append(delta_panel(steps[system], side=side, limit=limit, left=left, legend=last))
        else:
            lower.append(blank(panel))
    lacking = [blank(panel)] * (len(roadmap.levels) - first - len(names))
    return upper + lacking, lower + lacking


def rows_of(roadmap: CpRoadmap) -> list[tuple[int, list[str]]]:
    """Rows of the drawing: the column of the first system in it, and the systems one by one."""
    children: dict[str, list[str]] = {}
    for delta in roadmap.deltas:
        children.setdefault(delta.reference, []).append(delta.test)
    rows: list[tuple[int, list[str]]] = []
    open_branches = [(0, roadmap.levels[0][0])]
    while open_branches:
        first, system = open_branches.pop(0)
        row = [system]
        while system in children:
            system, *others = children[system]
            open_branches += [(first + len(row), other) for other in others]
            row.append(system)
        rows.append((first, row))
    return rows


def _roadmap_caption(roadmap: CpRoadmap, side: float, limit: float) -> list[str]:
    first = roadmap.maps[0]
    steps = "; ".join(
        f"{delta.reference} → {delta.test} {', '.join(proportions(delta))}"
        for delta in roadmap.deltas
    )
    parts = [
        f"Above: {value_title(first)} of each system, the value on all trials below its name. "
        "Below it: relative change against the system it grew from, blue where the newer one makes "
        f"fewer errors, with the shares of well-defined cells it wins, ties and loses. {steps}.",
        order_of(first),
        scale_words(shades_of(roadmap.maps), several=True),
        *beyond_words(roadmap.deltas, limit),
    ]
    if any(delta.intervals is not None for delta in roadmap.deltas):
        parts.append("In brackets: intervals over speakers.")
    return [*parts, *not_drawn(panel_for(first, side=side))]
