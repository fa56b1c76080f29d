"""The panel of the legally validated metrics: metrics down, conversation lengths across."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt

from unmask.errors import InputError
from unmask.figures.data import join, table
from unmask.figures.encode import is_wide, lookup
from unmask.figures.figure import Figure, Layers
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
from unmask.privacy.legal import Curve, LegalSweep

_TICKS = (2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 100_000)
_APART, _MOST_TICKS = 1.6, 5
_TITLES = {
    "singling_out": ("Singling Out (%)", "N test speakers"),
    "linkability": ("Linkability (%)", "N′ enrolment speakers"),
    "one_minus_eer": ("1 − EER (%)", "N′ enrolment speakers"),
}
_CHANCE = "chance"
_TOOLTIP = [
    alt.Tooltip("attacker:N", title="Attacker"),
    alt.Tooltip("scores:N", title="Scores"),
    alt.Tooltip("count:Q", title="Speakers", format=","),
    alt.Tooltip("value:Q", title="Value", format=".2%"),
    alt.Tooltip("low:Q", title="From", format=".2%"),
    alt.Tooltip("high:Q", title="To", format=".2%"),
    alt.Tooltip("chance:Q", title="Chance", format=".2%"),
    alt.Tooltip("residual:Q", title="Residual risk", format=".2%"),
    alt.Tooltip("attacks:Q", title="Attacks", format=","),
]


def legal_panel(
    sweep: LegalSweep,
    *,
    colour: str = PALETTE[0],
    width: float = WIDE,
    name: str = "legal_panel",
    title: str = "Risk of re-identification against the number of speakers",
) -> Figure:
    """Rows are metrics, columns lengths; a line per attacker with its interval, chance dashed."""
    if not sweep.curves:
        raise InputError("legal panel: expected at least one curve, found none")
    across = len(sweep.lengths) if is_wide(width) else 1
    inner = int((width - 62 - 34 * across) / across)
    panels = [
        _panel(
            sweep, metric, length, colour, first=i == 0 or across == 1, top=row == 0 or across == 1
        ).properties(width=min(inner, 380), height=150)
        for row, metric in enumerate(sweep.metrics)
        for i, length in enumerate(sweep.lengths)
    ]
    chart = (
        alt.concat(*panels, columns=across, spacing=14)
        .resolve_scale(color="shared", strokeDash="shared")
        .properties(description="Values of " + ", ".join(_TITLES[m][0] for m in sweep.metrics))
    )
    return Figure(name, title, _caption(sweep), chart)


def _panel(
    sweep: LegalSweep, metric: str, length: int, colour: str, *, first: bool, top: bool
) -> Layers:
    curves = {n: sweep.shown(n, metric, length) for n in sweep.attackers}
    least = min(int(c.counts.min()) for c in curves.values())
    most = max(int(c.counts.max()) for c in curves.values())
    label, who = _TITLES[metric]
    x = alt.X(
        "count:Q",
        title=who,
        scale=alt.Scale(type="log", domain=[least, max(most, least + 1)], nice=False),
        axis=alt.Axis(values=count_ticks(least, most), format=",", labelFlush=True),
    )
    y, low = (_percent(column, label if first else None) for column in ("value", "low"))
    rows = join(_rows(n, c) for n, c in curves.items())
    lines = _styles(sweep, colour)
    paint = alt.Color("attacker:N", scale=lines[0], legend=_legend(sweep))
    dash = alt.StrokeDash("attacker:N", scale=lines[1], legend=_legend(sweep))
    layers = [
        alt.Chart(rows)
        .mark_area(fillOpacity=0.16, strokeWidth=0, clip=True)
        .encode(x, low, alt.Y2("high:Q"), paint),
        alt.Chart(_chance(next(iter(curves.values()))))
        .mark_line(strokeWidth=1.1, clip=True)
        .encode(x, y, paint, dash),
        alt.Chart(rows).mark_line(strokeWidth=1.7, clip=True).encode(x, y, paint, dash),
        alt.Chart(rows).mark_point(filled=True, size=14).encode(x, y, paint, tooltip=_TOOLTIP),
    ]
    if top:
        layers.append(_heading(length))
    return alt.layer(*layers)


def count_ticks(least: int, most: int) -> list[int]:
    """Both ends of an axis of counts, and round numbers between them that are far enough apart."""
    ticks = [least]
    apart = max(_APART, (most / least) ** (1 / _MOST_TICKS))
    for count in _TICKS:
        if count >= apart * ticks[-1] and most >= apart * count:
            ticks.append(count)
    return ticks if most == least else [*ticks, most]


def _percent(column: str, title: str | None) -> alt.Y:
    ticks = [0, 0.25, 0.5, 0.75, 1]
    return alt.Y(
        f"{column}:Q",
        title=title,
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(values=ticks, labelExpr="format(100 * datum.value, 'd')"),
    )


def _rows(attacker: str, curve: Curve) -> alt.InlineData:
    return table(
        attacker=attacker,
        scores=curve.variant,
        count=curve.counts,
        value=curve.value,
        low=curve.low,
        high=curve.high,
        chance=curve.chance,
        residual=curve.residual,
        attacks=curve.attacks,
    )


def _chance(curve: Curve) -> alt.InlineData:
    return table(attacker=_CHANCE, count=curve.counts, value=curve.chance)


def _styles(sweep: LegalSweep, colour: str) -> tuple[alt.Scale, alt.Scale]:
    """One colour for the safeguard and grey for unprotected speech; attackers by line style."""
    domain = [*sweep.attackers, _CHANCE]
    protected = [n for n in sweep.attackers if n != sweep.original]
    dashes: Mapping[str, list[float]] = {
        **attacker_dashes(protected),
        str(sweep.original): list(SOLID),
        _CHANCE: list(DASHED),
    }
    colours = [ORIGINAL if n == sweep.original else colour for n in sweep.attackers]
    return (
        alt.Scale(domain=domain, range=[*colours, CHANCE]),
        alt.Scale(domain=domain, range=[list(dashes[n]) for n in domain]),
    )


def _legend(sweep: LegalSweep) -> alt.Legend:
    domain = [*sweep.attackers, _CHANCE]
    return alt.Legend(
        title="Attacker",
        orient="bottom",
        columns=0 if len(domain) < 6 else 3,
        symbolType="stroke",
        symbolSize=420,
        labelExpr=lookup(domain, [shorten(n) for n in domain]),
    )


def _heading(length: int) -> alt.Chart:
    label = f"L = {length} utterance{'s' if length > 1 else ''}"
    drawn: alt.Chart = (
        alt.Chart(table(label=label))
        .mark_text(align="left", baseline="bottom", fontSize=11.5, fontWeight=600)
        .encode(x=alt.value(0), y=alt.value(-5), text="label:N")
    )
    return drawn


def _caption(sweep: LegalSweep) -> str:
    parts = [
        "Lower is more protective; the distance to the black dashed line (chance) is what the"
        " attacker gains. Each attacker reads its scores in the way, plain, negated or centred,"
        " that succeeds most with most speakers. Bands are intervals over speakers."
    ]
    if sweep.original is not None:
        parts.append(
            f"Grey ({shorten(sweep.original)}): unprotected speech, which an attack must"
            " recognise well before its low values are believed."
        )
    if "singling_out" in sweep.metrics:
        parts.append(
            "Chance of Singling Out is exp(−1), as in the paper; scores without any information"
            " reach a little less."
        )
    return " ".join(parts)
