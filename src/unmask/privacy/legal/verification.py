"""1 − EER on the conditions of Linkability (Vauquier 2025, 3.4), by the engine.

A list of N' holds the first N' − 1 enrolment speakers, in one order, who are not the test speaker:
one pass over the scores, in double precision and tiles on a fixed grid, serves all N'.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from unmask import base
from unmask.base import HULL, SKEWED, FloatArray, Groups, IntArray, Lookup, Sampling
from unmask.engine import Roc, equal_errors
from unmask.privacy.legal.conversations import USUAL, LegalProtocol, Rows, as_counts, attack_data
from unmask.privacy.legal.curve import Curve, with_negated
from unmask.run import Arrays, Range, Xp, current_place, narrow, progress, ranges_of, run, run_on
from unmask.scoring import Backend, PairGrid, Tile
from unmask.trials import Embeddings

TILE = 256, 1024
ROWS = 5 * TILE[0]
_DEVICE_SCORES = 1 << 25
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
    backend: Backend | str = "cosine",
    protocol: LegalProtocol = USUAL,
    level: float = Sampling.level,
    replicates: int = Sampling.replicates,
) -> Curve:
    """1 − EER (ROCCH) of every test speaker against N' enrolment speakers, itself among them.

    The options are those of :func:`linkability`. The others are the first N' − 1 of one random
    order of the speakers of ``enrol``. Each speaker of ``test`` gives one conversation; those who
    are not enrolled are left out and counted. The interval of ``level`` draws speakers on both
    sides (in 32 groups where there are more than 64) ``replicates`` times on a ROC of 256 bins,
    less the bias of the hull. Values are the same on every place, but for the last bits of scores
    on a GPU.
    """
    how = Sampling(replicates, level, seed)
    both = attack_data(enrol, test, "one_minus_eer", length, backend, protocol, how)
    enrolled, tested = both.enrolled, both.tested
    true = both.true
    sizes = as_counts(counts, speakers=len(enrolled.names), least=2, where="enrolment")
    left, right, codes = both.rows()
    order = np.random.default_rng(both.seeds[0]).permutation(len(left))
    row = np.argsort(order)[true]
    by_row, ascending = np.argsort(row), np.argsort(sizes, kind="stable")
    row = row[by_row]
    groups = _groups(row, base.in_order(tested.names.to_list())[by_row], len(left))
    list_sizes = sizes[ascending] - 1
    sides = left[order], right[by_row], codes and (codes[0][order], codes[1][by_row])
    lists = ListCounts(*sides, true=row, list_sizes=list_sizes, enrol_group=groups)
    values, chance = np.empty((3, 2, len(sizes))), np.full(len(sizes), 0.5)
    values[:, :, ascending] = _values(lists, how)
    if protocol.side:  # a pair ruled out stays so when negated
        values[:, 1, ascending] = _values(replace(lists, test=-lists.test), how)[:, 0]
        chance[ascending] = 1 / (1 + lists.allowed())

    def curve(s: int) -> Curve:
        value, low, high = values[:, s]
        return Curve(
            counts=sizes,
            value=value,
            low=low,
            high=high,
            chance=chance,
            attacks=len(true) * sizes,
            speakers=tested.names,
            **both.fields,
            method=_METHOD,
        )

    return with_negated(curve(0), curve(1))


def _groups(tested: IntArray, numbers: IntArray, speakers: int) -> IntArray:
    """Group of every enrolment speaker: a test speaker's own, or one of 32; others are spread."""
    size = len(tested) if len(tested) <= _MOST_ALONE else _GROUPS
    groups = np.empty(speakers, dtype=np.int64)
    groups[tested] = numbers % size
    others = np.setdiff1d(np.arange(speakers), tested)
    groups[others] = np.arange(len(others)) % size
    return groups


