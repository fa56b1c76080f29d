"""Matrices of many cells in still images: one picture, the same colours, little to carry."""

from __future__ import annotations

import base64
import json
import re
import zlib

import numpy as np
import pytest

from unmask.figures import image as module, save
from unmask.figures.image import png_of, still, svg
from unmask.figures.privacy import similarity_matrices
from unmask.privacy.similarity import MatrixView

CELL = re.compile(r'<path d="M([\d.]+),([\d.]+)h[\d.]+v[\d.]+h-[\d.]+Z" fill="rgb\(([\d, ]+)\)"')
PICTURE = re.compile(r'<image[^>]*xlink:href="data:image/png;base64,([^"]+)"[^>]*>')


def view(speakers, *, parts=("original", "protected")):
    size = speakers * len(parts)
    values = np.random.default_rng(0).random((size, size)) ** 3
    values[range(size), range(size)] = 1.0
    return MatrixView(values, tuple(f"s{i}" for i in range(speakers)), parts)


def pixels(content):
    """Decode a PNG of the plainest kind: three bytes a pixel, no filter."""
    width, height = int.from_bytes(content[16:20]), int.from_bytes(content[20:24])
    start = content.index(b"IDAT")
    length = int.from_bytes(content[start - 4 : start])
    lines = np.frombuffer(zlib.decompress(content[start + 4 : start + 4 + length]), np.uint8)
    lines = lines.reshape(height, 1 + 3 * width)
    assert not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, 3)


def test_the_picture_has_the_colours_of_the_rectangles(monkeypatch):
    figure = similarity_matrices({"a": view(20)})
    drawn = svg(figure)
    cells = [(float(y), float(x), colour.split(", ")) for x, y, colour in CELL.findall(drawn)]
    assert len(cells) == 1600
    wanted = np.array([colour for *_, colour in sorted(cells)], np.uint8).reshape(40, 40, 3)
    assert not PICTURE.search(drawn)
    monkeypatch.setattr(module, "MOST_RECTANGLES", 1599)
    light = svg(figure)
    [picture] = PICTURE.findall(light)
    np.testing.assert_array_equal(pixels(base64.b64decode(picture)), wanted)
    assert "pixelated" in PICTURE.search(light)[0]
    assert len(CELL.findall(light)) == 0


def test_all_else_stays_where_it_is(monkeypatch):
    figure = similarity_matrices({"a": view(20), "b": view(15)})
    heavy = svg(figure)
    monkeypatch.setattr(module, "MOST_RECTANGLES", 0)
    light = svg(figure)
    size = re.compile(r'viewBox="[^"]+"')
    assert size.search(light)[0] == size.search(heavy)[0]
    words = re.compile(r"<text[^>]*>[^<]*</text>")
    assert words.findall(light) == words.findall(heavy)
    assert len(PICTURE.findall(light)) == 2
    for what in ("mark-rule", "role-legend-gradient", "linearGradient id="):
        assert light.count(what) == heavy.count(what)


def test_large_matrices_are_light(tmp_path):
    figure = similarity_matrices({"a": view(300)})
    text = save(figure, tmp_path / "a.svg").read_text()
    assert len(text) < 2_000_000
    assert "protected" in text
    assert save(figure, tmp_path / "a.pdf").stat().st_size < 2_000_000
    assert save(figure, tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_pages_keep_every_cell_and_its_names(tmp_path):
    figure = similarity_matrices({"a": view(60)})
    spec = json.dumps(figure.spec())
    assert '"tooltip"' in spec
    assert spec.count("\\n") == 120 * 120
    assert '"tooltip"' in save(figure, tmp_path / "a.html").read_text()


def test_other_charts_are_left_alone():
    spec = {"layer": [{"mark": "rect"}, {"mark": {"type": "rect"}, "encoding": {}}], "width": 5}
    assert still(spec) == spec
    small = similarity_matrices({"a": view(10)}).spec()
    assert still(small) == small


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (40, 2)])
def test_png_files_hold_their_pixels(shape):
    made = np.random.default_rng(1).integers(0, 256, (*shape, 3)).astype(np.uint8)
    np.testing.assert_array_equal(pixels(png_of(made)), made)
