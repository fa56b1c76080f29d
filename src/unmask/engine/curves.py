"""The numbers behind the detection figures. Figures draw these and compute nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtri

from unmask.base import FloatArray, IntArray, MetricRange
from unmask.engine import information
from unmask.engine.bootstrap import SortedTrials, bootstrap, units_of
from unmask.engine.calibration import block_ranges
from unmask.engine.operating import Polygon, SpoofCost
from unmask.engine.roc import Roc
from unmask.engine.spoofing import SpoofRoc
from unmask.trials import Scores

Array = FloatArray
_POINTS = 1500
_LEAST_RATE, _LEAST_MISS = 1e-5, 5e-3
_BINS = 60
_STEPS = 500
_NORMAL_95 = 1.959963984540054
RATES = tuple(float(rate) for rate in np.geomspace(5e-4, 0.6, 24))
_SHARE = MetricRange(0.0, 1.0)


@dataclass(frozen=True)
class Histogram:
    """Densities of target and nontarget scores over common ``edges`` (len = bins + 1).

    Scores of plus or minus infinity lie in no bin; ``infinite`` says how many there were.
    """

    edges: Array
    target: Array
    nontarget: Array
    eer_threshold: float
    infinite: int


@dataclass(frozen=True)
class DetCurve:
    """Vertices (Pfa, Pmiss) of the ROC polygon and of its convex hull, thinned for drawing."""

    p_fa: Array
    p_miss: Array
    hull_p_fa: Array
    hull_p_miss: Array
    eer: float
    eer_raw: float
    min_dcf_p_fa: float
    min_dcf_p_miss: float
    p_target: float


@dataclass(frozen=True)
class PavMap:
    """PAV blocks from low to high: the scores each covers, its oracle LLR (natural log, ±inf)."""

    low: Array
    high: Array
    llr: Array
    targets: Array
    nontargets: Array


@dataclass(frozen=True)
class EceProfile:
    """Empirical cross-entropy in bits over the prior log-odds (natural log)."""

    log_odds: Array
    prior: Array
    oracle: Array
    actual: Array


@dataclass(frozen=True)
class Tippett:
    """Steps of a Tippett plot, at the finite LRs of each class (log10, distinct, from low to high).

    Shares have one more entry: they hold below the first LR, between two, and above the last. Of
    ``same`` speakers they count LRs at or below, with ``above`` at or above; of ``different``
    speakers at or above. ``infinite`` LRs count and are not drawn.
    """

    same: Array
    same_share: Array
    different: Array
    different_share: Array
    infinite: int
    above: bool


@dataclass(frozen=True)
class SpoofCurve:
    """``lines`` by name over thresholds, and the ``value`` they are drawn for, with where it is:
    parts of the a-DCF and its least sum, or errors of a tandem by the share of spoofs among
    impostors, which meet in the t-EER.
    """

    threshold: Array
    lines: Mapping[str, Array]
    value: float
    at: float


@dataclass(frozen=True)
class Reliability:
    """Calibration plot: scores read as LLRs, binned; mean predicted posterior against the share of
    targets observed (both at the prior of the trials), with the count in each bin.
    """

    predicted: Array
    observed: Array
    low: Array
    high: Array
    count: Array


def histogram(target: Array, nontarget: Array, roc: Roc) -> Histogram:
    """Densities over equal bins that span the finite scores of both classes."""
    finite = [scores[np.isfinite(scores)] for scores in (target, nontarget)]
    infinite = target.size + nontarget.size - finite[0].size - finite[1].size
    ends = [end for scores in finite if scores.size for end in (scores.min(), scores.max())]
    low, high = (min(ends), max(ends)) if ends else (0.0, 0.0)
    edges = 2 * np.linspace(low / 2, high / 2, _BINS + 1)  # the span itself may overflow
    if not (np.diff(edges) > 0).all():
        margin = max(0.5, 1e-12 * max(abs(low), abs(high)))
        edges = np.linspace(low - margin, high + margin, _BINS + 1)
    densities = [
        np.histogram(part, edges)[0] / max(whole.size, 1) / (edges[1] - edges[0])
        for part, whole in zip(finite, (target, nontarget), strict=True)
    ]
    return Histogram(edges, densities[0], densities[1], roc.eer_point().threshold, infinite)


def det_curve(roc: Roc, *, p_target: float = 0.01) -> DetCurve:
    """The ROC polygon, without points closer than a pixel, its hull, and its least cost."""
    kept = _visible(roc.polygon)
    least = roc.min_dcf_point(p_target=p_target)
    rates = roc.polygon.p_fa[kept], roc.polygon.p_miss[kept], roc.hull.p_fa, roc.hull.p_miss
    errors = roc.eer(), roc.eer(estimator="raw")
    return DetCurve(*rates, *errors, least.p_fa, least.p_miss, p_target)


def _visible(polygon: Polygon) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Indices of points that fall on another pixel of probit axes than the point before them."""
    ends = ndtri([_LEAST_RATE, 1 - _LEAST_RATE])
    pixel = (ends[1] - ends[0]) / _POINTS
    points = [
        np.floor(ndtri(np.clip(rate, _LEAST_RATE, 1 - _LEAST_RATE)) / pixel)
        for rate in (polygon.p_fa, polygon.p_miss)
    ]
    moved = (np.diff(points[0]) != 0) | (np.diff(points[1]) != 0)
    keep = np.concatenate([[True], moved])
    keep[:-1] |= moved
    keep[-1] = True
    return np.flatnonzero(keep)


