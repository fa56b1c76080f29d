"""Predicates of many enrolment speakers, tried on any place; a task is a range of them.

Whom they are tried on, in which folds and draws, comes from one seed. Scores are inner products in
single precision. They only tell which conversations are worth a look: what decides is computed
again in double precision, one pair at a time. So the results are those of double precision,
wherever the products were made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray, lazy
from unmask.errors import InputError
from unmask.privacy.legal.isolation import (
    Best,
    Draw,
    Exact,
    Given,
    Population,
    Products,
    Row,
    Slots,
    single_out,
)
from unmask.privacy.legal.links import Progress, rounding
from unmask.run import (
    HERE,
    ArrayFields,
    Arrays,
    Range,
    Where,
    narrow,
    product_type,
    ranges_of,
    run,
    tensor,
)

SPEAKERS = 32
Words = npt.NDArray[np.uint32]
Attacked = tuple[IntArray, list[tuple[IntArray, IntArray]]]
"""How often each conversation of an enrolment speaker was isolated as its test entry (signs ×
counts × conversations), and for each sign the keys count·S + j of test speakers without whom
success changes, and by how many folds."""
Attack = tuple[int, Row, tuple[Exact, ...]]
"""The number of an enrolment speaker, its scores, and where to get exact ones: of the score, and
of the negated one where that is tried as well."""


@dataclass(frozen=True, eq=False)
class Protocol(ArrayFields):
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

    def attack(self, e: int, row: Row, exacts: Sequence[Exact]) -> Attacked:
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
            found = single_out(Best(signed, self.population), exact, draws, rank, self.counts)
            for c in range(len(self.counts)):
                won[s, c] = np.bincount(
                    slots.reshape(-1), found.success[:, c].reshape(-1), won.shape[2]
                )
            changes.append((found.absent, found.change))
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

    ``single`` are the conversations in single precision, ``margins`` says by how much two scores
    of an enrolment speaker may be off. With side information a conversation of a speaker whose
    code differs scores −inf.
    """

    protocol: Protocol
    enrol: FloatArray
    test: FloatArray
    single: Row
    margins: FloatArray
    enrol_side: IntArray | None = None
    test_side: IntArray | None = None

    @classmethod
    def of(
        cls,
        protocol: Protocol,
        enrol: FloatArray,
        test: FloatArray,
        enrol_side: IntArray | None = None,
        test_side: IntArray | None = None,
    ) -> Predicates:
        """From prepared rows, and codes of the speakers on both sides."""
        single, margins = test.astype(np.float32), rounding(enrol, test)
        return cls(protocol, enrol, test, single, margins, enrol_side, test_side)

    def arrays(self) -> Arrays:
        own = {name: value for name, value in vars(self).items() if name != "protocol"}
        found = {**self.protocol.arrays(), **own}
        return {name: value for name, value in found.items() if value is not None}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        protocol = Protocol.from_arrays(arrays)
        own = {name: value for name, value in arrays.items() if name not in protocol.arrays()}
        return cls(protocol, **own)

    def attacks(self, speakers: Range, scores: Row) -> Iterator[Attack]:
        """Attacks of some enrolment speakers, whose scores are the rows of ``scores``."""
        for e, row in enumerate(scores, speakers[0]):
            allowed = None
            if self.enrol_side is not None and self.test_side is not None:
                allowed = (self.test_side == self.enrol_side[e])[self.protocol.owner]
                row = np.where(allowed, row, np.float32(-np.inf))
            margin = float(self.margins[e])
            exact = Products(self.enrol[e], self.test, margin, allowed)
            turned = Products(-self.enrol[e], self.test, margin, allowed)
            yield e, row, (exact, turned)


@dataclass(frozen=True, eq=False)
class GivenScores:
    """Scores that are at hand, enrolment speakers × conversations."""

    protocol: Protocol
    scores: FloatArray

    def arrays(self) -> Arrays:
        return {**self.protocol.arrays(), "scores": self.scores}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        return cls(Protocol.from_arrays(arrays), arrays["scores"])

    def attacks(self, speakers: Range) -> Iterator[Attack]:
        """Attacks of some enrolment speakers."""
        for e in range(*speakers):
            values = self.scores[e]
            margin = float(np.abs(values[np.isfinite(values)]).max(initial=0.0)) * 2.0**-23
            yield e, values.astype(np.float32), (Given(values, margin),)


def isolate(predicates: Predicates, speakers: Range) -> Arrays:
    """Try the predicates of a range of enrolment speakers."""
    scores = predicates.enrol[slice(*speakers)].astype(np.float32) @ predicates.single.T
    return _tried(predicates.protocol, predicates.attacks(speakers, scores))


def isolate_on_device(predicates: Predicates, device: str) -> Callable[[Range], Arrays]:
    """The same with products on a CUDA device; their rows come back, the rest happens here."""
    import torch

    kind = product_type()
    conversations = tensor(predicates.single, device).to(kind)

    def isolate(speakers: Range) -> Arrays:
        enrol = tensor(predicates.enrol[slice(*speakers)], device).to(kind)
        scores = (enrol @ conversations.T).to(torch.float32).cpu().numpy()
        return _tried(predicates.protocol, predicates.attacks(speakers, scores))

    return isolate


def isolate_given(given: GivenScores, speakers: Range) -> Arrays:
    """The same with scores that are at hand."""
    return _tried(given.protocol, given.attacks(speakers))


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


def single_out_all(
    predicates: Predicates | GivenScores,
    *,
    speakers: int = SPEAKERS,
    where: Where = HERE,
    progress: Progress | None = None,
) -> Outcome:
    """Try every predicate, ``speakers`` at a time."""
    protocol = predicates.protocol
    ranges = ranges_of(len(protocol.speakers), speakers)
    if isinstance(predicates, Predicates):
        found = run(
            isolate, predicates, ranges,
            where=where, on_device=isolate_on_device, progress=progress,
        )  # fmt: skip
    else:
        found = run(isolate_given, predicates, ranges, where=where, progress=progress)
    parts = list(found)
    return Outcome(
        np.concatenate([part["won"] for part in parts], axis=1).astype(np.int64),
        protocol.trials,
        np.sum([part["change"] for part in parts], axis=0),
        np.sum([part["squares"] for part in parts], axis=0),
    )
