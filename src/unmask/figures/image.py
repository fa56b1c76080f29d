"""A figure as an image or as an offline page, and figures into files of the kind of the suffix."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from html import escape
from math import isqrt
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import numpy.typing as npt
import vl_convert

from unmask.base import visible
from unmask.errors import InputError
from unmask.figures.figure import VEGA_LITE, Figure
from unmask.figures.theme import (
    FONTS,
    INK,
    MUTED,
    NARROW,
    NIGHT,
    PAPER,
    PIXELS_PER_INCH,
    WIDTHS,
    part,
)
from unmask.run import make_folder, write_whole

PNG_PIXELS_PER_INCH = 200

_MARGIN = 12.0
_TITLE_SIZE, _TITLE_LINE = 14.0, 19.0
_CAPTION_SIZE, _CAPTION_LINE = 11.0, 15.5
_POINTS_PER_PIXEL = 72 / PIXELS_PER_INCH
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')
_NUMBERED = re.compile(r"\b(clip|gradient_?)(\d+)\b")
_ROOT = re.compile(r'<svg\b[^>]*\bviewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>')


def svg(figure: Figure) -> str:
    """The whole figure: title above the chart, caption wrapped below it, unless it is bare."""
    drawn, bare = rendered(still(figure.spec())), figure.layout.bare
    root = _ROOT.search(drawn)
    if root is None:
        raise RuntimeError("the renderer returned an image without a view box")
    seen: dict[str, int] = {}  # the renderer counts its clips over all drawings
    body = _NUMBERED.sub(
        lambda match: f"{match[1]}{seen.setdefault(match[0], len(seen))}",
        drawn[root.end() : drawn.rindex("</svg>")],
    )
    margin, title, caption = (0.0, "", "") if bare else (_MARGIN, figure.title, figure.caption)
    # What is wider than print shrinks.
    scale = min(1.0, (WIDTHS[figure.layout.width] - 2 * margin) / float(root[1]))
    chart_width, chart_height = (scale * float(root[side]) for side in (1, 2))
    width = max(chart_width + 2 * margin, NARROW)
    above = wrap(title, width=width - 2 * margin, size=1.2 * _TITLE_SIZE)
    below = wrap(caption, width=width - 2 * margin, size=_CAPTION_SIZE)
    chart_top = margin + (len(above) * _TITLE_LINE + 6 if above else 0)
    caption_top = chart_top + chart_height + (8 if below else 0)
    font = FONTS[figure.layout.font]
    lines = _lines(above, margin, _TITLE_LINE, _TITLE_SIZE, font, weight=600, colour=INK)
    # Cells of a heatmap touch: its style keeps their edges, or the paper would shine through.
    return Template(part("figure.svg")).substitute(
        width=f"{width:g}",
        height=f"{caption_top + len(below) * _CAPTION_LINE + margin:g}",
        title=escape(visible(figure.title)),
        caption=escape(visible(figure.caption)),
        paper=PAPER,
        above=typeset(lines),
        left=f"{(width - chart_width) / 2 if bare else margin:g}",
        top=f"{chart_top:g}",
        scale=f"{scale:g}",
        chart=typeset(body),
        below=typeset(_lines(below, caption_top, _CAPTION_LINE, _CAPTION_SIZE, font, colour=MUTED)),
    )


SYMBOL = re.compile(r"\b([CDGPl])_(llr|ECE|VD|FA|miss|diag|sys|w)(?:\^(min|N))?(?![A-Za-z0-9_])")
_TEXT = re.compile(r"(?<=>)([^<>]*_[^<>]*)(?=</text>)")
_LOWER, _RAISED, _SMALL = 0.22, -0.38, 0.72


def typeset(drawing: str) -> str:
    """The symbols in the texts of an SVG with sub- and superscripts: D_ECE, C_llr^min."""
    return _TEXT.sub(lambda text: _spans(*SYMBOL.split(text[1])), drawing)


def _spans(first: str, *rest: str | None) -> str:
    """Texts between symbols and the three parts of each, every one on its own level."""
    made, at = [first], 0.0
    for place, words in enumerate(rest):
        level = (0.0, _LOWER, _RAISED, 0.0)[place % 4]
        if words:
            size, slant = _SMALL if level else 1.0, "italic" if place % 4 == 0 else "normal"
            how = f'dy="{(level - at) / size:.3f}em" font-size="{size:.0%}" font-style="{slant}"'
            made.append(f"<tspan {how}>{words}</tspan>")
            at = level
    return "".join(made)


def wrap(text: str, *, width: float, size: float) -> list[str]:
    """Break ``text`` into lines that fit ``width`` pixels in any common sans at ``size`` pixels."""
    lines: list[str] = []
    for word in text.split():
        step = max(1, int(width / size)) if _extent(word) * size > width else len(word)
        for piece in (word[start : start + step] for start in range(0, len(word), step)):
            if lines and _extent(f"{lines[-1]} {piece}") * size <= width:
                lines[-1] += f" {piece}"
            else:
                lines.append(piece)
    return lines


def _extent(text: str) -> float:
    """An upper estimate of the text's width in units of the font size."""
    narrow = sum(text.count(c) for c in " iljtfrI.,:;|'!()[]/")
    wide = sum(text.count(c) for c in "mwMWQ%@—") + sum(ord(c) > 0x2E80 for c in text)
    return 0.36 * narrow + 0.92 * wide + 0.585 * (len(text) - narrow - wide)


