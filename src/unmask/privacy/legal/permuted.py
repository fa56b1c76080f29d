"""Linkability with names permuted and Singling Out with conversations dealt out anew: what attacks
read without information, from the scores they have (:mod:`unmask.privacy.luck`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from unmask.base import BoolArray, FloatArray, Groups, IntArray
from unmask.privacy.legal.conversations import Rows
from unmask.privacy.legal.isolating_kernel import NEAR, Attempts, Predicates, Row, isolated
from unmask.privacy.luck import Permuted, Renaming, some_people
from unmask.run import NUMPY
from unmask.trials import lookup

CELLS = 1 << 24
MOST_PEOPLE, LEAST_PEOPLE = 400, 20
DEALS = 19
"""Fewest that reach a p-value of 0.05."""
_AT_ONCE = 1 << 21
_STREAM = 0x6465616C
_SURE = 2.0


Outcomes = Callable[[IntArray, IntArray], FloatArray]
"""The probability of a link for every N', of so many others above and so many tied."""
Blind = dict[str, Any]
"""Of a curve, what the attack reads without information: ``permuted``, by every permutation or
deal, and ``chance``, their mean where that differs from the usual by more than its error."""


def permuted_links(
    rows: Rows,
    true: IntArray,
    population: Groups,
    names: pl.Series,
    everyone: pl.Series,
    outcomes: Outcomes,
    usual: FloatArray,
    seed: int,
    tolerance: float,
) -> list[Blind]:
    """Linkability of the score and of the negated one with the names of test speakers permuted.

    ``rows`` hold a row for each conversation of ``population``, whose speakers have ``names``;
    ``true`` is the enrolment row of each speaker, ``everyone`` who is tested at any length, whose
    names are permuted. ``outcomes`` gives the probability of a link for every N' where so many
    others score above and so many are tied: within ``tolerance``. Of many people some are drawn:
    the first row of what comes back is theirs.

    With g(i, j) the mean outcome of the conversations of i if they were of j, a permutation π reads
    mean g(i, π(i)), and all of them mean g(i, j).
    """
    base = (everyone if rows.codes is None else names).sort()
    room = CELLS // (len(rows.enrol) * int(population.counts.max()))
    most = int(np.clip(room, LEAST_PEOPLE, MOST_PEOPLE))
    chosen = some_people(len(base), most, seed)
    place = np.full(len(base), -1)
    place[chosen] = np.arange(len(chosen))
    at = place[lookup(names, base)]
    order = np.argsort(at, kind="stable")
    tested = order[at[order] >= 0]
    groups, own = None, np.ones((len(tested),) * 2, dtype=bool)
    candidates = np.full(len(tested), len(rows.enrol))
    if rows.codes is not None:
        side = rows.codes[1][population.first[tested]]
        groups = np.empty(len(chosen), dtype=np.int64)
        groups[at[tested]] = side
        own = side[:, None] == side
        candidates = (side[:, None] == rows.codes[0]).sum(axis=1)
    renaming = Renaming.of(len(chosen), seed, groups)
    given = renaming.among(at[tested])
    table = _by_name(rows, population, tested, true[tested], outcomes, usual.size, tolerance)
    read = table[:, :, np.arange(len(tested)), given].mean(axis=-1).swapaxes(1, 2)
    return [
        {
            "permuted": Permuted(np.ascontiguousarray(one), len(chosen), renaming.exhaustive),
            "chance": _own_chance(by_name, own, candidates, usual),
        }
        for one, by_name in zip(read, table, strict=True)
    ]


