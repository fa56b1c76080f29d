"""Similarity matrices from lists of scored trials, and what one safeguard has more than another on
the same trials.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from unmask.base import BoolArray, FloatArray, IntArray
from unmask.engine import Roc
from unmask.errors import InputError
from unmask.estimate import Estimate, Notice
from unmask.privacy.attack import DOUBLE_CENTRED
from unmask.privacy.similarity.attackers import SETS
from unmask.privacy.similarity.intervals import NOT_ASKED, UNDEFINED, Setup, Statistic, gain, ratio
from unmask.privacy.similarity.kernels import PairSums, PavTables
from unmask.privacy.similarity.matrix import Comparisons
from unmask.privacy.similarity.renamed import renamed_list
from unmask.privacy.similarity.resampling import BinLayout, Binned, counted
from unmask.trials import Ids, Scores, lookup, share


@dataclass(frozen=True, eq=False)
class RunScores:
    """Scores of one run of a safeguard, and whose they are: codes from 0 to ``speakers``."""

    target: FloatArray
    nontarget: FloatArray
    owner: IntArray
    first: IntArray
    second: IntArray
    speakers: int

    @property
    def pair(self) -> tuple[FloatArray, FloatArray]:
        """(target, nontarget) scores."""
        return self.target, self.nontarget


def speakers_of_lists(lists: Mapping[str, Scores]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The speakers that are in all lists and on both sides of each, and those that are not."""
    sides = [ids.present for name, scores in lists.items() for ids in _sides(scores, name)]
    every = pl.concat(sides).unique(maintain_order=True)
    shared = set(every).intersection(*map(set, sides))
    known = tuple(name for name in every if name in shared)
    if len(known) < 2:
        raise InputError(
            f"expected two speakers or more on both sides of every list, found {len(known)} of"
            f" {len(every)}"
        )
    return known, tuple(name for name in every if name not in shared)


def _sides(scores: Scores, name: str) -> tuple[Ids, Ids]:
    if scores.enrol_speaker is None or scores.test_speaker is None:
        raise InputError(
            f"{name.upper()}: expected the speakers on both sides of each trial, found none:"
            " give an utt2spk file or a pattern"
        )
    return scores.enrol_speaker, scores.test_speaker


def sets_of_lists(
    lists: Mapping[str, Scores], setup: Setup, *, system: str | None
) -> tuple[Comparisons, tuple[Notice, ...]]:
    """A set per list and that of the double-centred scores with OP, and what was left out."""
    names, others = speakers_of_lists(lists)
    made = Comparisons(setup)
    notes = []
    if others:
        sentence = (
            f"{len(others)} of {len(names) + len(others)} speakers are not on both sides of every"
            " list, such as people who are not enrolled: they are left out of the matrices"
        )
        notes.append(Notice("speakers-left-out", "", sentence, "note"))
    for name, scores in lists.items():
        trials = Counted.of(scores, name, names)
        segments = trials.segments
        values = {name: trials.scores.scores(system)[trials.kept]}
        if name == "op" and segments is not None:
            centred = _centred(values[name], *segments)
            values |= {DOUBLE_CENTRED: centred} if np.isfinite(centred).all() else {}
        weights = None if name == "op" or segments is None else _once(*segments)
        for each, chosen in values.items():
            _add(made, each, chosen, trials, weights, names)
        if not trials.kept.all():
            number = int((~trials.kept).sum())
            sentence = f"{number:,} comparisons of a segment with itself left out"
            notes.append(Notice("pairs-left-out", name.upper(), sentence, "note"))
    if DOUBLE_CENTRED not in made.sets:
        sentence = "the double-centred score was not tried, which needs the names of the segments"
        notes.append(Notice("not-centred", "OP", sentence, "note"))
    return made, tuple(notes)