@dataclass(frozen=True, eq=False, kw_only=True)
class ListCounts(Rows):
    """``true[i]`` is the row of ``enrol`` that belongs to test row i, and ascends. ``list_sizes``
    are the numbers N' − 1, ascending; ``enrol_group`` numbers the groups of speakers. ``knots`` are
    the distinct target scores and ``bin_of_code`` the bin of every code of theirs, once they are
    known.
    """

    true: IntArray
    list_sizes: IntArray
    enrol_group: IntArray
    knots: FloatArray = field(default_factory=lambda: np.empty(0))
    bin_of_code: IntArray = field(default_factory=lambda: np.zeros(2, dtype=np.int64))

    @base.lazy
    def test_group(self) -> IntArray:
        """The group of every test row."""
        return self.enrol_group[self.true]

    @base.lazy
    def code(self) -> Lookup:
        """Gives 2j for a score in the gap below target score j, 2j + 1 for one that equals it."""
        return Lookup(self.knots, "both")

    @property
    def bins(self) -> int:
        """Number of coarse bins; a last one takes what is not counted."""
        return int(self.bin_of_code[-1])

    @property
    def groups(self) -> int:
        """Number of groups of speakers."""
        return int(self.test_group.max()) + 1

    def allowed(self) -> FloatArray:
        """Share w of the pairs of different speakers that side information leaves, for every N'.
        Without any other information P_miss = 1 − F and P_fa = w·F: 1 − EER is 1/(1 + w).
        """
        assert self.codes is not None
        enrolled, tested = self.codes
        left, list_sizes = np.zeros(len(self.list_sizes)), self.list_sizes
        for code in np.unique(tested):
            alike = enrolled == code
            rows = self.true[tested == code]
            joins = rows[:, None] < list_sizes
            first = np.concatenate([[0], np.cumsum(alike)])
            left += (first[list_sizes + joins] - (joins & alike[rows][:, None])).sum(axis=0)
        return left / (len(self.true) * list_sizes)

    def tiles(self, xp: Xp, rows: Range, *, band: bool = False) -> Iterator[Tile]:
        """Tiles of some test rows with all of enrolment, or with pairs of one speaker."""
        transposed = Rows(self.test, self.enrol, self.codes and self.codes[::-1])
        known = Groups(np.arange(len(self.enrol)))
        pairs = PairGrid(transposed, Groups(self.true), known, tile=TILE)
        return pairs.tiles(xp, (*rows, 0, len(known)), cells=_DEVICE_SCORES, band=band)

    def owned(self, rows: Range, columns: Range) -> tuple[IntArray, IntArray]:
        """Pairs of one speaker in a tile, numbered within it."""
        true = self.true[slice(*rows)]
        within = np.flatnonzero((true >= columns[0]) & (true < columns[1]))
        return within, true[within] - columns[0]


def own_scores(xp: Xp, lists: ListCounts, rows: Range) -> Arrays:
    """Target scores of some test rows, from the very products that are counted."""
    own = np.empty(rows[1] - rows[0])
    for tile in lists.tiles(xp, rows, band=True):
        i, j = lists.owned(tile.rows, tile.columns)
        own[tile.rows[0] - rows[0] + i] = xp.host(tile.scores[xp.put(i), xp.put(j)])
    return {"own": own}


def count_lists(xp: Xp, lists: ListCounts, rows: Range) -> Arrays:
    """Counts of some test rows in every segment, the enrolment rows between two list sizes.

    ``counts`` are of scores by code, ``pair_bins`` of segments × test groups × enrolment groups ×
    coarse bins; ``joining_score`` is the code of the score that joins a row's list where its own
    speaker is in it, else −1.
    """
    segments = list(pairwise([0, *lists.list_sizes.tolist()]))
    codes, groups, bins = 2 * lists.knots.size + 1, lists.groups, lists.bins + 1
    size = groups * groups * bins if lists.bins else 0
    counts = [xp.zeros(codes + 1) for _ in segments]
    pair_bins = [xp.zeros(size) for _ in segments]
    joining_score = np.full((len(segments), rows[1] - rows[0]), -1, dtype=np.int32)
    bin_of_code, group = xp.put(lists.bin_of_code), xp.put(lists.enrol_group)
    for tile in lists.tiles(xp, rows):
        left, right = tile.columns[0], min(tile.columns[1], segments[-1][1] + 1)
        if left >= right:
            continue
        test, within = slice(*tile.rows), slice(tile.rows[0] - rows[0], tile.rows[1] - rows[0])
        offset = xp.put(lists.test_group)[test, None] * (groups * bins)
        code = xp.among(lists.code, tile.scores[:, : right - left])
        i, j = lists.owned(tile.rows, (left, right))
        code[xp.put(i), xp.put(j)] = codes
        for s, (start, stop) in enumerate(segments):
            part = slice(max(start - left, 0), max(min(stop, right) - left, 0))
            if part.start < part.stop:
                counts[s] += xp.bincount(code[:, part], codes + 1)
                if lists.bins:
                    pair = offset + group[left:right][part] * bins
                    pair_bins[s] += xp.bincount(bin_of_code.take(code[:, part]) + pair, size)
            if left <= stop < right:
                joined = xp.host(code[:, stop - left])
                joining_score[s, within] = np.where(lists.true[test] < stop, joined, -1)
    shape = (len(segments), groups, groups, bins) if lists.bins else (len(segments), 0, 0, 1)
    return {
        "counts": narrow(np.stack([xp.host(count)[:-1] for count in counts])),
        "pair_bins": narrow(np.stack([xp.host(one) for one in pair_bins]).reshape(shape)[..., :-1]),
        "joining_score": joining_score,
    }


