"""Bootstraps of trials that are only known by their counts in bins of scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from unmask.base import BoolArray, FloatArray, IntArray, Places
from unmask.engine import information
from unmask.engine.bootstrap import Progress, child_of
from unmask.engine.replicates import MetricRange, Replicates, sample_of
from unmask.engine.roc import Roc
from unmask.errors import InputError
from unmask.run import ranges_of

_ENDS = 24
_CELLS = 1 << 24
_FEWEST, _MOST = 64, 512
_TOGETHER = 50


def edges_of(roc: Roc, thresholds: Sequence[float], *, rows: int = 1) -> FloatArray:
    """Edges of bins that keep what metrics look at, fewer where a table has many rows.

    The corners of the ROC's hull come first, all near its ends: with them the binned statistic has
    the same hull. Then thresholds in even steps of Pmiss and in even ratios of Pfa, where the hull
    of a replicate may have its corners.
    """
    most = int(np.clip(_CELLS // rows, _FEWEST, _MOST))
    corners = _thinned(roc.pav.boundaries, most // 2)
    rejected = np.cumsum(roc.target) - roc.target
    passed = roc.nontargets - (np.cumsum(roc.between[:-1] + roc.equal) - roc.equal)
    misses = np.linspace(0, roc.targets, most // 4)
    alarms = np.geomspace(1, roc.nontargets, most // 4)
    at = np.concatenate([np.searchsorted(rejected, misses), np.searchsorted(-passed, -alarms)])
    even = roc.scores[np.minimum(at, roc.scores.size - 1)]
    edges = np.concatenate([corners, even, np.asarray(tuple(thresholds), np.float64)])
    return np.unique(edges[np.isfinite(edges)])


def _thinned(corners: FloatArray, most: int) -> FloatArray:
    """All corners near both ends, and evenly many between them."""
    if corners.size <= most:
        return corners
    near = min(_ENDS, most // 4)
    inner = np.linspace(near, corners.size - 1 - near, most - 2 * near).astype(np.int64)
    ends = np.arange(near)
    return np.asarray(corners[np.concatenate([ends, inner, corners.size - 1 - ends])])


class BinnedSystem(Protocol):
    """A system's trials in bins, from which replicates are drawn."""

    @property
    def method(self) -> str: ...

    @property
    def units(self) -> int: ...

    @property
    def whole(self) -> Roc | None: ...

    def replicates(self, seed: int, first: int, last: int) -> Iterator[Roc | None]: ...


def binned_bootstrap(
    systems: Sequence[BinnedSystem],
    rocs: Sequence[Roc],
    statistics: Callable[[Roc], Mapping[str, float]],
    *,
    ranges: Mapping[str, MetricRange] | None = None,
    replicates: int = 1000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Replicates:
    """Replicates of every statistic for every system.

    ``rocs`` are the exact statistics: what the bins move is taken off every replicate, within the
    range that a statistic can have (none is negative, and no rate passes 1).
    """
    if replicates < 2:
        raise InputError(f"bootstrap: expected at least 2 replicates, found {replicates}")
    sample = sample_of(rocs, statistics)
    values = np.full((len(sample), len(systems), replicates), np.nan)
    moved = [_moved(system, roc, statistics) for system, roc in zip(systems, rocs, strict=True)]
    for first, last in ranges_of(replicates, _TOGETHER):
        for row, system in enumerate(systems):
            for index, roc in enumerate(system.replicates(seed, first, last), start=first):
                if roc is not None:
                    found = np.array(list(statistics(roc).values()))
                    shifted = np.maximum(found + moved[row], 0.0)
                    values[:, row, index] = np.minimum(shifted, np.maximum(found, 1.0))
        if progress is not None:
            progress(last, replicates)
    table = dict(zip(sample, values, strict=True))
    first_system = systems[0]
    return Replicates(
        table, sample, first_system.units, first_system.method, seed, replicates, ranges or {}
    )


def _moved(
    system: BinnedSystem, roc: Roc, statistics: Callable[[Roc], Mapping[str, float]]
) -> FloatArray:
    """What the bins take from each statistic; nothing where both are infinite."""
    exact = np.array(list(statistics(roc).values()))
    coarse = exact if system.whole is None else np.array(list(statistics(system.whole).values()))
    return np.where(exact == coarse, 0.0, exact - np.where(exact == coarse, 0.0, coarse))


@dataclass(frozen=True, eq=False)
class BinnedTrials:
    """Trials of both classes in bins, with the summed loss of each bin: the trial bootstrap.

    Drawing as many trials with replacement puts a multinomial number into each bin.
    """

    edges: FloatArray
    target: IntArray
    nontarget: IntArray
    target_loss: FloatArray
    nontarget_loss: FloatArray
    method: str = "trial"

    @classmethod
    def of(cls, batches: Iterable[tuple[FloatArray, BoolArray]], edges: FloatArray) -> BinnedTrials:
        """Count batches of (scores, which are targets)."""
        size = edges.size + 1
        place_of = Places(edges)
        counts, losses = np.zeros((2, size), np.int64), np.zeros((2, size))
        for scores, is_target in batches:
            place = place_of(scores)
            for kind, (chosen, sign) in enumerate(((is_target, -1), (~is_target, 1))):
                counts[kind] += np.bincount(place[chosen], minlength=size)
                loss = information.softplus(sign * scores[chosen])
                losses[kind] += np.bincount(place[chosen], loss, minlength=size)
        return cls(edges, counts[0], counts[1], losses[0], losses[1])

    @property
    def units(self) -> int:
        """Trials of the smaller class."""
        return int(min(self.target.sum(), self.nontarget.sum()))

    @property
    def whole(self) -> Roc:
        """The statistic itself, in bins."""
        return self._roc(self.target, self.nontarget)

    def replicates(self, seed: int, first: int, last: int) -> Iterator[Roc]:
        """Some replicates."""
        for index in range(first, last):
            rng = child_of(seed, index)
            both = (self.target, self.nontarget)
            yield self._roc(*(rng.multinomial(n.sum(), n / n.sum()) for n in both))

    def _roc(self, target: IntArray, nontarget: IntArray) -> Roc:
        return Roc(
            np.concatenate([[-np.inf], self.edges]),
            target.astype(np.float64),
            nontarget.astype(np.float64),
            np.zeros(target.size + 1),
            (
                _loss(target, self.target, self.target_loss),
                _loss(nontarget, self.nontarget, self.nontarget_loss),
            ),
        )


def _loss(drawn: IntArray, count: IntArray, loss: FloatArray) -> float:
    """Loss of drawn trials, each with the mean loss of its bin."""
    mean = loss / np.maximum(count, 1)
    return information.weighted_sum(mean, drawn.astype(np.float64))
