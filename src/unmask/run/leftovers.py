"""What a run leaves behind, under names that tell who made it, ``unmask-MACHINE-PID-START-RANDOM``:
the next run that looks into a folder removes what dead runs of this machine and user left there;
and what is kept so that a run can go on after a fault.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import TextIO

from unmask.errors import InputError

PREFIX = "unmask-"
KEPT = 7 * 24 * 3600.0
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


def lock(handle: int) -> bool:
    """Lock an open file until it is closed; false where another process has it locked."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # no locks on this system or in this folder
        pass
    return True


@contextmanager
def workplace(key: str, state: str | Path | None) -> Iterator[Path]:
    """A folder for one plan, which ``key`` names, and for one run at a time.

    Without ``state`` it lies among the temporary files under a name made of the key: a run that
    failed leaves it there and the next one finds it, a run that succeeded removes it. A second run
    of the same plan at the same time gets a folder of its own, and so does a run that finds one of
    another user or one that others could write.
    """
    root = Path(tempfile.gettempdir())
    folder = Path(state) if state else root / f"{PREFIX}{_user()}-{key}"
    own = is_own(folder)
    if state and not own:
        wanted = "a folder of this user that nobody else can write"
        raise InputError(folder, wanted, "another: what is kept there is not trusted")
    if not state:
        _forget_old(root)
    claimed = _claim(folder) if own else None
    if claimed is None and state:
        raise InputError(f"{folder}: another run is at work there")
    if claimed is None:
        folder = root / owned_name()
        claimed = _claim(folder)
    with claimed or nullcontext():
        try:
            yield folder
        except BaseException:
            if not state and not any(folder.rglob("*.npz")):
                shutil.rmtree(folder, ignore_errors=True)
            raise
        if not state:
            shutil.rmtree(folder, ignore_errors=True)


def is_own(folder: Path) -> bool:
    """Whether a folder is absent, or this user's and such that nobody else can write it."""
    try:
        there = folder.lstat()
    except FileNotFoundError:
        return True
    except OSError as error:
        raise InputError(f"{folder}: cannot be used ({error.strerror})") from None
    mine = not hasattr(os, "getuid") or there.st_uid == os.getuid()
    return stat.S_ISDIR(there.st_mode) and mine and not there.st_mode & 0o022


def _forget_old(root: Path) -> None:
    """Remove what dead runs left, and what failed runs kept but nobody came back for in a week."""
    clear(root)
    for folder in root.glob(f"{PREFIX}{_user()}-{'[0-9a-f]' * 16}"):
        with suppress(OSError):
            age = time.time() - max(path.lstat().st_mtime for path in (folder, folder / "lock"))
            if age > KEPT and is_own(folder) and (claimed := _claim(folder)) is not None:
                with claimed:
                    shutil.rmtree(folder, ignore_errors=True)


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else "user"


def _claim(folder: Path) -> TextIO | None:
    """Make a folder and lock it; ``None`` if another run has it, or is removing it just now."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = open(folder / "lock", "w", encoding="utf-8")  # noqa: SIM115 - held by the caller
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{folder}: cannot be used ({error.strerror})") from None
    path, handle = folder / "lock", file.fileno()
    if lock(handle) and path.exists() and path.stat().st_ino == os.fstat(handle).st_ino:
        return file
    file.close()
    return None
