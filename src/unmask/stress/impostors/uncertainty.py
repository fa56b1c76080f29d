"""What few scores and few speakers ask for: scores that choose kept apart, and intervals.

**Split.** The mean of few scores is the location of a pair plus noise, and choosing by it prefers
pairs whose noise was high. Where the same scores attack, the rate comes out too high; where others
do, too low, for the choice is worse than that of an adversary who knows the pairs well. With normal
locations of variance s² and noise of variance v, the closest lies √(1 + v/s²) times too far out in
the first case and 1/√(1 + v/s²) in the second. Other scores are fewer, with K folds by a factor
1 − 1/K. So a rate lies between the two on the normal scale,

    P = Φ(w·Φ⁻¹(P_all) + (1 − w)·Φ⁻¹(P_other)),  w = K/(2K − 1),

where P_all is chosen by all scores of a pair and attacked with all of them, and P_other is attacked
with each of up to four folds of a pair's scores, chosen by the other folds (K = 4, w = 4/7).

**Jackknife.** Targets and impostors are the same people, so a speaker who leaves is gone as a
target and as an impostor of everybody else. Speakers are dealt into G groups; with θ_g the log-odds
of a rate without group g, the variance is (G − 1)/G·Σ(θ_g − mean θ)², and the interval is
θ ± 0.9·t·√variance with t of Student's distribution with G − 1 degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaincinv, expit, logit, ndtr, ndtri

from unmask.base import (
    BoolArray,
    FloatArray,
    IntArray,
    Tabular,
    jackknife_error,
    quantile_t,
    scattered,
)
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval, Parameter
from unmask.stress.impostors.pair_scores import PairScores, Proxy, from_zero

FOLDS = 4
FEW = 30
"""Scores of a pair below which a warning is due."""

GROUPS = 15
"""Groups of speakers, each left out once."""

PAIRS = 0.9
"""Share of the jackknife's error that measured rates need: it counts the noise of single pairs of
speakers twice, once for each of them, and coverage over simulated populations asks for this."""

LEVEL = 0.95
_LEAST_GROUPS = 5
_FEW_CASES = 10.0


@dataclass(frozen=True)
class Jackknife:
    """How intervals are made: ``groups`` of speakers, dealt by ``seed``, leave in turn (0: no)."""

    groups: int = GROUPS
    level: float = LEVEL
    seed: int = 0

    def __post_init__(self) -> None:
        if self.groups < 0 or 0 < self.groups < _LEAST_GROUPS:
            raise InputError(
                f"jackknife: expected 0 (no intervals) or at least {_LEAST_GROUPS} groups of"
                f" speakers, found {self.groups}"
            )
        if not 0 < self.level < 1:
            raise InputError(f"level: expected a share between 0 and 1, found {self.level}")

    def of(self, pairs: PairScores) -> Leaving | None:
        """The speakers of some pairs in groups, if intervals are wanted. One name is one person,
        unless someone is their own impostor: then the two sides are dealt apart.
        """
        if not self.groups:
            return None
        used, names = np.unique(pairs.impostor), pairs.impostor_names
        code = {names[k]: index for index, k in enumerate(used)}
        own = np.array([code.get(name, -1) for name in pairs.target_names])
        among = np.full(len(names), -1)
        among[used] = np.arange(used.size)
        apart = bool((own[pairs.target] == among[pairs.impostor]).any())
        others = np.arange(own.size) if apart else np.flatnonzero(own < 0)
        own[others] = used.size + np.arange(others.size)
        group = np.full(len(names), -1)

        def least(dealt: IntArray) -> int:
            size = int(dealt.max()) + 1
            group[used] = dealt[: used.size]
            leaving = np.bincount(
                pairs.target * size + group[pairs.impostor], minlength=own.size * size
            )
            return int((pairs.impostors[:, None] - leaving.reshape(own.size, size)).min())

        made = self.dealt(used.size + others.size, least)
        return replace(made, target=made.target[own], impostor=group)

    def dealt(self, speakers: int, least: Callable[[IntArray], int]) -> Leaving:
        """Even groups; one for each speaker where a target would lose all (``least``) impostors."""
        for size in (-(-speakers // -(-speakers // self.groups)), speakers):
            group = np.random.default_rng(self.seed).permutation(speakers) % size
            remaining = least(group)
            if remaining > 0:
                return Leaving(size, group, group, remaining)
        raise InputError("jackknife: a target loses all impostors with a single speaker")


@dataclass(frozen=True, eq=False, repr=False)
class Band(Tabular):
    """Rates (counts, thresholds) with an interval; ``groups`` of speakers left in turn (0: NaN
    ends).
    """

    metric: ClassVar[str]
    method: ClassVar[str] = "speaker,jackknife of groups"

    counts: IntArray
    thresholds: FloatArray
    values: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    groups: int
    seed: int

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """One estimate per (N, τ)."""
        estimates = []
        for c, t in np.ndindex(self.values.shape):
            value, low, high = (float(one[c, t]) for one in (self.values, self.low, self.high))
            made = Interval(low, high, self.level, self.method, self.groups, self.seed)
            count, threshold = int(self.counts[c]), float(self.thresholds[t])
            about = self.about(c, t, {"count": count, "threshold": threshold})
            interval = made if self.groups else None
            estimates.append(Estimate(self.metric, value, "%", interval, **about))
        return tuple(estimates)

    def about(self, c: int, t: int, cell: dict[str, Parameter]) -> dict[str, Any]:
        """What else is known of the rate of a cell."""
        return {"params": cell}


@dataclass(frozen=True, eq=False)
class CrossFitted:
    """Pairs, the ``whole`` of them as chosen, and folds that attack what the others chose."""

    pairs: PairScores
    whole: PairScores
    folds: tuple[PairScores, ...] = ()

    @classmethod
    def of(
        cls, pairs: PairScores, proxy: Proxy = None, *, split: bool = True, seed: int = 0
    ) -> CrossFitted:
        """Deal the scores of each pair; pairs chosen by other scores (``means``) stay whole."""
        whole = pairs.chosen_by(proxy)
        if not split or whole.means is not None:
            return cls(pairs, whole)
        sizes = pairs.sizes
        pair = np.repeat(np.arange(len(pairs)), sizes)
        # By what the scores are, drawn, not by where they stand.
        contents = np.ascontiguousarray(pairs.scores, dtype=np.float64).view(np.uint64)
        order = np.lexsort((scattered(contents, seed), pair))
        scores = pairs.scores[order]
        total = np.add.reduceat(scores, pairs.start[:-1])
        folds = []
        for attack in attacking(sizes):
            count = np.bincount(pair[attack], minlength=len(pairs))
            part = np.bincount(pair[attack], scores[attack], minlength=len(pairs))
            means = (total - part) / (sizes - count)
            folds.append(replace(pairs, scores=scores[attack], start=from_zero(count), means=means))
        return cls(pairs, whole, tuple(folds))


def attacking(sizes: IntArray) -> Iterator[BoolArray]:
    """For each fold, which of things in runs of these sizes attack: every fourth, one of fewer."""
    run = np.repeat(np.arange(sizes.size), sizes)
    rank = np.arange(run.size) - from_zero(sizes)[run]
    most = np.minimum(sizes, FOLDS)
    for fold in range(min(FOLDS, int(sizes.max()))):
        yield rank % most[run] == (fold % most)[run]


def fold_weight(sizes: IntArray) -> float:
    """w, the weight of the rate that all scores chose, from their number (or of utterances)."""
    folds = float(np.minimum(sizes, FOLDS).mean())
    return folds / (2 * folds - 1)


def middle(every: FloatArray, other: FloatArray, weight: float, edge: float) -> FloatArray:
    """Between two rates on the normal scale, ``edge`` away from 0 and 1 if not both are."""
    inner = ndtr(
        weight * ndtri(np.clip(every, edge, 1 - edge))
        + (1 - weight) * ndtri(np.clip(other, edge, 1 - edge))
    )
    same = (every == other) | (np.maximum(every, other) <= 0) | (np.minimum(every, other) >= 1)
    return np.asarray(np.where(same, every, inner))


@dataclass(frozen=True, eq=False)
class Leaving:
    """The group of each target and of each impostor; ``least`` impostors always remain."""

    number: int
    target: IntArray
    impostor: IntArray
    least: int

    def staying(self) -> IntArray:
        """Targets that remain without each group."""
        return self.target.size - np.bincount(self.target, minlength=self.number)

    def fewer(self, counts: IntArray) -> IntArray:
        """Counts of at most the impostors that always remain."""
        return np.minimum(counts, self.least)


def log_odds(rates: FloatArray, size: FloatArray | float) -> FloatArray:
    """Log-odds of rates of ``size`` cases, half a case away from 0 and 1."""
    return np.asarray(logit((size * np.clip(rates, 0.0, 1.0) + 0.5) / (size + 1)))


def interval(
    values: FloatArray, without: FloatArray, level: float, *, cases: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Bounds of rates (counts, thresholds) from those without each group (first axis). ``cases`` is
    the number of choices behind each count, targets × impostors/N: a rate of 0 is taken as half a
    case, and an end with fewer than ten cases lies no nearer than that of so many independent
    choices (Clopper–Pearson). So bounds lie within [0, 1] and are never of zero width.
    """
    size = np.broadcast_to(cases[:, None], values.shape)
    half = PAIRS * quantile_t(len(without), level) * jackknife_error(log_odds(without, size))
    inner = np.clip(values, 1e-12, 1 - 1e-12)
    low = np.minimum(expit(logit(inner) - half), expit(log_odds(values, size) - half))
    high = np.maximum(expit(logit(inner) + half), expit(log_odds(values, size) + half))
    hits, others = size * values, size * (1 - values)
    share = 1 - (1 - level) / 2
    upper = betaincinv(hits + 1, np.maximum(others, 1e-9), share)
    lower = 1 - betaincinv(others + 1, np.maximum(hits, 1e-9), share)
    high = np.where(hits < _FEW_CASES, np.maximum(high, upper), high)
    low = np.where(others < _FEW_CASES, np.minimum(low, lower), low)
    low = np.where(values <= 0, 0.0, np.minimum(low, values))
    return low, np.where(values >= 1, 1.0, np.maximum(high, values))