def _own_chance(
    table: FloatArray, own: BoolArray, candidates: IntArray, usual: FloatArray
) -> FloatArray:
    """Mean under other people's names for every N' (first axis of ``table``), where it differs from
    what is ``usual`` by more than two standard errors over the people on both sides.

    The right name counts as one of the ``candidates``, not as one of those tested: else a leak
    would raise its own chance where few of the enrolled people are tested.
    """
    others = own & ~np.eye(len(own), dtype=bool)
    known = others.any(axis=1)
    if not known.any():
        return usual
    share = (1 - 1 / candidates) / np.maximum(others.sum(axis=1), 1)
    weight = np.where(others, share[:, None], 0.0) + np.diag(1 / candidates)
    weight = weight[known][:, known]
    weighted = table[:, known][:, :, known] * weight
    by_row, by_column = weighted.sum(axis=2), weighted.sum(axis=1)
    mean = by_row.mean(axis=1)
    moves = by_row + by_column - 2 * mean[:, None]
    error = np.sqrt((moves**2).sum(axis=1)) / known.sum()
    return np.where(np.abs(mean - usual) > _SURE * error + 1e-9, mean, usual)


def _by_name(
    rows: Rows,
    population: Groups,
    tested: IntArray,
    columns: IntArray,
    outcomes: Outcomes,
    counts: int,
    tolerance: float,
) -> FloatArray:
    """g(i, j) of the people ``tested`` under both signs: signs × counts × people × names."""
    size, people = len(rows.enrol), len(tested)
    table = np.empty((2, counts, people, people))
    step = max(1, _AT_ONCE // (size * int(population.counts.max())))
    for start in range(0, people, step):
        some = tested[start : start + step]
        each = population.counts[some]
        chosen = population.rows(some)
        scores = rows.test[chosen] @ rows.enrol.T
        if rows.codes is not None:
            scores[rows.codes[1][chosen, None] != rows.codes[0]] = -np.inf
        first = np.cumsum(each) - each
        for s, (above, tied) in enumerate(above_and_tied(scores, columns, tolerance)):
            # Few different pairs of counts occur: each is looked up once.
            keys, place = np.unique(above * size + tied, return_inverse=True)
            risks = outcomes(*np.divmod(keys, size))[place.reshape(above.shape)]
            means = np.add.reduceat(risks, first, axis=0) / each[:, None, None]
            table[s, :, start : start + step] = np.moveaxis(means, 2, 0)
    return table


def above_and_tied(
    scores: FloatArray, columns: IntArray, tolerance: float
) -> list[tuple[IntArray, IntArray]]:
    """How many others in its row lie above each score of some ``columns``, and how many within the
    ``tolerance`` of it, of the scores and of the negated ones.

    Scores of −inf cannot be chosen: they are above nobody and tie with nobody, and all others count
    as above them.
    """
    own = scores[:, columns]
    ranked = np.sort(scores, axis=1)
    size = scores.shape[1]
    ruled_out = np.isneginf(scores).sum(axis=1, keepdims=True)
    below = _places(ranked, own - tolerance, or_equal=False)
    up_to = _places(ranked, own + tolerance, or_equal=True)
    tied = up_to - below - 1
    can_be_chosen = own > -np.inf
    both = []
    for above in (size - up_to, below - ruled_out):
        above[~can_be_chosen] = size - 1
        both.append((above, np.where(can_be_chosen, tied, 0)))
    return both


def _places(ranked: FloatArray, values: FloatArray, *, or_equal: bool) -> IntArray:
    """How many scores of an ascending row are below each of its values, or equal to it as well.

    All rows at once, by halving: each step keeps the largest number of scores known to be below.
    """
    size = ranked.shape[1]
    place = np.zeros(values.shape, dtype=np.int64)
    step = 1 << size.bit_length()
    while step := step // 2:
        probed = np.take_along_axis(ranked, np.minimum(place + step, size) - 1, axis=1)
        is_below = probed <= values if or_equal else probed < values
        place += np.where(is_below & (place + step <= size), step, 0)
    return place


@dataclass(frozen=True, eq=False)
class Deals:
    """Singling Out among ``count`` test speakers, under the score and the negated one.

    ``success`` has the conversations as they are (first) and dealt out anew; ``own`` the share of
    isolations that hit the enrolled person, the names as they are (first) and permuted; both signs
    × rows. ``people`` are tested.
    """

    count: int
    success: FloatArray
    own: FloatArray
    people: int
    exhaustive: bool

    def blind(self, s: int, counts: IntArray, usual: FloatArray) -> Blind:
        """The deals of a sign, and their mean where it differs from the ``usual`` chance by more
        than two standard errors; of other ``counts`` nothing is known.
        """
        at = counts == self.count
        others = self.success[s, 1:]
        error = others.std(ddof=1) / np.sqrt(len(others))
        own = at & (np.abs(others.mean() - usual) > _SURE * error)
        values = np.where(at, self.success[s][:, None], np.nan)
        chance = np.where(own, others.mean(), usual)
        return {"permuted": Permuted(values, self.people), "chance": chance}


def dealt(shared: Predicates, count: int, seed: int) -> Deals:
    """Deal the test conversations of all people out anew, as many to each as before (within groups
    where side information tells them), and try every predicate among ``count`` speakers in the
    folds and draws that were.
    """
    attempts, population = shared.attempts, shared.attempts.population
    every = (0, len(shared.enrol)), (0, len(shared.test))
    scores = shared.scores(NUMPY, *every).astype(np.float32)
    entries = [_Entries.of(attempts, count, int(rank)) for rank in np.unique(attempts.ranks)]
    most = max(one.members.shape[2] for one in entries)
    shape = len(scores), len(population) + 1
    order_of = np.full(shape, -1, np.int32 if shape[1] * most >> 31 == 0 else np.int64)
    for place, row in zip(order_of, scores, strict=True):
        place[row.argsort()] = np.arange(len(row))
        row.sort()
    ruled_out = np.isneginf(scores).sum(axis=1)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM,)))
    side = np.zeros(len(population), np.int64) if shared.codes is None else shared.codes[1]
    success = np.empty((2, DEALS + 1))
    hits = np.zeros((2, len(attempts.speakers), population.size))
    for deal in range(DEALS + 1):
        order = np.arange(shape[1])
        for code in np.unique(side) if deal else ():
            some = np.flatnonzero(side == code)
            order[some] = rng.permutation(some)
        won = np.zeros((2, len(attempts.speakers)))
        for one in entries:
            for s, isolates in enumerate(one.tried(scores, ruled_out, order_of, order)):
                won[s, one.speakers] = isolates.mean(axis=(0, 2))
                if not deal:
                    f, e, d = np.nonzero(isolates)
                    people, e = one.people[e, d], one.speakers[e]
                    tested = population.first[people] + attempts.slots[d, f, people.T].T
                    place = order_of[e[:, None], tested]
                    place[place < ruled_out[e, None]] += s * len(population)
                    at = place.argmin(axis=1) if s else place.argmax(axis=1)
                    np.add.at(hits[s], (e, people[np.arange(len(e)), at]), 1)
        success[:, deal] = won.mean(axis=1)
    present = np.zeros(hits.shape[1:])
    for one in entries:
        np.add.at(present, (one.speakers[:, None, None], one.people), attempts.slots.shape[1])
    own, exhaustive = _own_share(hits, present, attempts, count, side[population.first], seed)
    return Deals(count, success, own, population.size, exhaustive)


