"""What scores are worth as evidence: calibration, its map, cross-entropy over the prior."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Unpack

import altair as alt
import numpy as np

from unmask.base import FloatArray
from unmask.engine import EceProfile, PavMap, Reliability
from unmask.figures import draw
from unmask.figures.figure import Called, Figure, Layers, captioned, join, require, table
from unmask.figures.theme import CHANCE, DASHED, MUTED, PALETTE, SOLID, WIDE, shorten
from unmask.privacy import CalibrationDistortion, Disclosure

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
    legend = draw.legend(
        width=width,
        title="Trials in the bin",
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
    triangle = (alt.X("score:Q"), y, colour, shape)
    layer = partial(draw.mark, ends, hover=hover)
    chart = draw.in_panel(
        draw.dashed(table(score=same, llr=same), x, y, kind="line", clip=True, strokeWidth=1),
        draw.mark(table(llr=inner), "rule", y, color=MUTED, strokeWidth=0.6),
        draw.mark(steps, "line", x, y, colour, alt.Order("step:Q"), hover=hover, clip=True),
        layer("rule", x, alt.X2("far:Q"), y, colour, clip=True, strokeWidth=1.8),
        layer("point", *triangle, filled=True, size=70, opacity=1),
        width=width,
        ratio=0.85,
    )
    return captioned("pav_map", chart, systems=curves, infinite=bool(ends.values))


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


HIGHEST = 1.08
_RATIO = 0.78
_BITS = "log_odds:Q|Prior log-odds|.2f; bits:Q|Cross-entropy (bits)|.4f"
_NO_SCORES = "prior alone, no scores"
_ORACLE, _ACTUAL = "oracle (calibrated)", "actual (scores as LLRs)"


def _axes(title: str, ends: tuple[float, float], *, width: float) -> tuple[alt.X, alt.Y]:
    """Log-odds of the prior, and bits of cross-entropy."""
    bits: draw.Style = {"values": [0, 0.2, 0.4, 0.6, 0.8, 1.0], "format": ".1f"}
    return (
        draw.axis(alt.X, "log_odds", title, ends, tickCount=10 if draw.is_wide(width) else 5),
        draw.axis(alt.Y, "bits", "Empirical cross-entropy (bits)", (0, HIGHEST), **bits),
    )


def ece_profile(
    curves: Mapping[str, EceProfile],
    *,
    colours: Mapping[str, str] | None = None,
    width: float = WIDE,
) -> Figure:
    """ECE of every system, oracle solid and actual dashed, below the prior's entropy in black."""
    require(curves, "ECE profile")
    reference = next(iter(curves.values()))
    lines = [(_NO_SCORES, _ORACLE, reference.log_odds, reference.prior)]
    for system, curve in curves.items():
        lines += [
            (system, _ORACLE, curve.log_odds, curve.oracle),
            (system, _ACTUAL, curve.log_odds, curve.actual),
        ]
    rows = join(table(system=s, line=line, log_odds=x, bits=y) for s, line, x, y in lines)
    odds = np.concatenate([curve.log_odds for curve in curves.values()])
    ends = (float(odds.min()), float(odds.max()))
    channels = (
        *_axes("Prior log-odds of a target (natural log)", ends, width=width),
        draw.system_colour(list(curves), colours, width=width, first=_NO_SCORES),
        draw.line_kind({_ORACLE: SOLID, _ACTUAL: DASHED}, width=width),
    )
    hover = f"system:N|System; line:N|Line; {_BITS}"
    even = alt.Chart(rows).transform_filter("abs(datum.log_odds) < 1e-9")
    even = even.transform_filter(alt.datum.system != _NO_SCORES)
    dot = {"size": 46, "filled": True, "opacity": 1}
    chart = draw.in_panel(
        draw.mark(rows, "line", *channels, hover=hover, clip=True),
        draw.mark(even, "point", *channels, hover=hover, clip=True, **dot),
        width=width,
        ratio=_RATIO,
    )
    cut = [shorten(name) for name, curve in curves.items() if not np.all(curve.actual <= HIGHEST)]
    return captioned("ece_profile", chart, systems=curves, highest=HIGHEST, cut=cut)


_PRIOR = "perfect privacy"


