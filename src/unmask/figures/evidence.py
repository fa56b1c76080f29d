"""What scores are worth as evidence: calibration, its map, cross-entropy over the prior."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import altair as alt
import numpy as np

from unmask.base import FloatArray, IntArray
from unmask.engine import EceProfile, PavMap, Reliability, Tippett
from unmask.figures import draw
from unmask.figures.figure import Chart, Figure, Layers, captioned, join, require, table
from unmask.figures.theme import (
    DASHED,
    MUTED,
    NONTARGET,
    PALETTE,
    SOLID,
    TARGET,
    is_wide,
    shorten,
    width,
)
from unmask.privacy import CalibrationDistortion, Disclosure

_TOGETHER = 3


def calibration_plot(curves: Mapping[str, Reliability], *, colours: draw.Colours = None) -> Figure:
    """Points with interval whiskers around the diagonal; up to three systems share a panel."""
    require(curves, "calibration plot")
    names = list(curves)
    colour = draw.system_colour(names, colours)
    groups = [names] if len(names) <= _TOGETHER else [[n] for n in names]
    columns, side = draw.panel_columns(len(groups)), draw.main_panel()
    if len(groups) > 1:
        colour = colour.legend(None)
        side = int((width() - 150 - 40 * columns) / columns) if columns > 1 else 240
    largest = max(int(curve.count.max(initial=1)) for curve in curves.values())
    top = 10 ** (len(str(largest)) - 1)
    legend = draw.legend(
        "Trials in the bin",
        values=[count for count in (top // 100, top // 10, top) if count > 0],
        symbolType="circle",
        symbolFillColor="#6b7280",
        symbolStrokeWidth=0,
        format=",d",
    )
    scale = alt.Scale(type="sqrt", domain=[0, largest], range=[12, 220])
    size = alt.Size("count:Q", scale=scale, legend=legend)
    panels = []
    for i, group in enumerate(groups):
        shown = {n: curves[n] for n in group}
        layers = _reliability(shown, colour, size, named=i % columns == 0)
        if len(groups) > 1:
            layers.append(draw.panel_title(group[0]))
        panels.append(alt.layer(*layers).properties(width=side, height=side))
    grid = alt.concat(*panels, columns=columns, spacing=16)
    return captioned("calibration_plot", grid if len(panels) > 1 else panels[0], systems=names)


def _reliability(
    curves: Mapping[str, Reliability], colour: alt.Color, size: alt.Size, *, named: bool
) -> list[alt.Chart]:
    ticks: draw.Style = {"format": ".1f", "values": [0, 0.2, 0.4, 0.6, 0.8, 1]}
    ticks |= {"labelOverlap": False}
    ends = (-0.04, 1.04)
    x = draw.axis(alt.X, "predicted", "Predicted posterior", ends, **ticks)
    y, low = (
        draw.axis(alt.Y, field, "Share of targets" if named else None, ends, **ticks)
        for field in ("observed", "low")
    )
    rows = join(table(system=system, **vars(curve)) for system, curve in curves.items())
    tips = draw.tips("calibration_plot")
    diagonal = table(predicted=[0, 1], observed=[0, 1])
    return [
        draw.dashed(diagonal, x, y, kind="line", strokeWidth=1),
        draw.mark(rows, "line", x, y, colour, tips, strokeWidth=1, opacity=0.55),
        draw.mark(rows, "rule", x, low, alt.Y2("high:Q"), colour, tips, strokeWidth=1.4),
        draw.dots(rows, x, y, colour, size, tips, opacity=0.95),
    ]


_TEN = math.log(10)
_SAME, _DIFFERENT = "same speaker", "different speakers"


def tippett_plot(curve: Tippett) -> Figure:
    """Cumulative shares of both classes over log10 LR, as steps at the data and nothing beyond."""
    lines, above = [], "LR at or above x"
    for name, at, shares, kind in (
        (_SAME, curve.same, curve.same_share, above if curve.above else "LR at or below x"),
        (_DIFFERENT, curve.different, curve.different_share, above),
    ):
        heights = np.stack([shares[:-1], shares[1:]], axis=1).ravel()
        columns = {"step": range(heights.size), "llr": np.repeat(at, 2), "share": heights}
        lines.append(table(trials=f"{name}: {kind}", **columns))
    rows = join(lines)
    values = [row["llr"] for row in rows.values] or [0.0]
    margin = 0.03 * (max(values) - min(values)) or 0.5
    x = draw.axis(alt.X, "llr", "log10 LR", (min(0, *values) - margin, max(0, *values) + margin))
    y = draw.percent_axis(alt.Y, "share", "Share of comparisons (%)", ends=(0, 1.02))
    looks = {
        str(part.values[0]["trials"]): c
        for part, c in zip(lines, (TARGET, NONTARGET), strict=True)
        if part.values
    }
    named = alt.Legend(title=None, orient="bottom", symbolType="stroke", direction="vertical")
    colour = draw.by(alt.Color, "trials", looks, legend=named)
    chart = draw.in_panel(
        draw.dashed(table(llr=0), alt.X("llr:Q"), strokeWidth=1),
        draw.mark(rows, "line", x, y, colour, alt.Order("step:Q"), draw.tips("tippett")),
        ratio=0.8,
    )
    facts = {"consensus": not curve.above, "above": curve.above, "infinite": curve.infinite}
    return captioned("tippett", chart, **facts)


_LANE = 0.07
_BELOW, _ABOVE = "−∞", "+∞"


def pav_map(
    curves: Mapping[str, PavMap], *, colours: draw.Colours = None, log10: bool = False
) -> Figure:
    """Blocks as steps joined by lines; blocks of one class only lie at ±∞ on the panel's edge. With
    ``log10`` scores are LLRs, and both axes have base 10.
    """
    require(curves, "PAV map")
    base = _TEN if log10 else 1.0
    curves = {
        name: replace(pav, low=pav.low / base, high=pav.high / base, llr=pav.llr / base)
        for name, pav in curves.items()
    }
    left, right = _score_range(curves)
    ticks = _llr_ticks(curves)
    lane = _LANE * (ticks[-1] - ticks[0])
    bottom, top = ticks[0] - lane, ticks[-1] + lane
    inner = [ticks[0] - lane / 2, ticks[-1] + lane / 2]
    x = draw.axis(alt.X, "score", "log10 LR of the system" if log10 else "Score", (left, right))
    y = draw.axis(
        alt.Y,
        "llr",
        "log10 LR after PAV" if log10 else "Oracle LLR (natural log)",
        (bottom - lane / 2, top + lane / 2),
        values=[bottom, *ticks, top],
        labelExpr=f"datum.value < {inner[0]!r} ? '{_BELOW}' : "
        f"datum.value > {inner[1]!r} ? '{_ABOVE}' : format(datum.value, '~g')",
        labelOverlap=False,
    )
    colour = draw.system_colour(list(curves), colours)
    tips = draw.tips("pav_map")
    steps, ends = [], []
    for system, curve in curves.items():
        finite = np.repeat(np.flatnonzero(np.isfinite(curve.llr)), 2)
        score = np.where(np.arange(finite.size) % 2, curve.high[finite], curve.low[finite])
        columns = {"step": range(finite.size), "score": score, "llr": curve.llr[finite]}
        steps.append(table(system=system, **columns, **_blocks(curve, finite, base)))
        beyond = np.flatnonzero(np.isinf(curve.llr))
        high, sides = curve.llr[beyond] > 0, (curve.low[beyond], curve.high[beyond])
        columns = {  # the triangle stands at the inner end of the scores that a block covers
            "score": np.clip(np.where(high, *sides), left, right),
            "far": np.clip(np.where(high, *sides[::-1]), left, right),
            "llr": np.where(high, top, bottom),
            "sign": np.where(high, _ABOVE, _BELOW).tolist(),
        }
        ends.append(table(system=system, **columns, **_blocks(curve, beyond, base)))
    same = [max(left, ticks[0]), min(right, ticks[-1])]
    shape = draw.by(alt.Shape, "sign", {_BELOW: "triangle-down", _ABOVE: "triangle-up"})
    edge, spans = join(ends), (x, alt.X2("far:Q"), y)
    chart = draw.in_panel(
        draw.dashed(table(score=same, llr=same), x, y, kind="line", clip=True, strokeWidth=1),
        draw.mark(table(llr=inner), "rule", y, color=MUTED, strokeWidth=0.6),
        draw.mark(join(steps), "line", x, y, colour, alt.Order("step:Q"), tips, clip=True),
        draw.mark(edge, "rule", *spans, colour, tips, clip=True, strokeWidth=1.8),
        draw.dots(edge, alt.X("score:Q"), y, colour, shape, tips, size=70),
        ratio=0.85,
    )
    words = "pav_map_of_lrs" if log10 else "pav_map"
    return captioned(words, chart, systems=curves, infinite=bool(edge.values)).called("pav_map")


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


def _blocks(curve: PavMap, chosen: IntArray, base: float) -> dict[str, Any]:
    """What the pointer asks of blocks, whose LLRs are in units of ``base``."""
    fields = ("low", "high", "targets", "nontargets")
    return {field: getattr(curve, field)[chosen] for field in fields} | {
        "natural": [_written(value * base) for value in curve.llr[chosen]],
        "ten": [_written(value * base / _TEN) for value in curve.llr[chosen]],
    }


def _written(llr: float) -> str:
    if math.isinf(llr):
        return _ABOVE if llr > 0 else _BELOW
    return f"{llr:+.3f}".replace("-", "−")


HIGHEST = 1.08
_RATIO = 0.78
_LINES = "oracle (calibrated)", "actual (scores as LLRs)", "prior alone, no scores"
_LINES_OF_LRS = "after PAV", "LRs as they are", "prior alone, no LRs"


def _axes(title: str, ends: tuple[float, float]) -> tuple[alt.X, alt.Y]:
    """Log-odds of the prior, and bits of cross-entropy."""
    bits: draw.Style = {"values": [0, 0.2, 0.4, 0.6, 0.8, 1.0], "format": ".1f"}
    return (
        draw.axis(alt.X, "log_odds", title, ends, tickCount=10 if is_wide() else 5),
        draw.axis(alt.Y, "bits", "Empirical cross-entropy (bits)", (0, HIGHEST), **bits),
    )


def ece_profile(
    curves: Mapping[str, EceProfile], *, colours: draw.Colours = None, log10: bool = False
) -> Figure:
    """ECE of every system, oracle solid and actual dashed, below the prior's entropy in black; over
    log-odds of base 10 with ``log10``.
    """
    require(curves, "ECE profile")
    if log10:
        curves = {n: replace(one, log_odds=one.log_odds / _TEN) for n, one in curves.items()}
    reference = next(iter(curves.values()))
    oracle, actual, prior = _LINES_OF_LRS if log10 else _LINES
    lines = [(prior, oracle, reference.log_odds, reference.prior)]
    for system, curve in curves.items():
        lines += [
            (system, oracle, curve.log_odds, curve.oracle),
            (system, actual, curve.log_odds, curve.actual),
        ]
    rows = join(table(system=s, line=line, log_odds=x, bits=y) for s, line, x, y in lines)
    odds = np.concatenate([curve.log_odds for curve in curves.values()])
    channels = (
        *_axes(
            "log10 prior odds of one speaker"
            if log10
            else "Prior log-odds of a target (natural log)",
            (float(odds.min()), float(odds.max())),
        ),
        draw.system_colour(list(curves), colours, first=prior),
        draw.line_kind({oracle: SOLID, actual: DASHED}),
        draw.tips("ece_profile"),
    )
    even = Chart(rows).transform_filter("abs(datum.log_odds) < 1e-9")
    even = even.transform_filter(alt.datum.system != prior)
    chart = draw.in_panel(
        draw.mark(rows, "line", *channels, clip=True),
        draw.dots(even, *channels, clip=True, size=46),
        ratio=_RATIO,
    )
    cut = [shorten(name) for name, curve in curves.items() if not np.all(curve.actual <= HIGHEST)]
    words = "ece_profile_of_lrs" if log10 else "ece_profile"
    made = captioned(words, chart, systems=curves, highest=HIGHEST, cut=cut)
    return made.called("ece_profile")


_PRIOR = "perfect privacy"
_Profile = tuple[FloatArray, FloatArray, str]


def disclosure_profiles(
    disclosures: Mapping[str, Disclosure],
    *,
    negated: Mapping[str, Disclosure] | None = None,
    colours: draw.Colours = None,
    of: str = "",
) -> Figure:
    """Oracle profiles of several systems; the legend tells (D_ECE, l_w, tag) of each.

    ``negated`` holds the disclosure of the negated scores of systems where it is the larger one;
    ``of`` says whose scores they are.
    """
    require(disclosures, "ZEBRA profiles")
    shades = draw.colours_for(list(disclosures), colours)
    negated_lines = {f"{system}, negated": (system, d) for system, d in (negated or {}).items()}
    lines = {system: (d.log_odds, d.oracle, d.note) for system, d in disclosures.items()}
    lines |= {name: (d.log_odds, d.oracle, d.note) for name, (_, d) in negated_lines.items()}
    shades |= {name: shades[system] for name, (system, _) in negated_lines.items()}
    first, shaded = next(iter(disclosures.values())), len(lines) <= _TOGETHER
    chart = _profiles(first, lines, shades, dotted=list(negated_lines), shaded=shaded)
    turned = bool(negated_lines)
    return captioned("zebra_profiles", chart, systems=lines, negated=turned, of=of, shaded=shaded)


def calibration_profiles(distortions: Sequence[CalibrationDistortion], *, of: str = "") -> Figure:
    """Both runs after oracle calibration, and the second calibrated by the first (Noé 2022, 8);
    ``of`` says whose scores they are.
    """
    require(distortions, "calibration distortion")
    runs = distortions[0].first, distortions[0].second
    lines = {f"{run.system}, oracle": (run.log_odds, run.oracle, run.note) for run in runs}
    for made in distortions:
        note = f"C_ECE {made.c_ece:.3f}, C_llr {made.cllr:.2f}"
        lines[f"{made.method} calibration"] = (made.second.log_odds, made.actual, note)
    colours = dict(zip(lines, ("#0072B2", "#6b7280", *PALETTE[1:]), strict=False))
    chart = _profiles(runs[0], lines, draw.colours_for(list(lines), colours))
    return captioned("calibration_distortion", chart, systems=lines, highest=HIGHEST, of=of)


def _profiles(
    first: Disclosure,
    lines: Mapping[str, _Profile],
    colours: Mapping[str, str],
    *,
    dotted: Sequence[str] = (),
    shaded: bool = False,
) -> Layers:
    """Profiles (log-odds, bits, note) below the prior's own, a dot at even odds."""
    every = {**lines, _PRIOR: (first.log_odds, first.prior, "")}
    rows = join(
        table(system=name, log_odds=x, bits=y, prior=first.prior)
        for name, (x, y, _) in every.items()
    )
    ends = float(first.log_odds[0]), float(first.log_odds[-1])
    x, y = _axes("Prior log-odds of a target, logit π (natural log)", ends)
    notes = {name: note for name, (*_, note) in lines.items()}
    colour = draw.system_colour(list(lines), colours, first=_PRIOR, notes=notes)
    dashes = {_PRIOR: DASHED, **dict.fromkeys(dotted, (1.5, 2))}
    strokes = {name: list(dashes.get(name, SOLID)) for name in (_PRIOR, *lines)}
    dash = draw.by(alt.StrokeDash, "system", strokes, legend=colour["legend"])
    systems = Chart(rows).transform_filter(alt.datum.system != _PRIOR)
    even = systems.transform_filter("abs(datum.log_odds) < 1e-9")
    gap = [draw.mark(systems, "area", x, y, alt.Y2("prior:Q"), colour, clip=True, fillOpacity=0.1)]
    return draw.in_panel(
        *(gap if shaded else ()),
        draw.mark(rows, "line", x, y, colour, dash, draw.tips("profiles"), clip=True),
        draw.dots(even, x, y, colour, clip=True, size=46),
        ratio=_RATIO,
    )
