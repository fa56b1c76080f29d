"""Whole files or none."""

from __future__ import annotations

import os
from pathlib import Path

from unmask.errors import InputError


def write_whole(target: Path, content: bytes) -> None:
    """Write to a temporary name beside the target, bring it to the disk, then rename it."""
    partial = target.with_name(f".{target.name}.part")
    try:
        with open(partial, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise InputError(f"{target}: could not be written: {error.strerror}") from None
