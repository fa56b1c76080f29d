"""C-P maps of systems, and delta maps between two of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import altair as alt
import numpy as np

from unmask.base import BoolArray
from unmask.errors import InputError
from unmask.figures import cp_cells
from unmask.figures.cp_cells import (
    Axes,
    Panel,
    Shades,
    axes_for,
    hatching,
    kept,
    panel_for,
    rectangles,
)
from unmask.figures.encode import in_grid, is_wide, panel_columns, tips
from unmask.figures.figure import Figure, Layers, require_systems, table, text_table
from unmask.figures.theme import DIVERGING, ON_BRIGHT, ON_DARK, SEQUENTIAL, WIDE, shorten
from unmask.stress import OUTCOMES, Contour, CpMap, CpPosition, DeltaCpMap

SPACING = 26
_POINT_INK = "#D55E00"
_NEAR_EDGE = 0.85
_LIGHT = 0.6


def cp_map_figure(
    maps: Mapping[str, CpMap],
    *,
    contours: Mapping[str, Sequence[Contour]] | None = None,
    positions: Mapping[str, Sequence[CpPosition]] | None = None,
    width: float = WIDE,
    name: str = "cp_map",
    title: str | None = None,
) -> Figure:
    """Maps of one system or several, on one colour scale that follows the values shown."""
    require_systems(maps, chart="C-P map")
    shades = shades_of(maps.values())
    columns = panel_columns(len(maps), width=width)
    side = side_for(len(maps), columns, width)
    panels = [
        map_panel(
            system,
            cp,
            side=side,
            shades=shades,
            left=i % columns == 0,
            contours=(contours or {}).get(system, ()),
            positions=(positions or {}).get(system, ()),
        )
        for i, (system, cp) in enumerate(maps.items())
    ]
    described = f"C-P maps of {', '.join(maps)}"
    chart = in_grid(panels, columns=columns, spacing=SPACING, description=described)
    first = next(iter(maps.values()))
    measured = "equal error rate" if first.metric.name == "eer" else "minimum detection cost"
    shown = title or f"C-P map: {measured} on every mixture of hard and easy trials"
    parts = _map_caption(
        maps, shades, contours=any((contours or {}).values()), placed=bool(positions)
    )
    thinned = cp_cells.not_drawn(panel_for(first, side=side))
    return Figure(name, shown, " ".join([*parts, *thinned]), chart)


def shades_of(maps: Iterable[CpMap]) -> Shades:
    """One range of colours for maps that are shown side by side."""
    return Shades.of(np.concatenate([cp.values[cp.well_defined] for cp in maps]))


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
    shades: Shades,
    left: bool = True,
    below: bool = True,
    legend: bool = True,
    contours: Sequence[Contour] = (),
    positions: Sequence[CpPosition] = (),
) -> Layers:
    """One map with hatching, lines at given levels, and marks for trial configs."""
    panel = panel_for(cp, side=side)
    axes = axes_for(left=left, panel=panel, below=below)
    cells = rectangles(cp, cp.values, panel, axes).encode(
        _colour(cp, shades, height=panel.height, legend=legend),
        tooltip=[
            alt.Tooltip("value:Q", title=value_title(cp), format=_format(cp)),
            *cp_cells.TRIALS,
        ],
    )
    layers = [cells, *hatching(cp, panel, axes)]
    for line in contours:
        layers += _line(line, cp, shades, axes)
    placed = [position for position in positions if position.placed]
    if placed:
        layers.append(_points(placed, cp, axes))
    layers += cp_cells.heading(shorten(system, limit=24), f"all trials: {_full(cp)}")
    return alt.layer(*layers).properties(width=panel.width, height=panel.height)


def _format(cp: CpMap) -> str:
    return ".2%" if cp.metric.name == "eer" else ".4f"


def value_title(cp: CpMap) -> str:
    """What the colour means."""
    return "EER" if cp.metric.name == "eer" else f"minDCF({cp.metric.p_target:g})"


def _full(cp: CpMap) -> str:
    """The metric on all trials, with its interval where there is one."""
    made = None if cp.intervals is None else cp.intervals.full
    if cp.metric.name == "eer":
        return cp_cells.within(cp.full, made)
    return f"{cp.full:.3f}" if made is None else f"{cp.full:.2f} [{made.low:.2f}, {made.high:.2f}]"


def _colour(cp: CpMap, shades: Shades, *, height: int, legend: bool) -> alt.Color:
    """Viridis over the range of the values shown, the same for every map beside it."""
    return alt.Color(
        "value:Q",
        scale=alt.Scale(
            type="log" if shades.log else "linear",
            scheme=SEQUENTIAL,
            domain=[shades.low, shades.high],
            clamp=True,
        ),
        legend=alt.Legend(
            title=value_title(cp),
            format=".2~%" if cp.metric.name == "eer" else "~g",
            values=shades.ticks,
            gradientLength=min(160, height - 20),
        )
        if legend
        else None,
    )


def _line(line: Contour, cp: CpMap, shades: Shades, axes: Axes) -> list[alt.Chart]:
    """The border at one level, named where it passes the map's diagonal; dark on light colours."""
    if not line.x.size:
        return []
    ink = ON_DARK if shades.share(line.level) < _LIGHT else ON_BRIGHT
    rows = text_table(x=line.x, y=line.y, x2=line.x2, y2=line.y2)
    middle = int(abs(line.x - line.y).argmin())
    at_right, at_top = line.x[middle] > _NEAR_EDGE, line.y[middle] > _NEAR_EDGE
    word = f"{100 * line.level:g} %" if cp.metric.name == "eer" else f"{line.level:g}"
    name = table(x=[line.x[middle]], y=[line.y[middle]], word=[word])
    return [
        alt.Chart(rows)
        .mark_rule(color=ink, strokeWidth=0.9, opacity=0.9)
        .encode(*axes, x2="x2:Q", y2="y2:Q"),
        alt.Chart(name)
        .mark_text(
            color=ink,
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
            symbolStrokeColor=ON_DARK,
            labelLimit=150,
        ),
    )
    marks: alt.Chart = (
        alt.Chart(rows)
        .mark_point(
            filled=True, size=110, color=_POINT_INK, stroke=ON_DARK, strokeWidth=1.4, opacity=1
        )
        .encode(
            *axes,
            shape,
            tooltip=[
                *tips("config:N|Trial config"),
                alt.Tooltip(
                    "value:Q", title=f"{value_title(cp)} of its trials", format=_format(cp)
                ),
                alt.Tooltip("cell:Q", title="of the cell", format=_format(cp)),
                *tips(
                    "x:Q|Placed at targets|.1%; y:Q|and nontargets|.1%; "
                    "targets:Q|Target trials|,d; nontargets:Q|Nontarget trials|,d"
                ),
            ],
        )
    )
    return marks


