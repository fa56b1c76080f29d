"""Predicates of many enrolment speakers, tried on any place; a task is a range of them.

Whom they are tried on, in which folds and draws, comes from one seed. Scores are inner products in
single precision. They only tell which conversations are worth a look: what decides is computed
again in double precision, one pair at a time. So the results are those of double precision,
wherever the products were made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, FloatArray, IntArray, lazy
from unmask.errors import InputError
from unmask.privacy.legal.isolation import Best, Draw, Exact, Population, Row, Slots, single_out
from unmask.privacy.legal.links import rounding
from unmask.run import Arrays, Range, Xp, narrow, ranges_of, run

SPEAKERS = 32
Words = npt.NDArray[np.uint32]
Attacked = tuple[IntArray, list[tuple[IntArray, IntArray]]]
"""How often each conversation of an enrolment speaker was isolated as its test entry (signs ×
counts × conversations), and for each sign the keys count·S + j of test speakers without whom
success changes, and by how many folds."""
Attack = tuple[int, Row, float, tuple[Exact, ...]]
"""The number of an enrolment speaker, its scores, by how much two of them may be off, and what
gives exact ones: of the score, and of the negated one where that is tried as well."""


@dataclass(frozen=True, eq=False)
class Protocol:
    """Whom every enrolment speaker is attacked among, in which folds and draws.

    ``owner`` is the speaker of each test conversation, ``speakers`` the number that each enrolment
    speaker has among them, ``slots`` holds draws × folds × speakers. ``entropy`` and ``key`` are
    the parent of all seeds: a draw depends on the number of its enrolment speaker and its own,
    whoever else is attacked in the same task.
    """

    owner: IntArray
    speakers: IntArray
    counts: IntArray
    slots: Slots
    entropy: Words
    key: Words

    @classmethod
    def of(
        cls,
        population: Population,
        speakers: IntArray,
        counts: IntArray,
        *,
        folds: int,
        draws: int,
        seed: np.random.SeedSequence,
    ) -> Protocol:
        """Draw the folds."""
        for name, number in (("folds", folds), ("draws", draws)):
            if number < 1:
                raise InputError(f"{name}: expected at least 1, found {number}")
        fold_seed, draw_seed = seed.spawn(2)
        slots = [
            test_slots(population.per_speaker, folds, child) for child in fold_seed.spawn(draws)
        ]
        entropy = np.asarray(_words(seed.entropy), dtype=np.uint32)
        key = np.asarray(draw_seed.spawn_key, dtype=np.uint32)
        return cls(population.owner, speakers, counts, np.stack(slots), entropy, key)

    @lazy
    def population(self) -> Population:
        """The test conversations."""
        return Population.of(self.owner)

    def draws(self, e: int) -> list[Draw]:
        """The draws of an enrolment speaker."""
        entropy, key = self.entropy.tolist(), self.key.tolist()
        everyone = len(self.population.per_speaker)
        return [
            Draw.of(int(self.speakers[e]), everyone, slots, _rng(entropy, (*key, e, d)))
            for d, slots in enumerate(self.slots)
        ]

    @property
    def ranks(self) -> IntArray:
        """Threshold rank k of each enrolment speaker: its own calibration entries (footnote 4)."""
        return self.population.per_speaker[self.speakers] - 1

    @property
    def trials(self) -> IntArray:
        """How often each conversation of every enrolment speaker is its test entry."""
        slots = self.slots[:, :, self.speakers].astype(np.int64)
        most = int(self.population.per_speaker.max())
        flat = slots.reshape(-1, len(self.speakers)) + most * np.arange(len(self.speakers))
        counted = np.bincount(flat.reshape(-1), minlength=most * len(self.speakers))
        return counted.reshape(-1, most)

    def attack(self, e: int, row: Row, margin: float, exacts: Sequence[Exact]) -> Attacked:
        """Attacks of an enrolment speaker for every count, with the score and, where there is a
        second ``exacts``, the negated score (−inf, a pair ruled out, stays −inf).
        """
        draws = self.draws(e)
        speaker, rank = int(self.speakers[e]), int(self.ranks[e])
        sizes = self.population.per_speaker
        slots = self.slots[:, :, speaker].astype(np.int64)
        won = np.zeros((len(exacts), len(self.counts), int(sizes.max())), dtype=np.int64)
        changes = []
        for s, exact in enumerate(exacts):
            signed = row if s == 0 else np.where(row == -np.inf, row, -row)
            best = Best(signed, self.population)
            result = single_out(best, exact, margin, draws, rank, self.counts)
            for c in range(len(self.counts)):
                success = result.success[:, c].reshape(-1)
                won[s, c] = np.bincount(slots.reshape(-1), success, won.shape[2])
            changes.append((result.absent, result.change))
        return won, changes


def _words(entropy: Any) -> list[int]:
    """The entropy of a seed as numpy takes it apart: 32 bits at a time, the lowest first."""
    numbers = [int(part) for part in (entropy if np.ndim(entropy) else [entropy])]
    return [
        number >> shift & 0xFFFFFFFF
        for number in numbers
        for shift in range(0, max(number.bit_length(), 1), 32)
    ]


def _rng(entropy: list[int], key: tuple[int, ...]) -> np.random.Generator:
    """A generator from the seed that successive spawns from a parent would give."""
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=key))


def test_slots(per_speaker: IntArray, folds: int, seed: np.random.SeedSequence) -> Slots:
    """Number of the conversation a speaker is tested with, folds × speakers.

    Every K folds a speaker's K conversations each serve once, in an order drawn anew, so folds
    differ for everyone however unequal the numbers of conversations are.
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
    slots = np.empty((folds, len(per_speaker)), dtype=np.int16)
    for fold in range(folds):
        slots[fold] = orders[fold // per_speaker, speakers, fold % per_speaker]
    return slots


@dataclass(frozen=True, eq=False)
class Outcome:
    """What all predicates do, with the score and, if tried, the negated one (first axis).

    ``won`` counts how often each conversation of an enrolment speaker was isolated (signs ×
    enrolment speakers × counts × conversations), ``trials`` how often it was tried. ``change``
    sums over enrolment speakers by how many attacks success rises without each test speaker (signs
    × counts × test speakers), ``squares`` the squares of its terms (signs × counts).
    """

    won: IntArray
    trials: IntArray
    change: IntArray
    squares: IntArray

    @property
    def success(self) -> FloatArray:
        """Share of attacks that isolate: signs × enrolment speakers × counts."""
        return np.asarray(self.won.sum(axis=3) / self.trials.sum(axis=1)[:, None])


@dataclass(frozen=True, eq=False)
class Predicates:
    """Rows whose inner products are scores: one per enrolment speaker, one per conversation.

    With side information a conversation of a speaker whose code differs scores −inf.
    """

    protocol: Protocol
    enrol: FloatArray
    test: FloatArray
    enrol_side: IntArray | None = None
    test_side: IntArray | None = None

    @lazy
    def single(self) -> Row:
        """The conversations in single precision."""
        return self.test.astype(np.float32)

    @lazy
    def margins(self) -> FloatArray:
        """By how much two single-precision scores of an enrolment speaker may be off."""
        return rounding(self.enrol, self.test)

    def attacks(self, speakers: Range, scores: Row) -> Iterator[Attack]:
        """Attacks of some enrolment speakers, whose scores are the rows of ``scores``."""
        for e, row in enumerate(scores, speakers[0]):
            allowed = None
            if self.enrol_side is not None and self.test_side is not None:
                allowed = (self.test_side == self.enrol_side[e])[self.protocol.owner]
                row = np.where(allowed, row, np.float32(-np.inf))
            exacts = tuple(
                partial(_products, sign * self.enrol[e], self.test, allowed) for sign in (1, -1)
            )
            yield e, row, float(self.margins[e]), exacts


def _products(
    enrol: FloatArray, test: FloatArray, allowed: BoolArray | None, chosen: IntArray
) -> FloatArray:
    """Inner products with the chosen conversations, one at a time; −inf where not allowed."""
    scores = np.asarray((test[chosen] * enrol).sum(axis=1))
    return scores if allowed is None else np.where(allowed[chosen], scores, -np.inf)


@dataclass(frozen=True, eq=False)
class GivenScores:
    """Scores that are at hand, enrolment speakers × conversations."""

    protocol: Protocol
    scores: FloatArray

    def attacks(self, speakers: Range) -> Iterator[Attack]:
        """Attacks of some enrolment speakers."""
        for e in range(*speakers):
            values = self.scores[e]
            margin = float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) * 2.0**-23
            yield e, values.astype(np.float32), margin, (values.take,)


