"""Confidence intervals that hold what they promise: shared by every number of the package.

Three situations, three intervals. A *mean of outcomes in [0, 1]* over speakers gets a score
interval (Wilson 1927, with the variance the outcomes really have), which has a width even where
all outcomes agree. A *statistic of a bootstrap* gets an interval on a scale on which its spread is
even, less the bias that resampling shows (PAV overfits a sample, and a resample once more). A
*value on the edge of its range* gets the exact bound of Clopper and Pearson (1934)
for as many units as were drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtri, stdtrit

from unmask.base.arrays import FloatArray

_ADDED = 3.0
# Most samples lack the few units that spread a number most: by how much intervals are wider.
SKEWED = 1.1
# … and by how much further the end lies that such units would move a number to.
_LACKING = 1.3
# How much further than the quantiles of resamples, widened alike, an end may lie. Resamples of even
# spread stay well below; where a single unit makes a heavy tail on one side, the standard deviation
# would carry it over to the other.
_UNEVEN = 1.25
FEW_SPEAKERS = 30
# A hull through n trials overfits by about n^(−2/3) (Groeneboom's rate). A resample holds half as
# many distinct trials and shows 2^(2/3) − 1 of that bias.
HULL = 1 / (2 ** (2 / 3) - 1)
VERDICT = 0.95
"""The level by which verdicts go, whatever level is shown."""
Side = Literal["low", "high"]
Scale = tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]


class MetricRange(NamedTuple):
    """What a metric's interval follows from: bounds, how many times the bias of a resample the
    sample has (:data:`HULL` of a hull), the end to which few hard speakers move it, and whether its
    ends are bounded by what resamples show, since a single speaker may move it from 0 to half.
    """

    low: float = -np.inf
    high: float = np.inf
    overfit: float = 1.0
    longer: Side | None = None
    bounded: bool = False


ANY = MetricRange()


def few_speakers(count: int, what: str = "speakers") -> str | None:
    """What to say of intervals over so few speakers; None where there are enough."""
    if count >= FEW_SPEAKERS:
        return None
    return (
        f"{count} {what}: with fewer than {FEW_SPEAKERS}, intervals are wide and may be too narrow"
    )


def quantile_t(units: float, level: float) -> float:
    """Two-sided quantile of Student's t with units − 1 degrees of freedom."""
    return float(stdtrit(max(units - 1, 1), (1 + level) / 2))


def widening(units: float, level: float) -> float:
    """How much wider few units make an interval than resampling shows.

    Resampling n units underrates their variance by (n − 1)/n, and a variance from n units asks for
    Student's t in place of the normal quantile. Simulated populations of speakers ask for a tenth
    more (:data:`SKEWED`).
    """
    normal = float(ndtri((1 + level) / 2))
    return SKEWED * quantile_t(units, level) / normal * float(np.sqrt(units / max(units - 1, 1)))


def score_interval(
    mean: FloatArray, variance: FloatArray, units: int, *, level: float
) -> tuple[FloatArray, FloatArray]:
    """Interval of a mean of outcomes in [0, 1] over ``units`` speakers, by the score test.

    All p with (mean − p)² ≤ t²·ρ·p(1 − p)/n, where ρ is the ratio of ``variance``, that of the
    mean, to that of n outcomes of 0 or 1 with this mean. Three outcomes of 0 or 1 are added to
    both where all outcomes agree, so that ρ is 1 there; fewer, 3/(1 + n·mean·(1 − mean)), where
    enough of them differ to tell the variance. Few people may carry most of the risk, and a sample
    that lacks them shows little spread: for the high end the variance is that with one more speaker
    whose outcome is 1, so far as ρ stays below 1, which 0 and 1 alone give. NaN with fewer than two
    units.
    """
    mean, variance = np.asarray(mean, float), np.asarray(variance, float)
    if units < 2:
        return np.full(mean.shape, np.nan), np.full(mean.shape, np.nan)
    soft = (units * mean + 0.5) / (units + 1)
    differ = units * mean * (1 - mean)
    added = _ADDED / (1 + differ) * soft * (1 - soft)
    ratio = (units**2 * variance + added) / (differ + added)
    unseen = (units - 1) / (units + 1) * variance + ((1 - mean) / (units + 1)) ** 2
    more = np.minimum((units**2 * unseen + added) / (differ + added), 1.0)
    ends = []
    for sign, spread in ((-1, ratio), (1, np.maximum(ratio, more))):
        square = quantile_t(units, level) ** 2 * spread / units
        half = np.sqrt(square * mean * (1 - mean) + square**2 / 4)
        ends.append(np.clip((mean + square / 2 + sign * half) / (1 + square), 0.0, 1.0))
    return ends[0], ends[1]