def _map_caption(
    maps: Mapping[str, CpMap], shades: Shades, *, contours: bool, placed: bool
) -> list[str]:
    first = next(iter(maps.values()))
    parts = [
        "A cell holds the hardest share of the targets (x) and of the nontargets (y); its colour "
        f"is the {value_title(first)} on these trials. The upper right corner is all trials, the "
        "lower left the hardest ones: the further dark colour reaches down and left, the better "
        f"the system copes with hard trials. {order_of(first)}"
    ]
    parts.append(scale_words(shades, several=len(maps) > 1))
    if contours:
        parts.append("Lines: where the value passes the level written beside them.")
    if placed:
        parts.append("Marks: trial configs, placed where the mean hardness is theirs.")
    if not all(cp.well_defined.all() for cp in maps.values()):
        parts.append("Hatched: fewer than 30 trials of a class, not well-defined.")
    if any(cp.intervals is not None for cp in maps.values()):
        parts.append("In brackets: the interval over speakers; single cells have none.")
    return parts


def scale_words(shades: Shades, *, several: bool) -> str:
    """One sentence on the range of colours."""
    end = "; 0 has the lowest colour" if shades.zeros else ""
    kind = "logarithmic " if shades.log else ""
    shared = ", the same in all panels" if several else ""
    return f"The {kind}colour scale follows the range of the values shown{shared}{end}."


def order_of(cp: CpMap) -> str:
    """One sentence on what ordered the trials."""
    if cp.hardness == "own":
        return "Trials are ordered by each system's own scores."
    kind, bracket, names = cp.hardness.rstrip(")").partition("(")
    words = {"rank": "the mean rank of ", "mean": "the mean score of "}
    by = words[kind] + names.replace(",", ", ") if bracket and kind in words else cp.hardness
    return f"Trials are ordered by {by}, so a cell holds the same trials everywhere."


_REACHES = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
_HELD = 0.99
_INFINITE = -1e9


def delta_cp_map_figure(
    deltas: Sequence[DeltaCpMap],
    *,
    width: float = WIDE,
    name: str = "delta_cp_map",
    title: str = "Delta C-P map: where the new system makes fewer errors than the old one",
) -> Figure:
    """Relative change of each cell, blue where the test system wins, all on one scale.

    Comparisons by two metrics stand side by side where they follow each other.
    """
    if not deltas:
        raise InputError("delta C-P map: expected at least one comparison, found none")
    metrics = len({delta.metric for delta in deltas})
    columns = metrics if metrics > 1 else panel_columns(len(deltas), width=width)
    side = side_for(len(deltas), columns, width)
    limit = reach(deltas)
    panels = [
        delta_panel(delta, side=side, limit=limit, left=i % columns == 0, with_metric=metrics > 1)
        for i, delta in enumerate(deltas)
    ]
    pairs = ", ".join(f"{d.test} against {d.reference}" for d in deltas)
    described = f"Delta C-P maps of {pairs}"
    chart = in_grid(panels, columns=columns, spacing=SPACING, description=described)
    parts = [*_delta_caption(deltas, limit), *cp_cells.not_drawn(panel_for(deltas[0], side=side))]
    return Figure(name, title, " ".join(parts), chart)


