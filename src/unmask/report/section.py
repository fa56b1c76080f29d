"""What a framework contributes to the report: question, charts, tables, words, warnings."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from math import isnan
from typing import Any

from unmask import figures as charts
from unmask.assessment import ORIGINAL, Study
from unmask.estimate import Estimate, HasNotices, Notice, Noticed
from unmask.report.documents import Row


@dataclass(frozen=True)
class TableBlock:
    """A table with its title; ``folded`` ones are opened on demand."""

    title: str
    rows: Sequence[Row]
    folded: bool = False
    note: str = ""


@dataclass(frozen=True)
class Choice:
    """Figures of which one is shown at a time, by the name of what is chosen."""

    title: str
    figures: Sequence[tuple[str, charts.Figure]]

    @classmethod
    def of(cls, title: str, stem: str, figures: Mapping[str, charts.Figure]) -> Choice:
        """Figures by the name of what is chosen; their files have numbers after ``stem``."""
        numbered = enumerate(figures.items(), start=1)
        return cls(title, [(name, one.called(f"{stem}_{n}")) for n, (name, one) in numbered])

    def plain(self) -> Choice:
        """The same with figures of plain values."""
        return replace(self, figures=[(name, one.plain()) for name, one in self.figures])


def figures_in(part: charts.Figure | Choice) -> list[charts.Figure]:
    """The figure, or all of a choice."""
    return [figure for _, figure in part.figures] if isinstance(part, Choice) else [part]


@cache
def _words() -> dict[str, dict[str, Any]]:
    text = resources.files("unmask.report").joinpath("sections.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def title(key: str) -> str:
    """The title of a framework's section."""
    return str(_words()[key]["title"])


def note(name: str, **values: Any) -> str:
    """A sentence that tables, summaries or methods have, by its name, with ``values`` filled in."""
    return str(_words()["notes"][name]).format(**values)


@dataclass(frozen=True)
class Section(Noticed):
    """One framework's part of the report, made by its module, taken by the page and the files.

    The first figure is shown at once, the others on demand. ``notices`` are about a safeguard or a
    system, or about a table and then a system. A table without rows is left out. ``options`` are
    what the words on the method depend on.
    """

    key: str
    answer: Sequence[str]
    figures: Sequence[charts.Figure | Choice]
    tables: Sequence[TableBlock]
    notices: Sequence[Notice]
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", tuple(block for block in self.tables if block.rows))

    @property
    def words(self) -> dict[str, Any]:
        """What does not depend on the data: title, question, method (name, formula, text) and
        citation.
        """
        words = _words()[self.key]
        method = [
            {name: text.format(**self.options) for name, text in one.items()}
            for one in words["method"]
        ]
        return {**words, "method": method}

    def plain(self) -> Section:
        """The same section with figures of plain values, which can be stored."""
        return replace(self, figures=[part.plain() for part in self.figures])

    @property
    def all_figures(self) -> list[charts.Figure]:
        """Every figure, those to choose from too."""
        return [figure for part in self.figures for figure in figures_in(part)]

    @property
    def rows(self) -> list[Row]:
        """Every row of every table."""
        return [row for block in self.tables for row in block.rows]


def colours_of(study: Study) -> dict[str, str]:
    """A colour for unprotected speech and for every safeguard."""
    names = [*([ORIGINAL] if study.inputs.original is not None else []), *study.inputs.safeguards]
    return charts.system_colours(names, original=ORIGINAL)


def noted(results: Mapping[str, HasNotices]) -> list[Notice]:
    """What results warn of, each about the name of its result."""
    return [notice.about(name) for name, one in results.items() for notice in one.notices]


def shown(estimate: Estimate, digits: int, *, scale: float = 1.0) -> str:
    """Value and interval as sentences have them."""
    text = f"{scale * float(estimate.value):.{digits}f}"
    if estimate.interval is not None:
        low, high = scale * estimate.interval.low, scale * estimate.interval.high
        text += f" [{low:.{digits}f}, {high:.{digits}f}]"
    return text.replace("-", "−")


def whole_percent(risk: float) -> str:
    """A risk in whole percent; a little is never said to be nothing, nor nearly all to be all."""
    if 0 < risk < 0.01 or 0.995 <= risk < 1:
        return "less than 1 %" if risk < 0.5 else "more than 99 %"
    return f"{100 * risk:.0f} %"


def with_level(estimate: Estimate) -> str:
    """``65.0 % (95 % interval 58.1 to 71.7)``: a number in its unit, its interval and the level."""
    scale, digits = (100.0, 1) if estimate.unit == "%" else (1.0, 3)
    value, made = f"{scale * float(estimate.value):.{digits}f} {estimate.unit}", estimate.interval
    if made is None or isnan(made.low):
        return value
    low, high = (f"{scale * end:.{digits}f}".replace("-", "−") for end in (made.low, made.high))
    return f"{value} ({100 * made.level:.10g} % interval {low} to {high})"
