"""Groups of speakers at one threshold: who errs more, by how much, and what equal groups read.

At a common threshold FNMR of a group counts the target trials of its speakers, FMR the nontarget
trials of which both speakers are of the group. Rates are first order in the draws of speakers: m_k
draws of speaker k move one by Σ (m_k − 1)·I_k, where I_k is what the speaker adds to it. One table
of I serves the joint bootstrap, for intervals, and that within groups, for the level of equal ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from unmask.base import (
    BoolArray,
    BySpeaker,
    FloatArray,
    IntArray,
    MetricRange,
    Sampling,
    Tabular,
    bias_corrected,
    correlation,
    draws,
    estimate_row,
    exact_bound,
    joined_interval,
    logit_interval,
)
from unmask.engine.bootstrap import NOT_ASKED
from unmask.engine.operating import as_read
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval, Luck, Notice
from unmask.run import ranges_of
from unmask.trials import Embeddings, Ids, Scores

if TYPE_CHECKING:
    from unmask.engine.evaluation import Analysis, SystemResult

ALL, ACROSS = "all", "across groups"
FEW_PEOPLE, FEW_ERRORS = 10, 10
_TOGETHER = 50
_SHARE = MetricRange(0.0, 1.0)


class Spread(NamedTuple):
    """A number of each group (rows): its ``value``, replicates over all speakers (``drawn``) and
    within groups (``within``), how many errors were ``counted``, and of how many ``people``.
    """

    value: FloatArray
    drawn: FloatArray
    within: FloatArray
    counted: IntArray
    people: IntArray


@dataclass(frozen=True)
class GroupRow:
    """What is said of a group, of all speakers, or of pairs across groups.

    ``attacker`` is the strongest of the group where its numbers are risks.
    """

    name: str
    people: int
    estimates: tuple[Estimate, ...]
    attacker: str = ""

    @property
    def size(self) -> str:
        """How many people, marked where they are few; nothing of pairs across groups."""
        return f"{self.people or '':}{', few' if 0 < self.people < FEW_PEOPLE else ''}"


@dataclass(frozen=True, eq=False, repr=False)
class GroupGaps(Tabular):
    """The numbers of all, of each group of a ``column`` and across groups (``groups``) under one
    ``system``, and the ``gaps`` between the groups, whose chance is the level of equal groups;
    ``point`` tells at which threshold, or against what attack, ``conditions`` of what in a report.
    """

    system: str
    column: str
    point: str
    groups: tuple[GroupRow, ...]
    gaps: tuple[Estimate, ...]
    notices: tuple[Notice, ...] = ()
    seed: int = 0
    conditions: Mapping[str, str] = field(default_factory=dict)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The gaps, then the numbers of each group."""
        return (*self.gaps, *(estimate for group in self.groups for estimate in group.estimates))

    def rows(self) -> list[dict[str, Any]]:
        """A row for each number of each group, then the gaps."""
        every = [*self.groups, GroupRow("gap", 0, self.gaps)]
        return [estimate_row(one, group=row.name) for row in every for one in row.estimates]

    @property
    def metrics(self) -> tuple[str, ...]:
        """What was measured of each group and has gaps."""
        ending = "_ratio"
        return tuple(e.metric.removesuffix(ending) for e in self.gaps if e.metric.endswith(ending))

    def of(self, metric: str) -> dict[str, Estimate]:
        """A number of all and of each group that has it, by name."""
        every = ((row.name, estimate) for row in self.groups for estimate in row.estimates)
        return {name: one for name, one in every if one.metric == metric and name != ACROSS}

    def level_of(self, metric: str) -> Luck | None:
        """What equal groups read of a number, and how often as much; None where not known."""
        ratio: Estimate = self[f"{metric}_ratio"]
        return ratio.luck

    def why_no_level(self, metric: str) -> str:
        """Why it is not known what equal groups read of a number."""
        return "too few errors"

    def ends(self, metric: str) -> tuple[str, str]:
        """The groups with the lowest and the highest number."""
        own = {name: float(one.value) for name, one in self.of(metric).items() if name != ALL}
        return min(own, key=lambda name: own[name]), max(own, key=lambda name: own[name])

    def sentence(self, metric: str) -> str:
        """The groups of the highest and the lowest number, and what equal groups read."""
        found = self.of(metric)
        low, high = (f"{100 * float(found[n].value):.2f} % ({n})" for n in self.ends(metric))
        ratio: Estimate = self[f"{metric}_ratio"]
        times = ratio.value if isinstance(ratio.value, str) else f"{ratio.value:.2f}"
        text, luck = f"highest {high} and lowest {low}, {times} times as high", ratio.luck
        if luck is None:
            return f"{text}; too few errors for a level of equal groups."
        less = "" if luck.beyond else ", so no group stands out"
        return f"{text}; equal groups read {luck.value:.2f} times (p = {luck.p:.3f}){less}."


