"""Many recordings through a network: equal lengths together, one thread on a CPU."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import numpy as np

from unmask.speech.features import Float32Array


def by_length(
    features: Sequence[Float32Array],
    forward: Callable[[Float32Array], Float32Array],
    *,
    batch: int,
) -> Float32Array:
    """Run up to ``batch`` recordings of equal length at once; vectors in the order given."""
    order = sorted(range(len(features)), key=lambda n: len(features[n]))
    vectors: dict[int, Float32Array] = {}
    for _, group in groupby(order, key=lambda n: len(features[n])):
        members = list(group)
        for start in range(0, len(members), batch):
            some = members[start : start + batch]
            found = forward(np.stack([features[n] for n in some]))
            vectors |= dict(zip(some, found, strict=True))
    return np.stack([vectors[n] for n in range(len(features))])


def batch_on(device: str) -> int:
    """Recordings at once: a GPU wants many, a processor core has no cache for more than one."""
    return 1 if device == "cpu" else 32


_THREADS = threading.Lock()


@contextmanager
def one_thread(torch: Any, device: str) -> Iterator[None]:
    """One thread on a CPU, so that the number of cores never changes the last bit of a vector."""
    if device != "cpu":
        yield
        return
    with _THREADS:
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)
