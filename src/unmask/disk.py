"""Room on a disk, asked for before anything is written, and the folder for what is kept."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from unmask.errors import InputError


def check_room(folder: Path, needed: int, what: str, *, named: Path | None = None) -> None:
    """Refuse what the disk of a folder has no room for; ``named`` is told in its place."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise InputError(
            f"{named or folder}: expected {needed / 1e9:.2f} GB of free disk for {what}, "
            f"found {free / 1e9:.2f} GB; state or the variable TMPDIR names another folder"
        )


def cache_directory() -> Path:
    """``UNMASK_CACHE``, or ``unmask`` in ``XDG_CACHE_HOME`` or in the user's ``.cache``."""
    own = os.environ.get("UNMASK_CACHE")
    if own:
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "unmask"