def pav_map(target: Array, nontarget: Array, roc: Roc) -> PavMap:
    """The oracle map without Laplace, with the range of scores of each block."""
    low, high = block_ranges(target, nontarget, roc.pav.boundaries)
    return PavMap(low, high, roc.pav.llr, roc.pav.target, roc.pav.nontarget)


def ece_profile(target: Array, nontarget: Array, roc: Roc) -> EceProfile:
    """ECE of the prior, of oracle LLRs and of scores read as LLRs, at log-odds from −10 to 10."""
    log_odds = np.linspace(-10.0, 10.0, 81)
    oracle = information.oracle_ece(roc.pav, log_odds)
    actual = information.ece(target, nontarget, log_odds)
    return EceProfile(log_odds, information.prior_ece(log_odds), oracle, actual)


def tippett(target: Array, nontarget: Array, *, above: bool = False) -> Tippett:
    """Cumulative shares of natural-log LRs (Morrison et al. 2021, C.1; with ``above``, the share at
    or above for both classes); of many within a pixel, the first and the last are steps.
    """
    sides: list[Array] = []
    for llrs, falling in ((target, above), (nontarget, True)):
        ordered = np.sort(llrs)
        steps = np.unique(ordered[np.isfinite(ordered)])
        if steps.size > 2 * _STEPS:
            pixel = np.floor((steps - steps[0]) * (_STEPS / (steps[-1] - steps[0])))
            new = np.diff(pixel) > 0
            steps = steps[np.append(True, new) | np.append(new, True)]
        upto = np.searchsorted(ordered, steps, side="left" if falling else "right")
        count = np.append(upto, ordered.size - np.count_nonzero(llrs == np.inf))
        if not falling:
            count = np.append(np.count_nonzero(llrs == -np.inf), upto)
        sides += [steps / np.log(10), (llrs.size - count if falling else count) / llrs.size]
    infinite = int(np.isinf(target).sum() + np.isinf(nontarget).sum())
    return Tippett(sides[0], sides[1], sides[2], sides[3], infinite, above)


def cost_curve(roc: SpoofRoc, cost: SpoofCost) -> SpoofCurve:
    """The a-DCF at finite scores of targets but the lowest of two hundred, of many evenly some."""
    point, weights, scores = roc.a_dcf_point(cost), cost.weights, roc.thresholds
    divisor = min(weights[0], weights[1] + weights[2])
    rows = _some(np.flatnonzero(np.isfinite(scores) & (roc.rates[0][1:-1:2] >= _LEAST_MISS)))
    costs = [w / divisor * rates[2 * rows + 1] for w, rates in zip(weights, roc.rates, strict=True)]
    names = ("a-DCF", "misses", "accepted nontargets", "accepted spoofs")
    lines = dict(zip(names, [np.sum(costs, axis=0), *costs], strict=True))
    return SpoofCurve(scores[rows], lines, point.value, point.threshold)


