"""Charts of three classes: the a-DCF over thresholds, and the paths that meet in the t-EER."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import altair as alt

from unmask.engine import SpoofCurve
from unmask.figures import draw
from unmask.figures.figure import Figure, captioned, join, require, table
from unmask.figures.theme import DASHED, INK, NONTARGET, PALETTE, SOLID, TARGET, width

_SPOOF = PALETTE[4]
SPOOF_SHADES = {"SV: nontargets": NONTARGET, "SPF: spoofs": _SPOOF, "SASV: both": INK}
"""What targets are told from, and the colours of it."""


def a_dcf_curves(curves: Mapping[str, SpoofCurve]) -> Figure:
    """One panel per system: the cost over thresholds, its parts dashed, its least value a dot."""
    require(curves, "a-DCF")
    named = alt.Legend(title=None, orient="bottom", symbolType="stroke", columns=2, labelLimit=200)
    panels = {(name, "Threshold"): curve for name, curve in curves.items()}
    parts = next(iter(curves.values())).lines
    dashes = {part: list(DASHED if number else SOLID) for number, part in enumerate(parts)}
    dash = draw.by(alt.StrokeDash, "part", dashes, legend=named)
    one = draw.dashed(table(cost=1.0), alt.Y("cost:Q"), strokeWidth=1)
    fields, shades = ("part", "cost", "Normalised cost"), (INK, TARGET, NONTARGET, _SPOOF)
    chart = _panels("a_dcf", panels, fields, shades, named, dash, under=[one], top=1.5)
    return captioned("a_dcf", chart, systems=curves)


def t_eer_paths(paths: Mapping[tuple[str, str], SpoofCurve]) -> Figure:
    """One panel per pair of systems: errors along the path of each share of spoofs."""
    require(paths, "t-EER", "pair of systems")
    named = alt.Legend(title="Among impostors", orient="bottom", symbolType="stroke")
    panels = {(name, f"Threshold of {cm}"): path for (name, cm), path in paths.items()}
    fields = ("share", "error", "Error of the tandem (%)")
    shades = NONTARGET, PALETTE[2], _SPOOF
    percent = "format(100 * datum.value, '~r')"
    chart = _panels("t_eer_path", panels, fields, shades, named, labelExpr=percent, tickCount=5)
    return captioned("t_eer_path", chart, systems=[f"{one} with {cm}" for one, cm in paths])


def _panels(
    name: str,
    curves: Mapping[tuple[str, str], SpoofCurve],
    fields: tuple[str, str, str],
    shades: tuple[str, ...],
    named: alt.Legend,
    *looks: Any,
    under: list[Any] | None = None,
    top: float | None = None,
    **axis: Any,
) -> alt.ConcatChart:
    """A panel per system and name of thresholds: its lines, and a dot where it is judged."""
    line, number, title = fields
    columns = draw.panel_columns(len(curves))
    inner = draw.main_panel() if columns == 1 else (width() - 70 - 60 * columns) / columns
    panels = []
    for i, ((system, over), curve) in enumerate(curves.items()):
        colour = draw.by(alt.Color, line, dict(zip(curve.lines, shades, strict=True)), legend=named)
        rows = join(
            table(**{line: part, "score": curve.threshold, number: y})
            for part, y in curve.lines.items()
        )
        ends = float(curve.threshold[0]), float(curve.threshold[-1])
        x = draw.axis(alt.X, "score", over, ends, tickCount=5)
        highest = top or 1.08 * max(row[number] or 0 for row in rows.values) or 1
        y = draw.axis(alt.Y, number, None if i % columns else title, (0, highest), **axis)
        dot = table(**{"score": curve.at, number: curve.value})
        value = f", t-EER {draw.percent(curve.value)}"
        layers = [
            *(under or ()),
            draw.mark(rows, "line", x, y, colour, *looks, draw.tips(name), clip=True),
            *([draw.dots(dot, x, y, size=64, color=INK)] if math.isfinite(curve.at) else []),
            draw.panel_title(system, f", a-DCF {curve.value:.3f}" if name == "a_dcf" else value),
        ]
        panels.append(alt.layer(*layers).properties(width=int(inner), height=int(min(inner, 240))))
    return alt.concat(*panels, columns=columns, spacing=24)