def reach(deltas: Sequence[DeltaCpMap]) -> float:
    """The end of the colour scale: the smallest of a few round numbers that 99 % of cells keep."""
    sizes = np.concatenate([np.abs(d.rcr[d.well_defined]) for d in deltas])
    return next(
        (limit for limit in _REACHES if not sizes.size or np.mean(sizes <= limit) >= _HELD),
        _REACHES[-1],
    )


def delta_panel(
    delta: DeltaCpMap,
    *,
    side: float,
    limit: float,
    left: bool = True,
    legend: bool = True,
    with_metric: bool = False,
) -> Layers:
    """One delta map with its proportions in the heading; cells beyond the scale carry a dot."""
    panel = panel_for(delta, side=side)
    axes = axes_for(left=left, panel=panel)
    values = np.where(np.isneginf(delta.rcr), _INFINITE, delta.rcr)
    cells = (
        rectangles(delta, values, panel, axes)
        .transform_calculate(
            change=f"datum.value <= {_INFINITE} ? '−∞' : format(datum.value, '+.2%')"
        )
        .encode(
            alt.Color(
                "value:Q",
                scale=alt.Scale(
                    range=list(DIVERGING), domain=[-limit, limit], domainMid=0, clamp=True
                ),
                legend=alt.Legend(
                    title="Change (RCR)",
                    values=[-limit, -limit / 2, 0, limit / 2, limit],
                    labelExpr="datum.value ? format(datum.value, '+.2~%') : '0 %'",
                    gradientLength=min(160, panel.height - 20),
                )
                if legend
                else None,
            ),
            tooltip=[*tips("change:N|Relative change"), *cp_cells.TRIALS],
        )
    )
    old, new = shorten(delta.reference, limit=14), shorten(delta.test, limit=14)
    words = cp_cells.heading(
        f"{old} → {new}{f', {metric_name(delta)}' if with_metric else ''}", *proportions(delta)
    )
    layers = [
        cells,
        *_beyond(delta, beyond(delta, limit), panel, axes),
        *hatching(delta, panel, axes),
        *words,
    ]
    return alt.layer(*layers).properties(width=panel.width, height=panel.height)


def beyond(delta: DeltaCpMap, limit: float) -> BoolArray:
    """Well-defined cells whose change is larger than the colours tell."""
    return np.asarray(delta.well_defined & (np.abs(delta.rcr) > limit))


def _beyond(delta: DeltaCpMap, cells: BoolArray, panel: Panel, axes: Axes) -> list[alt.Chart]:
    columns, rows = kept(delta.x.size, panel.step), kept(delta.y.size, panel.step)
    row, column = np.nonzero(cells[np.ix_(rows, columns)])
    if not row.size:
        return []
    x, y = ((np.append(0.0, axis[:-1]) + axis) / 2 for axis in (delta.x[columns], delta.y[rows]))
    dots: alt.Chart = (
        alt.Chart(text_table(x=x[column], y=y[row]))
        .mark_circle(
            color=ON_BRIGHT, size=max(2.0, (panel.width / columns.size) ** 2 / 9), opacity=0.8
        )
        .encode(*axes)
    )
    return [dots]


def metric_name(delta: DeltaCpMap) -> str:
    """What the two maps measure."""
    return {"eer": "EER", "min_dcf": "minDCF"}[delta.metric.name]


def proportions(delta: DeltaCpMap) -> list[str]:
    """Win, tie and lose in percent, each with its interval where there is one."""
    made = delta.intervals
    return [
        f"{name} {cp_cells.within(getattr(delta, name), getattr(made, name, None))}"
        for name in OUTCOMES
    ]


def _delta_caption(deltas: Sequence[DeltaCpMap], limit: float) -> list[str]:
    parts = [
        "Colour: relative change ratio (old − new)/old of each cell; blue, the new system makes "
        "fewer errors; vermilion, more. A cell holds the hardest share of targets (x) and "
        "nontargets (y); all trials are in the upper right corner."
    ]
    several = len({delta.metric for delta in deltas}) > 1
    parts += [
        f"{delta.test} against {delta.reference}{f' by {metric_name(delta)}' if several else ''}: "
        f"{', '.join(proportions(delta))} of the well-defined cells."
        for delta in deltas
    ]
    parts += beyond_words(deltas, limit)
    if not all(d.well_defined.all() for d in deltas):
        parts.append("Hatched: fewer than 30 trials of a class, not well-defined.")
    return parts


def beyond_words(deltas: Sequence[DeltaCpMap], limit: float) -> list[str]:
    """One sentence on the cells that carry a dot."""
    count = sum(int(beyond(delta, limit).sum()) for delta in deltas)
    if not count:
        return []
    return [
        f"Dots: {count:,} cells that change by more than ±{100 * limit:g} %, the end of the scale."
    ]
