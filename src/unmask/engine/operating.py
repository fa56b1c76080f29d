"""A ROC polygon and its hull: operating points on it, and the blocks of pool adjacent violators.

The blocks of the best monotone map from scores to log-likelihood ratios are the edges of the hull.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import NamedTuple

import numpy as np

from unmask.base import FloatArray, IntArray, lazy
from unmask.errors import InputError

EER_ESTIMATORS = ("rocch", "raw", "kaldi", "speechbrain", "asvspoof")
_WIDER, _STRICTER, MARKS = 16.0, 32.0, 129
_DIGITS = 17
"""Significant digits that tell any two numbers of 64 bits apart."""
_DIGITS_OF_MODELS = 4
"""Significant digits of a threshold that a model gives."""
_EXACTLY = Context(prec=1200)


class OperatingPoint(NamedTuple):
    """A number, the threshold that gives it (accept scores of at least it) and its error rates.

    The threshold is NaN where none gives it: scores of +inf can never be rejected.
    """

    value: float
    threshold: float
    p_miss: float
    p_fa: float


@dataclass(frozen=True, eq=False)
class Polygon:
    """Points (Pfa, Pmiss) from "accept all" (1, 0) to "reject all" (0, 1)."""

    p_fa: FloatArray
    p_miss: FloatArray

    @classmethod
    def of(cls, target: FloatArray, nontarget: FloatArray) -> Polygon:
        """From ``target`` and ``nontarget`` counts of score ranges; point i rejects the first i."""
        total_target, total_nontarget = target.sum(), nontarget.sum()
        p_miss = np.concatenate([[0.0], np.cumsum(target) / total_target])
        accepted = np.maximum(total_nontarget - np.cumsum(nontarget), 0.0)
        p_fa = np.concatenate([[1.0], accepted / total_nontarget])
        p_miss[-1], p_fa[-1] = 1.0, 0.0
        return cls(p_fa, np.minimum(p_miss, 1.0))


class Cost(NamedTuple):
    """Detection cost Cmiss·p·Pmiss + Cfa·(1−p)·Pfa over min(Cmiss·p, Cfa·(1−p))."""

    p_target: float
    c_miss: float
    c_fa: float

    def check(self) -> None:
        """Raise unless the prior lies inside (0, 1) and costs are positive."""
        if not 0 < self.p_target < 1:
            raise InputError("p_target", "a prior between 0 and 1", self.p_target)
        if not (0 < self.c_miss < np.inf and 0 < self.c_fa < np.inf):
            raise InputError("costs", "numbers above 0", f"{self.c_miss}, {self.c_fa}")

    @property
    def bayes_threshold(self) -> float:
        """Threshold on an LLR that minimises the expected cost."""
        self.check()
        return float(np.log(self.c_fa * (1 - self.p_target) / (self.c_miss * self.p_target)))

    @property
    def default(self) -> float:
        """The cost of the better fixed decision, by which costs are divided."""
        return min(self.c_miss * self.p_target, self.c_fa * (1 - self.p_target))

    def of(self, p_miss: FloatArray | float, p_fa: FloatArray | float) -> FloatArray:
        """The normalised cost of the error rates ``p_miss`` and ``p_fa``."""
        self.check()
        miss, false_alarm = self.c_miss * self.p_target, self.c_fa * (1 - self.p_target)
        return np.asarray((miss * p_miss + false_alarm * p_fa) / self.default)


class SpoofCost(NamedTuple):
    """Priors of targets, nontargets and spoofs, and the costs of a miss and of accepting either of
    the others; unless given those of the package ``a_dcf`` (Shim et al. 2024).
    """

    p_target: float = 0.9
    p_nontarget: float = 0.05
    p_spoof: float = 0.05
    c_miss: float = 1.0
    c_nontarget: float = 10.0
    c_spoof: float = 20.0

    @property
    def weights(self) -> tuple[float, float, float]:
        """Cost times prior of a miss and of accepting a nontarget or a spoof."""
        costs = zip(self[:3], self[3:], strict=True)
        miss, nontarget, spoof = (prior * cost for prior, cost in costs)
        return miss, nontarget, spoof

    @property
    def shown(self) -> dict[str, str | int | float | bool | None]:
        """As signatures have it."""
        priors, costs = ("/".join(f"{one:g}" for one in some) for some in (self[:3], self[3:]))
        return {"priors": priors, "costs": costs}

    def changed(self, name: str, given: Sequence[float] | None) -> SpoofCost:
        """Those that were ``given`` in place of these: priors that add up to 1, positive costs."""
        if given is None:
            return self
        if len(given) != len(self):
            raise InputError(name, "three priors and three costs", f"{len(given)} numbers")
        made = SpoofCost(*given)
        priors, costs = made[:3], made[3:]
        if min(priors) < 0 or not 0 < made.p_target < 1 or abs(sum(priors) - 1) > 1e-6:
            raise InputError(name, "three priors that add up to 1", ", ".join(map(str, priors)))
        if not all(0 < cost < np.inf for cost in costs):
            raise InputError(name, "three costs above 0", ", ".join(map(str, costs)))
        return made


def equal_error(polygon: Polygon) -> tuple[float, int]:
    """Where the polygon crosses Pmiss = Pfa, and the nearest of its points."""
    gap = polygon.p_miss - polygon.p_fa
    above = int(np.searchsorted(gap, 0.0))
    before = above - 1
    share = -gap[before] / (gap[above] - gap[before])
    value = polygon.p_miss[before] + share * (polygon.p_miss[above] - polygon.p_miss[before])
    return float(value), above if share >= 0.5 else before


def equal_errors(target: FloatArray, nontarget: FloatArray) -> FloatArray:
    """EER on the convex hull of many sets of trials at once.

    A row of ``target`` and of ``nontarget`` holds class counts of consecutive score ranges, as in
    :meth:`Polygon.of`. A chord of the hull across Pmiss = Pfa is moved to the point farthest below
    it until none is below: then it is the edge where the hull crosses.
    """
    start = np.zeros((len(target), 1))
    miss = np.hstack([start, np.cumsum(target, axis=1)])
    passed = np.hstack([start, np.cumsum(nontarget, axis=1)])
    accepted = passed[:, -1:] - passed
    p_miss, p_fa = miss / miss[:, -1:], accepted / accepted[:, :1]
    before, after = (np.full(len(target), end) for end in (0, target.shape[1]))
    left = np.arange(len(target))
    for _ in range(target.shape[1]):
        rise = miss[left, after[left]] - miss[left, before[left]]
        fall = accepted[left, before[left]] - accepted[left, after[left]]
        cost = rise[:, None] * accepted[left] + fall[:, None] * miss[left]
        lowest = cost.argmin(axis=1)
        row = np.arange(left.size)
        lower = cost[row, lowest] < cost[row, before[left]]
        left, lowest = left[lower], lowest[lower]
        if not left.size:
            break
        crossed = p_miss[left, lowest] >= p_fa[left, lowest]
        after[left[crossed]] = lowest[crossed]
        before[left[~crossed]] = lowest[~crossed]
    row = np.arange(len(target))
    gap = p_miss - p_fa
    share = -gap[row, before] / (gap[row, after] - gap[row, before])
    return np.asarray(p_miss[row, before] + share * (p_miss[row, after] - p_miss[row, before]))


def kaldi_error(target: FloatArray, below: FloatArray, nontargets: float) -> tuple[float, int]:
    """Kaldi's EER, of counts at scores and of nontargets below them, and the row of its threshold.

    With both classes ascending, p/T at the smallest p with nontarget[N − 1 − ⌊N·p/T⌋] < target[p]:
    p ≥ T·(N − below)/N, where below counts the nontargets below target[p].
    """
    total, first = float(target.sum()), np.cumsum(target) - target
    least = np.maximum(first, np.ceil(total * (nontargets - below) / nontargets))
    found = np.flatnonzero(least < first + target)
    if found.size:
        return float(least[found[0]] / total), int(found[0])
    return (total - 1) / total, int(np.flatnonzero(target)[-1])


def nearest_error(
    target: FloatArray, equal: FloatArray, between: FloatArray, whole: bool
) -> tuple[float, int]:
    """Mean of FRR and FAR at the first threshold where they are nearest, and its row of scores (−1
    where it lies between two).

    Trials are rejected one by one from below, targets first where scores are equal, from none on
    (ASVspoof). ``whole``: one score after the other, from the lowest on (SpeechBrain); between two
    scores of the statistic all nontargets count as different.
    """
    size = 3 * target.size + 1
    misses, passed = np.zeros((2, size))
    passed[::3], passed[2::3], misses[1::3] = between, equal, target
    if whole:
        passed[1::3], passed[2::3] = equal, 0.0
    missed, rejected = np.cumsum(misses), np.cumsum(passed)
    total, others = missed[-1], rejected[-1]
    gap = missed * others + rejected * total - total * others
    at = int(np.searchsorted(gap, 0.0))
    before = (missed[at] - misses[at], rejected[at] - passed[at])
    lacking = total * others - before[0] * others - before[1] * total
    single = whole and at % 3 == 1
    steps = 1.0 if single else float(misses[at] + passed[at])
    step = (misses[at] * others + passed[at] * total) / steps
    done = np.floor(lacking / step)
    none = whole and done == 0 and before[0] + before[1] == 0
    if none or lacking - done * step > (done + 1) * step - lacking:
        done += 1
    share = done / steps
    frr = (before[0] + share * misses[at]) / total
    far = 1 - (before[1] + share * passed[at]) / others
    last = at if done else int(np.flatnonzero(misses[:at] + passed[:at])[-1]) if at else 0
    return float((frr + far) / 2), last // 3 if last % 3 == 1 else -1


def as_read(scores: FloatArray, estimator: str) -> FloatArray:
    """Scores as the toolkit of an EER ``estimator`` reads them: Kaldi keeps 32 bits."""
    if estimator != "kaldi":
        return scores
    with np.errstate(over="ignore"):
        return scores.astype(np.float32).astype(np.float64)


def far_marks(nontargets: FloatArray, far: float) -> FloatArray:
    """Thresholds around a demanded false-alarm rate, ascending: the smallest whose rate is at most
    ``far``, and 128 from 16 times that rate to a thirty-second of it, for its interval.
    """
    size = nontargets.size
    rates = np.append(far * np.geomspace(_WIDER, 1 / _STRICTER, MARKS - 1), far * (1 + 1e-12))
    ranks = np.sort(np.minimum(rates * size, size - 1).astype(np.int64))[::-1]
    tail = np.sort(np.partition(nontargets, size - 1 - ranks[0])[size - 1 - ranks[0] :])
    return np.asarray(np.nextafter(tail[tail.size - 1 - ranks], np.inf))


def crossing_marks(targets: FloatArray, nontargets: FloatArray) -> FloatArray:
    """The two distinct nontarget scores between which FAR and FRR cross, among all targets."""
    targets, nontargets = np.sort(targets), np.sort(nontargets)
    miss = np.searchsorted(targets, targets, "right") / targets.size
    accepted = 1 - np.searchsorted(nontargets, targets, "right") / nontargets.size
    crossed = int(np.searchsorted(miss - accepted, 0.0))
    below = np.searchsorted(targets, targets[min(crossed, targets.size - 1)])
    rank = min(int(nontargets.size * (below / targets.size)), nontargets.size - 1)
    upper = nontargets[nontargets.size - 1 - rank]
    lower = nontargets[max(int(np.searchsorted(nontargets, upper)) - 1, 0)]
    return np.array([lower, upper])


def scores_around(
    thresholds: FloatArray, targets: FloatArray, nontargets: Iterable[FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """The highest score below each threshold and the lowest of at least it, of all trials.

    ``targets`` are distinct and ascend; ``nontargets`` come in blocks, in any order.
    """
    place = np.searchsorted(targets, thresholds)
    below = np.concatenate([[-np.inf], targets])[place]
    above = np.concatenate([targets, [np.inf]])[place]
    lowest, highest = below.min(initial=np.inf), above.max(initial=-np.inf)
    for block in nontargets:
        # No other nontarget can lie nearer to a threshold than the targets around it.
        near = block[(block >= lowest) & (block <= highest)]
        for row, threshold in enumerate(thresholds):
            rejected = near < threshold
            below[row] = near[rejected].max(initial=below[row])
            above[row] = near[~rejected].min(initial=above[row])
    return below, above


def shortest_decimal(threshold: float, below: float, above: float) -> float:
    """The shortest decimal x with ``below`` < x ≤ ``above``, between which the threshold lies.

    With the scores of :func:`scores_around` it decides all trials as the threshold itself does. Of
    two that are as short the higher one is taken, which accepts less. What counts is the number
    that a program reads: 0.417 may lie below a score that is printed so.
    """
    if not np.isfinite(threshold):
        return threshold
    exact = Decimal(threshold)
    magnitude = exact.adjusted() if threshold else 0
    for places in range(min(0, -magnitude), _DIGITS - magnitude):
        step = Decimal(1).scaleb(-places)
        for rounding in (ROUND_CEILING, ROUND_FLOOR):
            shown = float(exact.quantize(step, rounding, _EXACTLY))
            if below < shown <= above:
                return shown + 0.0  # no negative zero
    return threshold


def decimal_from(threshold: float, next_target: float) -> float:
    """The shortest decimal from a threshold on that rejects no further target.

    For thresholds of a model, above which a score must lie to be accepted. At most four digits are
    shown, unless ``next_target``, the lowest accepted target score, asks for more. A higher
    threshold keeps what a lower one keeps.
    """
    if not np.isfinite(threshold):
        return threshold
    exact = Decimal(threshold)
    last_digit = Decimal(1).scaleb(exact.adjusted() - _DIGITS_OF_MODELS + 1)
    highest = float(exact.quantize(last_digit, ROUND_CEILING, _EXACTLY))
    highest = min(highest, float(np.nextafter(next_target, -np.inf)))
    return shortest_decimal(threshold, float(np.nextafter(threshold, -np.inf)), highest)


def accepted_at(polygon: Polygon, fpr: float) -> tuple[float, int]:
    """1 − Pmiss where Pfa = ``fpr`` (the best point of a vertical stretch), and the first point of
    the polygon whose false-alarm rate is no higher.
    """
    if not 0 <= fpr <= 1:
        raise InputError("false-positive rate", "0 to 1", fpr)
    after = int(np.searchsorted(-polygon.p_fa, -fpr))
    if polygon.p_fa[after] == fpr:
        return 1.0 - float(polygon.p_miss[after]), after
    drop = polygon.p_fa[after - 1] - polygon.p_fa[after]
    share = (polygon.p_fa[after - 1] - fpr) / drop
    rise = polygon.p_miss[after] - polygon.p_miss[after - 1]
    return 1.0 - float(polygon.p_miss[after - 1] + share * rise), after


@dataclass(frozen=True, eq=False)
class Pav:
    """Blocks of equal oracle LLR, from low scores to high.

    Block 0 reaches down to −inf; block j ≥ 1 begins at ``boundaries[j − 1]``, which belongs to it.
    ``target`` and ``nontarget`` count what was pooled (pseudo-counts of Laplace included);
    the prior removed is that of the real trials.
    """

    boundaries: FloatArray
    target: FloatArray
    nontarget: FloatArray
    total_target: float
    total_nontarget: float

    def with_laplace(self) -> Pav:
        """One target, then one nontarget, added at each end; pooled blocks only pool further."""
        target = np.concatenate([[1.0, 0.0], self.target, [1.0, 0.0]])
        nontarget = np.concatenate([[0.0, 1.0], self.nontarget, [0.0, 1.0]])
        first = first_of_blocks(target, nontarget)
        last = np.append(first[1:], target.size) - 1
        real = (last >= 2) & (first < target.size - 2)
        kept = first[real]
        return replace(
            self,
            boundaries=self.boundaries[kept[1:] - 3],
            target=np.add.reduceat(target, first)[real],
            nontarget=np.add.reduceat(nontarget, first)[real],
        )

    @lazy
    def llr(self) -> FloatArray:
        """Natural-log LLR of each block: logit of its posterior minus logit of the prior; ±inf."""
        with np.errstate(divide="ignore"):
            odds = np.log(self.target) - np.log(self.nontarget)
        return np.asarray(odds - np.log(self.total_target / self.total_nontarget))

    def apply(self, scores: FloatArray) -> FloatArray:
        """The LLR of each score, as a step function of the score."""
        return self.llr[np.searchsorted(self.boundaries, scores, side="right")]


def first_of_blocks(
    target: FloatArray, nontarget: FloatArray, row: IntArray | None = None
) -> IntArray:
    """Isotonic regression of target/(target + nontarget) over consecutive score ranges, none of
    them empty: the index of the first range of each block of equal fit. Ranges of every ``row``,
    ascending numbers, are fitted by themselves.

    A block after the first can only begin where targets lie: pure nontargets would violate the
    order with the block before them.
    """
    from scipy.optimize import isotonic_regression

    alike = np.logical_or(*(no[1:] & no[:-1] for no in (target == 0, nontarget == 0)))
    if row is not None:
        alike &= row[1:] == row[:-1]
    runs = np.concatenate([[0], np.flatnonzero(~alike) + 1])
    weight = np.add.reduceat(target + nontarget, runs)
    share = np.add.reduceat(target, runs) / weight
    if row is not None:
        share += 2.0 * row[runs]  # beyond all of the row before
    fitted = isotonic_regression(share, weights=weight)
    return np.asarray(runs[fitted.blocks[:-1]], dtype=np.int64)
