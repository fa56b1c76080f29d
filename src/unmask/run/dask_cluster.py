"""Blocks on a dask cluster: one that is started for the call, or one behind an address."""

from __future__ import annotations

import logging
import platform
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from unmask._version import __version__
from unmask.errors import InputError
from unmask.run.executors import Lost, Pool, leave_interrupts, pin
from unmask.run.xp import NUMPY, Xp

R = TypeVar("R")
T = TypeVar("T")
PATIENCE = 20.0


@contextmanager
def cluster(on: str, *, workers: int) -> Iterator[Cluster]:
    """Connect to a cluster and check that it can do the work, before any work starts."""
    try:
        import distributed
    except ImportError:
        raise InputError(
            "on: dask needs the package distributed: pip install unmask[dask]"
        ) from None
    with ExitStack() as stack:
        stack.enter_context(_silence())
        if on == "dask":
            local = distributed.LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                silence_logs=50,
            )
            address = stack.enter_context(local).scheduler_address
        else:
            address = _reachable(on)
        try:
            client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise _no_scheduler(on, error) from None

        @stack.callback
        def leave() -> None:
            """A scheduler that is gone, or in whatever state, cannot know and need not."""
            with suppress(Exception):
                client.close(timeout=2)

        connected = Cluster(client, on)
        connected.check()
        if on == "dask":
            client.run(leave_interrupts)
        yield connected


def _reachable(on: str) -> str:
    """Address of a scheduler for dask, once something answers there."""
    host, _, port = on.removeprefix("dask://").rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise _no_scheduler(on, error) from None
    return f"tcp://{host}:{port}"


def _no_scheduler(on: str, error: Exception) -> InputError:
    return InputError(on, "a dask scheduler", f"none ({_first_line(error)})")


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


@contextmanager
def _silence() -> Iterator[None]:
    """No log lines of the client: what goes wrong is said in one line of our own."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


class Cluster(Pool):
    """A place whose workers are somewhere else and may disappear."""

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self._name = name

    def check(self) -> None:
        """Workers are there and run the same versions."""
        try:
            self._client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise InputError(f"{self._name}: expected workers, the scheduler has none") from None
        try:
            installed = self._client.run(versions)
        except ImportError as error:
            wanted = f"unmask {__version__} on all workers"
            raise InputError(self._name, wanted, f"one without it ({error})") from None
        for worker, there in sorted(installed.items()):
            if there != versions():
                raise InputError(self._name, f"{versions()} on all workers", f"{there} on {worker}")

    def check_folder(self, folder: Path) -> None:
        """All workers see the folder of the plan."""
        for worker, there in sorted(
            self._guarded(self._client.run, sees, str(folder), on_error="ignore").items()
        ):
            if not there:
                raise InputError(
                    f"{self._name}: expected {folder} on all workers, {worker} does not see it: "
                    "choose a folder on a shared disk (state)"
                )

    def each(self, call: Callable[[Xp, T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
        """Keep a few tasks per worker in flight; a lost worker's tasks run again elsewhere."""
        from distributed import wait

        waiting = iter(enumerate(tasks))
        running: dict[Any, int] = {}
        ahead = 2 * max(1, sum(self._client.nthreads().values()))
        alive = time.monotonic()
        while True:
            for number, task in islice(waiting, ahead - len(running)):
                future = self._guarded(self._client.submit, pinned, call, task, pure=False)
                running[future] = number
            if not running:
                return
            try:
                with self._client.as_current():
                    done = wait(list(running), timeout=1, return_when="FIRST_COMPLETED").done
                alive = time.monotonic()
            except TimeoutError:
                done = set()
            except Exception as error:
                raise self._lost(error) from None
            if not done and self._answers():
                alive = time.monotonic()
            if time.monotonic() - alive > PATIENCE:
                raise Lost(f"{self._name}: the scheduler or all its workers disappeared")
            for future in done:
                yield running.pop(future), self._guarded(future.result)

    def _answers(self) -> bool:
        if self._client.status != "running":
            return False
        try:
            return bool(self._client.scheduler_info()["workers"])
        except Exception:  # any failure to answer is the answer
            return False

    def _guarded(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        try:
            return call(*arguments, **options)
        except InputError:
            raise
        except Exception as error:
            raise self._lost(error) from None

    def _lost(self, error: BaseException) -> Lost:
        from distributed import KilledWorker

        if isinstance(error, KilledWorker):
            return Lost(f"{self._name}: a block was lost with its worker again and again")
        if isinstance(error, MemoryError):
            return Lost(f"{self._name}: a worker ran out of memory")
        cut_off = type(error).__name__.endswith(("CancelledError", "CommClosedError"))
        if cut_off or self._client.status != "running":
            return Lost(f"{self._name}: the scheduler disappeared")
        return Lost(f"{self._name}: a worker failed: {_first_line(error)}")


def pinned(call: Callable[[Xp, T], R], task: T) -> R:
    """Run a task with one BLAS thread."""
    pin()
    return call(NUMPY, task)


def sees(folder: str) -> bool:
    """Whether a worker sees a folder."""
    return Path(folder).is_dir()


def versions() -> str:
    """What must be the same everywhere for the same bits."""
    python = ".".join(platform.python_version_tuple()[:2])
    return f"unmask {__version__}, numpy {np.__version__}, python {python}"
