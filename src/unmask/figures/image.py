"""Title, chart and caption as one SVG image; PNG and PDF are made from it."""

from __future__ import annotations

import re
from html import escape

import vl_convert

from unmask.base import visible
from unmask.figures.figure import Figure
from unmask.figures.render import rendered
from unmask.figures.still import still
from unmask.figures.theme import FONT, INK, MUTED, NARROW, PAPER, PIXELS_PER_INCH

PNG_PIXELS_PER_INCH = 200

_MARGIN = 12.0
_TITLE_SIZE, _TITLE_LINE = 14.0, 19.0
_CAPTION_SIZE, _CAPTION_LINE = 11.0, 15.5
_POINTS_PER_PIXEL = 72 / PIXELS_PER_INCH
# Cells of a heatmap touch: smoothed edges would let the paper shine through between them.
_STYLE = ".mark-rect { shape-rendering: crispEdges }"
_ROOT = re.compile(r'<svg\b[^>]*\bviewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>')


def svg(figure: Figure, *, scale: float = 1.0) -> str:
    """The whole figure: title above the chart, caption wrapped below it."""
    drawn = rendered(still(figure.spec()))
    root = _ROOT.search(drawn)
    if root is None:
        raise RuntimeError("the renderer returned an image without a view box")
    chart_width, chart_height = float(root[1]), float(root[2])
    body = drawn[root.end() : drawn.rindex("</svg>")]

    width = max(chart_width + 2 * _MARGIN, NARROW)
    title = wrap(figure.title, width=width - 2 * _MARGIN, size=1.08 * _TITLE_SIZE)
    caption = wrap(figure.caption, width=width - 2 * _MARGIN, size=_CAPTION_SIZE)
    chart_top = _MARGIN + len(title) * _TITLE_LINE + 6
    caption_top = chart_top + chart_height + 8
    height = caption_top + len(caption) * _CAPTION_LINE + _MARGIN
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{scale * width:g}" height="{scale * height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" role="img">\n'
        f"<title>{escape(visible(figure.title))}</title>\n<desc>{escape(visible(figure.caption))}</desc>\n"
        f"<style>{_STYLE}</style>\n"
        f'<rect width="100%" height="100%" fill="{PAPER}"/>\n'
        + _lines(title, top=_MARGIN, line=_TITLE_LINE, size=_TITLE_SIZE, weight=600, colour=INK)
        + f'<g transform="translate({_MARGIN:g},{chart_top:g})">{body}</g>\n'
        + _lines(
            caption,
            top=caption_top,
            line=_CAPTION_LINE,
            size=_CAPTION_SIZE,
            weight=400,
            colour=MUTED,
        )
        + "</svg>\n"
    )


def png(figure: Figure) -> bytes:
    """The figure at 200 pixels per inch."""
    image: bytes = vl_convert.svg_to_png(
        svg(figure), scale=_POINTS_PER_PIXEL, ppi=PNG_PIXELS_PER_INCH
    )
    return image


def pdf(figure: Figure) -> bytes:
    """The figure in its printed size."""
    document: bytes = vl_convert.svg_to_pdf(svg(figure, scale=_POINTS_PER_PIXEL))
    return document


def wrap(text: str, *, width: float, size: float) -> list[str]:
    """Break ``text`` into lines that fit ``width`` pixels in any common sans at ``size`` pixels."""
    lines: list[str] = []
    line = ""
    for word in _breakable(text, width=width, size=size):
        longer = f"{line} {word}" if line else word
        if line and _extent(longer) * size > width:
            lines.append(line)
            line = word
        else:
            line = longer
    return [*lines, line] if line else lines


def _breakable(text: str, *, width: float, size: float) -> list[str]:
    """The words of ``text``; one that is longer than a line comes in pieces."""
    limit = max(1, int(width / size))
    words: list[str] = []
    for word in text.split():
        step = limit if _extent(word) * size > width else len(word)
        words += [word[start : start + step] for start in range(0, len(word), step)]
    return words


def _extent(text: str) -> float:
    """An upper estimate of the text's width in units of the font size."""
    narrow = sum(text.count(c) for c in " iljtfrI.,:;|'!()[]/")
    wide = sum(text.count(c) for c in "mwMWQ%@—") + sum(ord(c) > 0x2E80 for c in text)
    return 0.36 * narrow + 0.92 * wide + 0.585 * (len(text) - narrow - wide)


def _lines(
    lines: list[str], *, top: float, line: float, size: float, weight: int, colour: str
) -> str:
    return "".join(
        f'<text x="{_MARGIN:g}" y="{top + i * line + size:g}" font-family="{FONT}" '
        f'font-size="{size:g}" font-weight="{weight}" fill="{colour}">'
        f"{escape(visible(text))}</text>\n"
        for i, text in enumerate(lines)
    )
