"""Jobs that name their place: one computation over many ranges of the same arrays, on any place.

Here, the tasks share the arrays in memory. Elsewhere, or where a run must survive a fault, the
arrays lie in a folder and are mapped into memory; a task carries that folder and a range, and its
result is kept in the folder as well. Results come in the order of the ranges, so that sums of real
numbers do not depend on who was first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from unmask._version import __version__
from unmask.errors import InputError
from unmask.run import job, places
from unmask.run.cuda import on_devices
from unmask.run.disk import check_room
from unmask.run.job import Range
from unmask.run.places import Lost, check_place, current_place
from unmask.run.state import unfinished, workplace
from unmask.run.store import Arrays, read_arrays, write_arrays

Progress = Callable[[int, int], None]
_KIND = "unmask result 1"


class Shared(Protocol):
    """What all tasks of a job need, as named arrays and back."""

    def arrays(self) -> Arrays: ...

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self: ...


S = TypeVar("S", bound=Shared)
OnDevice = Callable[[S, str], Callable[[Range], Arrays]]
"""Brings what is shared to a CUDA device and gives the computation over a range of it."""


@dataclass(frozen=True)
class Where:
    """A place to run on, how many workers, and a folder to go on from after a fault.

    A place that cannot be used is refused here, before any work.
    """

    on: str = "local"
    workers: int | None = None
    state: str | Path | None = None

    def __post_init__(self) -> None:
        check_place(self.on, self.workers)
        if self.on == "cuda" and current_place().on != "cuda":
            devices()

    @property
    def in_memory(self) -> bool:
        """Whether tasks share this process and nothing is kept on disk."""
        return self.on in ("local", "cuda") and self.state is None


HERE = Where()


def devices() -> list[str]:
    return list(current_place().devices) or places.devices()


@contextmanager
def by_default(where: Where) -> Iterator[None]:
    """Meanwhile jobs that name no place run there; its processes or cluster serve all of them."""
    with places.place(where.on, workers=where.workers, state=where.state), kept_open():
        yield


@contextmanager
def place(on: str = "local", *, workers: int | None = None) -> Iterator[places.Workers]:
    kept = _KEPT.get()
    if kept is None or on == "local":
        with places.place(on, workers=workers) as there, there.executor() as somewhere:
            yield somewhere
        return
    if (on, workers) not in kept.places:
        there = places.Place(on, workers, None, (), kept.stack)
        kept.places[on, workers] = kept.stack.enter_context(there.executor())
    yield kept.places[on, workers]


@contextmanager
def kept_open() -> Iterator[None]:
    """Processes and clusters that are opened meanwhile serve all jobs that follow, to the end."""
    if _KEPT.get() is not None:
        yield
        return
    with ExitStack() as stack:
        token = _KEPT.set(_Kept(stack, {}))
        try:
            yield
        finally:
            _KEPT.reset(token)


class _Kept(NamedTuple):
    stack: ExitStack
    places: dict[tuple[str, int | None], places.Workers]


_KEPT: ContextVar[_Kept | None] = ContextVar("places that are kept open", default=None)


def run(
    work: Any,
    shared: Any,
    ranges: Sequence[Any],
    *,
    where: Where | None = None,
    on_device: Any = None,
    progress: Progress | None = None,
) -> Iterator[Arrays]:
    if where is None and on_device is None:
        return job.run(work, shared, ranges)
    return _old(work, shared, ranges, where=where or HERE, on_device=on_device, progress=progress)


def _old(
    work: Callable[[S, Range], Arrays],
    shared: S,
    ranges: Sequence[Range],
    *,
    where: Where = HERE,
    on_device: OnDevice[S] | None = None,
    progress: Progress | None = None,
) -> Iterator[Arrays]:
    """Results of ``work`` on every range, in the order of the ranges.

    ``work`` is a function of a module (or a ``partial`` of one), since other processes find it by
    its name. With ``where.state`` a job that failed goes on in the same call; without, it goes on
    from the temporary files, unless all happened in memory.
    """
    if where == HERE:
        there = current_place()
        where = Where(there.on, there.workers, there.state)
    if where.on == "cuda" and on_device is None:
        raise InputError("on: expected local, processes or dask for this, found cuda")
    if where.in_memory:
        found = _in_memory(work, shared, ranges, where, on_device)
        for done, result in enumerate(_in_order(found), start=1):
            if progress is not None:
                progress(done, len(ranges))
            yield result
        return
    key = _key(work, shared, ranges)
    state = None if where.state is None else Path(where.state) / key
    with workplace(key, state) as folder:
        _put(folder, shared)
        left = [n for n in range(len(ranges)) if not result_path(folder, n).exists()]
        done = len(ranges) - len(left)
        following = 0
        for number, result in _elsewhere(work, shared, ranges, left, folder, where, on_device):
            write_arrays(result_path(folder, number), _KIND, result)
            done += 1
            if progress is not None:
                progress(done, len(ranges))
            while result_path(folder, following).exists():
                yield read_arrays(result_path(folder, following), _KIND, ())
                following += 1
        for number in range(following, len(ranges)):
            yield read_arrays(result_path(folder, number), _KIND, ())


def _in_memory(
    work: Callable[[S, Range], Arrays],
    shared: S,
    ranges: Sequence[Range],
    where: Where,
    on_device: OnDevice[S] | None,
) -> Iterator[tuple[int, Arrays]]:
    if where.on == "cuda" and on_device is not None:
        yield from on_devices(partial(on_device, shared), ranges, devices())
        return
    with place("local", workers=where.workers) as somewhere:
        tasks = [Task("", rows, (0, 0)) for rows in ranges]
        yield from somewhere.each(lambda _, task: work(shared, task.rows), tasks)


def _elsewhere(
    work: Callable[[S, Range], Arrays],
    shared: S,
    ranges: Sequence[Range],
    left: Sequence[int],
    folder: Path,
    where: Where,
    on_device: OnDevice[S] | None,
) -> Iterator[tuple[int, Arrays]]:
    """Results of the ranges that are left, as they arrive."""
    if not left:
        return
    tasks = [Task(str(folder), ranges[number], (0, 0)) for number in left]
    done = len(ranges) - len(left)
    try:
        if where.on == "cuda" and on_device is not None:
            found = on_devices(partial(on_device, shared), [t.rows for t in tasks], devices())
            for i, result in found:
                done += 1
                yield left[i], result
            return
        with place(where.on, workers=where.workers) as somewhere:
            somewhere.check_folder(folder)
            for i, result in somewhere.each(partial(_work, work, type(shared)), tasks):
                done += 1
                yield left[i], result
    except Lost as error:
        raise unfinished(error, done, len(ranges), folder) from None


def _work(work: Callable[[Any, Range], Arrays], cls: Any, _: Any, task: Task) -> Arrays:
    return work(_opened(cls, task.folder), task.rows)


@lru_cache(maxsize=1)
def _opened(cls: Any, folder: str) -> Any:
    """Map what is shared into memory, once per worker and job."""
    names = sorted(path.stem for path in Path(folder).glob("*.npy"))
    if not (Path(folder) / "complete").exists():
        raise InputError(
            f"{folder}: expected the arrays of a job, found none: they vanished, or this machine"
            " does not see them"
        )
    return cls.from_arrays({name: load(folder, name) for name in names})


def _put(folder: Path, shared: Shared) -> None:
    """Write what is shared into the folder, if an earlier run has not."""
    marker = folder / "complete"
    if marker.exists():
        return
    arrays = shared.arrays()
    check_room(folder, sum(array.nbytes for array in arrays.values()), "the rows to work on")
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)
    marker.touch()


def _key(work: Callable[..., Any], shared: Shared, ranges: Sequence[Range]) -> str:
    """Names a job: its computation, its ranges and the bytes that it works on."""
    function, options = (
        (work.func, repr((work.args, sorted(work.keywords.items()))))
        if isinstance(work, partial)
        else (work, "")
    )
    told = f"{__version__} {function.__module__}.{function.__qualname__} {options} {list(ranges)}"
    sha = hashlib.sha256(told.encode())
    for name, array in sorted(shared.arrays().items()):
        sha.update(f"{name} {array.dtype} {array.shape}".encode())
        sha.update(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
    return sha.hexdigest()[:16]


def _in_order(found: Iterator[tuple[int, Arrays]]) -> Iterator[Arrays]:
    """Hold back what comes too early."""
    early: dict[int, Arrays] = {}
    following = 0
    for number, result in found:
        early[number] = result
        while following in early:
            yield early.pop(following)
            following += 1


def result_path(folder: Path, number: int) -> Path:
    return folder / f"result-{number:06d}.npz"


def tensor(array: npt.NDArray[Any], device: str) -> Any:
    """A copy on the device; the array may be one that cannot be written to."""
    import torch

    return torch.from_numpy(np.array(array)).to(device)


def code_among(knots: Any, scores: Any) -> Any:
    """2j for a score in the gap below knot j, 2j + 1 for one that equals it; knots are distinct."""
    import torch

    below = torch.searchsorted(knots, scores)
    return 2 * below + (knots[below.clamp(max=len(knots) - 1)] == scores)


@dataclass(frozen=True)
class Task:
    folder: str
    rows: Range
    columns: Range


def load(folder: str | Path, name: str) -> npt.NDArray[Any]:
    return np.asarray(np.load(Path(folder) / f"{name}.npy", mmap_mode="r", allow_pickle=False))
