"""C-P maps of systems, delta maps between two of them, and the roadmap of systems that grew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any

import altair as alt
import numpy as np

from unmask.base import BoolArray
from unmask.errors import InputError
from unmask.estimate import Interval
from unmask.figures import draw
from unmask.figures.cp_cells import X2, Y2, Axes, Panel, Shades
from unmask.figures.figure import Figure, Layers, captioned, require, table, text_table
from unmask.figures.theme import DIVERGING, ON_BRIGHT, ON_DARK, SEQUENTIAL, is_wide, shorten, width
from unmask.stress import OUTCOMES, Contour, CpMap, CpPosition, CpRoadmap, DeltaCpMap

_SPACING = 26
_POINT_INK = "#D55E00"
_SHAPES = ("circle", "diamond", "square", "triangle-up", "cross")
_NEAR_EDGE = 0.85
_LIGHT = 0.6
_CELL = {"clip": True, "strokeWidth": 0}


def cp_map_figure(
    maps: Mapping[str, CpMap],
    *,
    contours: Mapping[str, Sequence[Contour]] | None = None,
    positions: Mapping[str, Sequence[CpPosition]] | None = None,
) -> Figure:
    """Maps of one system or several, on one colour scale that follows the values shown."""
    require(maps, "C-P map")
    shades = _shades_of(maps.values())
    columns = draw.panel_columns(len(maps))
    side = _side_for(len(maps), columns)
    lines, placed = contours or {}, positions or {}
    panels = [
        _map_panel(
            system,
            cp,
            side=side,
            shades=shades,
            left=i % columns == 0,
            contours=lines.get(system, ()),
            positions=placed.get(system, ()),
        )
        for i, (system, cp) in enumerate(maps.items())
    ]
    first = next(iter(maps.values()))
    return captioned(
        "cp_map",
        alt.concat(*panels, columns=columns, spacing=_SPACING),
        systems=maps,
        measured="equal error rate" if first.metric.name == "eer" else "minimum detection cost",
        **_words(first, shades, several=len(maps) > 1),
        lines=any(lines.values()),
        placed=bool(placed),
        **_cells(list(maps.values()), side),
        intervals=any(cp.intervals is not None for cp in maps.values()),
    )


def _shades_of(maps: Iterable[CpMap]) -> Shades:
    """One range of colours for maps that are shown side by side."""
    return Shades.of(np.concatenate([cp.values[cp.well_defined] for cp in maps]))


def _side_for(count: int, columns: int) -> float:
    """How long a panel's side may be, with its axis labels and one legend at the right."""
    if count == 1 or columns == 1:
        return 400 if is_wide() else 200
    return (width() - 145 - (_SPACING + 20) * (columns - 1)) / columns


def _cells(cells: Sequence[CpMap | DeltaCpMap], side: float) -> dict[str, Any]:
    """Cells along an axis behind one that is drawn, 0 if all are; whether some are undefined."""
    step = Panel.of(cells[0], side=side).step
    hatched = not all(one.well_defined.all() for one in cells)
    return {"thinned": step if step > 1 else 0, "hatched": hatched}


def _map_panel(
    system: str,
    cp: CpMap,
    *,
    side: float,
    shades: Shades,
    left: bool = True,
    legend: bool = True,
    contours: Sequence[Contour] = (),
    positions: Sequence[CpPosition] = (),
) -> Layers:
    """One map with hatching, lines at given levels, and marks for trial configs."""
    panel = Panel.of(cp, side=side)
    axes = panel.axes(left=left)
    scale = {"type": "log" if shades.log else "linear", "scheme": SEQUENTIAL}
    options = {
        "title": _value(cp)["value"],
        "format": ".2~%" if cp.metric.name == "eer" else "~g",
        "values": shades.ticks,
    }
    colour = panel.colour([shades.low, shades.high], scale, **(options if legend else {}))
    tips = draw.tips("cp_map", **_value(cp))
    cells = panel.rectangles(cp.values)
    placed = [position for position in positions if position.placed]
    return panel.layered(
        draw.mark(cells, "rect", *axes, X2, Y2, colour, tips, **_CELL),
        *panel.hatching(axes),
        *(layer for line in contours for layer in _line(line, cp, shades, axes)),
        *([_points(placed, cp, axes)] if placed else []),
        *draw.heading(shorten(system, limit=24), f"all trials: {_full(cp)}"),
    )


def _value(cp: CpMap) -> dict[str, str]:
    """What the colour means, and how it is written."""
    if cp.metric.name == "eer":
        return {"value": "EER", "format": ".2%"}
    return {"value": f"minDCF({cp.metric.p_target:g})", "format": ".4f"}


def _within(share: float, interval: Interval | None) -> str:
    """A percentage, with its interval where there is one."""
    if interval is None or np.isnan(interval.low):
        return f"{100 * share:.1f} %"
    return f"{100 * share:.1f} [{100 * interval.low:.1f}, {100 * interval.high:.1f}] %"


