"""``unmask convert``: the same scores, key or embeddings in another format."""

from __future__ import annotations

from typing import Annotated

import typer

from unmask.cli import common
from unmask.errors import InputError
from unmask.trials import Embeddings, Scores, read_any, write


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
    if isinstance(found, Embeddings) and key_out is not None:
        raise InputError(f"{file}: expected scores or a key for --key-out, found embeddings")
    write(found, output, format=to, system=system)
    if key_out is not None:
        write(found, key_out, format="kaldi-trials")
    for path in (output, key_out):
        if path not in (None, "-"):
            typer.echo(f"wrote {path}", err=True)
