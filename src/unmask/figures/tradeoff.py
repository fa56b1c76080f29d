"""Errors of systems: detection error trade-off, ROC with convex hull, differences between two."""

from __future__ import annotations

import math
from collections.abc import Mapping

import altair as alt
import numpy as np
from scipy.special import ndtr, ndtri

from unmask.engine import Array, Comparison, DetBand, DetCurve
from unmask.figures import draw
from unmask.figures.figure import Figure, join, require, sentences, table
from unmask.figures.theme import DASHED, INK, SOLID, WIDE, shorten

TICKS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
LOWEST, HIGHEST = 0.0005, 0.6

_POLYGON, _HULL = "measured (ROC polygon)", "convex hull"
_EER, _DCF = "equal error rate (hull)", "minimum DCF"
_STROKES = {_POLYGON: 1.9, _HULL: 1.0}
_STEPS = 80
_RATES = "system:N|System; p_fa:Q|False alarms|.3%; p_miss:Q|Misses|.3%"


def det(
    curves: Mapping[str, DetCurve],
    *,
    colours: Mapping[str, str] | None = None,
    bands: Mapping[str, DetBand] | None = None,
    hull: bool = True,
    width: float = WIDE,
    name: str = "det",
    title: str = "Detection error trade-off: misses against false alarms",
) -> Figure:
    """DET curves of all systems: polygon solid, hull dashed, EER and minimum DCF marked.

    ``bands`` are those in which the misses of a system lie.
    """
    require(curves, "DET")
    shades = draw.colours_for(list(curves), colours)
    colour = draw.by(alt.Color, "system", shades)
    ends = ndtri([LOWEST, HIGHEST]).tolist()
    ticks = {
        "values": ndtri(TICKS).round(6).tolist(),
        "labelExpr": "format(100 * cumulativeNormal(datum.value, 0, 1), '.1~r')",
        "labelOverlap": False,
        "labelFontSize": 11 if draw.is_wide(width) else 9,
    }
    x = draw.axis(alt.X, "x", "False alarms, Pfa (%)", ends, **ticks)
    y = draw.axis(alt.Y, "y", "Misses, Pmiss (%)", ends, **ticks)
    grid: Array = ndtr(np.linspace(ends[0], ends[1], _STEPS))
    grid[[0, -1]] = LOWEST, HIGHEST
    lines = {_POLYGON: SOLID, _HULL: DASHED} if hull else {_POLYGON: SOLID}
    # The caption tells dashes and marks; lines have their names beside them.
    dash = draw.line_kind(lines, width=0)
    diagonal = table(p_fa=[LOWEST, HIGHEST], p_miss=[LOWEST, HIGHEST])
    layers = [
        draw.mark(
            _on_axes(table(p_fa=band.p_fa, low=band.low, high=band.high), y="low", y2="high"),
            "area",
            alt.X("x:Q"),
            alt.Y("y:Q"),
            alt.Y2("y2:Q"),
            clip=True,
            opacity=0.16,
            color=shades[system],
        )
        for system, band in (bands or {}).items()
    ]
    layers.append(
        draw.mark(_on_axes(diagonal), "line", x, y, clip=True, color="#9ca3af", strokeWidth=0.8)
    )
    for line in lines:
        rows = _on_axes(_followed(curves, line, grid, grid, HIGHEST))
        channels = (x, y, colour, dash, alt.Order("step:Q"))
        hover = f"{_RATES}; line:N|Line"
        style = {"clip": True, "strokeWidth": _STROKES[line]}
        layers.append(draw.mark(rows, "line", *channels, hover=hover, **style))
    layers.append(_marks(curves, x, y, colour))
    at = {n: float(ndtri(np.clip(c.eer, LOWEST, HIGHEST))) for n, c in curves.items()}
    layers += draw.labels_at(
        {n: (place, place) for n, place in at.items()},
        shades,
        x,
        y,
        ends=ends,
        height=draw.main_panel(width),
        labels={
            n: f"{shorten(n, limit=22)} (EER {draw.percent(c.eer)})" for n, c in curves.items()
        },
    )
    described = f"DET plot: {_equal_errors(curves)}"
    chart = draw.in_panel(*layers, width=width, ratio=1, description=described)
    return Figure(name, title, _caption(curves, hull=hull, bands=bool(bands)), chart)


def _equal_errors(curves: Mapping[str, DetCurve]) -> str:
    return "; ".join(f"{n}, EER {draw.percent(c.eer)}" for n, c in curves.items())


