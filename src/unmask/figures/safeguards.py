"""What protection achieves and what it costs: risk or de-identification against utility."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Unpack

import altair as alt

from unmask.estimate import Interval
from unmask.figures import draw
from unmask.figures.figure import Called, Figure, captioned, require, table
from unmask.figures.theme import MUTED, WIDE, shorten

Ends = tuple[float, float]
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
_NAME = 5.5  # the height of a name in points of the risk


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


def distinctiveness(
    points: Sequence[Point],
    *,
    colours: Mapping[str, str] | None = None,
    width: float = WIDE,
    **called: Unpack[Called],
) -> Figure:
    """G_VD against DeID of many safeguards and sets, with the intervals of both as bars."""
    drawn = [p for p in points if math.isfinite(p.g_vd)]
    require(drawn, "scatter", "safeguard with a finite G_VD")
    systems = list(dict.fromkeys(p.system for p in drawn))
    datasets = list(dict.fromkeys(p.dataset for p in drawn))
    deid = _spans("deid", [(p.deid, _ends(p.deid_interval)) for p in drawn], scale=100)
    g_vd = _spans("g_vd", [(p.g_vd, _ends(p.g_vd_interval)) for p in drawn])
    hollow = [(p.strongest, _ends(p.strongest_interval)) for p in drawn]
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
    colour = draw.system_colour(systems, colours, width=width)
    several = alt.Legend(title="Set") if len(datasets) > 1 else None
    shape = draw.by(
        alt.Shape, "dataset", dict(zip(datasets, cycle(_SHAPES), strict=False)), legend=several
    )
    hover = "system:N|System; dataset:N|Set; deid:Q|DeID (%)|.2f; g_vd:Q|G_VD (dB)|.2f"
    attacked = alt.Chart(rows).transform_filter("datum.strongest !== null")
    at = alt.X("strongest:Q")
    span = (alt.X("strongest_low:Q"), alt.X2("strongest_high:Q"))
    ideal = table(deid=100.0, g_vd=0.0, text="ideal")
    chart = draw.in_panel(
        draw.dashed(table(at=0.0), alt.Y("at:Q")),
        draw.mark(ideal, "text", x, y, alt.Text("text:N"), align="right", dx=-4, dy=-9),
        *draw.crosses(rows, x, y, colour),
        draw.mark(attacked, "rule", at, alt.X2("deid:Q"), y, colour, strokeDash=[2, 3]),
        draw.mark(attacked, "rule", *span, y, colour, strokeWidth=1.2),
        draw.mark(attacked, "point", at, y, colour, size=70, filled=False, opacity=1),
        draw.mark(rows, "point", x, y, colour, shape, hover=hover, size=70, filled=True, opacity=1),
        width=width,
        ratio=0.8,
    ).resolve_scale(shape="independent")
    lost = [shorten(p.system) for p in points if not math.isfinite(p.g_vd)]
    return captioned("g_vd_deid", chart, called, systems=systems, beaten=bool(beaten), lost=lost)


def _ends(interval: Interval | None) -> Ends | None:
    if interval is None or not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return None
    return interval.low, interval.high


def _spans(
    field: str, values: Sequence[tuple[float | None, Ends | None]], *, scale: float = 1.0
) -> dict[str, list[Any]]:
    """Columns of values and the ends of their intervals: the value itself where there is none."""
    columns: dict[str, list[Any]] = {field: [], f"{field}_low": [], f"{field}_high": []}
    for value, ends in values:
        parts = (value, *(ends or (value, value)))
        for column, part in zip(columns.values(), parts, strict=True):
            column.append(None if value is None or part is None else scale * part)
    return columns


@dataclass(frozen=True)
class PlanePoint:
    """One safeguard, or an anchor: ``risk`` of its strongest attacker as a fraction, ``cost`` in
    units of the axis, each with the ends of its interval where it has one.

    ``attack`` says whose risk it is. An ``anchor`` is no safeguard: unprotected speech, silence.
    """

    system: str
    risk: float
    cost: float
    risk_ends: Ends | None = None
    cost_ends: Ends | None = None
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
    colours: Mapping[str, str] | None = None,
    width: float = WIDE,
) -> Figure:
    """One point per safeguard with both intervals, anchors, and the front nobody beats.

    ``cost`` is the title of the axis along, its values times ``scale``; ``chance`` a dashed line of
    the risk by guessing.
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
    colour = draw.system_colour(systems, colours, width=width).legend(None)
    shape = draw.by(alt.Shape, "kind", {"safeguard": "circle", "anchor": "diamond"})
    pairs = list(zip(costs["cost"], risks["risk"], front, strict=True))
    steps = sorted((along, up) for along, up, one in pairs if one)
    edge = table(order=range(len(steps)), cost=[s[0] for s in steps], risk=[s[1] for s in steps])
    stair: draw.Style = {"strokeWidth": 1, "interpolate": "step-after", "strokeDash": [2, 2]}
    named = (x, alt.Y("name_at:Q"), colour, alt.Text("shown:N"))
    hover = (
        "system:N|Safeguard; attack:N|Attack; risk:Q|Risk, %|.1f; cost:Q|Cost|.2f; front:N|Front"
    )
    layers = [
        draw.mark(edge, "line", x, y, alt.Order("order:Q"), color=MUTED, **stair),
        *draw.crosses(rows, x, y, colour),
        draw.mark(rows, "point", x, y, colour, shape, hover=hover, size=80, filled=True, opacity=1),
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
        draw.in_panel(*layers, width=width, ratio=0.7),
        each=each,
        useful="right" if more_is_better else "left",
        chance=chance is not None,
        beaten=[shorten(s) for s, one in zip(systems, front, strict=True) if not one],
    )


def _names_at(points: Sequence[PlanePoint], scale: float) -> list[float]:
    """The height of each point's name: as near as names of close points leave room, those of
    points further to the left lower, so that no rule crosses a name.
    """
    widest = max(abs(scale * point.cost) for point in points) or 1.0
    heights: dict[int, float] = {}
    for n in sorted(range(len(points)), key=lambda n: -points[n].cost):
        point = points[n]
        close = [
            at
            for m, at in heights.items()
            if abs(point.cost - points[m].cost) * scale < 0.2 * widest
        ]
        step = _NAME if point.risk < 0.5 else -_NAME
        free = (100 * point.risk + step * line for line in range(1, 2 * len(points) + 1))
        heights[n] = next(at for at in free if all(abs(at - one) >= _NAME for one in close))
    return [heights[n] for n in range(len(points))]
