"""The report as one HTML file that loads nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from unmask._version import __version__
from unmask.estimate import Estimate
from unmask.figures import POLICY, STYLE, fragment, javascript
from unmask.report.assessment import Assessment
from unmask.report.documents import Document, Row
from unmask.report.headline import Headline
from unmask.report.section import Choice, Drawn, Section, TableBlock
from unmask.report.table import DIGITS, EXPLANATIONS, LABELS, condition_label, label, shown_value

HINT = "Ctrl and wheel: zoom. Shift and drag: move. Double click: back."
_MOVE = "[pointerdown[event.shiftKey], window:pointerup] > window:pointermove!"
_ZOOM = {
    "name": "zoom",
    "select": {
        "type": "interval",
        "encodings": ["x", "y"],
        "on": _MOVE,
        "translate": _MOVE,
        "zoom": "wheel![event.ctrlKey]",
    },
    "bind": "scales",
}
FOLDED_WARNINGS = 3
_NEED = ("min_dcf", "act_dcf", "tpr_at_fpr")


@dataclass(frozen=True)
class Number:
    """A number as it is shown: ``place`` is its index in ``results.json``."""

    value: str
    low: str
    high: str
    unit: str
    sort: float | str
    place: int
    signature: str
    chance: str = ""


class Numbers:
    """Where each estimate of the report stands in ``results.json``."""

    def __init__(self, document: Document) -> None:
        flat = [pair for row in document.rows for pair in row.of_estimates()]
        self.places = {id(estimate): i for i, (_, estimate) in enumerate(flat)}

    def __call__(self, estimate: Estimate, digits: int | None = None) -> Number:
        value = estimate.value
        interval = estimate.interval
        unit = estimate.unit
        return Number(
            value if isinstance(value, str) else _shown(value, unit, digits),
            "" if interval is None else _shown(interval.low, unit, digits),
            "" if interval is None else _shown(interval.high, unit, digits),
            unit,
            value,
            self.places[id(estimate)],
            estimate.signature,
            "" if estimate.chance is None else _shown(estimate.chance, unit, digits),
        )


def _shown(value: float, unit: str, digits: int | None) -> str:
    if digits is None or digits == DIGITS.get(unit, 3) or not abs(value) < float("inf"):
        return shown_value(value, unit)
    scaled = 100 * value if unit == "%" else value
    return f"{scaled:.{digits}f}".replace("-", "−")


@dataclass(frozen=True)
class TableView:
    """A table ready for the template: heads are (text, explanation, is a number)."""

    title: str
    heads: tuple[tuple[str, str, bool], ...]
    lines: tuple[tuple[str | Number | None, ...], ...]
    folded: bool
    note: str


def table_view(block: TableBlock, numbers: Numbers, colours: Mapping[str, str]) -> TableView:
    """Conditions down, metrics across; a number knows its place in ``results.json``."""
    names = list(dict.fromkeys(n for row in block.rows for n in row.conditions))
    names = [n for n in names if not _said_in_title(n, block)]
    heads: dict[str, Estimate] = {}
    cells: list[dict[str, Estimate]] = []
    for row in block.rows:
        found = {_head(estimate, block.rows): estimate for estimate in row.estimates}
        cells.append(found)
        for head, estimate in found.items():
            heads.setdefault(head, estimate)
    lines = tuple(
        (
            *(row.conditions.get(name, "") for name in names),
            *(numbers(found[head]) if head in found else None for head in heads),
        )
        for row, found in zip(block.rows, cells, strict=True)
    )
    top = [(condition_label(name), "", _is_count(name)) for name in names]
    top += [
        (head, EXPLANATIONS.get(e.metric, ""), not isinstance(e.value, str))
        for head, e in heads.items()
    ]
    return TableView(block.title, tuple(top), lines, block.folded, block.note)


def _said_in_title(name: str, block: TableBlock) -> bool:
    """Whether a column repeats the table's own title."""
    values = {row.conditions.get(name, "") for row in block.rows}
    return name == "table" and len(values) == 1 and values <= {block.title}


