"""Misses against false alarms: the detection error trade-off, and the ROC with its convex hull."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np
from scipy.special import ndtr, ndtri

from unmask.engine import Array, DetCurve
from unmask.figures.encode import (
    colours_for,
    dashed,
    in_panel,
    is_wide,
    kinds,
    labels_at,
    line_kind,
    main_panel,
    percent,
    system_colour,
    tips,
)
from unmask.figures.figure import Figure, join, require_systems, table
from unmask.figures.theme import DASHED, SOLID, WIDE, shorten

TICKS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
LOWEST, HIGHEST = 0.0005, 0.6

_POLYGON, _HULL = "measured (ROC polygon)", "convex hull"
_EER, _DCF = "equal error rate (hull)", "minimum DCF"
_STEPS = 80
_RATES = tips("system:N|System; p_fa:Q|False alarms|.3%; p_miss:Q|Misses|.3%")


def det(
    curves: Mapping[str, DetCurve],
    *,
    colours: Mapping[str, str] | None = None,
    hull: bool = True,
    width: float = WIDE,
    name: str = "det",
    title: str = "Detection error trade-off: misses against false alarms",
) -> Figure:
    """DET curves of all systems: polygon solid, hull dashed, EER and minimum DCF marked."""
    require_systems(curves, chart="DET")
    names = list(curves)
    shades = dict(zip(names, colours_for(names, colours), strict=True))
    colour = kinds("system", shades, legend=None)
    # The caption tells dashes and marks; lines have their names beside them.
    dash = line_kind({_POLYGON: SOLID, _HULL: DASHED} if hull else {_POLYGON: SOLID}, width=0)
    x, y = (
        _axis("x", "False alarms, Pfa (%)", width=width),
        _axis("y", "Misses, Pmiss (%)", width=width),
    )

    grid: Array = ndtr(np.linspace(ndtri(LOWEST), ndtri(HIGHEST), _STEPS))
    grid[[0, -1]] = LOWEST, HIGHEST
    every = curves.items()
    polygons = join(_line(n, c.p_fa, c.p_miss, _POLYGON, grid, grid, HIGHEST) for n, c in every)
    layers = [_diagonal(x, y), _drawn(polygons, x, y, colour, dash, stroke=1.9)]
    if hull:
        hulls = join(
            _line(n, c.hull_p_fa, c.hull_p_miss, _HULL, grid, grid, HIGHEST) for n, c in every
        )
        layers.append(_drawn(hulls, x, y, colour, dash, stroke=1.0))
    layers.append(_marks(curves, x, y, colour))
    at = {n: float(ndtri(np.clip(c.eer, LOWEST, HIGHEST))) for n, c in every}
    layers += labels_at(
        {n: (place, place) for n, place in at.items()},
        {n: f"{shorten(n, limit=22)} (EER {percent(c.eer)})" for n, c in every},
        shades,
        x,
        y,
        ends=(float(ndtri(LOWEST)), float(ndtri(HIGHEST))),
        height=main_panel(width),
    )
    chart = in_panel(
        alt.layer(*layers),
        width=width,
        ratio=1,
        description="DET plot: "
        + "; ".join(f"{n}, EER {percent(c.eer)}" for n, c in curves.items()),
    )
    return Figure(name, title, _caption(curves, hull=hull), chart)


def _axis(channel: str, title: str, *, width: float) -> alt.X | alt.Y:
    encoding = alt.X if channel == "x" else alt.Y
    at = ndtri(TICKS).round(6).tolist()
    return encoding(
        f"{channel}:Q",
        title=title,
        scale=alt.Scale(domain=ndtri([LOWEST, HIGHEST]).tolist(), nice=False, zero=False),
        axis=alt.Axis(
            values=at,
            labelExpr="format(100 * cumulativeNormal(datum.value, 0, 1), '.1~r')",
            labelOverlap=False,
            labelFontSize=11 if is_wide(width) else 9,
        ),
    )


def _line(
    name: str,
    p_fa: Array,
    p_miss: Array,
    line: str,
    at_fa: Array,
    at_miss: Array,
    highest: float = 1.0,
) -> alt.InlineData:
    """A polygon of error rates, followed at the grids; what lies beyond ``highest`` is left out."""
    fa, miss = trace(p_fa, p_miss, at_fa=at_fa, at_miss=at_miss)
    seen = (fa <= highest) & (miss <= highest)
    if seen.any():
        fa, miss = fa[seen], miss[seen]
    return table(system=name, line=line, step=range(len(fa)), p_fa=fa, p_miss=miss)


def _on_axes(chart: alt.Chart) -> alt.Chart:
    edge = f"{LOWEST}, {HIGHEST}"
    return chart.transform_calculate(
        x=f"quantileNormal(clamp(datum.p_fa, {edge}), 0, 1)",
        y=f"quantileNormal(clamp(datum.p_miss, {edge}), 0, 1)",
    )


def _drawn(
    data: alt.InlineData,
    x: alt.X | alt.Y,
    y: alt.X | alt.Y,
    colour: alt.Color,
    dash: alt.StrokeDash,
    *,
    stroke: float,
) -> alt.Chart:
    return _on_axes(alt.Chart(data).mark_line(clip=True, strokeWidth=stroke)).encode(
        x, y, colour, dash, order="step:Q", tooltip=[*_RATES, *tips("line:N|Line")]
    )


def _diagonal(x: alt.X | alt.Y, y: alt.X | alt.Y) -> alt.Chart:
    ends = np.array([LOWEST, HIGHEST])
    line = alt.Chart(table(p_fa=ends, p_miss=ends)).mark_line(
        clip=True, color="#9ca3af", strokeWidth=0.8
    )
    return _on_axes(line).encode(x, y)


def _marks(
    curves: Mapping[str, DetCurve],
    x: alt.X | alt.Y,
    y: alt.X | alt.Y,
    colour: alt.Color,
) -> alt.Chart:
    items = list(curves.items())
    eer = [c.eer for _, c in items]
    points = join(
        [
            table(system=[n for n, _ in items], point=_EER, p_fa=eer, p_miss=eer),
            table(
                system=[n for n, _ in items],
                point=_DCF,
                p_fa=[c.min_dcf_p_fa for _, c in items],
                p_miss=[c.min_dcf_p_miss for _, c in items],
                p_target=[c.p_target for _, c in items],
            ),
        ]
    )
    shape = alt.Shape(
        "point:N",
        scale=alt.Scale(domain=[_EER, _DCF], range=["circle", "diamond"]),
        legend=None,
    )
    return _on_axes(
        alt.Chart(points).mark_point(filled=True, size=64, opacity=1, stroke="white", strokeWidth=1)
    ).encode(
        x,
        y,
        colour,
        shape,
        tooltip=[*_RATES, *tips("point:N|Point; p_target:Q|Prior of a target|~g")],
    )


def _caption(curves: Mapping[str, DetCurve], *, hull: bool) -> str:
    priors = sorted({curve.p_target for curve in curves.values()})
    parts = [
        "Closer to the lower left corner the recogniser errs less; closer to the upper right the "
        "voices are better protected.",
        "The thin line marks equal rates; circles are equal error rates on the convex hull, "
        f"diamonds the minimum DCF at a target prior of {', '.join(f'{p:g}' for p in priors)}.",
    ]
    if hull:
        parts.append("Solid: the measured ROC polygon; dashed: its convex hull.")
    parts.append(
        f"Points beyond the panel ({100 * LOWEST:g} to {100 * HIGHEST:g} %) lie on its edge."
    )
    perfect = [shorten(n) for n, c in curves.items() if c.eer == 0]
    if perfect:
        parts.append(
            f"No errors at the best threshold (EER 0), drawn in the corner: {', '.join(perfect)}."
        )
    outside = [shorten(n) for n, c in curves.items() if c.eer > HIGHEST]
    if outside:
        parts.append(f"EER above {percent(HIGHEST)}, drawn on the edge: {', '.join(outside)}.")
    return " ".join(parts)


def trace(p_fa: Array, p_miss: Array, *, at_fa: Array, at_miss: Array) -> tuple[Array, Array]:
    """The vertices, and the points of the edges where Pfa or Pmiss takes the values asked for.

    Pfa rises while Pmiss falls along the curve, so sorting keeps the path.
    """
    order = np.lexsort((-p_miss, p_fa))
    fa, miss = p_fa[order], p_miss[order]
    inside_fa = at_fa[(at_fa >= fa[0]) & (at_fa <= fa[-1])]
    inside_miss = at_miss[(at_miss >= miss[-1]) & (at_miss <= miss[0])]
    all_fa = np.concatenate([fa, inside_fa, np.interp(inside_miss, miss[::-1], fa[::-1])])
    all_miss = np.concatenate([miss, np.interp(inside_fa, fa, miss), inside_miss])
    order = np.lexsort((-all_miss, all_fa))
    return all_fa[order], all_miss[order]


_LOWEST_ALLOWED = 1e-6


def roc_hull(
    curves: Mapping[str, DetCurve],
    *,
    colours: Mapping[str, str] | None = None,
    log_p_fa: bool = False,
    width: float = WIDE,
    name: str = "roc_hull",
    title: str = "ROC curves and their convex hulls",
) -> Figure:
    """Hits (1 − Pmiss) over false alarms; ``log_p_fa`` spreads out the rare false alarms."""
    require_systems(curves, chart="ROC")
    lowest = _lowest(curves) if log_p_fa else 0.0
    x = alt.X(
        "x:Q",
        title="False alarms, Pfa" + (" (log scale)" if log_p_fa else ""),
        scale=alt.Scale(
            type="log" if log_p_fa else "linear", domain=[lowest, 1], nice=False, zero=False
        ),
        axis=alt.Axis(format="~%", values=_hull_ticks(lowest)),
    )
    y = alt.Y("hit:Q", title="Hits, 1 − Pmiss", scale=alt.Scale(domain=[0, 1])).axis(
        format="~%", tickCount=5
    )
    grid = np.geomspace(lowest, 1.0, 80) if lowest > 0 else np.array([0.0, 1.0])
    every, none = curves.items(), np.empty(0)
    polygons = join(_line(n, c.p_fa, c.p_miss, _POLYGON, grid, none) for n, c in every)
    hulls = join(_line(n, c.hull_p_fa, c.hull_p_miss, _HULL, grid, none) for n, c in every)
    lines = [
        alt.Chart(rows)
        .mark_line(clip=True, strokeWidth=stroke)
        .transform_calculate(hit="1 - datum.p_miss", x=f"max(datum.p_fa, {lowest!r})")
        .encode(
            x,
            y,
            system_colour(list(curves), colours, width=width),
            line_kind({_POLYGON: SOLID, _HULL: DASHED}, width=width),
            order="step:Q",
            tooltip=tips("system:N|System; p_fa:Q|False alarms|.3%; hit:Q|Hits|.3%; line:N|Line"),
        )
        for rows, stroke in ((polygons, 1.9), (hulls, 1.0))
    ]
    chance = dashed(table(x=grid, hit=grid), mark="line", strokeWidth=1).encode(x, y)
    chart = in_panel(
        alt.layer(chance, *lines),
        width=width,
        ratio=1,
        description="ROC curves with convex hulls of "
        + "; ".join(f"{n}, EER {percent(c.eer)}" for n, c in curves.items()),
    )
    caption = (
        "Closer to the upper left corner the recogniser errs less; on the dashed black line it "
        "guesses. Solid: the measured curve; dashed in colour: its convex hull, what an ideal "
        "choice of thresholds can reach. Where the curve sags far below its hull, scores do not "
        "rank voices by their likelihood ratio."
    )
    if log_p_fa:
        caption += f" False alarm rates below {100 * lowest:.2g} % are drawn on the left edge."
    return Figure(name, title, caption, chart)


def _lowest(curves: Mapping[str, DetCurve]) -> float:
    positive = [curve.p_fa[curve.p_fa > 0].min(initial=1.0) for curve in curves.values()]
    decade = 10.0 ** np.floor(np.log10(max(min(positive), _LOWEST_ALLOWED)))
    return float(min(decade, 0.1))


def _hull_ticks(lowest: float) -> list[float]:
    if lowest == 0:
        return [0, 0.2, 0.4, 0.6, 0.8, 1]
    return [float(f"1e{power}") for power in range(round(np.log10(lowest)), 1)]
