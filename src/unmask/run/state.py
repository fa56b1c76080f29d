"""What a run leaves behind while it works, so that it can go on after a fault."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TextIO

from unmask.errors import InputError
from unmask.run.files import lock
from unmask.run.leftovers import PREFIX, clear, owned_name

KEPT = 7 * 24 * 3600.0


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
        raise InputError(
            f"{folder}: expected a folder of this user that nobody else can write, found another:"
            " what is kept there is not trusted"
        )
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
    path, handle = folder / "lock", file.fileno()
    if lock(handle) and path.exists() and path.stat().st_ino == os.fstat(handle).st_ino:
        return file
    file.close()
    return None