def _own_share(
    hits: FloatArray, present: FloatArray, attempts: Attempts, count: int, side: IntArray, seed: int
) -> tuple[FloatArray, bool]:
    """Share of isolations that hit the person whose name the enrolment speaker bears, by sign and
    renaming: ``hits`` of every person over the attempts in which it was ``present``.
    """
    isolated_ = hits.sum(axis=2)
    tries = present[np.arange(len(attempts.speakers)), attempts.speakers]
    level = isolated_ / tries
    with np.errstate(invalid="ignore"):
        rate = np.where(present > 0, hits / present, level[:, :, None] / count)
    renaming = Renaming.of(len(side), seed, side)
    bears = renaming.rows[:, attempts.speakers]
    named = rate[:, np.arange(len(attempts.speakers)), bears].sum(axis=2)
    total = level.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return named / total, renaming.exhaustive


@dataclass(frozen=True, eq=False)
class _Entries:
    """Attempts of the enrolment ``speakers`` (their numbers) of one threshold ``rank``: the
    ``members``, conversations of the speakers drawn (speakers × draws × entries, −1 where there are
    fewer), which of them test in each fold (members × folds), the ``people`` drawn.
    """

    rank: int
    count: int
    speakers: IntArray
    members: IntArray
    tests: BoolArray
    people: IntArray

    @classmethod
    def of(cls, attempts: Attempts, count: int, rank: int) -> _Entries:
        if (count, rank) in attempts.kept:
            made: _Entries = attempts.kept[count, rank]
            return made
        population = attempts.population
        speakers = np.flatnonzero(attempts.ranks == rank)
        people = attempts.draws(speakers).order[:, :, :count].copy()
        most = int(np.sort(population.counts)[-count:].sum())
        members = np.full((*people.shape[:2], most), -1)
        filled = np.arange(most) < population.counts[people].sum(axis=2)[:, :, None]
        members[filled] = population.rows(people.reshape(-1))
        draw = np.arange(people.shape[1])[:, None]
        entries = attempts.slots.swapaxes(0, 1)[:, draw, population.codes[members]]
        tests = (entries == population.slot[members]).reshape(len(entries), -1).T.copy()
        made = cls(rank, count, speakers, members, tests, people)
        if attempts.kept:
            attempts.kept[count, rank] = made
        return made

    def tried(
        self, ascending: Row, ruled_out: IntArray, places_of: IntArray, order: IntArray
    ) -> BoolArray:
        """Whether each attempt isolates (folds × speakers × draws), under the score and the negated
        one; place c of the population holds conversation ``order[c]``, whose score is number
        ``places_of`` of those of an enrolment speaker, ``ascending``: so many are ``ruled_out``.
        What is last in ``order`` stands for no conversation and is number −1.
        """
        size = self.members.shape[2]
        numbers = places_of.take(order[self.members] + (self.speakers * len(order))[:, None, None])
        entries = (numbers * size + np.arange(size, dtype=numbers.dtype)).reshape(-1, size)
        entries.sort(axis=1)
        lowest = ruled_out[self.speakers].repeat(self.members.shape[1])
        known = (entries >= size * lowest[:, None]).sum(axis=1)
        both = np.arange(2 * len(known))
        won, below = self._top(ascending, entries, known, both, self.rank + 1 + NEAR)
        short = np.flatnonzero((below == -np.inf).any(axis=0))
        if short.size:
            most = self.rank + 1 + self.count
            won[:, short] = self._top(ascending, entries, known, short, most)[0]
        return won.reshape(len(won), 2, *self.members.shape[:2]).swapaxes(0, 1)

    def _top(
        self, ascending: Row, entries: IntArray, known: IntArray, rows: IntArray, most: int
    ) -> tuple[BoolArray, FloatArray]:
        """Whether the best scores of attempts isolate, and the (k+1)-th that calibrates; ``rows``
        beyond the attempts are those under the negated score.
        """
        size, draws, (negated, row) = *self.members.shape[:0:-1], np.divmod(rows, len(entries))
        at = np.arange(min(most, size))[:, None]
        last = np.where(negated, np.minimum(size - known[row] + at, size - 1), size - 1 - at)
        number, member = np.divmod(entries[row, last], size)
        there, score = at < known[row], ascending[self.speakers[row // draws], number]
        top = np.where(there, np.where(negated, -score, score), -np.inf)
        is_test = self.tests.take(member + row * size, axis=0).transpose(2, 0, 1).copy()
        return isolated(top, is_test & there, ~is_test & there, self.rank)[:2]
