"""Matrices of many cells as pictures, for images that nobody points at.

A rectangle per cell makes an interactive chart, where every cell answers with its names, and a
vector image of tens of megabytes. In a still image the cells become one picture of a pixel each, in
the colours that the same scale gives; axes, legend, lines and words stay as they are.
"""

from __future__ import annotations

import base64
import re
import struct
import zlib
from math import isqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.figures.render import rendered

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
    return {
        "data": {"values": [{}]},
        "mark": {
            "type": "image",
            "url": address,
            "width": width,
            "height": height,
            "align": "left",
            "baseline": "top",
            "aspect": False,
            "smooth": False,
            "aria": False,
        },
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
    found = _FILL.findall(drawing)
    if len(found) != values.size:
        raise RuntimeError(f"the renderer coloured {len(found)} of {values.size} cells")
    return np.array(found, dtype=np.uint8)


def png_of(pixels: Pixels) -> bytes:
    """Rows of pixels (red, green, blue) as a PNG file."""
    height, width, _ = pixels.shape
    lines = np.zeros((height, 1 + 3 * width), np.uint8)
    lines[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + _checksum(kind + content)


def _checksum(content: bytes) -> bytes:
    return struct.pack(">I", zlib.crc32(content))
