"""Computations for the tests of jobs, in a module that other processes can import."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass

import numpy as np

from unmask.run.tasks import ranges_of


@dataclass(frozen=True, eq=False)
class Numbers:
    values: np.ndarray

    def arrays(self):
        return {"values": self.values}

    @classmethod
    def from_arrays(cls, arrays):
        return cls(**arrays)


def total(numbers, rows):
    return {"sum": np.asarray(numbers.values[slice(*rows)].sum()), "first": np.asarray(rows[0])}


def times(factor, numbers, rows):
    return {"sum": np.asarray(factor * numbers.values[slice(*rows)].sum())}


def fails_late(numbers, rows):
    if rows[0] >= 60:
        raise MemoryError
    return total(numbers, rows)


def dies_late(folder, numbers, rows):
    """Ends its process once, the first time it gets far enough."""
    flag = os.path.join(folder, "died")
    if rows[0] >= 60 and not os.path.exists(flag):
        open(flag, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return total(numbers, rows)


def on_device(numbers, device):
    return lambda rows: {**total(numbers, rows), "device": np.asarray(device)}


NUMBERS = Numbers(np.random.default_rng(0).normal(size=100))
RANGES = ranges_of(100, 7)


def hungry_once(folder, numbers, rows):
    """Takes more memory than its worker may, the first time that it gets there."""
    flag = os.path.join(folder, "starved")
    if rows[0] >= 400 and not os.path.exists(flag):
        open(flag, "w").close()
        held = np.ones(1_000_000_000 // 8)
        time.sleep(60)
        return {"sum": held[:1]}
    return {"sum": numbers.values[slice(*rows)].sum(keepdims=True)}


def starving(numbers, rows):
    raise MemoryError
