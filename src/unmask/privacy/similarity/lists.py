"""Similarity matrices from lists of scored trials."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from unmask.base import BoolArray, FloatArray, IntArray
from unmask.engine import Roc
from unmask.errors import InputError
from unmask.privacy.similarity.bins import Binned, Layout, counted
from unmask.privacy.similarity.distortion_resample import RunScores
from unmask.privacy.similarity.matrix import SimilaritySet, similarity
from unmask.privacy.similarity.sums import PairSums, Tables
from unmask.trials import Ids, Scores, lookup, share


def speakers_of_lists(lists: Mapping[str, Scores]) -> tuple[str, ...]:
    """The speakers, the same in all lists and on both sides of each."""
    found: dict[str, pl.Series] = {}
    for name, scores in lists.items():
        for side, ids in zip(("enrolment", "test"), _sides(scores, name), strict=True):
            found[f"{name.upper()} {side}"] = ids.names.gather(ids.used)
    first, *others = found.items()
    for where, names in others:
        for a, b, here in ((first[1], names, first[0]), (names, first[1], where)):
            alone = a.filter(~a.is_in(b.to_list()))
            if len(alone):
                away = where if here == first[0] else first[0]
                raise InputError(
                    f"speaker {alone[0]} is on the {here} side but not on the {away} side"
                    f" ({len(alone)} such speakers)"
                )
    return tuple(first[1])


def _sides(scores: Scores, name: str) -> tuple[Ids, Ids]:
    if scores.enrol_speaker is None or scores.test_speaker is None:
        raise InputError(
            f"{name.upper()}: expected the speakers on both sides of each trial, found none:"
            " give an utt2spk file or a pattern"
        )
    return scores.enrol_speaker, scores.test_speaker


def sets_from_list(
    scores: Scores,
    name: str,
    names: tuple[str, ...],
    *,
    system: str | None,
    mean: str,
    mirror: bool,
    times: FloatArray | None = None,
) -> tuple[dict[str, SimilaritySet], int]:
    """One set, that of the centred scores with OP, and how many trials of a segment with itself
    were left out. ``times`` says how often each speaker is drawn in each replicate.
    """
    enrol, test = (_codes(ids, names) for ids in _sides(scores, name))
    own, same = _own_and_same(scores, name)
    values = scores.scores(system)[~own]
    enrol, test, same = enrol[~own], test[~own], same[~own]
    sides = _segments(scores, own)
    given = {name: values}
    if name == "op" and sides is not None:
        given["centred"] = _centred(values, *sides)
    weights = None if name == "op" or sides is None else _once(*sides)
    made = {}
    for each, chosen in given.items():
        if not np.isfinite(chosen).all() and each == "centred":
            continue
        made[each] = _set_of(
            each, chosen, (enrol, test), same, weights, names, mean=mean, mirror=mirror, times=times
        )
    return made, int(own.sum())


def _set_of(
    name: str,
    values: FloatArray,
    speakers: tuple[IntArray, IntArray],
    same: BoolArray,
    weights: FloatArray | None,
    names: tuple[str, ...],
    *,
    mean: str,
    mirror: bool,
    times: FloatArray | None,
) -> SimilaritySet:
    try:
        roc = Roc.from_scores(values[same], values[~same])
    except InputError as error:
        raise InputError(f"{name.upper()}: {error}") from None
    once = roc
    if weights is not None:
        once = Roc.from_scores(
            values[same],
            values[~same],
            target_weights=weights[same],
            nontarget_weights=weights[~same],
        )
    pair = speakers[0] * len(names) + speakers[1]
    sums = list_sums(values, pair, roc, len(names), mirror=mirror, once=once)
    _refuse_missing(sums.count, names, name)
    turned = None
    if name in ("op", "centred"):
        negated = list_sums(-values, pair, roc.negated(), len(names), mirror=mirror)
        turned = similarity(negated, mean)
    made = SimilaritySet(name, names, mean, sums, once, turned)
    if times is None:
        return made
    layout = Layout.of(roc, len(names))
    binned = Binned.of(counted(layout, values, *speakers), layout, mirror=mirror)
    return made.with_resamples(binned, layout, times)


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
    _, place, number = np.unique(key, return_inverse=True, return_counts=True)
    return np.asarray(1.0 / number[place])


def speaker_trials(lists: Mapping[str, Scores], *, system: str | None = None) -> list[RunScores]:
    """Scores of several lists by the speakers on both sides, no segment against itself."""
    names = speakers_of_lists(lists)
    found = []
    for name, scores in lists.items():
        own, same = _own_and_same(scores, name)
        values = scores.scores(system)
        enrol, test = (_codes(ids, names) for ids in _sides(scores, name))
        target, other = same & ~own, ~same & ~own
        found.append(
            RunScores(
                values[target], values[other], enrol[target], enrol[other], test[other], len(names)
            )
        )
    return found


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
    scores: FloatArray,
    pair: IntArray,
    roc: Roc,
    speakers: int,
    *,
    mirror: bool,
    once: Roc | None = None,
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

    sums = PairSums(
        added(None).astype(np.int64),
        added(tables.log_sigmoid[step]),
        added(tables.llr[step]),
        added(disclosure),
        extremes.llr_of(lowest).reshape(shape),
        extremes.llr_of(highest).reshape(shape),
    )
    return sums.mirrored() if mirror else sums


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
    told = f"{name.upper()}: {len(missing)} ordered pairs of speakers have no trial, the first"
    if i == j:
        raise InputError(f"{told} {names[i]} with itself: a second segment is needed")
    raise InputError(f"{told} {names[i]} against {names[j]}: pairs=upper pools both orders")
