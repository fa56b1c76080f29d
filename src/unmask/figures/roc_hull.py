"""Receiver operating characteristic and its convex hull."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np

from unmask.engine import Array, DetCurve
from unmask.figures.data import join, require_systems, table
from unmask.figures.encode import line_kind, main_panel, percent, system_colour
from unmask.figures.figure import Figure
from unmask.figures.theme import CHANCE, DASHED, SOLID, WIDE
from unmask.figures.trace import trace

_POLYGON, _HULL = "measured (ROC polygon)", "convex hull"
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
    side = main_panel(width)
    lowest = _lowest(curves) if log_p_fa else 0.0
    x = alt.X(
        "x:Q",
        title="False alarms, Pfa" + (" (log scale)" if log_p_fa else ""),
        scale=alt.Scale(
            type="log" if log_p_fa else "linear", domain=[lowest, 1], nice=False, zero=False
        ),
        axis=alt.Axis(format="~%", values=_ticks(lowest)),
    )
    y = alt.Y("hit:Q", title="Hits, 1 − Pmiss", scale=alt.Scale(domain=[0, 1])).axis(
        format="~%", tickCount=5
    )
    polygons = join(
        _line(n, c.p_fa, c.p_miss, line=_POLYGON, lowest=lowest) for n, c in curves.items()
    )
    hulls = join(
        _line(n, c.hull_p_fa, c.hull_p_miss, line=_HULL, lowest=lowest) for n, c in curves.items()
    )
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
            tooltip=[
                alt.Tooltip("system:N", title="System"),
                alt.Tooltip("p_fa:Q", title="False alarms", format=".3%"),
                alt.Tooltip("hit:Q", title="Hits", format=".3%"),
                alt.Tooltip("line:N", title="Line"),
            ],
        )
        for rows, stroke in ((polygons, 1.9), (hulls, 1.0))
    ]
    chart = alt.layer(_chance(x, y, lowest=lowest), *lines).properties(
        width=side,
        height=side,
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


def _ticks(lowest: float) -> list[float]:
    if lowest == 0:
        return [0, 0.2, 0.4, 0.6, 0.8, 1]
    return [float(f"1e{power}") for power in range(round(np.log10(lowest)), 1)]


def _line(name: str, p_fa: Array, p_miss: Array, *, line: str, lowest: float) -> alt.InlineData:
    grid = np.geomspace(lowest, 1.0, 80) if lowest > 0 else np.array([0.0, 1.0])
    fa, miss = trace(p_fa, p_miss, at_fa=grid, at_miss=np.empty(0))
    return table(system=name, line=line, step=range(len(fa)), p_fa=fa, p_miss=miss)


def _chance(x: alt.X, y: alt.Y, *, lowest: float) -> alt.Chart:
    at = np.geomspace(lowest, 1.0, 80) if lowest > 0 else np.array([0.0, 1.0])
    drawn: alt.Chart = (
        alt.Chart(table(x=at, hit=at))
        .mark_line(color=CHANCE, strokeDash=list(DASHED), strokeWidth=1)
        .encode(x, y)
    )
    return drawn
