"""Run independent tasks in several processes, in order, and end cleanly when one breaks."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from unmask.errors import InputError
from unmask.run import end_with_parent

Task = TypeVar("Task")
Result = TypeVar("Result")


def cores() -> int:
    """Processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_tasks(
    function: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    workers: int,
    prepare: Callable[..., None] | None = None,
    arguments: tuple[Any, ...] = (),
) -> Iterator[tuple[int, Result]]:
    """(position, result) of every task as it ends; one worker runs them here, in order.

    ``prepare(*arguments)`` runs once in each process first.
    """
    if workers <= 1 or len(tasks) <= 1:
        if prepare is not None and tasks:
            prepare(*arguments)
        for position, task in enumerate(tasks):
            yield position, function(task)
        return
    pool = ProcessPoolExecutor(
        min(workers, len(tasks)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_enter,
        initargs=(prepare, arguments),
    )
    try:
        futures = {pool.submit(function, task): n for n, task in enumerate(tasks)}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool:
        raise InputError(
            "a worker process ended before its work was done (out of memory?): what was finished"
            " is kept; start again, with fewer workers if need be"
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _enter(prepare: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    end_with_parent()
    if prepare is not None:
        prepare(*arguments)
