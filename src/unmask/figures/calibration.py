"""Calibration: what scores promise against what is found, and the map that calibrates them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np

from unmask.engine import PavMap, Reliability
from unmask.figures.encode import (
    dashed,
    in_panel,
    legend,
    main_panel,
    panel_columns,
    panel_title,
    system_colour,
    tips,
)
from unmask.figures.figure import Figure, Layers, join, require_systems, table
from unmask.figures.theme import MUTED, WIDE

_TOGETHER = 3


def calibration_plot(
    curves: Mapping[str, Reliability],
    *,
    colours: Mapping[str, str] | None = None,
    width: float = WIDE,
    name: str = "calibration_plot",
    title: str = "Calibration: predicted posterior against the share of targets found",
) -> Figure:
    """Points with interval whiskers around the diagonal; up to three systems share a panel."""
    require_systems(curves, chart="calibration plot")
    names = list(curves)
    colour = system_colour(names, colours, width=width)
    groups = [names] if len(names) <= _TOGETHER else [[n] for n in names]
    columns = panel_columns(len(groups), width=width)
    if len(groups) > 1:
        colour = colour.legend(None)
        side = int((width - 150 - 40 * columns) / columns) if columns > 1 else 240
    else:
        side = main_panel(width)
    largest = max(int(curve.count.max(initial=1)) for curve in curves.values())
    size = alt.Size(
        "count:Q",
        scale=alt.Scale(type="sqrt", domain=[0, largest], range=[12, 220]),
        legend=legend(
            width=width,
            title="Trials in the bin",
            values=_round_counts(largest),
            symbolType="circle",
            symbolFillColor="#6b7280",
            symbolStrokeWidth=0,
            format=",d",
        ),
    )
    panels = [
        _reliability_panel(
            {n: curves[n] for n in group},
            colour,
            size,
            first=i % columns == 0,
            titled=len(groups) > 1,
        ).properties(width=side, height=side)
        for i, group in enumerate(groups)
    ]
    described = f"Calibration plot of {', '.join(names)}: observed share of targets per bin"
    if len(panels) == 1:
        chart: Layers | alt.ConcatChart = panels[0].properties(description=described)
    else:
        chart = alt.concat(*panels, columns=columns, spacing=16).properties(description=described)
    caption = (
        "Scores are read as log-likelihood ratios and the prior is the share of targets among the "
        "trials; the posterior is that of a target. On the dashed diagonal scores mean what they "
        "say; below it they promise too much, above it too little. "
        "Whiskers are 95 % score intervals of the share in each bin, trials taken as independent."
    )
    return Figure(name, title, caption, chart)


def _round_counts(largest: int) -> list[int]:
    """Up to three counts for the legend, ten times apart, the greatest a power of ten."""
    top = 10 ** (len(str(largest)) - 1)
    return [count for count in (top // 100, top // 10, top) if count > 0]


def _reliability_panel(
    curves: Mapping[str, Reliability],
    colour: alt.Color,
    size: alt.Size,
    *,
    first: bool,
    titled: bool,
) -> Layers:
    scale = alt.Scale(domain=[-0.04, 1.04], nice=False)
    ticks = [0, 0.2, 0.4, 0.6, 0.8, 1]
    x = alt.X("predicted:Q", title="Predicted posterior", scale=scale).axis(
        format=".1f", values=ticks, labelOverlap=False
    )
    y, whisker = (
        alt.Y(field, title="Share of targets" if first else None, scale=scale).axis(
            format=".1f", values=ticks, labelOverlap=False
        )
        for field in ("observed:Q", "low:Q")
    )
    rows = join(
        table(
            system=system,
            predicted=curve.predicted,
            observed=curve.observed,
            low=curve.low,
            high=curve.high,
            count=curve.count,
        )
        for system, curve in curves.items()
    )
    tooltip = tips(
        "system:N|System; predicted:Q|Predicted|.4f; observed:Q|Observed|.4f; "
        "low:Q|Interval from|.4f; high:Q|Interval to|.4f; count:Q|Trials|,.0f"
    )
    base = alt.Chart(rows).encode(x, y, colour, tooltip=tooltip)
    ends = table(predicted=[0, 1], observed=[0, 1])
    diagonal = dashed(ends, mark="line", strokeWidth=1).encode(x, y)
    layers = [
        diagonal,
        base.mark_line(strokeWidth=1, opacity=0.55),
        base.mark_rule(strokeWidth=1.4).encode(whisker, alt.Y2("high:Q")),
        base.mark_point(filled=True, opacity=0.95).encode(size),
    ]
    return alt.layer(*layers, *([panel_title(next(iter(curves)))] if titled else []))


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
    tooltip = tips(
        "system:N|System; low:Q|Scores from|.4~g; high:Q|Scores to|.4~g; "
        "natural:N|LLR (natural log); ten:N|LLR (base 10); targets:Q|Targets|,.0f; "
        "nontargets:Q|Nontargets|,.0f"
    )
    steps = join(_steps(system, curve) for system, curve in curves.items())
    ends = join(
        _infinite(system, curve, sign=sign, edge=edge, left=left, right=right)
        for system, curve in curves.items()
        for sign, edge in ((-1.0, bottom), (1.0, top))
    )
    same = [max(left, ticks[0]), min(right, ticks[-1])]
    layers = [
        dashed(table(score=same, llr=same), mark="line", clip=True, strokeWidth=1).encode(x, y),
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
    described = f"Score to oracle log-likelihood ratio of {', '.join(curves)}"
    chart = in_panel(alt.layer(*layers), width=width, ratio=0.85, description=described)
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
