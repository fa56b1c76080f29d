"""The one speaker bootstrap: who is drawn in replicate i of a seed, for every number of a report.

Speakers are drawn with replacement, as many as there are; m_k is how often speaker k was drawn.
Every room keeps the contract:

- Replicate ``index`` of ``seed`` has a generator of its own (:func:`generator`), from which nothing
  else is taken: neither the number nor the place nor the order of replicates matters.
- Units are numbers from 0 on, in the order of their names (:func:`in_order`): the EER, a similarity
  and a risk of one report rest on the same resamples, in whatever order files have their rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base.arrays import FloatArray, IntArray, read_only
from unmask.base.intervals import MetricRange, Side, bias_corrected
from unmask.errors import InputError
from unmask.estimate import Interval

MOST_REPLICATES = 1_000_000
_FEW = 1 << 20


def check_replicates(replicates: int, *, least: int = 2) -> None:
    """Refuse fewer replicates than an interval takes, and more than memory does."""
    if replicates < least:
        raise InputError("bootstrap", f"at least {least} replicates", replicates)
    if replicates > MOST_REPLICATES:
        raise InputError("bootstrap", f"at most {MOST_REPLICATES} replicates", replicates)


def generator(seed: int, index: int) -> np.random.Generator:
    """Random numbers of replicate ``index`` of ``seed``, wherever and whenever it is drawn."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index,)))


def draw(sizes: int | Sequence[int], seed: int, index: int) -> FloatArray:
    """How often each unit is drawn in replicate ``index`` of ``seed``; ``sizes`` is the number of
    units or of those in every stratum, drawn one after the other.
    """
    random = generator(seed, index)
    times = [np.bincount(random.integers(0, n, n), minlength=n) for n in np.atleast_1d(sizes)]
    return np.concatenate(times).astype(np.float64)


def draws(sizes: int | Sequence[int], replicates: int, seed: int, *, first: int = 0) -> FloatArray:
    """How often each unit (column) is drawn in replicates (rows) from ``first`` on, few kept."""
    check_replicates(replicates, least=0)
    strata = tuple(np.atleast_1d(sizes).tolist())
    of = _kept if sum(strata) * replicates <= _FEW else _drawn
    return of(strata, replicates, seed, first)


def _drawn(strata: tuple[int, ...], replicates: int, seed: int, first: int) -> FloatArray:
    times = np.empty((replicates, sum(strata)))
    for row in range(replicates):
        times[row] = draw(strata, seed, first + row)
    return read_only(times)


_kept = lru_cache(maxsize=8)(_drawn)


@dataclass(frozen=True)
class Sampling:
    """How sure: ``replicates`` that draw speakers with ``seed`` (0: none), and the ``level``."""

    replicates: int = 1000
    level: float = 0.95
    seed: int = 0

    @property
    def options(self) -> dict[str, Any]:
        """The three, as functions and results take them."""
        return {"replicates": self.replicates, "level": self.level, "seed": self.seed}

    def times(self, units: int) -> FloatArray:
        """How often each of some units is drawn in every replicate (rows)."""
        return draws(units, self.replicates, self.seed)


def jackknife_error(without: FloatArray) -> FloatArray:
    """Standard error from the values without each unit or group (first axis): √((n − 1)·var)."""
    return np.asarray(np.sqrt((len(without) - 1) * np.var(without, axis=0)))


_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def scattered(codes: npt.NDArray[np.uint64], seed: int, *stream: int) -> npt.NDArray[np.uint64]:
    """Draw a number for each code, from the ``seed`` and the code alone.

    It is the 64-bit finaliser of splitmix64 (Steele, Lea and Flood 2014) of the code, exclusive or
    a number of the seed: as good as a random number, and the same wherever the code stands.
    """
    state = np.random.SeedSequence(seed, spawn_key=stream).generate_state(1, np.uint64)
    mixed = codes ^ state
    for shift, factor in zip(_SHIFTS, _MIX, strict=False):
        mixed = (mixed ^ (mixed >> shift)) * factor
    return np.asarray(mixed ^ (mixed >> _SHIFTS[-1]))


def in_order(names: Sequence[str]) -> IntArray:
    """The number of each of these distinct names in the order of all of them."""
    number = np.empty(len(names), np.int64)
    number[sorted(range(len(names)), key=lambda k: names[k])] = np.arange(len(names))
    return number


@dataclass(frozen=True, eq=False)
class Replicates:
    """Metric values of every replicate: ``values[metric]`` has one row per system.

    ``sample`` holds the values of the sample itself, one per system; ``ranges`` the range of each
    metric, where it has one; ``units`` counts what was drawn (speakers, or trials of the smaller
    class); ``wider`` is how much more than these replicates a full resample would spread.
    """

    values: Mapping[str, FloatArray]
    sample: Mapping[str, FloatArray]
    units: int
    method: str
    seed: int
    replicates: int
    ranges: Mapping[str, MetricRange] = field(default_factory=dict)
    wider: float = 1.0

    def interval(self, metric: str, *, level: float, system: int = 0) -> Interval:
        """Interval of one system's metric, less the bias that resampling shows."""
        value, drawn = float(self.sample[metric][system]), self.values[metric][system]
        return self._corrected(value, drawn, level, self.ranges.get(metric, MetricRange()))

    def difference(self, metric: str, *, level: float, first: int, second: int) -> Interval:
        """Interval of second − first over shared draws, likewise.

        Hulls through the same trials overfit nearly alike: what is left of their bias is taken as
        resampling shows it, since more of it would be more of its noise. Hard speakers, whom most
        samples lack, are harder still for the poorer system: they move a difference away from 0.
        The interval holds the middle ``level`` of the resampled differences as well: what many
        resamples contradict is not claimed.
        """
        rows, exact = self.values[metric], self.sample[metric]
        delta = _minus(exact[second : second + 1], exact[first : first + 1])
        own = self.ranges.get(metric, MetricRange())
        away: Side | None = "high" if delta[0] > 0 else "low"
        span = own.high - own.low
        widest = MetricRange(-span, span, longer=away if own.longer else None)
        drawn = _minus(rows[second], rows[first])
        interval = self._corrected(float(delta[0]), drawn, level, widest)
        known = drawn[~np.isnan(drawn)]
        if np.isnan(interval.low) or not known.size:
            return interval
        tails = [(1 - level) / 2, (1 + level) / 2]
        low, high = np.quantile(known, tails, method="inverted_cdf")
        return replace(
            interval, low=min(interval.low, float(low)), high=max(interval.high, float(high))
        )

    def share_below(self, metric: str, *, first: int, second: int) -> float:
        """Share of replicates in which the second system lies below the first; ties count half."""
        delta = _minus(self.values[metric][second], self.values[metric][first])
        delta = delta[~np.isnan(delta)]
        if delta.size == 0:
            return float("nan")
        return float((delta < 0).mean() + 0.5 * (delta == 0).mean())

    def undefined(self, metric: str) -> int:
        """Replicates that gave no value (a class was left empty)."""
        return int(np.isnan(self.values[metric]).any(axis=0).sum())

    def _corrected(
        self, value: float, replicates: FloatArray, level: float, within: MetricRange
    ) -> Interval:
        sample, wider = (value, replicates, self.units), self.wider
        ends = bias_corrected(*sample, level=level, within=within, wider=wider)
        return Interval(*ends, level, f"{self.method},corrected", self.replicates, self.seed)


def _minus(a: FloatArray, b: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return np.where(a == b, 0.0, a - b)
