"""What the charts of C-P maps share: cells of whole pixels, hatching, axes, shades."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import numpy.typing as npt

from unmask.figures import draw
from unmask.figures.figure import Layers, table, text_table
from unmask.figures.theme import GRID
from unmask.stress import CpMap, DeltaCpMap

Numbers = npt.NDArray[Any]
Axes = tuple[alt.X, alt.Y]
MOST_CELLS = 100
MOST_DECADES = 1.0
X2, Y2 = alt.X2("x2:Q"), alt.Y2("y2:Q")
_HATCH = "#9ca3af"
_HATCH_STEP = 7.0
_TICKS = [0, 0.25, 0.5, 0.75, 1]
_ROOM = 140


@dataclass(frozen=True)
class Panel:
    """How cells become pixels: every ``step``-th cell is drawn, in ``width`` by ``height``."""

    cells: CpMap | DeltaCpMap
    step: int
    width: int
    height: int

    @classmethod
    def of(cls, cells: CpMap | DeltaCpMap, *, side: float) -> Panel:
        """The largest panel up to ``side`` whose cells are whole pixels: a fine grid is thinned to
        at most 100 cells a side, or half of that to fill three quarters of ``side``.
        """
        longest = max(cells.x.size, cells.y.size)
        least = -(-longest // MOST_CELLS)
        for step in (least, 2 * least):
            drawn = -(-longest // step)
            pixels = max(1, int(side / drawn))
            if pixels * drawn >= 0.75 * side:
                break
        return cls(cells, step, *(pixels * -(-axis.size // step) for axis in (cells.x, cells.y)))

    @property
    def drawn(self) -> tuple[Numbers, Numbers]:
        """Numbers of the columns and of the rows that are drawn, the last ones among them."""
        x, y = (np.arange(n.size - 1, -1, -self.step)[::-1] for n in (self.cells.x, self.cells.y))
        return x, y

    def axes(self, *, left: bool) -> Axes:
        """Shares of the targets and of the nontargets, named below and at the left of panels."""
        room = self.width >= _ROOM
        end = ", hardest first" if room else ""
        ticks: draw.Style = {"format": ".0%", "values": _TICKS if room else _TICKS[::2]}
        ticks |= {"grid": False, "labelOverlap": False}
        return (
            draw.axis(alt.X, "x", f"Targets{end}", (0, 1), labelFlush=False, **ticks),
            draw.axis(alt.Y, "y", f"Nontargets{end}" if left else None, (0, 1), **ticks),
        )

    def rectangles(self, values: Numbers) -> alt.Chart:
        """A row per well-defined cell; each reaches under its neighbours, so that no seam shows."""
        cells, (columns, rows) = self.cells, self.drawn
        row, column = np.nonzero(cells.well_defined[np.ix_(rows, columns)])
        data = text_table(i=column, j=row, value=values[np.ix_(rows, columns)][row, column])
        return alt.Chart(data).transform_calculate(
            x=_at([0.0, *cells.x[columns][:-1]], "i"),
            x2=_at([*cells.x[columns][1:], 1.0], "i"),
            y=_at([0.0, *cells.y[rows][:-1]], "j"),
            y2=_at([*cells.y[rows][1:], 1.0], "j"),
            share_x=_at(cells.x[columns], "i"),
            share_y=_at(cells.y[rows], "j"),
            targets=_at(cells.targets[columns], "i"),
            nontargets=_at(cells.nontargets[rows], "j"),
        )

    def colour(self, ends: list[float], scale: draw.Style, **legend: Any) -> alt.Color:
        """Colour by the field ``value`` between ``ends``; a legend where it has options."""
        shown = alt.Legend(gradientLength=min(160, self.height - 20), **legend) if legend else None
        shades = alt.Scale(domain=ends, clamp=True, **scale)
        return alt.Color("value:Q", scale=shades, legend=shown)

    def layered(self, *layers: alt.Chart) -> Layers:
        """The panel with its layers."""
        return alt.layer(*layers).properties(width=self.width, height=self.height)

    def blank(self) -> Layers:
        """An empty panel that keeps others in their columns."""
        nothing = draw.mark(table(words=""), "text", alt.Text("words:N"))
        return self.layered(nothing).properties(view=alt.ViewConfig(stroke=None))

    def hatching(self, axes: Axes) -> list[alt.Chart]:
        """Grey with diagonals where cells are not well-defined: bands at the left and below."""
        left = _begin(self.cells.x, np.any(self.cells.well_defined, axis=0))
        low = _begin(self.cells.y, np.any(self.cells.well_defined, axis=1))
        bands = [(0.0, 0.0, left, 1.0), (left, 0.0, 1.0, low)]
        bands = [(x, y, x2, y2) for x, y, x2, y2 in bands if x < x2 and y < y2]
        if not bands:
            return []
        grey, lines = (
            text_table(**dict(zip(("x", "y", "x2", "y2"), zip(*ends, strict=True), strict=True)))
            for ends in (bands, [line for band in bands for line in self._diagonals(band)])
        )
        return [
            draw.mark(grey, "rect", *axes, X2, Y2, color=GRID, strokeWidth=0),
            draw.mark(lines, "rule", *axes, X2, Y2, color=_HATCH, strokeWidth=0.8),
        ]

    def _diagonals(self, band: tuple[float, float, float, float]) -> list[Any]:
        """Rising diagonals a few pixels apart, cut to the band."""
        size = np.array([self.width, self.height] * 2)
        left, low, right, high = band * size
        lines: list[Any] = []
        for offset in np.arange(low - right, high - left, _HATCH_STEP):
            start, end = max(left, low - offset), min(right, high - offset)
            if start < end:
                lines.append(np.array([start, start + offset, end, end + offset]) / size)
        return lines or [band]


def _at(values: Sequence[float] | Numbers, index: str) -> str:
    """A Vega expression: the entry of a short list."""
    return f"({json.dumps(np.asarray(values).tolist())})[datum.{index}]"


def _begin(shares: Numbers, defined: Numbers) -> float:
    """Where the well-defined cells begin: 1 if there are none."""
    if not defined.any():
        return 1.0
    first = int(defined.argmax())
    return float(shares[first - 1]) if first else 0.0


@dataclass(frozen=True)
class Shades:
    """The range of values that colours tell apart, logarithmic where it spans decades.

    ``zeros`` tells that a logarithmic scale stands beside values of 0.
    """

    low: float
    high: float
    log: bool
    zeros: bool = False

    @classmethod
    def of(cls, values: Numbers) -> Shades:
        """The range of the values shown, rounded outwards to two digits."""
        shown = np.asarray(values)[np.isfinite(values)]
        positive = shown[shown > 0]
        if not positive.size:
            return cls(0.0, 1.0, log=False)
        high = _rounded(float(positive.max()), up=True)
        log = bool(np.log10(positive.max() / positive.min()) > MOST_DECADES)
        low = _rounded(float(positive.min() if log else shown.min()), up=False)
        if low >= high:
            return cls(0.0, high, log=False)
        return cls(low, high, log, zeros=log and bool((shown <= 0).any()))

    @property
    def ticks(self) -> list[float]:
        """A few round numbers within the range."""
        if self.log:
            first, last = np.floor(np.log10(self.low)), np.ceil(np.log10(self.high))
            decades = range(int(first), int(last) + 1)
            marks = [float(f"{m}e{d}") for d in decades for m in (1, 2, 5)]
        else:
            step = _rounded((self.high - self.low) / 5, up=True, to=(1.0, 2.0, 2.5, 5.0, 10.0))
            start = int(np.ceil(self.low / step - 1e-9))
            marks = [float(f"{i * step:.6g}") for i in range(start, start + 8)]
        return [mark for mark in marks if self.low <= mark <= self.high * (1 + 1e-9)]

    def share(self, value: float) -> float:
        """Where a value lies between the ends of the range, 0 to 1."""
        ends = np.array([self.low, self.high, max(value, self.low)])
        low, high, at = np.log(ends) if self.log else ends
        return float(min((at - low) / (high - low), 1.0))


def _rounded(
    value: float, *, up: bool, to: Sequence[float] = tuple(np.arange(10, 101) / 10)
) -> float:
    """The nearest number of a few per decade, above or below."""
    if value <= 0:
        return 0.0
    decade = 10.0 ** np.floor(np.log10(value))
    steps = np.array(to) * decade
    near = steps[steps >= value * (1 - 1e-9)] if up else steps[steps <= value * (1 + 1e-9)]
    return float(f"{near.min() if up else near.max():.6g}")