def _full(cp: CpMap) -> str:
    """The metric on all trials, with its interval where there is one."""
    made = None if cp.intervals is None else cp.intervals.full
    if cp.metric.name == "eer":
        return _within(cp.full, made)
    return f"{cp.full:.3f}" if made is None else f"{cp.full:.2f} [{made.low:.2f}, {made.high:.2f}]"


def _line(line: Contour, cp: CpMap, shades: Shades, axes: Axes) -> list[alt.Chart]:
    """The border at one level, named where it passes the map's diagonal; dark on light colours."""
    if not line.x.size:
        return []
    ink = ON_DARK if shades.share(line.level) < _LIGHT else ON_BRIGHT
    rows = text_table(x=line.x, y=line.y, x2=line.x2, y2=line.y2)
    middle = int(abs(line.x - line.y).argmin())
    at_right, at_top = line.x[middle] > _NEAR_EDGE, line.y[middle] > _NEAR_EDGE
    word = f"{100 * line.level:g} %" if cp.metric.name == "eer" else f"{line.level:g}"
    side: draw.Style = {
        "align": "right" if at_right else "left",
        "baseline": "top" if at_top else "bottom",
        "dx": -3 if at_right else 2,
        "dy": 2 if at_top else -1,
    }
    name = table(x=line.x[middle], y=line.y[middle], word=word)
    return [
        draw.mark(rows, "rule", *axes, X2, Y2, color=ink, strokeWidth=0.9, opacity=0.9),
        draw.mark(name, "text", *axes, alt.Text("word:N"), color=ink, fontSize=9.5, **side),
    ]


def _points(positions: Sequence[CpPosition], cp: CpMap, axes: Axes) -> alt.Chart:
    fields = ("x", "y", "value", "cell", "targets", "nontargets")
    names = [position.name for position in positions]
    rows = table(config=names, **{f: [getattr(p, f) for p in positions] for f in fields})
    legend = alt.Legend(
        title="Trial config", symbolFillColor=_POINT_INK, symbolStrokeColor=ON_DARK, labelLimit=150
    )
    shape = draw.by(
        alt.Shape, "config", dict(zip(names, cycle(_SHAPES), strict=False)), legend=legend
    )
    tips = draw.tips("cp_points", **_value(cp))
    style: draw.Style = {"size": 110, "color": _POINT_INK, "stroke": ON_DARK, "strokeWidth": 1.4}
    return draw.dots(rows, *axes, shape, tips, **style)


def _words(cp: CpMap, shades: Shades, *, several: bool) -> dict[str, Any]:
    """What captions say of maps: the value, the range of colours, what ordered the trials."""
    end = "; 0 has the lowest colour" if shades.zeros else ""
    kind = "logarithmic " if shades.log else ""
    shared = ", the same in all panels" if several else ""
    order = "Trials are ordered by each system's own scores."
    if cp.hardness != "own":
        how, bracket, names = cp.hardness.rstrip(")").partition("(")
        words = {"rank": "the mean rank of ", "mean": "the mean score of "}
        by = words[how] + names.replace(",", ", ") if bracket and how in words else cp.hardness
        order = f"Trials are ordered by {by}, so a cell holds the same trials everywhere."
    return {
        "value": _value(cp)["value"],
        "scale": f"The {kind}colour scale follows the range of the values shown{shared}{end}.",
        "order": order,
    }


_REACHES = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
_HELD = 0.99
_INFINITE = -1e9


def delta_cp_map_figure(deltas: Sequence[DeltaCpMap], *, privacy: bool = False) -> Figure:
    """Relative change of each cell, blue where the test system wins, all on one scale.

    Comparisons by two metrics stand side by side where they follow each other. With ``privacy``
    systems are safeguards, of which the one that wins protects less.
    """
    require(deltas, "delta C-P map", "comparison")
    metrics = len({delta.metric for delta in deltas})
    columns = metrics if metrics > 1 else draw.panel_columns(len(deltas))
    side = _side_for(len(deltas), columns)
    limit = reach(deltas)
    written = {"eer": "EER", "min_dcf": "minDCF"} if metrics > 1 else {}
    names = [written.get(delta.metric.name, "") for delta in deltas]
    panels = [
        _delta_panel(
            delta, side=side, limit=limit, left=i % columns == 0, metric=metric, privacy=privacy
        )
        for i, (delta, metric) in enumerate(zip(deltas, names, strict=True))
    ]
    pairs = [f"{delta.test} against {delta.reference}" for delta in deltas]
    each = (
        f"{pair}{f' by {metric}' if metric else ''}: {', '.join(_proportions(delta, privacy))} of"
        " the well-defined cells."
        for pair, metric, delta in zip(pairs, names, deltas, strict=True)
    )
    return captioned(
        "delta_cp_map_privacy" if privacy else "delta_cp_map",
        alt.concat(*panels, columns=columns, spacing=_SPACING),
        pairs=pairs,
        each=" ".join(each),
        beyond=sum(int(_beyond(delta, limit).sum()) for delta in deltas),
        limit=100 * limit,
        **_cells(deltas, side),
    ).called("delta_cp_map")


