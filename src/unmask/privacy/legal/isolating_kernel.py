"""Predicates of many enrolment speakers: does a calibrated threshold isolate one test entry alone?

Only the best scores of a speaker matter, down to the (k+1)-th calibration score: one list of them
serves all folds, draws and counts, and is made longer where it proves too short. Single-precision
products tell which conversations are worth a look; what decides is computed in double precision.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, FloatArray, Groups, IntArray, lazy
from unmask.privacy.legal.conversations import TIE, LegalProtocol, Rows, rounding
from unmask.run import Arrays, Range, Xp, narrow, ranges_of, run

Row = npt.NDArray[np.float32]
Slots = npt.NDArray[np.int16]
Codes = npt.NDArray[np.integer[Any]]
SideCodes = tuple[IntArray, IntArray]
"""Side information of enrolment speakers and of conversations."""
Scores = Callable[[IntArray, IntArray], FloatArray]
"""Gives double-precision scores of enrolment speakers with conversations, pair by pair."""
SPEAKERS = 32
DRAWS_WITHOUT = 2
"""Draws in which success is tried again without each test speaker: two tell the spread."""
_SAMPLE = 16
_SPARE = 48
NEAR = 6
"""Test entries among the best for which lists are read at first."""
_DEEPER = 4
_BEYOND = 8
_AT_ONCE = 1 << 21
_SAMPLED = 1 << 20
"""Scores of which the largest tells how large a jitter is."""
_LOTS = 0x6C6F7473


class Exact:
    """Double-precision ``scores`` of ``speakers`` with ``size`` conversations, each made once."""

    def __init__(self, scores: Scores, speakers: IntArray, size: int) -> None:
        self.scores = scores
        self.speakers = speakers
        self.known = np.full((len(speakers), size), np.nan)

    def __call__(self, sign: int, e: IntArray, test: IntArray) -> FloatArray:
        """The scores of pairs, or the negated ones."""
        new = np.zeros(self.known.shape, dtype=bool)
        new[e, test] = True
        rows, columns = np.nonzero(new & np.isnan(self.known))
        self.known[rows, columns] = self.scores(self.speakers[rows], columns)
        return np.asarray(_signed(sign, self.known[e, test]))


@dataclass(frozen=True, eq=False)
class Draws:
    """Everyone in random ``order`` after each enrolment speaker, speakers × draws × people: the
    first N are the test speakers, for every N.
    """

    order: IntArray

    @lazy
    def position(self) -> IntArray:
        """The inverse of ``order``."""
        position = np.empty_like(self.order)
        np.put_along_axis(position, self.order, np.arange(self.order.shape[2])[None, None], axis=2)
        return position


class Best:
    """Single-precision ``scores`` of enrolment speakers (rows), and lists of the best of them."""

    def __init__(self, scores: Row, population: Groups, draws: Draws) -> None:
        self.scores = scores
        self.population = population
        self.draws = draws
        self._lists: dict[int, tuple[list[IntArray], Row]] = {}

    def best(self, depth: int) -> tuple[list[IntArray], Row]:
        """About ``depth`` conversations or more with the best scores, and a bound on the rest."""
        speakers, size = self.scores.shape
        depth = 1 << (depth - 1).bit_length()
        if 2 * depth >= size:
            return [np.arange(size)] * speakers, np.full(speakers, -np.inf, np.float32)
        if depth not in self._lists:
            sample = self.scores[:, :: min(_SAMPLE, max(1, size // (8 * depth)))]
            rank = max(1, round(depth * sample.shape[1] / size))
            bound = -np.partition(-sample, rank, axis=1)[:, rank]
            above = zip(self.scores, bound, strict=True)
            self._lists[depth] = [np.flatnonzero(row > low) for row, low in above], bound
        return self._lists[depth]

    def among(
        self, e: IntArray, d: IntArray, count: int, depth: int
    ) -> tuple[IntArray, FloatArray]:
        """The ``depth`` best conversations of the first ``count`` speakers of some draws (rows),
        then −1, and bounds that no other conversation of theirs exceeds.
        """
        population, share = self.population, count / self.population.size
        if share * len(population) <= 4 * depth / share:
            people = self.draws.order[e, d, :count]
            sizes, bound = population.counts[people].sum(axis=1), np.full(len(e), -np.inf)
            chosen = population.rows(people.reshape(-1))
        else:
            lists, bounds = self.best(int(2 * depth / share))
            bound, chosen = bounds[e], np.concatenate([lists[i] for i in e])
            attack = np.repeat(np.arange(len(e)), [len(lists[i]) for i in e])
            there = self.draws.position[e[attack], d[attack], population.codes[chosen]] < count
            chosen, sizes = chosen[there], np.bincount(attack[there], minlength=len(e))
        filled = np.arange(max(sizes.max(), depth)) < sizes[:, None]
        best, scores = np.full(filled.shape, -1), np.full(filled.shape, -np.inf, np.float32)
        best[filled], scores[filled] = chosen, self.scores[np.repeat(e, sizes), chosen]
        if filled.shape[1] > depth:
            row, kept = np.arange(len(e)), np.argpartition(-scores, depth, axis=1)
            bound = np.where(sizes > depth, scores[row, kept[:, depth]], bound)
            best = best[row[:, None], kept[:, :depth]]
        return best, bound


def isolated(
    scores: FloatArray, is_test: BoolArray, calibrates: BoolArray, rank: int
) -> tuple[BoolArray, FloatArray, IntArray]:
    """Whether one test entry alone lies above the threshold, the (k+1)-th best calibration score
    (−inf where there are fewer) and where it stands, of each fold and attack: ``scores``, places ×
    attacks, descend; ``is_test`` and ``calibrates`` are folds × places × attacks, ``rank`` is k.
    """
    kind: Any = np.uint8 if len(scores) < 256 else np.int32
    calibration = calibrates.astype(kind)
    for above, here in pairwise(calibration.swapaxes(0, 1)):  # cumsum takes ten times as long
        here += above
    ended = np.vstack([scores, np.full_like(scores[:1], -np.inf)])
    nth = []
    for n in (rank, rank + 1):
        at = (calibration < n).astype(kind).sum(axis=1, dtype=kind)
        nth.append(ended[at, np.arange(scores.shape[1])])
    threshold = nth[0] / 2 + nth[1] / 2
    passes = is_test & (scores > threshold[:, None])
    won = passes.astype(kind).sum(axis=1, dtype=kind) == 1
    return won, nth[1], np.where(at < len(scores), at, 0)


@dataclass(frozen=True, eq=False)
class BestFirst:
    """Conversations of attacks, best first (places × attacks): exact ``scores``, the ``owner`` and
    its ``slot`` of each; ``slots`` are the test entries of every fold by speaker, draws × folds ×
    speakers, ``draw`` tells which draw an attack is of, ``rank`` is k.
    """

    scores: FloatArray
    owner: Codes
    slot: IntArray
    slots: Slots
    draw: IntArray
    rank: int

    def of(self, rows: Any, width: int | None = None) -> BestFirst:
        """Some attacks, to a ``width``."""
        at = (slice(width), rows)
        places = {"owner": self.owner[at], "slot": self.slot[at], "draw": self.draw[rows]}
        return replace(self, scores=self.scores[at], **places)

    @lazy
    def tests(self) -> BoolArray:
        """The test entries, folds × places × attacks."""
        return np.asarray(self.slots.swapaxes(0, 1)[:, self.draw, self.owner] == self.slot)

    def isolated(self) -> tuple[BoolArray, FloatArray, IntArray]:
        """What :func:`isolated` tells; whole lists are read only where their best do not do."""
        width = self.rank + 1 + NEAR
        near = self.of(slice(None), width)
        made = isolated(near.scores, near.tests, ~near.tests, self.rank)
        short = np.flatnonzero((made[1] == -np.inf).any(axis=0))
        if short.size and width < len(self.scores):
            some = self.of(short)
            whole = isolated(some.scores, some.tests, ~some.tests, self.rank)
            for part, own in zip(made, whole, strict=True):
                part[:, short] = own
        return made

    def without_speakers(
        self, success: BoolArray, deepest: IntArray, own: IntArray, size: IntArray
    ) -> tuple[IntArray, Codes, IntArray]:
        """In how many more folds an attack succeeds once all entries of another test speaker are
        gone: the attack, the speaker, the number of folds. Only speakers down to ``deepest``, the
        entry of the threshold, can matter, and the enrolment speaker ``own`` stays; entries within
        ``size`` and some more are looked at.
        """
        wide = int(deepest.max()) + 1
        near = self.owner[:wide]
        first = ~((near[:, None] == near) & np.tri(wide, k=-1, dtype=bool)[:, :, None]).any(axis=1)
        first &= (np.arange(wide)[:, None] <= deepest) & (near != own)
        first &= ~np.isneginf(self.scores[:wide])
        at, attack = np.nonzero(first)
        gone = near[at, attack]
        most = size + 2 * (self.rank + 1) + _BEYOND
        before = success[:, attack]
        after = before.copy()
        left = np.arange(len(attack))
        for width in (wide + NEAR, int(most.max())):
            here = attack[left]
            some = self.of(here, width)
            kept = (some.owner != gone[left]) & (np.arange(len(some.owner))[:, None] < most[here])
            won, below, _ = isolated(some.scores, some.tests & kept, ~some.tests & kept, self.rank)
            after[:, left] = np.where(below > -np.inf, won, before[:, left])
            left = left[(below == -np.inf).any(axis=0)]
        return attack, gone, after.sum(axis=0) - before.sum(axis=0)


def single_out(
    rows: Best, exact: Scores, margins: FloatArray, slots: Slots, rank: int, counts: IntArray
) -> tuple[BoolArray, IntArray, IntArray]:
    """Success of the predicates of some enrolment speakers with threshold rank ``rank``, folds ×
    speakers × draws × counts; the keys (e·C + count)·S + j of other test speakers j, ascending, and
    by how many folds, over the first draws, success of e rises without them. Scores of ``rows`` err
    by ``margins``; attacks whose lists prove too short go again.
    """
    population, order = rows.population, rows.draws.order
    shape = slots.shape[1], *order.shape[:2], len(counts)
    success = np.empty((shape[0], int(np.prod(shape[1:]))), dtype=bool)
    keys, changes = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    left = np.arange(success.shape[1])
    depth = 2 * (rank + 1) + _SPARE
    while left.size:
        together = max(1, _AT_ONCE // (depth * shape[0]))
        short = []
        for start in range(0, left.size, together):
            some = left[start : start + together]
            e, d, c = np.unravel_index(some, shape[1:])
            lists, bound = np.empty((len(some), depth), dtype=np.int64), np.empty(len(some))
            for n in np.unique(c):
                every = np.flatnonzero(c == n)
                for at in np.array_split(every, 1 + every.size * len(population) // _AT_ONCE):
                    lists[at], bound[at] = rows.among(e[at], d[at], int(counts[n]), depth)
            chosen, scores = _descending(lists, e, exact)
            bound += margins[e]
            owner, slot = population.codes[chosen], population.slot[chosen]
            ranked = BestFirst(scores, owner, slot, slots, d, rank)
            won, below, at = ranked.isolated()
            deep = (bound == -np.inf) | (below > bound).all(axis=0)
            success[:, some[deep]] = won[:, deep]
            short.append(some[~deep])
            deep &= d < DRAWS_WITHOUT
            if deep.any():
                deepest, by = at[:, deep].max(axis=0), e[deep]
                size = np.zeros(len(order), dtype=np.int64)
                np.maximum.at(size, by, deepest + 1)
                attack, gone, change = ranked.of(deep).without_speakers(
                    won[:, deep], deepest, order[by, 0, 0], size[by]
                )
                keys.append(((by * len(counts) + c[deep])[attack]) * population.size + gone)
                changes.append(change)
        left = np.concatenate(short)
        depth *= _DEEPER
    absent, which = np.unique(np.concatenate(keys), return_inverse=True)
    total = np.zeros(absent.size, dtype=np.int64)
    np.add.at(total, which, np.concatenate(changes))
    return success.reshape(shape), absent, total


def _descending(lists: IntArray, speakers: IntArray, exact: Scores) -> tuple[IntArray, FloatArray]:
    """Conversations of each list (columns) and their exact scores with its speaker, best first,
    then −inf.
    """
    filled = lists >= 0
    scores = np.full(lists.shape, -np.inf)
    scores[filled] = exact(speakers[filled.nonzero()[0]], lists[filled])
    order = np.argsort(-scores, axis=1).T
    row = np.arange(len(lists))
    return lists[row, order], scores[row, order]


_DRAWN: dict[bytes, Attempts] = {}
_LAST, _MOST_KEPT = 4, 1 << 20
"""Attempts that are kept, and conversations that all draws of one may hold."""


@dataclass(frozen=True, eq=False)
class Attempts:
    """Whom every enrolment speaker is attacked among, in which folds and draws; the ``population``
    are the test conversations by speaker.

    ``speakers`` are their numbers in the population; ``slots`` are draws × folds × speakers;
    ``entropy`` and ``key`` the parent of all seeds, so that a draw depends on its numbers alone.
    """

    population: Groups
    speakers: IntArray
    counts: IntArray
    slots: Slots
    entropy: tuple[int, ...]
    key: tuple[int, ...]

    @lazy
    def kept(self) -> dict[Any, Any]:
        """What is made of the draws of few people."""
        return {}

    @classmethod
    def of(
        cls,
        population: Groups,
        speakers: IntArray,
        counts: IntArray,
        protocol: LegalProtocol,
        seed: np.random.SeedSequence,
    ) -> Attempts:
        """Draw the folds, or take those that were drawn for the same people last."""
        sizes, numbers = population.counts, (protocol.folds, protocol.draws, *seed.spawn_key)
        told = repr((seed.entropy, seed.n_children_spawned, numbers))
        key = b"|".join([told.encode(), *(one.tobytes() for one in (sizes, speakers, counts))])
        if key in _DRAWN:
            return _DRAWN[key]
        fold_seed, draw_seed = seed.spawn(2)
        children = fold_seed.spawn(protocol.draws)
        slots = np.stack([test_slots(sizes, protocol.folds, child) for child in children])
        entropy = tuple(int(n) for n in np.atleast_1d(np.asarray(seed.entropy, dtype=object)))
        made = cls(population, speakers, counts, slots, entropy, draw_seed.spawn_key)
        if len(speakers) * protocol.draws * len(population) <= _MOST_KEPT:
            while len(_DRAWN) >= _LAST:
                _DRAWN.pop(next(iter(_DRAWN)), None)
            _DRAWN[key] = made
        return made

    @lazy
    def first_tested(self) -> dict[int, IntArray]:
        """The people tested in the smallest draws of each enrolment speaker, once drawn."""
        return {}

    def tested(self, speakers: IntArray, count: int) -> IntArray:
        """The first ``count`` people of all draws of some enrolment speakers."""
        known = [self.first_tested.get(int(e)) for e in speakers]
        if all(one is not None and one.shape[1] >= count for one in known):
            return np.stack([one[:, :count] for one in known if one is not None])
        return self.draws(speakers).order[:, :, :count].copy()

    def draws(self, speakers: IntArray) -> Draws:
        """The draws of some enrolment speakers, which few people keep."""
        if (key := speakers.tobytes()) in self.kept:
            made: Draws = self.kept[key]
            return made
        draws, _, people = self.slots.shape
        order = np.empty((len(speakers), draws, people), dtype=np.int64)
        for (i, d), e in zip(np.ndindex(order.shape[:2]), np.repeat(speakers, draws), strict=True):
            seed = np.random.SeedSequence(list(self.entropy), spawn_key=(*self.key, int(e), d))
            drawn = np.random.default_rng(seed).permutation(people)
            order[i, d] = np.concatenate([[own := self.speakers[e]], drawn[drawn != own]])
        made = Draws(order)
        if len(self.speakers) * draws * len(self.population) <= _MOST_KEPT:
            self.kept[key] = made
        least = int(self.counts.min())
        if len(self.speakers) * draws * least <= _MOST_KEPT:
            for e, drawn in zip(speakers, order, strict=True):
                self.first_tested[int(e)] = drawn[:, :least].copy()
        return made

    @property
    def ranks(self) -> IntArray:
        """Threshold rank k of each enrolment speaker: its own calibration entries (footnote 4)."""
        return self.population.counts[self.speakers] - 1

    @property
    def trials(self) -> IntArray:
        """How often each conversation of every enrolment speaker is its test entry."""
        most = int(self.population.counts.max())
        tried = (self.slots[:, :, speaker].reshape(-1) for speaker in self.speakers)
        return np.stack([np.bincount(slots, minlength=most) for slots in tried])

    def attack(
        self, speakers: IntArray, rows: Row, margins: FloatArray, exact: Scores
    ) -> tuple[IntArray, IntArray, IntArray]:
        """How often each conversation of enrolment speakers of one rank was isolated as their test
        entry (speakers × counts × conversations), and which test speakers success changes without
        (:func:`single_out`).
        """
        best, rank = Best(rows, self.population, self.draws(speakers)), self.ranks[speakers[0]]
        attacks = best, exact, margins, self.slots, int(rank), self.counts
        success, absent, rise = single_out(*attacks)
        shape = len(speakers), len(self.counts), int(self.population.counts.max())
        slots = self.slots[:, :, self.speakers[speakers]].transpose(1, 2, 0)[..., None]
        cells = np.arange(shape[0] * shape[1]).reshape(shape[0], 1, -1) * shape[2] + slots
        return np.bincount(cells[success], minlength=np.prod(shape)).reshape(shape), absent, rise


def test_slots(per_speaker: IntArray, folds: int, seed: np.random.SeedSequence) -> Slots:
    """Number of the conversation a speaker is tested with, folds × speakers: every K folds a
    speaker's K conversations each serve once, in an order drawn anew.
    """
    rounds = -(-folds // int(per_speaker.min()))
    most = int(per_speaker.max())
    absent = np.arange(most) >= per_speaker[:, None]
    orders = np.empty((rounds, len(per_speaker), most), dtype=np.int16)
    for turn, child in enumerate(seed.spawn(rounds)):
        keys = np.random.default_rng(child).random((len(per_speaker), most))
        keys[absent] = 2.0
        orders[turn] = np.argsort(keys, axis=1)
    speakers = np.arange(len(per_speaker))
    fold = np.arange(folds)[:, None]
    return np.asarray(orders[fold // per_speaker, speakers, fold % per_speaker])


@dataclass(frozen=True, eq=False)
class Outcome:
    """How often each conversation of an enrolment speaker was isolated (``won``: signs × enrolment
    speakers × counts × conversations); by how many attacks success rises without each test speaker
    (``change``: signs × counts × test speakers), and the ``squares`` of its terms.
    """

    attempts: Attempts
    won: IntArray
    change: IntArray
    squares: IntArray

    @property
    def success(self) -> FloatArray:
        """Share of attacks that isolate: signs × enrolment speakers × counts."""
        draws, folds, _ = self.attempts.slots.shape
        return np.asarray(self.won.sum(axis=3) / (draws * folds))


def lots(rows: npt.NDArray[Any], seed: int) -> FloatArray:
    """Draw a number in [0, 1) for each row, by a digest of the seed and of what the row holds.

    Equal rows draw by how many of them come before.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_LOTS,)))
    factors = rng.integers(0, 2**64, size=rows.shape[1], dtype=np.uint64) | np.uint64(1)
    digests = np.empty(len(rows), dtype=np.uint64)
    step = max(1, _AT_ONCE // rows.shape[1])
    for start in range(0, len(rows), step):
        # Adding 0 makes one zero of both; the bits are those of little-endian single precision.
        single = np.asarray(rows[start : start + step] + 0.0, dtype="<f4", order="C")
        digests[start : start + step] = (single.view("<u4").astype(np.uint64) * factors).sum(axis=1)
    order = np.argsort(digests, kind="stable")
    is_new = np.append(True, np.diff(digests[order]) != 0)
    first = np.maximum.accumulate(np.where(is_new, np.arange(len(rows)), 0))
    before = np.empty(len(rows), dtype=np.uint64)
    before[order] = np.arange(len(rows)) - first
    # The finaliser of splitmix64 spreads digests evenly.
    bits = digests + (before + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    return np.asarray((bits >> np.uint64(11)) * 2.0**-53)


def broken_ties(
    enrol: FloatArray, test: FloatArray, codes: SideCodes | None, seed: int
) -> tuple[FloatArray, FloatArray, SideCodes | None]:
    """Rows whose scores have a jitter by conversation, as large as scores that count as tied.

    The largest absolute score is that of a sample of conversations.
    """
    step = max(1, len(enrol) * len(test) // _SAMPLED)
    largest = float(np.abs(enrol @ test[::step].T).max(initial=0.0))
    # A column on both sides, equally long: the inner product has the jitter added.
    length = np.sqrt(TIE * largest)
    jitter = length * (lots(test, seed) - 0.5)
    enrol = np.hstack([enrol, np.full((len(enrol), 1), length)])
    return enrol, np.hstack([test, jitter[:, None]]), codes


def broken_ties_of_scores(scores: FloatArray, seed: int) -> FloatArray:
    """The same for given scores, enrolment speakers × conversations."""
    finite = scores[np.isfinite(scores)]
    jitter = TIE * float(np.abs(finite).max(initial=0.0)) * (lots(scores.T, seed) - 0.5)
    return np.asarray(scores + jitter)


@dataclass(frozen=True, eq=False, kw_only=True)
class Predicates(Rows):
    """One row per enrolment speaker, and one per conversation."""

    attempts: Attempts

    @lazy
    def margins(self) -> FloatArray:
        """By how much two single-precision scores of an enrolment speaker may be off."""
        return rounding(self.enrol, self.test)

    def rows(self, xp: Xp, speakers: Range) -> npt.NDArray[Any]:
        """Scores of some enrolment speakers; only products are made on a device."""
        return self.single.pairs((SPEAKERS, len(self.test))).kept(xp, speakers)


@dataclass(frozen=True, eq=False)
class GivenScores:
    """Scores that are at hand, enrolment speakers × conversations."""

    attempts: Attempts
    scores: FloatArray

    @lazy
    def margins(self) -> FloatArray:
        """By how much two single-precision scores of an enrolment speaker may be off."""
        finite = np.where(np.isfinite(self.scores), np.abs(self.scores), 0.0)
        return np.asarray(finite.max(axis=1, initial=0.0) * 2.0**-23)

    def rows(self, xp: Xp, speakers: Range) -> npt.NDArray[Any]:
        """Scores of some enrolment speakers."""
        return self.scores[slice(*speakers)].astype(np.float32)

    def exact(self, enrol: IntArray, test: IntArray) -> FloatArray:
        """The scores of pairs."""
        return self.scores[enrol, test]


def _signed(sign: int, scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The scores, or the negated ones: a pair ruled out, −inf, stays so."""
    return scores if sign > 0 else np.where(scores == -np.inf, scores, -scores)


def isolate(xp: Xp, shared: Predicates | GivenScores, speakers: Range) -> Arrays:
    """Try the predicates of a range of enrolment speakers, under the score and, where that is
    computed here, the negated one.
    """
    attempts, signs = shared.attempts, (1, -1) if isinstance(shared, Predicates) else (1,)
    counts, everyone = len(attempts.counts), attempts.population.size
    every, rows = np.arange(*speakers), shared.rows(xp, speakers)
    ranks, most = attempts.ranks[every], int(attempts.population.counts.max())
    won = np.empty((len(signs), len(every), counts, most), dtype=np.int64)
    change = np.zeros((len(signs), counts * everyone), dtype=np.int64)
    squares = np.zeros((len(signs), counts), dtype=np.int64)
    for rank in np.unique(ranks):
        here = np.flatnonzero(ranks == rank)
        some = every[here]
        exact, margins = Exact(shared.exact, some, len(attempts.population)), shared.margins[some]
        for s, sign in enumerate(signs):
            best = _signed(sign, rows[here]), margins, partial(exact, sign)
            won[s, here], absent, rise = attempts.attack(some, *best)
            cell = absent % (counts * everyone)
            np.add.at(change[s], cell, rise)
            np.add.at(squares[s], cell // everyone, rise**2)
    whole = change.reshape(len(signs), counts, everyone)
    return {"won": narrow(won), "change": whole, "squares": squares}


def single_out_all(shared: Predicates | GivenScores) -> Outcome:
    """Try every predicate on the current place."""
    attempts = shared.attempts
    parts = list(run(isolate, shared, ranges_of(len(attempts.speakers), SPEAKERS)))
    return Outcome(
        attempts,
        np.concatenate([part["won"] for part in parts], axis=1).astype(np.int64),
        np.sum([part["change"] for part in parts], axis=0),
        np.sum([part["squares"] for part in parts], axis=0),
    )
