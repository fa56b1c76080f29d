"""Numbers of groups of speakers beside that of all: who errs more, or is protected less."""

from __future__ import annotations

import altair as alt

from unmask.engine import GroupGaps
from unmask.figures import draw
from unmask.figures.figure import Figure, Layers, captioned, table
from unmask.figures.theme import INK, NONTARGET, ORIGINAL, is_wide, shorten, width

_NAMES = {"fnmr": "FNMR", "fmr": "FMR", "linkability": "Linkability"}
_NAMES |= {"singling_out": "Singling Out", "deid": "DeID"}
_COLOURS = {"worst": NONTARGET, "others": ORIGINAL}
_ROW = 30


def group_intervals(gaps: GroupGaps) -> Figure:
    """A panel for each number: a dot and its interval for each group, a dashed line for all; the
    worst group is orange where equal groups rarely read as much.
    """
    people = {row.name: row for row in gaps.groups if row.name not in ("all", "across groups")}
    labels = {name: f"{shorten(name, limit=16)} ({row.size})" for name, row in people.items()}
    worst = {metric: _worst(gaps, metric) for metric in gaps.metrics}
    panels = [_panel(gaps, metric, labels, worst[metric]) for metric in gaps.metrics]
    return captioned(
        "groups",
        alt.concat(*panels, columns=len(panels) if is_wide() else 1),
        title="; ".join(_headline(gaps, metric) for metric in gaps.metrics),
        system=gaps.system,
        point=gaps.point,
        column=gaps.column,
        words=" ".join(f"{_NAMES[metric]}: {gaps.sentence(metric)}" for metric in gaps.metrics),
        few=[name for name, row in people.items() if row.size.endswith("few")],
        clear=any(worst.values()),
    )


def _panel(gaps: GroupGaps, metric: str, labels: dict[str, str], worst: str | None) -> Layers:
    found = gaps.of(metric)
    every = found.pop("all", None)
    ends = [one.interval for one in found.values()]
    rows = table(
        group=list(found),
        value=[100 * float(one.value) for one in found.values()],
        low=[None if made is None else 100 * made.low for made in ends],
        high=[None if made is None else 100 * made.high for made in ends],
        people=[labels[name] for name in found],
        kind=["worst" if name == worst else "others" for name in found],
    )
    axis, shown = alt.Axis(labelExpr=draw.lookup(labels), labelLimit=220), f"{_NAMES[metric]} (%)"
    first = metric == gaps.metrics[0] or not is_wide()
    y = alt.Y("group:N", sort=list(labels), title=None, axis=axis if first else None)
    x = alt.X("value:Q", title=shown, scale=alt.Scale(zero=True))
    looks = (y, draw.by(alt.Color, "kind", _COLOURS), draw.tips("groups"))
    layers = [
        draw.mark(
            rows, "rule", alt.X("low:Q", title=shown), alt.X2("high:Q"), *looks, strokeWidth=2.4
        ),
        draw.dots(rows, x, *looks, size=70),
    ]
    if every is not None:
        line = table(value=100 * float(every.value))
        layers.insert(0, draw.dashed(line, x, color=INK, strokeWidth=1.2))
    side = (width() - 150) // len(gaps.metrics) if is_wide() else 200
    return alt.layer(*layers).properties(width=side, height=_ROW * len(labels))


def _worst(gaps: GroupGaps, metric: str) -> str | None:
    """The group with the highest number, of DeID the lowest, where equal groups rarely read it."""
    luck = gaps[f"{metric}_ratio"].luck
    return gaps.ends(metric)[metric != "deid"] if luck is not None and luck.beyond else None


def _headline(gaps: GroupGaps, metric: str) -> str:
    """Who stands out in a number, or that nobody does, or that this is not known."""
    name, worst = _NAMES[metric], _worst(gaps, metric)
    if gaps[f"{metric}_ratio"].luck is None:
        return f"too few errors to compare {name}"
    if worst is None:
        return f"no group stands out in {name}"
    return f"{name} {'lowest' if metric == 'deid' else 'highest'} in {shorten(worst)}"
