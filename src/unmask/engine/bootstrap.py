"""Confidence intervals: the joint speaker bootstrap, and the trial bootstrap without speakers.

With m_k draws of speaker k a trial of two different speakers a and b weighs m_a·m_b, one within a
speaker m_a. Scores are sorted once; a replicate only re-weighs the ROC statistic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from unmask.base import (
    VERDICT,
    FloatArray,
    IntArray,
    MetricRange,
    Replicates,
    check_replicates,
    draw,
    draws,
    few_speakers,
    in_order,
    lazy,
    widening,
)
from unmask.engine import information
from unmask.engine.binned_bootstrap import BinnedTrials, FirstOrder, count_speakers, edges_of
from unmask.engine.operating import OperatingPoint
from unmask.engine.roc import Roc
from unmask.estimate import Notice
from unmask.run import NUMPY, Arrays, Range, Xp, ranges_of, run
from unmask.trials import ScoreBatch, Scores, two_speakers

AUTO_REPLICATES = 1000
AUTO_TRIALS = 2_000_000
NOT_ASKED = "no replicates were asked for"
NO_SPEAKERS = (
    "no speaker ids: intervals are of the trial bootstrap, which takes trials for "
    "independent and is too narrow where speakers recur"
)
_BATCH = 1 << 20
_LEAST_SPEAKERS, _LEAST_MISSES, _MOST_MISSES = 4, 5, 0.5
"""One speaker is told of where half of the misses are theirs, of so many speakers and misses."""
_FEW_CARRIERS = 0.3
"""Fewer than this share of those of even speakers carry the false alarms."""
_FEWEST_CARRIERS = 3.0
"""Degrees of freedom that are reckoned with at least: with fewer no interval would end."""
Codes = npt.NDArray[np.integer]
Statistics = Callable[[Roc], Mapping[str, float]]
Conditions = tuple[Codes, Codes]
"""The condition of every target and of every nontarget."""


@dataclass(frozen=True, eq=False)
class Units:
    """What is drawn with replacement, and which units each trial depends on.

    A trial's weight is the product of how often its two units were drawn, or how often its one
    unit was (``nontarget_second`` is None, or the same unit twice). :func:`units_of` makes them of
    a list of trials, :meth:`SortedTrials.of` and C-P maps take them.
    """

    method: str
    target: Codes
    nontarget_first: Codes
    nontarget_second: Codes | None
    strata: tuple[int, ...]

    @classmethod
    def speakers(cls, target: Codes, nontarget_enrol: Codes, nontarget_test: Codes) -> Units:
        """The joint speaker bootstrap.

        ``target`` are the speakers of target trials, ``nontarget_enrol`` and ``nontarget_test``
        those on either side of nontargets: codes in the order of the speakers' names
        (:func:`~unmask.base.in_order`).
        """
        every = np.concatenate([target, nontarget_enrol, nontarget_test])
        present = np.cumsum(np.bincount(every) > 0)
        dense = (present - 1).astype(np.int32)[every]
        parts = np.split(dense, [target.size, target.size + nontarget_enrol.size])
        return cls("speaker", parts[0], parts[1], parts[2], (int(present[-1]),))

    @classmethod
    def trials(cls, targets: int, nontargets: int) -> Units:
        """The trial bootstrap of ``targets`` and ``nontargets``, where no speakers are known."""
        numbers = np.arange(targets + nontargets)
        return cls("trial", numbers[:targets], numbers[targets:], None, (targets, nontargets))

    @lazy
    def count(self) -> int:
        """How many units there are to draw from in the class that has fewer."""
        if self.nontarget_second is None:
            return min(self.strata)
        other = np.concatenate([self.nontarget_first, self.nontarget_second])
        return min(int(np.count_nonzero(np.bincount(codes))) for codes in (self.target, other))

    def draw(self, seed: int, index: int) -> FloatArray:
        """How often each unit is drawn in replicate ``index`` of ``seed``, within each stratum."""
        return draw(self.strata, seed, index)


def units_of(scores: Scores) -> tuple[Units, list[Notice]]:
    """Units of the bootstrap of the trials of ``scores`` and what must be said of them."""
    target, nontarget = scores.is_target, scores.is_nontarget
    enrol, test = scores.enrol_speaker, scores.test_speaker
    if enrol is None or test is None:
        units = Units.trials(int(target.sum()), int(nontarget.sum()))
    else:
        refuse_two_speakers(scores)
        number = in_order(enrol.names.to_list())
        one, other = number[enrol.codes], number[test.codes]
        units = Units.speakers(one[target], one[nontarget], other[nontarget])
    return units, interval_notices(units.count, speakers=speaker_count(scores))


def refuse_two_speakers(scores: Scores) -> None:
    """Refuse target trials whose sides are of different speakers."""
    enrol, test = scores.enrol_speaker, scores.test_speaker
    if enrol is not None and test is not None:
        wrong = np.flatnonzero(scores.is_target & (enrol.codes != test.codes))
        if wrong.size:
            pair = enrol.decode(wrong[0]), test.decode(wrong[0])
            raise two_speakers(scores.name, wrong.size, *pair)


def interval_notices(units: int, *, speakers: int | None) -> list[Notice]:
    """What must be said of intervals over so many units, of so many ``speakers`` in all."""
    if units < 2:
        sentence = f"{reason_none(speakers)}: no interval can be given"
        return [Notice("no-interval", "", sentence)]
    if speakers is None:
        return [Notice("no-speakers", "", NO_SPEAKERS)]
    part = f"of {speakers} speakers have trials of one of the classes"
    few = few_speakers(units, part if units < speakers else "speakers")
    return [Notice("few-speakers", "", few)] if few else []


def reason_none(speakers: int | None) -> str:
    """Why there is no interval where a class has a single unit."""
    if speakers is None:
        return "one trial of a class only"
    return "one speaker only" if speakers < 2 else "one speaker only has target trials"


def carrier_notices(
    system: SortedTrials, point: OperatingPoint, estimator: str, thresholds: Mapping[str, float]
) -> list[Notice]:
    """Say where a single speaker makes the misses at the ``point`` of the EER, what the EER is
    without that speaker, and at which demanded ``thresholds`` few speakers carry the false alarms.
    """
    if system.method != "speaker" or system.units < _LEAST_SPEAKERS:
        return []
    notices = []
    if np.isfinite(point.threshold):
        misses = system.misses(point.threshold)
        worst, total = int(misses.argmax()), int(misses.sum())
        of_worst = misses[worst] / max(total, 1)
        expected = np.mean(system.target_unit == worst)
        if total >= _LEAST_MISSES and of_worst >= max(_MOST_MISSES, 2 * expected):
            others = np.ones(system.strata[0])
            others[worst] = 0.0
            without = system.weighted(NUMPY, others)
            sentence = (
                f"one of {system.units} speakers (number {worst + 1} of {system.strata[0]} in the"
                f" order of names) makes {100 * of_worst:.0f} % of the misses at its threshold"
            )
            if without is not None:
                rate = 100 * without.eer(estimator=estimator)
                sentence += f"; without that speaker it is {rate:.2f} %"
            notices.append(Notice("one-speaker", "EER", sentence))
    for name, threshold in thresholds.items():
        at = np.array([threshold])
        carriers, share = carriers_of(system, at, system.first_order(at) ** 2)
        if 0 < share[0] < _FEW_CARRIERS:
            sentence = (
                f"about {max(round(carriers[0]), 1)} of {system.units} speakers carry the false"
                " alarms: other speakers may need a higher threshold than the interval and the"
                " safe threshold say"
            )
            notices.append(Notice("few-carriers", name, sentence))
    return notices


def trial_count(scores: Scores) -> int:
    """Number of trials of both classes."""
    return int(scores.is_target.sum() + scores.is_nontarget.sum())


def speaker_count(scores: Scores) -> int | None:
    """How many speakers the trials of both classes of ``scores`` have, if that is known."""
    if scores.enrol_speaker is None or scores.test_speaker is None:
        return None
    counted = scores.is_target | scores.is_nontarget
    sides = [ids.codes[counted] for ids in (scores.enrol_speaker, scores.test_speaker)]
    return int(np.count_nonzero(np.bincount(np.concatenate(sides))))


def auto_replicates(
    scores: Scores, replicates: int | None, *, most: int
) -> tuple[int, list[Notice]]:
    """The number of ``replicates`` given, or 1,000 for ``scores`` of up to ``most`` trials and none
    beyond, with a notice that says so.
    """
    trials = trial_count(scores)
    if replicates is not None:
        return replicates, []
    if trials <= most:
        return AUTO_REPLICATES, []
    sentence = f"no intervals by default for {trials:,} trials: ask for them, they take minutes"
    return 0, [Notice("no-interval", "", sentence)]


@dataclass(frozen=True, eq=False)
class SortedTrials:
    """Scores of one system, sorted once, from which the ROC statistic of any draw is counted.

    ``strata``, ``method`` and ``units`` (their ``count``) are those of :class:`Units`.
    """

    roc: Roc
    strata: tuple[int, ...]
    method: str
    units: int
    target_unit: Codes
    target_edges: IntArray
    first: Codes
    second: Codes | None
    within: IntArray
    below: IntArray
    upto: IntArray
    target_loss: FloatArray
    nontarget_loss: FloatArray
    target_condition: Codes | None = None
    nontarget_condition: Codes | None = None
    whole: ClassVar[None] = None
    wider: ClassVar[float] = 1.0
    together: ClassVar[int] = 4

    @classmethod
    def of(
        cls,
        target: FloatArray,
        nontarget: FloatArray,
        units: Units,
        *,
        thresholds: Sequence[float] = (),
        conditions: Conditions | None = None,
        roc: Roc | None = None,
    ) -> SortedTrials:
        """Sort the trials of a system, and the units of the trials along with them; ``roc`` is
        their statistic, where that is known.
        """
        roc = roc or counted(target, nontarget, thresholds, conditions=conditions)
        target_order, order = np.argsort(target), np.argsort(nontarget)
        targets, nontargets = target[target_order], nontarget[order]
        first = units.nontarget_first[order]
        second = None if units.nontarget_second is None else units.nontarget_second[order]
        return cls(
            roc,
            units.strata,
            units.method,
            units.count,
            units.target[target_order],
            np.append(np.searchsorted(targets, roc.scores), targets.size),
            first,
            second,
            np.flatnonzero(first == second) if second is not None else np.empty(0, np.int64),
            np.searchsorted(nontargets, roc.scores),
            np.searchsorted(nontargets, roc.scores, side="right"),
            information.softplus(-targets),
            information.softplus(nontargets),
            *(() if conditions is None else (conditions[0][target_order], conditions[1][order])),
        )

    def first_order(self, thresholds: FloatArray) -> FloatArray:
        """What each speaker (row) adds to the false-alarm rate at each threshold: S_k/N, where S_k
        is how many more nontargets of speaker k are accepted than of others. The sum of squares is
        the variance of the rate to first order in the draws.
        """
        size, total = thresholds.size, self.first.size
        accepted = self.below[np.searchsorted(self.roc.scores, thresholds)]
        cell = np.searchsorted(accepted, np.arange(total), side="right")
        counts = np.zeros((self.strata[0], size + 1))
        other = np.delete(np.arange(total), self.within)
        second = self.first if self.second is None else self.second
        for unit, rows in ((self.first, np.arange(total)), (second, other)):
            at = unit[rows].astype(np.int64) * (size + 1) + cell[rows]
            counts += np.bincount(at, minlength=counts.size).reshape(counts.shape)
        above = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1]
        more = above[:, 1:] - above[:, :1] * (1 - accepted / total)
        return np.asarray(more / total)

    def accepted(self, thresholds: FloatArray) -> IntArray:
        """How many nontargets are accepted at thresholds of the statistic."""
        rejected = np.append(self.below, self.first.size)
        return self.first.size - rejected[np.searchsorted(self.roc.scores, thresholds)]

    def misses(self, threshold: float) -> IntArray:
        """How many targets of each unit lie below a threshold of the statistic."""
        row = int(np.searchsorted(self.roc.scores, threshold))
        missed = self.target_unit[: self.target_edges[row]]
        return np.bincount(missed, minlength=self.strata[0])

    def draws(self, seed: int, rows: Range) -> list[FloatArray]:
        """How often each unit is drawn in some replicates."""
        return [*draws(self.strata, rows[1] - rows[0], seed, first=rows[0])]

    def replicates(self, xp: Xp, times: Iterable[FloatArray]) -> Iterator[Roc | None]:
        """The statistic of every draw."""
        return (self.weighted(xp, drawn) for drawn in times)

    def weighted(self, xp: Xp, drawn: FloatArray) -> Roc | None:
        """The statistic of a replicate, or None if it left a class empty."""
        times = xp.put(drawn)
        target_weight = times[xp.put(self.target_unit)]
        weight = times[xp.put(self.first)]
        if self.second is not None:
            own = weight[xp.put(self.within)]
            weight *= times[xp.put(self.second)]
            weight[xp.put(self.within)] = own
        if self.target_condition is not None and self.nontarget_condition is not None:
            target_weight, weight = (
                xp.put(equalised(xp.host(drawn), condition))
                for drawn, condition in (
                    (target_weight, self.target_condition),
                    (weight, self.nontarget_condition),
                )
            )
        target = np.diff(xp.host(xp.cumulate(target_weight)[xp.put(self.target_edges)]))
        total = xp.cumulate(weight)
        below, upto = (xp.host(total[xp.put(at)]) for at in (self.below, self.upto))
        between = np.append(below, float(total[-1]))
        if between[-1] == 0 or not target.any():
            return None
        between[1:] -= upto
        loss = (
            xp.weighted_sum(xp.put(self.target_loss), target_weight),
            xp.weighted_sum(xp.put(self.nontarget_loss), weight),
        )
        return Roc(self.roc.scores, target, upto - below, between, loss, self.roc.marks)


System: TypeAlias = SortedTrials | BinnedTrials | FirstOrder
"""A system's trials, from which replicates are drawn: all of them, or their counts in bins."""