def ratio_of(values: FloatArray) -> FloatArray:
    """Largest over smallest of the groups (rows); infinite where the smallest is 0 or less."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(values.max(axis=0) / np.maximum(values.min(axis=0), 0.0))


def gap_of(values: FloatArray) -> FloatArray:
    """Largest less smallest of the groups (rows): the largest |x_g − x_h|."""
    return np.asarray(np.ptp(values, axis=0))


def fdr(fmr: FloatArray, fnmr: FloatArray, alpha: float = 0.5) -> FloatArray:
    """Fairness discrepancy rate (Freitas Pereira and Marcel 2021): 1 − [α·max|FMR_g − FMR_h| +
    (1 − α)·max|FNMR_g − FNMR_h|], groups in rows; 1 is equal.
    """
    return np.asarray(1 - (alpha * gap_of(fmr) + (1 - alpha) * gap_of(fnmr)))


def gini(values: FloatArray) -> FloatArray:
    """G = n/(n − 1)·Σ_g Σ_h |x_g − x_h|/(2n²·mean x) over n groups (rows); 0 where all are 0."""
    n, mean = len(values), np.asarray(values.mean(axis=0))
    apart = np.abs(values[:, None] - values[None]).sum(axis=(0, 1))
    return np.asarray(apart / np.where(mean > 0, 2 * n * (n - 1) * mean, 1.0))


def garbe(fmr: FloatArray, fnmr: FloatArray, alpha: float = 0.5) -> FloatArray:
    """GARBE (Howard et al. 2022): α·G(FMR) + (1 − α)·G(FNMR), groups in rows; 0 is equal."""
    return np.asarray(alpha * gini(fmr) + (1 - alpha) * gini(fnmr))


def gaps_between(
    spreads: Mapping[str, Spread], how: Sampling, *, alpha: float = 0.5, **about: Any
) -> tuple[tuple[Estimate, ...], tuple[Notice, ...]]:
    """Ratio and gap of every number, FDR and GARBE of both error rates, with intervals and levels
    for equal groups, and why there is no level; ``about`` are fields of the estimates.
    """
    asked: list[tuple[str, Callable[..., FloatArray], MetricRange, tuple[str, ...]]] = []
    for name in spreads:
        asked.append((f"{name}_ratio", ratio_of, MetricRange(1.0), (name,)))
        asked.append((f"{name}_gap", gap_of, _SHARE, (name,)))
    if {"fmr", "fnmr"} <= spreads.keys():
        for name, made in (("fdr", fdr), ("garbe", garbe)):
            asked.append((name, partial(made, alpha=alpha), _SHARE, ("fmr", "fnmr")))
    gaps = []
    for metric, read, within, names in asked:
        some = [spreads[name] for name in names]
        value, equal = (
            float(read(*of)) for of in ([s.value for s in some], [np.ones(2)] * len(some))
        )
        luck = _level(value, equal, some, read) if how.replicates else None
        drawn = read(*(one.drawn for one in some))
        units = min(int(one.people.min()) for one in some)
        ends = bias_corrected(value, drawn, units, level=how.level, within=within)
        if not np.isnan(ends[0]):
            near = ends[metric == "fdr"] if luck is not None and luck.beyond else equal
            tail = (1 - how.level if metric == "fdr" else 1 + how.level) / 2
            far = float(np.quantile(drawn[~np.isnan(drawn)], tail, method="inverted_cdf"))
            ends = min(near, far, value), max(near, far, value)
        n = {"groups": len(some[0].value), "speakers": int(some[0].people.sum())}
        params = about["params"] | ({"alpha": alpha} if len(some) > 1 else {})
        shown = about | {"n": n, "params": params, "chance": luck and luck.value, "luck": luck}
        least = int(some[0].people[some[0].value.argmin()])
        above = max(1.0, some[0].value.max() / exact_bound("high", least, level=how.level))
        told = f"> {above:.3g}" if metric.endswith("_ratio") and value == np.inf else value
        unit = "%" if metric.endswith("_gap") else ""
        gaps.append(estimated(metric, told, unit, ends, how, **shown))
    few = [n for n, one in spreads.items() if one.counted.min() < FEW_ERRORS and how.replicates]
    sentence = f"a group has fewer than {FEW_ERRORS} errors: no level for equal groups"
    notices = [Notice("no-level", ", ".join(few), sentence, "note")] if few else []
    return tuple(gaps), tuple(notices)


def _level(
    value: float, equal: float, some: Sequence[Spread], read: Callable[..., FloatArray]
) -> Luck | None:
    """What equal groups read in the middle, and how often as much as was found: each replicate
    within groups, less the group's own number, plus the mean of the groups, not below 0. None
    where a group has too few errors.
    """
    if min(one.counted.min() for one in some) < FEW_ERRORS:
        return None
    moved = (one.within - one.value[:, None] + one.value.mean() for one in some)
    alike = read(*(np.maximum(rows, 0.0) for rows in moved))
    reached = int((np.abs(alike - equal) >= abs(value - equal) * (1 - 1e-12)).sum())
    people, number = int(some[0].people.sum()), alike.size
    return Luck(float(np.nanmedian(alike)), (1 + reached) / (1 + number), 1, number, people)


def estimated(
    metric: str,
    value: float | str,
    unit: str,
    ends: tuple[float, float],
    how: Sampling,
    **about: Any,
) -> Estimate:
    """A number with the interval that ends so, or why it has none."""
    if isinstance(value, float) and np.isfinite(value) and ends[0] < ends[1]:
        made = Interval(*ends, how.level, "speaker,first order", how.replicates, how.seed)
        return Estimate(metric, value, unit, made, **about)
    none = "too few speakers move it, or none, or the smallest is 0"
    none = none if how.replicates else NOT_ASKED
    return Estimate(metric, value, unit, no_interval=none, **about)


@dataclass(frozen=True, eq=False)
class GroupedTrials:
    """Trials by speaker: ``member`` is the group of each, in the order of their names, ``target``
    the speaker of each target, ``pair`` that of each nontarget, of speakers ``first`` and
    ``second``; pairs within group g begin at ``starts[g]``, those across groups come last.
    """

    names: tuple[str, ...]
    member: IntArray
    target: IntArray
    pair: IntArray
    first: IntArray
    second: IntArray
    starts: IntArray

    @classmethod
    def of(cls, scores: Scores, by: str) -> GroupedTrials:
        """Groups by a column of speakers: ``enrol_`` and ``test_`` ``by``, or one of trials of
        which each speaker has one value.
        """
        enrol, test, place = scores.enrol_speaker, scores.test_speaker, f"{scores.name}, {by}"
        if enrol is None or test is None:
            raise InputError(place, "trials whose speakers are known (--speakers)", "none")
        columns = [by, by] if by in scores.columns else [f"enrol_{by}", f"test_{by}"]
        values = Ids.concatenate([scores.columns[name] for name in columns]).alphabetical()
        counted = scores.is_target | scores.is_nontarget
        speakers = Ids.concatenate([enrol.take(counted), test.take(counted)]).alphabetical()
        value = values.codes[np.tile(counted, 2)]
        member = np.zeros(len(speakers.names), np.int64)
        member[speakers.codes] = value
        if (torn := np.flatnonzero(member[speakers.codes] != value)).size:
            who = int(speakers.codes[torn[0]])
            found = {values.names[int(one)] or "none" for one in (member[who], value[torn[0]])}
            actual = f"{' and '.join(sorted(found))} of {speakers.names[who]}"
            raise InputError(place, "one group of each speaker", actual)
        used, member = np.unique(member, return_inverse=True)
        names = [str(values.names[int(code)]) for code in used]
        if not names[0].strip():
            first = speakers.names[int(np.argmin(member))]
            actual = f"none of {int((member == 0).sum())} (first: {first})"
            raise InputError(place, "a group of every speaker", actual)
        if len(names) < 2:
            raise InputError(place, "two groups or more", f"one: {names[0]}")
        one, two = np.split(speakers.codes.astype(np.int64), 2)
        other, size = scores.is_nontarget[counted], member.size
        target, one, two = one[~other], one[other], two[other]
        cell = np.where(member[one] == member[two], member[one], len(names))
        cell = (cell * size + np.minimum(one, two)) * size + np.maximum(one, two)
        cells, pair = np.unique(cell, return_inverse=True)
        starts = np.searchsorted(cells, np.arange(len(names) + 1) * size**2)
        both = divmod(cells % size**2, size)
        return cls(tuple(names), member, target, pair, *both, starts)

    def spreads(
        self, target: FloatArray, nontarget: FloatArray, at: float, how: Sampling
    ) -> dict[str, tuple[Spread, IntArray]]:
        """FNMR and FMR of the groups, of all and across groups, and how many trials each has."""
        n, pairs, made = self.member.size, len(self.first), {}
        missed = np.bincount(self.target[target < at], minlength=n)
        passed = np.bincount(self.pair[nontarget >= at], minlength=pairs)
        trials = np.bincount(self.target, minlength=n), np.bincount(self.pair)
        speaker, none = np.arange(n), slice(0)
        alone = [np.flatnonzero(self.member == group) for group in range(len(self.names))]
        *within, across = (slice(*ends) for ends in pairwise([*self.starts, pairs]))
        tables: list[tuple[str, tuple[IntArray, ...], tuple[Any, ...]]] = [
            ("fnmr", (missed, trials[0], speaker, speaker), (*alone, slice(None), none)),
            ("fmr", (passed, trials[1], self.first, self.second), (*within, slice(None), across)),
        ]
        for metric, table, chosen in tables:
            rates = [_rate(*(column[some] for column in table), speakers=n) for some in chosen]
            value, adds, *sizes = map(np.array, zip(*rates, strict=True))
            drawn = replicates_of(value, adds, self.member, how)
            made[metric] = Spread(value, *drawn, sizes[0], sizes[2]), sizes[1]
        return made


@dataclass(frozen=True, eq=False)
class GroupedCounts:
    """The same of pairs that nobody kept, by their counts at ``thresholds``: ``target`` and
    ``nontarget`` count trials of each speaker (row) that reach each threshold (column), all of them
    in the first; ``within`` those nontargets that stay within the speaker's group.
    """

    names: tuple[str, ...]
    member: IntArray
    thresholds: FloatArray
    target: IntArray
    nontarget: IntArray
    within: IntArray

    @classmethod
    def of(
        cls,
        voices: Embeddings,
        by: str,
        thresholds: Sequence[float],
        count: Callable[[Embeddings], BySpeaker],
    ) -> GroupedCounts:
        """Count all pairs, and those of each group by itself."""
        speakers, values = voices.speakers.alphabetical(), voices.columns[by].alphabetical()
        member = np.zeros(len(speakers.names), np.int64)
        member[speakers.codes] = values.codes
        if (torn := np.flatnonzero(member[speakers.codes] != values.codes)).size:
            who = speakers.decode(int(torn[0]))
            raise InputError(f"{voices.name}, {by}", "one group of each speaker", f"more of {who}")
        used, member = np.unique(member, return_inverse=True)
        whole = count(voices)
        within = np.zeros_like(_reached(whole.nontarget))
        for group, code in enumerate(used):
            # A group of one speaker, or without two utterances of anybody, has no table.
            with suppress(InputError):
                some = count(voices.select(values.codes == code))
                within[member == group] = _reached(some.nontarget)
        names = tuple(str(values.names[int(code)]) for code in used)
        both = _reached(whole.target), _reached(whole.nontarget)
        return cls(names, member, np.unique(thresholds), *both, within)

    def spreads(
        self, target: FloatArray, nontarget: FloatArray, at: float, how: Sampling
    ) -> dict[str, tuple[Spread, IntArray]]:
        """As :meth:`GroupedTrials.spreads`. What pairs of speakers vary by themselves is not known
        here and stays in the spread, which is wider by it.
        """
        column = 1 + int(np.searchsorted(self.thresholds, at))
        groups = [self.member == group for group in range(len(self.names))]
        every, nobody = np.ones(self.member.size, bool), np.zeros(self.member.size, bool)
        missed = self.target[:, 0] - self.target[:, column]
        tables = {"fnmr": [(missed, self.target[:, 0], who, 1) for who in (*groups, every, nobody)]}
        parts = [(self.within, who) for who in groups]
        parts += [(self.nontarget, every), (self.nontarget - self.within, every)]
        tables["fmr"] = [(table[:, column], table[:, 0], who, 2) for table, who in parts]
        spreads = {}
        for metric, rows in tables.items():
            rates = [_counted_rate(*row) for row in rows]
            value, adds, *sizes = map(np.array, zip(*rates, strict=True))
            drawn = replicates_of(value, adds, self.member, how)
            spreads[metric] = Spread(value, *drawn, sizes[0], sizes[2]), sizes[1]
        return spreads


def _reached(counts: IntArray) -> IntArray:
    """Trials of each speaker from each edge on, all of them in the first column."""
    return np.asarray(np.cumsum(counts[:, ::-1], axis=1)[:, ::-1])


def _counted_rate(
    errors: IntArray, trials: IntArray, chosen: BoolArray, sides: int
) -> tuple[float, FloatArray, int, int, int]:
    """What :func:`_rate` gives, of trials that count for both speakers where they have two."""
    errors, trials = np.where(chosen, errors, 0), np.where(chosen, trials, 0)
    total, wrong = int(trials.sum()) // sides, int(errors.sum()) // sides
    value = wrong / total if total else float("nan")
    adds = (errors - value * trials) / max(total, 1)
    return value, np.nan_to_num(adds), wrong, total, int(np.count_nonzero(trials))


def _rate(
    errors: IntArray, trials: IntArray, first: IntArray, second: IntArray, *, speakers: int
) -> tuple[float, FloatArray, int, int, int]:
    """A share of errors, what each speaker adds to it, how many errors, trials and people.

    What speakers add varies by V, in which each pair counts for both its speakers: without pairs,
    P, the rate varies by V − P, and by no less than P (:func:`~.bootstrap._of_pairs`).
    """
    total = int(trials.sum())
    people = sum(np.bincount(side[trials > 0], minlength=speakers) for side in (first, second))
    value = float(errors.sum() / total) if total else float("nan")
    off = (errors - value * trials) / max(total, 1)
    adds, two = np.asarray(np.bincount(first, off, speakers), float), first != second
    if two.any():
        adds += np.bincount(second[two], off[two], speakers)
        part = float(off @ off) / max(float(adds @ adds), 1e-300)
        adds *= np.sqrt(min(max(1 - part, part), 1.0))
    return value, adds, int(errors.sum()), total, int(np.count_nonzero(people))


def replicates_of(
    value: FloatArray, adds: FloatArray, member: IntArray, how: Sampling
) -> tuple[FloatArray, FloatArray]:
    """Replicates of shares (rows) over all speakers, and within groups, whose sizes stay."""
    order, made = np.argsort(member, kind="stable"), []
    for sizes, moves in (([len(member)], adds), (np.bincount(member).tolist(), adds[:, order])):
        parts = [
            (draws(sizes, stop - start, how.seed, first=start) - 1) @ moves.T
            for start, stop in ranges_of(how.replicates, _TOGETHER)
        ]
        moved = np.concatenate([np.empty((0, len(value))), *parts]).T
        made.append(np.clip(value[:, None] + moved, 0.0, 1.0))
    return made[0], made[1]


def rate_gaps(
    grouped: GroupedTrials | GroupedCounts,
    scores: Sequence[FloatArray],
    at: float,
    how: Sampling,
    **about: Any,
) -> tuple[tuple[GroupRow, ...], tuple[Estimate, ...], tuple[Notice, ...]]:
    """Rates of all, of each group and across groups at one threshold, and gaps between groups."""
    names, size, level = (*grouped.names, ALL, ACROSS), len(grouped.names), how.level
    rows: dict[str, list[Estimate]] = {ALL: [], **{name: [] for name in names}}
    between, told, alpha = {}, [], about.pop("alpha")
    for metric, (spread, counts) in grouped.spreads(scores[0], scores[1], at, how).items():
        known = np.flatnonzero(~np.isnan(spread.value))
        values, people = spread.value.tolist(), spread.people.tolist()
        intervals = {
            i: logit_interval(
                values[i], spread.drawn[i], people[i], level=level, least=0.5 / int(counts[i])
            )
            for i in known.tolist()
        }
        for i, ends in intervals.items():
            errors = int(spread.counted[i])
            n = {"trials": int(counts[i]), "errors": errors, "speakers": people[i]}
            shown = about | {"n": n, "threshold": at}
            rows[names[i]].append(estimated(metric, values[i], "%", ends, how, **shown))
            if i < size:
                # The group's own interval counts: without errors no resample moves its rate.
                of_all, of_group = (values[size], intervals[size]), (values[i], ends)
                # Squared, since rates of a few speakers go together less than draws of them do.
                r = correlation(spread.drawn[size], spread.drawn[i])
                ends = joined_interval(of_all, of_group, r * abs(r))
                key, more = f"{metric}_difference", values[i] - values[size]
                rows[names[i]].append(estimated(key, more, "%", ends, how, **shown))
        sentence = f"no trials within it: left out of the gaps of {metric.upper()}"
        lost = sorted(set(range(size)) - set(known.tolist()))
        told += [Notice("group-empty", f"group {names[i]}", sentence) for i in lost]
        if known[known < size].size > 1:
            own = [np.asarray(field)[known[known < size]] for field in spread]
            between[metric] = Spread._make(own)
    gaps, notices = gaps_between(between, how, alpha=alpha, **about)
    sizes = dict(zip(names, np.bincount(grouped.member, minlength=size + 2).tolist(), strict=True))
    sizes[ALL] = grouped.member.size
    groups = [GroupRow(name, sizes[name], tuple(some)) for name, some in rows.items() if some]
    return tuple(groups), gaps, (*told, *notices)


def gaps_of(
    scores: Scores, analysis: Analysis, by: str, results: Sequence[SystemResult]
) -> tuple[tuple[GroupGaps, ...], tuple[Notice, ...]]:
    """The gaps of every system at each common threshold: those given, those of demanded FARs, or
    that of the EER of all trials; or a notice why there are none.
    """
    if not 0 <= analysis.alpha <= 1:
        raise InputError("alpha", "between 0 and 1", analysis.alpha)
    try:
        trials = GroupedTrials.of(scores, by)
    except InputError as error:
        varies = by in scores.columns and "one group of each speaker" in str(error)
        code = "conditions" if varies or not scores.has_speakers else "no-gaps"
        return (), (Notice(code, "no gaps between groups", str(error), "note"),)
    made: list[GroupGaps] = []
    for result in (system_result for system_result in results if system_result.group is None):
        both = scores.targets(result.system), scores.nontargets(result.system)
        target, nontarget = (as_read(one, estimator=analysis.battery.eer) for one in both)
        made += gaps_at(trials, (target, nontarget), analysis, by, result)
    return tuple(made), ()


def gaps_at(
    grouped: GroupedTrials | GroupedCounts,
    scores: tuple[FloatArray, FloatArray],
    analysis: Analysis,
    by: str,
    result: SystemResult,
) -> tuple[GroupGaps, ...]:
    """The gaps of a system at each of its common thresholds."""
    gaps = []
    for name, at in points_of(result, analysis).items():
        params = {"by": by, "set_by": name, **analysis.shown}
        trials = result.estimates[0].trials
        about = {"params": params, "trials": trials, "alpha": analysis.alpha}
        found = rate_gaps(grouped, scores, at, analysis, **about)
        gaps.append(GroupGaps(result.system, by, name, *found, analysis.seed))
    return tuple(gaps)


def points_of(result: SystemResult, analysis: Analysis) -> dict[str, float]:
    """Thresholds given, set by a demanded FAR, or by the EER, on other trials where there are."""
    points = {f"{one:g}": one for one in analysis.battery.threshold}
    for estimate in (one for one in result.estimates if one.metric == "threshold"):
        points[f"FAR ≤ {100 * float(estimate.params['far'] or 0):g} %"] = float(estimate.value)
    points = points or {"EER": float(result["eer"].threshold or 0.0)}
    judged = ((str(one.params.get("set_by")), one.threshold) for one in result.estimates)
    points |= {name: at for name, at in judged if name in points and at is not None}
    return {name: at for name, at in points.items() if not np.isnan(at)}
