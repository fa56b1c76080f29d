"""Worst-case false alarms against the number of impostors, over thresholds, models and systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import altair as alt
import numpy as np

from unmask.base import BoolArray
from unmask.figures.encode import (
    band,
    colours_for,
    count_x,
    dashed,
    end_labels,
    in_panel,
    is_wide,
    kinds,
    legend,
    line_kind,
    main_panel,
    tips,
)
from unmask.figures.figure import Figure, join, require_systems, table
from unmask.figures.theme import DASHED, PALETTE, SEQUENTIAL, SOLID, WIDE
from unmask.stress import Prediction, WorstCase, WorstCaseStudy

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
    exact, far = study.empirical, study.predicted
    beyond = far.counts >= exact.impostors
    parts, others = [], []
    names = [point.name for point in study.operating]
    for t, label in enumerate(names):
        for line, curve, kept in GrowthLine(label, exact, t, far).parts():
            low, rate, high = (100 * v[kept, t] for v in (curve.low, curve.values, curve.high))
            counts = curve.counts[kept]
            parts.append(
                table(threshold=label, line=line, count=counts, rate=rate, low=low, high=high)
            )
        for model, values in (far.rivals if rivals else {}).items():
            rate, counts = 100 * values[beyond, t], far.counts[beyond]
            others.append(table(threshold=label, model=model, count=counts, rate=rate))
    colour = kinds(
        "threshold",
        dict(zip(names, PALETTE, strict=False)),
        legend=legend(width=width, title="Threshold", symbolType="stroke", symbolOpacity=1),
    )
    x = _impostors(float(max(far.counts[-1], exact.counts[-1])))
    y = alt.Y("rate:Q", title="Worst-case false-alarm rate (%)", scale=alt.Scale(domain=[0, 100]))
    rows = join(parts)
    layers = [band(rows, x, alt.Y("low:Q"), colour, alt.Detail("line:N"), opacity=0.16)]
    if others:
        line = alt.Chart(join(others)).mark_line(strokeWidth=0.9, strokeDash=[1.5, 2], opacity=0.8)
        seen = ["model:N", "count:Q", "rate:Q"]
        layers.append(line.encode(x, y, colour, detail="model:N", tooltip=seen))
    layers.append(
        alt.Chart(rows)
        .mark_line(clip=True)
        .encode(
            x,
            y,
            colour,
            line_kind({_EXACT: SOLID, _PREDICTED: DASHED}, width=width),
            tooltip=tips(
                "threshold:N|Threshold; line:N|Line; count:Q|Impostors|,; "
                "rate:Q|False alarms (%)|.2f"
            ),
        )
    )
    chart = in_panel(alt.layer(*layers), width=width, ratio=0.72)
    return Figure(name, title, _caption(study, rivals and bool(others)), chart)


def _decades(last: float) -> list[float]:
    return [10.0**k for k in range(int(np.log10(last)) + 1)]


def _impostors(last: float) -> alt.X:
    """Numbers of impostors up to ``last``, a tick at each power of ten."""
    return count_x(_COUNT_AXIS, (1, last), _decades(last), format="~s")


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
    heat = (
        alt.Chart(cells)
        .mark_rect(stroke=None)
        .encode(
            alt.X(
                "left:Q",
                title=_COUNT_AXIS,
                scale=alt.Scale(type="log", domain=[float(10 ** columns[0]), last], nice=False),
            ).axis(values=_decades(last), format="~s", grid=False),
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
            tooltip=tips(
                "count:Q|Impostors|,; threshold:Q|Threshold|.4f; rate:Q|False alarms (%)|.2f"
            ),
        )
    )
    at_hand = table(count=float(study.empirical.impostors))
    seen = dashed(at_hand, color="white", strokeWidth=1.4).encode(alt.X("count:Q"))
    chart = in_panel(alt.layer(heat, seen), width=width, ratio=0.72)
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
    colours = dict(zip(labels, PALETTE, strict=False))
    lines = (
        alt.Chart(join(parts))
        .mark_line()
        .encode(
            _impostors(float(counts[-1])),
            alt.Y("threshold:Q", title="Threshold needed", scale=alt.Scale(zero=False)),
            kinds(
                "rate",
                colours,
                legend=legend(width=width, title="Worst case at most", symbolType="stroke"),
            ),
            tooltip=tips(
                "rate:N|Worst case at most; count:Q|Impostors|,; threshold:Q|Threshold|.4f"
            ),
        )
    )
    chart = in_panel(lines, width=width, ratio=0.72)
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
        " beyond the impostors at hand they also hold the models' spread and the reach. A curve"
        " starts at N = 1, an impostor whom nobody chose: the false-alarm rate in which every pair"
        " of speakers counts alike, however many trials it has. The faster the curve climbs, the"
        " less that rate says about an adversary who may choose."
    )
    if rivals:
        caption += " Dotted: models that fit the measured part about as well."
    return caption


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
        _EXACT: exact,
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
    x = _impostors(float(study.predicted.counts[-1]))
    low, y = (
        alt.Y(field, title="False alarms (%)", scale=alt.Scale(domain=[0, 100]))
        for field in ("low:Q", "rate:Q")
    )
    colour = kinds(
        "model",
        dict(zip(lines, ("#555555", *PALETTE), strict=False)),
        legend=legend(width=width, title="Model", symbolType="stroke", symbolOpacity=1),
    )
    rows = join(parts)
    area = band(rows, x, low, colour, opacity=0.14)
    seen = ["threshold:N", "model:N", "count:Q", "rate:Q", "low:Q", "high:Q"]
    line = alt.Chart(rows).mark_line(clip=True).encode(x, y, colour, tooltip=seen)
    chart = in_panel(alt.layer(area, line), width=width, ratio=0.4).facet(
        row=alt.Row("threshold:N", title=None, sort=[p.name for p in study.operating])
    )
    caption = (
        f"Each model with its {100 * study.predicted.level:g} % band, each threshold in a panel of"
        f" its own. Beyond {exact.impostors:,} impostors nothing was measured: where bands part,"
        " the data do not decide."
    )
    return Figure(name, title, caption, chart)


@dataclass(frozen=True, eq=False)
class GrowthLine:
    """A system at the threshold in ``place``, measured and, where a model was fitted, predicted."""

    system: str
    measured: WorstCase
    place: int
    predicted: Prediction | None = None

    def parts(self) -> list[tuple[str, WorstCase | Prediction, BoolArray]]:
        """Kind of line, rates and the counts to draw."""
        exact = self.measured
        found: list[tuple[str, WorstCase | Prediction, BoolArray]] = [
            (_EXACT, exact, np.ones(exact.counts.size, bool))
        ]
        if self.predicted is not None:
            beyond = np.asarray(self.predicted.counts >= exact.impostors)
            found.append((_PREDICTED, self.predicted, beyond))
        return found


def worst_case_growth(
    lines: Sequence[GrowthLine],
    *,
    colours: Mapping[str, str] | None = None,
    width: float = WIDE,
    name: str = "worst_case_growth",
    title: str = "False alarms when the closest of N impostors tries",
) -> Figure:
    """One line per system: measured solid, extrapolated dashed, each with its band."""
    names = list(dict.fromkeys(line.system for line in lines))
    require_systems(dict.fromkeys(names), chart="worst case")
    parts = [(line, *part) for line in lines for part in line.parts()]
    last = max(float(found.counts[kept].max()) for _, _, found, kept in parts)
    ends = {line.system: float(found.values[-1, line.place]) for line, _, found, _ in parts}
    tops = [found.high[kept, line.place] for line, _, found, kept in parts]
    tops += [found.values[kept, line.place] for line, _, found, kept in parts]
    top = min(1.0, np.ceil(10 * float(np.nanmax(np.concatenate(tops)))) / 10)
    rows = join(
        table(
            system=line.system,
            line=kind,
            count=found.counts[kept],
            value=found.values[kept, line.place],
            low=found.low[kept, line.place],
            high=found.high[kept, line.place],
        )
        for line, kind, found, kept in parts
    )
    x = _impostors(max(last, 2.0))
    scale = alt.Scale(domain=[0, top], nice=False)
    axis = alt.Axis(format="~%", tickCount=5)
    y, low = (
        alt.Y(f"{field}:Q", title="False alarms", scale=scale, axis=axis)
        for field in ("value", "low")
    )
    shades = dict(zip(names, colours_for(names, colours), strict=True))
    colour = kinds("system", shades, legend=None)
    far = any(line.predicted is not None for line in lines)
    # Names stand at the right, where a legend would cover them.
    below = alt.Legend(title=None, orient="bottom", symbolType="stroke") if far else None
    dash = line_kind({_EXACT: SOLID, _PREDICTED: DASHED} if far else {_EXACT: SOLID}).legend(below)
    height = 0.6 * main_panel(width)
    chart = alt.layer(
        band(rows, x, low, colour, alt.Detail("line:N"), opacity=0.12),
        alt.Chart(rows)
        .mark_line(clip=True)
        .encode(
            x,
            y,
            colour,
            dash,
            tooltip=tips(
                "system:N|System; line:N|Line; count:Q|Impostors|,; value:Q|False alarms|.2%; "
                "low:Q|From|.2%; high:Q|To|.2%"
            ),
        ),
        *end_labels(ends, shades, x, y, last=last, span=top, height=height),
    ).properties(width=main_panel(width), height=height)
    caption = (
        "The further a line rises to the right, the more an adversary gains by choosing the voice"
        " that sounds most like the target. At N = 1 every pair of speakers counts alike, however"
        " many trials it has. Bands are intervals over speakers, as targets and as impostors."
    )
    if far:
        caption += " Dashed: a model's answer beyond the impostors at hand."
    return Figure(name, title, caption, chart)
