"""A chart with the words that belong to it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import altair as alt

from unmask.errors import InputError
from unmask.figures.theme import CONFIG

Chart = (
    alt.Chart
    | alt.LayerChart
    | alt.FacetChart
    | alt.ConcatChart
    | alt.HConcatChart
    | alt.VConcatChart
    | alt.RepeatChart
)

Layers = alt.LayerChart | alt.FacetChart

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Figure:
    """One figure: ``title`` says what is shown, ``caption`` how to read it.

    ``name`` becomes the file's name; the house theme is laid on ``chart`` unless it has its own.
    """

    name: str
    title: str
    caption: str
    chart: Chart

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InputError(
                f"figure name: expected letters, digits, '.', '_' and '-', found {self.name!r}"
            )
        object.__setattr__(self, "title", " ".join(self.title.split()))
        object.__setattr__(self, "caption", " ".join(self.caption.split()))
        if isinstance(self.chart.config, type(alt.Undefined)):
            chart = self.chart.copy()
            chart.config = alt.Config.from_dict(dict(CONFIG))
            object.__setattr__(self, "chart", chart)

    def spec(self) -> dict[str, Any]:
        """The Vega-Lite specification, without title and caption: these stand around the chart."""
        spec: dict[str, Any] = self.chart.to_dict()
        spec.setdefault("description", f"{self.title}. {self.caption}")
        return spec