def _lines(
    lines: list[str],
    top: float,
    line: float,
    size: float,
    font: str,
    *,
    weight: int = 400,
    colour: str,
) -> str:
    return "".join(
        f'<text x="{_MARGIN:g}" y="{top + i * line + size:g}" font-family="{font}" '
        f'font-size="{size:g}" font-weight="{weight}" fill="{colour}">'
        f"{escape(visible(text))}</text>\n"
        for i, text in enumerate(lines)
    )


def rendered(spec: dict[str, Any]) -> str:
    """The chart as SVG."""
    drawing: str = vl_convert.vegalite_to_svg(
        shown(spec), vl_version=VEGA_LITE, allowed_base_urls=[]
    )
    return drawing


def shown(value: Any) -> Any:
    """The same specification, its names without characters that end the renderer."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {shown(name): shown(part) for name, part in value.items()}
    return [shown(part) for part in value] if isinstance(value, list) else value


CELLS = "cells"
MOST_RECTANGLES = 100 * 100
_WITHIN = ("layer", "concat", "hconcat", "vconcat", "spec")
_FILL = re.compile(r'fill="rgb\((\d+), (\d+), (\d+)\)"')
Pixels = npt.NDArray[np.uint8]


def still(spec: dict[str, Any]) -> dict[str, Any]:
    """The specification with every large layer of cells as a picture.

    Such a layer has the mark style :data:`CELLS`, its data are lines of text with one column, the
    values of a square matrix row by row, and its colour scale is continuous.
    """
    datasets = dict(spec.get("datasets", {}))
    made: dict[str, Any] = _still(spec, datasets)
    return {**made, "datasets": datasets} if datasets else made


def _still(node: Any, datasets: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [new for child in node for new in _replaced(child, datasets)]
    return {
        key: _still(value, datasets) if key in _WITHIN else value for key, value in node.items()
    }


def _replaced(node: dict[str, Any], datasets: dict[str, Any]) -> list[dict[str, Any]]:
    mark = node.get("mark")
    if not (isinstance(mark, dict) and mark.get("style") == CELLS):
        return [_still(node, datasets)]
    name = node["data"]["name"]
    field, *lines = datasets[name].split("\n")
    if len(lines) <= MOST_RECTANGLES:
        return [node]
    del datasets[name]
    encoding = {key: value for key, value in node["encoding"].items() if key != "tooltip"}
    values, place = np.unique(np.array(lines, dtype=np.float64), return_inverse=True)
    pixels = _colours(values, encoding["color"]["scale"])[place]
    side = isqrt(len(lines))
    return [_picture(pixels.reshape(side, side, 3), encoding), _nowhere(field, encoding)]


def _picture(pixels: Pixels, encoding: dict[str, Any]) -> dict[str, Any]:
    """A layer that fills the panel with an image whose pixels keep their edges."""
    address = "data:image/png;base64," + base64.b64encode(png_of(pixels)).decode()
    width, height = (max(encoding[axis]["scale"]["domain"]) for axis in "xy")
    size = {"width": width, "height": height, "align": "left", "baseline": "top"}
    exact = {"aspect": False, "smooth": False, "aria": False}
    return {
        "data": {"values": [{}]},
        "mark": {"type": "image", "url": address, **size, **exact},
        "encoding": {"x": {"value": 0}, "y": {"value": 0}},
    }


def _nowhere(field: str, encoding: dict[str, Any]) -> dict[str, Any]:
    """A layer of one cell without extent: it brings the scales and the legend."""
    names = {own["field"] for axis, own in encoding.items() if axis != "color"}
    row = {field: encoding["color"]["scale"]["domain"][0], **dict.fromkeys(sorted(names), 0)}
    return {
        "data": {"values": [row]},
        "mark": {"type": "rect", "strokeWidth": 0, "aria": False},
        "encoding": encoding,
    }


def _colours(values: npt.NDArray[np.float64], scale: dict[str, Any]) -> Pixels:
    """What the renderer itself makes of values on a colour scale: red, green and blue of each."""
    colour = {"field": "data", "type": "quantitative", "scale": scale, "legend": None}
    drawing = rendered(
        {
            "data": {"values": values.tolist()},
            "mark": {"type": "rect", "strokeWidth": 0, "aria": False},
            "encoding": {"color": colour},
        }
    )
    fills = _FILL.findall(drawing)
    if len(fills) != values.size:
        raise RuntimeError(f"the renderer coloured {len(fills)} of {values.size} cells")
    return np.array(fills, dtype=np.uint8)


def png_of(pixels: Pixels) -> bytes:
    """Rows of pixels (red, green, blue) as a PNG file."""
    height, width, _ = pixels.shape
    lines = np.zeros((height, 1 + 3 * width), np.uint8)
    lines[:, 1:] = pixels.reshape(height, -1)
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = (header, b"IDAT" + zlib.compress(lines.tobytes(), 9), b"IEND")
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
        for chunk in chunks
    )


POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
STYLE = "\n" + part("chart.css").replace("NIGHT", NIGHT[PAPER]).replace("PAPER", PAPER)


def policy_of(script: str) -> str:
    """The policy of a page with one script: no other runs. Charts compile their expressions, which
    takes ``unsafe-eval``.
    """
    known = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return POLICY.replace("script-src 'unsafe-inline'", f"script-src 'sha256-{known}'")


@cache
def javascript() -> str:
    """Everything that draws charts, to be inlined once per page; then call ``unmaskDraw()``."""
    snippet = part("page.js").replace("NIGHT", json.dumps(dict(NIGHT)))
    snippet = snippet.replace("SYMBOL", SYMBOL.pattern)
    bundle: str = vl_convert.javascript_bundle(snippet, vl_version=VEGA_LITE)
    return bundle.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def script_json(value: Any) -> str:
    """JSON that can stand inside a ``script`` element whatever the strings in it hold."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def fragment(figure: Figure) -> str:
    """The figure as a ``figure`` element; the page around it holds ``STYLE`` and ``javascript``."""
    caption = SYMBOL.sub(_marked, "" if figure.layout.bare else escape(figure.caption))
    return (
        f'<figure class="chart" id="{escape(figure.name)}">\n'
        f'<div class="drawing" role="img" aria-label="{escape(figure.title)}"></div>\n'
        f'<script type="application/json">{script_json(figure.spec())}</script>\n'
        f"<figcaption>{caption}</figcaption>\n</figure>\n"
    )


