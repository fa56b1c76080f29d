"""``unmask validate``, ``formats``, ``convert`` and ``trials``: what files are taken for, hold and
become, and lists of trials.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import typer
from rich.console import Console
from rich.table import Table

from unmask.base import visible
from unmask.cli.common import Tables, Terminal, remark, writable_file
from unmask.cli.options import argument, option, output_file, writes
from unmask.errors import InputError
from unmask.run import check_output, write_whole
from unmask.trials import (
    FORMATS,
    Embeddings,
    Scores,
    Trials,
    make_trials,
    read_any,
    short_encoder,
    write,
)


def validate(tables: Tables, file: str = argument()) -> None:
    lines = list(_lines(read_any(file, **tables.options)))
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        typer.echo(visible(f"{name:<{width}}  {value}"))


def _lines(data: Embeddings | Scores | Trials) -> Iterator[tuple[str, str]]:
    for source in data.sources if isinstance(data, Scores) else (data.source,):
        if source is not None:
            lost = f"{source.missing:,} missing, {source.duplicates:,} duplicates left out"
            yield from (
                ("file", source.name),
                ("detected", source.detected),
                ("sha256", source.sha256),
                ("left out", lost if source.missing or source.duplicates else "nothing"),
            )
    if isinstance(data, Embeddings):
        yield "vectors", f"{len(data):,} of {data.dimension} dimensions, {data.vectors.dtype}"
        yield "speakers", f"{data.n_speakers:,}"
        yield "encoder", short_encoder(data.encoder) or "not told"
        if data.sessions is not None:
            yield "sessions", f"{data.sessions.n_unique:,}"
        return
    yield "trials", f"{len(data):,}"
    if data.label is not None:
        yield from ((name, f"{count:,}") for name, count in data.counts.items())
        yield "digest", data.digest
    if data.enrol is not None and data.test is not None:
        yield "enrol, test", f"{data.enrol.n_unique:,} and {data.test.n_unique:,} ids"
    yield "speakers", "not known" if data.n_speakers is None else f"{data.n_speakers:,}"
    for name, values in data.systems.items() if isinstance(data, Scores) else ():
        distinct, low, high = len(np.unique(values)), values.min(), values.max()
        yield f"system {name}", f"{distinct:,} distinct scores from {low:g} to {high:g}"
    if data.columns:
        yield "metadata", ", ".join(data.columns)


def formats(
    kind: str | None = None,
) -> None:
    if kind not in (None, "score", "key", "embedding"):
        raise InputError(f"expected --kind score, key or embedding, found {kind!r}")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("name", "kind", "layout", "example"):
        table.add_column(title, overflow="fold", no_wrap=title in ("name", "kind"))
    for entry in FORMATS:
        if kind in (None, entry.kind):
            table.add_row(entry.name, entry.kind, entry.layout, entry.example)
    Console().print(table, markup=False)


def convert(
    tables: Tables,
    file: str = argument(),
    output: str = writes(argument(), check_output),
    to: str | None = None,
    key_out: str | None = output_file(),
    system: str | None = None,
) -> None:
    data = read_any(file, **tables.options)
    if isinstance(data, Scores) and key_out is not None and data.label is None:
        raise InputError(f"{file}: expected labels for --key-out, found none; give a key (--key)")
    if isinstance(data, Embeddings) and key_out is not None:
        raise InputError(f"{file}: expected scores or a key for --key-out, found embeddings")
    write(data, output, format=to, system=system)
    if key_out is not None:
        write(data, key_out, format="kaldi-trials")
    for path in (output, key_out):
        if path not in (None, "-"):
            remark(f"wrote {path}")


def trials(
    terminal: Terminal,
    source: Path = argument(),
    output: Path = output_file("-o", default=..., callback=writable_file),
    same: str | None = None,
    cross_session: str | None = None,
    per_speaker: int | None = option(min=1),
    enrol: int | None = option(min=1),
    balanced: bool = False,
    nontargets: int | None = option(min=1),
    seed: int = option(default=0, min=0),
    to: str = "kaldi-trials",
) -> None:
    models = output.with_name(f"{output.name}.spk2utt")
    if enrol is not None and str(output) == "-":
        raise InputError(
            "--enrol: expected a file for the list (-o), beside which models are written"
        )
    if enrol is not None:
        check_output(models)
    made = make_trials(
        _voices(source),
        same=same,
        cross_session=cross_session,
        per_speaker=per_speaker,
        enrol=enrol,
        balanced=balanced,
        nontargets=nontargets,
        seed=seed,
    )
    made.write(output, format=to)
    if made.models is not None:
        lines = (f"{model} {' '.join(of)}\n" for model, of in made.models.items())
        write_whole(models, "".join(lines).encode())
        terminal.remark(f"wrote {models}: {len(made.models):,} models of {enrol} utterances")
    counts = " and ".join(f"{count:,} {kind}" for kind, count in made.counts.items())
    terminal.remark(f"wrote {output}: {counts} trials")


def _voices(source: Path) -> Any:
    """What trials are made of: a file, or the recordings of a folder or manifest."""
    kaldi = any((source / name).is_file() for name in ("utt2spk", "spk2utt"))
    manifest = source.name.removesuffix(".gz").endswith(".jsonl") or source.stem == "metadata"
    if not manifest and (kaldi or not source.is_dir()):
        return source
    from unmask.speech import recordings

    found = recordings(source)
    columns = {"utterance": [recording.utterance for recording in found]}
    columns["speaker"] = [recording.speaker for recording in found]
    if all(recording.session is not None for recording in found):
        columns["session"] = [str(recording.session) for recording in found]
    return pl.DataFrame(columns)
