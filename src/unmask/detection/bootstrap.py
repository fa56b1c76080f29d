"""Confidence intervals: the joint speaker bootstrap, and the trial bootstrap without speakers.

Speakers are drawn with replacement; m_k is how often speaker k was drawn. A trial of two different
speakers a and b weighs m_a·m_b, a trial within one speaker m_a. Scores are sorted once; a replicate
only re-weighs the ROC statistic.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.arrays import FloatArray, IntArray
from unmask.detection import information
from unmask.detection.roc import Roc
from unmask.errors import InputError
from unmask.estimate import Interval

Codes = npt.NDArray[np.integer]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Units:
    """What is drawn with replacement, and which units each trial depends on.

    A trial's weight is the product of how often its two units were drawn, or how often its one
    unit was (``nontarget_second`` is None, or the same unit twice).
    """

    method: str
    target: Codes
    nontarget_first: Codes
    nontarget_second: Codes | None
    strata: tuple[int, ...]

    @classmethod
    def speakers(cls, target: Codes, nontarget_enrol: Codes, nontarget_test: Codes) -> Units:
        """The joint speaker bootstrap: codes of the speakers on each side of each trial."""
        every = np.concatenate([target, nontarget_enrol, nontarget_test])
        present, dense = np.unique(every, return_inverse=True)
        dense = dense.astype(np.int32)
        parts = np.split(dense, [target.size, target.size + nontarget_enrol.size])
        return cls("speaker", parts[0], parts[1], parts[2], (present.size,))

    @classmethod
    def trials(cls, targets: int, nontargets: int) -> Units:
        """The trial bootstrap, within each class, where no speakers are known."""
        numbers = np.arange(targets + nontargets)
        return cls("trial", numbers[:targets], numbers[targets:], None, (targets, nontargets))

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """How often each unit is drawn; every stratum keeps its size."""
        times = [np.bincount(rng.integers(0, n, n), minlength=n) for n in self.strata]
        return np.concatenate(times).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Resampled:
    """Scores of one system, sorted once, from which the ROC statistic of any draw is counted."""

    roc: Roc
    target_unit: Codes
    target_edges: IntArray
    first: Codes
    second: Codes | None
    within: IntArray
    below: IntArray
    upto: IntArray
    target_loss: FloatArray
    nontarget_loss: FloatArray

    @classmethod
    def of(
        cls,
        target: FloatArray,
        nontarget: FloatArray,
        units: Units,
        *,
        thresholds: Sequence[float] = (),
    ) -> Resampled:
        """Sort the trials of a system, and the units of the trials along with them."""
        roc = Roc.from_scores(target, nontarget, thresholds=thresholds, cllr=True)
        target_order, order = np.argsort(target), np.argsort(nontarget)
        targets, nontargets = target[target_order], nontarget[order]
        first = units.nontarget_first[order]
        second = None if units.nontarget_second is None else units.nontarget_second[order]
        return cls(
            roc,
            units.target[target_order],
            np.append(np.searchsorted(targets, roc.scores), targets.size),
            first,
            second,
            np.flatnonzero(first == second) if second is not None else np.empty(0, np.int64),
            np.searchsorted(nontargets, roc.scores),
            np.searchsorted(nontargets, roc.scores, side="right"),
            information.softplus(-targets),
            information.softplus(nontargets),
        )

    def weighted(self, times: FloatArray) -> Roc | None:
        """The statistic of a replicate, or None if it left a class empty."""
        target_weight = times[self.target_unit]
        weight = times[self.first]
        if self.second is not None:
            weight *= times[self.second]
            weight[self.within] = times[self.first[self.within]]
        target = np.diff(_from_zero(target_weight)[self.target_edges])
        total = _from_zero(weight)
        if total[-1] == 0 or not target.any():
            return None
        below, upto = total[self.below], total[self.upto]
        between = np.append(below, total[-1])
        between[1:] -= upto
        loss = (
            information.weighted_sum(self.target_loss, target_weight),
            information.weighted_sum(self.nontarget_loss, weight),
        )
        return Roc(self.roc.scores, target, upto - below, between, loss)


def _from_zero(weights: FloatArray) -> FloatArray:
    """Running totals, 0 first."""
    total = np.empty(weights.size + 1)
    total[0] = 0.0
    np.cumsum(weights, out=total[1:])
    return total


@dataclass(frozen=True, eq=False)
class Replicates:
    """Metric values of every replicate: ``values[metric]`` has one row per system."""

    values: Mapping[str, FloatArray]
    method: str
    seed: int
    replicates: int

    def interval(self, metric: str, *, level: float, system: int = 0) -> Interval:
        """Percentile interval of one system's metric."""
        return self._percentiles(self.values[metric][system], level)

    def difference(self, metric: str, *, level: float, first: int, second: int) -> Interval:
        """Percentile interval of second − first over shared draws."""
        rows = self.values[metric]
        return self._percentiles(_minus(rows[second], rows[first]), level)

    def share_below(self, metric: str, *, first: int, second: int) -> float:
        """Share of replicates in which the second system's value lies below the first's.

        Ties count half.
        """
        delta = _minus(self.values[metric][second], self.values[metric][first])
        delta = delta[~np.isnan(delta)]
        if delta.size == 0:
            return float("nan")
        return float((delta < 0).mean() + 0.5 * (delta == 0).mean())

    def undefined(self, metric: str) -> int:
        """Replicates that gave no value (a class was left empty)."""
        return int(np.isnan(self.values[metric]).any(axis=0).sum())

    def _percentiles(self, values: FloatArray, level: float) -> Interval:
        defined = np.sort(values[~np.isnan(values)])
        low = high = float("nan")
        if defined.size:
            tail = (1 - level) / 2
            low = float(np.quantile(defined, tail, method="inverted_cdf"))
            high = float(np.quantile(defined, 1 - tail, method="inverted_cdf"))
        return Interval(low, high, level, self.method, self.replicates, self.seed)


def _minus(a: FloatArray, b: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return np.where(a == b, 0.0, a - b)


def bootstrap(
    systems: Sequence[Resampled],
    units: Units,
    statistics: Callable[[Roc], Mapping[str, float]],
    *,
    replicates: int = 1000,
    seed: int = 0,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Replicates:
    """Replicates of every statistic for every system, all on the same draws.

    Each replicate has its own child of ``seed``, so the number of workers changes nothing.
    """
    if replicates < 2:
        raise InputError(f"bootstrap: expected at least 2 replicates, found {replicates}")
    seeds = np.random.SeedSequence(seed).spawn(replicates)
    names = tuple(statistics(systems[0].roc))
    table = np.full((len(names), len(systems), replicates), np.nan)

    def replicate(index: int) -> None:
        times = units.draw(np.random.default_rng(seeds[index]))
        for row, system in enumerate(systems):
            roc = system.weighted(times)
            if roc is not None:
                values = statistics(roc)
                table[:, row, index] = [values[name] for name in names]

    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        for done, _ in enumerate(pool.map(replicate, range(replicates)), start=1):
            if progress is not None:
                progress(done, replicates)
    return Replicates(dict(zip(names, table, strict=True)), units.method, seed, replicates)
