"""Worst-case false alarms with N impostors (Sholokhov 2020), exact and by simulation.

An adversary picks, out of N random impostors, the one whose mean score against the target is
highest. With a target's M impostors ordered from the closest, the r-th is the closest of a random
subset of N with probability w_r(N) = C(M−r, N−1)/C(M, N), so P_FA^N(τ) = Σ_r w_r(N)·F_r(τ), where
F_r is the share of the r-th closest impostor's scores above τ, averaged over targets.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unmask.arrays import FloatArray, IntArray, reject_nan
from unmask.detection.bootstrap import Progress
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval
from unmask.scoring.job import Where, run
from unmask.stress.worst_case_checks import as_counts, checked_counts
from unmask.stress.worst_case_flat import FlatPairs, surfaces_of_pairs
from unmask.stress.worst_case_kernels import Levels, closest_weights
from unmask.stress.worst_case_on_device import surfaces_of_pairs_on_device
from unmask.stress.worst_case_pairs import PairScores, as_pairs

_DRAWN = 1 << 24

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
    in size or are missing. A score counts as a false alarm strictly above τ. N = 1 is the ordinary
    false-alarm rate (of pairs weighed alike). Impostors of equal mean score are averaged over
    their orders. With ``proxy`` (scores of another system for the same pairs, or a targets ×
    impostors matrix of similarities) the adversary chooses by the proxy and attacks the real one.
    """
    pairs = as_pairs(scores)
    flat, levels = _asked(pairs, thresholds, counts, proxy)
    totals: dict[int, FloatArray] = {}
    for rates in flat.ranked_rates((0, flat.targets)):
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
    on: str = "local",
    workers: int | None = None,
    state: str | Path | None = None,
    progress: Progress | None = None,
) -> WorstCase:
    """Exact P_FA^N(τ) with percentile intervals from a bootstrap over target speakers.

    ``on``, ``workers`` and ``state`` are those of :func:`worst_case_by_target`.
    """
    intervals = Intervals(replicates, level, seed)
    pairs = as_pairs(scores)
    each = worst_case_by_target(
        pairs,
        thresholds,
        counts=counts,
        proxy=proxy,
        on=on,
        workers=workers,
        state=state,
        progress=progress,
    )
    return intervals.around(each, as_counts(counts), thresholds, impostors=pairs.max_count)


@dataclass(frozen=True)
class Intervals:
    """Percentile intervals from a bootstrap over target speakers."""

    replicates: int
    level: float
    seed: int

    def __post_init__(self) -> None:
        if self.replicates < 2:
            raise InputError(f"bootstrap: expected at least 2 replicates, found {self.replicates}")
        if not 0 < self.level < 1:
            raise InputError(f"level: expected a share between 0 and 1, found {self.level}")

    def around(
        self, each: FloatArray, counts: IntArray, thresholds: npt.ArrayLike, *, impostors: int
    ) -> WorstCase:
        """The mean over targets of their own rates, (targets, counts, thresholds)."""
        targets = each.shape[0]
        rng = np.random.default_rng(self.seed)
        share = np.full(targets, 1 / targets)
        step = max(1, _DRAWN // targets)
        drawn = np.concatenate(
            [
                np.tensordot(
                    rng.multinomial(targets, share, size=min(step, self.replicates - done))
                    / targets,
                    each,
                    axes=1,
                )
                for done in range(0, self.replicates, step)
            ]
        )
        tail = (1 - self.level) / 2
        low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
        return WorstCase(
            counts,
            np.atleast_1d(np.asarray(thresholds, dtype=np.float64)),
            each.mean(axis=0),
            low,
            high,
            self.level,
            self.replicates,
            self.seed,
            targets,
            impostors,
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
