"""``unmask validate``: what a file is taken for, and what it holds."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from unmask.cli import common
from unmask.trials import Embeddings, Scores, Source, Trials, read_any


def validate(
    file: Annotated[str, typer.Argument(help="Scores, key or embeddings; - reads stdin.")],
    key: common.KeyOption = None,
    speakers: common.SpeakersOption = None,
    format_in: common.InputFormatOption = None,
    missing: common.MissingOption = common.Missing.error,
    duplicates: common.DuplicatesOption = common.Missing.error,
) -> None:
    """Check a file and say what was found in it."""
    found = read_any(
        file,
        key=key,
        speakers=speakers,
        format=format_in,
        missing=missing.value,
        duplicates=duplicates.value,
    )
    lines = _embeddings(found) if isinstance(found, Embeddings) else _trials(found)
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        typer.echo(f"{name:<{width}}  {value}")


def _embeddings(found: Embeddings) -> list[tuple[str, str]]:
    lines = _source(found.source) if found.source else []
    lines += [
        ("vectors", f"{len(found):,} of {found.dimension} dimensions, {found.vectors.dtype}"),
        ("speakers", f"{found.n_speakers:,}"),
    ]
    if found.sessions is not None:
        lines.append(("sessions", f"{found.sessions.n_unique:,}"))
    return lines


def _trials(found: Scores | Trials) -> list[tuple[str, str]]:
    sources = found.sources if isinstance(found, Scores) else (found.source,)
    lines = [line for source in sources if source for line in _source(source)]
    lines.append(("trials", f"{len(found):,}"))
    if found.label is not None:
        lines += [(name, f"{count:,}") for name, count in found.counts.items()]
        lines.append(("digest", found.digest))
    if found.enrol is not None and found.test is not None:
        lines.append(("enrol, test", f"{found.enrol.n_unique:,} and {found.test.n_unique:,} ids"))
    known = found.n_speakers
    lines.append(("speakers", "not known" if known is None else f"{known:,}"))
    if isinstance(found, Scores):
        for name, values in found.systems.items():
            distinct = len(np.unique(values))
            told = f"{distinct:,} distinct scores from {values.min():g} to {values.max():g}"
            lines.append((f"system {name}", told))
    if found.columns:
        lines.append(("metadata", ", ".join(found.columns)))
    return lines


def _source(source: Source) -> list[tuple[str, str]]:
    left_out = f"{source.missing:,} missing, {source.duplicates:,} duplicates left out"
    return [
        ("file", source.name),
        ("detected", source.detected),
        ("sha256", source.sha256),
        ("left out", left_out if source.missing or source.duplicates else "nothing"),
    ]