def _marked(symbol: re.Match[str]) -> str:
    raised = f"<sup>{symbol[3]}</sup>" if symbol[3] else ""
    return f"<i>{symbol[1]}</i><sub>{symbol[2]}</sub>{raised}"


def page(figure: Figure) -> str:
    """One self-contained page that loads nothing, which its content security policy enforces."""
    return Template(part("page.html")).substitute(
        policy=POLICY,
        title=escape(figure.title),
        style=part("page.css") + STYLE,
        figure=fragment(figure),
        script=javascript(),
    )


def _points(match: re.Match[str]) -> str:
    """The size in print: pixels become points."""
    width, height = (_POINTS_PER_PIXEL * float(match[part]) for part in (1, 2))
    return f'width="{width:g}" height="{height:g}"'


def _json(figure: Figure) -> bytes:
    lines = wrap(figure.caption, width=640, size=11)
    words = {"title": {"text": figure.title, "subtitle": lines}}
    origin = {"usermeta": {"tool": "unmask"}}
    spec = origin | ({} if figure.layout.bare else words) | figure.spec()
    return json.dumps(spec, ensure_ascii=False, allow_nan=False, indent=1).encode() + b"\n"


_WRITERS: dict[str, Callable[[Figure, str], bytes]] = {
    "png": lambda _, drawing: vl_convert.svg_to_png(
        drawing, scale=_POINTS_PER_PIXEL, ppi=PNG_PIXELS_PER_INCH
    ),
    "svg": lambda _, drawing: drawing.encode(),
    "pdf": lambda _, drawing: vl_convert.svg_to_pdf(_SIZE.sub(_points, drawing, count=1)),
    "html": lambda figure, _: page(figure).encode(),
    "json": lambda figure, _: _json(figure),
}


