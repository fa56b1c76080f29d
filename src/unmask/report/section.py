"""What a framework contributes to the report: question, charts, tables, words, warnings."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from math import isnan
from typing import Any

import altair as alt
import vl_convert

from unmask.estimate import Estimate, Notice, Noticed
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
        content = json.dumps([self.made, self.title, self.caption], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

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
    files: dict[str, bytes] = {}
    for kind in kinds:
        if kind == "svg":
            files[kind] = text.encode()
        elif kind == "png":
            files[kind] = vl_convert.svg_to_png(text, scale=_POINTS, ppi=PNG_PIXELS_PER_INCH)
        else:
            files[kind] = vl_convert.svg_to_pdf(_scaled(text))
    return files


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


@cache
def _words() -> dict[str, dict[str, Any]]:
    text = resources.files("unmask.report").joinpath("sections.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@dataclass(frozen=True)
class Section(Noticed):
    """One framework's part of the report, made by its module, taken by the page and the files.

    The first figure is shown at once, the others on demand. ``notices`` are about a safeguard or a
    system, or about a table and then a system.
    """

    key: str
    answer: tuple[str, ...]
    figures: tuple[Figure | Drawn | Choice, ...]
    tables: tuple[TableBlock, ...]
    notices: tuple[Notice, ...]

    @property
    def words(self) -> dict[str, Any]:
        """What does not depend on the data: title, question, method (name, formula, text) and
        citation.
        """
        return _words()[self.key]

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


def percent(estimate: Estimate) -> str:
    """A fraction as percent, its interval after the sign."""
    value, ends = f"{100 * float(estimate.value):.1f} %", estimate.interval
    if ends is None or isnan(ends.low):
        return value
    return f"{value} [{100 * ends.low:.1f}, {100 * ends.high:.1f}]"


TWO_RATES = (
    "Equal error rates of verification are taken on the convex hull of the ROC; C-P maps take the"
    " ROC itself, as their paper does, which never gives less."
)
