"""Similarity matrices from lists of scored trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from unmask.base import BoolArray, FloatArray, IntArray
from unmask.engine import Roc
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.privacy.similarity.bins import Binned, Layout, counted
from unmask.privacy.similarity.matrix import Replicates, SimilaritySet, set_of
from unmask.privacy.similarity.passes import PairSums, Tables
from unmask.privacy.similarity.resampling import Setup
from unmask.trials import Ids, Scores, lookup, share


@dataclass(frozen=True, eq=False)
class RunScores:
    """Scores of one run of a safeguard, and whose they are: codes from 0 to ``speakers``.

    Made by :func:`cross_scores` and :func:`speaker_trials`, taken by
    :func:`calibration_distortion`.
    """

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
    sides = [
        ids.names.gather(ids.used) for name, scores in lists.items() for ids in _sides(scores, name)
    ]
    every = pl.concat(sides).unique(maintain_order=True)
    shared = set(every).intersection(*map(set, sides))
    known = tuple(name for name in every if name in shared)
    if len(known) < 2:
        raise InputError(
            f"expected two speakers or more on both sides of every list, found {len(known)} of"
            f" {len(every)}"
        )
    return known, tuple(name for name in every if name not in shared)


def _shared(scores: Scores, name: str, known: tuple[str, ...]) -> Scores:
    """Trials whose speakers are known on both sides."""
    inside = [_codes(ids, known) >= 0 for ids in _sides(scores, name)]
    both = inside[0] & inside[1]
    return scores if both.all() else scores.select(both)


def _sides(scores: Scores, name: str) -> tuple[Ids, Ids]:
    if scores.enrol_speaker is None or scores.test_speaker is None:
        raise InputError(
            f"{name.upper()}: expected the speakers on both sides of each trial, found none:"
            " give an utt2spk file or a pattern"
        )
    return scores.enrol_speaker, scores.test_speaker


def sets_of_lists(
    lists: Mapping[str, Scores], setup: Setup, *, system: str | None
) -> tuple[dict[str, SimilaritySet], dict[str, Replicates], tuple[Notice, ...]]:
    """A set per list and that of the centred scores with OP, what resamples of the speakers give,
    and what was left out.
    """
    names, others = speakers_of_lists(lists)
    sets: dict[str, SimilaritySet] = {}
    drawn: dict[str, Replicates] = {}
    notes = []
    if others:
        sentence = (
            f"{len(others)} of {len(names) + len(others)} speakers are not on both sides of every"
            " list, such as people who are not enrolled: they are left out of the matrices"
        )
        notes.append(Notice("speakers-left-out", "", sentence, "note"))
    for name, scores in ((name, _shared(one, name, names)) for name, one in lists.items()):
        own, same = _own_and_same(scores, name)
        enrol, test = (_codes(ids, names)[~own] for ids in _sides(scores, name))
        values = {name: scores.scores(system)[~own]}
        segments = _segments(scores, own)
        if name == "op" and segments is not None:
            centred = _centred(values[name], *segments)
            values |= {"centred": centred} if np.isfinite(centred).all() else {}
        weights = None if name == "op" or segments is None else _once(*segments)
        for each, chosen in values.items():
            sets[each], replicates = _set_of(
                each, chosen, (enrol, test), same[~own], weights, names, setup
            )
            if replicates is not None:
                drawn[each] = replicates
        if own.any():
            number = int(own.sum())
            sentence = f"{number:,} comparisons of a segment with itself left out"
            notes.append(Notice("pairs-left-out", name.upper(), sentence, "note"))
    if "centred" not in sets:
        sentence = "the centred score was not tried, which needs the names of the segments"
        notes.append(Notice("not-centred", "OP", sentence, "note"))
    return sets, drawn, tuple(notes)


def _set_of(
    name: str,
    values: FloatArray,
    speakers: tuple[IntArray, IntArray],
    same: BoolArray,
    weights: FloatArray | None,
    names: tuple[str, ...],
    setup: Setup,
) -> tuple[SimilaritySet, Replicates | None]:
    classes = values[same], values[~same]
    try:
        roc = once = Roc.from_scores(*classes)
    except InputError as error:
        raise InputError(f"{name.upper()}: {error}") from None
    if weights is not None:
        once = Roc.from_scores(
            *classes, target_weights=weights[same], nontarget_weights=weights[~same]
        )
    pair = speakers[0] * len(names) + speakers[1]
    sums = list_sums(values, pair, roc, len(names), once=once)
    _refuse_missing(sums.mirrored().count if setup.mirror else sums.count, names, name)
    negated = binned = None
    if name in ("op", "centred"):
        negated = list_sums(-values, pair, roc.negated(), len(names))
    if setup.replicates:
        layout = Layout.of(roc, len(names))
        binned = Binned.of(counted(layout, values, *speakers), layout, mirror=setup.mirror)
    return set_of(name, names, sums, once, setup, negated=negated, binned=binned)


def _segments(scores: Scores, own: BoolArray) -> tuple[IntArray, IntArray] | None:
    """The segments on both sides of the trials that count, in one numbering; None if unnamed."""
    if scores.enrol is None or scores.test is None:
        return None
    enrol, test = share(scores.enrol, scores.test)
    return enrol.codes[~own].astype(np.int64), test.codes[~own].astype(np.int64)


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
    for name, scores in ((name, _shared(one, name, names)) for name, one in lists.items()):
        own, same = _own_and_same(scores, name)
        values = scores.scores(system)
        enrol, test = (_codes(ids, names) for ids in _sides(scores, name))
        target, other = same & ~own, ~same & ~own
        classes = values[target], values[other]
        runs.append(RunScores(*classes, enrol[target], enrol[other], test[other], len(names)))
    return runs


def _own_and_same(scores: Scores, name: str) -> tuple[BoolArray, BoolArray]:
    """Which trials compare a segment with itself, and which have one speaker."""
    enrol, test = share(*_sides(scores, name))
    same = np.asarray(enrol.codes == test.codes)
    _refuse_contradiction(scores, same, name)
    own = np.zeros(same.size, dtype=bool)
    if scores.enrol is not None and scores.test is not None:
        a, b = share(scores.enrol, scores.test)
        own = np.asarray(a.codes == b.codes)
    return own, same


def list_sums(
    scores: FloatArray, pair: IntArray, roc: Roc, speakers: int, *, once: Roc | None = None
) -> PairSums:
    """Sums per pair of speakers; ``pair`` is enrolment·speakers + test. Extreme LLRs are those of
    ``once``, the statistic that counts every comparison once, where it differs.
    """
    tables = Tables.of(roc)
    step = tables.lookup(scores)
    extremes = tables if once is None or once is roc else Tables.of(once)
    reached = step if extremes is tables else extremes.lookup(scores)
    shape = (speakers, speakers)
    within = pair // speakers == pair % speakers
    disclosure = np.where(within, tables.z_target[step], tables.z_nontarget[step])
    lowest = np.full(speakers * speakers, extremes.none)
    highest = np.full(speakers * speakers, -1)
    np.minimum.at(lowest, pair, reached)
    np.maximum.at(highest, pair, reached)

    def added(values: FloatArray | None) -> FloatArray:
        table = np.bincount(pair, values, minlength=speakers * speakers).reshape(shape)
        return table.astype(np.float64)

    return PairSums(
        added(None).astype(np.int64),
        added(tables.log_sigmoid[step]),
        added(tables.llr[step]),
        added(disclosure),
        extremes.llr_of(lowest).reshape(shape),
        extremes.llr_of(highest).reshape(shape),
    )


def _codes(ids: Ids, names: tuple[str, ...]) -> IntArray:
    return np.asarray(lookup(ids.names, pl.Series(names))[ids.codes], dtype=np.int64)


def _refuse_contradiction(scores: Scores, same: BoolArray, name: str) -> None:
    """Where trials are labelled, the labels must say what the speakers say."""
    if scores.label is None:
        return
    wrong = np.flatnonzero((scores.is_target & ~same) | (scores.is_nontarget & same))
    if wrong.size:
        raise InputError(
            f"{name.upper()}: {wrong.size} trials are labelled against their speakers, the first"
            f" is trial {int(wrong[0]) + 1}"
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
