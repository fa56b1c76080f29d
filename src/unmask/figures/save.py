"""Figures into files; the suffix says which kind."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from unmask.errors import InputError
from unmask.figures import image, page
from unmask.figures.figure import Figure
from unmask.run import write_whole


def _json(figure: Figure) -> bytes:
    spec = figure.spec()
    lines = image.wrap(figure.caption, width=640, size=11)
    spec.setdefault("title", {"text": figure.title, "subtitle": lines})
    return json.dumps(spec, ensure_ascii=False, allow_nan=False, indent=1).encode() + b"\n"


_WRITERS: dict[str, Callable[[Figure], bytes]] = {
    ".png": image.png,
    ".svg": lambda figure: image.svg(figure).encode(),
    ".pdf": image.pdf,
    ".html": lambda figure: page.page(figure).encode(),
    ".json": _json,
}


def save(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write ``figure`` as .png, .svg, .pdf, .html or .json (the Vega-Lite specification)."""
    path = Path(path)
    writer = _WRITERS.get(path.suffix.lower())
    if writer is None:
        raise InputError(
            f"{path}: expected a figure's suffix ({' '.join(_WRITERS)}), "
            f"found {path.suffix or 'none'}"
        )
    content = writer(figure)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)
    return path


def save_all(
    figures: Iterable[Figure],
    directory: str | os.PathLike[str],
    *,
    formats: Sequence[str] = ("png", "svg", "html"),
) -> list[Path]:
    """Write every figure in every format as ``directory/name.format``; return the paths."""
    figures = list(figures)
    names = [figure.name for figure in figures]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"figures: expected one figure for each name, found {name!r} twice")
    return [
        save(figure, Path(directory) / f"{figure.name}.{kind.lstrip('.')}")
        for figure in figures
        for kind in formats
    ]
