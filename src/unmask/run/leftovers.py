"""Temporary files and folders whose names tell who made them, so that those of dead runs go.

A name is ``unmask-MACHINE-PID-START-RANDOM``: what a killed run left is removed by the next run
that looks into the same folder; what a live one, another machine or another user made stays.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from unmask.errors import InputError

PREFIX = "unmask-"
_OWNED = re.compile(rf"\.?{PREFIX}([0-9a-f]{{8}})-(\d+)-(\d+)-[0-9a-f]{{16}}(?:\.\w{{1,8}})?")
_looked_into: set[tuple[int, Path]] = set()


def owned_name(suffix: str = "") -> str:
    """A new random name that tells this process; ``suffix`` is kept if it is an ordinary one."""
    pid = os.getpid()
    suffix = suffix if re.fullmatch(r"\.\w{1,8}", suffix, re.ASCII) else ""
    return f"{PREFIX}{_machine()}-{pid}-{_start(pid)}-{secrets.token_hex(8)}{suffix}"


def clear(folder: Path) -> None:
    """Remove what dead runs of this user left in a folder; a process looks into it once."""
    seen = (os.getpid(), folder)
    if seen in _looked_into:
        return
    _looked_into.add(seen)
    try:
        with os.scandir(folder) as entries:
            dead = [Path(entry.path) for entry in entries if _is_dead(entry)]
    except OSError:
        return
    for path in dead:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder among the temporary files, closed to others, for as long as the context."""
    root = Path(tempfile.gettempdir())
    clear(root)
    folder = root / owned_name()
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise InputError(f"temporary files: no folder for them ({error.strerror})") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_dead(entry: os.DirEntry[str]) -> bool:
    match = _OWNED.fullmatch(entry.name)
    if match is None or match[1] != _machine():
        return False
    if hasattr(os, "getuid") and entry.stat(follow_symlinks=False).st_uid != os.getuid():
        return False
    return not is_alive(int(match[2]), int(match[3]))


def is_alive(pid: int, start: int) -> bool:
    """Whether the process of that number is there and began at that time (0: unknown)."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return start in (0, _start(pid))


def _start(pid: int) -> int:
    """When a process began, in ticks since the machine did; 0 where the system does not tell."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return int(stat.rsplit(b")", 1)[1].split()[19])
    except (OSError, IndexError, ValueError):
        return 0


@cache
def _machine() -> str:
    """Names this start of this machine, and its space of process numbers."""
    names = [socket.gethostname()]
    with suppress(OSError):
        names.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
    with suppress(OSError):
        names.append(os.readlink("/proc/self/ns/pid"))
    return hashlib.sha256("\0".join(names).encode()).hexdigest()[:8]
