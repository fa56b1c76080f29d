"""Scores of systems and their errors: densities, DET, ROC with convex hull, differences, a-DCF and
t-EER of three classes, groups of speakers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
from scipy.special import ndtr, ndtri

from unmask.engine import (
    CALIBRATED,
    Array,
    Comparison,
    DetBand,
    DetCurve,
    GroupGaps,
    Histogram,
    SpoofCurve,
)
from unmask.figures import draw
from unmask.figures.figure import Chart, Figure, Layers, captioned, join, require, table
from unmask.figures.theme import (
    DASHED,
    INK,
    MUTED,
    NARROW,
    NONTARGET,
    ORIGINAL,
    PALETTE,
    SOLID,
    TARGET,
    is_bare,
    is_wide,
    shorten,
    width,
)
from unmask.stress import ConfigScores

TICKS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
LOWEST, HIGHEST = 0.0005, 0.6

_POLYGON, _HULL = "measured (ROC polygon)", "convex hull"
_EER, _DCF = "equal error rate (hull)", "minimum DCF"
_LINES = {_POLYGON: SOLID, _HULL: DASHED}
_STROKES = {_POLYGON: 1.9, _HULL: 1.0}
_STEPS = 80


def det(
    curves: Mapping[str, DetCurve],
    *,
    colours: draw.Colours = None,
    bands: Mapping[str, DetBand] | None = None,
    hull: bool = True,
    spoofs_of: str = "",
) -> Figure:
    """DET curves of all systems: polygon solid, hull dashed, EER and minimum DCF marked.

    ``bands`` are those in which the misses of a system lie. With ``spoofs_of`` they are curves of
    that one system, by what its targets are told from.
    """
    require(curves, "DET")
    shades = draw.colours_for(list(curves), colours)
    rates = {name: f"EER {draw.percent(curve.eer)}" for name, curve in curves.items()}
    title = "Against" if spoofs_of else "System"
    colour = draw.system_colour(list(curves), shades, notes=rates, title=title)
    ends = ndtri([LOWEST, HIGHEST]).tolist()
    ticks = {
        "values": ndtri(TICKS).round(6).tolist(),
        "labelExpr": "format(100 * cumulativeNormal(datum.value, 0, 1), '.1~r')",
        "labelOverlap": False,
        "labelFontSize": 11 if is_wide() else 9,
    }
    x = draw.axis(alt.X, "x", "False alarms, P_FA (%)", ends, **ticks)
    y = draw.axis(alt.Y, "y", "Misses, P_miss (%)", ends, **ticks)
    grid: Array = ndtr(np.linspace(ends[0], ends[1], _STEPS))
    grid[[0, -1]] = LOWEST, HIGHEST
    lines = _LINES if hull else {_POLYGON: SOLID}
    dash = draw.line_kind(lines)
    dash = dash if is_bare() and hull else dash.legend(None)  # the caption tells
    channels = (x, y, colour, dash, alt.Order("step:Q"), draw.tips("det"))
    diagonal = _on_axes(table(p_fa=[LOWEST, HIGHEST], p_miss=[LOWEST, HIGHEST]))
    chart = draw.in_panel(
        *(_band(band, shades[system]) for system, band in (bands or {}).items()),
        draw.mark(diagonal, "line", x, y, clip=True, color="#9ca3af", strokeWidth=0.8),
        *(
            draw.mark(_on_axes(rows), "line", *channels, clip=True, strokeWidth=stroke)
            for rows, stroke in _followed(curves, lines, grid, grid, HIGHEST)
        ),
        _marks(curves, x, y, colour, least=not spoofs_of),
        ratio=1,
    )
    return captioned(
        "det_spoof" if spoofs_of else "det",
        chart,
        system=spoofs_of,
        rates=_equal_errors(curves),
        priors=[f"{p:g}" for p in sorted({curve.p_target for curve in curves.values()})],
        hull=hull,
        lowest=100 * LOWEST,
        highest=100 * HIGHEST,
        perfect=[shorten(n) for n, c in curves.items() if c.eer == 0],
        outside=[shorten(n) for n, c in curves.items() if c.eer > HIGHEST],
        bands=bool(bands),
    )


def _equal_errors(curves: Mapping[str, DetCurve]) -> str:
    return "; ".join(f"{n}, EER {draw.percent(c.eer)}" for n, c in curves.items())


def _followed(
    curves: Mapping[str, DetCurve],
    lines: Iterable[str],
    at_fa: Array,
    at_miss: Array,
    highest: float = 1.0,
) -> Iterator[tuple[alt.InlineData, float]]:
    """Rows and stroke of each kind of line, followed at the grids up to ``highest``."""
    for line in lines:
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
        yield join(parts), _STROKES[line]


def _on_axes(rows: alt.InlineData, **rates: str) -> alt.Chart:
    """Rates as normal deviates: ``{coordinate: rate}``, by default ``x`` and ``y`` of both."""
    fields = {"x": "p_fa", "y": "p_miss", **rates}
    return Chart(rows).transform_calculate(
        **{
            place: f"quantileNormal(clamp(datum.{rate}, {LOWEST}, {HIGHEST}), 0, 1)"
            for place, rate in fields.items()
        }
    )


def _band(band: DetBand, colour: str) -> alt.Chart:
    rows = _on_axes(table(p_fa=band.p_fa, low=band.low, high=band.high), y="low", y2="high")
    places = alt.X("x:Q"), alt.Y("y:Q"), alt.Y2("y2:Q")
    return draw.mark(rows, "area", *places, clip=True, opacity=0.16, color=colour)


def _marks(
    curves: Mapping[str, DetCurve], x: alt.X, y: alt.Y, colour: alt.Color, *, least: bool
) -> alt.Chart:
    """The equal error rate and, if wanted, the ``least`` detection cost of each system."""
    equal = [table(system=n, point=_EER, p_fa=c.eer, p_miss=c.eer) for n, c in curves.items()]
    fields = {"p_fa": "min_dcf_p_fa", "p_miss": "min_dcf_p_miss", "p_target": "p_target"}
    costs = [
        table(system=n, point=_DCF, **{field: getattr(c, own) for field, own in fields.items()})
        for n, c in curves.items()
    ]
    shapes = {_EER: "circle", _DCF: "diamond"} if least else {_EER: "circle"}
    named = draw.legend("Point", symbolFillColor=MUTED, symbolStrokeWidth=0) if is_bare() else None
    shape = draw.by(alt.Shape, "point", shapes, legend=named)
    channels = (x, y, colour, shape, draw.tips("det_marks"))
    points = _on_axes(join(equal + costs if least else equal))
    return draw.dots(points, *channels, size=64, stroke="white", strokeWidth=1)


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


_EDGE = 150.0
_STEPS_OF_GAINS = (1, 2, 5, 10, 20, 25, 50, 100)
_PLACES = {"within": "circle", "left": "triangle-left", "right": "triangle-right"}
_VERDICT = re.compile(r" \(EER .*")


def difference_intervals(comparison: Comparison, labels: Sequence[str]) -> Figure:
    """Every difference, by its label, as a share of the first system's value; to the right the
    second recognises better, or as a safeguard protects more. The axis ends at ±150 %, and what
    lies beyond is named, as is what has no share or interval.
    """
    names, ends, left_out, calibrated, level, whole = [], [], [], [], 0.95, False
    for label, row in zip(labels, comparison.differences, strict=True):
        if comparison.privacy and row.first.metric in CALIBRATED:
            calibrated.append(label)
            continue
        first, interval = float(row.first.value), row.interval
        level = level if interval is None else interval.level
        if interval is None or not math.isfinite(interval.low) or not 0 < first < math.inf:
            left_out.append(label)
            continue
        more = row.lower_is_better == comparison.privacy
        share = (100 if more else -100) / first
        names.append(label)
        low, high = sorted((share * interval.low, share * interval.high))
        whole = whole or (high > 100 and not more)
        ends.append((low, share * float(row.value), high))
    lows, values, highs = zip(*ends, strict=True) if ends else ((), (), ())
    words = {True: "excludes 0", False: "includes 0"}
    clear = [words[low > 0 or high < 0] for low, _, high in ends]
    sides = [list(_PLACES)[(abs(v) > _EDGE) * (1 + (v > 0))] for v in values]
    rows = table(metric=names, low=lows, value=values, high=highs, clear=clear, where=sides)
    gained = f"{comparison.second} {comparison.gains} by, relative to {comparison.first} (%)"
    y = alt.Y("metric:N", sort=names, title=None)
    shades = alt.Scale(domain=list(words.values()), range=["#0072B2", "#9ca3af"])
    colour = alt.Color("clear:N", title="Interval", scale=shades)
    tips = draw.tips("compare_differences")
    beyond = [f"{n} ({v:+,.0f} %)" for n, v in zip(names, values, strict=True) if abs(v) > _EDGE]
    edges = [max(min(lows, default=0.0), -_EDGE), min(max(highs, default=0.0), _EDGE)]
    step = next(s for s in _STEPS_OF_GAINS if edges[1] - edges[0] <= s * (8 if is_wide() else 4))
    first, last = math.floor(edges[0] / step), math.ceil(edges[1] / step)
    reach, ticks = (step * first, step * last), [step * i for i in range(first, last + 1)]
    spans = (draw.axis(alt.X, "low", gained, reach, clamp=True, values=ticks), alt.X2("high:Q"))
    shape = draw.by(alt.Shape, "where", _PLACES)
    chart = draw.in_panel(
        draw.mark(table(at=[0.0]), "rule", alt.X("at:Q"), color=INK, strokeWidth=1),
        draw.mark(rows, "rule", *spans, y, colour, tips, strokeWidth=2.4),
        draw.dots(rows, alt.X("value:Q"), y, colour, shape, tips, size=60),
        ratio=0.5,
    )
    verdict = _VERDICT.sub(" and protects less", comparison.verdict).partition(":")[0]
    return captioned(
        "compare_differences",
        chart,
        verdict=verdict if "EER" in verdict else f"{verdict} (by EER)",
        gains=comparison.gains,
        first=comparison.first,
        second=comparison.second,
        level=100 * level,
        whole=whole,
        beyond=[one.replace("-", "−") for one in beyond],
        left_out=left_out,
        calibrated=calibrated,
    )


_TARGET, _NONTARGET = "target (same voice)", "nontarget (other voice)"


def score_histograms(curves: Mapping[str, Histogram]) -> Figure:
    """One panel per system: both densities as steps, the EER threshold as a rule."""
    require(curves, "score histograms")
    columns = draw.panel_columns(len(curves))
    inner = min(width(), 560) - 84 if columns == 1 else (width() - 70 - 46 * columns) / columns
    alone = len(curves) == 1
    height = 240 if alone and width() > NARROW else 150
    panels = []
    for i, (system, curve) in enumerate(curves.items()):
        x = _scores(curve, "Score", ticks=4)
        label = "Density" if i % columns == 0 else None
        y = draw.axis(alt.Y, "density", label, (0, _top(curve)), tickCount=4)
        layers = [
            _areas(curve, x, y),
            *_threshold(curve.eer_threshold, draw.tips("threshold")),
            _bins(system, curve),
            *([] if alone else [draw.panel_title(system)]),
        ]
        panels.append(alt.layer(*layers).properties(width=int(inner), height=height))
    hidden = [f"{c.infinite:,} ({shorten(n)})" for n, c in curves.items() if c.infinite]
    unset = [shorten(n) for n, c in curves.items() if not math.isfinite(c.eer_threshold)]
    return captioned(
        "score_histograms",
        alt.concat(*panels, columns=columns, spacing=18),
        systems=curves,
        system=next(iter(curves)) if alone else "",
        several=not alone,
        hidden=hidden,
        unset=unset,
    )


def _top(*curves: Histogram | ConfigScores) -> float:
    """The end of an axis that shows all densities."""
    return 1.06 * max(float(d.max(initial=0)) for c in curves for d in (c.target, c.nontarget)) or 1


def _scores(curve: Histogram | ConfigScores, title: str | None, *, ticks: int) -> alt.X:
    ends = (float(curve.edges[0]), float(curve.edges[-1]))
    return draw.axis(alt.X, "score", title, ends, tickCount=ticks, grid=False)


def _areas(curve: Histogram | ConfigScores, x: alt.X, y: alt.Y, *more: Any) -> alt.Chart:
    """Both densities as steps, targets above."""
    steps = join(
        table(trials=kind, score=curve.edges, density=np.append(density, density[-1:]))
        for kind, density in ((_NONTARGET, curve.nontarget), (_TARGET, curve.target))
    )
    colour = draw.by(
        alt.Color,
        "trials",
        {_TARGET: TARGET, _NONTARGET: NONTARGET},
        legend=alt.Legend(title=None, orient="bottom", symbolType="square", direction="horizontal"),
    )
    style = {"interpolate": "step-after", "fillOpacity": 0.25, "line": {"strokeWidth": 1.4}}
    return draw.mark(steps, "area", x, y.stack(None), colour, *more, **style)


def _threshold(score: float, *more: Any) -> list[alt.Chart]:
    """A rule, where the threshold is finite."""
    rows = table(score=score)
    rule = draw.dashed(rows, alt.X("score:Q"), *more, color=INK, strokeWidth=1.2)
    return [rule] if math.isfinite(score) else []


def _bins(system: str, curve: Histogram) -> alt.Chart:
    """Invisible bars that answer the pointer."""
    bins = table(
        system=system,
        score=curve.edges[:-1],
        end=curve.edges[1:],
        target=curve.target,
        nontarget=curve.nontarget,
        density=np.maximum(curve.target, curve.nontarget),
    )
    places = (alt.X("score:Q"), alt.X2("end:Q"), alt.Y("density:Q"), alt.Y2Datum(0))
    return draw.mark(bins, "rect", *places, draw.tips("score_histograms"), opacity=0)


def trial_bias_figure(configs: Sequence[ConfigScores]) -> Figure:
    """One panel per trial config below the other, all on the same axes."""
    require(configs, "trial bias", "trial config")
    y = draw.axis(alt.Y, "density", "Density", (0, _top(*configs)), tickCount=3)
    panels = [
        alt.layer(
            _areas(config, _scores(config, below, ticks=6), y, draw.tips("trial_bias")),
            *_threshold(config.threshold),
            *draw.heading(
                shorten(config.name),
                f"EER {draw.percent(config.eer)}, {config.targets:,} target and "
                f"{config.nontargets:,} nontarget trials",
            ),
        ).properties(width=460 if is_wide() else 250, height=120)
        for config, below in zip(configs, [None] * (len(configs) - 1) + ["Score"], strict=True)
    ]
    rates = "; ".join(f"{c.name}: {draw.percent(c.eer)}" for c in configs)
    chart, names = alt.vconcat(*panels, spacing=30), [c.name for c in configs]
    return captioned("trial_bias", chart, configs=names, rates=rates)


_SPOOF = PALETTE[4]
SPOOF_SHADES = {"SV: nontargets": NONTARGET, "SPF: spoofs": _SPOOF, "SASV: both": INK}
"""What targets are told from, and the colours of it."""


def a_dcf_curves(curves: Mapping[str, SpoofCurve]) -> Figure:
    """One panel per system: the cost over thresholds, its parts dashed, its least value a dot."""
    require(curves, "a-DCF")
    named = alt.Legend(title=None, orient="bottom", symbolType="stroke", columns=2, labelLimit=200)
    panels = {(name, "Threshold"): curve for name, curve in curves.items()}
    parts = next(iter(curves.values())).lines
    dashes = {part: list(DASHED if number else SOLID) for number, part in enumerate(parts)}
    dash = draw.by(alt.StrokeDash, "part", dashes, legend=named)
    one = draw.dashed(table(cost=1.0), alt.Y("cost:Q"), strokeWidth=1)
    fields, shades = ("part", "cost", "Normalised cost"), (INK, TARGET, NONTARGET, _SPOOF)
    chart = _panels("a_dcf", panels, fields, shades, named, dash, under=[one], top=1.5)
    return captioned("a_dcf", chart, systems=curves)


def t_eer_paths(paths: Mapping[tuple[str, str], SpoofCurve]) -> Figure:
    """One panel per pair of systems: errors along the path of each share of spoofs."""
    require(paths, "t-EER", "pair of systems")
    named = alt.Legend(title="Among impostors", orient="bottom", symbolType="stroke")
    panels = {(name, f"Threshold of {cm}"): path for (name, cm), path in paths.items()}
    fields = ("share", "error", "Error of the tandem (%)")
    shades = NONTARGET, PALETTE[2], _SPOOF
    percent = "format(100 * datum.value, '~r')"
    chart = _panels("t_eer_path", panels, fields, shades, named, labelExpr=percent, tickCount=5)
    return captioned("t_eer_path", chart, systems=[f"{path} with {cm}" for path, cm in paths])


def _panels(
    name: str,
    curves: Mapping[tuple[str, str], SpoofCurve],
    fields: tuple[str, str, str],
    shades: tuple[str, ...],
    named: alt.Legend,
    *looks: Any,
    under: list[Any] | None = None,
    top: float | None = None,
    **axis: Any,
) -> alt.ConcatChart:
    """A panel per system and name of thresholds: its lines, and a dot where it is judged."""
    line, number, title = fields
    columns = draw.panel_columns(len(curves))
    inner = draw.main_panel() if columns == 1 else (width() - 70 - 60 * columns) / columns
    panels = []
    for i, ((system, over), curve) in enumerate(curves.items()):
        colour = draw.by(alt.Color, line, dict(zip(curve.lines, shades, strict=True)), legend=named)
        rows = join(
            table(**{line: part, "score": curve.threshold, number: y})
            for part, y in curve.lines.items()
        )
        ends = float(curve.threshold[0]), float(curve.threshold[-1])
        x = draw.axis(alt.X, "score", over, ends, tickCount=5)
        highest = top or 1.08 * max(row[number] or 0 for row in rows.values) or 1
        y = draw.axis(alt.Y, number, None if i % columns else title, (0, highest), **axis)
        dot = table(**{"score": curve.at, number: curve.value})
        value = f", t-EER {draw.percent(curve.value)}"
        layers = [
            *(under or ()),
            draw.mark(rows, "line", x, y, colour, *looks, draw.tips(name), clip=True),
            *([draw.dots(dot, x, y, size=64, color=INK)] if math.isfinite(curve.at) else []),
            draw.panel_title(system, f", a-DCF {curve.value:.3f}" if name == "a_dcf" else value),
        ]
        panels.append(alt.layer(*layers).properties(width=int(inner), height=int(min(inner, 240))))
    return alt.concat(*panels, columns=columns, spacing=24)


_NAMES = {"fnmr": "FNMR", "fmr": "FMR", "linkability": "Linkability"}
_NAMES |= {"singling_out": "Singling Out", "deid": "DeID"}
_COLOURS = {"worst": NONTARGET, "others": ORIGINAL}
_ROW = 30


def group_intervals(gaps: GroupGaps) -> Figure:
    """A panel for each number: a dot and its interval for each group, a dashed line for all; the
    worst group is orange where equal groups rarely read as much.
    """
    people = {row.name: row for row in gaps.groups if row.name not in ("all", "across groups")}
    labels = {name: f"{shorten(name, limit=16)} ({row.size})" for name, row in people.items()}
    worst = {metric: _worst(gaps, metric) for metric in gaps.metrics}
    panels = [_panel(gaps, metric, labels, worst[metric]) for metric in gaps.metrics]
    return captioned(
        "groups",
        alt.concat(*panels, columns=len(panels) if is_wide() else 1),
        title="; ".join(_headline(gaps, metric) for metric in gaps.metrics),
        system=gaps.system,
        point=gaps.point,
        column=gaps.column,
        words=" ".join(f"{_NAMES[metric]}: {gaps.sentence(metric)}" for metric in gaps.metrics),
        few=[name for name, row in people.items() if row.size.endswith("few")],
        clear=any(worst.values()),
    )


def _panel(gaps: GroupGaps, metric: str, labels: dict[str, str], worst: str | None) -> Layers:
    found = gaps.of(metric)
    every = found.pop("all", None)
    ends = [estimate.interval for estimate in found.values()]
    rows = table(
        group=list(found),
        value=[100 * float(estimate.value) for estimate in found.values()],
        low=[None if made is None else 100 * made.low for made in ends],
        high=[None if made is None else 100 * made.high for made in ends],
        people=[labels[name] for name in found],
        kind=["worst" if name == worst else "others" for name in found],
    )
    axis, shown = alt.Axis(labelExpr=draw.lookup(labels), labelLimit=220), f"{_NAMES[metric]} (%)"
    first = metric == gaps.metrics[0] or not is_wide()
    y = alt.Y("group:N", sort=list(labels), title=None, axis=axis if first else None)
    x = alt.X("value:Q", title=shown, scale=alt.Scale(zero=True))
    looks = (y, draw.by(alt.Color, "kind", _COLOURS), draw.tips("groups"))
    layers = [
        draw.mark(
            rows, "rule", alt.X("low:Q", title=shown), alt.X2("high:Q"), *looks, strokeWidth=2.4
        ),
        draw.dots(rows, x, *looks, size=70),
    ]
    if every is not None:
        line = table(value=100 * float(every.value))
        layers.insert(0, draw.dashed(line, x, color=INK, strokeWidth=1.2))
    side = (width() - 150) // len(gaps.metrics) if is_wide() else 200
    return alt.layer(*layers).properties(width=side, height=_ROW * len(labels))


def _worst(gaps: GroupGaps, metric: str) -> str | None:
    """The group with the highest number, of DeID the lowest, where equal groups rarely read it."""
    luck = gaps.level_of(metric)
    return gaps.ends(metric)[metric != "deid"] if luck is not None and luck.beyond else None


def _headline(gaps: GroupGaps, metric: str) -> str:
    """Who stands out in a number, or that nobody does, or that this is not known."""
    name, worst = _NAMES[metric], _worst(gaps, metric)
    if gaps.level_of(metric) is None:
        return f"{gaps.why_no_level(metric)} to compare {name}"
    if worst is None:
        return f"no group stands out in {name}"
    return f"{name} {'lowest' if metric == 'deid' else 'highest'} in {shorten(worst)}"
