"""Linkability with names permuted and Singling Out with conversations dealt out anew: what attacks
read without information, from the scores they have (:mod:`unmask.privacy.luck`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from unmask.base import BoolArray, FloatArray, Groups, IntArray
from unmask.privacy.legal.conversations import AttackData, Rows
from unmask.privacy.legal.isolating_kernel import (
    NEAR,
    Attempts,
    Codes,
    Predicates,
    Row,
    isolated,
)
from unmask.privacy.luck import UNEQUAL, Permuted, Renaming, some_people
from unmask.run import NUMPY
from unmask.trials import lookup

CELLS = 1 << 24
MOST_PEOPLE, LEAST_PEOPLE = 400, 20
POOL = 2_000
"""People whose conversations are dealt out anew: as good as all, and much faster."""
DEALS = 19
"""Fewest that reach a p-value of 0.05."""
_AT_ONCE = 1 << 21
_STREAM = 0x6465616C
_SURE = 2.0
_USUALLY = 10
"""Conversations of a person that are tested in a round at most, unless a protocol says so."""


Outcomes = Callable[[IntArray, IntArray], FloatArray]
"""The probability of a link for every N', of so many others above and so many tied."""
Blind = dict[str, Any]
"""Of a curve, what the attack reads without information: ``permuted``, by every permutation or
deal, and ``chance``, their mean where that differs from the usual by more than its error."""