def images(figure: Figure, kinds: Sequence[str]) -> dict[str, bytes]:
    """The figure as png, svg, pdf, html or json (its specification), all from one drawing."""
    drawing = svg(figure) if {"png", "svg", "pdf"} & set(kinds) else ""
    return {kind: _WRITERS[kind](figure, drawing) for kind in kinds}


def save(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write ``figure`` as .png, .svg, .pdf, .html or .json (the Vega-Lite specification)."""
    return _save(figure, [Path(path)])[0]


def _save(figure: Figure, paths: list[Path]) -> list[Path]:
    kinds = [path.suffix.lower().removeprefix(".") for path in paths]
    for path, kind in zip(paths, kinds, strict=True):
        if kind not in _WRITERS:
            suffixes = " ".join(f".{known}" for known in _WRITERS)
            raise InputError(path, f"a figure's suffix ({suffixes})", path.suffix or "none")
    content = images(figure, kinds)
    for path, kind in zip(paths, kinds, strict=True):
        make_folder(path.parent)
        write_whole(path, content[kind])
    return paths


def save_all(
    figures: Iterable[Figure],
    directory: str | os.PathLike[str],
    *,
    formats: str | Sequence[str] = ("png", "svg", "html"),
) -> list[Path]:
    """Write every figure in every format (``"png,pdf"`` or a list) as ``directory/name.format``;
    return the paths. Titles and captions of bare figures go into ``directory/captions.txt``.
    """
    figures, formats = list(figures), formats.split(",") if isinstance(formats, str) else formats
    names = [figure.name for figure in figures]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"figures: expected one figure for each name, found {name!r} twice")
    suffixes = [f".{kind.lstrip('.')}" for kind in formats]
    paths = [
        path
        for figure in figures
        for path in _save(figure, [Path(directory) / f"{figure.name}{end}" for end in suffixes])
    ]
    if bare := [figure for figure in figures if figure.layout.bare]:
        file = Path(directory) / "captions.txt"
        known = file.read_text(encoding="utf-8").split("\n\n") if file.exists() else []
        every = {one.partition("\n")[0]: one.strip() for one in known}
        every |= {chart.name: f"{chart.name}\n{chart.title}\n{chart.caption}" for chart in bare}
        write_whole(file, ("\n\n".join(every.values()) + "\n").encode())
    return paths
