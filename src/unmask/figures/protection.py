"""Protection of each speaker: who is left recognisable."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np

from unmask.figures.data import require_systems, table
from unmask.figures.encode import colours_for, panel_title
from unmask.figures.figure import Figure
from unmask.figures.theme import CHANCE, DASHED, WIDE
from unmask.privacy.similarity import PLAIN, SpeakerProtection

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
                tooltip=[
                    alt.Tooltip("speaker:N", title="Speaker"),
                    alt.Tooltip("deid:Q", title="DeID (%)", format=".1f"),
                    alt.Tooltip("similarity:Q", title="Original to own protected", format=".3f"),
                    alt.Tooltip("l_w:Q", title="l_w", format=".2f"),
                ],
            )
        )
        spans = (
            alt.Chart(rows)
            .mark_rule(color=CHANCE, strokeWidth=1)
            .transform_filter("isValid(datum.low) && isFinite(datum.low)")
            .encode(alt.X("speaker:N" if few else "place:O", sort=None), y="low:Q", y2="high:Q")
        )
        rule = (
            alt.Chart(table(at=100 * float(protection.deid.mean())))
            .mark_rule(color=CHANCE, strokeDash=list(DASHED))
            .encode(y="at:Q")
        )
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
