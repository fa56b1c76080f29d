"""The C-P map: performance on every mixture of easy and hard trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt

from unmask.figures import cp_cells
from unmask.figures.cp_cells import Axes, axes_for, hatching, panel_for, rectangles
from unmask.figures.data import require_systems, table, text_table
from unmask.figures.encode import is_wide, panel_columns, percent
from unmask.figures.figure import Figure, Layers
from unmask.figures.theme import PAPER, SEQUENTIAL, WIDE, shorten
from unmask.stress.cpmap import CpMap
from unmask.stress.cpmap_contours import Contour
from unmask.stress.cpmap_positions import CpPosition

SPACING = 26
_POINT_INK = "#D55E00"
_NEAR_EDGE = 0.85


def cp_map_figure(
    maps: Mapping[str, CpMap],
    *,
    contours: Mapping[str, Sequence[Contour]] | None = None,
    positions: Mapping[str, Sequence[CpPosition]] | None = None,
    width: float = WIDE,
    name: str = "cp_map",
    title: str | None = None,
) -> Figure:
    """Maps of one system or several, small multiples on one fixed scale."""
    require_systems(maps, chart="C-P map")
    columns = panel_columns(len(maps), width=width)
    side = side_for(len(maps), columns, width)
    panels = [
        map_panel(
            system,
            cp,
            side=side,
            left=i % columns == 0,
            contours=(contours or {}).get(system, ()),
            positions=(positions or {}).get(system, ()),
        )
        for i, (system, cp) in enumerate(maps.items())
    ]
    chart = alt.concat(*panels, columns=columns, spacing=SPACING).properties(
        description=f"C-P maps of {', '.join(maps)}"
    )
    first = next(iter(maps.values()))
    measured = "equal error rate" if first.metric.name == "eer" else "minimum detection cost"
    shown = title or f"C-P map: {measured} on every mixture of hard and easy trials"
    told = _caption(maps, contours=any((contours or {}).values()), placed=bool(positions))
    return Figure(
        name, shown, " ".join([*told, *cp_cells.not_drawn(panel_for(first, side=side))]), chart
    )


def side_for(count: int, columns: int, width: float) -> float:
    """How long a panel's side may be, with its axis labels and one legend at the right."""
    if count == 1 or columns == 1:
        return 400 if is_wide(width) else 200
    return (width - 145 - (SPACING + 20) * (columns - 1)) / columns


def map_panel(
    system: str,
    cp: CpMap,
    *,
    side: float,
    left: bool = True,
    contours: Sequence[Contour] = (),
    positions: Sequence[CpPosition] = (),
) -> Layers:
    """One map with hatching, lines at given levels, and marks for trial configs."""
    panel = panel_for(cp, side=side)
    axes = axes_for(left=left, panel=panel)
    cells = rectangles(cp, cp.values, panel, axes).encode(
        _colour(cp, height=panel.height),
        tooltip=[
            alt.Tooltip("value:Q", title=value_title(cp), format=_format(cp)),
            *cp_cells.TRIALS,
        ],
    )
    layers = [cells, *hatching(cp, panel, axes)]
    for line in contours:
        layers += _line(line, cp, axes)
    if positions:
        layers.append(_points(positions, cp, axes))
    full = percent(cp.full) if cp.metric.name == "eer" else f"{cp.full:.3f}"
    layers += cp_cells.heading(shorten(system, limit=24), f"all trials: {full}")
    return alt.layer(*layers).properties(width=panel.width, height=panel.height)


def _format(cp: CpMap) -> str:
    return ".2%" if cp.metric.name == "eer" else ".4f"


def value_title(cp: CpMap) -> str:
    """What the colour means."""
    return "EER" if cp.metric.name == "eer" else f"minDCF({cp.metric.p_target:g})"


def _colour(cp: CpMap, *, height: int) -> alt.Color:
    """Viridis over 0–100 % EER or 0–1 minDCF, the same for every map."""
    return alt.Color(
        "value:Q",
        scale=alt.Scale(scheme=SEQUENTIAL, domain=[0, 1]),
        legend=alt.Legend(
            title=value_title(cp),
            format=".0%" if cp.metric.name == "eer" else ".1f",
            values=[0, 0.2, 0.4, 0.6, 0.8, 1],
            gradientLength=min(160, height - 20),
        ),
    )


