"""Chance of the strongest: what the best of the same attacks reads without any information (max-T).

The largest of many attacks is luck as well. Names of the attacked people are permuted, a person's
recordings together, one permutation for all attacks, readings and lengths at once; no score is made
again. The mean of the best over permutations is what luck alone reads, and the share of them that
reach what was found is the adjusted p-value. Where an attack was told the group of each recording,
names are permuted within groups.

Within a release each pair of recordings is scored both ways, and one renaming for both ways would
break the two scores apart: there people are exchanged in pairs, who have about as many utterances.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import factorial

import numpy as np

from unmask.base import FloatArray, IntArray
from unmask.estimate import Luck

PERMUTATIONS = 200
MOST_EXHAUSTIVE = 5
"""All permutations of up to as many people are tried."""
MOST_PAIRINGS_TRIED = 6
"""People of whom all pairings are tried: there are 15 of six, too few for p = 0.05."""
UNEQUAL = 2.0
"""Where somebody has more than so many times the utterances of another, p may be too small."""
_STREAM = 0x7065726D
_PAIRED = 0x70616972
_TIE = 1e-12


@dataclass(frozen=True, eq=False)
class Permuted:
    """An attack with the names as they are (first row of ``values``) and permuted (the others), at
    each of its points (columns); the names are those of so many ``people``. ``exhaustive``: the
    other rows are all permutations there are.
    """

    values: FloatArray
    people: int
    exhaustive: bool = False
    in_pairs: bool = False
    is_unequal: bool = False


@dataclass(frozen=True, eq=False)
class Renaming:
    """Whose name each person bears: ``rows`` of numbers, the first with everybody's own."""

    rows: IntArray
    exhaustive: bool

    @classmethod
    def in_pairs(cls, utterances: IntArray, seed: int, groups: IntArray | None = None) -> Renaming:
        """Exchange people in pairs, 200 times, the odd one of a group keeping the own name.

        They are sorted by log2 of their number of ``utterances`` plus a uniform number in [0, 1),
        and neighbours are exchanged (within ``groups`` where these are told). All pairings are
        tried of six people or fewer.
        """
        people = len(utterances)
        codes = np.zeros(people, dtype=np.int64) if groups is None else groups
        if people <= MOST_PAIRINGS_TRIED and len(np.unique(codes)) == 1:
            return cls(np.array([range(people), *_pairings(people)]), exhaustive=False)
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM, _PAIRED)))
        keys = np.log2(utterances) + rng.random((PERMUTATIONS, people))
        order = np.argsort(keys, axis=1)
        order = np.take_along_axis(order, codes[order].argsort(axis=1, kind="stable"), axis=1)
        # Groups stand one behind the other in every row: places of partners are the same in all.
        sizes = np.unique(codes, return_counts=True)[1]
        place = np.arange(people) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        partner = np.arange(people) + np.where(place % 2 == 0, 1, -1)
        alone = (place % 2 == 0) & (place == np.repeat(sizes, sizes) - 1)
        partner[alone] = np.flatnonzero(alone)
        rows = np.tile(np.arange(people), (1 + PERMUTATIONS, 1))
        np.put_along_axis(rows[1:], order, order[:, partner], axis=1)
        return cls(rows, exhaustive=False)

    @classmethod
    def of(cls, people: int, seed: int, groups: IntArray | None = None) -> Renaming:
        """200 permutations of so many people, or all of them where there are five or fewer; as
        many that stay within ``groups`` where these are told.
        """
        everyone, few = np.arange(people), people <= MOST_EXHAUSTIVE
        codes = np.zeros(people, dtype=np.int64) if groups is None else groups
        members = [np.flatnonzero(codes == code) for code in np.unique(codes)]
        if few and len(members) == 1:
            return cls(np.array([everyone, *permutations(range(people))]), exhaustive=True)
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM,)))
        rows = np.tile(everyone, (1 + (factorial(people) if few else PERMUTATIONS), 1))
        for row in rows[1:]:
            for some in members:
                row[some] = some[rng.permutation(len(some))]
        return cls(rows, exhaustive=False)

    def among(self, kept: IntArray) -> IntArray:
        """The same permutations of some of the people, numbered among them: who bears the name of
        somebody left out takes the name which that one bears, and so on.
        """
        place = np.full(self.rows.shape[1], -1)
        place[kept] = np.arange(len(kept))
        names = self.rows[:, kept]
        while (lost := place[names] < 0).any():
            row, _ = np.nonzero(lost)
            names[lost] = self.rows[row, names[lost]]
        return np.asarray(place[names])


def _pairings(people: int) -> Iterator[list[int]]:
    """Every way of exchanging people in pairs, one of an odd number keeping the own name."""
    for left_out in range(people) if people % 2 else [None]:
        rest = [person for person in range(people) if person != left_out]
        for pairs in _pairs(rest):
            row = list(range(people))
            for first, second in pairs:
                row[first], row[second] = second, first
            yield row


def _pairs(people: Sequence[int]) -> Iterator[list[tuple[int, int]]]:
    """Every way of taking an even number of people in pairs."""
    if not people:
        yield []
        return
    first, *others = people
    for partner in others:
        for rest in _pairs([person for person in others if person != partner]):
            yield [(first, partner), *rest]


def some_people(people: int, most: int, seed: int) -> IntArray:
    """The numbers of all people, or of as many as are drawn where there are more than ``most``."""
    if people <= most:
        return np.arange(people)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM, most)))
    return np.sort(rng.choice(people, most, replace=False))


def luck_of(points: Iterable[tuple[Permuted | None, int]]) -> Luck | None:
    """What luck reads of the largest of some attacks; None where names were not permuted alike."""
    asked = list(points)
    tried = [permuted for permuted, _ in asked if permuted is not None]
    if len(tried) < len(asked) or len({len(permuted.values) for permuted in tried}) != 1:
        return None
    columns = [permuted.values[:, i] for permuted, (_, i) in zip(tried, asked, strict=True)]
    return best_by_luck(np.max(columns, axis=0), tried)


def best_by_luck(
    best: FloatArray, attacks: Sequence[Permuted], *, least: bool = False
) -> Luck | None:
    """The best of ``attacks`` by the names as they are (first) and permuted: level and p-value."""
    found, others = best[0], best[1:]
    if not np.isfinite(best).all():
        return None
    reached = int((others <= found + _TIE if least else others >= found - _TIE).sum())
    all_tried = all(permuted.exhaustive for permuted in attacks)
    share = reached / len(others) if all_tried else (1 + reached) / (1 + len(others))
    people = min(permuted.people for permuted in attacks)
    in_pairs = any(permuted.in_pairs for permuted in attacks)
    is_unequal = any(permuted.is_unequal for permuted in attacks)
    level, permutations = float(others.mean()), len(others)
    return Luck(level, share, len(attacks), permutations, people, in_pairs, is_unequal)
