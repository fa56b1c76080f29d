"""Voice similarity matrices in four quadrants, and the zoo plots that come from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt

from unmask.figures.encode import dashed, in_grid, is_wide, panel_columns, panel_title, tips
from unmask.figures.figure import Figure, Layers, require_systems, table, text_table
from unmask.figures.image import CELLS
from unmask.figures.theme import MUTED, PAPER, SEQUENTIAL, UNIT_DOMAIN, WIDE
from unmask.privacy import Zoo
from unmask.privacy.similarity import MatrixView

_DIGITS = 3


def similarity_matrices(
    views: Mapping[str, MatrixView],
    *,
    width: float = WIDE,
    name: str = "similarity_matrices",
    title: str = "Voice similarity of every pair of speakers",
) -> Figure:
    """One panel per safeguard: OO, OP and PP as quadrants, speakers named on hover."""
    require_systems(views, chart="similarity matrices")
    columns = min(2, panel_columns(len(views), width=width))
    room = (width - 120 - 40 * columns) / columns if columns > 1 else min(width - 120, 440)
    panels = [
        matrix_panel(view, room, title=system, key=f"speakers{i}")
        for i, (system, view) in enumerate(views.items())
    ]
    described = f"Voice similarity matrices of {', '.join(views)}"
    chart = in_grid(panels, columns=columns, spacing=26, description=described)
    return Figure(name, title, _caption(views), chart)


def matrix_panel(view: MatrixView, room: float, *, title: str, key: str) -> Layers:
    """One matrix in cells of whole pixels, at most ``room`` wide."""
    size = view.values.shape[0]
    cell = max(1, int(room // size))
    side = cell * size
    part = len(view.labels)
    names = alt.param(name=key, value=list(view.labels))
    parts = alt.param(name=f"{key}_parts", value=list(view.parts))

    def who(axis: str) -> str:
        return (
            f"{key}[datum.{axis} % {part}] + ' (' + {key}_parts[floor(datum.{axis} / {part})] + ')'"
        )

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
            one=who("row"),
            other=who("column"),
        )
        .mark_rect(style=CELLS, strokeWidth=0, aria=False)
        .encode(
            alt.X("left:Q", scale=alt.Scale(domain=[0, side], nice=False), axis=None),
            alt.X2("right:Q"),
            alt.Y("top:Q", scale=alt.Scale(domain=[side, 0], nice=False), axis=None),
            alt.Y2("bottom:Q"),
            alt.Color(
                "similarity:Q",
                title="Similarity",
                scale=alt.Scale(domain=list(UNIT_DOMAIN), scheme=SEQUENTIAL),
                legend=alt.Legend(
                    values=[0, 0.25, 0.5, 0.75, 1], format=".2f", gradientLength=min(160, side)
                ),
            ),
            tooltip=[
                *tips("one:N|Row; other:N|Column"),
                alt.Tooltip("similarity:Q", title="Similarity", format=f".{_DIGITS}f"),
            ],
        )
        .add_params(names, parts)
    )
    layers: list[alt.Chart] = [cells, *_parts(view, side), panel_title(title)]
    return alt.layer(*layers).properties(width=side, height=side)


def _parts(view: MatrixView, side: int) -> list[alt.Chart]:
    """Lines between the parts, and their names beside and below the matrix."""
    number = len(view.parts)
    if number == 1:
        return []
    edge = side / number
    names = table(name=list(view.parts), place=[edge * (i + 0.5) for i in range(number)])
    cuts = table(place=[edge * (i + 1) for i in range(number - 1)])
    line: dict[str, Any] = {"color": PAPER, "strokeWidth": 2}
    text: dict[str, Any] = {"fontSize": 11, "color": MUTED}
    return [
        alt.Chart(cuts).mark_rule(**line).encode(x="place:Q"),
        alt.Chart(cuts).mark_rule(**line).encode(y="place:Q"),
        alt.Chart(names)
        .mark_text(baseline="top", **text)
        .encode(x="place:Q", y=alt.value(side + 6), text="name:N"),
        alt.Chart(names)
        .mark_text(baseline="bottom", angle=270, **text)
        .encode(y="place:Q", x=alt.value(-6), text="name:N"),
    ]


def _caption(views: Mapping[str, MatrixView]) -> str:
    caption = (
        "Upper left: original voices against original ones; lower right: protected against "
        "protected; the other two quadrants: original against protected. A bright diagonal in the "
        "upper right means the protected voice still points to its owner; a bright diagonal in the "
        "lower right means protected voices stay distinct. A dark diagonal in the upper right "
        "points to the owner as well: protected voices are then less like their owner than like "
        "others. Where the diagonal does not stand out, the scores as they are say nothing of who "
        "is who."
    )
    most = max(view.per_bin for view in views.values())
    if most > 1:
        caption += (
            f" Large matrices are binned, up to {most} speakers to a cell: diagonal cells show "
            "the mean self-similarity, all others the mean similarity of different speakers."
        )
    return caption


_COLOURS = {
    "doves": "#009E73",
    "chameleons": "#E69F00",
    "phantoms": "#56B4E9",
    "worms": "#D55E00",
    "": "#6b7280",
}
_REST = "none of them"
_RARE = 0.05


def zoo_plots(
    zoos: Mapping[str, Zoo],
    *,
    matrices: Mapping[str, MatrixView] | None = None,
    width: float = WIDE,
    name: str = "zoo",
    title: str | None = None,
) -> Figure:
    """One row per set: the similarity matrix where given, and the plot of all speakers.

    The title tells which kinds of speakers are more frequent than by chance unless one is given.
    """
    require_systems(zoos, chart="zoo plot")
    views = matrices or {}
    side = 250 if is_wide(width) and views else 300 if is_wide(width) else 220
    rows = []
    for i, (system, zoo) in enumerate(zoos.items()):
        plot = _plot(system, zoo, side)
        if system in views:
            panel = matrix_panel(views[system], side, title=system, key=f"zoo{i}")
            rows += [panel, plot]
        else:
            rows.append(plot)
    columns = 2 if is_wide(width) else 1
    described = f"Zoo plots of {', '.join(zoos)}"
    chart = in_grid(rows, columns=columns, spacing=30, description=described)
    chart = chart.resolve_scale(color="independent")
    told = "; ".join(
        f"{system}: "
        + ", ".join(
            f"{corner.count} {kind} (by chance {corner.expected:.1f}, p = {corner.p_value:.2g})"
            for kind, corner in zoo.corners.items()
        )
        for system, zoo in zoos.items()
    )
    caption = (
        "Every point is a speaker. To the right: recognised well; up: confused with others. "
        "Dashed: outer quartiles; their corners are doves (lower right), chameleons (upper right), "
        f"phantoms (lower left) and worms (upper left). {told}."
    )
    return Figure(name, title or "; ".join(map(_frequent, zoos.items())), caption, chart)


def _frequent(one: tuple[str, Zoo]) -> str:
    """Kinds of speakers that are more frequent than by chance, at five per cent."""
    corners = one[1].corners.items()
    more = [
        f"{corner.count} {kind} where {corner.expected:.0f} are expected"
        for kind, corner in corners
        if corner.p_value < _RARE
    ]
    return f"{one[0]}: {', '.join(more) or 'no kind of speaker is more frequent than by chance'}"


def _plot(system: str, zoo: Zoo, side: int) -> Layers:
    corner = [kind or _REST for kind in zoo.corner_of()]
    rows = table(
        speaker=list(zoo.speakers), target=zoo.target, impostor=zoo.impostor, corner=corner
    )
    kinds = [kind or _REST for kind in _COLOURS]
    x = alt.X("target:Q", title=f"Mean target {zoo.score}", scale=alt.Scale(zero=False, padding=12))
    y = alt.Y(
        "impostor:Q", title=f"Mean impostor {zoo.score}", scale=alt.Scale(zero=False, padding=12)
    )
    lines = {
        axis: dashed(table(at=list(zoo.quartiles[axis])), color=MUTED, strokeWidth=0.8)
        for axis in ("target", "impostor")
    }
    points = (
        alt.Chart(rows)
        .mark_point(filled=True, size=46, opacity=0.9)
        .encode(
            x,
            y,
            alt.Color(
                "corner:N",
                title="Corner",
                scale=alt.Scale(domain=kinds, range=list(_COLOURS.values())),
            ),
            tooltip=tips(
                "speaker:N|Speaker; corner:N|Corner; target:Q|Mean target|.3f; "
                "impostor:Q|Mean impostor|.3f"
            ),
        )
    )
    return alt.layer(
        lines["target"].encode(x="at:Q"),
        lines["impostor"].encode(y="at:Q"),
        points,
        panel_title(system),
    ).properties(width=side, height=side)
