"""Voice similarity, protection and the zoo of speakers, and what protection achieves and costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, cycle
from typing import Any

import altair as alt
import numpy as np

from unmask.estimate import Estimate, Interval
from unmask.figures import draw
from unmask.figures.figure import Chart, Figure, Layers, captioned, require, table, text_table
from unmask.figures.image import CELLS
from unmask.figures.theme import (
    CHANCE,
    INK,
    MUTED,
    PAPER,
    SEQUENTIAL,
    is_wide,
    shorten,
    system_colours,
    width,
)
from unmask.privacy import Zoo
from unmask.privacy.legal import PLAIN
from unmask.privacy.similarity import MatrixView, SpeakerProtection

Numbers = Mapping[str, Mapping[str, Estimate]]
_DIGITS = 3
_ROOM = 15  # pixels that the number of a speaker takes


def similarity_matrices(views: Mapping[str, MatrixView]) -> Figure:
    """One panel per safeguard: OO, OP and PP as quadrants, speakers named on hover."""
    require(views, "similarity matrices")
    columns = min(2, draw.panel_columns(len(views)))
    room = (width() - 120 - 40 * columns) / columns if columns > 1 else min(width() - 120, 440)
    panels = [
        matrix_panel(view, room, title=system, key=f"speakers{i}")
        for i, (system, view) in enumerate(views.items())
    ]
    chart = alt.concat(*panels, columns=columns, spacing=26)
    most = max(view.per_bin for view in views.values())
    binned = most if most > 1 else 0
    read = [f"{shorten(n)}: {view.read_by}" for n, view in views.items() if view.read_by]
    return captioned(
        "similarity_matrices", chart, systems=views, binned=binned, read="; ".join(read)
    )


def matrix_panel(view: MatrixView, room: float, *, title: str, key: str) -> Layers:
    """One matrix in cells of whole pixels, at most ``room`` wide."""
    size, part = view.values.shape[0], len(view.labels)
    cell = max(1, int(room // size))
    side = cell * size
    who = f"{key}[datum.{{0}} % {part}] + ' (' + {key}_parts[floor(datum.{{0}} / {part})] + ')'"
    cells = (
        Chart(text_table(similarity=view.values.reshape(-1).round(_DIGITS)))
        .transform_window(number="row_number()")
        .transform_calculate(
            column=f"(datum.number - 1) % {size}", row=f"floor((datum.number - 1) / {size})"
        )
        .transform_calculate(
            left=f"datum.column * {cell}",
            top=f"datum.row * {cell}",
            right=f"(datum.column + 1) * {cell}",
            bottom=f"(datum.row + 1) * {cell}",
            one=who.format("row"),
            other=who.format("column"),
        )
        .add_params(
            alt.param(name=key, value=list(view.labels)),
            alt.param(name=f"{key}_parts", value=list(view.parts)),
        )
    )
    legend = alt.Legend(values=[0, 0.25, 0.5, 0.75, 1], format=".2f", gradientLength=min(160, side))
    number = f"floor(datum.value / {cell}) % {part} * {view.per_bin} + 1"
    numbers: draw.Style = {"values": _numbered(part, len(view.parts), cell), "labelExpr": number}
    numbers |= dict.fromkeys(("grid", "ticks", "domain", "labelFlush", "labelOverlap"), False)
    numbers |= {"labelFontSize": 8.5, "labelPadding": 2}
    places = (
        draw.axis(alt.X, "left", None, (0, side), **numbers),
        alt.X2("right:Q"),
        draw.axis(alt.Y, "top", None, (side, 0), **numbers),
        alt.Y2("bottom:Q"),
    )
    unit = alt.Scale(domain=[0.0, 1.0], scheme=SEQUENTIAL)
    colour = alt.Color("similarity:Q", title="Similarity", scale=unit, legend=legend)
    style = {"style": CELLS, "strokeWidth": 0, "aria": False}
    return alt.layer(
        draw.mark(cells, "rect", *places, colour, draw.tips("similarity_matrices"), **style),
        *(_parts(view, side, numbers) if len(view.parts) > 1 else ()),
        draw.panel_title(title),
    ).properties(width=side, height=side)


def _numbered(speakers: int, parts: int, cell: int) -> list[float]:
    """Where numbers of speakers stand beside cells: the first of each part and round ones."""
    step = next((n for n in (1, 5, 10, 20, 50, 100) if n * cell >= _ROOM), speakers)
    chosen = sorted({0, *range(step - 1, speakers, step)})
    return [cell * (part * speakers + n + 0.5) for part in range(parts) for n in chosen]


def _parts(view: MatrixView, side: int, numbers: draw.Style) -> list[alt.Chart]:
    """Lines between the parts, and their names beyond the numbers of speakers."""
    number = len(view.parts)
    edge = side / number
    names = table(name=list(view.parts), place=[edge * (i + 0.5) for i in range(number)])
    cuts = table(place=[edge * (i + 1) for i in range(number - 1)])
    line: draw.Style = {"color": PAPER, "strokeWidth": 2}
    text: draw.Style = {"fontSize": 11, "color": MUTED}
    x = draw.axis(alt.X, "place", None, (0, side), **numbers)
    y, label = draw.axis(alt.Y, "place", None, (side, 0), **numbers), alt.Text("name:N")
    return [
        draw.mark(cuts, "rule", x, **line),
        draw.mark(cuts, "rule", y, **line),
        draw.mark(names, "text", x, draw.YPixel("height"), label, baseline="top", dy=18, **text),
        draw.mark(names, "text", y, draw.XPixel(-20), label, baseline="bottom", angle=270, **text),
    ]


_MOST_NAMES = 80


def speaker_protection(
    protections: Mapping[str, SpeakerProtection], *, colours: draw.Colours = None
) -> Figure:
    """Bars of DeID per speaker, the least protected first; a rule marks DeID of all."""
    require(protections, "speaker protection")
    shades = draw.colours_for(list(protections), colours)
    shown = np.concatenate([(p.deid, p.low, p.high) for p in protections.values()], axis=1)
    shown = 100 * shown[np.isfinite(shown)]
    ends = [min(0.0, float(shown.min())), max(100.0, float(shown.max()))]
    y = alt.Y("deid:Q", title="DeID (%)", scale=alt.Scale(domain=ends, nice=True))
    size = {"width": int(width() - 80), "height": 150 if len(protections) > 1 else 210}
    panels = [_bars(n, one, y, shades[n]).properties(**size) for n, one in protections.items()]
    chart = alt.vconcat(*panels, spacing=22)
    other = any(protection.attacker != PLAIN for protection in protections.values())
    return captioned("speaker_protection", chart, systems=protections, other=other)


def _bars(system: str, protection: SpeakerProtection, y: alt.Y, colour: str) -> Layers:
    order = np.argsort(protection.deid, kind="stable")
    rows = table(
        place=range(1, len(order) + 1),
        speaker=[protection.speakers[i] for i in order],
        deid=100 * protection.deid[order],
        similarity=protection.self_similarity["op"][order],
        l_w=protection.l_w[order],
        low=100 * protection.low[order],
        high=100 * protection.high[order],
    )
    few = len(order) <= _MOST_NAMES
    x = alt.X(
        "speaker:N" if few else "place:O",
        sort=None,
        title="Speaker, least protected first",
        axis=alt.Axis(labelAngle=-90, labelFontSize=8) if few else alt.Axis(labels=False),
    )
    known = Chart(rows).transform_filter("isValid(datum.low) && isFinite(datum.low)")
    spans = (alt.Y("low:Q"), alt.Y2("high:Q"))
    plain = "" if protection.attacker == PLAIN else f" ({protection.attacker} score)"
    return alt.layer(
        draw.mark(rows, "bar", x, y, draw.tips("speaker_protection"), color=colour),
        draw.mark(known, "rule", x, *spans, color=CHANCE, strokeWidth=1),
        draw.dashed(table(at=100 * float(protection.deid.mean())), alt.Y("at:Q")),
        draw.panel_title(system, plain),
    )


_COLOURS = {
    "doves": "#009E73",
    "chameleons": "#E69F00",
    "phantoms": "#56B4E9",
    "worms": "#D55E00",
    "none of them": "#6b7280",
}
_RARE = 0.05


def zoo_plots(
    zoos: Mapping[str, Zoo], *, matrices: Mapping[str, MatrixView] | None = None
) -> Figure:
    """One row per set: the similarity matrix where given, and the plot of all speakers.

    The title tells which kinds of speakers are more frequent than by chance.
    """
    require(zoos, "zoo plot")
    views = matrices or {}
    side = (250 if views else 300) if is_wide() else 220
    panels = []
    for i, (system, zoo) in enumerate(zoos.items()):
        if system in views:
            panels.append(matrix_panel(views[system], side, title=system, key=f"zoo{i}"))
        labels = views[system].labels if system in views else zoo.speakers
        panels.append(_plot(system, zoo, labels).properties(width=side, height=side))
    chart = alt.concat(*panels, columns=2 if is_wide() else 1, spacing=30)
    corners = {
        system: ", ".join(
            f"{corner.count} {kind.removesuffix('s') if corner.count == 1 else kind}"
            f" (by chance {corner.expected:.1f}, p = {corner.p_value:.2g})"
            for kind, corner in zoo.corners.items()
        )
        for system, zoo in zoos.items()
    }
    return captioned(
        "zoo",
        chart.resolve_scale(color="independent"),
        systems=zoos,
        beside=bool(views),
        corners="; ".join(f"{system}: {counts}" for system, counts in corners.items()),
        frequent="; ".join(f"{system}: {_frequent(zoo)}" for system, zoo in zoos.items()),
    )


def _frequent(zoo: Zoo) -> str:
    """Kinds of speakers that are more frequent than by chance, at five per cent."""
    more = [
        f"{corner.count} {kind} where {corner.expected:.0f} are expected"
        for kind, corner in zoo.corners.items()
        if corner.p_value < _RARE
    ]
    return ", ".join(more) or "no kind of speaker is more frequent than by chance"


def _plot(system: str, zoo: Zoo, labels: Sequence[str]) -> Layers:
    """All speakers of a set; those in corners with their number among the ``labels``."""
    kinds = zoo.corner_of()
    corner = [kind or "none of them" for kind in kinds]
    numbers = {name: number for number, name in enumerate(labels, start=1)}
    rows = table(
        speaker=list(zoo.speakers),
        target=zoo.target,
        impostor=zoo.impostor,
        corner=corner,
        number=[
            str(numbers.get(name, "")) if kind else ""
            for name, kind in zip(zoo.speakers, kinds, strict=True)
        ],
    )
    scale = alt.Scale(zero=False, padding=12)
    x = alt.X("target:Q", title=f"Mean target {zoo.score}", scale=scale)
    y = alt.Y("impostor:Q", title=f"Mean impostor {zoo.score}", scale=scale)
    seen = {kind: colour for kind, colour in _COLOURS.items() if kind in corner}
    shades = alt.Scale(domain=list(seen), range=list(seen.values()))
    colour = alt.Color("corner:N", title="Corner", scale=shades)
    thin: draw.Style = {"color": MUTED, "strokeWidth": 0.8}
    return alt.layer(
        draw.dashed(table(at=list(zoo.quartiles["target"])), alt.X("at:Q"), **thin),
        draw.dashed(table(at=list(zoo.quartiles["impostor"])), alt.Y("at:Q"), **thin),
        draw.dots(rows, x, y, colour, draw.tips("zoo"), size=46, opacity=0.9),
        draw.mark(rows, "text", x, y, alt.Text("number:N"), align="left", dx=6, fontSize=9),
        draw.panel_title(system),
    )


Ends = tuple[float, float]
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
_NAME = 5.5  # the height of a name in points of the risk
_LETTER = 7.0  # the width of a letter of it in pixels


@dataclass(frozen=True)
class Point:
    """One safeguard on one set of speech: DeID as a fraction, G_VD in dB.

    ``strongest`` is DeID against an attacker who does better than the plain score (negated or
    centred), where there is one, with its interval.
    """

    system: str
    dataset: str
    deid: float
    g_vd: float
    deid_interval: Interval | None = None
    g_vd_interval: Interval | None = None
    strongest: float | None = None
    strongest_interval: Interval | None = None


def distinctiveness(points: Sequence[Point], *, colours: draw.Colours = None) -> Figure:
    """G_VD against DeID of many safeguards and sets, with the intervals of both as bars."""
    drawn = [p for p in points if math.isfinite(p.g_vd)]
    require(drawn, "scatter", "safeguard with a finite G_VD")
    systems = list(dict.fromkeys(p.system for p in drawn))
    datasets = list(dict.fromkeys(p.dataset for p in drawn))
    deid = _spans("deid", ((p.deid, p.deid_interval) for p in drawn), scale=100)
    g_vd = _spans("g_vd", ((p.g_vd, p.g_vd_interval) for p in drawn))
    hollow = ((p.strongest, p.strongest_interval) for p in drawn)
    strongest = _spans("strongest", hollow, scale=100)
    rows = table(
        system=[p.system for p in drawn],
        dataset=[p.dataset for p in drawn],
        **deid,
        **g_vd,
        **strongest,
    )
    beaten = [low for low in strongest["strongest_low"] if low is not None]
    lowest = min(0.0, *beaten, *deid["deid_low"])
    floor, top = min(-1.0, *g_vd["g_vd_low"]), max(1.0, *g_vd["g_vd_high"])
    along = (math.floor(lowest / 10) * 10 - 4, 104)
    x = draw.axis(alt.X, "deid", "DeID (%), more de-identified →", along)
    up = (math.floor(floor * 1.1), math.ceil(top * 1.1))
    y = draw.axis(alt.Y, "g_vd", "G_VD (dB), more distinct →", up)
    colour = draw.system_colour(systems, colours)
    several = alt.Legend(title="Set") if len(datasets) > 1 else None
    shape = draw.by(
        alt.Shape, "dataset", dict(zip(datasets, cycle(_SHAPES), strict=False)), legend=several
    )
    attacked = Chart(rows).transform_filter("datum.strongest !== null")
    at = alt.X("strongest:Q")
    span = (alt.X("strongest_low:Q"), alt.X2("strongest_high:Q"))
    ideal = table(deid=100.0, g_vd=0.0, text="ideal")
    chart = draw.in_panel(
        draw.dashed(table(at=0.0), alt.Y("at:Q")),
        draw.mark(ideal, "text", x, y, alt.Text("text:N"), align="right", dx=-4, dy=10),
        *draw.crosses(rows, x, y, colour),
        draw.mark(attacked, "rule", at, alt.X2("deid:Q"), y, colour, strokeDash=[2, 3]),
        draw.mark(attacked, "rule", *span, y, colour, strokeWidth=1.2),
        draw.dots(attacked, at, y, colour, size=70, filled=False),
        draw.dots(rows, x, y, colour, shape, draw.tips("g_vd_deid"), size=70),
        ratio=0.8,
    ).resolve_scale(shape="independent")
    lost = [shorten(p.system) for p in points if not math.isfinite(p.g_vd)]
    return captioned("g_vd_deid", chart, systems=systems, beaten=bool(beaten), lost=lost)


def _spans(
    field: str, values: Iterable[tuple[float | None, Interval | Ends | None]], *, scale: float = 1.0
) -> dict[str, list[Any]]:
    """Columns of values and the ends of their intervals: the value itself where there is none."""
    columns: dict[str, list[Any]] = {field: [], f"{field}_low": [], f"{field}_high": []}
    for value, made in values:
        low, high = (made.low, made.high) if isinstance(made, Interval) else made or (None, None)
        if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
            low = high = value
        for column, part in zip(columns.values(), (value, low, high), strict=True):
            column.append(None if part is None else scale * part)
    return columns


@dataclass(frozen=True)
class PlanePoint:
    """One safeguard, or an anchor: ``risk`` of its strongest attacker as a fraction, ``cost`` in
    units of the axis, each with its interval or the ends of it, where it has one.

    ``attack`` says whose risk it is. An ``anchor`` is no safeguard: unprotected speech, silence.
    """

    system: str
    risk: float
    cost: float
    risk_ends: Interval | Ends | None = None
    cost_ends: Interval | Ends | None = None
    attack: str = ""
    anchor: bool = False


def pareto(points: Sequence[PlanePoint], *, more_is_better: bool = False) -> tuple[bool, ...]:
    """Which points no other beats: none with at most the risk and at most the cost, one of them
    less. Where ``more_is_better`` the cost is a quality, of which more is better.
    """
    sign = -1.0 if more_is_better else 1.0
    at = [(point.risk, sign * point.cost) for point in points]
    return tuple(not any(a <= x and b <= y and (a < x or b < y) for a, b in at) for x, y in at)


def cost_plane(
    points: Sequence[PlanePoint],
    *,
    cost: str = "Word error rate (%)",
    scale: float = 100.0,
    more_is_better: bool = False,
    chance: float | None = None,
    missing: Sequence[str] = (),
    colours: draw.Colours = None,
) -> Figure:
    """One point per safeguard with both intervals, anchors, and the front nobody beats.

    ``cost`` is the title of the axis along, its values times ``scale``; ``chance`` a dashed line of
    the risk by guessing, ``missing`` safeguards of which the cost is not known.
    """
    require(points, "plane", "safeguard")
    front = pareto(points, more_is_better=more_is_better)
    systems = [point.system for point in points]
    risks = _spans("risk", [(point.risk, point.risk_ends) for point in points], scale=100)
    costs = _spans("cost", [(point.cost, point.cost_ends) for point in points], scale=scale)
    rows = table(
        system=systems,
        shown=[shorten(name) for name in systems],
        kind=["anchor" if point.anchor else "safeguard" for point in points],
        attack=[point.attack for point in points],
        **risks,
        **costs,
        name_at=_names_at(points, scale),
        front=["on the front" if one else "beaten by another" for one in front],
    )
    better = "→ more useful" if more_is_better else "← more useful"
    nice = alt.Scale(nice=True, zero=not more_is_better)
    x = alt.X("cost:Q", title=f"{cost}, {better}", scale=nice)
    y = draw.axis(alt.Y, "risk", "Linkability, strongest attacker (%), ↓ safer", (0, 104))
    colour = draw.system_colour(systems, colours).legend(None)
    shape = draw.by(alt.Shape, "kind", {"safeguard": "circle", "anchor": "diamond"})
    pairs = list(zip(costs["cost"], risks["risk"], front, strict=True))
    steps = sorted((along, up) for along, up, pair in pairs if pair)
    edge = table(order=range(len(steps)), cost=[s[0] for s in steps], risk=[s[1] for s in steps])
    stair: draw.Style = {"strokeWidth": 1, "interpolate": "step-after", "strokeDash": [2, 2]}
    named = (x, alt.Y("name_at:Q"), colour, alt.Text("shown:N"))
    layers = [
        draw.mark(edge, "line", x, y, alt.Order("order:Q"), color=MUTED, **stair),
        *draw.crosses(rows, x, y, colour),
        draw.dots(rows, x, y, colour, shape, draw.tips("plane"), size=80),
        draw.mark(rows, "rule", x, y, alt.Y2("name_at:Q"), color=MUTED, strokeWidth=0.7),
        draw.mark(rows, "text", *named, align="left", dx=4, fontWeight="bold"),
    ]
    if chance is not None:
        layers.insert(0, draw.dashed(table(at=100 * chance), alt.Y("at:Q")))
    each = "; ".join(
        f"{p.system}: risk {100 * p.risk:.0f} %, cost {scale * p.cost:.3g}" for p in points
    )
    return captioned(
        "plane",
        draw.in_panel(*layers, ratio=0.7),
        each=each,
        useful="right" if more_is_better else "left",
        chance=chance is not None,
        missing=missing,
        beaten=[shorten(s) for s, one in zip(systems, front, strict=True) if not one],
    )


def _names_at(points: Sequence[PlanePoint], scale: float) -> list[float]:
    """The height of each point's name: as near as names and rules to the right leave room."""
    letter = _LETTER * max(abs(scale * point.cost) for point in points) / draw.main_panel()
    heights: dict[int, float] = {}
    for n in sorted(range(len(points)), key=lambda n: -points[n].cost):
        point = points[n]
        end = scale * point.cost + letter * len(shorten(point.system))
        taken = [
            sorted((100 * points[m].risk, at))
            for m, at in heights.items()
            if scale * points[m].cost < end
        ]
        step = _NAME if point.risk < 0.5 else -_NAME
        free = (100 * point.risk + step * line for line in count(1))
        heights[n] = next(
            at for at in free if all(not low - _NAME < at < high + _NAME for low, high in taken)
        )
    return [heights[n] for n in range(len(points))]