def permuted_links(
    rows: Rows,
    data: AttackData,
    population: Groups,
    outcomes: Outcomes,
    usual: FloatArray,
    seed: int,
    tolerance: float,
) -> list[Blind]:
    """Linkability of the score and of the negated one with the names of test speakers permuted.

    ``rows`` hold a row for each conversation of ``population``, the speakers tested in ``data``.
    Permuted are the names of everyone who is tested at any length; within a release those of
    ``data.exchanged`` are exchanged in pairs. ``outcomes`` gives the probability of a link for
    every N' where so many others score above and so many are tied: within ``tolerance``. Of many
    people some are drawn: the first row of what comes back is theirs.

    With g(i, j) the mean outcome of the conversations of i if they were of j, a permutation π reads
    mean g(i, π(i)), and all of them mean g(i, j).
    """
    names, exchanged = data.tested.names, data.exchanged
    base = (data.everyone if exchanged is None else exchanged.names).sort()
    if rows.codes is not None:
        base = names.sort()
    each = int(population.counts.max())
    if exchanged is not None:  # the same people in all rounds and at all lengths
        each = min(int(exchanged.utterances.max()), _USUALLY)
    room = CELLS // (len(rows.enrol) * each)
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
    is_unequal = False
    if exchanged is None:
        renaming = Renaming.of(len(chosen), seed, groups)
    else:
        utterances = exchanged.utterances[lookup(base[chosen], exchanged.names)]
        renaming = Renaming.in_pairs(utterances, seed, groups)
        is_unequal = bool(utterances.max() > UNEQUAL * utterances.min())
    given = renaming.among(at[tested])
    columns = data.true[tested]
    table = _by_name(rows, population, tested, columns, outcomes, usual.size, tolerance)
    share = np.ones(len(tested)) if data.weights is None else data.weights[tested]
    read = (table[:, :, np.arange(len(tested)), given] * share).mean(axis=-1).swapaxes(1, 2)
    how = len(chosen), renaming.exhaustive, exchanged is not None, is_unequal
    has_level = exchanged is None or exchanged.has_level
    return [
        {
            "permuted": Permuted(np.ascontiguousarray(one), *how) if has_level else None,
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
    × rows. ``people`` are tested; within a release, where their names are exchanged in pairs,
    ``utterances`` are theirs.
    """

    count: int
    success: FloatArray
    own: FloatArray
    people: int
    exhaustive: bool
    utterances: IntArray | None = None

    def hits(self, s: int, people: int) -> Permuted:
        """The share of isolations that hit the enrolled person, of so many ``people``."""
        many = self.utterances
        is_unequal = many is not None and bool(many.max() > UNEQUAL * many.min())
        how = people, self.exhaustive, many is not None, is_unequal
        return Permuted(self.own[s][:, None], *how)

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


def dealt(
    shared: Predicates,
    count: int,
    seed: int,
    found: FloatArray,
    utterances: IntArray | None = None,
) -> Deals:
    """Deal test conversations out anew, as many to each person as before, and try every predicate
    among ``count`` speakers; ``found`` is what isolates as they are, under both signs.

    The conversations of a pool of 2,000 people (all where there are fewer), drawn by lot, are dealt
    among these people, within groups where side information tells them: one deal for all
    predicates. Each predicate draws its other speakers among them; an enrolled person outside the
    pool takes as many conversations of the pool as he has. Within a release the numbers of
    ``utterances`` tell whose names are exchanged in pairs.
    """
    attempts = shared.attempts
    population = attempts.population
    side = np.zeros(len(population), np.int64) if shared.codes is None else shared.codes[1]
    side_of_people = side[population.first]
    people = _pool(attempts, side_of_people, count, seed)
    is_everybody = len(people) == population.size
    conversations = population.rows(people)
    scores = _scores_of(shared, conversations)
    ruled_out = _ruled_out(shared, scores)
    ranks = [int(rank) for rank in np.unique(attempts.ranks)]
    actual = [_Entries.of(attempts, count, rank) for rank in ranks]
    entries = actual
    among = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM, len(people))))
    ascending, places_of = _ranked(scores, 2 * max(one.members.shape[2] for one in actual))
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM,)))
    success = np.empty((2, DEALS + 1))
    success[:, 0] = found
    for deal in range(1, DEALS + 1):
        order = np.arange(len(conversations) + 1)
        for code in np.unique(side[conversations]):
            some = np.flatnonzero(side[conversations] == code)
            order[some] = rng.permutation(some)
        # How many of those drawn are alike decides most where side information is known: there
        # every deal draws anew.
        if not is_everybody and (deal == 1 or shared.codes is not None):
            drawn = partial(_Entries.drawn, attempts, people, side_of_people, among)
            entries = [drawn(one) for one in actual]
        won = np.zeros((2, len(attempts.speakers)))
        for one in entries:
            for s, isolates in enumerate(one.tried(ascending, ruled_out, places_of, order)):
                won[s, one.speakers] = isolates.mean(axis=(0, 2))
        success[:, deal] = won.mean(axis=1)
    as_they_are = np.arange(len(conversations) + 1)
    hits = _Hits(attempts)
    for one in actual:
        known = one, ascending, ruled_out, places_of, as_they_are
        hits.add(one, *(known if is_everybody else _alone(shared, one)))
    if utterances is None:
        renaming = Renaming.of(population.size, seed, side_of_people)
    else:
        renaming = Renaming.in_pairs(utterances, seed, side_of_people)
    own = hits.own_share(count, renaming)
    return Deals(count, success, own, population.size, renaming.exhaustive, utterances)


def _pool(attempts: Attempts, side: IntArray, count: int, seed: int) -> IntArray:
    """The people whose conversations are dealt, drawn by lot before any score is seen.

    An enrolled person joins them where the lot has few people of the same side information.
    """
    everyone = attempts.population.size
    people = some_people(everyone, max(POOL, 2 * count), seed)
    own = side[attempts.speakers]
    codes, place = np.unique(own, return_inverse=True)
    drawn = (side[people][:, None] == codes).sum(axis=0)
    lacking = attempts.speakers[drawn[place] < LEAST_PEOPLE]
    return people if len(people) == everyone else np.union1d(people, lacking)


def _scores_of(shared: Predicates, conversations: IntArray) -> Row:
    """Scores of all enrolment speakers with some conversations, in single precision."""
    codes = None if shared.codes is None else (shared.codes[0], shared.codes[1][conversations])
    rows = Rows(shared.enrol, shared.test[conversations], codes)
    every = (0, len(rows.enrol)), (0, len(rows.test))
    return np.asarray(rows.scores(NUMPY, *every), dtype=np.float32)


def _ruled_out(shared: Predicates, scores: Row) -> IntArray:
    """How many conversations side information rules out for each enrolment speaker."""
    if shared.codes is None:
        return np.zeros(len(scores), dtype=np.int64)
    return np.asarray(np.isneginf(scores).sum(axis=1))


def _ranked(scores: Row, most: int) -> tuple[Row, IntArray]:
    """The scores of each row in ascending order, and the place of each conversation in it.

    A last column with −1 stands for no conversation. Places times ``most`` fit the type chosen.
    """
    shape = len(scores), scores.shape[1] + 1
    places = np.full(shape, -1, np.int32 if shape[1] * most >> 31 == 0 else np.int64)
    order = scores.argsort(axis=1)
    np.put_along_axis(places, order, np.arange(scores.shape[1], dtype=places.dtype)[None], axis=1)
    return np.take_along_axis(scores, order, axis=1), places


def _alone(shared: Predicates, one: _Entries) -> tuple[_Entries, Row, IntArray, IntArray, IntArray]:
    """The attempts of some predicates with the scores of their own conversations only."""
    size = one.members.shape[1] * one.members.shape[2]
    members = one.members.reshape(-1, size)
    is_there = members >= 0
    scores = np.full(members.shape, -np.inf, dtype=np.float32)
    scores[is_there] = shared.exact(one.speakers[np.nonzero(is_there)[0]], members[is_there])
    ascending, places = _ranked(scores, size)
    within = np.where(is_there, np.arange(size), -1).reshape(one.members.shape)
    renumbered = replace(one, speakers=np.arange(len(members)), members=within)
    # Entries that are missing have −inf as well and come first: all below are ruled out.
    ruled_out = np.isneginf(scores).sum(axis=1)
    return renumbered, ascending, ruled_out, places, np.append(np.arange(size), -1)


class _Hits:
    """Which people the attempts isolate, counted where they are tested at all."""

    def __init__(self, attempts: Attempts) -> None:
        self.attempts = attempts
        self.hits: tuple[list[IntArray], list[IntArray]] = ([], [])
        self.present: list[IntArray] = []

    def add(
        self,
        named: _Entries,
        one: _Entries,
        ascending: Row,
        ruled_out: IntArray,
        places_of: IntArray,
        order: IntArray,
    ) -> None:
        """Try the attempts ``one``, whose enrolment speakers have the numbers of ``named``."""
        people, size = self.attempts.population.size, len(order) - 1
        for s, isolates in enumerate(one.tried(ascending, ruled_out, places_of, order)):
            f, e, d = np.nonzero(isolates)
            tested = one.people[e, d]
            entry = one.begins[e, d] + self.attempts.slots[d, f, tested.T].T
            member = one.members[e[:, None], d[:, None], entry]
            place = places_of[one.speakers[e][:, None], order[member]].astype(np.int64)
            place[place < ruled_out[one.speakers[e], None]] += s * size
            at = place.argmin(axis=1) if s else place.argmax(axis=1)
            self.hits[s].append(named.speakers[e] * people + tested[np.arange(len(e)), at])
        self.present.append((named.speakers[:, None, None] * people + one.people).reshape(-1))

    def own_share(self, count: int, renaming: Renaming) -> FloatArray:
        """Share of isolations that hit the person whose name the enrolment speaker bears, by sign
        and renaming.

        A person who is not among those tested by a predicate counts as often as any of its
        ``count`` on average.
        """
        attempts = self.attempts
        draws, folds, everyone = attempts.slots.shape
        enrolled = np.arange(len(attempts.speakers))
        keys, often = np.unique(np.concatenate(self.present), return_counts=True)
        bears = enrolled * everyone + renaming.rows[:, attempts.speakers]
        at = np.minimum(np.searchsorted(keys, bears), len(keys) - 1)
        is_tested = keys[at] == bears
        shares = []
        for found in self.hits:
            hits = np.concatenate(found)
            level = np.bincount(hits // everyone, minlength=len(enrolled)) / (draws * folds)
            rate = np.bincount(np.searchsorted(keys, hits), minlength=len(keys)) / (often * folds)
            named = np.where(is_tested, rate[at], level / count).sum(axis=1)
            with np.errstate(invalid="ignore", divide="ignore"):
                shares.append(named / level.sum())
        return np.array(shares)


@dataclass(frozen=True, eq=False)
class _Entries:
    """Attempts of the enrolment ``speakers`` (their numbers) of one threshold ``rank``.

    Attributes
    ----------
    members
        Conversations of the speakers tested (speakers × draws × entries, −1 where there are fewer).
    tests
        Which of them test in each fold (members × folds).
    people
        Who is tested, the enrolled person first.
    begins
        The entry at which the conversations of each of these people begin.
    """

    rank: int
    count: int
    speakers: IntArray
    members: IntArray
    tests: BoolArray
    people: IntArray
    begins: IntArray

    @classmethod
    def of(cls, attempts: Attempts, count: int, rank: int) -> _Entries:
        """The attempts that were, on the conversations as they are."""
        if (count, rank) in attempts.kept:
            known: _Entries = attempts.kept[count, rank]
            return known
        population = attempts.population
        speakers = np.flatnonzero(attempts.ranks == rank)
        people = attempts.tested(speakers, count)
        sizes = population.counts[people]
        most = int(np.sort(population.counts)[-count:].sum())
        members = np.full((*people.shape[:2], most), -1)
        is_filled = np.arange(most) < sizes.sum(axis=2)[:, :, None]
        members[is_filled] = population.rows(people.reshape(-1))
        owners, slots = population.codes[members], population.slot[members]
        tests = _is_tested(attempts, owners, slots)
        begins = np.cumsum(sizes, axis=2) - sizes
        entries = cls(rank, count, speakers, members, tests, people, begins)
        if attempts.kept:
            attempts.kept[count, rank] = entries
        return entries

    @classmethod
    def drawn(
        cls,
        attempts: Attempts,
        pool: IntArray,
        side: IntArray,
        rng: np.random.Generator,
        actual: _Entries,
    ) -> _Entries:
        """Attempts of the same speakers among a ``pool`` of people, whose conversations are the
        members, numbered within the pool.
        """
        counts = attempts.population.counts
        dealt_to = Groups(np.repeat(np.arange(len(pool)), counts[pool]))
        own, draws = attempts.speakers[actual.speakers], actual.people.shape[1]
        owns = actual.rank + 1
        # Everybody of the pool in random order after the enrolled person, as far as needed: the
        # others who are tested, then those whose conversations a person outside the pool takes.
        lots = rng.random((len(own), draws, len(pool)))
        place = np.minimum(np.searchsorted(pool, own), len(pool) - 1)
        is_inside = pool[place] == own
        lots[is_inside, :, place[is_inside]] = 2.0
        needed = min(actual.count - 1 + owns, len(pool) - 1)
        near = np.argpartition(lots, needed, axis=2)[:, :, :needed]
        near = np.take_along_axis(near, np.take_along_axis(lots, near, axis=2).argsort(axis=2), 2)
        others = near[:, :, : actual.count - 1]
        most = owns + int(np.sort(counts[pool])[1 - actual.count :].sum())
        shape = len(own), draws, most
        members, owners, slots = np.full(shape, -1), np.zeros(shape, int), np.full(shape, -1)
        slots[:, :, :owns] = np.arange(owns)
        owners[:, :, :owns] = own[:, None, None]
        sizes = dealt_to.counts[others].sum(axis=2)
        is_filled = np.arange(most) - owns < sizes[:, :, None]
        is_filled[:, :, :owns] = False
        rows = dealt_to.rows(others.reshape(-1))
        members[is_filled] = rows
        owners[is_filled] = pool[dealt_to.codes[rows]]
        slots[is_filled] = dealt_to.slot[rows]
        members[is_inside, :, :owns] = (dealt_to.first[place[is_inside], None] + np.arange(owns))[
            :, None
        ]
        kinds = np.unique(side).size
        for e in np.flatnonzero(~is_inside):
            for d in range(draws):
                taken = near[e, d, actual.count - 1 :]
                if kinds > 1:
                    alike = np.flatnonzero(side[pool] == side[own[e]])
                    free = np.setdiff1d(alike, others[e, d])
                    taken = rng.permutation(free if len(free) >= owns else alike)
                members[e, d, :owns] = dealt_to.rows(taken[:owns])[:owns]
        tests = _is_tested(attempts, owners, slots)
        return replace(actual, members=members, tests=tests)

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


def _is_tested(attempts: Attempts, owners: Codes, slots: IntArray) -> BoolArray:
    """Whether members (speakers × draws × entries) are the test entry of their owner in each fold:
    members × folds.
    """
    draw = np.arange(owners.shape[1])[:, None]
    entries = attempts.slots.swapaxes(0, 1)[:, draw, owners]
    return np.asarray((entries == slots).reshape(len(entries), -1).T.copy())
