"""Worst-case false alarms with N impostors (Sholokhov 2020), exact and by simulation.

An adversary picks, out of N random impostors, the one whose mean score against the target is
highest. With a target's M impostors ordered from the closest, the r-th is the closest of a random
subset of N with probability w_r(N) = C(M−r, N−1)/C(M, N), so P_FA^N(τ) = Σ_r w_r(N)·F_r(τ), where
F_r is the share of the r-th closest impostor's scores above τ, averaged over targets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray, reject_nan
from unmask.engine import Progress
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval
from unmask.run import HERE, Arrays, Where, run
from unmask.stress.worst_case.checks import as_counts, checked_counts
from unmask.stress.worst_case.flat import FlatPairs, surfaces_of_pairs
from unmask.stress.worst_case.jackknife import (
    GROUPS,
    METHOD,
    Groups,
    checked_groups,
    checked_level,
    interval,
)
from unmask.stress.worst_case.kernels import Levels, closest_weights
from unmask.stress.worst_case.on_device import surfaces_of_pairs_on_device
from unmask.stress.worst_case.pairs import PairScores, as_pairs
from unmask.stress.worst_case.split import Crossed, few_scores, middle, proxied, share_of

Proxy = PairScores | npt.ArrayLike | None


def worst_case_false_alarms(
    scores: PairScores | npt.ArrayLike,
    thresholds: npt.ArrayLike,
    *,
    counts: npt.ArrayLike,
    proxy: Proxy = None,
) -> FloatArray:
    """Exact P_FA^N(τ), an array (counts, thresholds): no sampling.

    ``scores`` is targets × impostors × scores-per-pair, or :class:`PairScores` where pairs differ
    in size or are missing. A score counts as a false alarm strictly above τ. N = 1 is the rate of
    an impostor whom nobody chose, the mean over pairs of speakers. Impostors of equal mean score
    are averaged over their orders. With ``proxy`` (scores of another system for the same pairs, or
    a targets × impostors matrix of similarities) the adversary chooses by the proxy and attacks the
    real one.
    """
    pairs = as_pairs(scores)
    flat, levels = _asked(pairs, thresholds, counts, proxy)
    totals: dict[int, FloatArray] = {}
    for rates, _ in flat.ranked_rates((0, flat.targets)):
        size = rates.shape[0]
        if size in totals:
            totals[size] += rates
        else:
            totals[size] = rates
    surface = sum(closest_weights(size, flat.counts) @ total for size, total in totals.items())
    return np.clip(np.asarray(surface) / flat.targets, 0.0, 1.0)[:, levels.place]


def worst_case_by_target(
    scores: PairScores | npt.ArrayLike,
    thresholds: npt.ArrayLike,
    *,
    counts: npt.ArrayLike,
    proxy: Proxy = None,
    on: str = "local",
    workers: int | None = None,
    state: str | Path | None = None,
    progress: Progress | None = None,
) -> FloatArray:
    """The same for each target alone: an array (targets, counts, thresholds).

    ``on``, ``workers`` and ``state`` say where ranges of targets are counted, as in
    :func:`unmask.cross_pairing`; the result is the same.
    """
    where = Where(on, workers, state)
    flat, levels = _asked(as_pairs(scores), thresholds, counts, proxy)
    found = run(
        surfaces_of_pairs,
        flat,
        flat.shares(),
        where=where,
        on_device=surfaces_of_pairs_on_device,
        progress=progress,
    )
    return np.concatenate([part["each"] for part in found])[:, :, levels.place]


@dataclass(frozen=True, eq=False)
class Rates:
    """P_FA^N(τ) over all targets, (counts, thresholds), and the same without each group of speakers
    (first axis; none where no intervals are wanted), at counts of at most what then remains.
    """

    values: FloatArray
    without: FloatArray | None
    fewer: IntArray


def crossed_rates(
    crossed: Crossed,
    thresholds: npt.ArrayLike,
    counts: npt.ArrayLike,
    groups: Groups | None,
    *,
    where: Where = HERE,
    progress: Progress | None = None,
) -> Rates:
    """The middle of the rates that all scores of a pair choose and those that others choose."""
    found = []
    levels = Levels.of(thresholds)
    parts = (crossed.whole, *crossed.folds)
    for number, part in enumerate(parts):
        wanted = checked_counts(counts, part.impostors, part.target_names)
        flat = FlatPairs.of(part, part.similarity, levels.values, wanted, groups)
        tasks = run(
            surfaces_of_pairs,
            flat,
            flat.shares(),
            where=where,
            on_device=surfaces_of_pairs_on_device,
            progress=stage(progress, number, len(parts)),
        )
        found.append(joined(tasks, groups))
    edge = 0.5 / (len(crossed.whole.target_names) * crossed.per_pair)
    share = share_of(crossed.whole.sizes)
    return middle_of(found, share, edge, as_counts(counts), groups, levels.place)


def stage(progress: Progress | None, number: int, stages: int) -> Progress | None:
    """What is told about one of several jobs of about the same size."""
    if progress is None:
        return None
    return lambda done, total: progress(number * total + done, stages * total)


def joined(tasks: Iterable[Arrays], groups: Groups | None) -> tuple[FloatArray, FloatArray | None]:
    """Means over targets from the parts of a job: of all, and of those that stay."""
    parts = list(tasks)
    each = np.concatenate([part["each"] for part in parts]).mean(axis=0)
    if groups is None:
        return each, None
    total = np.sum([part["without"] for part in parts], axis=0)
    return each, np.clip(total / groups.staying()[:, None, None], 0.0, 1.0)


def middle_of(
    found: Sequence[tuple[FloatArray, FloatArray | None]],
    share: float,
    edge: float,
    counts: IntArray,
    groups: Groups | None,
    place: IntArray,
) -> Rates:
    """Join what all scores chose (first) with what the folds chose (the others), if any."""
    (every, gone), *folds = found
    if folds:
        every = middle(every, np.mean([one for one, _ in folds], axis=0), share, edge)
        if gone is not None:
            others = np.mean([one for _, one in folds if one is not None], axis=0)
            gone = middle(gone, others, share, edge)
    fewer = counts if groups is None else np.minimum(counts, groups.least)
    return Rates(every[:, place], None if gone is None else gone[:, :, place], fewer)


@dataclass(frozen=True, eq=False)
class WorstCase:
    """P_FA^N(τ) with its interval: ``values``, ``low`` and ``high`` are (counts, thresholds).

    ``groups`` of speakers were left out in turn (0: no intervals, ``low`` and ``high`` are NaN).
    """

    counts: IntArray
    thresholds: FloatArray
    values: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    groups: int
    seed: int
    targets: int
    impostors: int
    per_pair: float
    split: bool

    @classmethod
    def around(
        cls,
        rates: Rates,
        thresholds: npt.ArrayLike,
        counts: IntArray,
        *,
        level: float,
        seed: int,
        targets: int,
        impostors: int,
        per_pair: float,
        split: bool,
    ) -> WorstCase:
        """Intervals around rates."""
        low = high = np.full(rates.values.shape, np.nan)
        if rates.without is not None:
            cases = targets * impostors / counts
            low, high = interval(rates.values, rates.without, level, cases=cases)
            order = np.argsort(counts, kind="stable")
            # Rates rise with N, and so do the ends: each is moved outwards where it would not.
            low[order[::-1]] = np.minimum.accumulate(low[order[::-1]])
            high[order] = np.maximum.accumulate(high[order])
        return cls(
            counts,
            np.atleast_1d(np.asarray(thresholds, dtype=np.float64)),
            rates.values,
            low,
            high,
            level,
            0 if rates.without is None else len(rates.without),
            seed,
            targets,
            impostors,
            per_pair,
            split,
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to be careful about."""
        return few_scores(self.per_pair) if self.split else ()

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """One estimate per (N, τ); its chance level is N = 1, an impostor whom nobody chose."""
        chance = self.values[self.counts == 1]
        return tuple(
            Estimate(
                "worst_case_false_alarms",
                float(self.values[c, t]),
                "%",
                Interval(
                    float(self.low[c, t]),
                    float(self.high[c, t]),
                    self.level,
                    METHOD,
                    self.groups,
                    self.seed,
                )
                if self.groups
                else None,
                chance=float(chance[0, t]) if len(chance) else None,
                n={"targets": self.targets, "impostors": self.impostors},
                params={
                    "count": int(count),
                    "threshold": float(threshold),
                    "split": self.split,
                },
            )
            for c, count in enumerate(self.counts)
            for t, threshold in enumerate(self.thresholds)
        )


