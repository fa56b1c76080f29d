"""Resamples of the speakers, each calibrated anew, and the intervals made from them.

m_i is how often speaker i was drawn. A comparison within a speaker weighs m_i, one of two speakers
m_i·m_j; copies of one speaker are never compared with each other. Every replicate has its own
oracle calibration, and so its own similarity matrix.

A dominance keeps its sign until the interval is made: an interval that reaches from one sign to the
other holds 0, whatever the modulus of the replicates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.special import expit

from unmask.base import (
    FloatArray,
    bias_corrected,
    draws,
    exact_bound,
    in_order,
    jackknife_error,
)
from unmask.engine import Pav, Polygon, equal_error, first_of_blocks, information
from unmask.errors import InputError
from unmask.estimate import Interval
from unmask.privacy.similarity.bins import Binned

METHOD = "speaker,recalibrated,corrected"
NOT_ASKED = "no replicates were asked for"
SAME = "every resample of the speakers gives the same value"
WITH_TRIALS = "it grows with the number of comparisons: resampling cannot tell how far"
MEANS = ("geometric", "arithmetic")
PAIRS = ("all", "upper")
MOST_LEFT_OUT = 200
_ENTRIES = 1 << 23
_MOST_TOGETHER = 128
_SHARED_TOGETHER = 16
_LEAST_SPREAD = 1e-5

Table = npt.NDArray[np.float32]
Ends = tuple[float, float]
Bounds = tuple[float, float]
ANY: Bounds = (-np.inf, np.inf)
POSITIVE: Bounds = (0.0, np.inf)
LARGEST_D_ECE = 1 / (2 * np.log(2))


@dataclass(frozen=True, eq=False)
class Resampled:
    """What resamples of the speakers give: made by :func:`resampled`, read by intervals only.

    Of every replicate: signed dominance of the similarities and of their log2, D_ECE and
    C_llr^min in bits, and the EER; ``share`` has a row per replicate and a column per speaker,
    where the speakers' shares were asked for.
    """

    signed: FloatArray
    signed_log: FloatArray
    d_ece: FloatArray
    min_cllr: FloatArray
    eer: FloatArray
    share: FloatArray

    def moved(self, exact: Mapping[str, FloatArray | float], coarse: Resampled) -> Resampled:
        """Less what the bins move: ``exact`` minus ``coarse``, which is that of all speakers."""
        moved = {
            name: getattr(self, name) + (np.asarray(exact[name]) - getattr(coarse, name))
            for name in ("signed", "signed_log", "d_ece", "min_cllr", "eer")
        }
        share = self.share
        if share.size:
            share = (share + (exact["share"] - coarse.share)).astype(np.float32)
        return Resampled(**moved, share=share)


def resampled(binned: Binned, times: FloatArray, *, mean: str, shares: bool = True) -> Resampled:
    """What every replicate gives; ``times[r, i]`` is how often speaker i was drawn in it."""
    together = int(np.clip(_ENTRIES // max(len(binned.other), 1), 1, _MOST_TOGETHER))
    parts = [
        _batch(binned, times[start : start + together], mean, shares)
        for start in range(0, len(times), together)
    ]
    return Resampled(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _batch(binned: Binned, times: FloatArray, mean: str, shares: bool) -> tuple[FloatArray, ...]:
    short = times.astype(np.float32)
    weight = short[:, binned.first]
    weight *= short[:, binned.second]
    target = times @ binned.own
    nontarget = binned.weighted(weight)
    oracles = [_oracle(*row) for row in zip(target, nontarget, strict=True)]
    llr, bare, eer = (np.stack(column) for column in zip(*oracles, strict=True))
    disclosed = _disclosed(bare, target, nontarget)
    per_bin = llr if mean == "arithmetic" else -information.softplus(-llr)
    with np.errstate(invalid="ignore", divide="ignore"):
        own = (binned.own @ per_bin.T) / binned.own_number[:, None]
        other = (binned.other @ per_bin.T.astype(np.float32)).astype(np.float64)
        other /= binned.other_number[:, None]
        if mean == "arithmetic":
            own, other = expit(own), expit(other, out=other)
            logs = _dominance(np.log2(own), np.log2(other), times, weight)
        else:
            logs = _dominance(own / np.log(2), other / np.log(2), times, weight)
            own, other = np.exp(own), np.exp(other, out=other)
        return (
            _dominance(own, other, times, weight),
            logs,
            *disclosed,
            eer,
            own.T - _others(binned, other, times) if shares else np.empty((len(times), 0)),
        )


def _dominance(own: FloatArray, other: FloatArray, times: FloatArray, weight: Table) -> FloatArray:
    """Mean of the speakers' own similarities minus that of all pairs; NaN where there is none."""
    within = (times * own.T).sum(axis=1) / times.sum(axis=1)
    between = np.einsum("rc,cr->r", weight, other) / weight.sum(axis=1, dtype=np.float64)
    return np.asarray(within - between)


