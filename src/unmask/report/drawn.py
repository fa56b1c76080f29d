"""Figures whose specification is made once, kept, and drawn once for all kinds of files."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

import altair as alt
import vl_convert

from unmask.figures import PIXELS_PER_INCH, PNG_PIXELS_PER_INCH, Figure, svg

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
