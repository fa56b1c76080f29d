"""``unmask convert``: the same scores, key or embeddings in another format."""

from __future__ import annotations

from unmask.cli.common import Tables, remark
from unmask.cli.options import argument, option
from unmask.errors import InputError
from unmask.trials import Embeddings, Scores, read_any, write


def convert(
    tables: Tables,
    file: str = argument("Scores, key or embeddings; - reads stdin."),
    output: str = argument("File to write; - writes text to stdout."),
    to: str | None = option("Format to write; without it, the ending tells."),
    key_out: str | None = option("Write the labels as kaldi-trials, too."),
    system: str | None = option("System to write, for formats that hold one."),
) -> None:
    """Write a file in another format; nothing is left behind if that fails."""
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
