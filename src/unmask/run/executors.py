"""Where work runs: threads or processes of this machine, a dask cluster, CUDA devices.

A pool takes a function and tasks and gives results as they arrive; BLAS has one thread per worker
everywhere, so scores have the same bits.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import Context, ContextVar
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count, islice
from pathlib import Path
from queue import SimpleQueue
from types import FrameType
from typing import Any, TypeVar

from unmask.errors import InputError
from unmask.run.xp import NUMPY, Torch, Xp

R = TypeVar("R")
T = TypeVar("T")
PLACES = "local, processes, dask, dask://HOST:PORT or cuda"


class Lost(InputError):
    """The workers are gone; what they had finished is not."""


@dataclass(frozen=True)
class Place:
    """Where jobs run, and a folder to go on from after a fault; :func:`run_on` makes it. One that
    cannot be used is refused here, before any work. ``late``: jobs of this process keep nothing
    before they have taken some seconds, and look for nothing that is kept. ``parts`` are where a
    step keeps its own (:func:`unmask.run.kept`).
    """

    on: str = "local"
    workers: int | None = None
    state: Path | None = None
    devices: tuple[str, ...] = ()
    stack: ExitStack | None = field(default=None, repr=False, compare=False)
    opened: list[Pool] = field(default_factory=list, repr=False, compare=False)
    late: bool = False
    parts: Iterator[Path] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        known = self.on in ("local", "processes", "dask", "cuda")
        if not known and not re.fullmatch(r"dask://[^/]+:\d+", self.on):
            raise InputError("on", PLACES, self.on)
        if self.workers is not None and (self.on == "cuda" or self.on.startswith("dask://")):
            raise InputError(f"workers: no effect on {self.on}, which has workers of its own")
        available(self.workers)
        if self.on == "cuda" and not self.devices:
            object.__setattr__(self, "devices", tuple(devices()))

    @property
    def here(self) -> bool:
        """Whether workers share the memory of this process."""
        return self.on in ("local", "cuda")

    @contextmanager
    def executor(self, tasks: int = sys.maxsize) -> Iterator[Pool]:
        """Workers: threads for so many ``tasks``, all others to the end of the place."""
        if self.opened:
            yield self.opened[0]
        elif self.here or self.stack is None:
            with self._open(tasks) as workers:
                yield workers
        else:
            self.opened.append(self.stack.enter_context(self._open(tasks)))
            yield self.opened[0]

    @contextmanager
    def _open(self, tasks: int) -> Iterator[Pool]:
        count = available(self.workers)
        with ExitStack() as stack:
            if self.on == "cuda":
                pool = ThreadPoolExecutor(len(self.devices))
                yield Devices(stack.enter_context(pool), self.devices)
            elif self.on == "local":
                stack.enter_context(one_blas_thread())
                count = min(count, tasks)
                threads = ThreadPoolExecutor(count) if count > 1 else _Caller()
                yield Pool(stack.enter_context(threads), count if count > 1 else 0)
            elif self.on == "processes":
                yield stack.enter_context(_processes(count, self.devices))
            else:
                from unmask.run.dask_cluster import cluster

                yield stack.enter_context(cluster(self.on, workers=count))


_CURRENT: ContextVar[Place | None] = ContextVar("where jobs run", default=None)


@contextmanager
def run_on(
    on: str = "local",
    *,
    workers: int | None = None,
    state: str | Path | None = None,
    devices: Sequence[str] = (),
) -> Iterator[Place]:
    """Meanwhile all jobs run there; its processes or its cluster serve all of them.

    Numbers have the same bits wherever they are computed.

    Parameters
    ----------
    on : str
        ``local``, ``processes``, ``dask``, ``dask://HOST:PORT`` or ``cuda``.
    workers : int, optional
        Threads, processes or dask workers; one per processor unless given.
    state : path, optional
        Folder in which jobs keep what is done: the same call goes on from there after a fault.
    devices : sequence of str, optional
        Devices of torch for ``cuda``; all of this machine unless given. For ``processes``, one
        of each.

    Yields
    ------
    Place
        Where jobs run.

    Examples
    --------
    >>> import unmask as um
    >>> with um.run_on("local", workers=2) as place:
    ...     place.workers
    2
    """
    with ExitStack() as stack:
        kept = None if state is None else Path(state)
        with within(Place(on, workers, kept, tuple(devices), stack)) as here:
            yield here


@contextmanager
def within(place: Place) -> Iterator[Place]:
    """Meanwhile all jobs run on a place that is open."""
    token = _CURRENT.set(place)
    try:
        yield place
    finally:
        _CURRENT.reset(token)


def keeping(folder: Path) -> AbstractContextManager[Place]:
    """Meanwhile jobs run where they would, and keep what is done in a folder."""
    return within(replace(current_place(), state=folder, late=False))


def in_parts(folder: Path) -> AbstractContextManager[Place]:
    """Meanwhile a step keeps its parts in a folder of its own, and so do its jobs that take some
    seconds, unless they keep what is done elsewhere or run in other processes.
    """
    place = replace(current_place(), parts=(folder / f"part-{n}.npz" for n in count()))
    if place.here and place.state is None:
        begun = any(path.is_dir() for path in folder.iterdir())
        place = replace(place, state=folder, late=not begun)
    return within(place)


def current_place() -> Place:
    """The place that the innermost :func:`run_on` names, or threads of this process."""
    return _CURRENT.get() or Place()


def available(workers: int | None) -> int:
    """Number of workers: as asked for, or one per processor that this process may use."""
    if workers is None:
        may_use = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))
        return len(may_use(0))
    if workers < 1:
        raise InputError("workers", "1 or more", workers)
    return workers


def devices() -> list[str]:
    """CUDA devices that can count; none is an error, before any work."""
    try:
        import torch
    except ImportError:
        raise InputError("on: no CUDA device can be used, torch is not installed") from None
    if not torch.cuda.is_available():
        raise InputError(f"on: no CUDA device found by torch {torch.__version__}")
    return [f"cuda:{number}" for number in range(torch.cuda.device_count())]


class Pool:
    """Threads or processes of this machine, or whatever else runs tasks."""

    def __init__(self, executor: Executor, workers: int) -> None:
        self._executor = executor
        self._ahead = workers + 1

    def check_folder(self, folder: Path) -> None:
        """Refuse a folder that workers do not see; those of this machine see all of them."""

    def _submit(self, call: Callable[[Xp, T], R], task: T) -> Future[R]:
        return self._executor.submit(call, NUMPY, task)

    def each(self, call: Callable[[Xp, T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
        """Call ``call(xp, task)``, a few tasks ahead; yield (number, result) as results arrive."""
        waiting = iter(enumerate(tasks))
        running: dict[Future[R], int] = {}
        try:
            while True:
                for number, task in islice(waiting, self._ahead - len(running)):
                    running[self._submit(call, task)] = number
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        except BrokenProcessPool:
            raise Lost("a worker process was killed or ran out of memory") from None
        except MemoryError:
            raise Lost("a worker ran out of memory: try fewer workers") from None
        finally:
            for future in running:
                future.cancel()


class _Caller(Executor):
    """Who asks does the work, in a context as new as a thread's: where it is one task, a thread
    would cost more than it gives.
    """

    def submit(self, call: Callable[..., R], /, *given: Any, **named: Any) -> Future[R]:
        future: Future[R] = Future()
        try:
            future.set_result(Context().run(call, *given, **named))
        except Exception as error:
            future.set_exception(error)
        return future


class Processes(Pool):
    """Processes of this machine, which leave Ctrl-C to the one that started them."""

    def _submit(self, call: Callable[[Xp, T], R], task: T) -> Future[R]:
        with _interrupts_blocked():
            return self._executor.submit(_unless_ended, call, task)


@contextmanager
def _processes(count: int, devices: Sequence[str]) -> Iterator[Processes]:
    """Workers that end at once when the work is interrupted; one for each of the ``devices``."""
    context = multiprocessing.get_context("spawn")
    count, names = len(devices) or count, context.SimpleQueue()
    for name in devices:
        names.put(name)
    with ProcessPoolExecutor(
        count, context, initializer=_serve, initargs=(names if devices else None,)
    ) as pool:
        try:
            yield Processes(pool, count)
        except Exception:
            raise
        except BaseException:
            for process in list((pool._processes or {}).values()):
                process.terminate()
            raise


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """A process that starts meanwhile is not interrupted while it loads; this one is afterwards."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Devices(Pool):
    """Devices of torch, each with a thread that takes the next task when the device is free."""

    def __init__(self, executor: Executor, names: Sequence[str]) -> None:
        super().__init__(executor, 2 * len(names))
        self._free: SimpleQueue[Torch] = SimpleQueue()
        for name in names:
            self._free.put(Torch(name))

    def _submit(self, call: Callable[[Xp, T], R], task: T) -> Future[R]:
        return self._executor.submit(self._on_device, call, task)

    def _on_device(self, call: Callable[[Xp, T], R], task: T) -> R:
        xp = self._free.get()
        try:
            with xp.active():
                return call(xp, task)
        finally:
            self._free.put(xp)


