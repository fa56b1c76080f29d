"""Room on a disk and in memory, asked for before it is taken; the folder for what is kept."""

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


def memory_left() -> int:
    """Bytes of memory that this process may still take, as far as the system tells."""
    left = 1 << 62
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
        left = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
            left = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        import resource
    except ImportError:
        return left
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return left if limit == resource.RLIM_INFINITY else min(left, limit)


def check_memory(needed: int, name: str, what: str) -> None:
    """Refuse what memory cannot hold twice, before any of it is taken."""
    left = memory_left()
    if 2 * needed > left:
        raise InputError(
            f"{name}: expected at most {left / 2e9:.1f} GB of {what}, half of the free memory,"
            f" found {needed / 1e9:.1f} GB"
        )


def cache_directory() -> Path:
    """``UNMASK_CACHE``, or ``unmask`` in ``XDG_CACHE_HOME`` or in the user's ``.cache``."""
    own = os.environ.get("UNMASK_CACHE")
    if own:
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "unmask"
