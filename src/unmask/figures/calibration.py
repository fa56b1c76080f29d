"""Calibration: what scores promise against what is observed, and the map that calibrates them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import altair as alt
import numpy as np
from altair.typing import ChartType

from unmask.engine import PavMap, Reliability
from unmask.figures import draw
from unmask.figures.figure import Figure, join, require, table
from unmask.figures.theme import MUTED, WIDE

_TOGETHER = 3


def calibration_plot(
    curves: Mapping[str, Reliability],
    *,
    colours: Mapping[str, str] | None = None,
    width: float = WIDE,
) -> Figure:
    """Points with interval whiskers around the diagonal; up to three systems share a panel."""
    require(curves, "calibration plot")
    names = list(curves)
    colour = draw.system_colour(names, colours, width=width)
    groups = [names] if len(names) <= _TOGETHER else [[n] for n in names]
    columns = draw.panel_columns(len(groups), width=width)
    side = draw.main_panel(width)
    if len(groups) > 1:
        colour = colour.legend(None)
        side = int((width - 150 - 40 * columns) / columns) if columns > 1 else 240
    largest = max(int(curve.count.max(initial=1)) for curve in curves.values())
    top = 10 ** (len(str(largest)) - 1)
    size = alt.Size(
        "count:Q",
        scale=alt.Scale(type="sqrt", domain=[0, largest], range=[12, 220]),
        legend=draw.legend(
            width=width,
            title="Trials in the bin",
            values=[count for count in (top // 100, top // 10, top) if count > 0],
            symbolType="circle",
            symbolFillColor="#6b7280",
            symbolStrokeWidth=0,
            format=",d",
        ),
    )
    panels = []
    for i, group in enumerate(groups):
        shown = {n: curves[n] for n in group}
        layers = _reliability(shown, colour, size, named=i % columns == 0)
        if len(groups) > 1:
            layers.append(draw.panel_title(group[0]))
        panels.append(alt.layer(*layers).properties(width=side, height=side))
    described = f"Calibration plot of {', '.join(names)}: observed share of targets per bin"
    chart: ChartType = panels[0].properties(description=described)
    if len(panels) > 1:
        chart = draw.in_grid(panels, columns=columns, spacing=16, description=described)
    caption = (
        "Scores are read as log-likelihood ratios and the prior is the share of targets among the "
        "trials; the posterior is that of a target. On the dashed diagonal scores mean what they "
        "say; below it they promise too much, above it too little. "
        "Whiskers are 95 % score intervals of the share in each bin, trials taken as independent."
    )
    return Figure(
        "calibration_plot",
        "Calibration: predicted posterior against the share of targets found",
        caption,
        chart,
    )


def _reliability(
    curves: Mapping[str, Reliability], colour: alt.Color, size: alt.Size, *, named: bool
) -> list[alt.Chart]:
    ticks: draw.Style = {
        "format": ".1f",
        "values": [0, 0.2, 0.4, 0.6, 0.8, 1],
        "labelOverlap": False,
    }
    ends = (-0.04, 1.04)
    x = draw.axis(alt.X, "predicted", "Predicted posterior", ends, **ticks)
    y, low = (
        draw.axis(alt.Y, field, "Share of targets" if named else None, ends, **ticks)
        for field in ("observed", "low")
    )
    fields = ("predicted", "observed", "low", "high", "count")
    rows = join(
        table(system=system, **{field: getattr(curve, field) for field in fields})
        for system, curve in curves.items()
    )
    hover = (
        "system:N|System; predicted:Q|Predicted|.4f; observed:Q|Observed|.4f; "
        "low:Q|Interval from|.4f; high:Q|Interval to|.4f; count:Q|Trials|,.0f"
    )
    layer = partial(draw.mark, rows, hover=hover)
    diagonal = table(predicted=[0, 1], observed=[0, 1])
    return [
        draw.dashed(diagonal, x, y, kind="line", strokeWidth=1),
        layer("line", x, y, colour, strokeWidth=1, opacity=0.55),
        layer("rule", x, low, alt.Y2("high:Q"), colour, strokeWidth=1.4),
        layer("point", x, y, colour, size, filled=True, opacity=0.95),
    ]


_LANE = 0.07
_INFINITE = {-1.0: "−∞", 1.0: "+∞"}


def pav_map(
    curves: Mapping[str, PavMap], *, colours: Mapping[str, str] | None = None, width: float = WIDE
) -> Figure:
    """Blocks as steps joined by lines; blocks of one class only lie at ±∞ on the panel's edge."""
    require(curves, "PAV map")
    left, right = _score_range(curves)
    ticks = _llr_ticks(curves)
    lane = _LANE * (ticks[-1] - ticks[0])
    bottom, top = ticks[0] - lane, ticks[-1] + lane
    inner = [ticks[0] - lane / 2, ticks[-1] + lane / 2]
    x = draw.axis(alt.X, "score", "Score", (left, right))
    y = draw.axis(
        alt.Y,
        "llr",
        "Oracle LLR (natural log)",
        (bottom - lane / 2, top + lane / 2),
        values=[bottom, *ticks, top],
        labelExpr=f"datum.value < {inner[0]!r} ? '−∞' : "
        f"datum.value > {inner[1]!r} ? '+∞' : format(datum.value, '~g')",
        labelOverlap=False,
    )
    colour = draw.system_colour(list(curves), colours, width=width)
    hover = (
        "system:N|System; low:Q|Scores from|.4~g; high:Q|Scores to|.4~g; "
        "natural:N|LLR (natural log); ten:N|LLR (base 10); targets:Q|Targets|,.0f; "
        "nontargets:Q|Nontargets|,.0f"
    )
    steps = join(_steps(system, curve) for system, curve in curves.items())
    ends = join(
        _infinite(system, curve, sign=sign, edge=edge, left=left, right=right)
        for system, curve in curves.items()
        for sign, edge in zip(_INFINITE, (bottom, top), strict=True)
    )
    same = [max(left, ticks[0]), min(right, ticks[-1])]
    shape = draw.by(alt.Shape, "sign", {"−∞": "triangle-down", "+∞": "triangle-up"})
    far = alt.X2("far:Q")
    chart = draw.in_panel(
        draw.dashed(table(score=same, llr=same), x, y, kind="line", clip=True, strokeWidth=1),
        draw.mark(table(llr=inner), "rule", y, color=MUTED, strokeWidth=0.6),
        draw.mark(steps, "line", x, y, colour, alt.Order("step:Q"), hover=hover, clip=True),
        draw.mark(ends, "rule", x, far, y, colour, hover=hover, clip=True, strokeWidth=1.8),
        draw.mark(
            ends,
            "point",
            alt.X("score:Q"),
            y,
            colour,
            shape,
            hover=hover,
            filled=True,
            size=70,
            opacity=1,
        ),
        width=width,
        ratio=0.85,
        description=f"Score to oracle log-likelihood ratio of {', '.join(curves)}",
    )
    caption = (
        "Each flat part is a block of scores that carry the same evidence; a steep climb over few "
        "scores separates voices well. On the dashed line a score already is its LLR. "
        "Divide by 2.303 for base 10: 2.3 on this axis is a likelihood ratio of 10, 4.6 of 100."
    )
    if ends.values:
        caption += (
            " Triangles at the edge: blocks with targets only (+∞) or nontargets only (−∞), "
            "with a line over the scores they cover, which may run on beyond the panel."
        )
    return Figure(
        "pav_map", "Oracle calibration: from score to log-likelihood ratio", caption, chart
    )


