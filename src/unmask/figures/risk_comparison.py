"""Risk against the number of speakers, all safeguards side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt

from unmask.figures.data import join, require_systems, table
from unmask.figures.encode import is_wide, legend, lookup
from unmask.figures.figure import Figure, Layers
from unmask.figures.legal_panel import count_ticks
from unmask.figures.theme import CHANCE, DASHED, WIDE, shorten
from unmask.privacy.legal import Curve

_TITLES = {
    "singling_out": "Singling Out (%)",
    "linkability": "Linkability (%)",
    "one_minus_eer": "1 − EER (%)",
}


@dataclass(frozen=True)
class RiskLine:
    """The curve of one safeguard under its strongest attacker."""

    safeguard: str
    attacker: str
    metric: str
    length: int
    curve: Curve


def risk_comparison(
    lines: Sequence[RiskLine],
    *,
    colours: Mapping[str, str],
    original: str | None = None,
    width: float = WIDE,
    name: str = "risk_comparison",
    title: str = "Risk under the strongest attacker, against the number of speakers",
) -> Figure:
    """Metrics across, conversation lengths down; a line per safeguard, chance dashed."""
    require_systems({line.safeguard: line for line in lines}, chart="risk comparison")
    metrics = list(dict.fromkeys(line.metric for line in lines))
    lengths = list(dict.fromkeys(line.length for line in lines))
    across = len(metrics) if is_wide(width) else 1
    inner = min(300, int((width - 150 - 46 * across) / across))
    names = list(dict.fromkeys(line.safeguard for line in lines))
    panels = [
        _panel(
            [one for one in lines if (one.metric, one.length) == (metric, length)],
            names,
            colours,
            width=width,
        ).properties(width=inner, height=190)
        for length in lengths
        for metric in metrics
    ]
    chart = alt.concat(*panels, columns=across, spacing=22).properties(
        description="Risk of every safeguard: " + ", ".join(names)
    )
    caption = (
        "Each line is one safeguard under the attacker that succeeds most; lower is more"
        " protective. The black dashed line is chance: the distance to it is what the attacker"
        " gains. Bands are intervals over speakers."
    )
    if original is not None:
        caption += " Grey: unprotected speech."
    return Figure(name, title, caption, chart)


def _panel(
    lines: Sequence[RiskLine], names: list[str], colours: Mapping[str, str], *, width: float
) -> Layers:
    least = min(int(one.curve.counts.min()) for one in lines)
    most = max(int(one.curve.counts.max()) for one in lines)
    ticks = count_ticks(least, most)
    x = alt.X(
        "count:Q",
        title="Speakers",
        scale=alt.Scale(type="log", domain=[least, max(most, least + 1)], nice=False),
        axis=alt.Axis(values=ticks, format=",", labelFlush=True, grid=False),
    )

    def vertical(field: str) -> alt.Y:
        return alt.Y(
            field,
            title=_TITLES.get(lines[0].metric, lines[0].metric),
            scale=alt.Scale(domain=[0, 1], nice=False),
            axis=alt.Axis(
                values=[0, 0.25, 0.5, 0.75, 1], labelExpr="format(100 * datum.value, 'd')"
            ),
        )

    y = vertical("value:Q")
    colour = alt.Color(
        "system:N",
        scale=alt.Scale(domain=names, range=[colours[name] for name in names]),
        legend=legend(
            width=width,
            title="Safeguard",
            symbolType="stroke",
            labelExpr=lookup(names, [shorten(name, limit=22) for name in names]),
        ),
    )
    rows = join(
        table(
            system=one.safeguard,
            attacker=one.attacker,
            count=one.curve.counts,
            value=one.curve.value,
            low=one.curve.low,
            high=one.curve.high,
            chance=one.curve.chance,
        )
        for one in lines
    )
    first = lines[0].curve
    base = alt.Chart(rows)
    points = base.mark_point(filled=True, size=22, opacity=1).encode(
        x,
        y,
        colour,
        tooltip=[
            alt.Tooltip("system:N", title="Safeguard"),
            alt.Tooltip("attacker:N", title="Strongest attacker"),
            alt.Tooltip("count:Q", title="Speakers", format=","),
            alt.Tooltip("value:Q", title="Risk", format=".1%"),
            alt.Tooltip("low:Q", title="From", format=".1%"),
            alt.Tooltip("high:Q", title="To", format=".1%"),
            alt.Tooltip("chance:Q", title="Chance", format=".1%"),
        ],
    )
    length = lines[0].length
    return alt.layer(
        base.mark_area(fillOpacity=0.13, strokeWidth=0, clip=True).encode(
            x, vertical("low:Q"), alt.Y2("high:Q"), colour
        ),
        alt.Chart(table(count=first.counts, value=first.chance))
        .mark_line(color=CHANCE, strokeDash=list(DASHED), strokeWidth=1.1, clip=True)
        .encode(x, y),
        base.mark_line(clip=True).encode(x, y, colour),
        points,
        alt.Chart(table(label=f"{length} utterance{'s' if length > 1 else ''}"))
        .mark_text(align="left", baseline="bottom", fontSize=11.5, fontWeight=600)
        .encode(x=alt.value(0), y=alt.value(-6), text="label:N"),
    )
