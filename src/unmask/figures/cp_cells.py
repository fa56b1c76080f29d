"""What the charts of C-P maps share: cells of whole pixels, hatching, axes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import altair as alt
import numpy as np
import numpy.typing as npt

from unmask.estimate import Interval
from unmask.figures.encode import tips
from unmask.figures.figure import Layers, table, text_table
from unmask.figures.theme import GRID, INK, MUTED

Numbers = npt.NDArray[Any]
Axes = tuple[alt.X, alt.Y]
MOST_CELLS = 100
_HATCH = "#9ca3af"
_HATCH_STEP = 7.0
_TICKS = [0, 0.25, 0.5, 0.75, 1]
_ROOM = 140
_LINE = 14
MOST_DECADES = 1.0


class Cells(Protocol):
    """What is drawn: a C-P map or a delta C-P map."""

    @property
    def x(self) -> Numbers: ...
    @property
    def y(self) -> Numbers: ...
    @property
    def targets(self) -> Numbers: ...
    @property
    def nontargets(self) -> Numbers: ...
    @property
    def well_defined(self) -> npt.NDArray[np.bool_]: ...


@dataclass(frozen=True)
class Panel:
    """How cells become pixels: every ``step``-th cell is drawn, in ``width`` by ``height``."""

    step: int
    width: int
    height: int


def panel_for(cells: Cells, *, side: float) -> Panel:
    """The largest panel up to ``side`` whose cells are whole pixels.

    A fine grid is thinned to at most 100 cells a side, and to half of that where the panel would
    else fill less than three quarters of ``side``; the last row and column are always drawn.
    """
    longest = max(cells.x.size, cells.y.size)
    step = -(-longest // MOST_CELLS)
    if _pixels(longest, step, side) * _drawn(longest, step) < 0.75 * side:
        step *= 2
    pixels = _pixels(longest, step, side)
    return Panel(step, pixels * _drawn(cells.x.size, step), pixels * _drawn(cells.y.size, step))


def _pixels(longest: int, step: int, side: float) -> int:
    return max(1, int(side / _drawn(longest, step)))


def _drawn(size: int, step: int) -> int:
    return len(range(size - 1, -1, -step))


def kept(size: int, step: int) -> npt.NDArray[np.intp]:
    """Numbers of the rows or columns that are drawn, the last one among them."""
    return np.arange(size - 1, -1, -step)[::-1]


def rectangles(cells: Cells, values: Numbers, panel: Panel, axes: Axes) -> alt.Chart:
    """One rectangle per well-defined cell with its ``value``, shares and numbers of trials.

    Each reaches under its upper and right neighbour, so that no seam shows at any magnification.
    """
    columns, rows = kept(cells.x.size, panel.step), kept(cells.y.size, panel.step)
    row, column = np.nonzero(cells.well_defined[np.ix_(rows, columns)])
    data = text_table(i=column, j=row, value=values[np.ix_(rows, columns)][row, column])
    chart: alt.Chart = (
        alt.Chart(data)
        .transform_calculate(
            x=_at([0.0, *cells.x[columns][:-1]], "i"),
            x2=_at([*cells.x[columns][1:], 1.0], "i"),
            y=_at([0.0, *cells.y[rows][:-1]], "j"),
            y2=_at([*cells.y[rows][1:], 1.0], "j"),
            share_x=_at(cells.x[columns], "i"),
            share_y=_at(cells.y[rows], "j"),
            targets=_at(cells.targets[columns], "i"),
            nontargets=_at(cells.nontargets[rows], "j"),
        )
        .mark_rect(clip=True, strokeWidth=0)
        .encode(*axes, x2="x2:Q", y2="y2:Q")
    )
    return chart


def _at(values: Sequence[float] | Numbers, index: str) -> str:
    """A Vega expression: the entry of a short list."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    return f"({json.dumps(plain)})[datum.{index}]"


TRIALS = tips(
    "share_x:Q|Hardest targets|.1%; targets:Q|Target trials|,d; share_y:Q|Hardest nontargets|.1%; "
    "nontargets:Q|Nontarget trials|,d"
)


def axes_for(*, left: bool, panel: Panel, below: bool = True) -> Axes:
    """Shares of the targets and of the nontargets, named below and at the left of the panels."""
    scale = alt.Scale(domain=[0, 1], nice=False)
    ticks = _TICKS if panel.width >= _ROOM else _TICKS[::2]
    end = ", hardest first" if panel.width >= _ROOM else ""
    x = alt.X("x:Q", title=f"Targets{end}" if below else None, scale=scale)
    y = alt.Y("y:Q", title=f"Nontargets{end}" if left else None, scale=scale)
    return (
        x.axis(format=".0%", values=ticks, grid=False, labelFlush=False, labelOverlap=False),
        y.axis(format=".0%", values=ticks, grid=False, labelOverlap=False),
    )