def mean_interval(values: FloatArray, *, level: float) -> tuple[FloatArray, FloatArray]:
    """Score interval of the mean over rows (speakers) of outcomes in [0, 1], for every column."""
    units = len(values)
    if units < 2:
        nothing = np.full(values.shape[1], np.nan)
        return nothing, nothing.copy()
    variance = values.var(axis=0, ddof=1) / units
    return score_interval(values.mean(axis=0), variance, units, level=level)


def paired_interval(first: FloatArray, second: FloatArray, *, level: float) -> tuple[float, float]:
    """Interval of mean(second) − mean(first), both outcomes in [0, 1] of the same speakers.

    Variance recovery for correlated means (Newcombe 1998, method 10; Zou and Donner 2008): with
    [lᵢ, uᵢ] the score intervals of the means pᵢ and r the correlation of the outcomes over
    speakers, 0 where one does not vary, the low end is
    p₂ − p₁ − √((p₂ − l₂)² − 2r(p₂ − l₂)(u₁ − p₁) + (u₁ − p₁)²), and the high end its mirror image.
    """
    both = np.stack([first, second], axis=1)
    (low_1, low_2), (high_1, high_2) = mean_interval(both, level=level)
    one, two = both.mean(axis=0)
    sides = (float(one), (float(low_1), float(high_1))), (float(two), (float(low_2), float(high_2)))
    return joined_interval(*sides, correlation(first, second))


def correlation(first: FloatArray, second: FloatArray) -> float:
    """Correlation of two rows, over the places where both are known; 0 where one does not vary."""
    known = ~np.isnan(first) & ~np.isnan(second)
    both = np.stack([first[known], second[known]])
    if not known.any() or not (np.ptp(both, axis=1) > 0).all():
        return 0.0
    return float(np.asarray(np.corrcoef(both))[0, 1])


Bounded = tuple[float, tuple[float, float]]
"""A number and the ends of its interval."""


def joined_interval(first: Bounded, second: Bounded, r: float = 0.0) -> tuple[float, float]:
    """Interval of second − first from the intervals of both and their correlation ``r``.

    Square and add, Newcombe's method 10, as :func:`paired_interval` has it. Where one number cannot
    move, as a rate without errors, its own interval (an exact bound) still widens that of the
    difference.
    """
    (one, (low_1, high_1)), (two, (low_2, high_2)) = first, second

    def reach(up: float, down: float) -> float:
        return float(np.sqrt(max(up**2 - 2 * r * up * down + down**2, 0.0)))

    apart = two - one
    return apart - reach(two - low_2, high_1 - one), apart + reach(high_2 - two, one - low_1)


def exact_bound(side: Side, units: int, *, level: float) -> float:
    """Clopper and Pearson's bound of a share that was 0 (``high``) or 1 (``low``) in all ``units``:
    1 − α^(1/n) and its mirror image, α = (1 − level)/2.
    """
    bound = 1 - float(((1 - level) / 2) ** (1 / units))
    return bound if side == "high" else 1 - bound


def scale_of(within: MetricRange) -> Scale:
    """A scale on which the spread of a statistic hardly depends on its value, and the way back.

    Between two bounds Tukey's folded cube root u^⅓ − (1 − u)^⅓ of the share u of the range (roots
    serve independent outcomes, logarithms a spread in proportion to the value; speakers lie in
    between); the cube root above one bound; the value itself without bounds. Values outside the
    bounds are moved to them.
    """
    low, span = within.low, within.high - within.low
    if np.isfinite([low, span]).all():

        def folded(values: FloatArray) -> FloatArray:
            share = np.clip((values - low) / span, 0.0, 1.0)
            return np.asarray(np.cbrt(share) - np.cbrt(1 - share))

        def unfolded(scaled: FloatArray) -> FloatArray:
            """With x − y = a and x³ + y³ = 1 the sum s = x + y solves s³ + 3a²s = 4."""
            a = np.clip(scaled, -1.0, 1.0)
            root = np.cbrt(2 + np.sqrt(4 + a**6))
            total = root - a**2 / root
            return np.asarray(low + span * np.clip((total + a) / 2, 0.0, 1.0) ** 3)

        return folded, unfolded
    if np.isfinite(low):
        return lambda x: np.cbrt(np.maximum(x - low, 0.0)), lambda a: low + np.maximum(a, 0.0) ** 3
    return lambda x: np.asarray(x, float), lambda a: a


