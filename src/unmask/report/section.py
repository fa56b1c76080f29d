"""What a framework contributes to the report: question, charts, tables, words, warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from unmask import figures as charts
from unmask.assessment import ORIGINAL, Study
from unmask.engine import GroupGaps
from unmask.estimate import HasNotices, Notice, Noticed
from unmask.report.documents import Row
from unmask.report.documents.groups import group_parts
from unmask.report.words import words

K = TypeVar("K")
V = TypeVar("V")


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
        return cls(title, [(name, figure.called(f"{stem}_{n}")) for n, (name, figure) in numbered])

    def plain(self) -> Choice:
        """The same with figures of plain values."""
        return replace(self, figures=[(name, figure.plain()) for name, figure in self.figures])


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
        """What does not depend on the data: title, question, method and citation."""
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


def worst_first(some: Mapping[K, V], safeguards: Sequence[str]) -> dict[K, V]:
    """The same items, those of ``safeguards`` in their order at the places that they had.

    A key is the name of a safeguard or a tuple that holds it.
    """
    rank = {name: number for number, name in enumerate(safeguards)}

    def place(key: Any) -> int:
        names = key if isinstance(key, tuple) else (key,)
        return next((rank[name] for name in names if name in rank), -1)

    ranked = iter(sorted((key for key in some if place(key) >= 0), key=place))
    return {key: some[key] for key in (key if place(key) < 0 else next(ranked) for key in some)}


def colours_of(study: Study) -> dict[str, str]:
    """A colour for unprotected speech and for every safeguard, the same of each of its sets."""
    names = [*([ORIGINAL] if study.inputs.original is not None else []), *study.inputs.safeguards]
    colours = charts.system_colours(names, original=ORIGINAL)
    sets = [(given.label(name), name) for name, given, _ in study.lists.values()]
    return {**colours, **{label: colours[name] for label, name in sets}}


def group_figures(gaps: Sequence[GroupGaps]) -> list[charts.Figure]:
    """A chart of each system's groups, numbered where there are several."""
    names = [f"groups_{n}" for n in range(1, len(gaps) + 1)] if len(gaps) > 1 else ["groups"]
    return [
        charts.group_intervals(one).called(name) for one, name in zip(gaps, names, strict=False)
    ]


def group_choice(gaps: Sequence[GroupGaps], stem: str = "groups") -> list[Choice]:
    """The same as one choice, whose title tells whether any group stands out."""
    brief = [next(iter(group_gaps.conditions.values()), group_gaps.system) for group_gaps in gaps]
    if len(set(brief)) < len(gaps):
        brief = [f"{group_gaps.system}, {group_gaps.point}" for group_gaps in gaps]
    drawn = {name: charts.group_intervals(one) for name, one in zip(brief, gaps, strict=True)}
    clear = any(e.luck is not None and e.luck.beyond for one in gaps for e in one.gaps)
    title = f"Groups of speakers{'' if clear else ' (none stands out)'} under"
    return [Choice.of(title, stem, drawn)] if gaps else []


def group_blocks(gaps: Sequence[GroupGaps]) -> list[TableBlock]:
    """Numbers by group and the gaps between groups, with what is to be said of them."""
    _, (numbers, found), notes = group_parts(gaps)
    return [
        TableBlock("Who is protected less?", numbers),
        TableBlock("Gaps between groups", found, folded=True, note=" ".join(notes)),
    ]


def noted(results: Mapping[str, HasNotices]) -> list[Notice]:
    """What results warn of, each about the name of its result."""
    return [notice.about(name) for name, result in results.items() for notice in result.notices]
