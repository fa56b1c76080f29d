"""What a run leaves behind while it works, so that it can go on after a fault."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unmask.errors import InputError
from unmask.scoring.counting import Tally, TargetScores
from unmask.scoring.store import Arrays, write_arrays

SAVE_EVERY = 5.0


@contextmanager
def workplace(key: str, state: str | Path | None) -> Iterator[Path]:
    """A folder for one plan, which ``key`` names.

    Without ``state`` it lies among the temporary files under a name made of the key: a run that
    failed leaves it there and the next one finds it, a run that succeeded removes it.
    """
    folder = Path(state) if state else Path(tempfile.gettempdir()) / f"unmask-{_user()}-{key}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made ({error.strerror})") from None
    named = folder / "key"
    if named.exists():
        if named.read_text(encoding="utf-8") != key:
            raise InputError(f"{folder}: expected the state of this plan, found that of another")
    elif any(path.name != "lock" for path in folder.iterdir()):
        raise InputError(f"{folder}: expected an empty folder or the state of a run, found neither")
    with _lock(folder):
        named.write_text(key, encoding="utf-8")
        try:
            yield folder
        except BaseException:
            if not state and not (folder / "ledger.npz").exists():
                shutil.rmtree(folder, ignore_errors=True)
            raise
        if not state:
            shutil.rmtree(folder, ignore_errors=True)


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else "user"


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """One run at a time in a folder, where the system has locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with open(folder / "lock", "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{folder}: another run is at work there") from None
        except OSError:  # a file system without locks
            pass
        yield


class Ledger:
    """Which blocks are done and what they add up to; kept on disk every few seconds."""

    def __init__(self, folder: Path, tasks: int, knots: int, *, block: int) -> None:
        self._path = folder / "ledger.npz"
        self._block = block
        self._saved = time.monotonic()
        self.done = np.zeros(tasks, bool)
        self.tally = Tally.empty(knots)
        if self._path.exists():
            self._load()

    @property
    def left(self) -> npt.NDArray[np.intp]:
        """Numbers of the tasks that are still to be done."""
        return np.flatnonzero(~self.done)

    def add(self, number: int, tally: Tally) -> None:
        """Note a finished task."""
        self.tally.below[:] += tally.below
        self.tally.equal[:] += tally.equal
        self.tally = Tally(
            self.tally.below,
            self.tally.equal,
            self.tally.total + tally.total,
            self.tally.loss + tally.loss,
        )
        self.done[number] = True
        if time.monotonic() - self._saved > SAVE_EVERY:
            self.save()

    def save(self) -> None:
        """Write the state, whole or not at all."""
        tally = self.tally
        arrays: Arrays = {
            "done": self.done,
            "block": np.asarray(self._block),
            "below": tally.below,
            "equal": tally.equal,
            "total": np.asarray(tally.total),
            "loss": np.asarray(str(tally.loss)),
        }
        write_arrays(self._path, "unmask ledger 1", arrays)
        self._saved = time.monotonic()

    def _load(self) -> None:
        with np.load(self._path, allow_pickle=False) as file:
            fits = int(file["block"]) == self._block and file["done"].shape == self.done.shape
            if fits and file["below"].shape == self.tally.below.shape:
                self.done = file["done"]
                self.tally = Tally(
                    file["below"], file["equal"], int(file["total"]), int(str(file["loss"]))
                )


def keep_targets(folder: Path, found: TargetScores) -> None:
    """Write the target scores once they are all known."""
    arrays: Arrays = {"scores": found.scores, "counts": found.counts}
    write_arrays(folder / "targets.npz", "unmask targets 1", arrays)


def kept_targets(folder: Path) -> TargetScores | None:
    """Target scores of an earlier run."""
    path = folder / "targets.npz"
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as file:
        return TargetScores(file["scores"], file["counts"])
