"""What charts share: axes, colours, dashes and legends, layers of marks, labels, panels."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import altair as alt

from unmask.errors import InputError
from unmask.figures.figure import Chart, Layers, table, words
from unmask.figures.theme import (
    CHANCE,
    DASHED,
    INK,
    MUTED,
    SOLID,
    is_bare,
    is_wide,
    shorten,
    system_colours,
)

Position = TypeVar("Position", alt.X, alt.Y)
Look = TypeVar("Look", alt.Color, alt.Shape, alt.StrokeDash)
Ends = Sequence[float]
Style = dict[str, Any]
Colours = Mapping[str, str] | None
XPixel: Any = alt.XValue
YPixel: Any = alt.YValue
_LINE = 14


def axis(
    channel: type[Position],
    field: str,
    title: str | None,
    ends: Ends,
    *,
    log: bool = False,
    clamp: bool = False,
    **options: Any,
) -> Position:
    """Numbers between ``ends``, not rounded; ``options`` are those of ticks and labels."""
    more: Style = {"type": "log" if log else alt.Undefined, "clamp": clamp or alt.Undefined}
    scale = alt.Scale(domain=list(ends), nice=False, **more)
    ticks = alt.Axis(**options) if options else alt.Undefined
    return channel(f"{field}:Q", title=title, scale=scale, axis=ticks)


def percent_axis(
    channel: type[Position],
    field: str,
    title: str | None,
    *,
    ends: Ends = (0, 1),
    ticks: Sequence[float] = (0, 0.25, 0.5, 0.75, 1),
) -> Position:
    """Fractions that are written as percent."""
    written = "format(100 * datum.value, 'd')"
    return axis(channel, field, title, ends, values=list(ticks), labelExpr=written)


def colours_for(names: Sequence[str], colours: Colours) -> dict[str, str]:
    """The colours of ``names``, in order; ``None`` takes the palette as it comes."""
    chosen = system_colours(names) if colours is None else colours
    for name in names:
        if name not in chosen:
            raise InputError(f"colours: expected one for every system, found none for {name!r}")
    return {name: chosen[name] for name in names}


def by(
    channel: type[Look], field: str, looks: Mapping[str, Any], *, legend: alt.Legend | None = None
) -> Look:
    """What marks look like by their field: ``{its value: the colour, shape or dash}``."""
    scale = alt.Scale(domain=list(looks), range=list(looks.values()))
    return channel(f"{field}:N", scale=scale, legend=legend)


def system_colour(
    names: Sequence[str],
    colours: Colours,
    *,
    first: str | None = None,
    notes: Mapping[str, str] | None = None,
    title: str = "System",
) -> alt.Color:
    """Colour by the field ``system``; the legend shortens names, and has ``notes`` behind them.

    ``title`` says what they are, ``first`` is an entry before the systems, in black (a reference
    everyone is compared with).
    """
    shades = {} if first is None else {first: CHANCE}
    shades |= colours_for(names, colours)
    after = {name: f" ({note})" for name, note in (notes or {}).items()}
    short = {n: shorten(n, limit=20 if after else 28) + after.get(n, "") for n in shades}
    named = legend(title, labelExpr=lookup(short), symbolType="stroke", symbolOpacity=1)
    return by(alt.Color, "system", shades, legend=named)


def line_kind(dashes: Mapping[str, Sequence[float]]) -> alt.StrokeDash:
    """Dash by the field ``line``: ``{what the line is: its dash}``.

    Narrow charts have no room for this legend beside a caption that says what the dashes mean.
    """
    named = legend("Line", symbolType="stroke") if is_wide() or is_bare() else None
    return by(alt.StrokeDash, "line", {n: list(d) for n, d in dashes.items()}, legend=named)


def attacker_lines(
    labels: Mapping[str, str], *, original: str | None, chance: str | None = None, **options: Any
) -> tuple[alt.Color, alt.StrokeDash]:
    """A colour for each attacker of a safeguard, grey for unprotected speech.

    ``labels`` are those of the attackers in the legend, ``options`` its own. ``chance`` is the name
    of a further line, black and dashed.
    """
    named = alt.Legend(symbolType="stroke", symbolSize=420, labelExpr=lookup(labels), **options)
    shades = system_colours((n for n in labels if n != chance), original=original)
    shades = {n: shades.get(n, CHANCE) for n in labels}
    dashes = {n: list(DASHED if n == chance else SOLID) for n in labels}
    return (
        by(alt.Color, "attacker", shades, legend=named),
        by(alt.StrokeDash, "attacker", dashes, legend=named),
    )


def legend(title: str | None, **options: Any) -> alt.Legend:
    """At the right of wide charts, below narrow ones."""
    if not is_wide():
        options = {"orient": "bottom", "columns": 1, "direction": "vertical", **options}
    return alt.Legend(title=title, **options)


def lookup(labels: Mapping[str, str]) -> str:
    """A Vega expression that writes ``{value: label}``, whatever characters they hold."""
    values = json.dumps(list(labels))
    return f"({json.dumps(list(labels.values()))})[indexof({values}, datum.value)]"


def tips(name: str, **facts: str) -> list[alt.Tooltip]:
    """The channel of what shows under the pointer: the fields under ``name`` in ``captions.toml``,
    in which ``facts`` stand for their names.
    """
    fields = (field.format(**facts).split("|") for field in words()["hover"][name])
    return [
        alt.Tooltip(field, title=title, format=form[0] if form else alt.Undefined)
        for field, title, *form in fields
    ]


def mark(rows: alt.InlineData | alt.Chart, kind: str, *channels: Any, **style: Any) -> alt.Chart:
    """A layer of marks: lines, points, rules …, with their ``style``, encoded by ``channels``."""
    chart = rows if isinstance(rows, alt.Chart) else Chart(rows)
    layer: alt.Chart = getattr(chart, f"mark_{kind}")(**style).encode(*channels)
    return layer


def dots(rows: alt.InlineData | alt.Chart, *channels: Any, **style: Any) -> alt.Chart:
    """Filled points, opaque unless styled."""
    return mark(rows, "point", *channels, **{"filled": True, "opacity": 1, **style})


def dashed(rows: alt.InlineData, *channels: Any, kind: str = "rule", **style: Any) -> alt.Chart:
    """Dashes, black unless styled: chance, a threshold, what one compares with."""
    return mark(rows, kind, *channels, **{"color": CHANCE, "strokeDash": list(DASHED), **style})


def band(rows: alt.InlineData, x: alt.X, y: alt.Y, *more: Any, opacity: float) -> alt.Chart:
    """The area between the fields ``low`` and ``high``: an interval along a line of ``y``."""
    low: alt.Y = y.copy()
    low.shorthand = "low:Q"
    style: Style = {"fillOpacity": opacity, "strokeWidth": 0, "clip": True}
    return mark(rows, "area", x, low, alt.Y2("high:Q"), *more, **style)


def crosses(rows: alt.InlineData, x: alt.X, y: alt.Y, colour: alt.Color) -> list[alt.Chart]:
    """Intervals of both values of a point: the fields of ``x`` and ``y``, ``_low`` to ``_high``."""
    across, up = (_field(one) for one in (x, y))
    ends = (
        (alt.X(f"{across}_low:Q"), alt.X2(f"{across}_high:Q"), y),
        (x, alt.Y(f"{up}_low:Q"), alt.Y2(f"{up}_high:Q")),
    )
    return [mark(rows, "rule", *end, colour, strokeWidth=1.2) for end in ends]


def _field(channel: alt.X | alt.Y) -> str:
    return str(channel.shorthand).partition(":")[0]


def above(label: str, *, lift: float = 6, whole: str | None = None, **style: Any) -> alt.Chart:
    """A layer that writes ``label`` above its panel; the ``whole`` name shows on hover."""
    rows = table(label=label) if whole is None else table(label=label, system=whole)
    at = [XPixel(0), YPixel(-lift), alt.Text("label:N")]
    style = {"fontSize": 11.5, "fontWeight": 600, "align": "left", "baseline": "bottom", **style}
    return mark(rows, "text", *at, *([] if whole is None else [tips("system")]), **style)


def panel_title(system: str, more: str = "") -> alt.Chart:
    """The system's name above its panel, and ``more``, which is never cut."""
    return above(shorten(system, limit=22) + more, whole=system + more)


def heading(name: str, *notes: str) -> list[alt.Chart]:
    """Lines above a panel: what is shown, and its numbers."""
    first: Style = {"fontWeight": "bold", "color": INK}
    other: Style = {"fontWeight": "normal", "color": MUTED, "fontSize": 10.5}
    return [
        above(line, lift=5 + _LINE * (len(notes) - i), **(other if i else first))
        for i, line in enumerate((name, *notes))
    ]


def panel_columns(panels: int) -> int:
    """How many panels stand side by side."""
    most = 3 if is_wide() else 1
    return 2 if panels == 4 and most > 1 else min(panels, most)


def main_panel() -> int:
    """The width of a chart's only panel, leaving room for its axis and legend."""
    return 380 if is_wide() else 250


def in_panel(*layers: alt.Chart, ratio: float) -> Layers:
    """Layers in a chart's only panel, ``ratio`` of its width high."""
    side = main_panel()
    return alt.layer(*layers).properties(width=side, height=int(ratio * side))


def percent(fraction: float) -> str:
    """A rate as people write it: two decimals, a space, the sign."""
    return f"{100 * fraction:.2f} %"
