"""Confidence intervals: the joint speaker bootstrap, and the trial bootstrap without speakers.

Speakers are drawn with replacement; m_k is how often speaker k was drawn. A trial of two different
speakers a and b weighs m_a·m_b, a trial within one speaker m_a. Scores are sorted once; a replicate
only re-weighs the ROC statistic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray
from unmask.engine import information
from unmask.engine.replicates import MetricRange, Replicates, sample_of
from unmask.engine.roc import Roc
from unmask.errors import InputError
from unmask.run import HERE, Arrays, Range, Where, ranges_of, run, tensor

Codes = npt.NDArray[np.integer]
Progress = Callable[[int, int], None]
_TOGETHER = 4
_NAMES = (
    "target_unit",
    "target_edges",
    "first",
    "second",
    "within",
    "below",
    "upto",
    "target_loss",
    "nontarget_loss",
)


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

    @property
    def count(self) -> int:
        """How many units there are to draw from in the class that has fewer."""
        if self.nontarget_second is None:
            return min(self.strata)
        other = np.concatenate([self.nontarget_first, self.nontarget_second])
        (every,) = self.strata
        return min(
            int((np.bincount(codes, minlength=every) > 0).sum()) for codes in (self.target, other)
        )

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """How often each unit is drawn; every stratum keeps its size."""
        return drawn(self.strata, rng)


def drawn(strata: Sequence[int], rng: np.random.Generator) -> FloatArray:
    """How often each unit is drawn, as many as each stratum has, with replacement."""
    times = [np.bincount(rng.integers(0, n, n), minlength=n) for n in strata]
    return np.concatenate(times).astype(np.float64)


def child_of(seed: int, index: int) -> np.random.Generator:
    """Random numbers of one replicate: the same wherever and in whatever order it is drawn."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index,)))


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

    def arrays(self) -> Arrays:
        """All that a replicate needs, as named arrays."""
        named = {name: getattr(self, name) for name in _NAMES if getattr(self, name) is not None}
        return {"scores": self.roc.scores, **named}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Resampled:
        """From what :meth:`arrays` gave; the counts of the statistic itself are not in it."""
        scores = arrays["scores"]
        none = np.zeros(scores.size)
        roc = Roc(scores, none, none, np.zeros(scores.size + 1))
        return cls(roc, **{name: arrays.get(name) for name in _NAMES})  # type: ignore[arg-type]

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
class Sample:
    """Trials of all systems, sorted once, and how many units of each stratum are drawn."""

    strata: tuple[int, ...]
    systems: tuple[Resampled, ...]

    def arrays(self) -> Arrays:
        found: Arrays = {"strata": np.asarray(self.strata)}
        for number, system in enumerate(self.systems):
            found |= {f"{number}-{name}": value for name, value in system.arrays().items()}
        return found

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        parts: dict[int, Arrays] = {}
        for name, value in arrays.items():
            number, dash, what = name.partition("-")
            if dash:
                parts.setdefault(int(number), {})[what] = value
        systems = tuple(Resampled.from_arrays(parts[number]) for number in sorted(parts))
        return cls(tuple(int(size) for size in arrays["strata"]), systems)

    def draw(self, seed: int, index: int) -> FloatArray:
        """How often each unit is drawn in a replicate, which has a child of the seed for itself."""
        return drawn(self.strata, child_of(seed, index))


@dataclass(frozen=True)
class Draws:
    """What is taken from every replicate: ``size`` statistics, on draws that follow from a seed."""

    statistics: Callable[[Roc], Mapping[str, float]]
    size: int
    seed: int

    def each(self, sample: Sample, rows: Range, weighted: Weighted) -> Arrays:
        """Statistics of a range of replicates: (metrics, systems, replicates)."""
        values = np.full((self.size, len(sample.systems), rows[1] - rows[0]), np.nan)
        for column, index in enumerate(range(*rows)):
            times = sample.draw(self.seed, index)
            for number in range(len(sample.systems)):
                roc = weighted(number, times)
                if roc is not None:
                    values[:, number, column] = list(self.statistics(roc).values())
        return {"values": values}


Weighted = Callable[[int, FloatArray], Roc | None]


def bootstrap(
    systems: Sequence[Resampled],
    units: Units,
    statistics: Callable[[Roc], Mapping[str, float]],
    *,
    ranges: Mapping[str, MetricRange] | None = None,
    replicates: int = 1000,
    seed: int = 0,
    where: Where = HERE,
    progress: Progress | None = None,
) -> Replicates:
    """Replicates of every statistic for every system, all on the same draws.

    ``ranges`` are those that statistics can have, for their intervals.

    Each replicate has its own child of ``seed``, so neither the place nor the number of workers
    changes anything (on a GPU the loss of C_llr adds up in another order).
    """
    if replicates < 2:
        raise InputError(f"bootstrap: expected at least 2 replicates, found {replicates}")
    sample = sample_of([system.roc for system in systems], statistics)
    draws = Draws(statistics, len(sample), seed)
    found = run(
        partial(replicate, draws),
        Sample(units.strata, tuple(systems)),
        ranges_of(replicates, _TOGETHER),
        where=where,
        on_device=partial(replicates_on_device, draws),
        progress=None if progress is None else _in_replicates(progress, replicates),
    )
    table = np.concatenate([part["values"] for part in found], axis=2)
    return Replicates(
        dict(zip(sample, table, strict=True)),
        sample,
        units.count,
        units.method,
        seed,
        replicates,
        ranges or {},
    )


def _in_replicates(progress: Progress, replicates: int) -> Progress:
    return lambda done, _: progress(min(done * _TOGETHER, replicates), replicates)


def replicate(draws: Draws, sample: Sample, rows: Range) -> Arrays:
    """A range of replicates on a processor."""
    return draws.each(sample, rows, lambda number, times: sample.systems[number].weighted(times))


def replicates_on_device(draws: Draws, sample: Sample, device: str) -> Callable[[Range], Arrays]:
    """The same with the weights of trials added up on a CUDA device."""
    import torch

    put = partial(tensor, device=device)
    held = [{name: put(array) for name, array in s.arrays().items()} for s in sample.systems]

    def from_zero(weights: Any) -> Any:
        return torch.nn.functional.pad(torch.cumsum(weights, 0), (1, 0))

    def summed(values: Any, weights: Any) -> float:
        return float(torch.where(weights > 0, values * weights, 0.0).sum())

    def weighted(number: int, drawn_times: FloatArray) -> Roc | None:
        system, times = held[number], put(drawn_times)
        targets = times[system["target_unit"].long()]
        weight = times[system["first"].long()]
        if "second" in system:
            own = weight[system["within"]]
            weight = weight * times[system["second"].long()]
            weight[system["within"]] = own
        total = from_zero(weight)
        target = torch.diff(from_zero(targets)[system["target_edges"]]).cpu().numpy()
        if float(total[-1]) == 0 or not target.any():
            return None
        below, upto = total[system["below"]], total[system["upto"]]
        between = torch.cat([below, total[-1:]])
        between[1:] -= upto
        loss = summed(system["target_loss"], targets), summed(system["nontarget_loss"], weight)
        scores = sample.systems[number].roc.scores
        return Roc(scores, target, (upto - below).cpu().numpy(), between.cpu().numpy(), loss)

    return lambda rows: draws.each(sample, rows, weighted)
