"""Jobs: one computation over many ranges of the same arrays, on the current place.

``work(xp, shared, rows)`` gives named arrays for a range; it is a function of a module (or a
``partial`` of one). Processes and clusters map ``shared`` from a folder, where finished parts are
kept in the order of the ranges: after a fault the same call goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from unmask._version import __version__
from unmask.errors import InputError
from unmask.run import store
from unmask.run.executors import Lost, Place, current_place
from unmask.run.files import workplace, write_whole
from unmask.run.steps import advance
from unmask.run.store import Arrays, read_arrays, write_arrays
from unmask.run.xp import Xp

Range = tuple[int, int]
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")
Work = Callable[[Xp, S, T], Arrays]
SAVE_EVERY, PART = 5.0, 1.0
_KIND = "unmask job 1"


def ranges_of(size: int, step: int) -> list[Range]:
    """Ranges of ``step`` rows, the last one shorter."""
    return [(start, min(start + step, size)) for start in range(0, size, step)]


def run(work: Work[S, T], shared: S, ranges: Sequence[T]) -> Iterator[Arrays]:
    """Results of ``work`` on every range, in the order of the ranges.

    ``shared`` is what all ranges need: a dataclass of this package, or a tuple or mapping, of
    arrays, numbers, strings and further such values. ``ranges`` are (start, stop) of rows, or other
    tuples of integers that say what a task is.
    """
    return _Job(work, shared, ranges, current_place()).results()


def accumulate(
    work: Work[S, T],
    shared: S,
    ranges: Sequence[T],
    total: Arrays,
    add: Callable[[Arrays, Arrays, T], None],
) -> Arrays:
    """What the results of ``work`` add up to, of which only the sum is kept.

    ``add(total, result, range)`` changes the arrays of ``total`` in place, in the order of the
    ranges; ``total`` is what to begin with.
    """
    job = _Job(work, shared, ranges, current_place())
    with job.folder() as folder, ExitStack() as stack:
        ledger = Total(folder, total, job.later(stack))
        try:
            for rows, result in job.rest(ledger, folder):
                add(ledger.total, result, rows)
                ledger.add(result)
                advance(ledger.done, len(ranges))
        finally:
            ledger.save()
    return ledger.total


def kept(make: Callable[[], R]) -> R:
    """What ``make`` gives. A part of a step that took a second is kept until the step is done, and
    found after a fault: a step makes its parts in one order.
    """
    path = next(current_place().parts or iter(()), None)
    if path is None or not path.is_file():
        start = time.monotonic()
        result = make()
        if path is None or time.monotonic() - start < PART:
            return result
        write_whole(path, store.to_bytes(result), private=True)
    found: R = store.from_bytes(path.read_bytes(), str(path))
    return found


@dataclass(frozen=True, eq=False)
class _Job(Generic[S, T]):
    """One computation over many ranges, and where it runs."""

    work: Work[S, T]
    shared: S
    ranges: Sequence[T]
    place: Place

    def folder(self) -> AbstractContextManager[Path | None]:
        """Where the job keeps what is done from the start on; None in memory."""
        in_memory = self.place.here and (self.place.state is None or self.place.late)
        return nullcontext() if in_memory else self._named()

    def later(self, stack: ExitStack) -> Callable[[], Path] | None:
        """Opens the folder of a job that keeps what is done once it has taken long."""
        late = self.place.here and self.place.late
        return (lambda: stack.enter_context(self._named())) if late else None

    def _named(self) -> AbstractContextManager[Path]:
        """A folder named by all that the job works on."""
        state, function, options = self.place.state, self.work, ""
        if isinstance(function, partial):
            options = repr((function.args, sorted(function.keywords.items())))
            function = function.func
        name = f"{function.__module__}.{function.__qualname__} {options} {list(self.ranges)}"
        key = store.digest(self.shared, f"{__version__} {name}")
        return workplace(key, state and state / key)

    def results(self) -> Iterator[Arrays]:
        """Results of all ranges, those of an earlier run first."""
        with self.folder() as folder, ExitStack() as stack:
            ledger = Ledger(folder, self.later(stack))
            yield from ledger.kept()
            try:
                for _, result in self.rest(ledger, folder):
                    ledger.add(result)
                    advance(ledger.done, len(self.ranges))
                    yield result
            finally:
                ledger.save()

    def rest(self, ledger: Ledger, folder: Path | None) -> Iterator[tuple[T, Arrays]]:
        """Results that the ledger has not, with their ranges, in order."""
        left = self.ranges[ledger.done :]
        if ledger.done:
            advance(ledger.done, len(self.ranges))
        if not left:
            return
        if self.place.here or folder is None:
            call: Callable[[Xp, T], Arrays] = lambda xp, rows: self.work(xp, self.shared, rows)  # noqa: E731
        else:
            store.write_folder(folder, self.shared, "the rows to work on")
            call = partial(_mapped, self.work, str(folder))
        try:
            with self.place.executor(len(left)) as workers:
                if folder is not None:
                    workers.check_folder(folder)
                early: dict[int, Arrays] = {}
                following = 0
                for number, result in workers.each(call, left):
                    early[number] = result
                    while following in early:
                        yield left[following], early.pop(following)
                        following += 1
        except Lost as error:
            if folder is None:
                raise
            raise InputError(
                f"{error}; {ledger.done} of {len(self.ranges)} blocks are done and kept in"
                f" {folder}: the same command goes on from there"
            ) from None


_opened = lru_cache(maxsize=1)(store.read_folder)  # once per worker and job


def _mapped(work: Work[Any, T], folder: str, xp: Xp, rows: T) -> Arrays:
    return work(xp, _opened(folder), rows)


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    """What is damaged in a kept file is said in one line, and how to go on."""
    try:
        yield
    except (InputError, IndexError, TypeError, ValueError) as error:
        said = str(error).removeprefix(f"{path}: ")
        raise InputError(
            f"{path}: what an earlier run kept is damaged ({said}): delete {path.parent} to start"
            " anew"
        ) from None


class Ledger:
    """Results in the order of their ranges; those of a few seconds share a file. Without a folder
    ``later`` opens one after as long.
    """

    def __init__(self, folder: Path | None, later: Callable[[], Path] | None = None) -> None:
        self._folder, self._later = folder, later
        self._fresh: list[Arrays] = []
        self._saved = time.monotonic()
        self.done = 0

    def kept(self) -> Iterator[Arrays]:
        """What an earlier run has finished."""
        for path in sorted(self._folder.glob("results-*.npz")) if self._folder else ():
            with _whole(path):
                arrays = read_arrays(path, _KIND, ["number"])
                count = int(arrays.pop("number"))
                if not 0 < count <= len(arrays):
                    raise ValueError(f"{count} results in {len(arrays)} arrays")
                results: list[Arrays] = [{} for _ in range(count)]
                for name, array in arrays.items():
                    number, _, what = name.partition("-")
                    results[int(number)][what] = array
                if path.name != f"results-{self.done:08d}.npz":
                    raise ValueError(f"the ranges before it are missing, {self.done} are there")
            self.done += len(results)
            yield from results

    def add(self, result: Arrays) -> None:
        """The next range is done."""
        self.done += 1
        if self._folder is None and self._later is None:
            return
        self._keep(result)
        if time.monotonic() - self._saved >= SAVE_EVERY:
            self.save()

    def save(self) -> None:
        """Bring to the disk what is not there yet, whole or not at all."""
        long = time.monotonic() - self._saved >= SAVE_EVERY
        if self._folder is None and self._later is not None and self._fresh and long:
            self._folder = self._later()
        if self._folder is not None and self._folder.exists() and self._fresh:
            self._write(self._folder)
            self._fresh = []
        self._saved = time.monotonic()

    def _keep(self, result: Arrays) -> None:
        self._fresh.append(result)

    def _write(self, folder: Path) -> None:
        arrays: Arrays = {"number": np.asarray(len(self._fresh))}
        for number, result in enumerate(self._fresh):
            arrays |= {f"{number}-{name}": array for name, array in result.items()}
        first = self.done - len(self._fresh)
        write_arrays(folder / f"results-{first:08d}.npz", _KIND, arrays, private=True)


class Total(Ledger):
    """The running sum of results, and how many are in it."""

    def __init__(
        self, folder: Path | None, total: Arrays, later: Callable[[], Path] | None = None
    ) -> None:
        super().__init__(folder, later)
        self.total = total
        path = None if folder is None else folder / "total.npz"
        if path is not None and path.exists():
            with _whole(path):
                arrays = read_arrays(path, _KIND, ["done", *total])
                self.done = int(arrays.pop("done"))
                if any(arrays[name].shape != array.shape for name, array in total.items()):
                    raise ValueError("its sums have another shape")
            self.total = arrays

    def _keep(self, result: Arrays) -> None:
        self._fresh = [{}]

    def _write(self, folder: Path) -> None:
        arrays = {**self.total, "done": np.asarray(self.done)}
        write_arrays(folder / "total.npz", _KIND, arrays, private=True)