def counted(
    target: FloatArray,
    nontarget: FloatArray,
    thresholds: Iterable[float],
    marks: Mapping[str, FloatArray] | None = None,
    conditions: Conditions | None = None,
) -> Roc:
    """The statistic with C_llr; with ``conditions`` of both classes, of their trials in balance."""
    weights = {}
    if conditions is not None:
        names = ("target_weights", "nontarget_weights")
        alike = (equalised(np.ones(codes.size), codes) for codes in conditions)
        weights = dict(zip(names, alike, strict=True))
    return Roc.from_scores(
        target, nontarget, thresholds=thresholds, cllr=True, marks=marks, **weights
    )


def equalised(weights: FloatArray, condition: Codes) -> FloatArray:
    """Weights of a class such that each ``condition`` that occurs weighs alike: N/(C·n_c)."""
    size = np.bincount(condition, weights)
    there = np.count_nonzero(size)
    each = np.divide(weights.sum() / max(there, 1), size, out=np.zeros(size.size), where=size > 0)
    return np.asarray(weights * each[condition])


def binned_trials(
    target: FloatArray,
    nontarget: FloatArray,
    units: Units,
    *,
    roc: Roc,
    thresholds: Sequence[float] = (),
    edges: FloatArray | None = None,
) -> System:
    """Trials in memory, put into bins by speaker, or by class where no speakers are known; ``roc``
    is their statistic, ``edges`` are those of the bins, where they are known.
    """
    first, second = units.nontarget_first, units.nontarget_second
    rows = 1 if second is None else units.strata[0]
    edges = edges_of(roc, thresholds, rows=rows) if edges is None else edges
    own, other = np.ones(target.size, bool), np.zeros(nontarget.size, bool)
    targets = ScoreBatch(target, own, units.target, units.target)
    if second is None:
        batches = [targets, ScoreBatch(nontarget, other, first, first)]
        return BinnedTrials.of(batches, edges, roc)
    parts = (slice(*rows) for rows in ranges_of(nontarget.size, _BATCH))
    others = (ScoreBatch(nontarget[at], other[at], first[at], second[at]) for at in parts)
    return FirstOrder(count_speakers(chain([targets], others), edges, units.strata[0]), roc)