def _add(
    made: Comparisons,
    name: str,
    values: FloatArray,
    trials: Counted,
    weights: FloatArray | None,
    names: tuple[str, ...],
) -> None:
    """Add the set of the values of some trials; ``weights`` count every comparison once."""
    setup, same = made.setup, trials.same
    classes = values[same], values[~same]
    try:
        roc = once = Roc.from_scores(*classes)
    except InputError as error:
        raise InputError(f"{name.upper()}: {error}") from None
    if weights is not None:
        once = Roc.from_scores(
            *classes, target_weights=weights[same], nontarget_weights=weights[~same]
        )
    pair = trials.enrol * len(names) + trials.test
    sums = list_sums(values, pair, roc, len(names), once=once)
    _refuse_missing(sums.mirrored().count if setup.mirror else sums.count, names, name)
    negated = binned = renamed = None
    if name in ("op", DOUBLE_CENTRED):
        opposite = list_sums(-values, pair, roc.negated(), len(names))
        negated = opposite.log_sigmoid, opposite.llr
        if setup.renames:
            named = trials.enrol, trials.test, len(names)
            renamed = renamed_list(values, *named, mean=setup.mean, seed=setup.seed)
    if setup.replicates:
        layout = BinLayout.of(roc, len(names))
        counts = counted(layout, values, trials.enrol, trials.test)
        binned = Binned.of(counts, layout, mirror=setup.mirror)
    about: dict[str, Any] = {"negated": negated, "binned": binned, "renamed": renamed}
    made.keep(name, made.read(name, names, sums, once, **about))


@dataclass(frozen=True, eq=False)
class Counted:
    """Trials of known speakers; those ``kept`` do not compare a segment with itself, and of them
    ``enrol`` and ``test`` are the speakers, ``same`` where they are one, and ``segments`` those on
    both sides, in one numbering, None if unnamed.
    """

    scores: Scores
    kept: BoolArray
    enrol: IntArray
    test: IntArray
    segments: tuple[IntArray, IntArray] | None

    @classmethod
    def of(cls, scores: Scores, name: str, names: tuple[str, ...]) -> Counted:
        """The trials of a list whose speakers are known on both sides."""
        enrol, test = (
            np.asarray(lookup(ids.names, pl.Series(names))[ids.codes], dtype=np.int64)
            for ids in _sides(scores, name)
        )
        known = (enrol >= 0) & (test >= 0)
        if not known.all():
            scores, enrol, test = scores.select(known), enrol[known], test[known]
        same = enrol == test
        if scores.label is not None:
            wrong = np.flatnonzero((scores.is_target & ~same) | (scores.is_nontarget & same))
            if wrong.size:
                raise InputError(
                    f"{name.upper()}: {wrong.size} trials are labelled against their speakers, the"
                    f" first is trial {int(wrong[0]) + 1}"
                )
        kept, segments = np.ones(same.size, dtype=bool), None
        if scores.enrol is not None and scores.test is not None:
            a, b = (ids.codes.astype(np.int64) for ids in share(scores.enrol, scores.test))
            kept = a != b
            segments = a[kept], b[kept]
        return cls(scores, kept, enrol[kept], test[kept], segments)

    @property
    def same(self) -> BoolArray:
        return np.asarray(self.enrol == self.test)


def _centred(values: FloatArray, enrol: IntArray, test: IntArray) -> FloatArray:
    """Scores less the mean of their enrolment and of their test segment over all trials."""
    centred = values.copy()
    with np.errstate(invalid="ignore"):
        for side in (enrol, test):
            number = np.maximum(np.bincount(side), 1)
            centred -= (np.bincount(side, values) / number)[side]
    return centred


def _once(enrol: IntArray, test: IntArray) -> FloatArray:
    """Weights that count every comparison of two segments once, however often it was scored."""
    low, high = np.minimum(enrol, test), np.maximum(enrol, test)
    key = low * (int(high.max(initial=0)) + 1) + high
    _, which, number = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / number[which])


def speaker_trials(lists: Mapping[str, Scores], *, system: str | None = None) -> list[RunScores]:
    """Scores of several lists by the speakers on both sides, no segment against itself."""
    names, _ = speakers_of_lists(lists)
    runs = []
    for trials in (Counted.of(scores, name, names) for name, scores in lists.items()):
        values, same = trials.scores.scores(system)[trials.kept], trials.same
        speakers = trials.enrol[same], trials.enrol[~same], trials.test[~same]
        runs.append(RunScores(values[same], values[~same], *speakers, len(names)))
    return runs


