"""The score-to-LLR map that pool adjacent violators finds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np

from unmask.engine import PavMap
from unmask.figures.data import join, require_systems, table
from unmask.figures.encode import main_panel, system_colour
from unmask.figures.figure import Figure
from unmask.figures.theme import CHANCE, DASHED, MUTED, WIDE

Blocks = np.ndarray[tuple[int], np.dtype[np.signedinteger[Any]]]

_ENDS = ("low", "high")
_LANE = 0.07


def pav_map(
    curves: Mapping[str, PavMap],
    *,
    colours: Mapping[str, str] | None = None,
    width: float = WIDE,
    name: str = "pav_map",
    title: str = "Oracle calibration: from score to log-likelihood ratio",
) -> Figure:
    """Blocks as steps joined by lines; blocks of one class only lie at ±∞ on the panel's edge."""
    require_systems(curves, chart="PAV map")
    left, right = _score_range(curves)
    ticks = _llr_ticks(curves)
    lane = _LANE * (ticks[-1] - ticks[0])
    bottom, top = ticks[0] - lane, ticks[-1] + lane
    x = alt.X(
        "score:Q", title="Score", scale=alt.Scale(domain=[left, right], nice=False, zero=False)
    )
    y = alt.Y(
        "llr:Q",
        title="Oracle LLR (natural log)",
        scale=alt.Scale(domain=[bottom - lane / 2, top + lane / 2], nice=False, zero=False),
    ).axis(
        values=[bottom, *ticks, top],
        labelExpr=f"datum.value < {ticks[0] - lane / 2!r} ? '−∞' : "
        f"datum.value > {ticks[-1] + lane / 2!r} ? '+∞' : format(datum.value, '~g')",
        labelOverlap=False,
    )
    colour = system_colour(list(curves), colours, width=width)
    tooltip = [
        alt.Tooltip("system:N", title="System"),
        alt.Tooltip("low:Q", title="Scores from", format=".4~g"),
        alt.Tooltip("high:Q", title="Scores to", format=".4~g"),
        alt.Tooltip("natural:N", title="LLR (natural log)"),
        alt.Tooltip("ten:N", title="LLR (base 10)"),
        alt.Tooltip("targets:Q", title="Targets", format=",.0f"),
        alt.Tooltip("nontargets:Q", title="Nontargets", format=",.0f"),
    ]
    steps = join(_steps(system, curve) for system, curve in curves.items())
    ends = join(
        _infinite(system, curve, sign=sign, edge=edge, left=left, right=right)
        for system, curve in curves.items()
        for sign, edge in ((-1.0, bottom), (1.0, top))
    )
    layers = [
        _identity(x, y, low=max(left, ticks[0]), high=min(right, ticks[-1])),
        alt.Chart(table(llr=[ticks[0] - lane / 2, ticks[-1] + lane / 2]))
        .mark_rule(color=MUTED, strokeWidth=0.6)
        .encode(y),
        alt.Chart(steps).mark_line(clip=True).encode(x, y, colour, order="step:Q", tooltip=tooltip),
        alt.Chart(ends)
        .mark_rule(clip=True, strokeWidth=1.8)
        .encode(x, alt.X2("far:Q"), y, colour, tooltip=tooltip),
        alt.Chart(ends)
        .mark_point(filled=True, size=70, opacity=1)
        .encode(
            alt.X("score:Q"),
            y,
            colour,
            alt.Shape(
                "sign:N",
                scale=alt.Scale(domain=["−∞", "+∞"], range=["triangle-down", "triangle-up"]),
                legend=None,
            ),
            tooltip=tooltip,
        ),
    ]
    chart = alt.layer(*layers).properties(
        width=main_panel(width),
        height=int(0.85 * main_panel(width)),
        description=f"Score to oracle log-likelihood ratio of {', '.join(curves)}",
    )
    return Figure(name, title, _caption(ends), chart)


def _score_range(curves: Mapping[str, PavMap]) -> tuple[float, float]:
    """The scores of the finite blocks and a part of what lies beyond; all, if none is finite."""
    low, high = (np.concatenate([getattr(c, end) for c in curves.values()]) for end in _ENDS)
    llr = np.concatenate([c.llr for c in curves.values()])
    known = np.isfinite(low) & np.isfinite(high)
    inner = known & np.isfinite(llr)
    if not known.any():
        return -1.0, 1.0
    first, last = float(low[known].min()), float(high[known].max())
    if inner.any():
        left, right = float(low[inner].min()), float(high[inner].max())
        beyond = 0.3 * (right - left)
        first, last = max(first, left - beyond), min(last, right + beyond)
    margin = 0.02 * (last - first) or 0.5
    return first - margin, last + margin


def _llr_ticks(curves: Mapping[str, PavMap]) -> list[float]:
    llr = np.concatenate([curve.llr for curve in curves.values()])
    llr = llr[np.isfinite(llr)]
    low, high = float(llr.min(initial=-1.0)), float(llr.max(initial=1.0))
    step = next(s for s in (0.5, 1, 2, 5, 10, 20, 50, math.inf) if (high - low) / s <= 8)
    if math.isinf(step):
        step = 10.0 ** math.ceil(math.log10((high - low) / 8))
    first, last = math.floor(low / step), math.ceil(high / step)
    return [step * i for i in range(first, last + 1)]


def _columns(curve: PavMap, chosen: Blocks, *, times: int) -> dict[str, object]:
    llr = curve.llr[chosen]
    return {
        "low": np.repeat(curve.low[chosen], times),
        "high": np.repeat(curve.high[chosen], times),
        "natural": np.repeat([_written(v) for v in llr], times).tolist(),
        "ten": np.repeat([_written(v / math.log(10)) for v in llr], times).tolist(),
        "targets": np.repeat(curve.targets[chosen], times),
        "nontargets": np.repeat(curve.nontargets[chosen], times),
    }


def _steps(system: str, curve: PavMap) -> alt.InlineData:
    finite = np.flatnonzero(np.isfinite(curve.llr))
    score = np.column_stack([curve.low[finite], curve.high[finite]]).ravel()
    return table(
        system=system,
        step=range(score.size),
        score=score,
        llr=np.repeat(curve.llr[finite], 2),
        **_columns(curve, finite, times=2),
    )


def _infinite(
    system: str, curve: PavMap, *, sign: float, edge: float, left: float, right: float
) -> alt.InlineData:
    """Blocks at ``sign`` infinity: the inner end, where the triangle stands, and the far end."""
    chosen = np.flatnonzero(curve.llr == sign * np.inf)
    low = np.clip(curve.low[chosen], left, right)
    high = np.clip(curve.high[chosen], left, right)
    inner, far = (low, high) if sign > 0 else (high, low)
    return table(
        system=system,
        sign="+∞" if sign > 0 else "−∞",
        score=inner,
        far=far,
        llr=np.full(chosen.size, edge),
        **_columns(curve, chosen, times=1),
    )


def _identity(x: alt.X, y: alt.Y, *, low: float, high: float) -> alt.Chart:
    drawn: alt.Chart = (
        alt.Chart(table(score=[low, high], llr=[low, high]))
        .mark_line(clip=True, color=CHANCE, strokeDash=list(DASHED), strokeWidth=1)
        .encode(x, y)
    )
    return drawn


def _written(llr: float) -> str:
    if math.isinf(llr):
        return "+∞" if llr > 0 else "−∞"
    return f"{llr:+.3f}".replace("-", "−")


def _caption(ends: alt.InlineData) -> str:
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
    return caption
