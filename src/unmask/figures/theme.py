"""One visual language for every chart: colour, line, type and size."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import resources
from string import Template
from types import MappingProxyType
from typing import Final

PIXELS_PER_INCH: Final = 96
NARROW: Final = 336  # 3.5 inches: one column in print
WIDE: Final = 691  # 7.2 inches: both columns
_WIDTH: ContextVar[float] = ContextVar("width", default=WIDE)


@contextmanager
def at_width(width: float) -> Iterator[None]:
    """Charts made within are ``width`` pixels wide in print, :data:`NARROW` or :data:`WIDE`."""
    before = _WIDTH.set(width)
    try:
        yield
    finally:
        _WIDTH.reset(before)


def width() -> float:
    """How wide a chart may be."""
    return _WIDTH.get()


def is_wide() -> bool:
    """Whether charts are nearer to two columns of print than to one."""
    return width() >= (NARROW + WIDE) / 2


FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
INK: Final = "#111827"
ON_BRIGHT: Final = "#0c111b"  # ink on the bright colours of maps, by day and by night
ON_DARK: Final = "#fefefe"
MUTED: Final = "#4b5563"
GRID: Final = "#e5e7eb"
PAPER: Final = "#ffffff"

ORIGINAL: Final = "#6b7280"
CHANCE: Final = "#000000"
TARGET: Final = "#0072B2"
NONTARGET: Final = "#D55E00"

# Okabe and Ito's order, without the yellow that vanishes on white; the last four are dark enough to
# stay apart from the first six for readers who confuse red and green.
PALETTE: Final = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9",
    "#332288", "#882255", "#999933", "#661100",
)  # fmt: skip

SOLID: Final = (1, 0)
DASHED: Final = (5, 3)
DASHES: Final = (SOLID, DASHED, (1.5, 2), (8, 3, 1.5, 3), (10, 4), (3, 1.5))

SEQUENTIAL: Final = "viridis"
# From vermilion (the old system wins) over white at zero to blue (the new system wins).
DIVERGING: Final = ("#8c2d04", "#D55E00", "#f5b48a", "#f7f7f7", "#8cc1de", "#0072B2", "#053a5f")


def part(name: str) -> str:
    """The text of a file of this room."""
    return resources.files("unmask.figures").joinpath(name).read_text(encoding="utf-8")


_LISTS = {"PALETTE": list(PALETTE), "DIVERGING": list(DIVERGING)}
_THEME = tomllib.loads(Template(part("theme.toml")).substitute(globals() | _LISTS))
NIGHT: Final = MappingProxyType(_THEME.pop("night"))
CONFIG: Final = MappingProxyType(_THEME)


def system_colours(names: Iterable[str], *, original: str | None = None) -> dict[str, str]:
    """Give every system its colour: ``original`` grey, the others the palette in the order given.

    Make it once from all systems of a report and hand it to every chart, so that a system keeps its
    colour where others are missing. From the eleventh system on colours repeat.
    """
    distinct = dict.fromkeys(names)
    others = [name for name in distinct if name != original]
    palette = {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(others)}
    return {name: palette.get(name, ORIGINAL) for name in distinct}


def attacker_dashes(names: Iterable[str]) -> dict[str, list[float]]:
    """Give every attacker its line style; the first is solid, from the seventh on styles repeat."""
    distinct = dict.fromkeys(names)
    return {name: list(DASHES[i % len(DASHES)]) for i, name in enumerate(distinct)}


def shorten(name: str, *, limit: int = 28) -> str:
    """Cut a long name in its middle, where names made by programs differ least."""
    if len(name) <= limit:
        return name
    head = (limit - 1) // 2
    return f"{name[:head]}…{name[len(name) - (limit - 1 - head) :]}"
