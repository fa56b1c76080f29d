"""Worst-case false alarms against the number of impostors, and over thresholds."""

from __future__ import annotations

import altair as alt
import numpy as np

from unmask.figures.data import join, table
from unmask.figures.encode import is_wide, legend, line_kind, main_panel
from unmask.figures.figure import Figure
from unmask.figures.theme import DASHED, PALETTE, SEQUENTIAL, SOLID, WIDE
from unmask.figures.worst_case_models import worst_case_models
from unmask.stress import WorstCaseStudy

_EXACT, _PREDICTED = "measured", "extrapolated"
_COUNT_AXIS = "Number of impostors to choose from, N"


def worst_case_curves(
    study: WorstCaseStudy,
    *,
    rivals: bool = False,
    width: float = WIDE,
    name: str = "worst_case_curves",
    title: str = "False alarms when the adversary picks the closest of N voices",
) -> Figure:
    """P_FA^N against N at each threshold: measured solid, extrapolated dashed with its band."""
    names = [point.name for point in study.operating]
    exact, far = study.empirical, study.predicted
    beyond = far.counts >= exact.impostors
    parts, bands, others = [], [], []
    for t, label in enumerate(names):
        parts.append(
            table(threshold=label, line=_EXACT, count=exact.counts, rate=100 * exact.values[:, t])
        )
        parts.append(
            table(
                threshold=label,
                line=_PREDICTED,
                count=far.counts[beyond],
                rate=100 * far.values[beyond, t],
            )
        )
        for counts, low, high, line in (
            (exact.counts, exact.low[:, t], exact.high[:, t], _EXACT),
            (far.counts[beyond], far.low[beyond, t], far.high[beyond, t], _PREDICTED),
        ):
            bands.append(
                table(threshold=label, line=line, count=counts, low=100 * low, high=100 * high)
            )
        if rivals:
            others += [
                table(
                    threshold=label,
                    model=model,
                    count=far.counts[beyond],
                    rate=100 * values[beyond, t],
                )
                for model, values in far.rivals.items()
            ]
    colour = alt.Color(
        "threshold:N",
        scale=alt.Scale(domain=names, range=list(PALETTE[: len(names)])),
        legend=legend(width=width, title="Threshold", symbolType="stroke", symbolOpacity=1),
    )
    last = float(max(far.counts[-1], exact.counts[-1]))
    x = alt.X(
        "count:Q", title=_COUNT_AXIS, scale=alt.Scale(type="log", domain=[1, last], nice=False)
    ).axis(values=[10.0**k for k in range(int(np.log10(last)) + 1)], format="~s")
    y = alt.Y("rate:Q", title="Worst-case false-alarm rate (%)", scale=alt.Scale(domain=[0, 100]))
    band = (
        alt.Chart(join(bands))
        .mark_area(opacity=0.16)
        .encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), colour, detail="line:N")
    )
    lines = (
        alt.Chart(join(parts))
        .mark_line(clip=True)
        .encode(
            x,
            y,
            colour,
            line_kind({_EXACT: SOLID, _PREDICTED: DASHED}, width=width),
            tooltip=[
                alt.Tooltip("threshold:N", title="Threshold"),
                alt.Tooltip("line:N", title="Line"),
                alt.Tooltip("count:Q", title="Impostors", format=","),
                alt.Tooltip("rate:Q", title="False alarms (%)", format=".2f"),
            ],
        )
    )
    layers = [band, lines]
    if others:
        layers.insert(
            1,
            alt.Chart(join(others))
            .mark_line(strokeWidth=0.9, strokeDash=[1.5, 2], opacity=0.8)
            .encode(x, y, colour, detail="model:N", tooltip=["model:N", "count:Q", "rate:Q"]),
        )
    chart = alt.layer(*layers).properties(
        width=main_panel(width), height=int(0.72 * main_panel(width))
    )
    return Figure(name, title, _caption(study, rivals and bool(others)), chart)


