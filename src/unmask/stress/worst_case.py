"""Worst-case false alarms with N impostors (Sholokhov 2020), exact and by simulation.

An adversary picks, out of N random impostors, the one whose mean score against the target is
highest. With a target's M impostors ordered from the closest, the r-th is the closest of a random
subset of N with probability w_r(N) = C(M−r, N−1)/C(M, N), so P_FA^N(τ) = Σ_r w_r(N)·F_r(τ), where
F_r is the share of the r-th closest impostor's scores above τ, averaged over targets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.arrays import FloatArray, IntArray, reject_nan
from unmask.detection.bootstrap import Progress
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval
from unmask.stress.worst_case_pairs import PairScores, as_pairs

_TOGETHER = 32
_NEGLIGIBLE = 1e-200  # subnormal weights change nothing and slow a product twentyfold

Proxy = PairScores | npt.ArrayLike | None


def closest_weights(impostors: int, counts: npt.ArrayLike) -> FloatArray:
    """w_r(N) for every N of ``counts`` (rows) and rank r = 1…M (columns).

    w_1 = N/M, and w_{r+1}/w_r = (M − r − N + 1)/(M − r): products, no factorials.
    """
    n = np.asarray(counts, dtype=np.float64)[:, None]
    r = np.arange(1, impostors)[None, :]
    ratio = np.maximum(impostors - r - n + 1, 0.0) / (impostors - r)
    weights = np.cumprod(np.concatenate([n / impostors, ratio], axis=1), axis=1)
    return np.where(weights < _NEGLIGIBLE, 0.0, weights)


def worst_case_false_alarms(
    scores: PairScores | npt.ArrayLike,
    thresholds: npt.ArrayLike,
    *,
    counts: npt.ArrayLike,
    proxy: Proxy = None,
) -> FloatArray:
    """Exact P_FA^N(τ), an array (counts, thresholds): no sampling.

    ``scores`` is targets × impostors × scores-per-pair, or :class:`PairScores` where pairs differ
    in size or are missing. A score counts as a false alarm strictly above τ. N = 1 is the ordinary
    false-alarm rate (of pairs weighed alike). Impostors of equal mean score are averaged over
    their orders. With ``proxy`` (scores of another system for the same pairs, or a targets ×
    impostors matrix of similarities) the adversary chooses by the proxy and attacks the real one.
    """
    pairs = as_pairs(scores)
    levels, place = _levels(thresholds)
    wanted = checked_counts(counts, pairs)
    totals: dict[int, FloatArray] = {}
    for _, rates in _ranked_rates(pairs, levels, _similarity(pairs, proxy)):
        size = rates.shape[0]
        if size in totals:
            totals[size] += rates
        else:
            totals[size] = rates
    surface = sum(closest_weights(size, wanted) @ total for size, total in totals.items())
    return np.clip(np.asarray(surface) / len(pairs.target_names), 0.0, 1.0)[:, place]


def worst_case_by_target(
    scores: PairScores | npt.ArrayLike,
    thresholds: npt.ArrayLike,
    *,
    counts: npt.ArrayLike,
    proxy: Proxy = None,
    progress: Progress | None = None,
) -> FloatArray:
    """The same for each target alone: an array (targets, counts, thresholds)."""
    pairs = as_pairs(scores)
    levels, place = _levels(thresholds)
    wanted = checked_counts(counts, pairs)
    result = np.empty((len(pairs.target_names), wanted.size, levels.size))
    waiting: dict[int, list[tuple[int, FloatArray]]] = {}

    def settle(size: int) -> None:
        targets, rates = zip(*waiting.pop(size), strict=True)
        product = closest_weights(size, wanted) @ np.concatenate(rates, axis=1)
        parts = product.reshape(wanted.size, len(targets), levels.size)
        result[list(targets)] = parts.transpose(1, 0, 2)

    for target, rates in _ranked_rates(pairs, levels, _similarity(pairs, proxy)):
        size = rates.shape[0]
        waiting.setdefault(size, []).append((target, rates))
        if len(waiting[size]) == _TOGETHER:
            settle(size)
        if progress is not None:
            progress(target + 1, result.shape[0])
    for size in tuple(waiting):
        settle(size)
    return np.clip(result, 0.0, 1.0)[:, :, place]


@dataclass(frozen=True, eq=False)
class WorstCase:
    """P_FA^N(τ) with its interval: ``values``, ``low`` and ``high`` are (counts, thresholds)."""

    counts: IntArray
    thresholds: FloatArray
    values: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    replicates: int
    seed: int
    targets: int
    impostors: int

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """One estimate per (N, τ); the chance level of an attack is N = 1, no choice at all."""
        return tuple(
            Estimate(
                "worst_case_false_alarms",
                float(self.values[c, t]),
                "%",
                Interval(
                    float(self.low[c, t]),
                    float(self.high[c, t]),
                    self.level,
                    "target speaker",
                    self.replicates,
                    self.seed,
                ),
                n={"targets": self.targets, "impostors": self.impostors},
                params={"count": int(count), "threshold": float(threshold)},
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
    replicates: int = 1000,
    level: float = 0.99,
    seed: int = 0,
    progress: Progress | None = None,
) -> WorstCase:
    """Exact P_FA^N(τ) with percentile intervals from a bootstrap over target speakers."""
    if replicates < 2:
        raise InputError(f"bootstrap: expected at least 2 replicates, found {replicates}")
    if not 0 < level < 1:
        raise InputError(f"level: expected a share between 0 and 1, found {level}")
    pairs = as_pairs(scores)
    each = worst_case_by_target(pairs, thresholds, counts=counts, proxy=proxy, progress=progress)
    targets = each.shape[0]
    times = np.random.default_rng(seed).multinomial(
        targets, np.full(targets, 1 / targets), size=replicates
    )
    drawn = np.tensordot(times / targets, each, axes=1)
    tail = (1 - level) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
    return WorstCase(
        checked_counts(counts, pairs),
        np.atleast_1d(np.asarray(thresholds, dtype=np.float64)),
        each.mean(axis=0),
        low,
        high,
        level,
        replicates,
        seed,
        targets,
        pairs.max_count,
    )


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
    levels, place = _levels(thresholds)
    wanted = checked_counts(counts, pairs)
    similarity = pairs.ties(_similarity(pairs, proxy))
    rng = np.random.default_rng(seed)
    rates = np.empty((wanted.size, simulations, levels.size))
    for c, count in enumerate(wanted):
        targets = rng.integers(0, len(pairs.target_names), simulations)
        for t, target in enumerate(targets):
            begin, end = pairs.first[target : target + 2]
            subset = rng.choice(np.arange(begin, end), size=count, replace=False)
            closest = subset[similarity[subset].argmax()]
            own = pairs.scores[pairs.start[closest] : pairs.start[closest + 1]]
            rates[c, t] = (own[:, None] > levels).mean(axis=0)
    error = rates.std(axis=1, ddof=1) / np.sqrt(simulations)
    return rates.mean(axis=1)[:, place], error[:, place]


def checked_counts(counts: npt.ArrayLike, pairs: PairScores) -> IntArray:
    """Whole counts from 1 to the fewest impostors that any target has."""
    values = as_counts(counts)
    if values.max() > pairs.max_count:
        fewest = int(pairs.impostors.argmin())
        raise InputError(
            f"counts: expected at most {pairs.max_count}, the number of impostors of target"
            f" {pairs.target_names[fewest]}, found {values.max()} (larger populations need"
            " extrapolate)"
        )
    return values


def as_counts(counts: npt.ArrayLike) -> IntArray:
    """Whole numbers of impostors of at least 1."""
    given = np.atleast_1d(np.asarray(counts, dtype=np.float64))
    if given.ndim != 1 or given.size == 0:
        raise InputError(f"counts: expected a list of numbers, found shape {given.shape}")
    bad = ~(np.isfinite(given) & (given >= 1) & (given == np.floor(given)))
    if bad.any():
        raise InputError(
            f"counts: expected whole numbers of at least 1, found {given[bad.argmax()]:g}"
        )
    return given.astype(np.int64)


def _levels(thresholds: npt.ArrayLike) -> tuple[FloatArray, IntArray]:
    """Distinct thresholds from low to high, and where each given one stands among them."""
    given = np.atleast_1d(np.asarray(thresholds, dtype=np.float64))
    if given.ndim != 1 or given.size == 0:
        raise InputError(f"thresholds: expected a list of numbers, found shape {given.shape}")
    reject_nan(given, "threshold")
    levels, place = np.unique(given, return_inverse=True)
    return levels, place


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


def _ranked_rates(
    pairs: PairScores, levels: FloatArray, similarity: FloatArray
) -> Iterator[tuple[int, FloatArray]]:
    """For each target: false-alarm rates (ranks, thresholds) of its impostors, closest first."""
    tied = pairs.ties(similarity)
    width = levels.size + 1
    for target in range(len(pairs.target_names)):
        begin, end = pairs.first[target : target + 2]
        bounds = pairs.start[begin : end + 1]
        sizes = pairs.sizes[begin:end]
        above = np.searchsorted(levels, pairs.scores[bounds[0] : bounds[-1]])
        cell = np.repeat(np.arange(sizes.size) * width, sizes) + above
        table = np.bincount(cell, minlength=sizes.size * width).reshape(-1, width)
        reached = table[:, ::-1].cumsum(axis=1)[:, -2::-1]
        rates = reached / sizes[:, None]
        order = np.argsort(-tied[begin:end], kind="stable")
        yield target, _averaged_over_ties(rates[order], tied[begin:end][order])


def _averaged_over_ties(rates: FloatArray, tied: FloatArray) -> FloatArray:
    """Within a run of equal similarity every order is as likely: each rank gets the run's mean."""
    starts = np.flatnonzero(np.concatenate([[True], tied[1:] != tied[:-1]]))
    if starts.size == tied.size:
        return rates
    sizes = np.diff(np.append(starts, tied.size))
    means = np.add.reduceat(rates, starts, axis=0) / sizes[:, None]
    return np.asarray(np.repeat(means, sizes, axis=0))