def _is_count(name: str) -> bool:
    return name in ("speakers", "utterances", "impostors", "N", "L")


def _head(estimate: Estimate, rows: Sequence[Row]) -> str:
    """The metric's heading; parameters only where they tell columns of one row apart."""
    several = sum(e.metric == estimate.metric for e in rows[0].estimates) > 1
    told = several or estimate.metric in _NEED
    text = label(estimate if told else replace(estimate, params={}))
    return text if estimate.metric in LABELS else text[:1].upper() + text[1:]


def figure_html(drawn: Drawn) -> Markup:
    """The chart with its caption, which the figures' own function escapes."""
    spec = zoomable(drawn.made)
    if spec is None:
        return Markup(fragment(drawn.figure()))
    hint = Markup('<p class="hint">{}</p>\n').format(HINT)
    return Markup(fragment(replace(drawn, made=spec).figure())) + hint


def zoomable(spec: dict[str, Any]) -> dict[str, Any] | None:
    """The specification with zoom, or None where the chart is not of that kind."""
    layers = spec.get("layer")
    if not layers or "params" in spec or any("params" in layer for layer in layers):
        return None
    place = next((i for i, layer in enumerate(layers) if _continuous(layer)), None)
    if place is None or not all(_has_mark(layer) for layer in layers):
        return None
    made = [_clipped(layer) for layer in layers]
    made[place] = {**made[place], "params": [_ZOOM]}
    return {**spec, "layer": made}


def _has_mark(layer: dict[str, Any]) -> bool:
    return "mark" in layer


def _continuous(layer: dict[str, Any]) -> bool:
    axes = [layer.get("encoding", {}).get(axis, {}) for axis in ("x", "y")]
    return all(axis.get("type") == "quantitative" and "field" in axis for axis in axes)


def _clipped(layer: dict[str, Any]) -> dict[str, Any]:
    mark = layer["mark"] if isinstance(layer["mark"], dict) else {"type": layer["mark"]}
    if mark["type"] == "text":
        return layer
    return {**layer, "mark": {**mark, "clip": True}}


@cache
def _environment() -> jinja2.Environment:
    loader = jinja2.PackageLoader("unmask.report", "templates")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.tests["choice"] = lambda value: isinstance(value, Choice)
    return environment


def _part(name: str) -> str:
    return resources.files("unmask.report").joinpath("templates", name).read_text(encoding="utf-8")


def bar(headline: Headline) -> dict[str, Any]:
    """Places on the bar of a card, in percent of its width."""
    estimate = headline.estimate
    interval = estimate.interval
    value = float(estimate.value)
    ends = (interval.low, interval.high) if interval is not None else (value, value)
    bare = headline.unprotected
    return {
        "value": 100 * headline.share(value),
        "low": 100 * headline.share(ends[0]),
        "high": 100 * headline.share(ends[1]),
        "bare": None if bare is None else 100 * headline.share(float(bare.value)),
    }


def section_view(section: Section, numbers: Numbers, colours: Mapping[str, str]) -> dict[str, Any]:
    """What the template needs of a section."""
    return {
        "section": section,
        "tables": [table_view(block, numbers, colours) for block in section.tables],
        "many": len(section.warnings) > FOLDED_WARNINGS,
    }


def render_html(assessment: Assessment) -> str:
    """The whole page."""
    numbers = Numbers(assessment.document)
    colours = assessment.colours
    template = _environment().get_template("report.html.j2")
    config = assessment.config
    return template.render(
        a=assessment,
        config=config,
        version=__version__,
        policy=POLICY,
        style=Markup(STYLE + _part("report.css")),
        script=Markup(javascript() + "\n" + _part("report.js")),
        number=numbers,
        bar=bar,
        figure=figure_html,
        views=[section_view(section, numbers, colours) for section in assessment.sections],
        least=[table_view(block, numbers, colours) for block in assessment.least],
        signature=assessment.document.signature,
        no_extractor=assessment.extractor,
    )
