"""1 − EER on the conditions of Linkability (Vauquier 2025, 3.4), by the engine.

Its intervals draw speakers with replacement on both sides, their scores in bins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from unmask.base import HULL, SKEWED, FloatArray, IntArray, in_order, score_interval
from unmask.engine import Roc, equal_errors
from unmask.privacy.legal.conversations import EnrolLength, as_counts, locate, setting
from unmask.privacy.legal.curve import Curve, Resampling, one_speaker_note
from unmask.privacy.legal.lists import ROWS, Lists, count_lists, own_scores
from unmask.run import Arrays, Range, Xp, current_place, narrow, place, ranges_of, reporting, run
from unmask.scoring import Backend
from unmask.trials import Embeddings

_BINS = 256
_MOST_ALONE = 64
_GROUPS = 32
_METHOD = "enrolment and test speaker,corrected"
_AT_ONCE = 256


def one_minus_eer(
    enrol: Embeddings,
    test: Embeddings,
    *,
    counts: npt.ArrayLike,
    length: int = 1,
    seed: int = 0,
    enrol_length: EnrolLength = None,
    backend: Backend | str = "cosine",
    side: Sequence[str] = (),
    allow_shared_utterances: bool = False,
    level: float = 0.95,
    replicates: int = 1000,
) -> Curve:
    """1 − EER (ROCCH) of every test speaker against N' enrolment speakers, itself among them.

    ``counts`` are the numbers N' of speakers of ``enrol``; the others are the first N' − 1 of one
    random order of them, drawn with ``seed`` like the utterances. Each speaker of ``test`` gives
    one conversation of ``length`` utterances. Enrolment averages ``enrol_length`` utterances, by
    default all there are. ``backend`` is ``"cosine"`` or a trained one. ``side`` names columns
    without which a pair cannot be one speaker. ``allow_shared_utterances`` lets utterances be on
    both sides, which is a leak. The interval of ``level`` draws speakers on both sides (in 32
    groups where there are more than 64) ``replicates`` times on a ROC of 256 bins, less the bias
    of the hull. Scores are counted on the current place; the values are the same, but for the last
    bits of scores on a GPU.
    """
    lengths = "all" if enrol_length is None else enrol_length, length
    both = setting(enrol, test, lengths, (1, 1), backend, side, allow_shared_utterances, seed)
    known, asked = both.known, both.asked
    true = locate(asked.names, known.names, who="test speakers", where="enrolment")
    sizes = as_counts(counts, speakers=len(known.names), least=2, where="enrolment")
    enrol_side, test_side = both.codes
    left, right = both.rows()
    order = np.random.default_rng(both.seeds[0]).permutation(len(left))
    row = np.argsort(order)[true]
    by_row, ascending = np.argsort(row), np.argsort(sizes, kind="stable")
    row, nothing = row[by_row], np.empty(0)
    groups = _groups(row, in_order(asked.names.to_list())[by_row], len(left))
    lists = Lists(
        left[order],
        right[by_row],
        row,
        sizes[ascending] - 1,
        nothing,
        nothing.astype(int),
        groups[row],
        groups,
        None if test_side is None else test_side[by_row],
        None if enrol_side is None else enrol_side[order],
    )
    how = Resampling(level, replicates, seed)
    resampled = replicates > 0 and len(true) > 1
    counted = _count(lists, bins=_BINS if resampled else 0)
    values, low, high = (np.full((2, len(sizes)), np.nan) for _ in range(3))
    values[:, ascending] = counted.values()
    if resampled:
        drawn = counted.resampled(how)
        ends = drawn.intervals(values[:, ascending], level=level)
        low[:, ascending], high[:, ascending] = ends

    def curve(s: int) -> Curve:
        return Curve(
            metric="one_minus_eer",
            counts=sizes,
            value=values[s],
            low=low[s],
            high=high[s],
            chance=np.full(len(sizes), 0.5),
            attacks=len(true) * sizes,
            speakers=asked.names,
            **both.fields(),
            short=known.short,
            resampling=how,
            method=_METHOD,
            notes=one_speaker_note(len(true)),
        )

    return replace(curve(0), negated=replace(curve(1), variant="negated"))


def _groups(tested: IntArray, numbers: IntArray, speakers: int) -> IntArray:
    """Group of every enrolment speaker: each test speaker has its own, by its number, or one of 32
    where there are many, and those who are not tested are spread over all of them.
    """
    size = len(tested) if len(tested) <= _MOST_ALONE else _GROUPS
    groups = np.empty(speakers, dtype=np.int64)
    groups[tested] = numbers % size
    others = np.setdiff1d(np.arange(speakers), tested)
    groups[others] = np.arange(len(others)) % size
    return groups


@dataclass(frozen=True, eq=False)
class _Counted:
    """What the test rows of a set of lists add up to, for every N' of it, ascending.

    ``counts`` holds how many nontargets have each code among the target scores; ``spread`` how
    many each pair of groups has in each coarse bin, between one N' and the next; ``extra`` the code
    of the one that fills in for the own speaker, or −1.
    """

    lists: Lists
    own: IntArray
    counts: IntArray
    spread: IntArray
    extra: IntArray

    def values(self) -> FloatArray:
        """1 − EER, and that of the negated score."""
        target = np.bincount(self.own, minlength=self.lists.knots.size).astype(np.float64)
        values = []
        for nontarget in self.counts.astype(np.float64):
            roc = Roc(self.lists.knots, target, nontarget[1::2], nontarget[::2])
            values.append((1 - roc.eer(), 1 - roc.negated().eer()))
        return np.array(values).T

    def resampled(self, how: Resampling) -> Resampled:
        """The same in bins, groups of speakers drawn as often as a replicate says."""
        lists = self.lists
        groups, bins = lists.groups, lists.bins
        target = np.zeros((groups, bins), dtype=np.int64)
        np.add.at(target, (lists.test_group, lists.coarse[2 * self.own + 1]), 1)
        nontarget = np.cumsum(self.spread, axis=0, dtype=np.int64)
        for n, (counted, codes) in enumerate(zip(nontarget, self.extra, strict=True)):
            more = codes >= 0
            joined = lists.enrol_group[lists.cuts[n]]
            np.add.at(counted, (lists.test_group[more], joined, lists.coarse[codes[more]]), 1)
        flat = nontarget.reshape(len(nontarget), groups * groups, bins)
        times = np.vstack([np.ones(groups), how.times(groups)])
        return Resampled(times, target, narrow(flat))


def _count(lists: Lists, *, bins: int) -> _Counted:
    """Find the target scores, on this machine, then count the others among them."""
    ranges, here = ranges_of(len(lists.test), ROWS), current_place()
    nearby = "cuda" if here.on == "cuda" else "local"
    with place(nearby, workers=here.workers, devices=here.devices), reporting(None):
        parts = list(run(own_scores, lists, ranges))
    knots, own = np.unique(np.concatenate([part["own"] for part in parts]), return_inverse=True)
    lists = replace(lists, knots=knots, coarse=_coarse(knots, own, bins))
    parts = list(run(count_lists, lists, ranges))
    counts = np.cumsum(sum(part["counts"].astype(np.int64) for part in parts), axis=0)
    extra = np.concatenate([part["extra"] for part in parts], axis=1)
    for row, codes in zip(counts, extra, strict=True):
        row += np.bincount(codes[codes >= 0], minlength=row.size)
    spread = sum(part["spread"].astype(np.int64) for part in parts)
    return _Counted(lists, own, counts, np.asarray(spread), extra)


def _coarse(knots: FloatArray, own: IntArray, bins: int) -> IntArray:
    """Bin of every code: two for each of ``bins``/2 quantiles of the target scores, one for scores
    that equal it and one from there to the next.

    The last entry is for what is not counted, a bin after all others.
    """
    if not bins:
        return np.zeros(2 * knots.size + 2, dtype=np.int64)
    edges = np.quantile(knots[own], np.linspace(0, 1, bins // 2), method="inverted_cdf")
    begins = np.zeros(2 * knots.size + 2, dtype=np.int64)
    at = np.flatnonzero(np.isin(knots, edges))
    begins[2 * at + 1] = begins[2 * at + 2] = begins[-1] = 1
    return np.cumsum(begins)


@dataclass(frozen=True, eq=False)
class Resampled:
    """Groups of speakers in bins of scores, and how often each is drawn in every replicate.

    ``target`` holds how many targets a group has in each bin, ``nontarget`` how many nontargets
    each pair of groups has in it, for every N' (N' × pairs × bins).
    """

    times: FloatArray
    target: IntArray
    nontarget: npt.NDArray[np.unsignedinteger]

    def intervals(self, values: FloatArray, *, level: float) -> tuple[FloatArray, FloatArray]:
        """Intervals of 1 − EER and of the negated score's (rows) for every N' (columns).

        The hull makes 1 − EER too large, in a sample and in a resample once more. With b = mean θ*
        − θ̂ the bias that resampling shows, the low end is that of the score interval about
        θ̂ − HULL·b, the bias of a hull, and the high end that about θ̂, or θ̂ − b where that is more:
        what is not sure stays with the risk. The variance is that of θ* times SKEWED²
        (:mod:`unmask.base.intervals`). The interval ends at 0.5 and is stretched to hold θ̂; it
        keeps its width near 1, where few replicates hold an error at all. The first row of
        ``times`` draws everyone once: it gives the θ̂ that bins give.
        """
        with place(workers=current_place().workers), reporting(None):
            parts = list(run(errors_of, self, ranges_of(len(self.times), _AT_ONCE)))
        drawn = 1 - np.concatenate([part["errors"] for part in parts])
        units = self.times.shape[1]
        bias = np.nanmean(drawn[1:], axis=0) - drawn[0]
        variance = SKEWED**2 * np.nanvar(drawn[1:], axis=0) * units / (units - 1)
        low, high = (
            score_interval(np.clip(values - less, 0.5, 1), variance, units, level=level)[end]
            for end, less in enumerate((HULL * bias, np.minimum(bias, 0.0)))
        )
        return np.minimum(np.maximum(low, 0.5), values), np.maximum(high, values)


def errors_of(xp: Xp, resampled: Resampled, replicates: Range) -> Arrays:
    """EER of some replicates (rows), of the score and of the negated one, for every N'.

    A trial of two groups weighs as often as both are drawn, a target as often as its own. NaN where
    no nontarget was drawn. All sums are whole numbers, so they do not depend on the order in which
    they are taken.
    """
    times = resampled.times[slice(*replicates)]
    target = times @ resampled.target
    pairs = (times[:, :, None] * times[:, None, :]).reshape(len(times), -1)
    errors = np.full((len(times), 2, len(resampled.nontarget)), np.nan)
    for n, counted in enumerate(resampled.nontarget):
        nontarget = pairs @ counted.astype(np.float64)
        some = nontarget.any(axis=1)
        errors[some, 0, n] = equal_errors(target[some], nontarget[some])
        errors[some, 1, n] = equal_errors(target[some, ::-1], nontarget[some, ::-1])
    return {"errors": errors}
