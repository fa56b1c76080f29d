"""Empirical cross-entropy over the prior log-odds."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np

from unmask.engine import EceProfile
from unmask.figures.data import join, require_systems, table
from unmask.figures.encode import is_wide, line_kind, main_panel, system_colour
from unmask.figures.figure import Figure
from unmask.figures.theme import DASHED, SOLID, WIDE, shorten

HIGHEST = 1.08

_PRIOR = "prior alone, no scores"
_ORACLE, _ACTUAL = "oracle (calibrated)", "actual (scores as LLRs)"


def ece_profile(
    curves: Mapping[str, EceProfile],
    *,
    colours: Mapping[str, str] | None = None,
    width: float = WIDE,
    name: str = "ece_profile",
    title: str = "Empirical cross-entropy: what an attacker still does not know",
) -> Figure:
    """ECE of every system, oracle solid and actual dashed, below the prior's entropy in black."""
    require_systems(curves, chart="ECE profile")
    reference = next(iter(curves.values()))
    rows = join(
        [
            table(system=_PRIOR, line=_ORACLE, log_odds=reference.log_odds, bits=reference.prior),
            *(
                table(system=system, line=line, log_odds=curve.log_odds, bits=bits)
                for system, curve in curves.items()
                for line, bits in ((_ORACLE, curve.oracle), (_ACTUAL, curve.actual))
            ),
        ]
    )
    lowest = min(float(curve.log_odds.min()) for curve in curves.values())
    highest = max(float(curve.log_odds.max()) for curve in curves.values())
    encoded = alt.Chart(rows).encode(
        alt.X(
            "log_odds:Q",
            title="Prior log-odds of a target (natural log)",
            scale=alt.Scale(domain=[lowest, highest], nice=False),
        ).axis(tickCount=10 if is_wide(width) else 5),
        alt.Y(
            "bits:Q", title="Empirical cross-entropy (bits)", scale=alt.Scale(domain=[0, HIGHEST])
        ).axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1.0], format=".1f"),
        system_colour(list(curves), colours, width=width, first=_PRIOR),
        line_kind({_ORACLE: SOLID, _ACTUAL: DASHED}, width=width),
        tooltip=[
            alt.Tooltip("system:N", title="System"),
            alt.Tooltip("line:N", title="Line"),
            alt.Tooltip("log_odds:Q", title="Prior log-odds", format=".2f"),
            alt.Tooltip("bits:Q", title="Cross-entropy (bits)", format=".4f"),
        ],
    )
    dots = (
        encoded.transform_filter("abs(datum.log_odds) < 1e-9")
        .transform_filter(alt.datum.system != _PRIOR)
        .mark_point(size=46, filled=True, opacity=1, clip=True)
    )
    chart = alt.layer(encoded.mark_line(clip=True), dots).properties(
        width=main_panel(width),
        height=int(0.78 * main_panel(width)),
        description=f"Empirical cross-entropy of {', '.join(curves)} over the prior log-odds",
    )
    return Figure(name, title, _caption(curves), chart)


def _caption(curves: Mapping[str, EceProfile]) -> str:
    caption = (
        "Solid: oracle calibration; dashed: the scores taken as LLRs as they are. "
        "The closer an oracle curve comes to the black one, the less the scores disclose; on it, "
        "they disclose nothing. The gap between a dashed curve and its solid one is lost to poor "
        "calibration; above the black curve the scores mislead whoever takes them as LLRs. "
        "The dots at even odds are C_llr^min (solid) and C_llr (dashed). "
        "Divide log-odds by 2.303 for base 10."
    )
    cut = [shorten(name) for name, curve in curves.items() if not np.all(curve.actual <= HIGHEST)]
    if cut:
        caption += f" The panel is cut above {HIGHEST:g} bit; actual values go beyond it for "
        caption += ", ".join(cut) + "."
    return caption
