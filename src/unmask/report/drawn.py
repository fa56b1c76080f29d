"""Figures whose specification is made once, and drawn once for all kinds of files."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

import altair as alt
import vl_convert

from unmask.figures import Figure
from unmask.figures.image import PNG_PIXELS_PER_INCH, svg
from unmask.figures.theme import PIXELS_PER_INCH

_POINTS = 72 / PIXELS_PER_INCH
_SIZE = re.compile(r'<svg ([^>]*?)width="([\d.]+)" height="([\d.]+)"')


@dataclass(frozen=True)
class Drawn(Figure):
    """A figure that keeps its Vega-Lite specification: making it again is slow."""

    made: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, figure: Figure) -> Drawn:
        """The same figure with its specification made."""
        if isinstance(figure, Drawn):
            return figure
        return cls(figure.name, figure.title, figure.caption, alt.Chart(), figure.spec())

    def spec(self) -> dict[str, Any]:
        return self.made

    @property
    def key(self) -> str:
        """SHA-256 of all that is drawn."""
        told = json.dumps([self.made, self.title, self.caption], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()


def draw(figure: Figure, kinds: tuple[str, ...]) -> dict[str, bytes]:
    """The figure as svg, png and pdf, as asked for, from one drawing."""
    text = svg(figure)
    found: dict[str, bytes] = {}
    for kind in kinds:
        if kind == "svg":
            found[kind] = text.encode()
        elif kind == "png":
            found[kind] = vl_convert.svg_to_png(text, scale=_POINTS, ppi=PNG_PIXELS_PER_INCH)
        else:
            found[kind] = vl_convert.svg_to_pdf(_scaled(text))
    return found


def _scaled(text: str) -> str:
    """The drawing in its printed size: pixels become points."""
    return _SIZE.sub(
        lambda m: (
            f'<svg {m[1]}width="{_POINTS * float(m[2]):g}" height="{_POINTS * float(m[3]):g}"'
        ),
        text,
        count=1,
    )
