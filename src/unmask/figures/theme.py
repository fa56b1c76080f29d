"""One visual language for every chart: colour, line, type and size."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import resources
from string import Template
from types import MappingProxyType
from typing import Final

from unmask.errors import InputError

PIXELS_PER_INCH: Final = 96
NARROW: Final = 336  # 3.5 inches: one column in print
WIDE: Final = 691  # 7.2 inches: both columns
WIDTHS: Final = MappingProxyType({"column": NARROW, "page": WIDE})
FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
FONTS: Final = MappingProxyType(
    {"sans": FONT, "serif": "'Times New Roman', 'Nimbus Roman', 'Liberation Serif', Times, serif"}
)


@dataclass(frozen=True)
class Layout:
    """For a ``column`` (3.5 inches) or a ``page`` (7.2) of print, ``bare`` where the document has
    title and caption, in letters with (``serif``) or without serifs (``sans``).
    """

    width: str = "page"
    bare: bool = False
    font: str = "sans"

    def __post_init__(self) -> None:
        for what, given, known in (("width", self.width, WIDTHS), ("font", self.font, FONTS)):
            if given not in known:
                raise InputError(f"figures: {what}", " or ".join(known), given)


LAYOUT: Final[ContextVar[Layout]] = ContextVar("layout", default=Layout())  # noqa: B039


@contextmanager
def layout(*, width: str = "page", bare: bool = False, font: str = "sans") -> Iterator[None]:
    """Charts made within have this :class:`Layout`."""
    before = LAYOUT.set(Layout(width, bare, font))
    try:
        yield
    finally:
        LAYOUT.reset(before)


def width() -> int:
    """How wide a chart may be, in pixels."""
    return WIDTHS[LAYOUT.get().width]


def is_wide() -> bool:
    """Whether charts have two columns of print."""
    return width() > NARROW


def is_bare() -> bool:
    """Whether charts stand without the captions that say what their lines and marks are."""
    return LAYOUT.get().bare


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

SEQUENTIAL: Final = "viridis"
# From vermilion (the old system wins) over white at zero to blue (the new system wins).
DIVERGING: Final = ("#8c2d04", "#D55E00", "#f5b48a", "#f7f7f7", "#8cc1de", "#0072B2", "#053a5f")


def part(name: str) -> str:
    """The text of a file of this room."""
    return resources.files("unmask.figures").joinpath(name).read_text(encoding="utf-8")


_LISTS = {"PALETTE": list(PALETTE), "DIVERGING": list(DIVERGING)}
_THEME = tomllib.loads(Template(part("theme.toml")).substitute(globals() | _LISTS))
NIGHT: Final = MappingProxyType(_THEME.pop("night"))
CONFIG: Final = MappingProxyType(dict(sorted(_THEME.items())))


def system_colours(names: Iterable[str], *, original: str | None = None) -> dict[str, str]:
    """Give every system its colour: ``original`` grey, the others the palette in the order given.

    Make it once from all systems of a report and hand it to every chart, so that a system keeps its
    colour where others are missing. From the eleventh system on colours repeat.
    """
    distinct = dict.fromkeys(names)
    others = [name for name in distinct if name != original]
    palette = {name: PALETTE[i % len(PALETTE)] for i, name in enumerate(others)}
    return {name: palette.get(name, ORIGINAL) for name in distinct}


def shorten(name: str, *, limit: int = 28) -> str:
    """Cut a long name in its middle, where names made by programs differ least."""
    if len(name) <= limit:
        return name
    head = (limit - 1) // 2
    return f"{name[:head]}…{name[len(name) - (limit - 1 - head) :]}"
