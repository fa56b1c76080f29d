"""Who is least protected: the risk of every speaker, sorted."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np

from unmask.figures.data import join, require_systems, table
from unmask.figures.encode import is_wide, lookup
from unmask.figures.figure import Figure
from unmask.figures.theme import (
    CHANCE,
    DASHED,
    ORIGINAL,
    PALETTE,
    SOLID,
    WIDE,
    attacker_dashes,
    shorten,
)
from unmask.privacy.legal import RiskCurve

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
    rows = join(_rows(n, c, places[n]) for n, c in curves.items())
    metric = next(iter(curves.values())).metric
    x = alt.X(
        "share:Q",
        title="Speakers, the least protected first (%)",
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(
            values=[0, 0.1, 0.25, 0.5, 0.75, 1], labelExpr="format(100 * datum.value, 'd')"
        ),
    )
    y = alt.Y(
        "risk:Q",
        title=f"{_NAMES.get(metric, metric)} of the speaker (%)",
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], labelExpr="format(100 * datum.value, 'd')"),
    )
    names = list(curves)
    dashes: dict[str, list[float]] = {
        **attacker_dashes([n for n in names if n != original]),
        str(original): [float(part) for part in SOLID],
    }
    legend = alt.Legend(
        title="Attacker (worst decile)",
        orient="right" if is_wide(width) else "bottom",
        symbolType="stroke",
        symbolSize=420,
        labelExpr=lookup(
            names,
            [shorten(n, limit=20) + _worst(c.worst_decile[places[n]]) for n, c in curves.items()],
        ),
    )
    paint = alt.Color(
        "attacker:N",
        scale=alt.Scale(domain=names, range=[ORIGINAL if n == original else colour for n in names]),
        legend=legend,
    )
    dash = alt.StrokeDash(
        "attacker:N", scale=alt.Scale(domain=names, range=[dashes[n] for n in names]), legend=legend
    )
    chance = float(next(iter(curves.values())).chance[next(iter(places.values()))])
    layers = [
        alt.Chart(table(start=0.0, end=0.1))
        .mark_rect(color="#e5e7eb", opacity=0.7)
        .encode(alt.X("start:Q", scale=alt.Scale(domain=[0, 1], nice=False)), alt.X2("end:Q")),
        alt.Chart(table(risk=chance))
        .mark_rule(color=CHANCE, strokeDash=list(DASHED))
        .encode(y, tooltip=[alt.Tooltip("risk:Q", title="Chance", format=".2%")]),
        alt.Chart(rows)
        .mark_line(interpolate="step-before", strokeWidth=1.8)
        .encode(
            x,
            y,
            paint,
            dash,
            tooltip=[
                alt.Tooltip("attacker:N", title="Attacker"),
                alt.Tooltip("speaker:N", title="Speaker"),
                alt.Tooltip("risk:Q", title="Risk", format=".1%"),
            ],
        ),
    ]
    chart = alt.layer(*layers).properties(width=360 if is_wide(width) else 250, height=230)
    counted = int(next(iter(curves.values())).counts[next(iter(places.values()))])
    return Figure(name, title, _caption(counted, chance), chart)


def _worst(risk: float) -> str:
    """The worst decile in the legend, where recordings are enough to tell it."""
    return "" if np.isnan(risk) else f" ({100 * risk:.0f} %)"


def _place(curve: RiskCurve, count: int | None) -> int:
    if count is None:
        return int(curve.counts.argmin())
    return int(np.flatnonzero(curve.counts == count)[0])


def _rows(attacker: str, curve: RiskCurve, place: int) -> alt.InlineData:
    """At most 400 speakers along the line, the ends among them."""
    risks, speakers = curve.sorted_risks(place), curve.sorted_speakers(place)
    kept = np.unique(np.linspace(0, len(risks) - 1, min(_MOST, len(risks))).astype(int))
    return table(
        attacker=attacker,
        share=(kept + 1) / len(risks),
        risk=risks[kept],
        speaker=speakers.gather(kept).to_list(),
    )


def _caption(count: int, chance: float) -> str:
    return (
        f"Each point of a line is one speaker among {count:,}. A line that stays high says that"
        " many are recognised, one that falls at once that only few are. Grey field: the tenth of"
        " the speakers at highest risk; the legend gives their mean, less what few recordings of"
        f" each make it too large. Dashed: chance, {100 * chance:.2f} %."
    )
