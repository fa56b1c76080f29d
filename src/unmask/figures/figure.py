"""A chart with the words that belong to it, and the rows it carries.

All titles and captions stand in ``captions.toml``, by the name of the chart.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any

import altair as alt
import numpy as np
import numpy.typing as npt
from altair.typing import ChartType
from altair.utils.schemapi import debug_mode

from unmask.errors import InputError
from unmask.figures.theme import CONFIG, FONTS, LAYOUT, Layout, part

Layers = alt.LayerChart | alt.FacetChart

VEGA_LITE = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Figure:
    """One figure: ``title`` says what is shown, ``caption`` how to read it.

    ``name`` becomes the file's name; the house theme is laid on ``chart`` unless it has its own. In
    place of the chart may stand its specification: such a figure can be stored.
    """

    name: str
    title: str
    caption: str
    chart: ChartType | dict[str, Any]
    layout: Layout = field(default_factory=LAYOUT.get)

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            wanted = "letters, digits, '.', '_' and '-'"
            raise InputError("figure name", wanted, repr(self.name))
        object.__setattr__(self, "title", " ".join(self.title.split()))
        object.__setattr__(self, "caption", " ".join(self.caption.split()))
        if not isinstance(self.chart, dict) and self.chart.config is alt.Undefined:
            chart = self.chart.copy(deep=False)
            chart.config = CONFIG | {"font": FONTS[self.layout.font]}
            object.__setattr__(self, "chart", chart)

    def spec(self) -> dict[str, Any]:
        """The Vega-Lite specification, without title and caption: these stand around the chart."""
        if isinstance(self.chart, dict):
            return self.chart
        spec: dict[str, Any] = self.chart.to_dict(validate=False)
        spec.setdefault("description", f"{self.title}. {self.caption}")
        return spec

    def called(self, name: str | None = None, title: str | None = None) -> Figure:
        """The same figure under another ``name`` or ``title``."""
        return replace(self, name=name or self.name, title=title or self.title)

    def plain(self) -> Figure:
        """The same figure as plain values; its specification takes longer than all that follows."""
        return self if isinstance(self.chart, dict) else replace(self, chart=self.spec())

    @property
    def digest(self) -> str:
        """SHA-256 of all that is drawn."""
        drawn = json.dumps(
            [self.spec(), self.title, self.caption, asdict(self.layout)], sort_keys=True
        )
        return hashlib.sha256(drawn.encode()).hexdigest()

    def save(
        self,
        folder: str | os.PathLike[str],
        *,
        formats: str | Sequence[str] = ("png", "svg", "html"),
    ) -> list[Path]:
        """Write ``folder/name.format`` in every format; see :func:`~unmask.figures.save_all`."""
        from unmask.figures.image import save_all

        return save_all([self], folder, formats=formats)

    def _repr_svg_(self) -> str:
        """The whole figure, as notebooks draw it; nothing is fetched from a network."""
        from unmask.figures.image import svg

        return svg(self)


@cache
def words() -> Mapping[str, Any]:
    """What stands in ``captions.toml``."""
    return tomllib.loads(part("captions.toml"))


def captioned(key: str, chart: Any, **facts: Any) -> Figure:
    """The chart with its words, those under ``key``, in which ``facts`` stand for their names.

    A list is written with commas. A sentence of the caption that names a fact which is empty, zero
    or False is left out; one that is True only lets its sentence stand.
    """
    own = words()[key]
    shown = {name: _shown(fact) for name, fact in facts.items()}
    caption = [
        sentence.format(**shown)
        for sentence in own["caption"]
        if all(shown[name] is not None for _, name, _, _ in Formatter().parse(sentence) if name)
    ]
    if "described" in own:
        chart = chart.properties(description=own["described"].format(**shown))
    return Figure(key, own["title"].format(**shown), " ".join(caption), chart)


def _shown(fact: Any) -> Any:
    if fact is True or not fact:
        return "" if fact else None
    return ", ".join(fact) if isinstance(fact, Iterable) and not isinstance(fact, str) else fact


DIGITS = 6


def table(**columns: Any) -> alt.InlineData:
    """Rows from columns of one length, or single values that every row repeats.

    Numbers keep six significant digits; what JSON cannot hold (NaN, ±inf) becomes null.
    """
    lengths = {len(c) for c in columns.values() if not _is_single(c)}
    if len(lengths) > 1:
        raise InputError(f"chart data: expected columns of one length, found {sorted(lengths)}")
    length = lengths.pop() if lengths else 1
    cells = [
        [_cell(c)] * length if _is_single(c) else [_cell(value) for value in c]
        for c in columns.values()
    ]
    return _inline([dict(zip(columns, row, strict=True)) for row in zip(*cells, strict=True)])


def text_table(**columns: npt.ArrayLike) -> alt.InlineData:
    """Numbers as lines of text: a third of the size of named fields, and quick to copy."""
    rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    lines = [",".join(f"{value:.{DIGITS}g}" for value in row) for row in rows]
    return alt.InlineData(
        "\n".join([",".join(columns), *lines]),
        format=alt.CsvDataFormat(type="csv", parse=dict.fromkeys(columns, "number")),
    )


def join(parts: Iterable[alt.InlineData]) -> alt.InlineData:
    """The rows of all parts, one after another."""
    return _inline([row for part in parts for row in part.values])


def require(things: Sized, chart: str, what: str = "system") -> None:
    """Refuse to draw nothing."""
    if not len(things):
        raise InputError(f"{chart}: expected at least one {what}, found none")


class Chart(alt.Chart):
    """A layer whose marks never change: altair copies a chart each time it is laid on another."""

    def __deepcopy__(self, memo: Any) -> Chart:
        return self.copy(deep=False)


class _Rows(alt.InlineData):
    """Rows that never change."""

    def __deepcopy__(self, memo: Any) -> _Rows:
        return self


def _inline(rows: list[dict[str, Any]]) -> alt.InlineData:
    """Rows as chart data, without altair's check of every cell: they are plain by construction."""
    with debug_mode(False):
        return _Rows(rows)


def _is_single(column: Any) -> bool:
    return isinstance(column, str) or not hasattr(column, "__len__")


def _cell(value: Any) -> Any:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None
    return value
