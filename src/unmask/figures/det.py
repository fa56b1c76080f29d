"""Detection error trade-off: misses against false alarms on normal deviate axes."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np
from scipy.special import ndtr, ndtri

from unmask.engine import Array, DetCurve
from unmask.figures.data import join, require_systems, table
from unmask.figures.encode import is_wide, legend, line_kind, main_panel, percent, system_colour
from unmask.figures.figure import Figure
from unmask.figures.theme import DASHED, INK, SOLID, WIDE, shorten
from unmask.figures.trace import trace

TICKS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
LOWEST, HIGHEST = 0.0005, 0.6

_POLYGON, _HULL = "measured (ROC polygon)", "convex hull"
_EER, _DCF = "equal error rate (hull)", "minimum DCF"
_STEPS = 80
_RATES = [
    alt.Tooltip("system:N", title="System"),
    alt.Tooltip("p_fa:Q", title="False alarms", format=".3%"),
    alt.Tooltip("p_miss:Q", title="Misses", format=".3%"),
]


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
    side = main_panel(width)
    names = list(curves)
    colour = system_colour(
        names,
        colours,
        width=width,
        notes={name: f"EER {percent(curve.eer)}" for name, curve in curves.items()},
    )
    kinds = {_POLYGON: SOLID, _HULL: DASHED} if hull else {_POLYGON: SOLID}
    dash = line_kind(kinds, width=width)
    x, y = (
        _axis("x", "False alarms, Pfa (%)", width=width),
        _axis("y", "Misses, Pmiss (%)", width=width),
    )

    polygons = join(_line(n, c.p_fa, c.p_miss, line=_POLYGON) for n, c in curves.items())
    layers = [_diagonal(x, y), _drawn(polygons, x, y, colour, dash, stroke=1.9)]
    if hull:
        hulls = join(_line(n, c.hull_p_fa, c.hull_p_miss, line=_HULL) for n, c in curves.items())
        layers.append(_drawn(hulls, x, y, colour, dash, stroke=1.0))
    layers.append(_marks(curves, x, y, colour, width=width))
    chart = alt.layer(*layers).properties(
        width=side,
        height=side,
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


def _line(name: str, p_fa: Array, p_miss: Array, *, line: str) -> alt.InlineData:
    grid: Array = ndtr(np.linspace(ndtri(LOWEST), ndtri(HIGHEST), _STEPS))
    grid[[0, -1]] = LOWEST, HIGHEST
    fa, miss = trace(p_fa, p_miss, at_fa=grid, at_miss=grid)
    seen = (fa <= HIGHEST) & (miss <= HIGHEST)
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
        x, y, colour, dash, order="step:Q", tooltip=[*_RATES, alt.Tooltip("line:N", title="Line")]
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
    *,
    width: float,
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
        legend=legend(width=width, title="Point", symbolSize=70, symbolStrokeColor=INK)
        if is_wide(width)
        else None,
    )
    return _on_axes(
        alt.Chart(points).mark_point(filled=True, size=64, opacity=1, stroke="white", strokeWidth=1)
    ).encode(
        x,
        y,
        colour,
        shape,
        tooltip=[
            *_RATES,
            alt.Tooltip("point:N", title="Point"),
            alt.Tooltip("p_target:Q", title="Prior of a target", format="~g"),
        ],
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
