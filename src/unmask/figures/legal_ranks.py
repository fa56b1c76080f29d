"""At which rank the true speaker is found, against the uniform distribution."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt

from unmask.figures.data import require_systems, table
from unmask.figures.encode import panel_columns, panel_title
from unmask.figures.figure import Figure, Layers
from unmask.figures.theme import CHANCE, DASHED, ORIGINAL, PALETTE, WIDE
from unmask.privacy.legal import Ranks


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
        _panel(
            attacker,
            result,
            ORIGINAL if attacker == original else colour,
            floor,
            first=i % columns == 0,
        ).properties(width=inner, height=170)
        for i, (attacker, result) in enumerate(ranks.items())
    ]
    chart = alt.concat(*panels, columns=columns, spacing=16).properties(
        description="Probability of each rank for " + ", ".join(ranks)
    )
    return Figure(name, title, _caption(ranks), chart)


def _panel(attacker: str, result: Ranks, colour: str, floor: float, *, first: bool) -> Layers:
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
            tooltip=[
                alt.Tooltip("low:Q", title="Ranks from", format=","),
                alt.Tooltip("high:Q", title="Ranks to", format=","),
                alt.Tooltip("probability:Q", title="Probability of each", format=".3~%"),
            ],
        )
    )
    chance = (
        alt.Chart(table(probability=1 / result.candidates))
        .mark_rule(color=CHANCE, strokeDash=list(DASHED), strokeWidth=1.2)
        .encode(alt.Y("probability:Q", scale=scale))
    )
    return alt.layer(bars, chance, panel_title(attacker))


def _caption(ranks: Mapping[str, Ranks]) -> str:
    told = "; ".join(
        f"{name}: rank 1 in {100 * r.identification_rate:.1f} %, MeanD {r.mean_d:.2f} bit, MaxD"
        f" {r.max_d:.2f} bit"
        for name, r in ranks.items()
    )
    return (
        "Bars on the dashed line (1/N) disclose nothing; a high bar at rank 1 names the speaker."
        f" Ranks are pooled in bins that double in width. {told}."
    )