def reach(deltas: Sequence[DeltaCpMap]) -> float:
    """The end of the colour scale: the smallest of a few round numbers that 99 % of cells keep."""
    sizes = np.concatenate([np.abs(d.rcr[d.well_defined]) for d in deltas])
    return next(
        (limit for limit in _REACHES if not sizes.size or np.mean(sizes <= limit) >= _HELD),
        _REACHES[-1],
    )


def _delta_panel(
    delta: DeltaCpMap,
    *,
    side: float,
    limit: float,
    left: bool = True,
    legend: bool = True,
    metric: str = "",
    privacy: bool = False,
    letters: int = 14,
) -> Layers:
    """One delta map with its proportions in the heading; cells beyond the scale carry a dot."""
    panel = Panel.of(delta, side=side)
    axes = panel.axes(left=left)
    values = np.where(np.isneginf(delta.rcr), _INFINITE, delta.rcr)
    cells = panel.rectangles(values).transform_calculate(
        change=f"datum.value <= {_INFINITE} ? '−∞' : format(datum.value, '+.2%')"
    )
    options = {
        "title": "Change (RCR)",
        "values": [-limit, -limit / 2, 0, limit / 2, limit],
        "labelExpr": "datum.value ? format(datum.value, '+.2~%') : '0 %'",
    }
    scale = {"range": list(DIVERGING), "domainMid": 0}
    colour = panel.colour([-limit, limit], scale, **(options if legend else {}))
    tips = draw.tips("delta_cp_map")
    names = " → ".join(shorten(system, limit=letters) for system in (delta.reference, delta.test))
    return panel.layered(
        draw.mark(cells, "rect", *axes, X2, Y2, colour, tips, **_CELL),
        *_dots(panel, _beyond(delta, limit), axes),
        *panel.hatching(axes),
        *draw.heading(f"{names}, {metric}" if metric else names, *_proportions(delta, privacy)),
    )


def _beyond(delta: DeltaCpMap, limit: float) -> BoolArray:
    """Well-defined cells whose change is larger than the colours tell."""
    return np.asarray(delta.well_defined & (np.abs(delta.rcr) > limit))


def _dots(panel: Panel, chosen: BoolArray, axes: Axes) -> list[alt.Chart]:
    """A dot in the middle of each chosen cell."""
    columns, rows = panel.drawn
    row, column = np.nonzero(chosen[np.ix_(rows, columns)])
    if not row.size:
        return []
    shares = (panel.cells.x[columns], panel.cells.y[rows])
    x, y = ((np.append(0.0, axis[:-1]) + axis) / 2 for axis in shares)
    size = max(2.0, (panel.width / columns.size) ** 2 / 9)
    dots = text_table(x=x[column], y=y[row])
    return [draw.mark(dots, "circle", *axes, color=ON_BRIGHT, size=size, opacity=0.8)]


def _proportions(delta: DeltaCpMap, privacy: bool = False) -> list[str]:
    """Win, tie and lose in percent, each with its interval where there is one."""
    made, words = delta.intervals, _OF_SAFEGUARDS if privacy else {}
    return [
        f"{words.get(name, name)} {_within(getattr(delta, name), getattr(made, name, None))}"
        for name in OUTCOMES
    ]


_OF_SAFEGUARDS = {"win": "protects less", "tie": "alike", "lose": "protects more"}


def roadmap_figure(roadmap: CpRoadmap) -> Figure:
    """A row for each system: its map, and the change against the one above that it grew from."""
    if not roadmap.deltas:
        raise InputError(f"roadmap: expected at least two systems, found {len(roadmap.maps)}")
    side, limit = (190 if is_wide() else 150), reach(roadmap.deltas)
    maps, shades = {cp.system: cp for cp in roadmap.maps}, _shades_of(roadmap.maps)
    steps = {delta.test: delta for delta in roadmap.deltas}
    panels: list[Layers] = []
    for system in (system for level in roadmap.levels for system in level):
        delta, first = steps.get(system), not panels
        panels.append(_map_panel(system, maps[system], side=side, shades=shades, legend=first))
        if delta is not None:
            one = len(panels) <= 3
            how: draw.Style = {"left": False, "legend": one, "letters": 24}
            panels.append(_delta_panel(delta, side=side, limit=limit, **how))
        elif is_wide():
            panels.append(Panel.of(maps[system], side=side).blank())
    chart = alt.concat(*panels, columns=2 if is_wide() else 1, spacing=_SPACING)
    each = "; ".join(
        f"{delta.reference} → {delta.test} {', '.join(_proportions(delta))}"
        for delta in roadmap.deltas
    )
    return captioned(
        "cp_roadmap",
        chart.resolve_scale(color="independent"),
        systems=[cp.system for cp in roadmap.maps],
        steps=each,
        **_words(roadmap.maps[0], shades, several=True),
        **_cells(roadmap.maps, side),
        beyond=sum(int(_beyond(delta, limit).sum()) for delta in roadmap.deltas),
        limit=100 * limit,
        intervals=any(delta.intervals is not None for delta in roadmap.deltas),
    )