def list_sums(
    scores: FloatArray, pair: IntArray, roc: Roc, speakers: int, *, once: Roc | None = None
) -> PairSums:
    """Sums per pair of speakers; ``pair`` is enrolment·speakers + test. Extreme LLRs are those of
    ``once``, the statistic that counts every comparison once, where it differs.
    """
    tables = PavTables.of(roc)
    step = tables.lookup(scores)
    extremes = tables if once is None or once is roc else PavTables.of(once)
    reached = step if extremes is tables else extremes.lookup(scores)
    shape = (speakers, speakers)
    within = pair // speakers == pair % speakers
    disclosure = np.where(within, tables.z_target[step], tables.z_nontarget[step])
    extreme = np.full(speakers * speakers, np.nan)
    np.fmax.at(extreme, pair, extremes.extreme[reached])

    def added(values: FloatArray | None) -> FloatArray:
        table = np.bincount(pair, values, minlength=speakers * speakers).reshape(shape)
        return table.astype(np.float64)

    return PairSums(
        added(None).astype(np.int64),
        added(tables.log_sigmoid[step]),
        added(tables.llr[step]),
        added(disclosure),
        extreme.reshape(shape),
    )


def _refuse_missing(count: IntArray, names: tuple[str, ...], name: str) -> None:
    missing = np.argwhere(count == 0)
    if not missing.size:
        return
    i, j = missing[0]
    message = f"{name.upper()}: {len(missing)} ordered pairs of speakers have no trial, the first"
    if i == j:
        raise InputError(f"{message} {names[i]} with itself: a second segment is needed")
    raise InputError(f"{message} {names[i]} against {names[j]}: pairs=upper pools both orders")


_READ: dict[str, tuple[str, str, Callable[[FloatArray], FloatArray]]] = {
    "deid": ("op", "%", lambda left: 1 - np.abs(left)),
    "g_vd": ("pp", "dB", lambda left: gain(np.abs(left))),
}
"""Of each metric the set whose dominance over that of OO it is read off, its unit, and how."""


def safeguard_differences(*lists: Scores, **how: Any) -> tuple[Estimate, ...]:
    """``deid_difference`` and ``g_vd_difference``: what the second of two safeguards has more.

    ``lists`` are OO, OP, PP of the first and of the second, trials of the same speakers. Each
    replicate draws the same speakers for both and calibrates either anew, so that what they share
    cancels out. ``how`` are the options of :func:`pseudonymisation`.
    """
    setup = Setup(**how)
    both = [
        sets_of_lists(dict(zip(SETS, one, strict=True)), setup, system=None)[0]
        for one in (lists[:3], lists[3:])
    ]
    people = [one.sets["oo"].speakers for one in both]
    if set(people[0]) != set(people[1]):
        raise InputError("lists", "the same speakers of both safeguards", "others")
    made = []
    for metric, (name, unit, read) in _READ.items():
        one, two = (_over_oo(own, name) for own in both)
        with np.errstate(invalid="ignore"):
            value = float(read(np.array(two[0])) - read(np.array(one[0])))
            drawn = read(two[1]) - read(one[1])
        if people[0] != people[1]:  # speakers are left out in another order
            drawn = drawn[: setup.replicates]
        ends = setup.intervals({metric: Statistic(value, drawn, setup.replicates)}, len(people[0]))
        why = "" if ends else UNDEFINED if setup.replicates else NOT_ASKED
        n = {"speakers": len(people[0])}
        params = {"mean": setup.mean, "pairs": setup.pairs}
        difference = f"{metric}_difference"
        about = difference, value, unit, ends.get(metric), 0.0, n, params
        made.append(Estimate(*about, no_interval=why))
    return tuple(made)


def _over_oo(made: Comparisons, name: str) -> tuple[float, FloatArray]:
    """The signed dominance of a set over that of OO, and those of the replicates."""
    own, whole = (made.readings[one][0] for one in (name, "oo"))
    if not made.setup.replicates:
        return own.signed / whole.signed, np.empty(0)
    return ratio(own.signed, whole.signed, own.draws.signed, whole.draws.signed)