@contextmanager
def beside(count: int, call: Callable[..., None], *given: Any) -> Iterator[list[Any]]:
    """Meanwhile ``call(number, *given)`` runs in ``count`` other processes, numbered from 1. They
    end with the block, and so do what they have started.
    """
    context = multiprocessing.get_context("spawn")
    every = range(1, count + 1)
    others = [context.Process(target=_beside, args=(call, number, *given)) for number in every]
    with _interrupts_blocked():
        for process in others:
            process.start()
    try:
        yield others
    finally:
        for process in others:
            process.terminate()
        for process in others:
            process.join()


def _beside(call: Callable[..., None], *given: Any) -> None:
    global _working
    _serve(None)
    try:
        _working = True
        call(*given)
    except (_Ended, InputError):
        os._exit(1)


def one_blas_thread() -> AbstractContextManager[Any]:
    """One thread of BLAS until it is closed; without threadpoolctl, as many as BLAS likes."""
    known = [name in sys.modules for name in ("numpy", "scipy.linalg", "torch")]
    libraries = _libraries(*known)
    return nullcontext() if libraries is None else libraries.limit(limits=1, user_api="blas")


@cache
def _libraries(*known: bool) -> Any:
    """The libraries of BLAS, looked up, which takes long, once for each set of modules with one."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()


def pin() -> None:
    """One BLAS thread in this process from now on, which ends with its parent."""
    one_blas_thread()
    end_with_parent()


def _serve(devices: Any) -> None:
    """A worker process: Ctrl-C is for its parent; it takes one of the devices, if there are any."""
    global _xp
    pin()
    _xp = NUMPY if devices is None else Torch(devices.get())
    signal.signal(signal.SIGTERM, _leave)
    leave_interrupts()


def leave_interrupts() -> None:
    """Ctrl-C is for the parent of this process."""
    signal.signal(signal.SIGINT, _pass)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _pass(number: int, frame: FrameType | None) -> None:
    """Unlike a signal that is ignored, one that is handled is not ignored by other programs."""


class _Ended(BaseException):
    """This worker must end."""


_working = False
_xp: Xp = NUMPY
_TIDYING = 5.0


def _leave(number: int, frame: FrameType | None) -> None:
    """End; a task has some seconds to tidy up."""
    if not _working:
        os._exit(1)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    limit = threading.Timer(_TIDYING, os._exit, [1])
    limit.daemon = True
    limit.start()
    raise _Ended


def _unless_ended(call: Callable[[Xp, T], R], task: T) -> R:
    """Programs that a task has started end with it, and its temporary files go."""
    global _working
    try:
        try:
            _working = True
            return call(_xp, task)
        finally:
            _working = False
    except _Ended:
        os._exit(1)


def end_with_parent() -> None:
    """End this worker when its parent is gone; it would wait for work for ever."""
    parent: Any = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
