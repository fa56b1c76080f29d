"""``unmask convert``: the same scores, key or embeddings in another format."""

from __future__ import annotations

from typing import Annotated

import typer

from unmask.cli import common
from unmask.errors import InputError
from unmask.trials import (
    Embeddings,
    Scores,
    format_named,
    read_any,
    write_embeddings,
    write_key,
    write_scores,
)


def convert(
    file: Annotated[str, typer.Argument(help="Scores, key or embeddings; - reads stdin.")],
    output: Annotated[str, typer.Argument(help="File to write; - writes text to stdout.")],
    to: Annotated[
        str | None, typer.Option(help="Format to write; without it, the ending tells.")
    ] = None,
    key: common.KeyOption = None,
    key_out: Annotated[
        str | None, typer.Option("--key-out", help="Write the labels as kaldi-trials, too.")
    ] = None,
    speakers: common.SpeakersOption = None,
    system: Annotated[
        str | None, typer.Option(help="System to write, for formats that hold one.")
    ] = None,
    format_in: common.InputFormatOption = None,
    missing: common.MissingOption = common.Missing.error,
    duplicates: common.DuplicatesOption = common.Missing.error,
) -> None:
    """Write a file in another format; nothing is left behind if that fails."""
    found = read_any(
        file,
        key=key,
        speakers=speakers,
        format=format_in,
        missing=missing.value,
        duplicates=duplicates.value,
    )
    if isinstance(found, Scores) and key_out is not None and found.label is None:
        raise InputError(f"{file}: expected labels for --key-out, found none; give a key (--key)")
    if isinstance(found, Embeddings):
        if key_out is not None:
            raise InputError(f"{file}: expected scores or a key for --key-out, found embeddings")
        write_embeddings(found, output, format=to)
    elif isinstance(found, Scores) and (to is None or format_named(to).kind == "score"):
        write_scores(found, output, format=to, system=system)
    else:
        write_key(found, output, format=to or "kaldi-trials")
    if key_out is not None and not isinstance(found, Embeddings):
        write_key(found, key_out)
    for path in (output, key_out):
        if path not in (None, "-"):
            typer.echo(f"wrote {path}", err=True)
