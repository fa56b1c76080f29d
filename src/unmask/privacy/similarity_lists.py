"""Similarity matrices from lists of scored trials."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from unmask.arrays import BoolArray, FloatArray, IntArray
from unmask.detection.roc import Roc
from unmask.errors import InputError
from unmask.privacy.similarity_matrix import SimilaritySet, similarity
from unmask.privacy.similarity_sums import PairSums, Tables
from unmask.trials import Ids, Scores
from unmask.trials.ids import lookup, share


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


def set_from_list(
    scores: Scores,
    name: str,
    names: tuple[str, ...],
    *,
    system: str | None,
    mean: str,
    mirror: bool,
) -> tuple[SimilaritySet, int]:
    """One set and how many trials of a segment with itself were left out."""
    enrol, test = (_codes(ids, names) for ids in _sides(scores, name))
    own, same = _own_and_same(scores, name)
    values = scores.scores(system)[~own]
    enrol, test, same = enrol[~own], test[~own], same[~own]
    try:
        roc = Roc.from_scores(values[same], values[~same])
    except InputError as error:
        raise InputError(f"{name.upper()}: {error}") from None
    pair = enrol * len(names) + test
    sums = list_sums(values, pair, roc, len(names), mirror=mirror)
    _refuse_missing(sums.count, names, name)
    turned = None
    if name == "op":
        negated = list_sums(-values, pair, roc.negated(), len(names), mirror=mirror)
        turned = similarity(negated, mean)
    return SimilaritySet(name, names, mean, sums, roc, turned), int(own.sum())


def speaker_trials(
    scores: Scores, name: str, *, system: str | None = None
) -> tuple[FloatArray, FloatArray]:
    """(target, nontarget) scores by the speakers on both sides, no segment against itself."""
    own, same = _own_and_same(scores, name)
    values = scores.scores(system)
    return values[same & ~own], values[~same & ~own]


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
    scores: FloatArray, pair: IntArray, roc: Roc, speakers: int, *, mirror: bool
) -> PairSums:
    """Sums per pair of speakers; ``pair`` is enrolment·speakers + test."""
    tables = Tables.of(roc)
    step = tables.lookup(scores)
    shape = (speakers, speakers)
    within = pair // speakers == pair % speakers
    disclosure = np.where(within, tables.z_target[step], tables.z_nontarget[step])
    lowest = np.full(speakers * speakers, tables.none)
    highest = np.full(speakers * speakers, -1)
    np.minimum.at(lowest, pair, step)
    np.maximum.at(highest, pair, step)

    def added(values: FloatArray | None) -> FloatArray:
        table = np.bincount(pair, values, minlength=speakers * speakers).reshape(shape)
        return table.astype(np.float64)

    sums = PairSums(
        added(None).astype(np.int64),
        added(tables.log_sigmoid[step]),
        added(tables.llr[step]),
        added(disclosure),
        tables.llr_of(lowest).reshape(shape),
        tables.llr_of(highest).reshape(shape),
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
