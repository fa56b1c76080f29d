"""What a run leaves behind while it works, so that it can go on after a fault."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TextIO

import numpy as np
import numpy.typing as npt

from unmask.errors import InputError
from unmask.run.files import write_whole
from unmask.run.store import Arrays, write_arrays

SAVE_EVERY = 5.0


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
        _mark(folder, key)
        try:
            yield folder
        except BaseException:
            if not state and not any(folder.glob("*.npz")):
                shutil.rmtree(folder, ignore_errors=True)
            raise
        if not state:
            shutil.rmtree(folder, ignore_errors=True)


def _mark(folder: Path, key: str) -> None:
    """Write the key into a folder that is empty or has it already."""
    named = folder / "key"
    if named.exists():
        if named.read_text(encoding="utf-8") != key:
            raise InputError(f"{folder}: expected the state of this plan, found that of another")
    elif any(p.name != "lock" and not p.name.endswith(".part") for p in folder.iterdir()):
        raise InputError(f"{folder}: expected an empty folder or the state of a run, found neither")
    else:
        write_whole(named, key.encode())


def _is_own(folder: Path) -> bool:
    """Whether a folder among the temporary files is absent, or this user's and closed to others."""
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return True
    mine = not hasattr(os, "getuid") or found.st_uid == os.getuid()
    return stat.S_ISDIR(found.st_mode) and mine and not found.st_mode & 0o077


def unfinished(error: Exception, done: int, tasks: int, folder: Path) -> InputError:
    """What to say where workers were lost and the state is kept."""
    return InputError(
        f"{error}; {done} of {tasks} blocks are done and kept in {folder}: "
        "the same command goes on from there"
    )


def result_path(folder: Path, number: int) -> Path:
    """File of a finished task."""
    return folder / f"result-{number:06d}.npz"


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


class Ledger(ABC):
    """Which blocks are done and what they add up to; kept on disk every few seconds.

    ``mark`` says what the sums belong to: a ledger with another mark is not gone on from.
    """

    def __init__(self, path: Path, tasks: int, mark: Arrays) -> None:
        self._path = path
        self._mark = mark
        self._saved = time.monotonic()
        self.done = np.zeros(tasks, bool)

    @property
    def left(self) -> npt.NDArray[np.intp]:
        """Numbers of the tasks that are still to be done."""
        return np.flatnonzero(~self.done)

    @abstractmethod
    def sums(self) -> Arrays:
        """What is to be kept."""

    def note(self, number: int) -> None:
        """A task is done and added."""
        self.done[number] = True
        if time.monotonic() - self._saved > SAVE_EVERY:
            self.save()

    def save(self) -> None:
        """Write the state, whole or not at all."""
        arrays: Arrays = {"done": self.done, **self._mark, **self.sums()}
        write_arrays(self._path, "unmask ledger 1", arrays)
        self._saved = time.monotonic()

    def kept(self) -> Arrays | None:
        """What an earlier run wrote, if it belongs to the same tasks."""
        if not self._path.exists():
            return None
        with np.load(self._path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        same = all(np.array_equal(arrays[name], value) for name, value in self._mark.items())
        if not same or arrays["done"].shape != self.done.shape:
            return None
        self.done = arrays["done"]
        return arrays