def _line(line: Contour, cp: CpMap, axes: Axes) -> list[alt.Chart]:
    """The border at one level, named where it passes the map's diagonal."""
    if not line.x.size:
        return []
    rows = text_table(x=line.x, y=line.y, x2=line.x2, y2=line.y2)
    middle = int(abs(line.x - line.y).argmin())
    at_right, at_top = line.x[middle] > _NEAR_EDGE, line.y[middle] > _NEAR_EDGE
    word = f"{100 * line.level:g} %" if cp.metric.name == "eer" else f"{line.level:g}"
    name = table(x=[line.x[middle]], y=[line.y[middle]], word=[word])
    return [
        alt.Chart(rows)
        .mark_rule(color=PAPER, strokeWidth=0.9, opacity=0.9)
        .encode(*axes, x2="x2:Q", y2="y2:Q"),
        alt.Chart(name)
        .mark_text(
            color=PAPER,
            align="right" if at_right else "left",
            baseline="top" if at_top else "bottom",
            dx=-3 if at_right else 2,
            dy=2 if at_top else -1,
            fontSize=9.5,
        )
        .encode(*axes, text="word:N"),
    ]


def _points(positions: Sequence[CpPosition], cp: CpMap, axes: Axes) -> alt.Chart:
    rows = table(
        x=[p.x for p in positions],
        y=[p.y for p in positions],
        config=[p.name for p in positions],
        value=[p.value for p in positions],
        cell=[p.cell for p in positions],
        targets=[p.targets for p in positions],
        nontargets=[p.nontargets for p in positions],
    )
    shape = alt.Shape(
        "config:N",
        scale=alt.Scale(
            domain=[p.name for p in positions],
            range=["circle", "diamond", "square", "triangle-up", "cross"],
        ),
        legend=alt.Legend(
            title="Trial config",
            symbolFillColor=_POINT_INK,
            symbolStrokeColor=PAPER,
            labelLimit=150,
        ),
    )
    marks: alt.Chart = (
        alt.Chart(rows)
        .mark_point(
            filled=True, size=110, color=_POINT_INK, stroke=PAPER, strokeWidth=1.4, opacity=1
        )
        .encode(
            *axes,
            shape,
            tooltip=[
                alt.Tooltip("config:N", title="Trial config"),
                alt.Tooltip(
                    "value:Q", title=f"{value_title(cp)} of its trials", format=_format(cp)
                ),
                alt.Tooltip("cell:Q", title="of the cell", format=_format(cp)),
                alt.Tooltip("x:Q", title="Placed at targets", format=".1%"),
                alt.Tooltip("y:Q", title="and nontargets", format=".1%"),
                alt.Tooltip("targets:Q", title="Target trials", format=",d"),
                alt.Tooltip("nontargets:Q", title="Nontarget trials", format=",d"),
            ],
        )
    )
    return marks


def _caption(maps: Mapping[str, CpMap], *, contours: bool, placed: bool) -> list[str]:
    first = next(iter(maps.values()))
    told = [
        "A cell holds the hardest share of the targets (x) and of the nontargets (y); its colour "
        f"is the {value_title(first)} on these trials. The upper right corner is all trials, the "
        "lower left the hardest ones: the further dark colour reaches down and left, the better "
        f"the system copes with hard trials. {order_of(first)}"
    ]
    if contours:
        told.append("White lines: where the value passes the level written beside them.")
    if placed:
        told.append("Marks: trial configs, placed where the mean hardness is theirs.")
    if not all(cp.well_defined.all() for cp in maps.values()):
        told.append("Hatched: fewer than 30 trials of a class, not well-defined.")
    return told


def order_of(cp: CpMap) -> str:
    """One sentence on what ordered the trials."""
    if cp.hardness == "own":
        return "Trials are ordered by each system's own scores."
    return "Trials are ordered by a common reference, so a cell holds the same trials everywhere."