def _values(lists: ListCounts, how: Sampling) -> FloatArray:
    """1 − EER and the ends of its interval (first axis), of the score and its negation, by N'."""
    ranges, here = ranges_of(len(lists.test), ROWS), current_place()
    nearby = "cuda" if here.on == "cuda" else "local"
    with run_on(nearby, workers=here.workers, devices=here.devices), progress(None):
        parts = list(run(own_scores, lists, ranges))
    knots, own = np.unique(np.concatenate([part["own"] for part in parts]), return_inverse=True)
    drawn = how.replicates > 0 and len(lists.test) > 1
    lists = replace(
        lists, knots=knots, bin_of_code=_bins_of_codes(knots, own, _BINS if drawn else 0)
    )
    parts = list(run(count_lists, lists, ranges))
    counts = np.cumsum(sum(part["counts"].astype(np.int64) for part in parts), axis=0)
    joining_score = np.concatenate([part["joining_score"] for part in parts], axis=1)
    target = np.bincount(own, minlength=knots.size).astype(np.float64)
    values = np.full((3, 2, len(counts)), np.nan)
    for n, (nontarget, codes) in enumerate(zip(counts, joining_score, strict=True)):
        nontarget += np.bincount(codes[codes >= 0], minlength=nontarget.size)
        roc = Roc(knots, target, nontarget[1::2].astype(float), nontarget[::2].astype(float))
        values[0, :, n] = 1 - roc.eer(), 1 - roc.negated().eer()
    if drawn:
        short = np.int64 if counts[-1].sum() >> 31 else np.int32
        pair_bins: Any = np.sum([part["pair_bins"] for part in parts], axis=0, dtype=short)
        resampled = _resampled(lists, own, pair_bins, joining_score, how)
        values[1:] = resampled.intervals(values[0], level=how.level)
    return values


def _bins_of_codes(knots: FloatArray, own: IntArray, bins: int) -> IntArray:
    """Bin of every code: two for each of ``bins``/2 quantiles of the target scores, for scores that
    equal it and for those up to the next; last that of what is not counted.
    """
    if not bins:
        return np.zeros(2 * knots.size + 2, dtype=np.int64)
    edges = np.quantile(knots[own], np.linspace(0, 1, bins // 2), method="inverted_cdf")
    begins = np.zeros(2 * knots.size + 2, dtype=np.int64)
    at = np.flatnonzero(np.isin(knots, edges))
    begins[2 * at + 1] = begins[2 * at + 2] = begins[-1] = 1
    return np.cumsum(begins)


def _resampled(
    lists: ListCounts, own: IntArray, pair_bins: IntArray, joining_score: IntArray, how: Sampling
) -> ListDraws:
    """Groups of speakers in bins, drawn as often as a replicate says."""
    groups, bins = lists.groups, lists.bins
    target = np.zeros((groups, bins), dtype=np.int64)
    np.add.at(target, (lists.test_group, lists.bin_of_code[2 * own + 1]), 1)
    for n, codes in enumerate(joining_score):  # who joins a list may be in the next one anyhow
        more = codes >= 0
        joined = lists.enrol_group[lists.list_sizes[n]]
        cells = lists.test_group[more], joined, lists.bin_of_code[codes[more]]
        for counted, one in zip(pair_bins[n : n + 2], (1, -1), strict=False):
            np.add.at(counted, cells, one)
    times = np.vstack([np.ones(groups), how.times(groups)])
    return ListDraws(times, target, pair_bins.reshape(len(pair_bins), groups * groups, bins))


@dataclass(frozen=True, eq=False)
class ListDraws:
    """How often each group of speakers is drawn in every replicate (``times``), its targets in bins
    of scores, and the nontargets of each pair of groups that a list has more than the one before
    (N' × pairs × bins).
    """

    times: FloatArray
    target: IntArray
    nontarget: npt.NDArray[np.signedinteger]

    @base.lazy
    def added(self) -> list[tuple[IntArray, IntArray, csr_array]]:
        """For every N' pairs of groups that have further nontargets, and these, bins × pairs."""
        groups, added = self.times.shape[1], []
        for count in self.nontarget:
            some = np.flatnonzero(count.any(axis=1))
            added.append((*np.divmod(some, groups), csr_array(count[some].T, dtype=float)))
        return added

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
        with run_on(workers=current_place().workers), progress(None):
            parts = list(run(errors_of, self, ranges_of(len(self.times), _AT_ONCE)))
        drawn = 1 - np.concatenate([part["errors"] for part in parts])
        units = self.times.shape[1]
        bias = np.nanmean(drawn[1:], axis=0) - drawn[0]
        variance = SKEWED**2 * np.nanvar(drawn[1:], axis=0) * units / (units - 1)
        low, high = (
            base.score_interval(np.clip(values - less, 0.5, 1), variance, units, level=level)[end]
            for end, less in enumerate((HULL * bias, np.minimum(bias, 0.0)))
        )
        return np.minimum(np.maximum(low, 0.5), values), np.maximum(high, values)


def errors_of(xp: Xp, resampled: ListDraws, replicates: Range) -> Arrays:
    """EER of some replicates (rows), of the score and of the negated one, for every N': a trial of
    two groups weighs as often as both are drawn; NaN where no nontarget was drawn.
    """
    times = resampled.times[slice(*replicates)]
    target = times @ resampled.target
    errors = np.full((len(times), 2, len(resampled.added)), np.nan)
    nontarget = np.zeros(target.shape)
    for n, (test, enrol, more) in enumerate(resampled.added):
        nontarget += (more @ (times.T[test] * times.T[enrol])).T
        some = nontarget.max(axis=1) > 0
        errors[some, 0, n] = equal_errors(target[some], nontarget[some])
        errors[some, 1, n] = equal_errors(target[some, ::-1], nontarget[some, ::-1])
    return {"errors": errors}
