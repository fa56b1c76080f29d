"""What every way to P_FA^N(τ) shares: thresholds, ranks of impostors, weights of ranks.

Algorithm 1 of Sholokhov 2020 draws N impostors and takes the closest one, whose rate P_FA^(i)(τ)
enters the mean of eq. (4). With a target's M impostors ordered from the closest, the r-th is the
closest of a random subset of N with probability w_r(N) = C(M−r, N−1)/C(M, N), so the expectation
over all draws is P_FA^N(τ) = Σ_r w_r(N)·F_r(τ), where F_r is the share of the r-th closest
impostor's scores above τ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray, Places, lazy, reject_nan
from unmask.errors import InputError
from unmask.run import Arrays, Range, Xp
from unmask.stress.impostors.pair_scores import gaps
from unmask.stress.impostors.uncertainty import Groups

_TOGETHER = 32
_NEGLIGIBLE = 1e-200  # subnormal weights change nothing and slow a product twentyfold


@dataclass(frozen=True, eq=False)
class Levels:
    """Distinct thresholds from low to high; ``index`` finds each given one among them."""

    values: FloatArray
    index: IntArray

    @classmethod
    def of(cls, thresholds: npt.ArrayLike) -> Levels:
        """Check and sort what was given."""
        values, index = np.unique(as_thresholds(thresholds), return_inverse=True)
        return cls(values, index)

    @lazy
    def exceeded(self) -> Places:
        """Gives how many levels each score exceeds."""
        return Places(self.values, "left")

    def above(self, xp: Xp, scores: Any, cell: Any, cells: int) -> Any:
        """Scores above each level in each cell, (cells, levels); ``cell`` broadcasts to scores."""
        width = self.values.size + 1
        table = xp.bincount(xp.among(self.exceeded, scores) + cell * width, cells * width)
        below = xp.cumulate(table.reshape(cells, width))
        return below[:, -1:] - below[:, 1:-1]


def as_thresholds(thresholds: npt.ArrayLike) -> FloatArray:
    """A list of numbers."""
    given = np.atleast_1d(np.asarray(thresholds, dtype=np.float64))
    if given.ndim != 1 or given.size == 0:
        raise InputError(f"thresholds: expected a list of numbers, found shape {given.shape}")
    reject_nan(given, "threshold")
    return given


def closest_weights(impostors: int, counts: npt.ArrayLike) -> FloatArray:
    """w_r(N) for every N of ``counts`` (rows) and rank r = 1…M (columns).

    w_1 = N/M, and w_{r+1}/w_r = (M − r − N + 1)/(M − r): products, no factorials.
    """
    n = np.asarray(counts, dtype=np.float64)[:, None]
    r = np.arange(1, impostors)[None, :]
    ratio = np.maximum(impostors - r - n + 1, 0.0) / (impostors - r)
    weights = np.cumprod(np.concatenate([n / impostors, ratio], axis=1), axis=1)
    return np.where(weights < _NEGLIGIBLE, 0.0, weights)


def closest_first(
    above: IntArray, trials: IntArray, similarity: FloatArray, tie: float
) -> tuple[FloatArray, IntArray]:
    """False-alarm rates (ranks, levels), the closest impostor first, and who has each rank.

    Of ``trials`` scores of each impostor, ``above`` lie above each level; an impostor of similarity
    −inf is left out. Neighbours whose similarities differ by ``tie`` or less are equally close:
    every order of them is as likely, so each of their ranks gets their mean.
    """
    order = np.argsort(-similarity)
    ordered = similarity[order]
    if ordered[-1] == -np.inf:
        kept = int(np.searchsorted(-ordered, np.inf))
        order, ordered = order[:kept], ordered[:kept]
    rates = above[order] / trials[order, None]
    starts = np.concatenate([[0], np.flatnonzero(gaps(ordered) > tie) + 1])
    if starts.size == order.size:
        return rates, order
    sizes = np.diff(np.append(starts, order.size))
    means = np.add.reduceat(rates, starts, axis=0) / sizes[:, None]
    return np.asarray(np.repeat(means, sizes, axis=0)), order


class Ranked(Protocol):
    """What the tasks of a job share: targets whose impostors can be ranked, and what is asked.

    ``ranked`` gives the rates of each target by rank, closest first, and the impostor of each rank.
    ``groups`` of speakers leave in turn.
    """

    @property
    def counts(self) -> IntArray: ...

    @property
    def groups(self) -> Groups | None: ...

    def ranked(self, xp: Xp, targets: Range) -> Iterator[tuple[FloatArray, IntArray]]: ...

    def ranges(self) -> list[Range]: ...


def surfaces(xp: Xp, job: Ranked, targets: Range) -> Arrays:
    """``each``: P_FA^N(τ) of every target of a range, (targets, counts, thresholds).

    With groups that leave also ``without``: the sums over the targets that stay, (groups, counts,
    thresholds), where the impostors of a group have left.
    """
    first, last = targets
    parts: list[FloatArray] = [np.empty(0)] * (last - first)
    waiting: dict[int, list[tuple[int, FloatArray]]] = {}
    weights: dict[int, FloatArray] = {}

    def settle(size: int) -> None:
        numbers, rates = zip(*waiting.pop(size), strict=True)
        if size not in weights:
            weights[size] = closest_weights(size, job.counts)
        product = weights[size] @ np.concatenate(rates, axis=1)
        for number, part in zip(numbers, np.split(product, len(numbers), axis=1), strict=True):
            parts[number] = part

    deleted = None if job.groups is None else Deleted(job.groups, job.counts)
    for number, (rates, order) in enumerate(job.ranked(xp, targets)):
        if deleted is not None:
            deleted.add(rates, order, first + number)
        size = rates.shape[0]
        waiting.setdefault(size, []).append((number, rates))
        if len(waiting[size]) == _TOGETHER:
            settle(size)
    for size in tuple(waiting):
        settle(size)
    each = {"each": np.clip(np.stack(parts), 0.0, 1.0)}
    return each if deleted is None else each | {"without": deleted.total}


class Deleted:
    """Sums over targets of P_FA^N(τ) without each group of speakers: (groups, counts, levels)."""

    def __init__(self, groups: Groups, counts: IntArray) -> None:
        self._groups, self._counts = groups, groups.fewer(counts)
        self._weights: dict[int, FloatArray] = {}
        self.total = np.zeros(0)

    def add(self, rates: FloatArray, order: IntArray, target: int) -> None:
        """The rates of one target, and who has each rank."""
        counts, group = self._counts, self._groups.impostor[order]
        if not self.total.size:
            self.total = np.zeros((self._groups.number, counts.size, rates.shape[1]))
        codes = np.arange(self._groups.number)
        codes = codes[codes != self._groups.target[target]]
        kept = group != codes[:, None]
        sizes = kept.sum(axis=1)
        for size in map(int, np.unique(sizes)):
            if size not in self._weights:
                self._weights[size] = closest_weights(size, counts)
            some = codes[sizes == size]
            ranks = np.nonzero(kept[sizes == size])[1].reshape(some.size, size)
            staying = rates[ranks.T].reshape(size, -1)
            part = (self._weights[size] @ staying).reshape(counts.size, some.size, -1)
            self.total[some] += part.swapaxes(0, 1)


def target_ranges(sizes: IntArray, most: int) -> list[Range]:
    """Ranges of targets whose sizes add up to at most ``most``, one target at least."""
    total = np.concatenate([[0], np.cumsum(sizes)])
    ranges: list[Range] = []
    start = 0
    while start < sizes.size:
        reach = int(np.searchsorted(total, total[start] + most, side="right")) - 1
        ranges.append((start, max(reach, start + 1)))
        start = ranges[-1][1]
    return ranges
