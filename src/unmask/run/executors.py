"""Where blocks run: threads or processes of this machine, or a dask cluster.

``local`` threads, ``processes``, ``dask`` (a cluster started for the call), ``dask://HOST:PORT`` (a
scheduler that is already there), ``cuda``. A place takes a function and tasks and gives results as
they arrive; BLAS has one thread per worker everywhere, so scores have the same bits.
"""

from __future__ import annotations

import multiprocessing
import os
import re
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
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from threadpoolctl import threadpool_limits

from unmask.errors import InputError
from unmask.run.tasks import Task

R = TypeVar("R")
PLACES = "local, processes, dask, dask://HOST:PORT or cuda"


class Place(Protocol):
    """Runs a function on tasks and yields (number of the task, result) as results arrive."""

    def check_folder(self, folder: Path) -> None: ...

    def each(self, work: Callable[[Task], R], tasks: Sequence[Task]) -> Iterator[tuple[int, R]]: ...


class Pool:
    """Threads or processes of this machine."""

    def __init__(self, executor: Executor, workers: int) -> None:
        self._executor = executor
        self._ahead = workers + 1

    def check_folder(self, folder: Path) -> None:
        """Workers of this machine see all its folders."""

    def each(self, work: Callable[[Task], R], tasks: Sequence[Task]) -> Iterator[tuple[int, R]]:
        """Submit a few tasks ahead of the workers, so that no results pile up."""
        waiting = iter(enumerate(tasks))
        running: dict[Future[R], int] = {}
        try:
            while True:
                while len(running) < self._ahead and (following := next(waiting, None)) is not None:
                    running[self._executor.submit(work, following[1])] = following[0]
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    number = running.pop(future)
                    yield number, future.result()
        except BrokenProcessPool:
            raise Lost("a worker process was killed or ran out of memory") from None
        except MemoryError:
            raise Lost("a worker ran out of memory: try fewer workers") from None
        finally:
            for future in running:
                future.cancel()


class Lost(InputError):
    """The workers are gone; what they had finished is not."""


def available(workers: int | None) -> int:
    """Number of workers: as asked for, or one per processor that this process may use."""
    if workers is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if workers < 1:
        raise InputError(f"workers: expected 1 or more, found {workers}")
    return workers


def check_place(on: str, workers: int | None = None) -> None:
    """Refuse a place that does not exist, and workers that it would not use, before any work."""
    known = on in ("local", "processes", "dask", "cuda")
    if not known and not re.fullmatch(r"dask://[^/]+:\d+", on):
        raise InputError(f"on: expected {PLACES}, found {on}")
    if workers is not None and (on == "cuda" or on.startswith("dask://")):
        raise InputError(f"workers: no effect on {on}, which has workers of its own")
    available(workers)


@contextmanager
def place(on: str = "local", *, workers: int | None = None) -> Iterator[Place]:
    """Open a place to run tasks; it is closed at the end, or with :func:`kept_open`."""
    check_place(on)
    count = available(workers)
    kept = _KEPT.get()
    if kept is None or on == "local":
        with _open(on, count) as somewhere:
            yield somewhere
        return
    if (on, count) not in kept.places:
        kept.places[on, count] = kept.stack.enter_context(_open(on, count))
    yield kept.places[on, count]


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
    places: dict[tuple[str, int], Place]


_KEPT: ContextVar[_Kept | None] = ContextVar("places that are kept open", default=None)


@contextmanager
def _open(on: str, count: int) -> Iterator[Place]:
    with ExitStack() as stack:
        if on == "local":
            stack.enter_context(threadpool_limits(limits=1, user_api="blas"))
            yield Pool(stack.enter_context(ThreadPoolExecutor(count)), count)
        elif on == "processes":
            context = multiprocessing.get_context("spawn")
            pool = ProcessPoolExecutor(count, mp_context=context, initializer=pin)
            yield Pool(stack.enter_context(pool), count)
        elif on.startswith("dask"):
            from unmask.run.dask_cluster import cluster

            yield stack.enter_context(cluster(on, workers=count))
        else:
            raise InputError("on: a GPU takes whole plans and no single tasks")


def pin() -> None:
    """One BLAS thread in this process from now on, which ends with its parent."""
    threadpool_limits(limits=1, user_api="blas")
    end_with_parent()


def end_with_parent() -> None:
    """End this worker when its parent is gone; it would wait for work for ever."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
