"""What a framework contributes to the report: question, charts, tables, words, warnings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isnan

from unmask import figures as charts
from unmask.estimate import Estimate, Interval, Notice, Noticed
from unmask.report.documents import Row


@dataclass(frozen=True)
class TableBlock:
    """A table with its title; ``folded`` ones are opened on demand."""

    title: str
    rows: tuple[Row, ...]
    folded: bool = False
    note: str = ""


@dataclass(frozen=True)
class Choice:
    """Figures of which one is shown at a time, by the name of what is chosen."""

    title: str
    figures: tuple[tuple[str, charts.Figure], ...]


@dataclass(frozen=True)
class Method:
    """How a number is made: a formula in words and symbols, and where it comes from."""

    name: str
    formula: str
    text: str


@dataclass(frozen=True)
class Section(Noticed):
    """One framework's part of the report, made by its module, taken by the page and the files.

    The first figure is shown at once, the others on demand. ``notices`` are about a safeguard or a
    system, or about a table and then a system.
    """

    key: str
    title: str
    question: str
    answer: tuple[str, ...]
    figures: tuple[charts.Figure | Choice, ...]
    tables: tuple[TableBlock, ...]
    notices: tuple[Notice, ...]
    method: tuple[Method, ...]
    citation: str

    def plain(self) -> Section:
        """The same section with figures of plain values, which can be stored."""
        return replace(
            self,
            figures=tuple(
                replace(part, figures=tuple((name, one.plain()) for name, one in part.figures))
                if isinstance(part, Choice)
                else part.plain()
                for part in self.figures
            ),
        )

    @property
    def all_figures(self) -> tuple[charts.Figure, ...]:
        """Every figure, those to choose from too."""
        parts = [p.figures if isinstance(p, Choice) else (("", p),) for p in self.figures]
        return tuple(figure for part in parts for _, figure in part)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Every row of every table."""
        return tuple(row for block in self.tables for row in block.rows)


def shown(estimate: Estimate, digits: int, *, scale: float = 1.0) -> str:
    """Value and interval as sentences have them."""
    text = f"{scale * float(estimate.value):.{digits}f}"
    if estimate.interval is not None:
        low, high = scale * estimate.interval.low, scale * estimate.interval.high
        text += f" [{low:.{digits}f}, {high:.{digits}f}]"
    return text.replace("-", "−")


def percent(value: float, interval: Interval | None) -> str:
    """A fraction as percent, its interval after the sign."""
    if interval is None or isnan(interval.low):
        return f"{100 * value:.1f} %"
    return f"{100 * value:.1f} % [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


NOE_2020 = (
    "Noé, Bonastre, Matrouf, Tomashenko, Nautsch, Evans: Speech pseudonymisation assessment using"
    " voice similarity matrices. 2020."
)
NOE_2022 = (
    "Noé, Nautsch, Evans, Patino, Bonastre, Tomashenko, Matrouf: Towards a unified assessment"
    " framework of speech pseudonymisation. Computer Speech and Language 72, 2022."
)
VAUQUIER_2025 = (
    "Vauquier, Srivastava, Hosseini, Vincent: Legally validated evaluation framework for voice"
    " anonymization. 2025."
)
LI_2022 = "Li, Wang, Du, Wang: C-P map: a novel evaluation toolkit for speaker verification. 2022."
SHOLOKHOV_2020 = (
    "Sholokhov, Kinnunen, Vestman, Lee: Extrapolating false alarm rates in automatic speaker"
    " verification. 2020."
)
TWO_RATES = (
    "Equal error rates of verification are taken on the convex hull of the ROC; C-P maps take the"
    " ROC itself, as their paper does, which never gives less."
)
