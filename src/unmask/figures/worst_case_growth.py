"""False alarms against the number of impostors, all systems side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from unmask.figures.data import join, require_systems, table
from unmask.figures.encode import main_panel, system_colour
from unmask.figures.figure import Figure
from unmask.figures.theme import DASHES, WIDE
from unmask.stress.worst_case import WorstCase

_TICKS = tuple(step * 10**power for power in range(9) for step in (1, 2, 5))


@dataclass(frozen=True, eq=False)
class GrowthLine:
    """A system at the threshold in ``place``, whose ordinary false-alarm rate is ``rate``."""

    system: str
    rate: float
    found: WorstCase
    place: int


def worst_case_growth(
    lines: Sequence[GrowthLine],
    *,
    colours: Mapping[str, str] | None = None,
    width: float = WIDE,
    name: str = "worst_case_growth",
    title: str = "False alarms when the closest of N impostors tries",
) -> Figure:
    """One line per system and threshold: colour by system, dash by threshold."""
    names = list(dict.fromkeys(line.system for line in lines))
    require_systems(dict.fromkeys(names), chart="worst case")
    most = max(int(line.found.counts.max()) for line in lines)
    rates = sorted({line.rate for line in lines}, reverse=True)
    labels = {rate: f"{100 * rate:g} %" for rate in rates}
    x = alt.X(
        "count:Q",
        title="Impostors to choose from (N)",
        scale=alt.Scale(type="log", domain=[1, max(most, 2)], nice=False),
        axis=alt.Axis(
            values=[n for n in _TICKS if n < 0.8 * most] + [most],
            format=",",
            labelFlush=True,
            grid=False,
        ),
    )

    def vertical(field: str) -> alt.Y:
        return alt.Y(
            field,
            title="False alarms (%)",
            scale=alt.Scale(domain=[0, 1], nice=False),
            axis=alt.Axis(
                values=[0, 0.25, 0.5, 0.75, 1], labelExpr="format(100 * datum.value, 'd')"
            ),
        )

    y = vertical("value:Q")
    rows = join(
        table(
            system=line.system,
            threshold=labels[line.rate],
            count=line.found.counts,
            value=line.found.values[:, line.place],
            low=line.found.low[:, line.place],
            high=line.found.high[:, line.place],
        )
        for line in lines
    )
    colour = system_colour(names, colours, width=width)
    dash = alt.StrokeDash(
        "threshold:N",
        title="Threshold: false alarms of one impostor",
        scale=alt.Scale(
            domain=[labels[rate] for rate in rates],
            range=[list(DASHES[i % len(DASHES)]) for i in range(len(rates))],
        ),
        legend=alt.Legend(symbolType="stroke", symbolSize=420, titleLimit=300),
    )
    detail = alt.Detail("threshold:N")
    base = alt.Chart(rows)
    chart = alt.layer(
        base.mark_area(fillOpacity=0.12, strokeWidth=0, clip=True).encode(
            x, vertical("low:Q"), alt.Y2("high:Q"), colour, detail
        ),
        base.mark_line(clip=True).encode(x, y, colour, dash),
        base.mark_point(filled=True, size=20, opacity=1).encode(
            x,
            y,
            colour,
            tooltip=[
                alt.Tooltip("system:N", title="System"),
                alt.Tooltip("threshold:N", title="Threshold"),
                alt.Tooltip("count:Q", title="Impostors", format=","),
                alt.Tooltip("value:Q", title="False alarms", format=".2%"),
                alt.Tooltip("low:Q", title="From", format=".2%"),
                alt.Tooltip("high:Q", title="To", format=".2%"),
            ],
        ),
    ).properties(width=main_panel(width), height=main_panel(width) * 0.7)
    caption = (
        "The further a line rises to the right, the more an adversary gains by choosing the voice"
        " that sounds most like the target. N = 1 is the ordinary false-alarm rate; dashes tell"
        " the threshold. Bands are intervals over speakers, as targets and as impostors."
    )
    return Figure(name, title, caption, chart)