def worst_case_map(
    study: WorstCaseStudy,
    *,
    width: float = WIDE,
    name: str = "worst_case_map",
    title: str = "Worst-case false alarms over impostors and thresholds",
) -> Figure:
    """Heat map of predicted P_FA^N over (N, τ)."""
    counts, levels = study.predicted.counts, study.levels
    columns, rows = _edges(np.log10(counts)), _edges(levels)
    up, across = np.indices((levels.size, counts.size)).reshape(2, -1)
    cells = table(
        left=10 ** columns[across],
        right=10 ** columns[across + 1],
        bottom=rows[up],
        top=rows[up + 1],
        count=counts[across],
        threshold=levels[up],
        rate=100 * study.surface[across, up],
    )
    last = float(10 ** columns[-1])
    ticks = [10.0**k for k in range(int(np.log10(last)) + 1)]
    heat = (
        alt.Chart(cells)
        .mark_rect(stroke=None)
        .encode(
            alt.X(
                "left:Q",
                title=_COUNT_AXIS,
                scale=alt.Scale(type="log", domain=[float(10 ** columns[0]), last], nice=False),
            ).axis(values=ticks, format="~s", grid=False),
            alt.X2("right:Q"),
            alt.Y(
                "bottom:Q",
                title="Threshold",
                scale=alt.Scale(domain=[float(rows[0]), float(rows[-1])], nice=False),
            ).axis(grid=False),
            alt.Y2("top:Q"),
            alt.Color(
                "rate:Q",
                scale=alt.Scale(scheme=SEQUENTIAL, domain=[0, 100]),
                legend=legend(
                    width=width,
                    title="False alarms (%)",
                    direction="vertical" if is_wide(width) else "horizontal",
                ),
            ),
            tooltip=[
                alt.Tooltip("count:Q", title="Impostors", format=","),
                alt.Tooltip("threshold:Q", title="Threshold", format=".4f"),
                alt.Tooltip("rate:Q", title="False alarms (%)", format=".2f"),
            ],
        )
    )
    seen = (
        alt.Chart(table(count=float(study.empirical.impostors)))
        .mark_rule(color="white", strokeDash=list(DASHED), strokeWidth=1.4)
        .encode(alt.X("count:Q"))
    )
    chart = alt.layer(heat, seen).properties(
        width=main_panel(width), height=int(0.72 * main_panel(width))
    )
    caption = (
        "Bright: the closest of N voices is accepted almost always; dark: almost never. "
        "A threshold is safe for a population where its row is still dark. Left of the dashed "
        f"line ({study.empirical.impostors:,} impostors) the model rests on measured rates, right "
        f"of it it extrapolates ({study.predicted.model})."
    )
    return Figure(name, title, caption, chart)


def needed_thresholds(
    study: WorstCaseStudy,
    *,
    width: float = WIDE,
    name: str = "worst_case_thresholds",
    title: str = "Which threshold keeps the worst case under a given rate",
) -> Figure:
    """For each rate of ``study.limits``, the threshold needed against N."""
    counts = study.predicted.counts
    labels = [f"{100 * rate:g} %" for rate in study.limits]
    parts = []
    for label, found in zip(labels, study.limits.values(), strict=True):
        kept = np.isfinite(found)
        parts.append(table(rate=label, count=counts[kept], threshold=found[kept]))
    last = float(counts[-1])
    chart = (
        alt.Chart(join(parts))
        .mark_line()
        .encode(
            alt.X(
                "count:Q",
                title=_COUNT_AXIS,
                scale=alt.Scale(type="log", domain=[1, last], nice=False),
            ).axis(values=[10.0**k for k in range(int(np.log10(last)) + 1)], format="~s"),
            alt.Y("threshold:Q", title="Threshold needed", scale=alt.Scale(zero=False)),
            alt.Color(
                "rate:N",
                scale=alt.Scale(domain=labels, range=list(PALETTE[: len(labels)])),
                legend=legend(width=width, title="Worst case at most", symbolType="stroke"),
            ),
            tooltip=[
                alt.Tooltip("rate:N", title="Worst case at most"),
                alt.Tooltip("count:Q", title="Impostors", format=","),
                alt.Tooltip("threshold:Q", title="Threshold", format=".4f"),
            ],
        )
        .properties(width=main_panel(width), height=int(0.72 * main_panel(width)))
    )
    caption = (
        "Each line is the lowest threshold at which the closest of N voices is accepted no more "
        "often than the legend says: the model's answer, which no longer rests on measured rates "
        f"beyond {study.empirical.impostors:,} impostors. Higher thresholds cost misses."
    )
    return Figure(name, title, caption, chart)


def worst_case_figures(study: WorstCaseStudy, *, width: float = WIDE) -> tuple[Figure, ...]:
    """All figures of a study."""
    figures = (
        worst_case_curves(study, width=width, rivals=is_wide(width)),
        worst_case_map(study, width=width),
        needed_thresholds(study, width=width),
    )
    return (*figures, worst_case_models(study, width=width)) if study.compared else figures


def _edges(centres: np.ndarray) -> np.ndarray:
    """Borders of touching cells around their centres."""
    middle = (centres[1:] + centres[:-1]) / 2
    ends = (2 * centres[0] - middle[0], 2 * centres[-1] - middle[-1])
    return np.concatenate([[ends[0]], middle, [ends[1]]])


def _caption(study: WorstCaseStudy, rivals: bool) -> str:
    caption = (
        f"Solid: rates over all subsets of the {study.empirical.impostors:,} impostors at"
        f" hand; dashed: {study.predicted.model} beyond them. Bands:"
        f" {100 * study.predicted.level:g} % intervals over speakers, as targets and as impostors;"
        " beyond the impostors at hand they also hold the models' spread and the reach. At N = 1"
        " the curve starts at the ordinary false-alarm rate; the faster it climbs, the less that"
        " rate says about an adversary who may choose."
    )
    if rivals:
        caption += " Dotted: models that fit the measured part about as well."
    return caption
