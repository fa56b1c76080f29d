"""Worst-case false alarms with N impostors (Sholokhov 2020), exact and by simulation.

Algorithm 1 draws N impostors and takes the closest one, whose mean score against the target is
highest; its rate P_FA^(i)(τ) enters the mean of eq. (4) over targets. With a target's M impostors
ordered from the closest, the r-th is the closest of a random subset of N with probability
w_r(N) = C(M−r, N−1)/C(M, N), so the expectation over all draws is P_FA^N(τ) = Σ_r w_r(N)·F_r(τ),
where F_r is the share of the r-th closest impostor's scores above τ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray, Lookup, as_numbers, lazy, reject_nan
from unmask.errors import InputError
from unmask.estimate import Notice, Parameter
from unmask.run import NUMPY, Arrays, Range, Xp, part, run
from unmask.stress.impostors import uncertainty
from unmask.stress.impostors.pair_scores import PairScores, Proxy, Targets, from_zero, speaker_pairs
from unmask.stress.impostors.uncertainty import FEW, Band, CrossFitted, Jackknife, Leaving

SCORES = 1 << 21
_TOGETHER = 32
_NEGLIGIBLE = 1e-200  # subnormal weights change nothing and slow a product twentyfold


def worst_case_false_alarms(
    scores: PairScores | npt.ArrayLike,
    thresholds: npt.ArrayLike,
    *,
    counts: npt.ArrayLike,
    proxy: Proxy = None,
) -> FloatArray:
    """Exact P_FA^N(τ) of the closest of N impostors: no sampling (Sholokhov 2020, eq. 4).

    The closest has the highest mean score with the target. Impostors of equal mean score are
    averaged over their orders. N = 1 is an impostor whom nobody chose.

    Parameters
    ----------
    scores
        Targets × impostors × scores of a pair, or :class:`~unmask.stress.PairScores` where pairs
        differ in size or are missing.
    thresholds
        τ: a score strictly above it is a false alarm.
    counts
        N, from 1 to the fewest impostors that any target has.
    proxy
        What the adversary chooses by instead: scores of another system for the same pairs, or a
        targets × impostors matrix of similarities.

    Returns
    -------
    array
        Rates, (counts, thresholds).

    Examples
    --------
    >>> import numpy as np
    >>> import unmask as um
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(40, 50, 1)) + rng.normal(size=(40, 50, 30))
    >>> rates = um.worst_case_false_alarms(scores, [2.0], counts=[1, 10, 50])
    >>> print(rates[:, 0].round(2))
    [0.08 0.33 0.54]
    """
    flat = FlatPairs.of(speaker_pairs(scores).checked().chosen_by(proxy), thresholds, counts)
    targets = len(flat.pairs.target_names)
    totals: dict[int, FloatArray] = {}
    for rates, _ in flat.ranked(NUMPY, (0, targets)):
        size = rates.shape[0]
        totals[size] = totals[size] + rates if size in totals else rates
    surface = sum(closest_weights(size, flat.counts) @ total for size, total in totals.items())
    mean = np.clip(np.asarray(surface) / targets, 0.0, 1.0)
    return np.asarray(mean[:, flat.levels.index])


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
    def exceeded(self) -> Lookup:
        """Gives how many levels each score exceeds."""
        return Lookup(self.values, "left")

    def above(self, xp: Xp, scores: Any, cell: Any, cells: int) -> Any:
        """Scores above each level in each cell, (cells, levels); ``cell`` broadcasts to scores."""
        width = self.values.size + 1
        table = xp.bincount(xp.among(self.exceeded, scores) + cell * width, cells * width)
        below = xp.cumulate(table.reshape(cells, width))
        return below[:, -1:] - below[:, 1:-1]


def as_thresholds(thresholds: npt.ArrayLike) -> FloatArray:
    """A list of numbers."""
    given = np.atleast_1d(as_numbers(thresholds, "thresholds"))
    if given.ndim != 1 or given.size == 0:
        raise InputError(f"thresholds: expected a list of numbers, found shape {given.shape}")
    reject_nan(given, "threshold")
    return given


def closest_weights(impostors: int, counts: npt.ArrayLike) -> FloatArray:
    """w_r(N), (counts, ranks r = 1…M): w_1 = N/M, w_{r+1}/w_r = (M − r − N + 1)/(M − r), without
    factorials.
    """
    n = np.asarray(counts, dtype=np.float64)[:, None]
    r = np.arange(1, impostors)[None, :]
    ratio = np.maximum(impostors - r - n + 1, 0.0) / (impostors - r)
    weights = np.cumprod(np.concatenate([n / impostors, ratio], axis=1), axis=1)
    return np.where(weights < _NEGLIGIBLE, 0.0, weights)


def closest_first(
    above: IntArray, trials: IntArray, similarity: FloatArray, tie: float
) -> tuple[FloatArray, IntArray]:
    """False-alarm rates (ranks, levels), the closest impostor first, and who has each rank:
    ``above`` of ``trials`` lie above each level; similarities −inf are left out, and neighbours
    whose ``similarity`` differs by ``tie`` or less get their mean, every order being as likely.
    """
    order = np.argsort(-similarity)
    ordered = similarity[order]
    if ordered[-1] == -np.inf:
        kept = int(np.searchsorted(-ordered, np.inf))
        order, ordered = order[:kept], ordered[:kept]
    rates = above[order] / trials[order, None]
    starts = np.concatenate([[0], np.flatnonzero(-np.diff(ordered) > tie) + 1])
    if starts.size == order.size:
        return rates, order
    sizes = np.diff(np.append(starts, order.size))
    means = np.add.reduceat(rates, starts, axis=0) / sizes[:, None]
    return np.asarray(np.repeat(means, sizes, axis=0)), order


@dataclass(frozen=True, eq=False)
class Ranked(ABC):
    """What tasks share: what is asked of targets with ranked impostors, and who leaves."""

    levels: Levels
    counts: IntArray
    groups: Leaving | None

    @abstractmethod
    def ranked(self, xp: Xp, targets: Range) -> Iterator[tuple[FloatArray, IntArray]]:
        """Rates of each target's impostors (ranks, levels), and who has each rank."""

    @abstractmethod
    def ranges(self) -> list[Range]:
        """Ranges of targets for a task."""