def isolate(xp: Xp, shared: Predicates | GivenScores, speakers: Range) -> Arrays:
    """Try the predicates of a range of enrolment speakers; only products are made on a device."""
    if isinstance(shared, GivenScores):
        return _tried(shared.protocol, shared.attacks(speakers))
    enrol = xp.put(shared.enrol[slice(*speakers)].astype(np.float32))
    scores = xp.host(xp.product(enrol, xp.put(shared.single))).astype(np.float32, copy=False)
    return _tried(shared.protocol, shared.attacks(speakers, scores))


def _tried(protocol: Protocol, attacks: Iterator[Attack]) -> Arrays:
    counts, speakers = len(protocol.counts), len(protocol.population.per_speaker)
    won: list[IntArray] = []
    change = np.zeros((2, counts * speakers), dtype=np.int64)
    squares = np.zeros((2, counts), dtype=np.int64)
    for attack in attacks:
        one, changes = protocol.attack(*attack)
        won.append(one)
        for s, (absent, rise) in enumerate(changes):
            change[s, absent] += rise
            np.add.at(squares[s], absent // speakers, rise**2)
    signs = len(won[0])
    return {
        "won": narrow(np.stack(won, axis=1)),
        "change": change[:signs].reshape(signs, counts, speakers),
        "squares": squares[:signs],
    }


def single_out_all(shared: Predicates | GivenScores, *, speakers: int | None = None) -> Outcome:
    """Try every predicate, ``speakers`` at a time, on the current place."""
    protocol = shared.protocol
    parts = list(run(isolate, shared, ranges_of(len(protocol.speakers), speakers or SPEAKERS)))
    return Outcome(
        np.concatenate([part["won"] for part in parts], axis=1).astype(np.int64),
        protocol.trials,
        np.sum([part["change"] for part in parts], axis=0),
        np.sum([part["squares"] for part in parts], axis=0),
    )
