"""Encodings that several charts share: systems by colour, lines by dash, panels in a grid."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from unmask.errors import InputError
from unmask.figures.figure import Layers, table
from unmask.figures.theme import (
    CHANCE,
    DASHED,
    NARROW,
    ORIGINAL,
    PAPER,
    SOLID,
    WIDE,
    attacker_dashes,
    shorten,
    system_colours,
)

_LABEL = 12.0
UNIT = alt.Scale(domain=[0, 1], nice=False)


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
    width: float = WIDE,
    first: str | None = None,
) -> alt.Color:
    """Colour by the field ``system``; the legend shortens names.

    ``first`` is an entry before the systems, in black (a reference everyone is compared with).
    """
    domain = [*([] if first is None else [first]), *names]
    scale = [*([] if first is None else [CHANCE]), *colours_for(names, colours)]
    return alt.Color(
        "system:N",
        scale=alt.Scale(domain=domain, range=scale),
        legend=legend(
            width=width,
            title="System",
            labelExpr=lookup(domain, [shorten(name) for name in domain]),
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
    rows = table(system=system, label=shorten(system, limit=22))
    layer: alt.Chart = _above(rows).encode(tooltip=alt.Tooltip("system:N", title="System"))
    return layer


def panel_words(label: str, *, lift: int = 6) -> alt.Chart:
    """A layer that writes ``label`` above its panel."""
    return _above(table(label=label), lift)


def _above(rows: alt.InlineData, lift: int = 6) -> alt.Chart:
    words = alt.Chart(rows).mark_text(
        align="left", baseline="bottom", fontSize=11.5, fontWeight=600
    )
    layer: alt.Chart = words.encode(x=alt.value(0), y=alt.value(-lift), text="label:N")
    return layer


def in_grid(
    panels: Sequence[Layers], *, columns: int, spacing: float, description: str
) -> alt.ConcatChart:
    """Panels in rows of ``columns``, ``description`` for readers who do not see them."""
    return alt.concat(*panels, columns=columns, spacing=spacing).properties(description=description)


def in_panel(chart: Any, *, width: float, ratio: float, description: str | None = None) -> Any:
    """The chart in its only panel, ``ratio`` of its width high."""
    side = main_panel(width)
    told = {} if description is None else {"description": description}
    return chart.properties(width=side, height=int(ratio * side), **told)


def percent_y(field: str, title: str | None) -> alt.Y:
    """Fractions from 0 to 1, written as percent, quarters marked."""
    return alt.Y(f"{field}:Q", title=title, scale=UNIT, axis=percent_axis())


def percent_axis(*values: float) -> alt.Axis:
    """An axis of fractions that are written as percent; quarters are marked unless told."""
    marks = list(values or (0, 0.25, 0.5, 0.75, 1))
    return alt.Axis(values=marks, labelExpr="format(100 * datum.value, 'd')")


def count_x(title: str, ends: Sequence[float], ticks: Sequence[float], **axis: Any) -> alt.X:
    """Counts on a logarithmic axis that ends at ``ends``."""
    scale = alt.Scale(type="log", domain=list(ends), nice=False)
    return alt.X("count:Q", title=title, scale=scale, axis=alt.Axis(values=list(ticks), **axis))


def band(rows: alt.InlineData, x: alt.X, low: alt.Y, *more: Any, opacity: float) -> alt.Chart:
    """The area between the fields ``low`` and ``high``: an interval along a line."""
    area = alt.Chart(rows).mark_area(fillOpacity=opacity, strokeWidth=0, clip=True)
    layer: alt.Chart = area.encode(x, low, alt.Y2("high:Q"), *more)
    return layer


def crosses(base: alt.Chart, x: alt.X, y: alt.Y, colour: alt.Color) -> list[alt.Chart]:
    """Intervals of both values of a point: the fields of ``x`` and ``y``, ``_low`` to ``_high``."""
    across, up = (axis.shorthand.partition(":")[0] for axis in (x, y))
    rule = base.mark_rule(strokeWidth=1.2)
    return [
        rule.encode(alt.X(f"{across}_low:Q"), alt.X2(f"{across}_high:Q"), y, colour),
        rule.encode(x, alt.Y(f"{up}_low:Q"), alt.Y2(f"{up}_high:Q"), colour),
    ]


def end_labels(
    ends: Mapping[str, float],
    colours: Mapping[str, str],
    x: alt.X,
    y: alt.Y,
    *,
    last: float,
    span: float,
    height: float,
) -> list[alt.Chart]:
    """Names of lines beside their right ends at ``last``, where they have the values ``ends``.

    ``span`` is how many of these the panel's ``height`` shows.
    """
    points = {name: (last, value) for name, value in ends.items()}
    names = {name: shorten(name, limit=18) for name in ends}
    return labels_at(points, names, colours, x, y, ends=(0.0, span), height=height)


def labels_at(
    points: Mapping[str, tuple[float, float]],
    labels: Mapping[str, str],
    colours: Mapping[str, str],
    x: alt.X | alt.Y,
    y: alt.X | alt.Y,
    *,
    ends: tuple[float, float],
    height: float,
) -> list[alt.Chart]:
    """Labels beside points, higher or lower where they would overlap.

    The panel shows values between ``ends`` in its ``height``.
    """
    apart = _LABEL * (ends[1] - ends[0]) / height
    order = sorted(points, key=lambda name: points[name][1])
    places: list[float] = []
    for name in order:
        floor = places[-1] + apart if places else ends[0] + apart / 2
        places.append(max(points[name][1], floor))
    ceiling = ends[1]
    for i in reversed(range(len(places))):
        places[i] = min(places[i], ceiling)
        ceiling = places[i] - apart
    across, up = (str(one.shorthand).partition(":")[0] for one in (x, y))
    rows = table(
        **{across: [points[name][0] for name in order], up: places},
        system=order,
        label=[labels[name] for name in order],
    )
    colour = kinds("system", {name: colours[name] for name in points}, legend=None)
    base = alt.Chart(rows).encode(x, y, tooltip=alt.Tooltip("system:N"))
    words = base.encode(text="label:N")
    return [
        base.mark_point(filled=True, shape="square", size=26, opacity=1, xOffset=9).encode(colour),
        words.mark_text(align="left", dx=15, fontSize=10.5, stroke=PAPER, strokeWidth=3),
        words.mark_text(align="left", dx=15, fontSize=10.5),
    ]


def dashed(rows: alt.InlineData, *, mark: str = "rule", **style: Any) -> alt.Chart:
    """A dashed line or rule, black unless told: chance, a threshold, what one compares with."""
    drawn = {"color": CHANCE, "strokeDash": list(DASHED), **style}
    layer: alt.Chart = getattr(alt.Chart(rows), f"mark_{mark}")(**drawn)
    return layer


def kinds(
    field: str, colours: Mapping[str, str], *, legend: alt.Legend | None, **options: Any
) -> alt.Color:
    """Colour by the field: ``{its value: the colour}``."""
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return alt.Color(f"{field}:N", scale=scale, legend=legend, **options)


def attacker_lines(
    names: Sequence[str],
    *,
    original: str | None,
    colour: str,
    legend: alt.Legend,
    chance: str | None = None,
) -> tuple[alt.Color, alt.StrokeDash]:
    """One colour for the safeguard and grey for unprotected speech; attackers by line style.

    ``chance`` is the name of a further line, black and dashed.
    """
    dashes: dict[str, list[float]] = {
        **attacker_dashes(n for n in names if n != original),
        str(original): [float(length) for length in SOLID],
    }
    colours = {n: ORIGINAL if n == original else colour for n in names}
    if chance is not None:
        colours[chance], dashes[chance] = CHANCE, [float(length) for length in DASHED]
    scale = alt.Scale(domain=list(colours), range=[dashes[n] for n in colours])
    return (
        kinds("attacker", colours, legend=legend),
        alt.StrokeDash("attacker:N", scale=scale, legend=legend),
    )


def tips(fields: str) -> list[alt.Tooltip]:
    """What shows on hover: ``field:type|Title`` or ``field:type|Title|format``, ``; `` between."""
    parts = (field.split("|") for field in fields.split("; "))
    return [
        alt.Tooltip(name, title=title, format=form[0] if form else alt.Undefined)
        for name, title, *form in parts
    ]


def percent(fraction: float) -> str:
    """A rate as people write it: two decimals, a space, the sign."""
    return f"{100 * fraction:.2f} %"