def surfaces(xp: Xp, job: Ranked, targets: Range) -> Arrays:
    """``each``: P_FA^N(τ) of every target of a range, (targets, counts, thresholds); with groups
    also ``without``, sums over targets that stay, (groups, counts, thresholds).
    """
    groups, weights = job.groups, cache(closest_weights)
    counts = tuple(job.counts.tolist())
    fewer = () if groups is None else tuple(groups.fewer(job.counts).tolist())
    each: list[FloatArray] = []
    without: Any = 0.0
    ranked = enumerate(job.ranked(xp, targets), start=targets[0])
    while some := list(islice(ranked, _TOGETHER)):
        sizes = np.array([len(rates) for _, (rates, _) in some])
        surface: dict[int, FloatArray] = {}
        for size in np.unique(sizes).tolist():
            alike = np.flatnonzero(sizes == size).tolist()
            product = weights(size, counts) @ np.concatenate([some[n][1][0] for n in alike], axis=1)
            surface |= zip(alike, np.split(product, len(alike), axis=1), strict=True)
        each += [surface[n] for n in range(len(some))]
        if groups is not None:
            for target, own in some:
                without = without + _deleted(groups, fewer, weights, target, *own)
    parts = {"each": np.clip(np.stack(each), 0.0, 1.0)}
    return parts if groups is None else parts | {"without": without}


def _deleted(
    groups: Leaving,
    counts: tuple[int, ...],
    weights: Callable[[int, tuple[int, ...]], FloatArray],
    target: int,
    rates: FloatArray,
    order: IntArray,
) -> FloatArray:
    """P_FA^N(τ) of a target without each group but its own; ``order`` is who has each rank."""
    total = np.zeros((groups.number, len(counts), rates.shape[1]))
    codes, levels = groups.impostor[order], np.ascontiguousarray(rates.T)
    for group in np.delete(np.arange(groups.number), groups.target[target]):
        kept = np.compress(codes != group, levels, axis=1)
        total[group] = weights(kept.shape[1], counts) @ kept.T
    return total


def target_ranges(sizes: IntArray, most: int) -> list[Range]:
    """Ranges of targets whose sizes add up to at most ``most``, one target at least."""
    total = from_zero(sizes)
    ranges: list[Range] = []
    start = 0
    while start < sizes.size:
        reach = int(np.searchsorted(total, total[start] + most, side="right")) - 1
        ranges.append((start, max(reach, start + 1)))
        start = ranges[-1][1]
    return ranges


@dataclass(frozen=True, eq=False)
class FlatPairs(Ranked):
    """Scores of pairs in memory."""

    pairs: PairScores

    @classmethod
    def of(
        cls,
        pairs: PairScores,
        thresholds: npt.ArrayLike,
        counts: npt.ArrayLike,
        groups: Leaving | None = None,
    ) -> FlatPairs:
        """Check what is asked of some pairs."""
        return cls(Levels.of(thresholds), pairs.possible(counts), groups, pairs)

    def ranges(self) -> list[Range]:
        return target_ranges(np.diff(self.pairs.start[self.pairs.first]), SCORES)

    def ranked(self, xp: Xp, targets: Range) -> Iterator[tuple[FloatArray, IntArray]]:
        pairs, tie = self.pairs, self.pairs.tie
        for target in range(*targets):
            some = slice(*pairs.first[target : target + 2])
            bounds = pairs.start[some.start : some.stop + 1]
            sizes = np.diff(bounds)
            scores = xp.put(pairs.scores[bounds[0] : bounds[-1]])
            above = self.levels.above(xp, scores, xp.repeat(xp.put(sizes)), sizes.size)
            rates, order = closest_first(xp.host(above), sizes, pairs.similarity[some], tie)
            yield rates, pairs.impostor[some][order]