def bias_corrected(
    value: float,
    replicates: FloatArray,
    units: int,
    *,
    level: float,
    within: MetricRange = ANY,
    wider: float = 1.0,
) -> tuple[float, float]:
    """Interval of a bootstrap on the scale of its range, its bias taken out, wider for few units.

    With g the scale of :func:`scale_of`, b = mean g(θ*) − g(θ̂) the bias that resampling shows and s
    the standard deviation of g(θ*), the interval is g⁻¹(g(θ̂) − c·b ± w·z·s); w is
    :func:`widening`, z the normal quantile. ``within`` gives the bounds, ``overfit``, which is c,
    and ``longer``: most samples lack the hard speakers who move that end and show too little of
    their tail, and simulated populations ask for three tenths more there. ``wider`` is how much
    more than the replicates a full resample would spread, and how much more of that tail it would
    show. Where ``within`` is ``bounded`` no end lies further out than 1.25 times what the quantiles
    of the resamples on its side reach, with their median in place of the mean and widened alike, or
    than the outermost resample.
    The interval is stretched to hold the value itself, and to :func:`exact_bound` where the value
    lies on a bound.
    Replicates that are NaN do not count; NaN if there are none, or if none moves a value inside its
    range.
    """
    to, back = scale_of(within)
    drawn = replicates[~np.isnan(replicates)]
    if not drawn.size or units < 2 or np.isnan(value):
        return float("nan"), float("nan")
    if (drawn == value).all():
        return _on_the_edge(value, units, level, within)
    tails = [(1 - level) / 2, (1 + level) / 2]
    if np.isinf(value) or np.isinf(drawn).any():
        low, high = map(float, np.quantile(drawn, tails, method="inverted_cdf"))
    else:
        at, scaled = to(np.asarray(value, float)), to(drawn)
        tail = _LACKING * wider
        reach = np.where([end == within.longer for end in ("low", "high")], tail, 1.0)
        factor = wider * widening(units, level) * reach
        ends = at - within.overfit * (scaled.mean() - at) + factor * scaled.std() * ndtri(tails)
        if within.bounded:
            # What resamples can show: the same of their median and quantiles, the outermost one.
            median, *quantiles = np.quantile(scaled, [0.5, *tails])
            shown = at - within.overfit * (median - at) + _UNEVEN * factor * (quantiles - median)
            ends = np.clip(ends, min(shown[0], scaled.min()), max(shown[1], scaled.max()))
        low, high = map(float, back(ends))
    edge = _on_the_edge(value, units, level, within)
    return float(np.fmin(min(low, value), edge[0])), float(np.fmax(max(high, value), edge[1]))


def logit_interval(
    value: float, replicates: FloatArray, units: int, *, level: float, least: float
) -> tuple[float, float]:
    """Student's t interval of a rate on the scale of its logit, around the value itself.

    logit p ± t·√(n/(n − 1))·sd(logit p*), with n units. Rates are kept ``least`` away from 0 and 1
    (half a trial: no sample tells a smaller rate from none) and the interval is stretched to hold
    the value. A value nearer to 0 or 1 than that gets :func:`exact_bound` at least. NaN replicates
    do not count; NaN with fewer than two of them or two units.
    """
    drawn = replicates[~np.isnan(replicates)]
    if drawn.size < 2 or units < 2 or np.isnan(value):
        return float("nan"), float("nan")
    least = min(least, 0.5)
    centre = float(logit(np.clip(value, least, 1 - least)))
    spread = float(logit(np.clip(drawn, least, 1 - least)).std(ddof=1))
    away = quantile_t(units, level) * float(np.sqrt(units / (units - 1))) * spread
    low, high = (min(float(expit(centre - away)), value), max(float(expit(centre + away)), value))
    if value < least:
        return low, max(high, exact_bound("high", units, level=level))
    if value > 1 - least:
        return min(low, exact_bound("low", units, level=level)), high
    if low < high:
        return low, high
    ends = score_interval(np.array(value), np.array(0.0), units, level=level)
    return float(ends[0]), float(ends[1])


def _on_the_edge(
    value: float, units: int, level: float, within: MetricRange
) -> tuple[float, float]:
    """The exact bound of a value at an end of its range; NaN inside it."""
    low, high = within[:2]
    span = high - low
    if np.isfinite(span) and value == low:
        return low, low + span * exact_bound("high", units, level=level)
    if np.isfinite(span) and value == high:
        return low + span * exact_bound("low", units, level=level), high
    return float("nan"), float("nan")


def pareto_tail(excess: FloatArray) -> tuple[float, float]:
    """Shape and scale of a generalised Pareto tail by probability-weighted moments.

    With a_0 = E[X] and a_1 = E[X·(1 − F(X))]: shape = 2 − a_0/(a_0 − 2a_1),
    scale = 2·a_0·a_1/(a_0 − 2a_1).
    """
    survival = 1 - (np.arange(excess.size) + 0.5) / excess.size
    first, second = float(np.mean(excess)), float(np.mean(np.sort(excess) * survival))
    gap = max(first - 2 * second, 1e-12 * first)
    shape = float(np.clip(2 - first / gap, -0.5, 0.3))
    return shape, first * (1 - shape)
