"""Who is least protected: every speaker as a dot, one strip per safeguard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np

from unmask.arrays import FloatArray, IntArray
from unmask.figures.data import join, require_systems, table
from unmask.figures.encode import is_wide, lookup
from unmask.figures.figure import Figure
from unmask.figures.theme import CHANCE, DASHED, WIDE, shorten

_STEPS = 50
_TALL = 7
_WIDTH = 0.014
_MOST_LEAN = 0.2


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
    """Dots stack where speakers share a risk; the further right, the less protected."""
    require_systems({strip.system: strip for strip in strips}, chart="speaker strip")
    names = [strip.system for strip in strips]
    rows = join(
        table(
            system=strip.system,
            attacker=strip.attacker,
            speaker=list(strip.speakers),
            risk=strip.risk,
            recordings=strip.recordings,
            place=places[0],
            lift=places[1],
        )
        for strip in strips
        for places in [_stacked(strip.risk)]
    )
    inner = 480 if is_wide(width) else 230
    x = alt.X(
        "place:Q",
        title="Recordings linked to their speaker (%)",
        scale=alt.Scale(domain=[-0.02, 1.02], nice=False),
        axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], labelExpr="format(100 * datum.value, 'd')"),
    )
    y = alt.Y("lift:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=None)
    colour = alt.Color(
        "system:N",
        scale=alt.Scale(domain=names, range=[colours[n] for n in names]),
        legend=None,
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
    chance = (
        alt.Chart()
        .mark_rule(color=CHANCE, strokeDash=list(DASHED))
        .encode(x=alt.datum(float(strips[0].chance)))
    )
    chart = (
        alt.layer(chance, dots, data=rows)
        .properties(width=inner, height=62)
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
        " people whom the safeguard leaves recognisable; point at one to see who. Dashed: chance.",
        chart,
    )


def _stacked(risk: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Where each dot stands: dots of one risk in a column, in several where there are many.

    Further columns lean towards the middle, less than half the step between two risks.
    """
    step = np.round(np.asarray(risk, dtype=np.float64) * _STEPS).astype(int)
    order = np.argsort(step, kind="stable")
    _, first, count = np.unique(step[order], return_index=True, return_counts=True)
    rank = np.empty(len(step))
    rank[order] = np.arange(len(step)) - np.repeat(first, count)
    column, height = np.divmod(rank, _TALL)
    lean = np.where(step > _STEPS / 2, -1.0, 1.0) * np.minimum(column * _WIDTH, _MOST_LEAN)
    return risk + lean, (height + 0.5) / _TALL
