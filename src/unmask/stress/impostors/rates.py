"""Worst-case false alarms with N impostors (Sholokhov 2020), exact and by simulation.

An adversary picks, out of N random impostors, the one whose mean score against the target is
highest; P_FA^N(τ) is how often that impostor's scores lie above τ (eq. 4 with the choice of
Algorithm 1), in expectation over all subsets (:mod:`.ranks`) and averaged over targets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray, reject_nan
from unmask.errors import InputError
from unmask.estimate import Estimate
from unmask.run import NUMPY, Arrays, Range, Xp, part, run
from unmask.stress.impostors.pair_scores import PairScores, as_pairs, possible_counts
from unmask.stress.impostors.ranks import (
    Levels,
    Ranked,
    closest_first,
    closest_weights,
    surfaces,
    target_ranges,
)
from unmask.stress.impostors.uncertainty import (
    FEW,
    METHOD,
    Band,
    Crossed,
    Groups,
    Jackknife,
    fold_weight,
    interval,
    middle,
)

SCORES = 1 << 21
Proxy = PairScores | npt.ArrayLike | None


def worst_case_false_alarms(
    scores: PairScores | npt.ArrayLike,
    thresholds: npt.ArrayLike,
    *,
    counts: npt.ArrayLike,
    proxy: Proxy = None,
) -> FloatArray:
    """Exact P_FA^N(τ), an array (counts, thresholds): no sampling (Sholokhov 2020, eq. 4).

    ``scores`` is targets × impostors × scores-per-pair, or :class:`PairScores` where pairs differ
    in size or are missing. A score counts as a false alarm strictly above τ, one of ``thresholds``.
    N are the ``counts``; N = 1 is the rate of an impostor whom nobody chose, the mean over pairs of
    speakers. Impostors of equal mean score are averaged over their orders. With ``proxy`` (scores
    of another system for the same pairs, or a targets × impostors matrix of similarities) the
    adversary chooses by the proxy and attacks the real one.
    """
    flat = _flat(as_pairs(scores), thresholds, counts, proxy)
    totals: dict[int, FloatArray] = {}
    for rates, _ in flat.ranked(NUMPY, (0, flat.first.size - 1)):
        size = rates.shape[0]
        totals[size] = totals[size] + rates if size in totals else rates
    surface = sum(closest_weights(size, flat.counts) @ total for size, total in totals.items())
    mean = np.clip(np.asarray(surface) / (flat.first.size - 1), 0.0, 1.0)
    return np.asarray(mean[:, flat.levels.index])


def worst_case_by_target(
    scores: PairScores | npt.ArrayLike,
    thresholds: npt.ArrayLike,
    *,
    counts: npt.ArrayLike,
    proxy: Proxy = None,
) -> FloatArray:
    """The same for each target alone, (targets, counts, thresholds), on the current place."""
    flat = _flat(as_pairs(scores), thresholds, counts, proxy)
    each = [one["each"] for one in run(surfaces, flat, flat.ranges())]
    return np.asarray(np.concatenate(each)[:, :, flat.levels.index])


def simulate_worst_case(
    scores: PairScores | npt.ArrayLike,
    thresholds: npt.ArrayLike,
    *,
    counts: npt.ArrayLike,
    simulations: int = 1000,
    proxy: Proxy = None,
    seed: int = 0,
) -> tuple[FloatArray, FloatArray]:
    """Algorithm 1 of Sholokhov 2020: mean and standard error of P_FA^N(τ) over random draws.

    A target and N impostors are drawn ``simulations`` times for each N, from ``seed``; ``scores``,
    ``thresholds``, ``counts`` and ``proxy`` are those of :func:`worst_case_false_alarms`.
    """
    if simulations < 2:
        raise InputError(f"simulations: expected at least 2, found {simulations}")
    pairs = as_pairs(scores)
    levels = Levels.of(thresholds)
    wanted = possible_counts(counts, pairs.impostors, pairs.target_names)
    closeness = pairs.closeness(_similarity(pairs, proxy))
    rng = np.random.default_rng(seed)
    rates = np.empty((wanted.size, simulations, levels.values.size))
    for c, count in enumerate(wanted):
        targets = rng.integers(0, len(pairs.target_names), simulations)
        for t, target in enumerate(targets):
            begin, end = pairs.first[target : target + 2]
            subset = rng.choice(np.arange(begin, end), size=count, replace=False)
            closest = subset[closeness[subset].argmax()]
            own = pairs.scores[pairs.start[closest] : pairs.start[closest + 1]]
            rates[c, t] = (own[:, None] > levels.values).mean(axis=0)
    error = rates.std(axis=1, ddof=1) / np.sqrt(simulations)
    return rates.mean(axis=1)[:, levels.index], error[:, levels.index]


@dataclass(frozen=True, eq=False)
class FlatPairs:
    """Scores of pairs as the tasks of a job share them, and what is asked of them.

    A target's pairs begin at ``first``, a pair's scores at ``start``. The adversary chooses by
    ``similarity``, where differences up to ``tie`` are none.
    """

    scores: FloatArray
    start: IntArray
    first: IntArray
    impostor: IntArray
    similarity: FloatArray
    tie: float
    levels: Levels
    counts: IntArray
    groups: Groups | None

    @classmethod
    def of(
        cls,
        pairs: PairScores,
        similarity: FloatArray,
        levels: Levels,
        counts: npt.ArrayLike,
        groups: Groups | None = None,
    ) -> FlatPairs:
        """Pairs chosen by these similarities."""
        possible = possible_counts(counts, pairs.impostors, pairs.target_names)
        flat = pairs.scores, pairs.start, pairs.first, pairs.impostor
        return cls(*flat, similarity, pairs.tie(similarity), levels, possible, groups)

    def ranges(self) -> list[Range]:
        """Ranges of targets with about as many scores."""
        return target_ranges(np.diff(self.start[self.first]), SCORES)

    def ranked(self, xp: Xp, targets: Range) -> Iterator[tuple[FloatArray, IntArray]]:
        """Rates of each target's impostors (ranks, levels), and who has each rank."""
        for target in range(*targets):
            begin, end = self.first[target : target + 2]
            bounds = self.start[begin : end + 1]
            sizes = np.diff(bounds)
            scores = xp.put(self.scores[bounds[0] : bounds[-1]])
            above = self.levels.above(xp, scores, xp.repeat(xp.put(sizes)), end - begin)
            rates, order = closest_first(
                xp.host(above), sizes, self.similarity[begin:end], self.tie
            )
            yield rates, self.impostor[begin:end][order]


