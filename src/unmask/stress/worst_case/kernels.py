"""What every way to P_FA^N(τ) shares: thresholds, ranks of impostors, weights of ranks.

With a target's M impostors ordered from the closest, the r-th is the closest of a random subset of
N with probability w_r(N) = C(M−r, N−1)/C(M, N), so P_FA^N(τ) = Σ_r w_r(N)·F_r(τ), where F_r is the
share of the r-th closest impostor's scores above τ.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray, Places, lazy, reject_nan
from unmask.errors import InputError
from unmask.run import Arrays, Range

TIE = 2.0**-40
_TOGETHER = 32
_NEGLIGIBLE = 1e-200  # subnormal weights change nothing and slow a product twentyfold


@dataclass(frozen=True, eq=False)
class Levels:
    """Distinct thresholds from low to high, and where each given one stands among them."""

    values: FloatArray
    place: IntArray

    @classmethod
    def of(cls, thresholds: npt.ArrayLike) -> Levels:
        """Check and sort what was given."""
        given = np.atleast_1d(np.asarray(thresholds, dtype=np.float64))
        if given.ndim != 1 or given.size == 0:
            raise InputError(f"thresholds: expected a list of numbers, found shape {given.shape}")
        reject_nan(given, "threshold")
        values, place = np.unique(given, return_inverse=True)
        return cls(values, place)

    @lazy
    def exceeded(self) -> Places:
        """Gives how many levels each score exceeds."""
        return Places(self.values, "left")

    def above(self, scores: FloatArray, cell: IntArray, cells: int) -> IntArray:
        """Scores above each level in each cell, (cells, levels); ``cell`` broadcasts to scores."""
        width = self.values.size + 1
        held = self.exceeded(scores)
        held += cell * width
        table = np.bincount(held.reshape(-1), minlength=cells * width).reshape(cells, width)
        return above_of(table)


def above_of(table: IntArray) -> IntArray:
    """From how many scores exceed just k levels (last axis) to how many exceed each level."""
    return np.asarray(table[..., ::-1].cumsum(axis=-1)[..., -2::-1])


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


class Deleted:
    """Sums over targets of P_FA^N(τ) without each group of speakers: (groups, counts, levels)."""

    def __init__(self, groups: int, counts: IntArray, levels: int) -> None:
        self.counts = counts
        self.total = np.zeros((groups, counts.size, levels))
        self._weights: dict[int, FloatArray] = {}

    def add(self, rates: FloatArray, group: IntArray, own: int) -> None:
        """One target of group ``own``; ``group`` is that of the impostor of each rank."""
        codes = np.arange(len(self.total))
        codes = codes[codes != own]
        kept = group != codes[:, None]
        sizes = kept.sum(axis=1)
        for size in np.unique(sizes):
            some = codes[sizes == size]
            ranks = np.nonzero(kept[sizes == size])[1].reshape(some.size, size)
            stay = rates[ranks.T].reshape(size, -1)
            found = (self._of(int(size)) @ stay).reshape(self.counts.size, some.size, -1)
            self.total[some] += found.swapaxes(0, 1)

    def _of(self, size: int) -> FloatArray:
        """Weights of the ranks among ``size`` impostors."""
        if size not in self._weights:
            self._weights[size] = closest_weights(size, self.counts)
        return self._weights[size]


def gaps(ordered: FloatArray) -> FloatArray:
    """Differences of neighbours in descending order."""
    return np.asarray(ordered[:-1] - ordered[1:])


def surfaces(ranked: Iterable[FloatArray], counts: IntArray, *, targets: int) -> FloatArray:
    """P_FA^N(τ) of each target alone, (targets, counts, thresholds), from its ranked rates."""
    parts: list[FloatArray] = [np.empty(0)] * targets
    waiting: dict[int, list[tuple[int, FloatArray]]] = {}
    weights: dict[int, FloatArray] = {}

    def settle(size: int) -> None:
        numbers, rates = zip(*waiting.pop(size), strict=True)
        if size not in weights:
            weights[size] = closest_weights(size, counts)
        product = weights[size] @ np.concatenate(rates, axis=1)
        for number, part in zip(numbers, np.split(product, len(numbers), axis=1), strict=True):
            parts[number] = part

    for number, rates in enumerate(ranked):
        size = rates.shape[0]
        waiting.setdefault(size, []).append((number, rates))
        if len(waiting[size]) == _TOGETHER:
            settle(size)
    for size in tuple(waiting):
        settle(size)
    return np.clip(np.stack(parts), 0.0, 1.0)


def surfaces_without(
    ranked: Iterable[tuple[FloatArray, IntArray]],
    counts: IntArray,
    targets: Range,
    group: IntArray | None,
    own: IntArray | None,
    fewer: IntArray | None,
) -> Arrays:
    """``each``: the surfaces of a range of targets; with groups also ``without``: their sums over
    the targets that stay, (groups, counts, thresholds), where the impostors of a group have left.

    ``group`` is that of who has a rank, ``own`` that of each target, ``fewer`` the counts that
    remain possible.
    """
    size = targets[1] - targets[0]
    if group is None or own is None or fewer is None:
        return {"each": surfaces((rates for rates, _ in ranked), counts, targets=size)}
    number = int(max(own.max(), group.max())) + 1
    deleted: list[Deleted] = []

    def noted() -> Iterator[FloatArray]:
        for target, (rates, order) in zip(range(*targets), ranked, strict=True):
            if not deleted:
                deleted.append(Deleted(number, fewer, rates.shape[1]))
            deleted[0].add(rates, group[order], int(own[target]))
            yield rates

    each = surfaces(noted(), counts, targets=size)
    return {"each": each, "without": deleted[0].total}


def shares_of(sizes: IntArray, most: int) -> list[Range]:
    """Ranges of targets whose sizes add up to at most ``most``, one target at least."""
    total = np.concatenate([[0], np.cumsum(sizes)])
    ranges: list[Range] = []
    start = 0
    while start < sizes.size:
        reach = int(np.searchsorted(total, total[start] + most, side="right")) - 1
        ranges.append((start, max(reach, start + 1)))
        start = ranges[-1][1]
    return ranges