def _others(binned: Binned, other: FloatArray, times: FloatArray) -> FloatArray:
    """Mean similarity of each speaker to the others drawn, on either side."""
    ones, rows = np.ones(len(binned.other)), np.arange(len(binned.other))
    shape = len(binned.own), len(binned.other)
    first, second = (
        csr_array((ones, (side, rows)), shape=shape) for side in (binned.first, binned.second)
    )
    means = np.empty_like(times)
    for start in range(0, len(times), _SHARED_TOGETHER):
        chunk = slice(start, start + _SHARED_TOGETHER)
        of_first, of_second = times[chunk, binned.first].T, times[chunk, binned.second].T
        total = first @ (other[:, chunk] * of_second) + second @ (other[:, chunk] * of_first)
        means[chunk] = (total / (first @ of_second + second @ of_first)).T
    return means


def _disclosed(
    llr: FloatArray, target: FloatArray, nontarget: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """D_ECE and C_llr^min in bits of every row of LLRs without Laplace."""

    def mean(weight: FloatArray, values: FloatArray) -> FloatArray:
        return np.asarray(
            np.where(weight > 0, weight * values, 0.0).sum(axis=1) / weight.sum(axis=1)
        )

    with np.errstate(invalid="ignore"):
        both = (target, llr), (nontarget, -llr)
        d_ece = sum(mean(weight, information.z(values)) for weight, values in both)
        cllr = sum(mean(weight, information.softplus(-values)) for weight, values in both)
    return np.maximum(d_ece, 0.0) / (2 * np.log(2)), np.asarray(cllr) / (2 * np.log(2))


def _oracle(target: FloatArray, nontarget: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """LLR of every bin with Laplace and without, and the EER; NaN if a class is empty."""
    if not (target.any() and nontarget.any()):
        nothing = np.full(target.size, np.nan)
        return nothing, nothing, np.nan
    pav, every = pav_of(target, nontarget), np.arange(target.size, dtype=np.float64)
    hull = Polygon.of(pav.target, pav.nontarget)
    return pav.with_laplace().apply(every), pav.apply(every), equal_error(hull)[0]


def pav_of(target: FloatArray, nontarget: FloatArray) -> Pav:
    """PAV of counts in bins, as a map of the numbers of the bins."""
    bins = np.flatnonzero((target > 0) | (nontarget > 0))
    first = first_of_blocks(target[bins], nontarget[bins])
    return Pav(
        bins[first[1:]].astype(np.float64),
        np.add.reduceat(target[bins], first),
        np.add.reduceat(nontarget[bins], first),
        float(target.sum()),
        float(nontarget.sum()),
    )


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

    Made where intervals are, and gone after them. ``drawn`` are the values of :meth:`Setup.times`,
    ``replicates`` of draws first. A number on whose bound chance lies (D_ECE 0, EER 50 %) is moved
    off it by any sample: ``evidence`` is the signed dominance of the same comparisons, which chance
    leaves at 0 on average, and where the interval of that holds 0, that of the number reaches
    ``chance``.
    """

    value: float
    drawn: FloatArray
    replicates: int
    read: Callable[[Ends], Ends] = same
    bounds: Bounds = ANY
    evidence: Statistic | None = None
    chance: float = 0.0

    def ends(self, speakers: int, level: float) -> Ends | None:
        """Both ends of the interval; None where no replicate differs.

        A calibration fitted to a resample keeps some of its spread to itself: where leaving out one
        speaker at a time (the jackknife) tells of a larger one, replicates are spread out to it.
        """
        drawn = self.drawn[: self.replicates]
        drawn = drawn[np.isfinite(drawn)]
        if not np.isfinite(self.value) or drawn.size < 2 or speakers < 2:
            return None
        edge = self._edge(speakers, level)
        if np.ptp(np.append(drawn, self.value)) < _LEAST_SPREAD:
            return None if edge is None else self.read(edge)
        drawn = drawn.mean() + self._wider(drawn) * (drawn - drawn.mean())
        low, high = bias_corrected(self.value, drawn, speakers, level=level, bounds=self.bounds)
        if edge is not None:
            low, high = min(low, edge[0]), max(high, edge[1])
        signed = None if self.evidence is None else self.evidence.ends(speakers, level)
        if signed is not None and signed[0] <= 0 <= signed[1]:
            low, high = min(low, self.chance), max(high, self.chance)
        return None if np.isnan(low) else self.read((low, high))

    def interval(self, speakers: int, level: float, seed: int) -> Interval | None:
        """The interval at a level, where there is one."""
        ends = self.ends(speakers, level)
        return None if ends is None else Interval(*ends, level, METHOD, self.replicates, seed)

    def _wider(self, drawn: FloatArray) -> float:
        """Jackknife standard error over that of the replicates, at least 1."""
        left_out = self.drawn[self.replicates :]
        if left_out.size < 2 or not np.isfinite(left_out).all():
            return 1.0
        spread = drawn.std() * np.sqrt(left_out.size / (left_out.size - 1))
        return float(max(1.0, jackknife_error(left_out) / spread))

    def _edge(self, speakers: int, level: float) -> Ends | None:
        """Where nothing is found, speakers of whom something would be may be missing from the
        sample: their share is bounded by its size. None for any other value.
        """
        if abs(self.value) > _LEAST_SPREAD:
            return None
        bound = exact_bound("high", speakers, level=level)
        return (0.0 if self.bounds[0] == 0 else -bound), bound


def ratio(
    value: float, of: float, drawn: FloatArray, drawn_of: FloatArray
) -> tuple[float, FloatArray]:
    """A ratio and that of every replicate; NaN where the reference is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return value / of, np.where(drawn_of > 0, drawn / drawn_of, np.nan)


@dataclass(frozen=True)
class Setup:
    """The options that all assessments share; made by each public function from its keywords."""

    mean: str = "geometric"
    pairs: str = "all"
    replicates: int = 1000
    level: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        for option, known in (("mean", MEANS), ("pairs", PAIRS)):
            value = getattr(self, option)
            if value not in known:
                raise InputError(f"{option}: expected {' or '.join(known)}, found {value}")

    @property
    def mirror(self) -> bool:
        """Whether both orders of two speakers are pooled."""
        return self.pairs == "upper"

    def times(self, speakers: int | Sequence[str]) -> FloatArray | None:
        """How often each speaker is drawn in each replicate (the draws of the detection bootstrap),
        and after them all speakers but one, for each in turn where they are not many; None where no
        replicates were asked for. ``speakers`` are their names, of which a seed draws the same in
        every number, or how many there are.
        """
        if not self.replicates:
            return None
        count = speakers if isinstance(speakers, int) else len(speakers)
        drawn = draws(count, self.replicates, self.seed)
        if not isinstance(speakers, int):
            drawn = drawn[:, in_order(speakers)]
        left_out = 1 - np.eye(count) if count <= MOST_LEFT_OUT else np.empty((0, count))
        return np.concatenate([drawn, left_out])

    def intervals(self, statistics: Mapping[str, Statistic], speakers: int) -> dict[str, Interval]:
        """The interval of each statistic that has one."""
        intervals = {
            name: statistic.interval(speakers, self.level, self.seed)
            for name, statistic in statistics.items()
        }
        return {name: interval for name, interval in intervals.items() if interval is not None}
