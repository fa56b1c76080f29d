"""What protection achieves and costs: de-identification, distinctiveness, every speaker."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np

from unmask.errors import InputError
from unmask.estimate import Interval
from unmask.figures.encode import (
    colours_for,
    crosses,
    dashed,
    main_panel,
    panel_title,
    system_colour,
    tips,
)
from unmask.figures.figure import Figure, require_systems, table
from unmask.figures.theme import CHANCE, WIDE, shorten
from unmask.privacy.similarity import PLAIN, SpeakerProtection

_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


@dataclass(frozen=True)
class Point:
    """One safeguard on one set of speech: DeID as a fraction, G_VD in dB.

    ``strongest`` is DeID against an attacker who does better than the plain score (negated or
    centred), where there is one, with its interval.
    """

    system: str
    dataset: str
    deid: float
    g_vd: float
    deid_interval: Interval | None = None
    g_vd_interval: Interval | None = None
    strongest: float | None = None
    strongest_interval: Interval | None = None


def distinctiveness(
    points: Sequence[Point],
    *,
    colours: Mapping[str, str] | None = None,
    width: float = WIDE,
    name: str = "g_vd_deid",
    title: str = "What protection costs: voice distinctiveness against de-identification",
) -> Figure:
    """G_VD against DeID of many safeguards and sets, with the intervals of both as bars."""
    drawn = [p for p in points if math.isfinite(p.g_vd)]
    if not drawn:
        raise InputError("scatter: expected at least one safeguard with a finite G_VD, found none")
    systems = list(dict.fromkeys(p.system for p in drawn))
    datasets = list(dict.fromkeys(p.dataset for p in drawn))
    ends = [(_ends(p.deid, p.deid_interval), _ends(p.g_vd, p.g_vd_interval)) for p in drawn]
    attacked = [
        None if p.strongest is None else _ends(p.strongest, p.strongest_interval) for p in drawn
    ]
    rows = table(
        system=[p.system for p in drawn],
        dataset=[p.dataset for p in drawn],
        deid=[100 * p.deid for p in drawn],
        g_vd=[p.g_vd for p in drawn],
        deid_low=[100 * e[0][0] for e in ends],
        deid_high=[100 * e[0][1] for e in ends],
        g_vd_low=[e[1][0] for e in ends],
        g_vd_high=[e[1][1] for e in ends],
        strongest=[100 * p.strongest if p.strongest is not None else None for p in drawn],
        strongest_low=[None if end is None else 100 * end[0] for end in attacked],
        strongest_high=[None if end is None else 100 * end[1] for end in attacked],
    )
    beaten = [100 * end[0] for end in attacked if end is not None]
    lowest = min(0.0, *beaten, *(100 * e[0][0] for e in ends))
    floor, top = min(-1.0, *(e[1][0] for e in ends)), max(1.0, *(e[1][1] for e in ends))
    x = alt.X(
        "deid:Q",
        title="DeID (%), more de-identified →",
        scale=alt.Scale(domain=[math.floor(lowest / 10) * 10 - 4, 104], nice=False),
    )
    y = alt.Y(
        "g_vd:Q",
        title="G_VD (dB), more distinct →",
        scale=alt.Scale(domain=[math.floor(floor * 1.1), math.ceil(top * 1.1)]),
    )
    colour = system_colour(systems, colours, width=width)
    base = alt.Chart(rows)
    beyond = base.transform_filter("datum.strongest !== null")
    side = main_panel(width)
    chart = (
        alt.layer(
            dashed(table(at=0.0)).encode(y="at:Q"),
            alt.Chart(table(deid=100.0, g_vd=0.0, text="ideal"))
            .mark_text(align="right", dx=-4, dy=-9)
            .encode(x, y, text="text:N"),
            *crosses(base, x, y, colour),
            beyond.mark_rule(strokeDash=[2, 3]).encode(
                alt.X("strongest:Q"), alt.X2("deid:Q"), y, colour
            ),
            beyond.mark_rule(strokeWidth=1.2).encode(
                alt.X("strongest_low:Q"), alt.X2("strongest_high:Q"), y, colour
            ),
            beyond.mark_point(size=70, filled=False, opacity=1).encode(
                alt.X("strongest:Q"), y, colour
            ),
            base.mark_point(size=70, filled=True, opacity=1).encode(
                x,
                y,
                colour,
                alt.Shape(
                    "dataset:N",
                    title="Set",
                    scale=alt.Scale(
                        domain=datasets,
                        range=[_SHAPES[i % len(_SHAPES)] for i in range(len(datasets))],
                    ),
                    legend=alt.Legend(title="Set") if len(datasets) > 1 else None,
                ),
                tooltip=tips(
                    "system:N|System; dataset:N|Set; deid:Q|DeID (%)|.2f; g_vd:Q|G_VD (dB)|.2f"
                ),
            ),
        )
        .resolve_scale(shape="independent")
        .properties(
            width=side,
            height=int(0.8 * side),
            description=f"Voice distinctiveness against de-identification of {', '.join(systems)}",
        )
    )
    caption = (
        "To the right, protected voices point less to their owners; on the dashed line, protected "
        "voices are as distinct from each other as the original ones, below it less. A safeguard "
        "that does nothing lies at 0 %, 0 dB; ideal pseudonymisation at 100 %, 0 dB. Bars are "
        "intervals over speakers."
    )
    if beaten:
        caption += (
            " A hollow point is where the strongest attacker finds the safeguard, who turns the "
            "sign of the scores or takes out what all voices share: that is what it achieves."
        )
    lost = [shorten(p.system) for p in points if not math.isfinite(p.g_vd)]
    if lost:
        caption += f" Not drawn, since protected voices are not distinct at all: {', '.join(lost)}."
    return Figure(name, title, caption, chart)


def _ends(value: float, interval: Interval | None) -> tuple[float, float]:
    if interval is None or not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return value, value
    return interval.low, interval.high


_MOST_NAMES = 80


def speaker_protection(
    protections: Mapping[str, SpeakerProtection],
    *,
    colours: Mapping[str, str] | None = None,
    width: float = WIDE,
    name: str = "speaker_protection",
    title: str = "De-identification of each speaker",
) -> Figure:
    """Bars of DeID per speaker, the least protected first; a rule marks DeID of all."""
    require_systems(protections, chart="speaker protection")
    scale = dict(zip(protections, colours_for(list(protections), colours), strict=True))
    shown = np.concatenate([(p.deid, p.low, p.high) for p in protections.values()], axis=1)
    shown = shown[np.isfinite(shown)]
    domain = [min(0.0, 100 * float(shown.min())), max(100.0, 100 * float(shown.max()))]
    panels = []
    for system, protection in protections.items():
        order = np.argsort(protection.deid, kind="stable")
        names = [protection.speakers[i] for i in order]
        rows = table(
            place=list(range(1, len(names) + 1)),
            speaker=names,
            deid=[100 * float(protection.deid[i]) for i in order],
            similarity=[float(protection.self_similarity["op"][i]) for i in order],
            l_w=[float(protection.l_w[i]) for i in order],
            low=[100 * float(protection.low[i]) for i in order],
            high=[100 * float(protection.high[i]) for i in order],
        )
        few = len(names) <= _MOST_NAMES
        bars = (
            alt.Chart(rows)
            .mark_bar(color=scale[system])
            .encode(
                alt.X(
                    "speaker:N" if few else "place:O",
                    sort=None,
                    title="Speaker, least protected first",
                    axis=alt.Axis(labelAngle=-90, labelFontSize=8)
                    if few
                    else alt.Axis(labels=False),
                ),
                alt.Y("deid:Q", title="DeID (%)", scale=alt.Scale(domain=domain, nice=True)),
                tooltip=tips(
                    "speaker:N|Speaker; deid:Q|DeID (%)|.1f; "
                    "similarity:Q|Original to own protected|.3f; l_w:Q|l_w|.2f"
                ),
            )
        )
        spans = (
            alt.Chart(rows)
            .mark_rule(color=CHANCE, strokeWidth=1)
            .transform_filter("isValid(datum.low) && isFinite(datum.low)")
            .encode(alt.X("speaker:N" if few else "place:O", sort=None), y="low:Q", y2="high:Q")
        )
        rule = dashed(table(at=100 * float(protection.deid.mean()))).encode(y="at:Q")
        panels.append(
            alt.layer(bars, spans, rule, panel_title(system + _attacker(protection))).properties(
                width=int(width - 80), height=150 if len(protections) > 1 else 210
            )
        )
    chart = alt.vconcat(*panels, spacing=22).properties(
        description=f"De-identification of each speaker under {', '.join(protections)}"
    )
    caption = (
        "Low bars are speakers whose protected voice still points to them; the dashed line is the "
        "DeID of all speakers, which the bars average to. Below 0 % a speaker's protected voice "
        "points to its owner more than original voices do on average; above 100 % it is less like "
        "its owner than like strangers, which is evidence as well. Thin lines are intervals over "
        "draws of the other speakers."
    )
    if any(protection.attacker != PLAIN for protection in protections.values()):
        caption += (
            " Where it says so, an attacker does better with the scores negated or centred, and "
            "the bars are those of that attacker."
        )
    return Figure(name, title, caption, chart)


def _attacker(protection: SpeakerProtection) -> str:
    return "" if protection.attacker == PLAIN else f" ({protection.attacker} score)"
