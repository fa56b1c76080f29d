"""Calibration plot: what the scores promise against what is found."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt

from unmask.engine import Reliability
from unmask.figures.data import join, require_systems, table
from unmask.figures.encode import legend, main_panel, panel_columns, panel_title, system_colour
from unmask.figures.figure import Figure, Layers
from unmask.figures.theme import CHANCE, DASHED, WIDE

_TOGETHER = 3


def calibration_plot(
    curves: Mapping[str, Reliability],
    *,
    colours: Mapping[str, str] | None = None,
    width: float = WIDE,
    name: str = "calibration_plot",
    title: str = "Calibration: predicted posterior against the share of targets found",
) -> Figure:
    """Points with interval whiskers around the diagonal; up to three systems share a panel."""
    require_systems(curves, chart="calibration plot")
    names = list(curves)
    colour = system_colour(names, colours, width=width)
    groups = [names] if len(names) <= _TOGETHER else [[n] for n in names]
    columns = panel_columns(len(groups), width=width)
    if len(groups) > 1:
        colour = colour.legend(None)
        side = int((width - 150 - 40 * columns) / columns) if columns > 1 else 240
    else:
        side = main_panel(width)
    largest = max(int(curve.count.max(initial=1)) for curve in curves.values())
    size = alt.Size(
        "count:Q",
        scale=alt.Scale(type="sqrt", domain=[0, largest], range=[12, 220]),
        legend=legend(
            width=width,
            title="Trials in the bin",
            values=_round_counts(largest),
            symbolType="circle",
            symbolFillColor="#6b7280",
            symbolStrokeWidth=0,
            format=",d",
        ),
    )
    panels = [
        _panel(
            {n: curves[n] for n in group},
            colour,
            size,
            first=i % columns == 0,
            titled=len(groups) > 1,
        ).properties(width=side, height=side)
        for i, group in enumerate(groups)
    ]
    described = f"Calibration plot of {', '.join(names)}: observed share of targets per bin"
    if len(panels) == 1:
        chart: Layers | alt.ConcatChart = panels[0].properties(description=described)
    else:
        chart = alt.concat(*panels, columns=columns, spacing=16).properties(description=described)
    caption = (
        "Scores are read as log-likelihood ratios and the prior is the share of targets among the "
        "trials; the posterior is that of a target. On the dashed diagonal scores mean what they "
        "say; below it they promise too much, above it too little. "
        "Whiskers are 95 % score intervals of the share in each bin, trials taken as independent."
    )
    return Figure(name, title, caption, chart)


def _round_counts(largest: int) -> list[int]:
    """Up to three counts for the legend, ten times apart, the greatest a power of ten."""
    top = 10 ** (len(str(largest)) - 1)
    return [count for count in (top // 100, top // 10, top) if count > 0]


def _panel(
    curves: Mapping[str, Reliability],
    colour: alt.Color,
    size: alt.Size,
    *,
    first: bool,
    titled: bool,
) -> Layers:
    scale = alt.Scale(domain=[-0.04, 1.04], nice=False)
    ticks = [0, 0.2, 0.4, 0.6, 0.8, 1]
    x = alt.X("predicted:Q", title="Predicted posterior", scale=scale).axis(
        format=".1f", values=ticks, labelOverlap=False
    )
    y, whisker = (
        alt.Y(field, title="Share of targets" if first else None, scale=scale).axis(
            format=".1f", values=ticks, labelOverlap=False
        )
        for field in ("observed:Q", "low:Q")
    )
    rows = join(
        table(
            system=system,
            predicted=curve.predicted,
            observed=curve.observed,
            low=curve.low,
            high=curve.high,
            count=curve.count,
        )
        for system, curve in curves.items()
    )
    tooltip = [
        alt.Tooltip("system:N", title="System"),
        alt.Tooltip("predicted:Q", title="Predicted", format=".4f"),
        alt.Tooltip("observed:Q", title="Observed", format=".4f"),
        alt.Tooltip("low:Q", title="Interval from", format=".4f"),
        alt.Tooltip("high:Q", title="Interval to", format=".4f"),
        alt.Tooltip("count:Q", title="Trials", format=",.0f"),
    ]
    base = alt.Chart(rows).encode(x, y, colour, tooltip=tooltip)
    diagonal = (
        alt.Chart(table(predicted=[0, 1], observed=[0, 1]))
        .mark_line(color=CHANCE, strokeDash=list(DASHED), strokeWidth=1)
        .encode(x, y)
    )
    layers = [
        diagonal,
        base.mark_line(strokeWidth=1, opacity=0.55),
        base.mark_rule(strokeWidth=1.4).encode(whisker, alt.Y2("high:Q")),
        base.mark_point(filled=True, opacity=0.95).encode(size),
    ]
    return alt.layer(*layers, *([panel_title(next(iter(curves)))] if titled else []))