def measure_worst_case(
    scores: PairScores | npt.ArrayLike,
    thresholds: npt.ArrayLike,
    *,
    counts: npt.ArrayLike,
    proxy: Proxy = None,
    split: bool = True,
    groups: int = GROUPS,
    level: float = 0.99,
    seed: int = 0,
    on: str = "local",
    workers: int | None = None,
    state: str | Path | None = None,
    progress: Progress | None = None,
) -> WorstCase:
    """P_FA^N(τ) with intervals over speakers, as targets and as impostors.

    With ``split`` the scores that choose the closest impostor are not counted as those that attack
    (:mod:`.worst_case_split`); without it the rates are those of :func:`worst_case_false_alarms`. A
    proxy's scores choose for themselves and need no split. ``groups`` of speakers leave in turn
    (:mod:`.worst_case_jackknife`), 0 gives no intervals. ``on``, ``workers`` and ``state`` are
    those of :func:`worst_case_by_target`.
    """
    where = Where(on, workers, state)
    checked_level(level)
    checked_groups(groups)
    pairs = as_pairs(scores)
    crossed = crossed_pairs(pairs, proxy, split=split, seed=seed)
    dealt = Groups.of(pairs, groups, seed=seed) if groups else None
    rates = crossed_rates(crossed, thresholds, counts, dealt, where=where, progress=progress)
    return WorstCase.around(
        rates,
        thresholds,
        as_counts(counts),
        level=level,
        seed=seed,
        targets=len(pairs.target_names),
        impostors=pairs.max_count,
        per_pair=crossed.per_pair,
        split=bool(crossed.folds),
    )


