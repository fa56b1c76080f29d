"""Who is least protected: the risk of every speaker, strips of dots, ranks of the true speaker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np

from unmask.base import FloatArray, IntArray
from unmask.figures.encode import (
    UNIT,
    attacker_lines,
    dashed,
    in_grid,
    is_wide,
    kinds,
    lookup,
    panel_columns,
    panel_title,
    percent_axis,
    percent_y,
    tips,
)
from unmask.figures.figure import Figure, Layers, join, require_systems, table
from unmask.figures.theme import (
    CHANCE,
    DASHED,
    ORIGINAL,
    PALETTE,
    WIDE,
    shorten,
)
from unmask.privacy.legal import Ranks, RiskCurve

_MOST = 400
_NAMES = {"linkability": "Linkability", "singling_out": "Singling Out"}


def speaker_risks(
    curves: Mapping[str, RiskCurve],
    *,
    count: int | None = None,
    original: str | None = None,
    colour: str = PALETTE[0],
    width: float = WIDE,
    name: str = "speaker_risks",
    title: str = "Risk of each speaker, the least protected first",
) -> Figure:
    """One line per attacker at one number of speakers, by default the smallest."""
    require_systems(curves, chart="speaker risks")
    places = {n: _place(c, count) for n, c in curves.items()}
    rows = join(_risk_rows(n, c, places[n]) for n, c in curves.items())
    metric = next(iter(curves.values())).metric
    axis = percent_axis(0, 0.1, 0.25, 0.5, 0.75, 1)
    x = alt.X("share:Q", title="Speakers, the least protected first (%)", scale=UNIT, axis=axis)
    y = percent_y("risk", f"{_NAMES.get(metric, metric)} of the speaker (%)")
    worst = [_worst(curve.worst_decile[places[n]]) for n, curve in curves.items()]
    legend = alt.Legend(
        title="Attacker (worst decile)",
        orient="right" if is_wide(width) else "bottom",
        symbolType="stroke",
        symbolSize=420,
        labelExpr=lookup(
            list(curves), [shorten(n, limit=20) + w for n, w in zip(curves, worst, strict=True)]
        ),
    )
    paint, dash = attacker_lines(list(curves), original=original, colour=colour, legend=legend)
    chance = float(next(iter(curves.values())).chance[next(iter(places.values()))])
    layers = [
        alt.Chart(table(start=0.0, end=0.1))
        .mark_rect(color="#e5e7eb", opacity=0.7)
        .encode(alt.X("start:Q", scale=UNIT), alt.X2("end:Q")),
        dashed(table(risk=chance)).encode(y, tooltip=tips("risk:Q|Chance|.2%")),
        alt.Chart(rows)
        .mark_line(interpolate="step-before", strokeWidth=1.8)
        .encode(
            x,
            y,
            paint,
            dash,
            tooltip=tips("attacker:N|Attacker; speaker:N|Speaker; risk:Q|Risk|.1%"),
        ),
    ]
    chart = alt.layer(*layers).properties(width=360 if is_wide(width) else 250, height=230)
    counted = int(next(iter(curves.values())).counts[next(iter(places.values()))])
    return Figure(name, title, _risk_caption(counted, chance), chart)


def _worst(risk: float) -> str:
    """The worst decile in the legend, where recordings are enough to tell it."""
    return "" if np.isnan(risk) else f" ({100 * risk:.0f} %)"


def _place(curve: RiskCurve, count: int | None) -> int:
    if count is None:
        return int(curve.counts.argmin())
    return int(np.flatnonzero(curve.counts == count)[0])


def _risk_rows(attacker: str, curve: RiskCurve, place: int) -> alt.InlineData:
    """At most 400 speakers along the line, the ends among them."""
    risks, speakers = curve.sorted_risks(place), curve.sorted_speakers(place)
    kept = np.unique(np.linspace(0, len(risks) - 1, min(_MOST, len(risks))).astype(int))
    return table(
        attacker=attacker,
        share=(kept + 1) / len(risks),
        risk=risks[kept],
        speaker=speakers.gather(kept).to_list(),
    )


def _risk_caption(count: int, chance: float) -> str:
    return (
        f"Each point of a line is one speaker among {count:,}. A line that stays high says that"
        " many are recognised, one that falls at once that only few are. Grey field: the tenth of"
        " the speakers at highest risk; the legend gives their mean, less what few recordings of"
        f" each make it too large. Dashed: chance, {100 * chance:.2f} %."
    )


def rank_histograms(
    ranks: Mapping[str, Ranks],
    *,
    original: str | None = None,
    colour: str = PALETTE[0],
    width: float = WIDE,
    name: str = "rank_histograms",
    title: str = "Rank of the true speaker",
) -> Figure:
    """One panel per attacker: P(rank) in bins that double in width, 1/N dashed."""
    require_systems(ranks, chart="rank histograms")
    columns = panel_columns(len(ranks), width=width)
    floor = min(0.2 / len(r.ranks) / r.candidates for r in ranks.values())
    floor = max(floor, min(0.1 / r.candidates for r in ranks.values()))
    inner = int(min(360, (width - 70 - 30 * columns) / columns))
    panels = [
        _rank_panel(
            attacker,
            result,
            ORIGINAL if attacker == original else colour,
            floor,
            first=i % columns == 0,
        ).properties(width=inner, height=170)
        for i, (attacker, result) in enumerate(ranks.items())
    ]
    described = "Probability of each rank for " + ", ".join(ranks)
    chart = in_grid(panels, columns=columns, spacing=16, description=described)
    return Figure(name, title, _rank_caption(ranks), chart)


def _rank_panel(attacker: str, result: Ranks, colour: str, floor: float, *, first: bool) -> Layers:
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
    x = alt.X(
        "start:Q",
        title="Rank of the true speaker",
        scale=alt.Scale(type="log", domain=[0.5, result.candidates + 0.5], nice=False),
        axis=alt.Axis(
            values=[n for n in (1, 10, 100, 1_000, 10_000, 100_000) if n <= result.candidates],
            format=",",
            grid=False,
        ),
    )
    scale = alt.Scale(type="log", domain=[floor, 1], nice=False, clamp=True)
    axis = alt.Axis(
        values=[10.0**-power for power in range(7) if 10.0**-power >= floor], format="~%"
    )
    bars = (
        alt.Chart(rows)
        .mark_rect(color=colour, opacity=0.75, stroke="white", strokeWidth=0.6)
        .encode(
            x,
            alt.X2("end:Q"),
            alt.Y(
                "probability:Q",
                title="Probability of a rank" if first else None,
                scale=scale,
                axis=axis,
            ),
            alt.Y2("floor:Q"),
            tooltip=tips(
                "low:Q|Ranks from|,; high:Q|Ranks to|,; probability:Q|Probability of each|.3~%"
            ),
        )
    )
    chance = dashed(table(probability=1 / result.candidates), strokeWidth=1.2).encode(
        alt.Y("probability:Q", scale=scale)
    )
    return alt.layer(bars, chance, panel_title(attacker))


def _rank_caption(ranks: Mapping[str, Ranks]) -> str:
    told = "; ".join(
        f"{name}: rank 1 in {100 * r.identification_rate:.1f} %, MeanD {r.mean_d:.2f} bit, MaxD"
        f" {r.max_d:.2f} bit"
        for name, r in ranks.items()
    )
    return (
        "Bars on the dashed line (1/N) disclose nothing; a high bar at rank 1 names the speaker."
        f" Ranks are pooled in bins that double in width. {told}."
    )


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


def speaker_strip(
    strips: Sequence[Strip],
    *,
    colours: Mapping[str, str],
    width: float = WIDE,
    name: str = "speaker_strip",
    title: str = "Who is least protected: each dot is one speaker",
) -> Figure:
    """Dots stand exactly at their risk and stack upwards; further right is less protected.

    Where more dots share a place than fit, they overlap, and their number stands above them.
    """
    require_systems({strip.system: strip for strip in strips}, chart="speaker strip")
    names = [strip.system for strip in strips]
    inner = 480 if is_wide(width) else 230
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
    x = alt.X(
        "risk:Q",
        title="Recordings linked to their speaker (%)",
        scale=alt.Scale(domain=[-0.02, 1.02], nice=False),
        axis=percent_axis(),
    )
    y = alt.Y("lift:Q", title=None, scale=alt.Scale(domain=[0, height]), axis=None)
    colour = kinds("system", {n: colours[n] for n in names}, legend=None)
    dots = (
        alt.Chart()
        .mark_circle(size=34, opacity=0.8, stroke="#ffffff", strokeWidth=0.4)
        .encode(
            x,
            y,
            colour,
            tooltip=tips(
                "speaker:N|Speaker; risk:Q|Recordings linked|.0%; recordings:Q|of recordings; "
                "system:N|Safeguard; attacker:N|Attacker"
            ),
        )
    )
    counts = (
        alt.Chart()
        .transform_filter("datum.stack > 4")
        .mark_text(dy=-8, fontSize=10)
        .encode(x, y, colour, text="stack:Q")
    )
    chance = (
        alt.Chart()
        .mark_rule(color=CHANCE, strokeDash=list(DASHED))
        .encode(x=alt.datum(float(strips[0].chance)))
    )
    chart = (
        alt.layer(chance, dots, counts, data=rows)
        .properties(width=inner, height=height)
        .facet(
            row=alt.Row(
                "system:N",
                sort=names,
                title=None,
                header=alt.Header(
                    labelAngle=0,
                    labelAlign="left",
                    labelExpr=lookup(names, [shorten(n, limit=18) for n in names]),
                    labelPadding=12,
                ),
            ),
            spacing=6,
        )
    )
    return Figure(
        name,
        title,
        "A dot is a speaker, placed by how many of the speaker's protected recordings the"
        " strongest attacker links to the right person among all enrolled. Dots at the right are"
        " people whom the safeguard leaves recognisable. A number counts the dots of a stack that"
        " overlap. Dashed: chance.",
        chart,
    )


def _stacked(risk: FloatArray, width: float) -> tuple[IntArray, IntArray]:
    """Rank from below of each dot among those about a dot's width apart, and how many they are."""
    step = np.round(np.asarray(risk, dtype=np.float64) * width / _DIAMETER).astype(np.int64)
    order = np.argsort(step, kind="stable")
    _, first, dense, count = np.unique(
        step[order], return_index=True, return_inverse=True, return_counts=True
    )
    rank = np.empty(len(step), dtype=np.int64)
    rank[order] = np.arange(len(step)) - first[dense]
    size = np.empty(len(step), dtype=np.int64)
    size[order] = count[dense]
    return rank, size
