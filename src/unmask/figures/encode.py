"""Encodings that several charts share: systems by colour, lines by dash, panels in a grid."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from unmask.errors import InputError
from unmask.figures.data import table
from unmask.figures.theme import CHANCE, NARROW, WIDE, shorten, system_colours


def colours_for(names: Sequence[str], colours: Mapping[str, str] | None) -> list[str]:
    """The colours of ``names``, in order; ``None`` takes the palette as it comes."""
    chosen = system_colours(names) if colours is None else colours
    for name in names:
        if name not in chosen:
            raise InputError(f"colours: expected one for every system, found none for {name!r}")
    return [chosen[name] for name in names]


def system_colour(
    names: Sequence[str],
    colours: Mapping[str, str] | None,
    *,
    notes: Mapping[str, str] | None = None,
    width: float = WIDE,
    first: str | None = None,
) -> alt.Color:
    """Colour by the field ``system``; the legend shortens names and adds each system's note.

    ``first`` is an entry before the systems, in black (a reference everyone is compared with).
    """
    domain = [*([] if first is None else [first]), *names]
    scale = [*([] if first is None else [CHANCE]), *colours_for(names, colours)]
    note = notes or {}
    labels = [
        f"{shorten(name, limit=22)} ({note[name]})" if name in note else shorten(name)
        for name in domain
    ]
    return alt.Color(
        "system:N",
        scale=alt.Scale(domain=domain, range=scale),
        legend=legend(
            width=width,
            title="System",
            labelExpr=lookup(domain, labels),
            symbolType="stroke",
            symbolOpacity=1,
        ),
    )


def line_kind(kinds: Mapping[str, Sequence[float]], *, width: float = WIDE) -> alt.StrokeDash:
    """Dash by the field ``line``: ``{what the line is: its dash}``.

    Narrow charts have no room for this legend: their captions say what the dashes mean.
    """
    return alt.StrokeDash(
        "line:N",
        scale=alt.Scale(domain=list(kinds), range=[list(dash) for dash in kinds.values()]),
        legend=legend(width=width, title="Line", symbolType="stroke") if is_wide(width) else None,
    )


def is_wide(width: float) -> bool:
    """Whether the chart is nearer to two columns of print than to one."""
    return width >= (NARROW + WIDE) / 2


def main_panel(width: float) -> int:
    """The width of a chart's only panel, leaving room for its axis and legend."""
    return 380 if is_wide(width) else 250


def legend(*, width: float, title: str | None, **options: Any) -> alt.Legend:
    """At the right of wide charts, below narrow ones."""
    if not is_wide(width):
        options = {"orient": "bottom", "columns": 1, "direction": "vertical", **options}
    return alt.Legend(title=title, **options)


def lookup(values: Sequence[str], labels: Sequence[str]) -> str:
    """A Vega expression that writes ``labels`` for ``values``, whatever characters they hold."""
    return f"({json.dumps(list(labels))})[indexof({json.dumps(list(values))}, datum.value)]"


def panel_columns(panels: int, *, width: float) -> int:
    """How many panels stand side by side."""
    most = 3 if is_wide(width) else 1
    return 2 if panels == 4 and most > 1 else min(panels, most)


def panel_title(system: str) -> alt.Chart:
    """A layer that writes the system's name above its panel; the whole name shows on hover."""
    layer: alt.Chart = (
        alt.Chart(table(system=system, label=shorten(system, limit=22)))
        .mark_text(align="left", baseline="bottom", fontSize=11.5, fontWeight=600)
        .encode(
            x=alt.value(0),
            y=alt.value(-6),
            text="label:N",
            tooltip=alt.Tooltip("system:N", title="System"),
        )
    )
    return layer


def percent(fraction: float) -> str:
    """A rate as people write it: two decimals, a space, the sign."""
    return f"{100 * fraction:.2f} %"
