"""C-P maps of systems, delta maps between two of them, the roadmap of systems that grew; and what
these share: cells of whole pixels, hatching, axes, shades.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import altair as alt
import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray
from unmask.errors import InputError
from unmask.estimate import Interval
from unmask.figures import draw
from unmask.figures.figure import Chart, Figure, Layers, captioned, require, table, text_table
from unmask.figures.theme import (
    DIVERGING,
    GRID,
    ON_BRIGHT,
    ON_DARK,
    SEQUENTIAL,
    is_wide,
    shorten,
    width,
)
from unmask.stress import OUTCOMES, Contour, CpMap, CpPosition, CpRoadmap, DeltaCpMap

Numbers = npt.NDArray[Any]
Axes = tuple[alt.X, alt.Y]
MOST_CELLS = 100
MOST_DECADES = 1.0
X2, Y2 = alt.X2("x2:Q"), alt.Y2("y2:Q")
_HATCH = "#9ca3af"
_HATCH_STEP = 7.0
_TICKS = [0, 0.25, 0.5, 0.75, 1]
_ROOM = 140


@dataclass(frozen=True)
class Panel:
    """How cells become pixels: every ``step``-th cell is drawn, in ``width`` by ``height``."""

    cells: CpMap | DeltaCpMap
    step: int
    width: int
    height: int

    @classmethod
    def of(cls, cells: CpMap | DeltaCpMap, *, side: float) -> Panel:
        """The largest panel up to ``side`` whose cells are whole pixels: a fine grid is thinned to
        at most 100 cells a side, or half of that to fill three quarters of ``side``.
        """
        longest = max(cells.x.size, cells.y.size)
        least = -(-longest // MOST_CELLS)
        for step in (least, 2 * least):
            drawn = -(-longest // step)
            pixels = max(1, int(side / drawn))
            if pixels * drawn >= 0.75 * side:
                break
        return cls(cells, step, *(pixels * -(-axis.size // step) for axis in (cells.x, cells.y)))

    @property
    def drawn(self) -> tuple[Numbers, Numbers]:
        """Numbers of the columns and of the rows that are drawn, the last ones among them."""
        x, y = (np.arange(n.size - 1, -1, -self.step)[::-1] for n in (self.cells.x, self.cells.y))
        return x, y

    def axes(self, *, left: bool) -> Axes:
        """Shares of the targets and of the nontargets, named below and at the left of panels."""
        room = self.width >= _ROOM
        end = ", hardest first" if room else ""
        ticks: draw.Style = {"format": ".0%", "values": _TICKS if room else _TICKS[::2]}
        ticks |= {"grid": False, "labelOverlap": False}
        return (
            draw.axis(alt.X, "x", f"Targets{end}", (0, 1), labelFlush=False, **ticks),
            draw.axis(alt.Y, "y", f"Nontargets{end}" if left else None, (0, 1), **ticks),
        )

    def rectangles(self, values: Numbers) -> alt.Chart:
        """A row per well-defined cell; each reaches under its neighbours, so that no seam shows."""
        cells, (columns, rows) = self.cells, self.drawn
        row, column = np.nonzero(cells.well_defined[np.ix_(rows, columns)])
        data = text_table(i=column, j=row, value=values[np.ix_(rows, columns)][row, column])
        return Chart(data).transform_calculate(
            x=_at([0.0, *cells.x[columns][:-1]], "i"),
            x2=_at([*cells.x[columns][1:], 1.0], "i"),
            y=_at([0.0, *cells.y[rows][:-1]], "j"),
            y2=_at([*cells.y[rows][1:], 1.0], "j"),
            share_x=_at(cells.x[columns], "i"),
            share_y=_at(cells.y[rows], "j"),
            targets=_at(cells.targets[columns], "i"),
            nontargets=_at(cells.nontargets[rows], "j"),
        )

    def colour(self, ends: list[float], scale: draw.Style, **legend: Any) -> alt.Color:
        """Colour by the field ``value`` between ``ends``; a legend where it has options."""
        shown = alt.Legend(gradientLength=min(160, self.height - 20), **legend) if legend else None
        shades = alt.Scale(domain=ends, clamp=True, **scale)
        return alt.Color("value:Q", scale=shades, legend=shown)

    def layered(self, *layers: alt.Chart) -> Layers:
        """The panel with its layers."""
        return alt.layer(*layers).properties(width=self.width, height=self.height)

    def blank(self) -> Layers:
        """An empty panel that keeps others in their columns."""
        nothing = draw.mark(table(words=""), "text", alt.Text("words:N"))
        return self.layered(nothing).properties(view=alt.ViewConfig(stroke=None))

    def hatching(self, axes: Axes) -> list[alt.Chart]:
        """Grey with diagonals where cells are not well-defined: bands at the left and below."""
        left = _begin(self.cells.x, np.any(self.cells.well_defined, axis=0))
        low = _begin(self.cells.y, np.any(self.cells.well_defined, axis=1))
        bands = [(0.0, 0.0, left, 1.0), (left, 0.0, 1.0, low)]
        bands = [(x, y, x2, y2) for x, y, x2, y2 in bands if x < x2 and y < y2]
        if not bands:
            return []
        grey, lines = (
            text_table(**dict(zip(("x", "y", "x2", "y2"), zip(*ends, strict=True), strict=True)))
            for ends in (bands, [line for band in bands for line in self._diagonals(band)])
        )
        return [
            draw.mark(grey, "rect", *axes, X2, Y2, color=GRID, strokeWidth=0),
            draw.mark(lines, "rule", *axes, X2, Y2, color=_HATCH, strokeWidth=0.8),
        ]

    def _diagonals(self, band: tuple[float, float, float, float]) -> list[Any]:
        """Rising diagonals a few pixels apart, cut to the band."""
        size = np.array([self.width, self.height] * 2)
        left, low, right, high = band * size
        lines: list[Any] = []
        for offset in np.arange(low - right, high - left, _HATCH_STEP):
            start, end = max(left, low - offset), min(right, high - offset)
            if start < end:
                lines.append(np.array([start, start + offset, end, end + offset]) / size)
        return lines or [band]


def _at(values: Sequence[float] | Numbers, index: str) -> str:
    """A Vega expression: the entry of a short list."""
    return f"({json.dumps(np.asarray(values).tolist())})[datum.{index}]"


def _begin(shares: Numbers, defined: Numbers) -> float:
    """Where the well-defined cells begin: 1 if there are none."""
    if not defined.any():
        return 1.0
    first = int(defined.argmax())
    return float(shares[first - 1]) if first else 0.0


@dataclass(frozen=True)
class Shades:
    """The range of values that colours tell apart, logarithmic where it spans decades.

    ``zeros`` tells that a logarithmic scale stands beside values of 0.
    """

    low: float
    high: float
    log: bool
    zeros: bool = False

    @classmethod
    def of(cls, values: Numbers) -> Shades:
        """The range of the values shown, rounded outwards to two digits."""
        shown = np.asarray(values)[np.isfinite(values)]
        positive = shown[shown > 0]
        if not positive.size:
            return cls(0.0, 1.0, log=False)
        high = _rounded(float(positive.max()), up=True)
        log = bool(np.log10(positive.max() / positive.min()) > MOST_DECADES)
        low = _rounded(float(positive.min() if log else shown.min()), up=False)
        if low >= high:
            return cls(0.0, high, log=False)
        return cls(low, high, log, zeros=log and bool((shown <= 0).any()))

    @property
    def ticks(self) -> list[float]:
        """A few round numbers within the range."""
        if self.log:
            first, last = np.floor(np.log10(self.low)), np.ceil(np.log10(self.high))
            decades = range(int(first), int(last) + 1)
            marks = [float(f"{m}e{d}") for d in decades for m in (1, 2, 5)]
        else:
            step = _rounded((self.high - self.low) / 5, up=True, to=(1.0, 2.0, 2.5, 5.0, 10.0))
            start = int(np.ceil(self.low / step - 1e-9))
            marks = [float(f"{i * step:.6g}") for i in range(start, start + 8)]
        return [mark for mark in marks if self.low <= mark <= self.high * (1 + 1e-9)]

    def share(self, value: float) -> float:
        """Where a value lies between the ends of the range, 0 to 1."""
        ends = np.array([self.low, self.high, max(value, self.low)])
        low, high, at = np.log(ends) if self.log else ends
        return float(min((at - low) / (high - low), 1.0))


def _rounded(
    value: float, *, up: bool, to: Sequence[float] = tuple(np.arange(10, 101) / 10)
) -> float:
    """The nearest number of a few per decade, above or below."""
    if value <= 0:
        return 0.0
    decade = 10.0 ** np.floor(np.log10(value))
    steps = np.array(to) * decade
    near = steps[steps >= value * (1 - 1e-9)] if up else steps[steps <= value * (1 + 1e-9)]
    return float(f"{near.min() if up else near.max():.6g}")


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
    hatched = not all(cell.well_defined.all() for cell in cells)
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
