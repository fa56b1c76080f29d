"""Several models side by side, each with its band: Figure 1 of Sholokhov 2020."""

from __future__ import annotations

import altair as alt
import numpy as np

from unmask.figures.data import join, table
from unmask.figures.encode import legend, main_panel
from unmask.figures.figure import Figure
from unmask.figures.theme import PALETTE, WIDE
from unmask.stress import Prediction, WorstCase, WorstCaseStudy

_MEASURED = "measured"


def worst_case_models(
    study: WorstCaseStudy,
    *,
    width: float = WIDE,
    name: str = "worst_case_models",
    title: str = "Models of the closest of N voices",
) -> Figure:
    """P_FA^N against N, one row per threshold: measured, and every model asked for."""
    exact = study.empirical
    lines: dict[str, WorstCase | Prediction] = {
        _MEASURED: exact,
        study.predicted.model: study.predicted,
        **study.compared,
    }
    parts = [
        table(
            threshold=point.name,
            model=model,
            count=found.counts,
            rate=100 * found.values[:, t],
            low=100 * found.low[:, t],
            high=100 * found.high[:, t],
        )
        for t, point in enumerate(study.operating)
        for model, found in lines.items()
    ]
    last = float(study.predicted.counts[-1])
    x = alt.X(
        "count:Q",
        title="Number of impostors to choose from, N",
        scale=alt.Scale(type="log", domain=[1, last], nice=False),
    ).axis(values=[10.0**k for k in range(int(np.log10(last)) + 1)], format="~s")
    scale = alt.Scale(domain=[0, 100])
    colour = alt.Color(
        "model:N",
        scale=alt.Scale(domain=list(lines), range=["#555555", *PALETTE[: len(lines) - 1]]),
        legend=legend(width=width, title="Model", symbolType="stroke", symbolOpacity=1),
    )
    base = alt.Chart(join(parts))
    band = base.mark_area(opacity=0.14).encode(
        x, alt.Y("low:Q", title="False alarms (%)", scale=scale), alt.Y2("high:Q"), colour
    )
    line = base.mark_line(clip=True).encode(
        x,
        alt.Y("rate:Q", title="False alarms (%)", scale=scale),
        colour,
        tooltip=["threshold:N", "model:N", "count:Q", "rate:Q", "low:Q", "high:Q"],
    )
    chart = (
        alt.layer(band, line)
        .properties(width=main_panel(width), height=int(0.4 * main_panel(width)))
        .facet(row=alt.Row("threshold:N", title=None, sort=[p.name for p in study.operating]))
    )
    caption = (
        f"Each model with its {100 * study.predicted.level:g} % band, each threshold in a panel of"
        f" its own. Beyond {exact.impostors:,} impostors nothing was measured: where bands part,"
        " the data do not decide."
    )
    return Figure(name, title, caption, chart)
