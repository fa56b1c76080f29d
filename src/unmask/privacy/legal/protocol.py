"""The protocol of Singling Out: folds and draws of test speakers, all from one seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import IntArray, lazy
from unmask.errors import InputError
from unmask.privacy.legal.folds import Slots, test_slots
from unmask.privacy.legal.isolation import (
    Best,
    Draw,
    Exact,
    Population,
    Row,
    single_out,
)
from unmask.run import ArrayFields

Words = npt.NDArray[np.uint32]
Attacked = tuple[IntArray, list[tuple[IntArray, IntArray]]]
"""How often each conversation of an enrolment speaker was isolated as its test entry (signs ×
counts × conversations), and for each sign the keys count·S + j of test speakers without whom
success changes, and by how many folds."""


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
