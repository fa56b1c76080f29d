"""The legally validated metrics: risk against the number of speakers and of people trained on, and
speaker by speaker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from unmask.base import FloatArray, IntArray
from unmask.errors import InputError
from unmask.figures import draw
from unmask.figures.figure import Chart, Figure, Layers, captioned, join, require, table
from unmask.figures.theme import (
    CHANCE,
    DASHED,
    INK,
    ORIGINAL,
    PALETTE,
    is_wide,
    shorten,
    system_colours,
    width,
)
from unmask.privacy.legal import (
    TITLES,
    Curve,
    ExtrapolatedLinkability,
    LearningCurve,
    LegalSweep,
    Ranks,
    RiskCurve,
    SinglingOut,
    Strongest,
    spoken,
)

_DIGIT = 7.0
_TITLES = {
    "singling_out": ("Singling Out (%)", "N test speakers (log scale)"),
    "linkability": ("Linkability (%)", "N′ enrolment speakers (log scale)"),
    "one_minus_eer": ("1 − EER (%)", "N′ enrolment speakers (log scale)"),
}
_CHANCE = "chance"
_CONTINUED = (5, 3)
_TEXT = alt.Text("text:N")


def legal_figures(sweep: LegalSweep, *, length: int | None = None) -> list[Figure]:
    """Draw the panel, the risks of speakers by metric, and the ranks.

    Risks of speakers and ranks are those of conversations of one ``length``: by default the length
    at which the largest risk of the metric was found, for ranks that of Linkability.
    """
    if length is not None and length not in sweep.lengths:
        known = ", ".join(map(str, sweep.lengths))
        raise InputError("length", f"one of {known}", length)
    figures = [legal_panel(sweep)]
    for metric in ("singling_out", "linkability"):
        if metric not in sweep.metrics:
            continue
        chosen = sweep.worst(metric).length if length is None else length
        if chosen not in sweep.lengths_of(metric):
            continue
        shown = {name: sweep.shown(name, metric, chosen) for name in sweep.attackers}
        curves = {name: curve for name, curve in shown.items() if isinstance(curve, RiskCurve)}
        if curves:
            drawn = speaker_risks(curves, original=sweep.original)
            figures.append(drawn.called(f"{drawn.name}_{metric}"))
        if metric == "linkability":
            ranks = {name: r for (name, size), r in sweep.ranks.items() if size == chosen}
            figures.append(rank_histograms(ranks, original=sweep.original))
    return figures


def legal_panel(sweep: LegalSweep, *, headlines: Mapping[str, Strongest] | None = None) -> Figure:
    """Rows are metrics, columns lengths; a line per attacker with its interval, chance dashed.

    ``headlines`` are the risks by metric that are told first, those of ``sweep.worst`` unless
    given: a ring marks each on the curve of its attack.
    """
    require(sweep.curves, "legal panel", "curve")
    rings = headlines or {metric: sweep.worst(metric) for metric in sweep.metrics}
    across = len(sweep.lengths) if is_wide() else 1
    inner = min(380, int((width() - 62 - 34 * across) / across))
    panels = [
        _panel(sweep, metric, length, rings[metric], room=inner, first=i == 0 or across == 1)
        if length in sweep.lengths_of(metric)
        else alt.layer(draw.mark(table(text="nobody has two conversations"), "text", _TEXT))
        for metric in sweep.metrics
        for i, length in enumerate(sweep.lengths)
    ]
    for i, length in enumerate(sweep.lengths * (len(sweep.metrics) if across == 1 else 1)):
        panels[i] += draw.above(f"L = {spoken(length)}", lift=5)
    sized = [panel.properties(width=inner, height=_height()) for panel in panels]
    chart = alt.concat(*sized, columns=across, spacing=14)
    return captioned(
        "legal_panel",
        chart.resolve_scale(color="shared", strokeDash="shared"),
        metrics=[_TITLES[metric][0] for metric in sweep.metrics],
        rings="; ".join(f"{TITLES[metric]} by {one.attacker}" for metric, one in rings.items()),
        original=sweep.original and shorten(sweep.original),
        singling_out="singling_out" in sweep.metrics,
        extrapolated=bool(sweep.crowds),
    )


def _panel(
    sweep: LegalSweep, metric: str, length: int, headline: Strongest, *, room: int, first: bool
) -> Layers:
    label, who = _TITLES[metric]
    told, value = length == headline.length, float(headline.estimate.value)
    curves = {}
    for name in sweep.attackers:
        own = sweep.competing(metric, length, [name]) if told else {}
        curves[name] = own.get(headline.attacker) or sweep.shown(name, metric, length)
    ring = table(count=headline.count, value=value, text=f"{100 * value:.1f}")
    crowd = sweep.crowds.get(length) if metric == "linkability" else None
    x = _counts(who, [*curves.values(), *([] if crowd is None else [crowd])], room)
    y = draw.percent_axis(alt.Y, "value", label if first else None)
    rows = join(
        table(attacker=attacker, scores=curve.variant, **_columns(curve, "residual", "attacks"))
        for attacker, curve in curves.items()
    )
    short = {n: shorten(n) for n in (*sweep.attackers, _CHANCE)}
    paint, dash = draw.attacker_lines(
        short,
        original=sweep.original,
        chance=_CHANCE,
        title="Attacker",
        orient="bottom",
        columns=(0 if len(short) < 6 else 3) if is_wide() else 2,
    )
    one = max(curves.values(), key=lambda curve: curve.counts.max())
    chance = table(attacker=_CHANCE, **_chance(one, crowd))
    further = [] if crowd is None else _continued(_beyond(crowd), x, y, alt.ColorValue(INK))
    hollow: draw.Style = {"filled": False, "size": 90, "color": INK, "strokeWidth": 1.6}
    text: draw.Style = {"align": "left", "dx": 7, "dy": 8, "fontWeight": 600}
    marks = (
        draw.dots(ring, x, y, **hollow),
        draw.mark(ring, "text", x, y, alt.Text("text:N"), **text),
    )
    return alt.layer(
        *_of_paper(one, x, y),
        *further,
        draw.band(rows, x, y, paint, opacity=0.1),
        draw.mark(chance, "line", x, y, paint, dash, strokeWidth=1.1, clip=True),
        draw.mark(rows, "line", x, y, paint, dash, strokeWidth=1.7, clip=True),
        draw.mark(rows, "point", x, y, paint, draw.tips("legal_panel"), filled=True, size=14),
        *(marks if told else ()),
    )


def _height() -> int:
    return 150 if is_wide() else 90


def _beyond(crowd: ExtrapolatedLinkability, **names: str) -> alt.InlineData:
    """What is extrapolated, from what was measured on."""
    ends = zip(("value", "low", "high"), crowd.measured, strict=True)
    columns = {name: [first, *getattr(crowd, name)] for name, first in ends}
    return table(count=[crowd.people, *crowd.counts], **columns, **names)


def _continued(rows: alt.InlineData, x: alt.X, y: alt.Y, colour: Any) -> list[alt.Chart]:
    """A dashed line and a paler band."""
    style = {"strokeDash": list(_CONTINUED), "strokeWidth": 1.4, "clip": True}
    return [
        draw.band(rows, x, y, colour, opacity=0.07),
        draw.mark(rows, "line", x, y, colour, **style),
    ]


def _chance(curve: Curve, *crowds: Curve | None) -> dict[str, FloatArray]:
    """Chance at all counts, those beyond the people at hand too."""
    every = [curve, *(one for one in crowds if one is not None)]
    counts, levels = (np.concatenate([getattr(o, f) for o in every]) for f in ("counts", "chance"))
    counts, first = np.unique(counts, return_index=True)
    return {"count": counts, "value": levels[first]}


def _of_paper(curve: Curve, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """The chance of the paper as a thin line, where another level is what an attack must exceed."""
    if not isinstance(curve, SinglingOut):
        return []
    rows = table(count=curve.counts, value=np.full(len(curve.counts), curve.chance_paper))
    return [draw.mark(rows, "line", x, y, color=CHANCE, strokeWidth=0.5, clip=True)]


def _columns(curve: Curve, *more: str) -> dict[str, object]:
    """What charts of a curve show at each count: the value, its interval, chance, and ``more``."""
    fields = ("value", "low", "high", "chance", *more)
    return {"count": curve.counts, **{name: getattr(curve, name) for name in fields}}


def _counts(title: str, curves: Sequence[Curve], room: float, **options: bool) -> alt.X:
    """The numbers of speakers of all curves, along ``room`` pixels."""
    counts = sorted({int(count) for curve in curves for count in curve.counts})
    ends = (counts[0], max(counts[-1], counts[0] + 1))
    how: draw.Style = {"values": count_ticks(counts, room), "format": ","}
    how |= {"labelFlush": True, "labelOverlap": False, **options}
    return draw.axis(alt.X, "count", title, ends, log=True, **how)


def count_ticks(counts: Sequence[int], room: float) -> list[int]:
    """Of ascending numbers both ends, and between them those whose labels find ``room``."""
    least, most = counts[0], counts[-1]
    ticks = [least]
    for count in counts[1:-1]:
        wanted = _DIGIT * max(len(f"{one:,}") + 1 for one in (count, most)) / room
        left, right = np.log([count / ticks[-1], most / count]) / np.log(most / least)
        if min(left, right) >= wanted:
            ticks.append(count)
    return ticks if most == least else [*ticks, most]


@dataclass(frozen=True)
class RiskLine:
    """The curve of one safeguard under its strongest attacker, and what lies ``beyond`` it."""

    safeguard: str
    attacker: str
    metric: str
    length: int
    curve: Curve
    beyond: ExtrapolatedLinkability | None = None


def risk_comparison(
    lines: Sequence[RiskLine], *, colours: Mapping[str, str], original: str | None = None
) -> Figure:
    """Rows are metrics, columns lengths; a line per safeguard, chance dashed."""
    require(lines, "risk comparison")
    metrics = list(dict.fromkeys(line.metric for line in lines))
    lengths = list(dict.fromkeys(line.length for line in lines))
    across = len(lengths) if is_wide() else 1
    inner = min(380, int((width() - 62 - 34 * across) / across))
    shades = {line.safeguard: colours[line.safeguard] for line in lines}
    panels = [
        _risk_panel(
            [line for line in lines if (line.metric, line.length) == (metric, length)],
            shades,
            room=inner,
            first=length == lengths[0] or across == 1,
        ).properties(width=inner, height=_height())
        for metric in metrics
        for length in lengths
    ]
    chart = alt.concat(*panels, columns=across, spacing=14).resolve_scale(color="shared")
    grey, beyond = original is not None, any(line.beyond is not None for line in lines)
    return captioned(
        "risk_comparison", chart, safeguards=shades, original=grey, extrapolated=beyond
    )


def _risk_panel(
    lines: Sequence[RiskLine], colours: Mapping[str, str], *, room: float, first: bool
) -> Layers:
    metric, most = lines[0].metric, max((one.curve for one in lines), key=lambda c: c.counts.max())
    crowds = {line.safeguard: line.beyond for line in lines if line.beyond is not None}
    every = [*(line.curve for line in lines), *crowds.values()]
    x = _counts("Speakers (log scale)", every, room, grid=False)
    y = draw.percent_axis(alt.Y, "value", _TITLES.get(metric, (metric,))[0] if first else None)
    columns = 0 if is_wide() else 2
    below = draw.legend(None, symbolType="stroke", orient="bottom", columns=columns)
    colour = draw.by(alt.Color, "system", colours, legend=below)
    rows = join(
        table(system=one.safeguard, attacker=one.attacker, **_columns(one.curve)) for one in lines
    )
    chance = table(**_chance(most, *crowds.values()))
    further = [
        layer
        for name, crowd in crowds.items()
        for layer in _continued(_beyond(crowd, system=name), x, y, colour)
    ]
    return alt.layer(
        *_of_paper(most, x, y),
        *further,
        draw.band(rows, x, y, colour, opacity=0.13),
        draw.dashed(chance, x, y, kind="line", strokeWidth=1.1, clip=True),
        draw.mark(rows, "line", x, y, colour, clip=True),
        draw.dots(rows, x, y, colour, draw.tips("risk_comparison"), size=22),
        draw.above(spoken(lines[0].length)),
    )


def learning_curves(curves: Mapping[str, LearningCurve]) -> Figure:
    """A line per attack with its interval; chance dashed."""
    require(curves, "learning curves", "attack")
    rows = join(
        table(attack=label, count=curve.people, value=curve.value, low=low, high=high)
        for label, curve in curves.items()
        for low, high in [curve.limits]
    )
    people = sorted({int(n) for curve in curves.values() for n in curve.people})
    ends = (people[0] / 1.1, people[-1] * 1.1)
    ticks: draw.Style = {"values": count_ticks(people, draw.main_panel()), "format": ","}
    x = draw.axis(alt.X, "count", "People trained on (log scale)", ends, log=True, **ticks)
    y = draw.percent_axis(alt.Y, "value", "Linkability (%)")
    colour = draw.by(alt.Color, "attack", system_colours(curves), legend=draw.legend(None))
    candidates = sorted({curve.candidates for curve in curves.values()})
    channels = (x, y, colour, draw.tips("learning_curves"))
    chart = draw.in_panel(
        draw.band(rows, x, y, colour, opacity=0.12),
        draw.dashed(table(value=[1 / n for n in candidates[::-1]]), y),
        draw.mark(rows, "line", *channels, point=True, strokeWidth=1.8),
        ratio=0.5,
    )
    return captioned("learning_curves", chart, candidates=" or ".join(map(str, candidates)))


_MOST = 400


def speaker_risks(curves: Mapping[str, RiskCurve], *, original: str | None = None) -> Figure:
    """One line per attacker at the smallest number of speakers."""
    require(curves, "speaker risks")
    places = {n: int(c.counts.argmin()) for n, c in curves.items()}
    rows = join(_risk_rows(n, c, places[n]) for n, c in curves.items())
    first, curve = next(iter(curves.items()))
    along = "Speakers, the least protected first (%)"
    x = draw.percent_axis(alt.X, "share", along, ticks=(0, 0.1, 0.25, 0.5, 0.75, 1))
    y = draw.percent_axis(alt.Y, "risk", f"{TITLES[curve.metric]} of the speaker (%)")
    deciles = {n: 100 * c.worst_decile[places[n]] for n, c in curves.items()}
    labels = {  # the worst decile is NaN where recordings are too few to tell it
        n: shorten(n, limit=20) + ("" if np.isnan(risk) else f" ({risk:.0f} %)")
        for n, risk in deciles.items()
    }
    paint, dash = draw.attacker_lines(
        labels,
        original=original,
        title="Attacker (worst decile)",
        orient="right" if is_wide() else "bottom",
    )
    chance = float(curve.chance[places[first]])
    tenth = (draw.axis(alt.X, "start", along, (0, 1)), alt.X2("end:Q"))
    channels = (x, y, paint, dash, draw.tips("speaker_risks"))
    chart = alt.layer(
        draw.mark(table(start=0.0, end=0.1), "rect", *tenth, color="#e5e7eb", opacity=0.7),
        draw.dashed(table(risk=chance), y, draw.tips("chance")),
        draw.mark(rows, "line", *channels, interpolate="step-before", strokeWidth=1.8),
    ).properties(width=360 if is_wide() else 250, height=230)
    among = int(curve.counts[places[first]])
    return captioned("speaker_risks", chart, count=among, chance=100 * chance)


def _risk_rows(attacker: str, curve: RiskCurve, place: int) -> alt.InlineData:
    """At most 400 speakers along the line, the ends among them."""
    size = len(curve.speakers)
    kept = np.unique(np.linspace(0, size - 1, min(_MOST, size)).astype(int))
    return table(
        attacker=attacker,
        share=(kept + 1) / size,
        risk=curve.sorted_risks(place)[kept],
        speaker=curve.sorted_speakers(place).gather(kept).to_list(),
    )


def rank_histograms(ranks: Mapping[str, Ranks], *, original: str | None = None) -> Figure:
    """One panel per attacker: P(rank) in bins that double in width, 1/N dashed."""
    require(ranks, "rank histograms")
    columns = draw.panel_columns(len(ranks))
    floor = min(0.2 / len(r.ranks) / r.candidates for r in ranks.values())
    floor = max(floor, min(0.1 / r.candidates for r in ranks.values()))
    inner = int(min(360, (width() - 70 - 30 * columns) / columns))
    panels = []
    for i, (attacker, result) in enumerate(ranks.items()):
        shade = ORIGINAL if attacker == original else PALETTE[0]
        label = "Probability of a rank" if i % columns == 0 else None
        layers = (*_rank_bars(result, shade, floor, label), draw.panel_title(attacker))
        panels.append(alt.layer(*layers).properties(width=inner, height=170))
    chart = alt.concat(*panels, columns=columns, spacing=16)
    each = "; ".join(
        f"{name}: rank 1 in {100 * r.identification_rate:.1f} %, MeanD {r.mean_d:.2f} bit, MaxD"
        f" {r.max_d:.2f} bit"
        for name, r in ranks.items()
    )
    return captioned("rank_histograms", chart, attackers=ranks, each=each)


def _rank_bars(result: Ranks, colour: str, floor: float, label: str | None) -> list[alt.Chart]:
    edges, probability = result.histogram()
    seen = probability > 0
    rows = table(
        start=edges[:-1][seen] - 0.5,
        end=edges[1:][seen] - 0.5,
        low=edges[:-1][seen],
        high=edges[1:][seen] - 1,
        probability=probability[seen],
        floor=floor,
    )
    x = draw.axis(
        alt.X,
        "start",
        "Rank of the true speaker",
        (0.5, result.candidates + 0.5),
        log=True,
        values=[10**power for power in range(6) if 10**power <= result.candidates],
        format=",",
        grid=False,
    )
    ticks = [10.0**-power for power in range(7) if 10.0**-power >= floor]
    shares: draw.Style = {"log": True, "clamp": True, "values": ticks, "format": "~%"}
    y = draw.axis(alt.Y, "probability", label, (floor, 1), **shares)
    style = {"color": colour, "opacity": 0.75, "stroke": "white", "strokeWidth": 0.6}
    places = (x, alt.X2("end:Q"), y, alt.Y2("floor:Q"))
    return [
        draw.mark(rows, "rect", *places, draw.tips("rank_histograms"), **style),
        draw.dashed(table(probability=1 / result.candidates), y, strokeWidth=1.2),
    ]


_DIAMETER = 7.0
_LOWEST, _HIGHEST = 48, 84
_MARGIN = 16


@dataclass(frozen=True, eq=False)
class Strip:
    """Share of each speaker's recordings that are linked to the speaker."""

    system: str
    attacker: str
    speakers: Sequence[str]
    risk: FloatArray
    recordings: IntArray
    chance: float


