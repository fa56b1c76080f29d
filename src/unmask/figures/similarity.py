"""Voice similarity matrices in four quadrants, and the zoo plots that come from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

import altair as alt

from unmask.figures import draw
from unmask.figures.figure import Called, Figure, Layers, captioned, require, table, text_table
from unmask.figures.image import CELLS
from unmask.figures.theme import MUTED, PAPER, SEQUENTIAL, WIDE
from unmask.privacy import Zoo
from unmask.privacy.similarity import MatrixView

_DIGITS = 3


def similarity_matrices(
    views: Mapping[str, MatrixView], *, width: float = WIDE, **called: Unpack[Called]
) -> Figure:
    """One panel per safeguard: OO, OP and PP as quadrants, speakers named on hover."""
    require(views, "similarity matrices")
    columns = min(2, draw.panel_columns(len(views), width=width))
    room = (width - 120 - 40 * columns) / columns if columns > 1 else min(width - 120, 440)
    panels = [
        matrix_panel(view, room, title=system, key=f"speakers{i}")
        for i, (system, view) in enumerate(views.items())
    ]
    chart = alt.concat(*panels, columns=columns, spacing=26)
    most = max(view.per_bin for view in views.values())
    binned = most if most > 1 else 0
    return captioned("similarity_matrices", chart, called, systems=views, binned=binned)


def matrix_panel(view: MatrixView, room: float, *, title: str, key: str) -> Layers:
    """One matrix in cells of whole pixels, at most ``room`` wide."""
    size, part = view.values.shape[0], len(view.labels)
    cell = max(1, int(room // size))
    side = cell * size
    who = f"{key}[datum.{{0}} % {part}] + ' (' + {key}_parts[floor(datum.{{0}} / {part})] + ')'"
    cells = (
        alt.Chart(text_table(similarity=view.values.reshape(-1).round(_DIGITS)))
        .transform_window(number="row_number()")
        .transform_calculate(
            column=f"(datum.number - 1) % {size}", row=f"floor((datum.number - 1) / {size})"
        )
        .transform_calculate(
            left=f"datum.column * {cell}",
            top=f"datum.row * {cell}",
            right=f"(datum.column + 1) * {cell}",
            bottom=f"(datum.row + 1) * {cell}",
            one=who.format("row"),
            other=who.format("column"),
        )
        .add_params(
            alt.param(name=key, value=list(view.labels)),
            alt.param(name=f"{key}_parts", value=list(view.parts)),
        )
    )
    legend = alt.Legend(values=[0, 0.25, 0.5, 0.75, 1], format=".2f", gradientLength=min(160, side))
    places = (
        alt.X("left:Q", scale=alt.Scale(domain=[0, side], nice=False), axis=None),
        alt.X2("right:Q"),
        alt.Y("top:Q", scale=alt.Scale(domain=[side, 0], nice=False), axis=None),
        alt.Y2("bottom:Q"),
    )
    unit = alt.Scale(domain=[0.0, 1.0], scheme=SEQUENTIAL)
    colour = alt.Color("similarity:Q", title="Similarity", scale=unit, legend=legend)
    hover = f"one:N|Row; other:N|Column; similarity:Q|Similarity|.{_DIGITS}f"
    style = {"style": CELLS, "strokeWidth": 0, "aria": False}
    return alt.layer(
        draw.mark(cells, "rect", *places, colour, hover=hover, **style),
        *(_parts(view, side) if len(view.parts) > 1 else ()),
        draw.panel_title(title),
    ).properties(width=side, height=side)


def _parts(view: MatrixView, side: int) -> list[alt.Chart]:
    """Lines between the parts, and their names beside and below the matrix."""
    number = len(view.parts)
    edge = side / number
    names = table(name=list(view.parts), place=[edge * (i + 0.5) for i in range(number)])
    cuts = table(place=[edge * (i + 1) for i in range(number - 1)])
    line: draw.Style = {"color": PAPER, "strokeWidth": 2}
    text: draw.Style = {"fontSize": 11, "color": MUTED}
    x, y, label = alt.X("place:Q"), alt.Y("place:Q"), alt.Text("name:N")
    return [
        draw.mark(cuts, "rule", x, **line),
        draw.mark(cuts, "rule", y, **line),
        draw.mark(names, "text", x, draw.YPixel(side + 6), label, baseline="top", **text),
        draw.mark(names, "text", y, draw.XPixel(-6), label, baseline="bottom", angle=270, **text),
    ]


_COLOURS = {
    "doves": "#009E73",
    "chameleons": "#E69F00",
    "phantoms": "#56B4E9",
    "worms": "#D55E00",
    "none of them": "#6b7280",
}
_RARE = 0.05


def zoo_plots(
    zoos: Mapping[str, Zoo],
    *,
    matrices: Mapping[str, MatrixView] | None = None,
    width: float = WIDE,
    **called: Unpack[Called],
) -> Figure:
    """One row per set: the similarity matrix where given, and the plot of all speakers.

    The title tells which kinds of speakers are more frequent than by chance unless one is given.
    """
    require(zoos, "zoo plot")
    views = matrices or {}
    wide = draw.is_wide(width)
    side = (250 if views else 300) if wide else 220
    panels = []
    for i, (system, zoo) in enumerate(zoos.items()):
        if system in views:
            panels.append(matrix_panel(views[system], side, title=system, key=f"zoo{i}"))
        panels.append(_plot(system, zoo).properties(width=side, height=side))
    chart = alt.concat(*panels, columns=2 if wide else 1, spacing=30)
    corners = {
        system: ", ".join(
            f"{corner.count} {kind} (by chance {corner.expected:.1f}, p = {corner.p_value:.2g})"
            for kind, corner in zoo.corners.items()
        )
        for system, zoo in zoos.items()
    }
    return captioned(
        "zoo",
        chart.resolve_scale(color="independent"),
        called,
        systems=zoos,
        corners="; ".join(f"{system}: {counts}" for system, counts in corners.items()),
        frequent="; ".join(f"{system}: {_frequent(zoo)}" for system, zoo in zoos.items()),
    )


def _frequent(zoo: Zoo) -> str:
    """Kinds of speakers that are more frequent than by chance, at five per cent."""
    more = [
        f"{corner.count} {kind} where {corner.expected:.0f} are expected"
        for kind, corner in zoo.corners.items()
        if corner.p_value < _RARE
    ]
    return ", ".join(more) or "no kind of speaker is more frequent than by chance"


def _plot(system: str, zoo: Zoo) -> Layers:
    corner = [kind or "none of them" for kind in zoo.corner_of()]
    rows = table(
        speaker=list(zoo.speakers), target=zoo.target, impostor=zoo.impostor, corner=corner
    )
    scale = alt.Scale(zero=False, padding=12)
    x = alt.X("target:Q", title=f"Mean target {zoo.score}", scale=scale)
    y = alt.Y("impostor:Q", title=f"Mean impostor {zoo.score}", scale=scale)
    kinds = alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values()))
    colour = alt.Color("corner:N", title="Corner", scale=kinds)
    hover = (
        "speaker:N|Speaker; corner:N|Corner; target:Q|Mean target|.3f; impostor:Q|Mean impostor|.3f"
    )
    thin: draw.Style = {"color": MUTED, "strokeWidth": 0.8}
    return alt.layer(
        draw.dashed(table(at=list(zoo.quartiles["target"])), alt.X("at:Q"), **thin),
        draw.dashed(table(at=list(zoo.quartiles["impostor"])), alt.Y("at:Q"), **thin),
        draw.mark(rows, "point", x, y, colour, hover=hover, filled=True, size=46, opacity=0.9),
        draw.panel_title(system),
    )
