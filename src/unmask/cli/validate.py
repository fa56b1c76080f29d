"""``unmask validate``: what a file is taken for, and what it holds."""

from __future__ import annotations

import numpy as np
import typer

from unmask.base import visible
from unmask.cli.common import Tables
from unmask.cli.options import argument
from unmask.trials import Embeddings, Scores, Source, Trials, read_any


def validate(
    tables: Tables, file: str = argument("Scores, key or embeddings; - reads stdin.")
) -> None:
    """Check a file and say what was found in it."""
    data = read_any(file, **tables.options)
    lines = _embeddings(data) if isinstance(data, Embeddings) else _trials(data)
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        typer.echo(visible(f"{name:<{width}}  {value}"))


def _embeddings(data: Embeddings) -> list[tuple[str, str]]:
    lines = _source(data.source) if data.source else []
    lines += [
        ("vectors", f"{len(data):,} of {data.dimension} dimensions, {data.vectors.dtype}"),
        ("speakers", f"{data.n_speakers:,}"),
    ]
    if data.sessions is not None:
        lines.append(("sessions", f"{data.sessions.n_unique:,}"))
    return lines


def _trials(data: Scores | Trials) -> list[tuple[str, str]]:
    sources = data.sources if isinstance(data, Scores) else (data.source,)
    lines = [line for source in sources if source for line in _source(source)]
    lines.append(("trials", f"{len(data):,}"))
    if data.label is not None:
        lines += [(name, f"{count:,}") for name, count in data.counts.items()]
        lines.append(("digest", data.digest))
    if data.enrol is not None and data.test is not None:
        lines.append(("enrol, test", f"{data.enrol.n_unique:,} and {data.test.n_unique:,} ids"))
    known = data.n_speakers
    lines.append(("speakers", "not known" if known is None else f"{known:,}"))
    if isinstance(data, Scores):
        for name, values in data.systems.items():
            distinct = len(np.unique(values))
            text = f"{distinct:,} distinct scores from {values.min():g} to {values.max():g}"
            lines.append((f"system {name}", text))
    if data.columns:
        lines.append(("metadata", ", ".join(data.columns)))
    return lines


def _source(source: Source) -> list[tuple[str, str]]:
    left_out = f"{source.missing:,} missing, {source.duplicates:,} duplicates left out"
    return [
        ("file", source.name),
        ("detected", source.detected),
        ("sha256", source.sha256),
        ("left out", left_out if source.missing or source.duplicates else "nothing"),
    ]