def heading(name: str, *notes: str) -> list[alt.Chart]:
    """Lines above a panel: what is shown, and its numbers."""
    styles = [(name, 11.5, True, INK), *((note, 10.5, False, MUTED) for note in notes)]
    return [
        alt.Chart(table(words=words))
        .mark_text(
            align="left",
            baseline="bottom",
            fontSize=size,
            fontWeight="bold" if bold else "normal",
            color=colour,
        )
        .encode(x=alt.value(0), y=alt.value(-5 - _LINE * (len(notes) - line)), text="words:N")
        for line, (words, size, bold, colour) in enumerate(styles)
    ]


def blank(panel: Panel, words: str = "") -> Layers:
    """An empty panel that keeps the others in their columns, with a word at its right end."""
    empty = alt.Chart(table(words=words)).mark_text(
        align="right", fontSize=10.5, fontWeight="bold", color=MUTED
    )
    return alt.layer(
        empty.encode(x=alt.value(panel.width - 6), y=alt.value(panel.height / 2), text="words:N")
    ).properties(width=panel.width, height=panel.height, view=alt.ViewConfig(stroke=None))


def within(percent: float, interval: Interval | None) -> str:
    """A percentage, with its interval where there is one."""
    if interval is None or np.isnan(interval.low):
        return f"{100 * percent:.1f} %"
    return f"{100 * percent:.1f} [{100 * interval.low:.1f}, {100 * interval.high:.1f}] %"


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
            decades = range(
                int(np.floor(np.log10(self.low))), int(np.ceil(np.log10(self.high))) + 1
            )
            marks = [float(f"{m}e{d}") for d in decades for m in (1, 2, 5)]
        else:
            step = _rounded((self.high - self.low) / 5, up=True, to=(1.0, 2.0, 2.5, 5.0, 10.0))
            first = int(np.ceil(self.low / step - 1e-9))
            marks = [float(f"{i * step:.6g}") for i in range(first, first + 8)]
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


def not_drawn(panel: Panel) -> list[str]:
    """One sentence if the grid is finer than what is drawn."""
    if panel.step == 1:
        return []
    return [f"One cell in {panel.step} along each axis is drawn."]


def hatching(cells: Cells, panel: Panel, axes: Axes) -> list[alt.Chart]:
    """Grey with diagonals where cells are not well-defined: a band at the left and one below."""
    left = _band(cells.x, np.asarray(cells.well_defined.any(axis=0)))
    low = _band(cells.y, np.asarray(cells.well_defined.any(axis=1)))
    bands = [(0.0, left, 0.0, 1.0), (left, 1.0, 0.0, low)]
    bands = [band for band in bands if band[0] < band[1] and band[2] < band[3]]
    if not bands:
        return []
    x, x2, y, y2 = (list(column) for column in zip(*bands, strict=True))
    grey = (
        alt.Chart(table(x=x, x2=x2, y=y, y2=y2))
        .mark_rect(color=GRID, strokeWidth=0)
        .encode(*axes, x2="x2:Q", y2="y2:Q")
    )
    lines = [line for band in bands for line in _diagonals(band, panel)]
    x, y, x2, y2 = (list(column) for column in zip(*lines, strict=True))
    diagonals = (
        alt.Chart(text_table(x=x, y=y, x2=x2, y2=y2))
        .mark_rule(color=_HATCH, strokeWidth=0.8)
        .encode(*axes, x2="x2:Q", y2="y2:Q")
    )
    return [grey, diagonals]


def _band(shares: Numbers, defined: npt.NDArray[np.bool_]) -> float:
    """Where the well-defined cells begin: 1 if there are none."""
    if not defined.any():
        return 1.0
    first = int(defined.argmax())
    return float(shares[first - 1]) if first else 0.0


def _diagonals(
    band: tuple[float, float, float, float], panel: Panel
) -> list[tuple[float, float, float, float]]:
    """Rising diagonals a few pixels apart, cut to the band."""
    left, right = band[0] * panel.width, band[1] * panel.width
    low, high = band[2] * panel.height, band[3] * panel.height
    lines = []
    for offset in np.arange(low - right, high - left, _HATCH_STEP):
        start, end = max(left, low - offset), min(right, high - offset)
        if start < end:
            x, x2 = start / panel.width, end / panel.width
            y, y2 = (start + offset) / panel.height, (end + offset) / panel.height
            lines.append((float(x), float(y), float(x2), float(y2)))
    return lines or [(band[0], band[2], band[1], band[3])]
