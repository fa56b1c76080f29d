"""What a framework contributes to the report: question, charts, tables, words, warnings."""

from __future__ import annotations

from dataclasses import dataclass, replace

from unmask.figures import Figure
from unmask.report.document import Row
from unmask.report.drawn import Drawn


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
    figures: tuple[tuple[str, Figure | Drawn], ...]


@dataclass(frozen=True)
class Method:
    """How a number is made: a formula in words and symbols, and where it comes from."""

    name: str
    formula: str
    text: str


@dataclass(frozen=True)
class Section:
    """One framework's part of the report."""

    key: str
    title: str
    question: str
    answer: tuple[str, ...]
    figures: tuple[Figure | Drawn | Choice, ...]
    tables: tuple[TableBlock, ...]
    warnings: tuple[str, ...]
    method: tuple[Method, ...]
    citation: str

    def drawn(self) -> Section:
        """The same section, its figures as plain values."""

        def made(part: Figure | Drawn | Choice) -> Drawn | Choice:
            if isinstance(part, Choice):
                return replace(part, figures=tuple((n, _drawn(f)) for n, f in part.figures))
            return _drawn(part)

        return replace(self, figures=tuple(made(part) for part in self.figures))

    @property
    def all_figures(self) -> tuple[Drawn, ...]:
        """Every figure, those to choose from too."""
        found: list[Drawn] = []
        for part in self.figures:
            if isinstance(part, Choice):
                found += [_drawn(figure) for _, figure in part.figures]
            else:
                found.append(_drawn(part))
        return tuple(found)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Every row of every table."""
        return tuple(row for block in self.tables for row in block.rows)


def _drawn(figure: Figure | Drawn) -> Drawn:
    return figure if isinstance(figure, Drawn) else Drawn.of(figure)


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