def speaker_strip(strips: Sequence[Strip], *, colours: Mapping[str, str]) -> Figure:
    """Dots stand exactly at their risk and stack upwards; further right is less protected.

    Where more dots share a place than fit, they overlap, and their number stands above them.
    """
    require(strips, "speaker strip")
    names = {strip.system: shorten(strip.system, limit=18) for strip in strips}
    inner = 480 if is_wide() else 230
    stacks = [_stacked(strip.risk, inner) for strip in strips]
    tallest = max(int(rank.max()) + 1 for rank, _ in stacks)
    height = min(max(_DIAMETER * tallest + _MARGIN, _LOWEST), _HIGHEST)
    spacing = min(_DIAMETER, (height - _MARGIN) / tallest)
    rows = join(
        table(
            system=strip.system,
            attacker=strip.attacker,
            speaker=list(strip.speakers),
            risk=strip.risk,
            recordings=strip.recordings,
            lift=spacing * (rank + 0.5),
            stack=np.where((rank == count - 1) & (spacing < _DIAMETER / 2), count, 0),
        )
        for strip, (rank, count) in zip(strips, stacks, strict=True)
    )
    label = "Recordings linked to their speaker (%)"
    x = draw.percent_axis(alt.X, "risk", label, ends=(-0.02, 1.02))
    y = alt.Y("lift:Q", title=None, scale=alt.Scale(domain=[0, height]), axis=None)
    colour = draw.by(alt.Color, "system", {n: colours[n] for n in names})
    dot = {"size": 34, "opacity": 0.8, "stroke": "#ffffff", "strokeWidth": 0.4}
    crowded = Chart().transform_filter("datum.stack > 4")
    count = (x, y, colour, alt.Text("stack:Q"))
    chance = alt.XDatum(float(strips[0].chance))
    header = alt.Header(
        labelAngle=0, labelAlign="left", labelExpr=draw.lookup(names), labelPadding=12
    )
    layers = (
        draw.mark(Chart(), "rule", chance, color=CHANCE, strokeDash=list(DASHED)),
        draw.mark(Chart(), "circle", x, y, colour, draw.tips("speaker_strip"), **dot),
        draw.mark(crowded, "text", *count, dy=-8, fontSize=10),
    )
    panel = alt.layer(*layers, data=rows).properties(width=inner, height=height)
    chart = panel.facet(
        row=alt.Row("system:N", sort=list(names), title=None, header=header), spacing=6
    )
    return captioned("speaker_strip", chart)


def _stacked(risk: FloatArray, width: float) -> tuple[IntArray, IntArray]:
    """Rank from below of each dot among those about a dot's width apart, and how many they are."""
    dots = pl.DataFrame({"step": np.round(np.asarray(risk, float) * width / _DIAMETER)})
    within = pl.int_range(pl.len(), dtype=pl.Int64).over("step")
    rank, size = dots.select(rank=within, size=pl.len().cast(pl.Int64).over("step"))
    return rank.to_numpy(), size.to_numpy()