def tandem_path(roc: SpoofRoc, cm: str) -> SpoofCurve:
    """Where misses of a tandem equal its false alarms, at thresholds of the CM with few misses."""
    heard, every, met = roc.cm[cm], Polygon.of(*roc.cm[cm].bins), roc.t_eer(cm)
    most = min(4 * met, 0.5) if met > _LEAST_MISS else 0.5
    rows = _some(np.flatnonzero(np.isfinite(heard.scores) & (every.p_miss[1:-1:2] < most)), 200)
    p, q = every.p_miss[2 * rows + 1, None], every.p_fa[2 * rows + 1, None]
    x, a, b = (rates[_some(np.arange(rates.size), 2000)] for rates in roc.rates)
    errors, misses = [], p + (1 - p) * x
    for share in (0, 0.5, 1):
        over = (1 - share) * (1 - p) * a + share * q * b - misses
        after = np.maximum((over <= 0).argmax(axis=1), 1)[:, None]
        (high, low), (start, end) = (
            [np.take_along_axis(one, at, axis=1)[:, 0] for at in (after - 1, after)]
            for one in (over, misses)
        )
        part = np.divide(high, high - low, out=np.zeros(high.size), where=high > low)
        errors.append(np.where(high >= 0, start + (end - start) * part, np.nan))
    gone = ~(errors[-1] >= errors[0])
    at = float(heard.scores[rows[gone.argmax()]]) if gone.any() else float("nan")
    names = ("0 % spoofs", "50 % spoofs", "100 % spoofs")
    return SpoofCurve(heard.scores[rows], dict(zip(names, errors, strict=True)), met, at)


def _some(rows: IntArray, most: int = 400) -> IntArray:
    """At most so many of the rows, evenly, the first and the last among them."""
    return rows[np.unique(np.linspace(0, rows.size - 1, min(rows.size, most)).astype(np.int64))]


def reliability(target: Array, nontarget: Array, *, bins: int = 20) -> Reliability:
    """Calibration plot at the prior of the trials (Noé 2022, 3.5), with 95 % intervals of the share
    of targets in each of ``bins`` bins (Wilson 1927: the score interval of a binomial share).

    A score s promises the posterior σ(s + logit π) with π = T/(T + N); the share of targets among
    the trials of a bin is what is observed. Bins that hold no trial are left out.
    """
    edges = np.linspace(0, 1, bins + 1)[1:-1]
    odds = np.log(target.size / nontarget.size)
    counts, sums = [], []
    for scores in (target, nontarget):
        posterior = expit(scores + odds)
        index = np.searchsorted(edges, posterior, side="right")
        counts.append(np.bincount(index, minlength=bins).astype(np.float64))
        sums.append(np.bincount(index, posterior, minlength=bins))
    total = counts[0] + counts[1]
    some = total > 0
    share, trials = counts[0][some] / total[some], total[some]
    square = _NORMAL_95 * _NORMAL_95 / trials
    centre = (share + square / 2) / (1 + square)
    half = np.sqrt(square * (share * (1 - share) + square / 4)) / (1 + square)
    ends = np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)
    return Reliability((sums[0] + sums[1])[some] / trials, share, *ends, trials)


@dataclass(frozen=True, eq=False)
class DetBand:
    """Intervals ``low`` … ``high`` of the miss rate at the false-alarm rates ``p_fa``."""

    p_fa: FloatArray
    low: FloatArray
    high: FloatArray


def det_bands(
    scores: Scores, *, replicates: int = 200, level: float = 0.95, seed: int = 0
) -> Mapping[str, DetBand]:
    """The band of every system of ``scores``: intervals of confidence ``level``, point by point, of
    the joint speaker bootstrap with so many ``replicates`` from ``seed``; none of one unit only.
    Misses fall with more false alarms, and so do both ends: each is moved outwards if need be.
    """
    units, _ = units_of(scores)
    if units.count < 2:
        return {}
    systems = [
        SortedTrials.of(scores.targets(name), scores.nontargets(name), units)
        for name in scores.systems
    ]
    keys = [f"{rate:g}" for rate in RATES]
    ranges = dict.fromkeys(keys, _SHARE)
    drawn = bootstrap(systems, _misses, ranges=ranges, replicates=replicates, seed=seed)
    bands = {}
    for row, name in enumerate(scores.systems):
        ends = [drawn.interval(key, level=level, system=row) for key in keys]
        low, high = (np.array([getattr(end, side) for end in ends]) for side in ("low", "high"))
        low, high = np.minimum.accumulate(low), np.maximum.accumulate(high[::-1])[::-1]
        bands[name] = DetBand(np.array(RATES), low, high)
    return bands


def _misses(roc: Roc) -> dict[str, float]:
    return {f"{rate:g}": 1.0 - roc.tpr_at_fpr(rate) for rate in RATES}
