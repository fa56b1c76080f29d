"""Who is least protected: every speaker as a dot, one strip per safeguard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np

from unmask.base import FloatArray, IntArray
from unmask.figures.data import join, require_systems, table
from unmask.figures.encode import is_wide, lookup
from unmask.figures.figure import Figure
from unmask.figures.theme import CHANCE, DASHED, WIDE, shorten

_DIAMETER = 7.0
_LOWEST, _HIGHEST = 62, 120
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
        axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], labelExpr="format(100 * datum.value, 'd')"),
    )
    y = alt.Y("lift:Q", title=None, scale=alt.Scale(domain=[0, height]), axis=None)
    colour = alt.Color(
        "system:N", scale=alt.Scale(domain=names, range=[colours[n] for n in names]), legend=None
    )
    dots = (
        alt.Chart()
        .mark_circle(size=34, opacity=0.8, stroke="#ffffff", strokeWidth=0.4)
        .encode(
            x,
            y,
            colour,
            tooltip=[
                alt.Tooltip("speaker:N", title="Speaker"),
                alt.Tooltip("risk:Q", title="Recordings linked", format=".0%"),
                alt.Tooltip("recordings:Q", title="of recordings"),
                alt.Tooltip("system:N", title="Safeguard"),
                alt.Tooltip("attacker:N", title="Attacker"),
            ],
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
        " people whom the safeguard leaves recognisable; point at one to see who. A number counts"
        " the dots of a stack that overlap. Dashed: chance.",
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
