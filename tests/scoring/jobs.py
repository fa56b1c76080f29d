"""Computations for the tests of jobs, in a module that other processes can import."""

from __future__ import annotations

import os
import signal
import time

import numpy as np

from unmask.run import ranges_of


def total(xp, numbers, rows):
    part = xp.put(numbers[0])[slice(*rows)]
    return {"sum": np.asarray(float(part.sum())), "first": np.asarray(rows[0])}


def times(factor, xp, numbers, rows):
    return {"sum": factor * total(xp, numbers, rows)["sum"]}


def fails_late(xp, numbers, rows):
    if rows[0] >= 60:
        raise MemoryError
    return total(xp, numbers, rows)


def dies_late(folder, xp, numbers, rows):
    """Ends its process once, the first time it gets far enough."""
    flag = os.path.join(folder, "died")
    if rows[0] >= 60 and not os.path.exists(flag):
        open(flag, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    return total(xp, numbers, rows)


def on_a_device(xp, numbers, rows):
    return {**total(xp, numbers, rows), "device": np.asarray(xp.device)}


def broken(xp, numbers, rows):
    from unmask import InputError

    raise InputError("device: on fire")


def add(total, part, rows):
    total["sum"] += part["sum"]
    total["rows"] += rows[1] - rows[0]


NUMBERS = (np.random.default_rng(0).normal(size=100),)
RANGES = ranges_of(100, 7)


def hungry_once(folder, xp, numbers, rows):
    """Takes more memory than its worker may, the first time that it gets there."""
    flag = os.path.join(folder, "starved")
    if rows[0] >= 400 and not os.path.exists(flag):
        open(flag, "w").close()
        held = np.ones(1_000_000_000 // 8)
        time.sleep(60)
        return {"sum": held[:1]}
    return total(xp, numbers, rows)


def starving(xp, numbers, rows):
    raise MemoryError
