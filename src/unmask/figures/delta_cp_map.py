"""The delta C-P map: where a new system beats the old one."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np

from unmask.base import BoolArray
from unmask.errors import InputError
from unmask.figures import cp_cells
from unmask.figures.cp_cells import Axes, Panel, axes_for, hatching, kept, panel_for, rectangles
from unmask.figures.cp_map import SPACING, side_for
from unmask.figures.data import text_table
from unmask.figures.encode import panel_columns
from unmask.figures.figure import Figure, Layers
from unmask.figures.theme import DIVERGING, INK, WIDE, shorten
from unmask.stress import OUTCOMES, DeltaCpMap

_REACHES = (0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0)
_HELD = 0.99
_INFINITE = -1e9


def delta_cp_map_figure(
    deltas: Sequence[DeltaCpMap],
    *,
    width: float = WIDE,
    name: str = "delta_cp_map",
    title: str = "Delta C-P map: where the new system makes fewer errors than the old one",
) -> Figure:
    """Relative change of each cell, blue where the test system wins, all on one scale.

    Comparisons by two metrics stand side by side where they follow each other.
    """
    if not deltas:
        raise InputError("delta C-P map: expected at least one comparison, found none")
    metrics = len({delta.metric for delta in deltas})
    columns = metrics if metrics > 1 else panel_columns(len(deltas), width=width)
    side = side_for(len(deltas), columns, width)
    limit = reach(deltas)
    panels = [
        delta_panel(delta, side=side, limit=limit, left=i % columns == 0, with_metric=metrics > 1)
        for i, delta in enumerate(deltas)
    ]
    pairs = ", ".join(f"{d.test} against {d.reference}" for d in deltas)
    chart = alt.concat(*panels, columns=columns, spacing=SPACING).properties(
        description=f"Delta C-P maps of {pairs}"
    )
    parts = [*_caption(deltas, limit), *cp_cells.not_drawn(panel_for(deltas[0], side=side))]
    return Figure(name, title, " ".join(parts), chart)


def reach(deltas: Sequence[DeltaCpMap]) -> float:
    """The end of the colour scale: the smallest of a few round numbers that 99 % of cells keep."""
    sizes = np.concatenate([np.abs(d.rcr[d.well_defined]) for d in deltas])
    return next(
        (limit for limit in _REACHES if np.mean(sizes <= limit) >= _HELD or not sizes.size),
        _REACHES[-1],
    )


def delta_panel(
    delta: DeltaCpMap,
    *,
    side: float,
    limit: float,
    left: bool = True,
    legend: bool = True,
    with_metric: bool = False,
) -> Layers:
    """One delta map with its proportions in the heading; cells beyond the scale carry a dot."""
    panel = panel_for(delta, side=side)
    axes = axes_for(left=left, panel=panel)
    values = np.where(np.isneginf(delta.rcr), _INFINITE, delta.rcr)
    cells = (
        rectangles(delta, values, panel, axes)
        .transform_calculate(
            change=f"datum.value <= {_INFINITE} ? '−∞' : format(datum.value, '+.2%')"
        )
        .encode(
            alt.Color(
                "value:Q",
                scale=alt.Scale(
                    range=list(DIVERGING), domain=[-limit, limit], domainMid=0, clamp=True
                ),
                legend=alt.Legend(
                    title="Change (RCR)",
                    values=[-limit, -limit / 2, 0, limit / 2, limit],
                    labelExpr="datum.value ? format(datum.value, '+.2~%') : '0 %'",
                    gradientLength=min(160, panel.height - 20),
                )
                if legend
                else None,
            ),
            tooltip=[alt.Tooltip("change:N", title="Relative change"), *cp_cells.TRIALS],
        )
    )
    old, new = shorten(delta.reference, limit=14), shorten(delta.test, limit=14)
    words = cp_cells.heading(
        f"{old} → {new}{f', {metric_name(delta)}' if with_metric else ''}", *proportions(delta)
    )
    layers = [
        cells,
        *_beyond(delta, beyond(delta, limit), panel, axes),
        *hatching(delta, panel, axes),
        *words,
    ]
    return alt.layer(*layers).properties(width=panel.width, height=panel.height)


def beyond(delta: DeltaCpMap, limit: float) -> BoolArray:
    """Well-defined cells whose change is larger than the colours tell."""
    return np.asarray(delta.well_defined & (np.abs(delta.rcr) > limit))


def _beyond(delta: DeltaCpMap, cells: BoolArray, panel: Panel, axes: Axes) -> list[alt.Chart]:
    columns, rows = kept(delta.x.size, panel.step), kept(delta.y.size, panel.step)
    row, column = np.nonzero(cells[np.ix_(rows, columns)])
    if not row.size:
        return []
    x, y = ((np.append(0.0, axis[:-1]) + axis) / 2 for axis in (delta.x[columns], delta.y[rows]))
    dots: alt.Chart = (
        alt.Chart(text_table(x=x[column], y=y[row]))
        .mark_circle(color=INK, size=max(2.0, (panel.width / columns.size) ** 2 / 9), opacity=0.8)
        .encode(*axes)
    )
    return [dots]


def metric_name(delta: DeltaCpMap) -> str:
    """What the two maps measure."""
    return {"eer": "EER", "min_dcf": "minDCF"}[delta.metric.name]


def proportions(delta: DeltaCpMap) -> list[str]:
    """Win, tie and lose in percent, each with its interval where there is one."""
    made = delta.intervals
    return [
        f"{name} {cp_cells.within(getattr(delta, name), getattr(made, name, None))}"
        for name in OUTCOMES
    ]


def _caption(deltas: Sequence[DeltaCpMap], limit: float) -> list[str]:
    parts = [
        "Colour: relative change ratio (old − new)/old of each cell; blue, the new system makes "
        "fewer errors; vermilion, more. A cell holds the hardest share of targets (x) and "
        "nontargets (y); all trials are in the upper right corner."
    ]
    several = len({delta.metric for delta in deltas}) > 1
    parts += [
        f"{delta.test} against {delta.reference}{f' by {metric_name(delta)}' if several else ''}: "
        f"{', '.join(proportions(delta))} of the well-defined cells."
        for delta in deltas
    ]
    parts += beyond_words(deltas, limit)
    if not all(d.well_defined.all() for d in deltas):
        parts.append("Hatched: fewer than 30 trials of a class, not well-defined.")
    return parts


def beyond_words(deltas: Sequence[DeltaCpMap], limit: float) -> list[str]:
    """One sentence on the cells that carry a dot."""
    count = sum(int(beyond(delta, limit).sum()) for delta in deltas)
    if not count:
        return []
    return [
        f"Dots: {count:,} cells that change by more than ±{100 * limit:g} %, the end of the scale."
    ]