def _followed(
    curves: Mapping[str, DetCurve], line: str, at_fa: Array, at_miss: Array, highest: float = 1.0
) -> alt.InlineData:
    """Polygons of error rates, followed at the grids; what lies beyond ``highest`` is left out."""
    parts = []
    for name, curve in curves.items():
        rates = (curve.p_fa, curve.p_miss)
        if line == _HULL:
            rates = (curve.hull_p_fa, curve.hull_p_miss)
        fa, miss = trace(*rates, at_fa=at_fa, at_miss=at_miss)
        seen = (fa <= highest) & (miss <= highest)
        if seen.any():
            fa, miss = fa[seen], miss[seen]
        parts.append(table(system=name, line=line, step=range(len(fa)), p_fa=fa, p_miss=miss))
    return join(parts)


def _on_axes(rows: alt.InlineData, **rates: str) -> alt.Chart:
    """Rates as normal deviates: ``{coordinate: rate}``, by default ``x`` and ``y`` of both."""
    fields = {"x": "p_fa", "y": "p_miss", **rates}
    return alt.Chart(rows).transform_calculate(
        **{
            place: f"quantileNormal(clamp(datum.{rate}, {LOWEST}, {HIGHEST}), 0, 1)"
            for place, rate in fields.items()
        }
    )


def _marks(curves: Mapping[str, DetCurve], x: alt.X, y: alt.Y, colour: alt.Color) -> alt.Chart:
    """The equal error rate and the least detection cost of each system."""
    names, every = list(curves), list(curves.values())
    eer = [c.eer for c in every]
    least = {
        "p_fa": [c.min_dcf_p_fa for c in every],
        "p_miss": [c.min_dcf_p_miss for c in every],
        "p_target": [c.p_target for c in every],
    }
    points = join(
        [
            table(system=names, point=_EER, p_fa=eer, p_miss=eer),
            table(system=names, point=_DCF, **least),
        ]
    )
    shape = draw.by(alt.Shape, "point", {_EER: "circle", _DCF: "diamond"})
    hover = f"{_RATES}; point:N|Point; p_target:Q|Prior of a target|~g"
    style = {"filled": True, "size": 64, "opacity": 1, "stroke": "white", "strokeWidth": 1}
    return draw.mark(_on_axes(points), "point", x, y, colour, shape, hover=hover, **style)


def _caption(curves: Mapping[str, DetCurve], *, hull: bool, bands: bool) -> str:
    priors = ", ".join(f"{p:g}" for p in sorted({curve.p_target for curve in curves.values()}))
    perfect = ", ".join(shorten(n) for n, c in curves.items() if c.eer == 0)
    outside = ", ".join(shorten(n) for n, c in curves.items() if c.eer > HIGHEST)
    return sentences(
        "Closer to the lower left corner the recogniser errs less; closer to the upper right the "
        "voices are better protected.",
        "The thin line marks equal rates; circles are equal error rates on the convex hull, "
        f"diamonds the minimum DCF at a target prior of {priors}.",
        "Solid: the measured ROC polygon; dashed: its convex hull." if hull else "",
        f"Points beyond the panel ({100 * LOWEST:g} to {100 * HIGHEST:g} %) lie on its edge.",
        perfect and f"No errors at the best threshold (EER 0), drawn in the corner: {perfect}.",
        outside and f"EER above {draw.percent(HIGHEST)}, drawn on the edge: {outside}.",
        "Bands: intervals of the miss rate over speakers, point by point; both systems are drawn on"
        " the same speakers, so bands may overlap where the difference is clear."
        if bands
        else "",
    )


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
) -> Figure:
    """Hits (1 − Pmiss) over false alarms; ``log_p_fa`` spreads out the rare false alarms."""
    require(curves, "ROC")
    lowest, ticks = 0.0, [0, 0.2, 0.4, 0.6, 0.8, 1]
    grid = np.array([0.0, 1.0])
    if log_p_fa:
        positive = min(curve.p_fa[curve.p_fa > 0].min(initial=1.0) for curve in curves.values())
        power = min(int(np.floor(np.log10(max(positive, _LOWEST_ALLOWED)))), -1)
        lowest, ticks = 10.0**power, [float(f"1e{decade}") for decade in range(power, 1)]
        grid = np.geomspace(lowest, 1.0, _STEPS)
    label = "False alarms, Pfa" + (" (log scale)" if log_p_fa else "")
    x = draw.axis(alt.X, "x", label, (lowest, 1), log=log_p_fa, format="~%", values=ticks)
    y = draw.axis(alt.Y, "hit", "Hits, 1 − Pmiss", (0, 1), format="~%", tickCount=5)
    channels = (
        x,
        y,
        draw.system_colour(list(curves), colours, width=width),
        draw.line_kind({_POLYGON: SOLID, _HULL: DASHED}, width=width),
        alt.Order("step:Q"),
    )
    hover = "system:N|System; p_fa:Q|False alarms|.3%; hit:Q|Hits|.3%; line:N|Line"
    chance = table(x=grid, hit=grid)
    layers = [draw.dashed(chance, x, y, kind="line", strokeWidth=1)]
    for line, stroke in _STROKES.items():
        rows = alt.Chart(_followed(curves, line, grid, np.empty(0))).transform_calculate(
            hit="1 - datum.p_miss", x=f"max(datum.p_fa, {lowest!r})"
        )
        style = {"clip": True, "strokeWidth": stroke}
        layers.append(draw.mark(rows, "line", *channels, hover=hover, **style))
    described = f"ROC curves with convex hulls of {_equal_errors(curves)}"
    chart = draw.in_panel(*layers, width=width, ratio=1, description=described)
    caption = (
        "Closer to the upper left corner the recogniser errs less; on the dashed black line it "
        "guesses. Solid: the measured curve; dashed in colour: its convex hull, what an ideal "
        "choice of thresholds can reach. Where the curve sags far below its hull, scores do not "
        "rank voices by their likelihood ratio."
    )
    if log_p_fa:
        caption += f" False alarm rates below {100 * lowest:.2g} % are drawn on the left edge."
    return Figure("roc_hull", "ROC curves and their convex hulls", caption, chart)