def bootstrap(
    systems: Sequence[System],
    statistics: Statistics,
    *,
    ranges: Mapping[str, MetricRange] | None = None,
    replicates: int = AUTO_REPLICATES,
    seed: int = 0,
    false_alarms: Callable[[Roc], Mapping[str, float]] | None = None,
) -> Replicates:
    """Replicates of every statistic for every system, all on the same draws.

    ``systems`` are of one kind, with the same units. ``statistics`` gives the numbers of a ROC
    statistic by name, ``ranges`` those that they can have, for their intervals; ``false_alarms``
    tells which of them are false-alarm rates, and their thresholds.

    Each of the ``replicates`` has its own child of ``seed``, so neither the place nor the number of
    workers changes anything (on a GPU the loss of C_llr adds up in another order). A single unit is
    not drawn from: the ends of its intervals are NaN. What bins move, beside the exact ``roc`` of a
    system, is taken off every replicate.
    """
    check_replicates(replicates)
    exact = [statistics(system.roc) for system in systems]
    sample = {name: np.array([values[name] for values in exact]) for name in exact[0]}
    one = systems[0]
    parts = run(
        partial(replicate, statistics, len(sample)),
        (tuple(systems), seed),
        ranges_of(replicates if one.units > 1 else 0, one.together),
    )
    none = np.empty((len(sample), len(systems), 0))
    table = np.concatenate([none, *(part["values"] for part in parts)], axis=2)
    for row, system in enumerate(systems):
        if (whole := system.whole) is not None:
            coarse = np.array([*statistics(whole).values()])
            table[:, row] = _unbinned(table[:, row], np.array([*exact[row].values()]), coarse)
        if false_alarms is not None and (thresholds := false_alarms(system.roc)):
            at = [list(sample).index(name) for name in thresholds]
            center = np.array([exact[row][name] for name in thresholds])[:, None]
            spread = table[at, row] - center
            table[at, row] = center + spread * _of_pairs(system, thresholds, spread)
    values = dict(zip(sample, table, strict=True))
    about = one.units, one.method, seed, replicates
    return Replicates(values, sample, *about, ranges or {}, one.wider)


