"""What a run leaves behind while it works, so that it can go on after a fault."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TextIO

from unmask.errors import InputError


@contextmanager
def workplace(key: str, state: str | Path | None) -> Iterator[Path]:
    """A folder for one plan, which ``key`` names, and for one run at a time.

    Without ``state`` it lies among the temporary files under a name made of the key: a run that
    failed leaves it there and the next one finds it, a run that succeeded removes it. A second run
    of the same plan at the same time gets a folder of its own, and so does a run that finds one of
    another user or one that others could write.
    """
    folder = Path(state) if state else Path(tempfile.gettempdir()) / f"unmask-{_user()}-{key}"
    claimed = _claim(folder) if state or _is_own(folder) else None
    if claimed is None and state:
        raise InputError(f"{folder}: another run is at work there")
    if claimed is None:
        folder = Path(tempfile.mkdtemp(prefix=f"unmask-{_user()}-"))
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


def _is_own(folder: Path) -> bool:
    """Whether a folder among the temporary files is absent, or this user's and closed to others."""
    try:
        there = folder.lstat()
    except FileNotFoundError:
        return True
    mine = not hasattr(os, "getuid") or there.st_uid == os.getuid()
    return stat.S_ISDIR(there.st_mode) and mine and not there.st_mode & 0o077


def unfinished(error: Exception, done: int, tasks: int, folder: Path) -> InputError:
    """What to say where workers were lost and the state is kept."""
    return InputError(
        f"{error}; {done} of {tasks} blocks are done and kept in {folder}: "
        "the same command goes on from there"
    )


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
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    except (ImportError, OSError):  # no locks on this system or in this folder
        return file
    path = folder / "lock"
    if not path.exists() or path.stat().st_ino != os.fstat(file.fileno()).st_ino:
        file.close()
        return None
    return file