_NAMES = {
    "eer": "EER", "eer_raw": "EER, raw", "min_dcf": "minDCF", "act_dcf": "actDCF",
    "cllr": "Cllr", "min_cllr": "min Cllr", "d_ece": "D_ECE", "d_sys": "D_sys",
    "tpr_at_fpr": "TPR",
}  # fmt: skip
_MORE_IS_BETTER = ("d_ece", "d_sys", "tpr_at_fpr", "l_w")


def difference_intervals(comparison: Comparison, *, width: float = WIDE) -> Figure:
    """Every difference as a share of the first system's value, better to the right."""
    names, ends = [], []
    for row in comparison.differences:
        first, interval = float(row.first.value), row.difference.interval
        if interval is None or not math.isfinite(interval.low) or not 0 < first < math.inf:
            continue
        share = (100 if row.first.metric in _MORE_IS_BETTER else -100) / first
        given = [row.first.params[k] for k in ("p_target", "fpr") if k in row.first.params]
        label = _NAMES.get(row.first.metric, row.first.metric)
        names.append(f"{label} ({given[0]:g})" if given else label)
        low, high = sorted((share * interval.low, share * interval.high))
        ends.append((low, share * float(row.difference.value), high))
    rows = table(
        metric=names,
        **{field: [end[i] for end in ends] for i, field in enumerate(("low", "value", "high"))},
        clear=["excludes 0" if low > 0 or high < 0 else "includes 0" for low, _, high in ends],
    )
    better = f"{comparison.second} is better by, relative to {comparison.first} (%)"
    y = alt.Y("metric:N", sort=names, title=None)
    colour = alt.Color(
        "clear:N",
        title="Interval",
        scale=alt.Scale(domain=["excludes 0", "includes 0"], range=["#0072B2", "#9ca3af"]),
    )
    hover = "metric:N|Metric; value:Q|Better by (%)|.2f; low:Q|from|.2f; high:Q|to|.2f"
    spans = (alt.X("low:Q", title=better), alt.X2("high:Q"))
    point = {"filled": True, "size": 60, "opacity": 1}
    chart = draw.in_panel(
        draw.mark(table(at=[0.0]), "rule", alt.X("at:Q"), color=INK, strokeWidth=1),
        draw.mark(rows, "rule", *spans, y, colour, hover=hover, strokeWidth=2.4),
        draw.mark(rows, "point", alt.X("value:Q"), y, colour, hover=hover, **point),
        width=width,
        ratio=0.5,
        description="Differences of two systems",
    )
    level = next(
        (r.difference.interval.level for r in comparison.differences if r.difference.interval), 0.95
    )
    return Figure(
        "compare_differences",
        f"{comparison.verdict.partition(':')[0]}: {comparison.second} against {comparison.first}",
        f"{100 * level:g} % intervals of each difference on shared draws, as a share of the value"
        f" of {comparison.first}; to the right of 0 {comparison.second} recognises better.",
        chart,
    )
