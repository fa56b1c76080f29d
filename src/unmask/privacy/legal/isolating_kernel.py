"""Predicates of many enrolment speakers: does a calibrated threshold isolate one test entry alone?

Only the best scores of a speaker matter, down to the (k+1)-th calibration score: one list of them
serves all folds, draws and counts, and is made longer where it proves too short. Single-precision
products tell which conversations are worth a look; what decides is computed in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, FloatArray, Groups, IntArray, lazy
from unmask.privacy.legal.conversations import LegalProtocol, Rows, rounding
from unmask.run import Arrays, Range, Xp, narrow, ranges_of, run

Row = npt.NDArray[np.float32]
Slots = npt.NDArray[np.int16]
Exact = Callable[[IntArray], FloatArray]
"""Gives double-precision scores of one enrolment speaker with some conversations."""
Predicate = tuple[int, Row, float, tuple[Exact, ...]]
"""The number of an enrolment speaker, its scores, by how much two of them may be off, and what
gives exact ones: of the score, and of the negated one where that is tried as well."""
SPEAKERS = 32
DRAWS_WITHOUT = 2
"""Draws in which success is tried again without each test speaker: two tell the spread."""
_SAMPLE = 16
_SPARE = 48
_DEEPER = 4
_BEYOND = 8
_AT_ONCE = 1 << 21


class Draw(NamedTuple):
    """Everyone in random ``order`` after the enrolment speaker: the first N are the test speakers,
    for every N. ``position`` is its inverse; ``slots`` are the test entries, folds × speakers.
    """

    order: IntArray
    position: IntArray
    slots: Slots


class Best:
    """Single-precision scores of one enrolment speaker, and lists of the best of them."""

    def __init__(self, scores: Row, population: Groups) -> None:
        self.scores = scores
        self.population = population
        self._lists: dict[int, tuple[IntArray, float]] = {}

    def best(self, depth: int) -> tuple[IntArray, float]:
        """About ``depth`` conversations or more with the best scores, and a bound on the rest."""
        size = len(self.scores)
        depth = 1 << (depth - 1).bit_length()
        if 2 * depth >= size:
            return np.arange(size), -np.inf
        if depth not in self._lists:
            sample = self.scores[:: min(_SAMPLE, max(1, size // (8 * depth)))]
            rank = max(1, round(depth * len(sample) / size))
            bound = float(-np.partition(-sample, rank)[rank])
            self._lists[depth] = (np.flatnonzero(self.scores > np.float32(bound)), bound)
        return self._lists[depth]

    def among(self, draw: Draw, count: int, depth: int) -> tuple[IntArray, float]:
        """The ``depth`` best conversations of the first ``count`` speakers of a draw, and a bound
        that no other conversation of theirs exceeds.
        """
        everyone = len(self.population.counts)
        share = count / everyone
        if count * len(self.scores) / everyone <= 4 * depth / share:
            chosen, bound = self.population.rows(draw.order[:count]), -np.inf
        else:
            chosen, bound = self.best(int(2 * depth / share))
            if count < everyone:
                chosen = chosen[draw.position[self.population.codes[chosen]] < count]
        if len(chosen) > depth:
            scores = self.scores[chosen]
            kept = np.argpartition(-scores, depth)
            bound = float(scores[kept[depth]])
            chosen = chosen[kept[:depth]]
        return chosen, bound


def isolated(
    scores: FloatArray, is_test: BoolArray, calibrates: BoolArray, rank: int
) -> tuple[BoolArray, FloatArray, IntArray]:
    """Whether one test entry alone lies above the threshold, the (k+1)-th best calibration score
    (−inf where there are fewer) and where it stands, of each attack (row of ``scores``, which
    descend) and fold; ``is_test`` and ``calibrates`` are attacks × folds × scores, ``rank`` is k.
    """
    short = np.uint8 if scores.shape[1] < 256 else np.int32
    calibration: npt.NDArray[Any] = np.cumsum(calibrates, axis=2, dtype=short)
    nth = []
    for n in (rank, rank + 1):
        reached = calibration >= n
        at = reached.argmax(axis=2)
        score = np.take_along_axis(scores, at, axis=1)
        nth.append(np.where(reached[:, :, -1], score, -np.inf))
    threshold = nth[0] / 2 + nth[1] / 2
    passes = (is_test & (scores[:, None, :] > threshold[:, :, None])).sum(axis=2)
    return passes == 1, nth[1], at


def _without_speakers(
    lists: tuple[FloatArray, IntArray, BoolArray],
    rank: int,
    success: BoolArray,
    deepest: IntArray,
    own: int,
) -> tuple[IntArray, IntArray, IntArray]:
    """In how many more folds an attack succeeds once all entries of another test speaker are gone:
    the attack, the speaker, the number of folds. ``lists`` are scores, which descend, their
    speakers, and the test entries of each fold; only speakers down to ``deepest``, the entry of the
    threshold, can matter, and the enrolment speaker ``own`` stays.
    """
    scores, owner, is_test = lists
    size = int(deepest.max()) + 1
    near = owner[:, :size]
    first = ~(np.tril(near[:, :, None] == near[:, None, :], -1)).any(axis=2)
    first &= (np.arange(size) <= deepest[:, None]) & (near != own)
    first &= scores[:, :size] > -np.inf
    attack, at = np.nonzero(first)
    gone = near[attack, at]
    width = min(scores.shape[1], size + 2 * (rank + 1) + _BEYOND)
    scores, owner, is_test = scores[:, :width], owner[:, :width], is_test[:, :, :width]
    kept = (owner[attack] != gone[:, None])[:, None, :]
    tested = is_test[attack]
    won, below, _ = isolated(scores[attack], tested & kept, ~tested & kept, rank)
    before = success[attack]
    after = np.where(below > -np.inf, won, before)
    return attack, gone, after.sum(axis=1) - before.sum(axis=1)


def single_out(
    row: Best, exact: Exact, margin: float, draws: Sequence[Draw], rank: int, counts: IntArray
) -> tuple[BoolArray, IntArray, IntArray]:
    """Success of one enrolment speaker's predicate with threshold rank ``rank``, draws × counts ×
    folds; the keys count·S + j of other test speakers j, ascending, and by how many folds, over the
    first draws, success rises without them. Scores of ``row`` err by ``margin``; attacks whose
    lists prove too short go again.
    """
    folds, speakers = len(draws[0].slots), len(row.population.counts)
    own = int(draws[0].order[0])
    success = np.empty((len(draws) * len(counts), folds), dtype=bool)
    keys, changes = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    left = np.arange(len(success))
    depth = 2 * (rank + 1) + _SPARE
    while left.size:
        together = max(1, _AT_ONCE // (depth * folds))
        short = []
        for start in range(0, left.size, together):
            some = left[start : start + together]
            d, c = np.divmod(some, len(counts))
            lists = [row.among(draws[i], int(n), depth) for i, n in zip(d, counts[c], strict=True)]
            chosen, scores = _descending([conversations for conversations, _ in lists], exact)
            bound = np.array([bound for _, bound in lists]) + margin
            owner, slot = row.population.codes[chosen], row.population.slot[chosen]
            tested = [draws[i].slots.take(owner[d == i], axis=1) for i in np.unique(d)]
            is_test = np.concatenate(tested, axis=1).swapaxes(0, 1) == slot[:, None, :]
            won, below, at = isolated(scores, is_test, ~is_test, rank)
            deep = (bound == -np.inf) | (below > bound[:, None]).all(axis=1)
            success[some[deep]] = won[deep]
            short.append(some[~deep])
            deep &= d < DRAWS_WITHOUT
            if deep.any():
                parts, deepest = (scores[deep], owner[deep], is_test[deep]), at[deep].max(axis=1)
                attack, gone, change = _without_speakers(parts, rank, won[deep], deepest, own)
                keys.append(c[deep][attack] * speakers + gone)
                changes.append(change)
        left = np.concatenate(short)
        depth *= _DEEPER
    absent, which = np.unique(np.concatenate(keys), return_inverse=True)
    total = np.zeros(absent.size, dtype=np.int64)
    np.add.at(total, which, np.concatenate(changes))
    return success.reshape(len(draws), len(counts), folds), absent, total


def _descending(lists: Sequence[IntArray], exact: Exact) -> tuple[IntArray, FloatArray]:
    """Conversations of each list and their exact scores, best first; short lists end in −inf."""
    sizes = np.array([len(some) for some in lists])
    filled = np.arange(sizes.max()) < sizes[:, None]
    chosen = np.zeros(filled.shape, dtype=np.int64)
    scores = np.full(filled.shape, -np.inf)
    chosen[filled] = np.concatenate(lists)
    different, which = np.unique(chosen[filled], return_inverse=True)
    scores[filled] = exact(different)[which]
    order = np.argsort(-scores, axis=1)
    return np.take_along_axis(chosen, order, axis=1), np.take_along_axis(scores, order, axis=1)


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

    @classmethod
    def of(
        cls,
        population: Groups,
        speakers: IntArray,
        counts: IntArray,
        protocol: LegalProtocol,
        seed: np.random.SeedSequence,
    ) -> Attempts:
        """Draw the folds."""
        fold_seed, draw_seed = seed.spawn(2)
        sizes, children = population.counts, fold_seed.spawn(protocol.draws)
        slots = np.stack([test_slots(sizes, protocol.folds, child) for child in children])
        entropy = tuple(int(n) for n in np.atleast_1d(np.asarray(seed.entropy, dtype=object)))
        return cls(population, speakers, counts, slots, entropy, draw_seed.spawn_key)

    def draws(self, e: int) -> list[Draw]:
        """The draws of an enrolment speaker."""
        drawn, own = [], self.speakers[e]
        for d, slots in enumerate(self.slots):
            seed = np.random.SeedSequence(list(self.entropy), spawn_key=(*self.key, e, d))
            order = np.random.default_rng(seed).permutation(slots.shape[1])
            order = np.concatenate([[own], order[order != own]])
            position = np.empty_like(order)
            position[order] = np.arange(len(order))
            drawn.append(Draw(order, position, slots))
        return drawn

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
        self, e: int, row: Row, margin: float, exacts: Sequence[Exact]
    ) -> tuple[IntArray, list[tuple[IntArray, IntArray]]]:
        """How often each conversation of an enrolment speaker was isolated as its test entry (signs
        × counts × conversations), and for each sign which test speakers success changes without;
        a pair ruled out, −inf, stays so when negated.
        """
        draws, rank = self.draws(e), int(self.ranks[e])
        slots = self.slots[:, :, self.speakers[e]].reshape(-1)
        most = int(self.population.counts.max())
        won = np.zeros((len(exacts), len(self.counts), most), dtype=np.int64)
        changes = []
        for s, exact in enumerate(exacts):
            best = Best(np.where(row == -np.inf, row, -row) if s else row, self.population)
            success, absent, rise = single_out(best, exact, margin, draws, rank, self.counts)
            for c in range(len(self.counts)):
                won[s, c] = np.bincount(slots, success[:, c].reshape(-1), most)
            changes.append((absent, rise))
        return won, changes


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


@dataclass(frozen=True, eq=False, kw_only=True)
class Predicates(Rows):
    """One row per enrolment speaker, and one per conversation."""

    attempts: Attempts

    @lazy
    def margins(self) -> FloatArray:
        """By how much two single-precision scores of an enrolment speaker may be off."""
        return rounding(self.enrol, self.test)

    def attacks(self, xp: Xp, speakers: Range) -> Iterator[Predicate]:
        """Attacks of some enrolment speakers; only products are made on a device."""
        pairs = self.single.pairs((SPEAKERS, len(self.test)))
        for e, row in enumerate(pairs.kept(xp, speakers), speakers[0]):
            exact = partial(self.exact, e)
            yield e, row, float(self.margins[e]), (exact, partial(_negated, exact))


def _negated(exact: Exact, chosen: IntArray) -> FloatArray:
    """The negated scores; a pair ruled out, −inf, stays so."""
    scores = exact(chosen)
    return np.where(scores == -np.inf, scores, -scores)


@dataclass(frozen=True, eq=False)
class GivenScores:
    """Scores that are at hand, enrolment speakers × conversations."""

    attempts: Attempts
    scores: FloatArray

    def attacks(self, xp: Xp, speakers: Range) -> Iterator[Predicate]:
        """Attacks of some enrolment speakers."""
        for e in range(*speakers):
            values = self.scores[e]
            margin = float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) * 2.0**-23
            yield e, values.astype(np.float32), margin, (values.take,)


def isolate(xp: Xp, shared: Predicates | GivenScores, speakers: Range) -> Arrays:
    """Try the predicates of a range of enrolment speakers."""
    attempts = shared.attempts
    counts, everyone = len(attempts.counts), len(attempts.population.counts)
    won: list[IntArray] = []
    change = np.zeros((2, counts * everyone), dtype=np.int64)
    squares = np.zeros((2, counts), dtype=np.int64)
    for attack in shared.attacks(xp, speakers):
        one, changes = attempts.attack(*attack)
        won.append(one)
        for s, (absent, rise) in enumerate(changes):
            change[s, absent] += rise
            np.add.at(squares[s], absent // everyone, rise**2)
    signs = len(won[0])
    return {
        "won": narrow(np.stack(won, axis=1)),
        "change": change[:signs].reshape(signs, counts, everyone),
        "squares": squares[:signs],
    }


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