def _score_range(curves: Mapping[str, PavMap]) -> tuple[float, float]:
    """The scores of the finite blocks and a part of what lies beyond; all, if none is finite."""
    low, high, llr = (
        np.concatenate([getattr(c, field) for c in curves.values()])
        for field in ("low", "high", "llr")
    )
    known = np.isfinite(low) & np.isfinite(high)
    inner = known & np.isfinite(llr)
    if not known.any():
        return -1.0, 1.0
    first, last = float(low[known].min()), float(high[known].max())
    if inner.any():
        left, right = float(low[inner].min()), float(high[inner].max())
        beyond = 0.3 * (right - left)
        first, last = max(first, left - beyond), min(last, right + beyond)
    margin = 0.02 * last - 0.02 * first or 0.5
    left, right = np.nan_to_num([first - margin, last + margin])
    return float(left), float(right)


def _llr_ticks(curves: Mapping[str, PavMap]) -> list[float]:
    llr = np.concatenate([curve.llr for curve in curves.values()])
    llr = llr[np.isfinite(llr)]
    low, high = float(llr.min(initial=-1.0)), float(llr.max(initial=1.0))
    step = next(s for s in (0.5, 1, 2, 5, 10, 20, 50, math.inf) if (high - low) / s <= 8)
    if math.isinf(step):
        step = 10.0 ** math.ceil(math.log10((high - low) / 8))
    first, last = math.floor(low / step), math.ceil(high / step)
    return [step * i for i in range(first, last + 1)]


def _blocks(curve: PavMap, chosen: Any) -> dict[str, Any]:
    """What the pointer asks of blocks."""
    llr = curve.llr[chosen]
    fields = ("low", "high", "targets", "nontargets")
    return {field: getattr(curve, field)[chosen] for field in fields} | {
        "natural": [_written(value) for value in llr],
        "ten": [_written(value / math.log(10)) for value in llr],
    }


def _steps(system: str, curve: PavMap) -> alt.InlineData:
    """Both ends of every finite block."""
    twice = np.repeat(np.flatnonzero(np.isfinite(curve.llr)), 2)
    score = np.where(np.arange(twice.size) % 2, curve.high[twice], curve.low[twice])
    numbered = {"system": system, "step": range(score.size), "score": score}
    return table(**numbered, llr=curve.llr[twice], **_blocks(curve, twice))


def _infinite(
    system: str, curve: PavMap, *, sign: float, edge: float, left: float, right: float
) -> alt.InlineData:
    """Blocks at ``sign`` infinity: the inner end, where the triangle stands, and the far end."""
    chosen = np.flatnonzero(curve.llr == sign * np.inf)
    ends = (np.clip(side[chosen], left, right) for side in (curve.low, curve.high))
    inner, far = ends if sign > 0 else reversed(list(ends))
    at = {"score": inner, "far": far, "llr": np.full(chosen.size, edge)}
    return table(system=system, sign=_INFINITE[sign], **at, **_blocks(curve, chosen))


def _written(llr: float) -> str:
    if math.isinf(llr):
        return _INFINITE[math.copysign(1.0, llr)]
    return f"{llr:+.3f}".replace("-", "−")