def _flat(
    pairs: PairScores, thresholds: npt.ArrayLike, counts: npt.ArrayLike, proxy: Proxy
) -> FlatPairs:
    return FlatPairs.of(pairs, _similarity(pairs, proxy), Levels.of(thresholds), counts)


def _similarity(pairs: PairScores, proxy: Proxy) -> FloatArray:
    if proxy is None:
        return pairs.similarity
    if isinstance(proxy, PairScores):
        return pairs.similarity_of(proxy)
    values = np.asarray(proxy, dtype=np.float64)
    shape = (len(pairs.target_names), len(pairs.impostor_names))
    if values.ndim not in (2, 3) or values.shape[:2] != shape:
        raise InputError(
            f"proxy: expected {shape[0]} targets × {shape[1]} impostors, found shape {values.shape}"
        )
    reject_nan(values.reshape(-1), "proxy")
    means = values if values.ndim == 2 else values.mean(axis=2)
    return np.asarray(means[pairs.target, pairs.impostor])


def crossed_pairs(pairs: PairScores, proxy: Proxy, *, split: bool, seed: int) -> Crossed:
    """Pairs with the scores that choose: their own in folds, or a proxy's."""
    if proxy is not None:
        return Crossed(pairs.attacked(pairs.scores, pairs.sizes, _similarity(pairs, proxy)))
    return Crossed.of(pairs, split=split, seed=seed)


@dataclass(frozen=True, eq=False)
class Rates:
    """P_FA^N(τ) over all targets: ``values`` (counts, thresholds).

    ``without`` holds the same without each group of speakers (first axis; none where no intervals
    are wanted), at the counts ``fewer`` that then remain.
    """

    counts: IntArray
    thresholds: FloatArray
    values: FloatArray
    without: FloatArray | None = None
    fewer: IntArray | None = None