def replicate(
    statistics: Statistics, size: int, xp: Xp, sample: tuple[Sequence[Any], int], rows: Range
) -> Arrays:
    """All ``size`` statistics of a range of replicates: (metrics, systems, replicates)."""
    systems, seed = sample
    values = np.full((size, len(systems), rows[1] - rows[0]), np.nan)
    times = systems[0].draws(seed, rows)
    for number, system in enumerate(systems):
        for column, roc in enumerate(system.replicates(xp, times)):
            if roc is not None:
                values[:, number, column] = list(statistics(roc).values())
    return {"values": values}


def _of_pairs(
    system: Any, thresholds: Mapping[str, float], spread: FloatArray
) -> FloatArray | float:
    """How much less false-alarm rates vary than draws of speakers show.

    With V the variance to first order, a bootstrap that weighs the trials of two speakers by
    m_a·m_b shows V + P, where P sums the squares of all pairs of speakers. V counts each pair for
    both its speakers, so the rate itself varies by V − P, and by no less than P, which is a third
    of V + P where pairs are independent.

    Where few speakers carry the false alarms, V rests on few of its terms and has about
    (Σ S_k²)²/Σ S_k⁴ degrees of freedom in place of n − 1 (after Satterthwaite 1946): the rate is
    spread as much more as intervals of so few units are wider.
    """
    if system.method != "speaker":
        return float(1 / system.wider)
    order = np.argsort([*thresholds.values()], kind="stable")
    ascending = np.array([*thresholds.values()])[order]
    squares = system.first_order(ascending) ** 2
    first, wider = np.empty(order.size), np.empty(order.size)
    first[order] = squares.sum(axis=0)
    wider[order] = _wider_for_carriers(system, ascending, squares)
    shown = np.nanmean(spread**2, axis=1) if spread.size else np.zeros(order.size)
    part = np.divide(first, shown, out=np.ones(order.size), where=shown > 0)
    narrower = np.sqrt(np.clip(np.maximum(2 * part - 1, 1 - part), 0.0, 1.0))
    return np.asarray((narrower * wider)[:, None])


