"""``unmask init``: a commented config for what a folder holds."""

from __future__ import annotations

import sys
from pathlib import Path

from unmask.base import visible
from unmask.cli.options import argument, option
from unmask.errors import InputError
from unmask.report import starter_config
from unmask.run import write_whole

NAME = "assessment.toml"


def init(
    folder: Path = argument("Folder with embeddings, audio or scores."),
    output: Path | None = option("File to write.", "--output", "-o", show_default=f"FOLDER/{NAME}"),
    force: bool = option("Replace a file that is there.", default=False),
) -> None:
    """Look into a folder and write a config for unmask assess."""
    path = output or folder / NAME
    if path.exists() and not force:
        raise InputError(f"{path}: exists already; --force replaces it")
    text = starter_config(folder, base=path.resolve().parent)
    try:
        write_whole(path, text.encode())
    except UnicodeEncodeError:
        raise InputError(f"{folder}: expected file names in UTF-8, found others") from None
    sys.stdout.write(visible(f"{path}\n"))
