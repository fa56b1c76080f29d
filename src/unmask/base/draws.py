"""The one speaker bootstrap: who is drawn in replicate i of a seed, for every number of a report.

Speakers are drawn with replacement, as many as there are; m_k is how often speaker k was drawn. A
number that is a mean over speakers weighs speaker k by m_k, a trial of two speakers a and b weighs
m_a·m_b, a trial within one speaker m_a.

The contract, which every room keeps:

- Replicate ``index`` of ``seed`` has a generator of its own, the child ``index`` of the seed
  (:func:`generator`). What it draws depends neither on how many replicates there are nor on where,
  in what order or together with what they are drawn.
- Units are numbers from 0 on. Two numbers about the same people draw the same people if both count
  them in the same order, which is that of their names (:func:`in_order` gives the number of each).
  So the rows of a file may come in any order, and the EER, a similarity and a risk of one report
  rest on the same resamples.
- Nothing else is taken from these generators: what needs other random numbers takes another seed.

``draw`` gives the m_k of one replicate, ``draws`` those of all of them (replicates × units), and
``chosen`` the units themselves, for statistics that cannot be weighted.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from unmask.base.arrays import FloatArray, IntArray
from unmask.errors import InputError


def generator(seed: int, index: int) -> np.random.Generator:
    """Random numbers of replicate ``index`` of ``seed``, wherever and whenever it is drawn."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index,)))


def chosen(count: int, seed: int, index: int) -> IntArray:
    """The ``count`` units of replicate ``index`` of ``seed``, drawn from ``count`` units."""
    return generator(seed, index).integers(0, count, count)


def draw(sizes: int | Sequence[int], seed: int, index: int) -> FloatArray:
    """How often each unit is drawn in replicate ``index`` of ``seed``.

    ``sizes`` is the number of units, or that of every stratum: strata are drawn from one after the
    other, and each keeps its size.
    """
    random = generator(seed, index)
    strata = (sizes,) if isinstance(sizes, (int, np.integer)) else sizes
    times = [np.bincount(random.integers(0, n, n), minlength=n) for n in strata]
    return np.concatenate(times).astype(np.float64)


def draws(sizes: int | Sequence[int], replicates: int, seed: int, *, first: int = 0) -> FloatArray:
    """How often each unit (column) is drawn in ``replicates`` replicates of ``seed`` (rows).

    ``sizes`` are those of :func:`draw`; the first row is replicate ``first``.
    """
    if replicates < 0:
        raise InputError(f"bootstrap: expected a number of replicates, found {replicates}")
    units = int(np.sum(sizes))
    times = np.empty((replicates, units))
    for row in range(replicates):
        times[row] = draw(sizes, seed, first + row)
    return times


def in_order(names: Sequence[str]) -> IntArray:
    """The number of each of these distinct names in the order of all of them."""
    number = np.empty(len(names), np.int64)
    number[sorted(range(len(names)), key=lambda k: names[k])] = np.arange(len(names))
    return number


def weighted_means(values: npt.ArrayLike, times: FloatArray) -> FloatArray:
    """Mean over the units of every resample (row of ``times``): Σ m_k·v_k / Σ m_k.

    ``values`` has a row for each unit and any further axes, which stay behind that of resamples.
    """
    rows = np.asarray(values, dtype=np.float64)
    total = times.sum(axis=1).reshape(-1, *[1] * (rows.ndim - 1))
    return np.asarray(np.tensordot(times, rows, axes=1) / total)