def disclosure_profiles(
    disclosures: Mapping[str, Disclosure],
    *,
    negated: Mapping[str, Disclosure] | None = None,
    colours: Mapping[str, str] | None = None,
    width: float = WIDE,
    **called: Unpack[Called],
) -> Figure:
    """Oracle profiles of several systems; labels tell (D_ECE, l_w, tag) of each.

    ``negated`` holds the disclosure of the negated scores of systems where it is the larger one.
    """
    require(disclosures, "ZEBRA profiles")
    shades = draw.colours_for(list(disclosures), colours)
    turned = {f"{system}, negated": system for system in negated or {}}
    every = {**disclosures, **{name: (negated or {})[system] for name, system in turned.items()}}
    chart = _profiles(
        next(iter(disclosures.values())),
        {system: (d.log_odds, d.oracle) for system, d in every.items()},
        colours=shades | {name: shades[system] for name, system in turned.items()},
        notes={system: d.note for system, d in every.items()},
        width=width,
        dotted=list(turned),
    )
    return captioned("zebra_profiles", chart, called, systems=every, negated=bool(turned))


def calibration_profiles(
    distortions: Sequence[CalibrationDistortion], *, width: float = WIDE, **called: Unpack[Called]
) -> Figure:
    """Both runs after oracle calibration, and the second calibrated by the first (Noé 2022, 8)."""
    require(distortions, "calibration distortion")
    lines: dict[str, tuple[FloatArray, FloatArray]] = {}
    notes: dict[str, str] = {}
    for run in (distortions[0].first, distortions[0].second):
        lines[f"{run.system}, oracle"] = (run.log_odds, run.oracle)
        notes[f"{run.system}, oracle"] = run.note
    for made in distortions:
        lines[f"{made.method} calibration"] = (made.second.log_odds, made.actual)
        notes[f"{made.method} calibration"] = f"C_ECE {made.c_ece:.3f}, C_llr {made.cllr:.2f}"
    colours = dict(zip(lines, ("#0072B2", "#6b7280", *PALETTE[1:]), strict=False))
    chart = _profiles(distortions[0].first, lines, colours=colours, notes=notes, width=width)
    return captioned("calibration_distortion", chart, called, systems=lines, highest=HIGHEST)


def _profiles(
    first: Disclosure,
    lines: Mapping[str, tuple[FloatArray, FloatArray]],
    *,
    colours: Mapping[str, str],
    notes: Mapping[str, str],
    width: float,
    dotted: Sequence[str] = (),
) -> Layers:
    """Profiles with their names and ``notes`` at even odds, below the prior's own."""
    every = {_PRIOR: (first.log_odds, first.prior), **lines}
    shades = {_PRIOR: CHANCE, **draw.colours_for(list(lines), colours)}
    rows = join(table(system=name, log_odds=x, bits=y) for name, (x, y) in every.items())
    ends = float(first.log_odds[0]), float(first.log_odds[-1])
    x, y = _axes("Prior log-odds of a target, logit π (natural log)", ends, width=width)
    labels = {name: f"{shorten(name, limit=22)} ({notes[name]})" for name in lines}
    names = draw.labels_at(
        {name: (0.0, float(min(bits.max(), HIGHEST))) for name, (_, bits) in every.items()},
        shades,
        x,
        y,
        ends=(0.0, HIGHEST),
        height=_RATIO * draw.main_panel(width),
        labels={_PRIOR: _PRIOR, **labels},
    )
    is_dotted = alt.FieldOneOfPredicate(field="system", oneOf=list(dotted))
    dash = alt.condition(is_dotted, alt.value([1.5, 2]), alt.value(list(SOLID)))
    is_prior = alt.datum.system == _PRIOR
    base = alt.Chart(rows).encode(x, y, draw.by(alt.Color, "system", shades))
    hover = f"system:N|Profile; {_BITS}"
    profiles = base.transform_filter(~is_prior).encode(strokeDash=dash)
    prior = base.transform_filter(is_prior)
    return draw.in_panel(
        draw.mark(profiles, "line", hover=hover, clip=True),
        draw.mark(prior, "line", hover=hover, clip=True, strokeDash=list(DASHED)),
        *names,
        width=width,
        ratio=_RATIO,
    )
