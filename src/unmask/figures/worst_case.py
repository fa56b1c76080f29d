"""Worst-case false alarms against the number of impostors, over thresholds, models and systems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np

from unmask.base import BoolArray
from unmask.figures import draw
from unmask.figures.figure import Figure, captioned, join, require, table
from unmask.figures.theme import DASHED, MUTED, PALETTE, SEQUENTIAL, SOLID, is_wide
from unmask.stress import Prediction, WorstCase, WorstCaseStudy

Rates = WorstCase | Prediction
_EXACT, _PREDICTED = "measured", "extrapolated"
_DASHES = {_EXACT: SOLID, _PREDICTED: DASHED}
_RIVALS, _DOTTED = "models that fit as well", (1.5, 2)
_RATIO = 0.72


def _impostors(last: float, *, field: str = "count", first: float = 1, **more: bool) -> alt.X:
    """Numbers of impostors up to ``last``, a tick at each power of ten."""
    ticks = [10.0**k for k in range(int(np.log10(last)) + 1)]
    how: draw.Style = {"values": ticks, "format": "~s", **more}
    title = "Number of impostors to choose from, N"
    return draw.axis(alt.X, field, title, (first, last), log=True, **how)


def _coloured(field: str, names: Iterable[str], title: str, *before: str) -> alt.Color:
    """Colour by a field in the order of the palette, after those ``before`` it."""
    named = draw.legend(title, symbolType="stroke", symbolOpacity=1)
    shades = dict(zip(names, (*before, *PALETTE), strict=False))
    return draw.by(alt.Color, field, shades, legend=named)


def _columns(
    rates: Rates, place: int, kept: BoolArray | slice = slice(None), *, scale: float = 1.0
) -> dict[str, Any]:
    fields = {"rate": rates.values, "low": rates.low, "high": rates.high}
    return {"count": rates.counts[kept]} | {
        name: scale * values[kept, place] for name, values in fields.items()
    }


@dataclass(frozen=True, eq=False)
class GrowthLine:
    """A system at the threshold in ``place``, measured and, where a model was fitted, predicted."""

    system: str
    measured: WorstCase
    place: int
    predicted: Prediction | None = None

    def parts(self, scale: float = 1.0) -> list[dict[str, Any]]:
        """What the line is, counts, rates and intervals: those measured, and those beyond."""
        parts = [{"line": _EXACT, **_columns(self.measured, self.place, scale=scale)}]
        if self.predicted is not None:
            beyond = np.asarray(self.predicted.counts >= self.measured.impostors)
            columns = _columns(self.predicted, self.place, beyond, scale=scale)
            parts.append({"line": _PREDICTED, **columns})
        return parts


def worst_case_curves(study: WorstCaseStudy, *, rivals: bool = False) -> Figure:
    """P_FA^N against N at each threshold: measured solid, extrapolated dashed with its band."""
    exact, far = study.empirical, study.predicted
    names = [point.name for point in study.operating]
    rows = join(
        table(threshold=label, **part)
        for t, label in enumerate(names)
        for part in GrowthLine(label, exact, t, far).parts(100)
    )
    beyond = far.counts >= exact.impostors
    others = [
        table(
            line=_RIVALS,
            threshold=label,
            model=model,
            count=far.counts[beyond],
            rate=100 * values[beyond, t],
        )
        for t, label in enumerate(names)
        for model, values in (far.rivals if rivals else {}).items()
    ]
    colour = _coloured("threshold", names, "Threshold")
    x = _impostors(float(max(far.counts[-1], exact.counts[-1])))
    y = draw.axis(alt.Y, "rate", "Worst-case false-alarm rate (%)", (0, 100))
    dash = draw.line_kind({**_DASHES, **({_RIVALS: _DOTTED} if others else {})})
    layers = [
        draw.band(rows, x, y, colour, alt.Detail("line:N"), opacity=0.16),
        draw.mark(rows, "line", x, y, colour, dash, draw.tips("worst_case_curves"), clip=True),
    ]
    if others:
        channels = (x, y, colour, dash, alt.Detail("model:N"), draw.tips("worst_case_rivals"))
        layers.insert(1, draw.mark(join(others), "line", *channels, strokeWidth=0.9, opacity=0.8))
    return captioned(
        "worst_case_curves",
        draw.in_panel(*layers, ratio=_RATIO),
        impostors=exact.impostors,
        model=far.model,
        level=100 * far.level,
        rivals=bool(others),
    )


def worst_case_map(study: WorstCaseStudy) -> Figure:
    """Heat map of predicted P_FA^N over (N, τ)."""
    counts, levels = study.predicted.counts, study.levels
    columns, rows = 10 ** _edges(np.log10(counts)), _edges(levels)
    up, across = np.indices((levels.size, counts.size)).reshape(2, -1)
    cells = table(
        left=columns[across],
        right=columns[across + 1],
        bottom=rows[up],
        top=rows[up + 1],
        count=counts[across],
        threshold=levels[up],
        rate=100 * study.surface[across, up],
    )
    first, last = float(columns[0]), float(columns[-1])
    direction = "vertical" if is_wide() else "horizontal"
    channels = (
        _impostors(last, field="left", first=first, grid=False),
        alt.X2("right:Q"),
        draw.axis(alt.Y, "bottom", "Threshold", (float(rows[0]), float(rows[-1])), grid=False),
        alt.Y2("top:Q"),
        alt.Color(
            "rate:Q",
            scale=alt.Scale(scheme=SEQUENTIAL, domain=[0, 100]),
            legend=draw.legend("False alarms (%)", direction=direction),
        ),
    )
    chart = draw.in_panel(
        draw.mark(cells, "rect", *channels, draw.tips("worst_case_map"), stroke=None),
        _at_hand(study, color="white", strokeWidth=1.4),
        ratio=_RATIO,
    )
    impostors, model = study.empirical.impostors, study.predicted.model
    return captioned("worst_case_map", chart, impostors=impostors, model=model)


def _at_hand(study: WorstCaseStudy, **style: Any) -> alt.Chart:
    """A rule at the impostors that were measured."""
    return draw.dashed(table(count=float(study.empirical.impostors)), alt.X("count:Q"), **style)


def _edges(centres: np.ndarray) -> np.ndarray:
    """Borders of touching cells around their centres."""
    middle = (centres[1:] + centres[:-1]) / 2
    ends = (2 * centres[0] - middle[0], 2 * centres[-1] - middle[-1])
    return np.concatenate([[ends[0]], middle, [ends[1]]])


def needed_thresholds(study: WorstCaseStudy) -> Figure:
    """For each rate of ``study.limits``, the threshold needed against N: measured, and beyond."""
    counts, impostors = study.predicted.counts, study.empirical.impostors
    lines = {f"{100 * rate:g} %": needed for rate, needed in study.limits.items()}
    parts = {_EXACT: counts <= impostors, _PREDICTED: counts >= impostors}
    rows = join(
        table(rate=label, line=line, count=counts[known], threshold=needed[known])
        for label, needed in lines.items()
        for line, some in parts.items()
        for known in [some & np.isfinite(needed)]
    )
    channels = (
        _impostors(float(counts[-1])),
        alt.Y("threshold:Q", title="Threshold needed", scale=alt.Scale(zero=False)),
        _coloured("rate", lines, "Worst case at most"),
        draw.line_kind(_DASHES),
        draw.tips("worst_case_thresholds"),
    )
    rule = _at_hand(study, color=MUTED, strokeWidth=1)
    chart = draw.in_panel(draw.mark(rows, "line", *channels), rule, ratio=_RATIO)
    model = study.predicted.model
    return captioned("worst_case_thresholds", chart, impostors=impostors, model=model)


def worst_case_figures(study: WorstCaseStudy) -> tuple[Figure, ...]:
    """All figures of a study."""
    curves = worst_case_curves(study, rivals=is_wide())
    return (curves, worst_case_map(study), needed_thresholds(study))


def worst_case_growth(lines: Sequence[GrowthLine], *, colours: draw.Colours = None) -> Figure:
    """One line per system: measured solid, extrapolated dashed, each with its band."""
    require(lines, "worst case")
    shades = draw.colours_for(list(dict.fromkeys(line.system for line in lines)), colours)
    parts = [(line.system, part) for line in lines for part in line.parts()]
    rows = join(table(system=system, **part) for system, part in parts)
    last = max(float(part["count"].max()) for _, part in parts)
    highest = np.concatenate([part[field] for _, part in parts for field in ("high", "rate")])
    top = min(1.0, np.ceil(10 * float(np.nanmax(highest))) / 10)
    x = _impostors(max(last, 2.0))
    ticks = np.arange(0, 11)[:: 1 if top <= 0.5 else 2] / 10
    named = "Worst-case false-alarm rate (%)"
    y = draw.percent_axis(alt.Y, "rate", named, ends=(0, top), ticks=ticks[ticks <= top].tolist())
    colour = draw.system_colour(list(shades), shades)
    far = any(line.predicted is not None for line in lines)
    dash = draw.line_kind(_DASHES) if far else draw.line_kind({_EXACT: SOLID}).legend(None)
    chart = draw.in_panel(
        draw.band(rows, x, y, colour, alt.Detail("line:N"), opacity=0.12),
        draw.mark(rows, "line", x, y, colour, dash, draw.tips("worst_case_growth"), clip=True),
        ratio=0.6,
    )
    return captioned("worst_case_growth", chart, far=far)


def worst_case_of_systems(
    studies: Mapping[str, WorstCaseStudy], *, privacy: bool = False
) -> Figure:
    """P_FA^N of systems, safeguards with ``privacy``, at the threshold of equal costs."""
    first = next(iter(studies.values()))
    lines = [
        GrowthLine(name, study.empirical, len(study.operating) // 2, study.predicted)
        for name, study in studies.items()
    ]
    drawn = worst_case_growth(lines)
    return captioned(
        "compare_worst_case",
        drawn.chart,
        growth=drawn.caption,
        population=first.population,
        level=100 * first.predicted.level,
        privacy=privacy,
    )
