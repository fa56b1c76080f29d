"""What a framework contributes to the report: question, charts, tables, words, warnings."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field, replace
from math import isnan
from typing import Any

import altair as alt
import vl_convert

from unmask.estimate import Estimate, Interval, Notice, Noticed
from unmask.figures import PIXELS_PER_INCH, PNG_PIXELS_PER_INCH, Figure, svg
from unmask.report.documents import Row

_POINTS = 72 / PIXELS_PER_INCH
_SIZE = re.compile(r'<svg ([^>]*?)width="([\d.]+)" height="([\d.]+)"')
_NUMBERED = re.compile(r"\b(clip|gradient_?)(\d+)\b")


@dataclass(frozen=True)
class Drawn:
    """A figure as plain values: its words and its Vega-Lite specification."""

    name: str
    title: str
    caption: str
    made: dict[str, Any] = field(repr=False)

    @classmethod
    def of(cls, figure: Figure) -> Drawn:
        """Make the specification, which takes longer than everything that follows."""
        return cls(figure.name, figure.title, figure.caption, figure.spec())

    @property
    def key(self) -> str:
        """SHA-256 of all that is drawn."""
        told = json.dumps([self.made, self.title, self.caption], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()

    def figure(self) -> Figure:
        """What the figures' own functions take."""
        return _Made(self.name, self.title, self.caption, alt.Chart(), self.made)


@dataclass(frozen=True)
class _Made(Figure):
    made: dict[str, Any] = field(default_factory=dict)

    def spec(self) -> dict[str, Any]:
        return self.made


def draw(drawn: Drawn, kinds: tuple[str, ...]) -> dict[str, bytes]:
    """The figure as svg, png and pdf, as asked for, from one drawing."""
    text = _renumbered(svg(drawn.figure()))
    found: dict[str, bytes] = {}
    for kind in kinds:
        if kind == "svg":
            found[kind] = text.encode()
        elif kind == "png":
            found[kind] = vl_convert.svg_to_png(text, scale=_POINTS, ppi=PNG_PIXELS_PER_INCH)
        else:
            found[kind] = vl_convert.svg_to_pdf(_scaled(text))
    return found


def _renumbered(text: str) -> str:
    """The renderer counts its clips over all drawings; here each drawing counts from 0."""
    seen: dict[str, int] = {}
    return _NUMBERED.sub(lambda m: f"{m[1]}{seen.setdefault(m[0], len(seen))}", text)


def _scaled(text: str) -> str:
    """The drawing in its printed size: pixels become points."""
    return _SIZE.sub(
        lambda m: (
            f'<svg {m[1]}width="{_POINTS * float(m[2]):g}" height="{_POINTS * float(m[3]):g}"'
        ),
        text,
        count=1,
    )


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
class Section(Noticed):
    """One framework's part of the report, made by its module, taken by the page and the files.

    The first figure is shown at once, the others on demand. ``notices`` are about a safeguard or a
    system, or about a table and then a system.
    """

    key: str
    title: str
    question: str
    answer: tuple[str, ...]
    figures: tuple[Figure | Drawn | Choice, ...]
    tables: tuple[TableBlock, ...]
    notices: tuple[Notice, ...]
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
        parts = [p.figures if isinstance(p, Choice) else (("", p),) for p in self.figures]
        return tuple(_drawn(figure) for part in parts for _, figure in part)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Every row of every table."""
        return tuple(row for block in self.tables for row in block.rows)


def _drawn(figure: Figure | Drawn) -> Drawn:
    return figure if isinstance(figure, Drawn) else Drawn.of(figure)


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