@dataclass(frozen=True, eq=False)
class Rates:
    """P_FA^N(τ) over all targets: ``values`` (counts, thresholds), and ``without`` each group of
    speakers (first axis, empty where no intervals are wanted) at the counts ``fewer`` that remain.
    """

    counts: IntArray
    thresholds: FloatArray
    values: FloatArray
    without: FloatArray = field(default_factory=lambda: np.empty((0, 0, 0)))
    fewer: IntArray = field(default_factory=lambda: np.empty(0, np.int64))

    def up_to(self, count: int) -> Rates:
        """The rates with N ≤ ``count``."""
        some = self.counts <= count
        return Rates(self.counts[some], self.thresholds, self.values[some])

    def deleted(self) -> Iterator[Rates]:
        """The rates without each group of speakers."""
        counts, first = np.unique(self.fewer, return_index=True)
        for values in self.without:
            yield Rates(counts, self.thresholds, values[first])


def crossed_rates(
    crossed: CrossFitted, thresholds: npt.ArrayLike, counts: npt.ArrayLike, groups: Leaving | None
) -> Rates:
    """The middle of the rates that all scores of a pair choose and those that others choose."""
    parts = crossed.whole, *crossed.folds
    jobs = [FlatPairs.of(part, thresholds, counts, groups) for part in parts]
    return rates_of(jobs, crossed.whole.sizes, crossed.whole.per_pair)


def rates_of(jobs: Sequence[Ranked], sizes: IntArray, per_pair: float) -> Rates:
    """Join what all scores chose (first) with what folds chose; ``sizes`` are dealt into folds."""
    levels, counts, groups = jobs[0].levels, jobs[0].counts, jobs[0].groups
    results = []
    for number, job in enumerate(jobs):
        with part(number, len(jobs)):
            parts = list(run(surfaces, job, job.ranges()))
        each = np.concatenate([one["each"] for one in parts])
        means = each.mean(axis=0, keepdims=True)
        if groups is not None:
            total = np.sum([one["without"] for one in parts], axis=0)
            staying = np.clip(total / groups.staying()[:, None, None], 0.0, 1.0)
            means = np.concatenate([means, staying])
        results.append(means)
    whole, *folds = results
    if folds:
        edge = 0.5 / (len(each) * per_pair)
        whole = uncertainty.middle(
            whole, np.mean(folds, axis=0), uncertainty.fold_weight(sizes), edge
        )
    whole = whole[:, :, levels.index]
    fewer = counts if groups is None else groups.fewer(counts)
    return Rates(counts, levels.values[levels.index], whole[0], whole[1:], fewer)


@dataclass(frozen=True)
class ScoreSample:
    """What a model was fitted to where all scores would be too many."""

    targets: int
    per_pair: int


@dataclass(frozen=True, eq=False, repr=False)
class WorstCase(Band):
    """Measured P_FA^N(τ) with its interval; :func:`~unmask.stress.worst_case` makes it.

    It rests on so many ``targets`` with at least so many ``impostors``, and on a median of
    ``per_pair`` scores of a pair; ``split`` tells that those that choose were kept apart.
    """

    metric = "worst_case_false_alarms"
    targets: int
    impostors: int
    per_pair: float
    split: bool

    @classmethod
    def around(
        cls, rates: Rates, jackknife: Jackknife, targets: Targets, per_pair: float, *, split: bool
    ) -> WorstCase:
        """Intervals around rates."""
        low = high = np.full(rates.values.shape, np.nan)
        counts, level, size = rates.counts, jackknife.level, len(targets.target_names)
        if len(rates.without):
            cases = size * targets.max_count / counts
            low, high = uncertainty.interval(rates.values, rates.without, level, cases=cases)
            order = np.argsort(counts, kind="stable")
            # Rates rise with N, and so do the ends: each is moved outwards where it would not.
            low[order[::-1]] = np.minimum.accumulate(low[order[::-1]])
            high[order] = np.maximum.accumulate(high[order])
        band = counts, rates.thresholds, rates.values, low, high, level
        made = len(rates.without), jackknife.seed
        return cls(*band, *made, size, targets.max_count, per_pair, split)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What to be careful about."""
        if not self.split or self.per_pair >= FEW:
            return ()
        sentence = (
            f"{self.per_pair:g} scores a pair (median): the closest impostor is known roughly, and"
            f" rates rest on a correction for it; {FEW} or more would need less of it"
        )
        return (Notice("few-scores", "", sentence),)

    def about(self, c: int, t: int, cell: dict[str, Parameter]) -> dict[str, Any]:
        """Its chance level is N = 1, an impostor whom nobody chose."""
        chance = self.values[self.counts == 1]
        return {
            "chance": float(chance[0, t]) if len(chance) else None,
            "n": {"targets": self.targets, "impostors": self.impostors},
            "params": cell | {"split": self.split},
        }
