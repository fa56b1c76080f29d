"""The delta C-P map: where a new system beats the old one."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np

from unmask.errors import InputError
from unmask.figures import cp_cells
from unmask.figures.cp_cells import axes_for, hatching, panel_for, rectangles
from unmask.figures.cp_map import SPACING, side_for
from unmask.figures.encode import panel_columns
from unmask.figures.figure import Figure, Layers
from unmask.figures.theme import DIVERGING, WIDE, shorten
from unmask.stress.cpmap_delta import OUTCOMES, DeltaCpMap

_REACHES = (0.1, 0.25, 0.5, 1.0)
_INFINITE = -1e9


def delta_cp_map_figure(
    deltas: Sequence[DeltaCpMap],
    *,
    width: float = WIDE,
    name: str = "delta_cp_map",
    title: str = "Delta C-P map: where the new system makes fewer errors than the old one",
) -> Figure:
    """Relative change of each cell, blue where the test system wins, all on one scale."""
    if not deltas:
        raise InputError("delta C-P map: expected at least one comparison, found none")
    columns = panel_columns(len(deltas), width=width)
    side = side_for(len(deltas), columns, width)
    limit = reach(deltas)
    panels = [
        delta_panel(delta, side=side, limit=limit, left=i % columns == 0)
        for i, delta in enumerate(deltas)
    ]
    pairs = ", ".join(f"{d.test} against {d.reference}" for d in deltas)
    chart = alt.concat(*panels, columns=columns, spacing=SPACING).properties(
        description=f"Delta C-P maps of {pairs}"
    )
    told = [*_caption(deltas, limit), *cp_cells.not_drawn(panel_for(deltas[0], side=side))]
    return Figure(name, title, " ".join(told), chart)


def reach(deltas: Sequence[DeltaCpMap]) -> float:
    """The end of the colour scale: the smallest of a few round numbers that holds all cells."""
    largest = max(float(np.abs(d.rcr[d.well_defined]).max(initial=0.0)) for d in deltas)
    return next((limit for limit in _REACHES if largest <= limit), _REACHES[-1])


def delta_panel(delta: DeltaCpMap, *, side: float, limit: float, left: bool = True) -> Layers:
    """One delta map with its proportions in the heading."""
    panel = panel_for(delta, side=side)
    axes = axes_for(left=left, panel=panel)
    values = np.where(np.isneginf(delta.rcr), _INFINITE, delta.rcr)
    cells = (
        rectangles(delta, values, panel, axes)
        .transform_calculate(
            told=f"datum.value <= {_INFINITE} ? '−∞' : format(datum.value, '+.2%')"
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
                    labelExpr="datum.value ? format(datum.value, '+.0%') : '0 %'",
                    gradientLength=min(160, panel.height - 20),
                ),
            ),
            tooltip=[alt.Tooltip("told:N", title="Relative change"), *cp_cells.TRIALS],
        )
    )
    old, new = shorten(delta.reference, limit=14), shorten(delta.test, limit=14)
    words = cp_cells.heading(f"{old} → {new}", proportions(delta))
    layers = [cells, *hatching(delta, panel, axes), *words]
    return alt.layer(*layers).properties(width=panel.width, height=panel.height)


def proportions(delta: DeltaCpMap) -> str:
    """Win, tie and lose in percent."""
    shares = (f"{name} {100 * getattr(delta, name):.1f}" for name in OUTCOMES)
    return f"{', '.join(shares)} %"


def _caption(deltas: Sequence[DeltaCpMap], limit: float) -> list[str]:
    told = [
        "Colour: relative change ratio (old − new)/old of each cell; blue, the new system makes "
        "fewer errors; vermilion, more. A cell holds the hardest share of targets (x) and "
        "nontargets (y); all trials are in the upper right corner."
    ]
    told += [
        f"{delta.test} against {delta.reference}: wins {100 * delta.win:.1f} %, ties "
        f"{100 * delta.tie:.1f} %, loses {100 * delta.lose:.1f} % of the well-defined cells."
        for delta in deltas
    ]
    if limit == _REACHES[-1]:
        told.append("Losses beyond −100 % have the end colour.")
    if not all(d.well_defined.all() for d in deltas):
        told.append("Hatched: fewer than 30 trials of a class, not well-defined.")
    return told