def carriers_of(
    system: SortedTrials, thresholds: FloatArray, squares: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """On how many speakers the false alarms at each threshold rest, (Σ S²)²/Σ S⁴ from the
    ``squares`` of what they add, and how many that is of those of even speakers.

    These have a third of their number, and no more than there are false alarms.
    """
    fourth = np.maximum((squares**2).sum(axis=0), 1e-300)
    carriers = squares.sum(axis=0) ** 2 / fourth
    even = np.minimum(system.units / 3, np.maximum(system.accepted(thresholds), 1))
    return np.asarray(carriers), np.asarray(carriers / even)


def _wider_for_carriers(
    system: SortedTrials, thresholds: FloatArray, squares: FloatArray
) -> FloatArray:
    """How much wider few carriers make the interval of a false-alarm rate: in full where they are
    fewer than 0.3 of those of even speakers, not at all from twice that share on.
    """
    carriers, share = carriers_of(system, thresholds, squares)
    few = np.clip(carriers, _FEWEST_CARRIERS, system.units - 1) + 1
    wider = np.array([widening(n, VERDICT) for n in few]) / widening(system.units, VERDICT)
    return np.asarray(1 + (wider - 1) * np.clip(2 - share / _FEW_CARRIERS, 0.0, 1.0))


def _unbinned(values: FloatArray, exact: FloatArray, coarse: FloatArray) -> FloatArray:
    """Replicates less what bins move the sample by, within the range that a statistic can have."""
    same = exact == coarse  # both may be infinite
    moved = np.where(same, 0.0, exact - np.where(same, 0.0, coarse))[:, None]
    return np.minimum(np.maximum(values + moved, 0.0), np.maximum(values, 1.0))
