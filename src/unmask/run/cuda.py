"""CUDA devices of this machine and one queue over them; torch is imported when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from unmask.run.job import Range

R = TypeVar("R")


def product_type() -> Any:
    """The type for products whose error must be that of single precision: torch's float32, or
    float64 where torch was told to cut the factors of float32 short (TF32).
    """
    import torch

    matmul = torch.backends.cuda.matmul
    if not hasattr(matmul, "fp32_precision"):  # torch before 2.9
        return torch.float64 if matmul.allow_tf32 else torch.float32
    told = matmul.fp32_precision
    told = torch.backends.fp32_precision if told == "none" else told
    return torch.float64 if told == "tf32" else torch.float32


def on_devices(
    opened: Callable[[str], Callable[[Range], R]],
    ranges: Sequence[Range],
    names: Sequence[str],
) -> Iterator[tuple[int, R]]:
    """Each device takes the next range when it is free; results as they arrive."""
    waiting: SimpleQueue[int] = SimpleQueue()
    for number in range(len(ranges)):
        waiting.put(number)
    results: SimpleQueue[tuple[int, R] | BaseException | None] = SimpleQueue()

    def serve(device: str) -> None:
        try:
            compute = opened(device)
            while True:
                number = waiting.get_nowait()
                results.put((number, compute(ranges[number])))
        except Empty:
            pass
        except BaseException as error:  # handed to the caller, in whose thread it is raised
            results.put(error)
        results.put(None)

    with ThreadPoolExecutor(len(names)) as pool:
        for device in names:
            pool.submit(serve, device)
        working = len(names)
        try:
            while working:
                found = results.get()
                if found is None:
                    working -= 1
                elif isinstance(found, BaseException):
                    raise found
                else:
                    yield found
        finally:
            _drain(waiting)


def _drain(waiting: SimpleQueue[int]) -> None:
    """Leave nothing for the devices to take."""
    with suppress(Empty):
        while True:
            waiting.get_nowait()
