"""Two systems side by side: bands of their errors, all differences, the worst case of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import isfinite

import altair as alt

from unmask.engine import Comparison, DetBand, DetCurve
from unmask.figures.encode import in_panel, tips
from unmask.figures.figure import Figure, table
from unmask.figures.theme import INK, WIDE, system_colours
from unmask.figures.tradeoff import HIGHEST, LOWEST, det
from unmask.figures.worst_case import GrowthLine, worst_case_growth
from unmask.stress import WorstCaseStudy

_NAMES = {
    "eer": "EER", "eer_raw": "EER, raw", "min_dcf": "minDCF", "act_dcf": "actDCF",
    "cllr": "Cllr", "min_cllr": "min Cllr", "d_ece": "D_ECE", "d_sys": "D_sys",
    "tpr_at_fpr": "TPR",
}  # fmt: skip
_MORE_IS_BETTER = ("d_ece", "d_sys", "tpr_at_fpr", "l_w")


def det_with_bands(
    curves: Mapping[str, DetCurve], bands: Mapping[str, DetBand], *, width: float = WIDE
) -> Figure:
    """DET curves of two systems, each with the band in which its misses lie."""
    colours = system_colours(list(curves))
    drawn = det(curves, colours=colours, width=width, name="compare_det", hull=False)
    edge = f"{LOWEST}, {HIGHEST}"
    areas = [
        alt.Chart(table(p_fa=band.p_fa, low=band.low, high=band.high))
        .mark_area(clip=True, opacity=0.16, color=colours[name])
        .transform_calculate(
            x="quantileNormal(datum.p_fa, 0, 1)",
            y=f"quantileNormal(clamp(datum.low, {edge}), 0, 1)",
            y2=f"quantileNormal(clamp(datum.high, {edge}), 0, 1)",
        )
        .encode(x="x:Q", y="y:Q", y2="y2:Q")
        for name, band in bands.items()
    ]
    chart = drawn.chart.copy()
    chart.layer = [*areas, *chart.layer]
    caption = (
        f"{drawn.caption} Bands: intervals of the miss rate over speakers, point by point;"
        " both systems are drawn on the same speakers, so bands may overlap where the difference is"
        " clear."
    )
    return Figure(drawn.name, drawn.title, caption if bands else drawn.caption, chart)


def difference_intervals(comparison: Comparison, *, width: float = WIDE) -> Figure:
    """Every difference as a share of the first system's value, better to the right."""
    rows = []
    for row in comparison.differences:
        first, delta = float(row.first.value), float(row.difference.value)
        interval = row.difference.interval
        if interval is None or not isfinite(interval.low) or not isfinite(first) or first <= 0:
            continue
        sign = 1 if row.first.metric in _MORE_IS_BETTER else -1
        ends = sorted(sign * end / first for end in (interval.low, interval.high))
        told = [row.first.params[k] for k in ("p_target", "fpr") if k in row.first.params]
        label = _NAMES.get(row.first.metric, row.first.metric)
        rows.append(
            {
                "metric": f"{label} ({told[0]:g})" if told else label,
                "value": 100 * sign * delta / first,
                "low": 100 * ends[0],
                "high": 100 * ends[1],
                "clear": "excludes 0" if ends[0] > 0 or ends[1] < 0 else "includes 0",
            }
        )
    names = [str(row["metric"]) for row in rows]
    columns = ("metric", "value", "low", "high", "clear")
    data = table(**{name: [row[name] for row in rows] for name in columns})
    second = comparison.second
    x = alt.X("low:Q", title=f"{second} is better by, relative to {comparison.first} (%)")
    y = alt.Y("metric:N", sort=names, title=None)
    colour = alt.Color(
        "clear:N",
        title="Interval",
        scale=alt.Scale(domain=["excludes 0", "includes 0"], range=["#0072B2", "#9ca3af"]),
    )
    tip = tips("metric:N|Metric; value:Q|Better by (%)|.2f; low:Q|from|.2f; high:Q|to|.2f")
    base = alt.Chart(data)
    zero = alt.Chart(table(at=[0.0])).mark_rule(color=INK, strokeWidth=1).encode(x="at:Q")
    chart = alt.layer(
        zero,
        base.mark_rule(strokeWidth=2.4).encode(x, y, colour, x2="high:Q", tooltip=tip),
        base.mark_point(filled=True, size=60, opacity=1).encode(
            alt.X("value:Q"), y, colour, tooltip=tip
        ),
    )
    level = next(
        (r.difference.interval.level for r in comparison.differences if r.difference.interval), 0.95
    )
    return Figure(
        "compare_differences",
        comparison.verdict.partition(":")[0] + f": {second} against {comparison.first}",
        f"{100 * level:g} % intervals of each difference on shared draws, as a share of the value"
        f" of {comparison.first}; to the right of 0 {second} recognises better.",
        in_panel(chart, width=width, ratio=0.5, description="Differences of two systems"),
    )


def worst_case_of_systems(studies: Mapping[str, WorstCaseStudy], *, width: float = WIDE) -> Figure:
    """P_FA^N of several systems at the threshold that weighs both errors alike."""
    first = next(iter(studies.values()))
    drawn = worst_case_growth(
        [
            GrowthLine(name, study.empirical, len(study.operating) // 2, study.predicted)
            for name, study in studies.items()
        ],
        width=width,
        name="compare_worst_case",
        title=f"False alarms when the closest of N voices tries, up to N = {first.population:,}",
    )
    caption = (
        "At each system's threshold at which a miss and a false alarm cost alike."
        f" {drawn.caption} Bands are of {100 * first.predicted.level:g} % and hold the spread of"
        " models."
    )
    return replace(drawn, caption=caption)
