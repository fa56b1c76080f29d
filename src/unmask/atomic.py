"""Writing so that a file is there whole or not at all."""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from unmask.errors import InputError


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside ``path`` that takes its name when all went well."""
    if str(path) == "-":
        raise InputError("expected a file to write, found standard output, which takes text only")
    final = Path(path)
    if not final.parent.is_dir():
        raise InputError(f"{path}: expected an existing folder, found none at {final.parent}")
    try:
        with tempfile.TemporaryDirectory(prefix=f".{final.name}.", dir=final.parent) as folder:
            temporary = Path(folder) / final.name
            yield temporary
            os.replace(temporary, final)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from error


@contextmanager
def atomic_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for writing, compressed if its name ends in ``.gz``; ``-`` is standard output."""
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with atomic_path(path) as temporary, open(temporary, "wb") as file:
        if Path(path).suffix.lower() == ".gz":
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                yield cast("BinaryIO", packed)
        else:
            yield file


def write_whole(path: str | Path, content: bytes) -> None:
    """Write to a temporary name beside the file, bring it to the disk, then rename it."""
    final = Path(path)
    partial = final.with_name(f".{final.name}.part")
    try:
        with open(partial, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(final)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise InputError(f"{path}: could not be written: {error.strerror}") from None