def crossed_pairs(pairs: PairScores, proxy: Proxy, *, split: bool, seed: int) -> Crossed:
    """Pairs with the scores that choose: their own in folds, or a proxy's."""
    if proxy is not None:
        return Crossed(proxied(pairs, _similarity(pairs, proxy)))
    return Crossed.of(pairs, split=split, seed=seed)


def simulate_worst_case(
    scores: PairScores | npt.ArrayLike,
    thresholds: npt.ArrayLike,
    *,
    counts: npt.ArrayLike,
    simulations: int = 1000,
    proxy: Proxy = None,
    seed: int = 0,
) -> tuple[FloatArray, FloatArray]:
    """Algorithm 1: mean and standard error of P_FA^N(τ) over random targets and subsets."""
    if simulations < 2:
        raise InputError(f"simulations: expected at least 2, found {simulations}")
    pairs = as_pairs(scores)
    levels = Levels.of(thresholds)
    wanted = checked_counts(counts, pairs.impostors, pairs.target_names)
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
    return rates.mean(axis=1)[:, levels.place], error[:, levels.place]


def _asked(
    pairs: PairScores, thresholds: npt.ArrayLike, counts: npt.ArrayLike, proxy: Proxy
) -> tuple[FlatPairs, Levels]:
    levels = Levels.of(thresholds)
    wanted = checked_counts(counts, pairs.impostors, pairs.target_names)
    return FlatPairs.of(pairs, _similarity(pairs, proxy), levels.values, wanted), levels


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
