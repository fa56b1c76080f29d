"""Numbers of all speakers, what resamples make of them, and the intervals made from that.

A dominance keeps its sign until the interval is made: an interval that reaches from one sign to the
other holds 0, whatever the modulus of the replicates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unmask import base
from unmask.base import FloatArray, MetricRange, Sampling
from unmask.engine import information
from unmask.errors import InputError
from unmask.estimate import Interval

METHOD = "speaker,recalibrated,corrected"
NOT_ASKED = "no replicates were asked for"
UNDEFINED = "too few resamples of the speakers have a value"
WITH_TRIALS = "grows with the number of comparisons"
MEANS = ("geometric", "arithmetic")
PAIRS = ("all", "upper")
MOST_LEFT_OUT = 200
_LEAST_SPREAD = 1e-5

Ends = tuple[float, float]
ANY: Ends = (-np.inf, np.inf)
POSITIVE: Ends = (0.0, np.inf)


@dataclass(frozen=True)
class Setup(Sampling):
    """The options that all assessments share; made by each public function from its keywords."""

    mean: str = "geometric"
    pairs: str = "all"

    def __post_init__(self) -> None:
        for option, known in (("mean", MEANS), ("pairs", PAIRS)):
            value = getattr(self, option)
            if value not in known:
                raise InputError(f"{option}: expected {' or '.join(known)}, found {value}")

    @property
    def mirror(self) -> bool:
        """Whether both orders of two speakers are pooled."""
        return self.pairs == "upper"

    @property
    def without_replicates(self) -> Setup:
        """The same options for values alone."""
        return replace(self, replicates=0)

    @property
    def renames(self) -> bool:
        """Whether names are permuted: both orders of two speakers must be told apart."""
        return self.replicates > 0 and not self.mirror

    def weights(self, speakers: int | Sequence[str]) -> FloatArray | None:
        """How often each speaker is drawn in each replicate (the draws of the detection bootstrap),
        and after them all speakers but one, for each in turn where they are not many; None where no
        replicates were asked for. ``speakers`` are their names, of which a seed draws the same in
        every number, or how many there are.
        """
        if not self.replicates:
            return None
        count = speakers if isinstance(speakers, int) else len(speakers)
        drawn = self.times(count)
        if not isinstance(speakers, int):
            drawn = drawn[:, base.in_order(speakers)]
        left_out = 1 - np.eye(count) if count <= MOST_LEFT_OUT else np.empty((0, count))
        return np.concatenate([drawn, left_out])

    def intervals(self, statistics: Mapping[str, Statistic], speakers: int) -> dict[str, Interval]:
        """The interval of each statistic that has one."""
        ends = {name: one.ends(speakers, self.level) for name, one in statistics.items()}
        return {
            name: Interval(*both, self.level, METHOD, self.replicates, self.seed)
            for name, both in ends.items()
            if both is not None
        }


def gain(value: float | FloatArray, reference: float | FloatArray = 1.0) -> FloatArray:
    """10·log10(value/reference) in dB; 0 gives −inf."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(10 * np.log10(np.asarray(value) / np.asarray(reference)))


def same(ends: Ends) -> Ends:
    """The ends as they are."""
    return ends


def modulus(ends: Ends) -> Ends:
    """Of the absolute value: down to 0 where the interval holds it."""
    low, high = sorted(map(abs, ends))
    return (0.0 if ends[0] <= 0 <= ends[1] else low), high


def lost(ends: Ends) -> Ends:
    """Of one minus the absolute value."""
    low, high = modulus(ends)
    return 1 - high, 1 - low


def decibels(ends: Ends) -> Ends:
    """Of the absolute value in dB, from −inf on."""
    low, high = modulus(ends)
    return float(gain(low)), float(gain(high))


