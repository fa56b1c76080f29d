"""Who is least protected: risks, ranks and de-identification speaker by speaker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np
import polars as pl

from unmask.base import FloatArray, IntArray
from unmask.figures import draw
from unmask.figures.figure import Figure, Layers, captioned, join, require, table
from unmask.figures.theme import CHANCE, DASHED, ORIGINAL, PALETTE, is_wide, shorten, width
from unmask.privacy.legal import TITLES, Ranks, RiskCurve
from unmask.privacy.similarity import PLAIN, SpeakerProtection

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
        colour=PALETTE[0],
        title="Attacker (worst decile)",
        orient="right" if is_wide() else "bottom",
    )
    chance = float(curve.chance[places[first]])
    tenth = (draw.axis(alt.X, "start", along, (0, 1)), alt.X2("end:Q"))
    hover = "attacker:N|Attacker; speaker:N|Speaker; risk:Q|Risk|.1%"
    step = {"interpolate": "step-before", "strokeWidth": 1.8}
    chart = alt.layer(
        draw.mark(table(start=0.0, end=0.1), "rect", *tenth, color="#e5e7eb", opacity=0.7),
        draw.dashed(table(risk=chance), y, hover="risk:Q|Chance|.2%"),
        draw.mark(rows, "line", x, y, paint, dash, hover=hover, **step),
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
    hover = "low:Q|Ranks from|,; high:Q|Ranks to|,; probability:Q|Probability of each|.3~%"
    style = {"color": colour, "opacity": 0.75, "stroke": "white", "strokeWidth": 0.6}
    places = (x, alt.X2("end:Q"), y, alt.Y2("floor:Q"))
    return [
        draw.mark(rows, "rect", *places, hover=hover, **style),
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
    hover = (
        "speaker:N|Speaker; risk:Q|Recordings linked|.0%; recordings:Q|of recordings; "
        "system:N|Safeguard; attacker:N|Attacker"
    )
    dot = {"size": 34, "opacity": 0.8, "stroke": "#ffffff", "strokeWidth": 0.4}
    crowded = alt.Chart().transform_filter("datum.stack > 4")
    count = (x, y, colour, alt.Text("stack:Q"))
    chance = alt.XDatum(float(strips[0].chance))
    header = alt.Header(
        labelAngle=0, labelAlign="left", labelExpr=draw.lookup(names), labelPadding=12
    )
    layers = (
        draw.mark(alt.Chart(), "rule", chance, color=CHANCE, strokeDash=list(DASHED)),
        draw.mark(alt.Chart(), "circle", x, y, colour, hover=hover, **dot),
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


_MOST_NAMES = 80


def speaker_protection(
    protections: Mapping[str, SpeakerProtection], *, colours: draw.Colours = None
) -> Figure:
    """Bars of DeID per speaker, the least protected first; a rule marks DeID of all."""
    require(protections, "speaker protection")
    shades = draw.colours_for(list(protections), colours)
    shown = np.concatenate([(p.deid, p.low, p.high) for p in protections.values()], axis=1)
    shown = 100 * shown[np.isfinite(shown)]
    ends = [min(0.0, float(shown.min())), max(100.0, float(shown.max()))]
    y = alt.Y("deid:Q", title="DeID (%)", scale=alt.Scale(domain=ends, nice=True))
    size = {"width": int(width() - 80), "height": 150 if len(protections) > 1 else 210}
    panels = [_bars(n, one, y, shades[n]).properties(**size) for n, one in protections.items()]
    chart = alt.vconcat(*panels, spacing=22)
    other = any(protection.attacker != PLAIN for protection in protections.values())
    return captioned("speaker_protection", chart, systems=protections, other=other)


def _bars(system: str, protection: SpeakerProtection, y: alt.Y, colour: str) -> Layers:
    """One bar per speaker with its interval."""
    order = np.argsort(protection.deid, kind="stable")
    rows = table(
        place=range(1, len(order) + 1),
        speaker=[protection.speakers[i] for i in order],
        deid=100 * protection.deid[order],
        similarity=protection.self_similarity["op"][order],
        l_w=protection.l_w[order],
        low=100 * protection.low[order],
        high=100 * protection.high[order],
    )
    few = len(order) <= _MOST_NAMES
    x = alt.X(
        "speaker:N" if few else "place:O",
        sort=None,
        title="Speaker, least protected first",
        axis=alt.Axis(labelAngle=-90, labelFontSize=8) if few else alt.Axis(labels=False),
    )
    hover = (
        "speaker:N|Speaker; deid:Q|DeID (%)|.1f; similarity:Q|Original to own protected|.3f; "
        "l_w:Q|l_w|.2f"
    )
    known = alt.Chart(rows).transform_filter("isValid(datum.low) && isFinite(datum.low)")
    spans = (alt.Y("low:Q"), alt.Y2("high:Q"))
    plain = "" if protection.attacker == PLAIN else f" ({protection.attacker} score)"
    return alt.layer(
        draw.mark(rows, "bar", x, y, hover=hover, color=colour),
        draw.mark(known, "rule", x, *spans, color=CHANCE, strokeWidth=1),
        draw.dashed(table(at=100 * float(protection.deid.mean())), alt.Y("at:Q")),
        draw.panel_title(system + plain),
    )