def crossed_rates(
    crossed: Crossed, thresholds: npt.ArrayLike, counts: npt.ArrayLike, groups: Groups | None
) -> Rates:
    """The middle of the rates that all scores of a pair choose and those that others choose."""
    levels = Levels.of(thresholds)
    jobs = [
        FlatPairs.of(one, one.similarity, levels, counts, groups)
        for one in (crossed.whole, *crossed.folds)
    ]
    edge = 0.5 / (len(crossed.whole.target_names) * crossed.per_pair)
    return rates_of(jobs, groups, fold_weight(crossed.whole.sizes), edge, levels)


def rates_of(
    jobs: Sequence[Ranked], groups: Groups | None, weight: float, edge: float, levels: Levels
) -> Rates:
    """Join what all scores chose (first) with what the folds chose (the others), if any."""
    results = []
    for number, job in enumerate(jobs):
        with part(number, len(jobs)):
            results.append(_mean(run(surfaces, job, job.ranges()), groups))
    (values, without), *folds = results
    if folds:
        values = middle(values, np.mean([one for one, _ in folds], axis=0), weight, edge)
        if without is not None:
            others = np.mean([one for _, one in folds if one is not None], axis=0)
            without = middle(without, others, weight, edge)
    counts = jobs[0].counts
    return Rates(
        counts,
        levels.values[levels.index],
        values[:, levels.index],
        None if without is None else without[:, :, levels.index],
        counts if groups is None else groups.fewer(counts),
    )


def _mean(results: Iterable[Arrays], groups: Groups | None) -> tuple[FloatArray, FloatArray | None]:
    """Means over targets from the parts of a job: of all, and of those that stay."""
    parts = list(results)
    each = np.concatenate([one["each"] for one in parts]).mean(axis=0)
    if groups is None:
        return each, None
    total = np.sum([one["without"] for one in parts], axis=0)
    return each, np.clip(total / groups.staying()[:, None, None], 0.0, 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class WorstCase(Band):
    """Measured P_FA^N(τ) with its interval; :func:`~unmask.stress.worst_case` makes it.

    It rests on so many ``targets`` with at least so many ``impostors``, and on a median of
    ``per_pair`` scores of a pair; ``split`` tells that those that choose were kept apart.
    """

    targets: int
    impostors: int
    per_pair: float
    split: bool

    @classmethod
    def around(
        cls,
        rates: Rates,
        jackknife: Jackknife,
        *,
        targets: int,
        impostors: int,
        per_pair: float,
        split: bool,
    ) -> WorstCase:
        """Intervals around rates."""
        low = high = np.full(rates.values.shape, np.nan)
        counts, level = rates.counts, jackknife.level
        if rates.without is not None:
            cases = targets * impostors / counts
            low, high = interval(rates.values, rates.without, level, cases=cases)
            order = np.argsort(counts, kind="stable")
            # Rates rise with N, and so do the ends: each is moved outwards where it would not.
            low[order[::-1]] = np.minimum.accumulate(low[order[::-1]])
            high[order] = np.maximum.accumulate(high[order])
        groups = 0 if rates.without is None else len(rates.without)
        band = counts, rates.thresholds, rates.values, low, high, level, groups, jackknife.seed
        return cls(*band, targets, impostors, per_pair, split)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to be careful about."""
        if not self.split or self.per_pair >= FEW:
            return ()
        return (
            f"{self.per_pair:g} scores a pair (median): the closest impostor is known roughly, and"
            f" rates rest on a correction for it; {FEW} or more would need less of it",
        )

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """One estimate per (N, τ); its chance level is N = 1, an impostor whom nobody chose."""
        chance = self.values[self.counts == 1]
        return tuple(
            Estimate(
                "worst_case_false_alarms",
                float(self.values[c, t]),
                "%",
                self.interval_at(c, t, METHOD),
                chance=float(chance[0, t]) if len(chance) else None,
                n={"targets": self.targets, "impostors": self.impostors},
                params={"count": int(count), "threshold": float(threshold), "split": self.split},
            )
            for c, count in enumerate(self.counts)
            for t, threshold in enumerate(self.thresholds)
        )
