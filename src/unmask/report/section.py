"""What a framework contributes to the report: question, charts, tables, words, warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unmask import figures as charts
from unmask.assessment import ORIGINAL, Study
from unmask.estimate import HasNotices, Notice, Noticed
from unmask.report.documents import Row
from unmask.report.words import words


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
        said = words()[self.key]
        method = [
            {name: text.format(**self.options) for name, text in one.items()}
            for one in said["method"]
        ]
        return {**said, "method": method}

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
    """A colour for unprotected speech and for every safeguard, the same of each of its sets."""
    names = [*([ORIGINAL] if study.inputs.original is not None else []), *study.inputs.safeguards]
    colours = charts.system_colours(names, original=ORIGINAL)
    sets = [(given.label(name), name) for name, given, _ in study.lists.values()]
    return {**colours, **{label: colours[name] for label, name in sets}}


def noted(results: Mapping[str, HasNotices]) -> list[Notice]:
    """What results warn of, each about the name of its result."""
    return [notice.about(name) for name, one in results.items() for notice in one.notices]