def level_trade(risks: Numbers, kept: Numbers) -> Figure:
    """How often voices of each level of a pseudonym are linked, by where, and a panel for each
    number that is ``kept``, by the title of its axis.
    """
    require(risks, "levels", "level")
    places = list(dict.fromkeys(what for own in risks.values() for what in own))
    chance: draw.Style = {"color": CHANCE, "thickness": 1.5, "size": 10, "orient": "vertical"}
    band = alt.Scale(type="band", paddingInner=0.2, paddingOuter=0.1)
    colour = draw.by(alt.Color, "what", system_colours(places), legend=draw.legend("Linked"))
    x = draw.axis(alt.X, "value", "Linked, strongest attack (%), ← safer", (0, 100))
    at = alt.X("value_low:Q"), alt.X2("value_high:Q")
    y = alt.Y("level:N", sort=list(risks), title=None, scale=band)
    more = (y, alt.YOffset("what:N", sort=places), draw.tips("levels"))
    points, tall, wide = _of_levels(risks), 74 * len(risks), is_wide()
    marks = (
        draw.mark(points, "rule", *at, colour, *more, strokeWidth=2),
        draw.mark(points, "tick", alt.X("chance:Q"), *more, **chance),
        draw.dots(points, x, colour, *more, size=55),
    )
    panels = [alt.layer(*marks).properties(width=232 if wide else 210, height=tall)]
    y = y.axis(labels=not wide, ticks=not wide)
    for title in dict.fromkeys(title for own in kept.values() for title in own):
        points = _of_levels({n: {title: o[title]} for n, o in kept.items() if title in o})
        marks = (
            draw.mark(table(at=0.0), "rule", alt.X("at:Q"), color=MUTED, strokeWidth=0.8),
            draw.mark(points, "rule", *at, y, draw.tips("levels"), color=INK, strokeWidth=2),
            draw.dots(points, alt.X("value:Q", title=title), y, draw.tips("levels"), color=INK),
        )
        size = {"width": 122, "height": tall} if wide else {"width": 210, "height": tall // 2}
        panels.append(alt.layer(*marks).properties(**size))
    chart = alt.hconcat(*panels) if wide else alt.vconcat(*panels)
    return captioned("levels", chart, levels=list(risks))


def _of_levels(numbers: Numbers) -> alt.InlineData:
    """Level, what it is of, value, interval and chance of each; shares in percent."""
    rows = [(level, what, one) for level, own in numbers.items() for what, one in own.items()]
    every = [_spans("value", [(float(e.value), e.interval)], scale=_scale(e)) for *_, e in rows]
    columns = {name: [one[name][0] for one in every] for name in every[0]}
    chances = [_scale(estimate) * float(estimate.chance or 0) for *_, estimate in rows]
    levels, whats, _ = zip(*rows, strict=True)
    return table(level=levels, what=whats, chance=chances, **columns)


def _scale(one: Estimate) -> float:
    return 100.0 if one.unit == "%" else 1.0