@dataclass(frozen=True, eq=False)
class Statistic:
    """A number of all speakers, that of every resample, and how the ends of its interval read.

    Made where intervals are, and gone after them. ``drawn`` are the values of
    :meth:`Setup.weights`, ``replicates`` of draws first. A number on whose bound chance lies (D_ECE
    0, EER 50 %) is moved off it by any sample: ``evidence`` is the signed dominance of the same
    comparisons, which chance leaves at 0 on average, and where the interval of that holds 0, that
    of the number reaches ``chance``. ``separates_everybody`` tells that scores within speakers lie
    above all others: then replicates move by little but Laplace's rule, which is no spread.
    """

    value: float
    drawn: FloatArray
    replicates: int
    read: Callable[[Ends], Ends] = same
    bounds: Ends = ANY
    evidence: Statistic | None = None
    chance: float = 0.0
    separates_everybody: bool = False

    def ends(self, speakers: int, level: float) -> Ends | None:
        """Both ends of the interval; None where the value or nearly all replicates have none.

        A calibration fitted to a resample keeps some of its spread to itself: where leaving out one
        speaker at a time (the jackknife) tells of a larger one, replicates are spread out to it.
        """
        drawn = self.drawn[: self.replicates]
        drawn = drawn[np.isfinite(drawn)]
        if not np.isfinite(self.value) or drawn.size < 2 or speakers < 2:
            return None
        edge = self._edge(speakers, level)
        unmoved = self._unmoved(speakers, level)
        if np.ptp(np.append(drawn, self.value)) < _LEAST_SPREAD:
            return self.read(edge or unmoved)
        drawn = drawn.mean() + self._wider(drawn) * (drawn - drawn.mean())
        within = MetricRange(*self.bounds)
        low, high = base.bias_corrected(self.value, drawn, speakers, level=level, within=within)
        if edge is not None:
            low, high = min(low, edge[0]), max(high, edge[1])
        if self.separates_everybody:
            low, high = min(low, unmoved[0]), max(high, unmoved[1])
        signed = None if self.evidence is None else self.evidence.ends(speakers, level)
        if signed is not None and signed[0] <= 0 <= signed[1]:
            low, high = min(low, self.chance), max(high, self.chance)
        return None if np.isnan(low) else self.read((low, high))

    def _wider(self, drawn: FloatArray) -> float:
        """Jackknife standard error over that of the replicates, at least 1."""
        left_out = self.drawn[self.replicates :]
        if left_out.size < 2 or not np.isfinite(left_out).all():
            return 1.0
        spread = drawn.std() * np.sqrt(left_out.size / (left_out.size - 1))
        return float(max(1.0, base.jackknife_error(left_out) / spread))

    def _edge(self, speakers: int, level: float) -> Ends | None:
        """Where nothing is found, speakers of whom something would be may be missing from the
        sample: their share is bounded by its size. None for any other value.
        """
        if abs(self.value) > _LEAST_SPREAD:
            return None
        bound = base.exact_bound("high", speakers, level=level)
        return (0.0 if self.bounds[0] == 0 else -bound), bound

    def _unmoved(self, speakers: int, level: float) -> Ends:
        """Where every resample gives one value, such as that of speech that was not changed, the
        speakers who would move it may be missing. Their share q is bounded by the sample's size,
        that of the pairs they are in by 1 − (1 − q)²; of D_ECE goes what is lost where q of the
        targets score like strangers and the others are certain.
        """
        share = base.exact_bound("high", speakers, level=level)
        moved = 1 - (1 - share) ** 2
        if self.evidence is not None:
            hit, miss = information.z(np.log([share, 1 / share]))
            moved = 1 - (1 - share) / 2 - share * hit - miss
        reach = moved * abs(self.value)
        low, high = np.clip([self.value - reach, self.value + reach], *self.bounds)
        return float(low), float(high)


def ratio(
    value: float, of: float, drawn: FloatArray, drawn_of: FloatArray
) -> tuple[float, FloatArray]:
    """A ratio and that of every replicate; NaN where the reference is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return value / of, np.where(drawn_of > 0, drawn / drawn_of, np.nan)
