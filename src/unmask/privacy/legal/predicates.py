"""Predicates of many enrolment speakers, tried on any place; a task is a range of them.

Scores are inner products in single precision. They only tell which conversations are worth a
look: what decides is computed again in double precision, one pair at a time. So the results are
those of double precision, wherever the products were made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from unmask.base import FloatArray, IntArray
from unmask.privacy.legal.counts import Progress, rounding
from unmask.privacy.legal.isolation import Exact, Given, Products, Row
from unmask.privacy.legal.protocol import Protocol
from unmask.run import HERE, Arrays, Range, Where, narrow, product_type, ranges_of, run, tensor

SPEAKERS = 32
Attack = tuple[int, Row, tuple[Exact, ...]]
"""The number of an enrolment speaker, its scores, and where to get exact ones: of the score, and
of the negated one where that is tried as well."""


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
        sides: tuple[IntArray, IntArray] | tuple[None, None] = (None, None),
    ) -> Predicates:
        """From prepared rows, and codes of the speakers on both sides."""
        return cls(protocol, enrol, test, test.astype(np.float32), rounding(enrol, test), *sides)

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
