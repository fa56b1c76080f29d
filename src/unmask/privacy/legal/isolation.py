"""The kernel of Singling Out: does a calibrated threshold isolate exactly one test entry?

For an enrolment speaker only the best scores matter: the threshold lies between the k-th and the
(k+1)-th best calibration score, k the number of calibration entries of that speaker, and every test
entry above it lies above the (k+1)-th as well. One list of best scores per enrolment speaker serves
all folds, draws and numbers of speakers; where it proves too short it is made longer. The same
lists tell what becomes of a success if one of the other test speakers had not been there, from
which the spread over test speakers is found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import BoolArray, FloatArray, IntArray

Row = npt.NDArray[np.float32]
Slots = npt.NDArray[np.int16]
Exact = Callable[[IntArray], FloatArray]
"""Gives double-precision scores of one enrolment speaker with some conversations."""
_SAMPLE = 16
_SPARE = 48
_DEEPER = 4
_BEYOND = 8
DRAWS_WITHOUT = 2
"""Draws in which success is tried again without each test speaker: two tell the spread."""
_AT_ONCE = 1 << 21


@dataclass(frozen=True, eq=False)
class Population:
    """Test conversations as the kernel sees them: sorted by speaker, numbered within each."""

    owner: IntArray
    slot: IntArray
    start: IntArray
    per_speaker: IntArray

    @classmethod
    def of(cls, owner: IntArray) -> Population:
        """From the speaker of each conversation, ascending."""
        per_speaker = np.bincount(owner)
        start = np.concatenate([[0], np.cumsum(per_speaker)[:-1]])
        return cls(owner, np.arange(len(owner)) - start[owner], start, per_speaker)

    def conversations(self, speakers: IntArray) -> IntArray:
        """All conversations of some speakers."""
        sizes = self.per_speaker[speakers]
        first = np.repeat(self.start[speakers] - (np.cumsum(sizes) - sizes), sizes)
        return np.asarray(first + np.arange(len(first)))


@dataclass(frozen=True, eq=False)
class Draw:
    """One draw of test speakers for one enrolment speaker: ``order`` begins with that speaker.

    The first N of it are the test speakers, for every N. ``place`` is its inverse.
    """

    order: IntArray
    place: IntArray
    slots: Slots

    @classmethod
    def of(cls, speaker: int, speakers: int, slots: Slots, rng: np.random.Generator) -> Draw:
        """Everyone in random order, the enrolment speaker moved to the front."""
        order = rng.permutation(speakers)
        at = int(np.flatnonzero(order == speaker)[0])
        order[1 : at + 1] = order[:at].copy()
        order[0] = speaker
        place = np.empty(speakers, dtype=np.int64)
        place[order] = np.arange(speakers)
        return cls(order, place, slots)


class Best:
    """Single-precision scores of one enrolment speaker, and lists of the best of them."""

    def __init__(self, scores: Row, population: Population) -> None:
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
        """The ``depth`` best conversations of the first ``count`` speakers of a draw.

        Also a bound that no other conversation of theirs exceeds.
        """
        everyone = len(self.population.per_speaker)
        share = count / everyone
        if count * len(self.scores) / everyone <= 4 * depth / share:
            chosen, bound = self.population.conversations(draw.order[:count]), -np.inf
        else:
            chosen, bound = self.best(int(2 * depth / share))
            if count < everyone:
                chosen = chosen[draw.place[self.population.owner[chosen]] < count]
        if len(chosen) > depth:
            scores = self.scores[chosen]
            kept = np.argpartition(-scores, depth)
            bound = float(scores[kept[depth]])
            chosen = chosen[kept[:depth]]
        return chosen, bound


@dataclass(frozen=True, eq=False)
class Isolation:
    """What one enrolment speaker's predicate does: ``success`` is draws × counts × folds.

    ``absent`` are keys count·S + j of other test speakers j, ascending, and ``change`` by how many
    folds, over the first draws, success rises without that speaker's entries.
    """

    success: BoolArray
    absent: IntArray
    change: IntArray


def isolated(
    scores: FloatArray, is_test: BoolArray, rank: int, bound: FloatArray
) -> tuple[BoolArray, BoolArray, IntArray]:
    """Success of every attack in every fold, whether its list of scores was deep enough, and where
    the (k+1)-th calibration score of any fold stands in it at most.

    An attack is a row of ``scores``, which descend, with its bound, which no score that is missing
    exceeds; ``is_test`` is attacks × folds × scores, ``rank`` is k.
    """
    passes, below, at = _passes(scores, is_test, ~is_test, rank)
    deep = (bound == -np.inf) | (below > bound[:, None]).all(axis=1)
    return passes == 1, deep, at.max(axis=1)


def _passes(
    scores: FloatArray, is_test: BoolArray, calibrates: BoolArray, rank: int
) -> tuple[IntArray, FloatArray, IntArray]:
    """How many test entries lie above the threshold of each attack and fold, the (k+1)-th best
    calibration score, −inf where there are fewer, and where it stands.
    """
    narrow = np.uint8 if scores.shape[1] < 256 else np.int32
    reached = np.cumsum(calibrates, axis=2, dtype=narrow)
    above, _ = _nth(scores, reached, rank)
    below, at = _nth(scores, reached, rank + 1)
    threshold = above / 2 + below / 2
    passes = (is_test & (scores[:, None, :] > threshold[:, :, None])).sum(axis=2)
    return passes, below, at


def _nth(scores: FloatArray, calibration: npt.NDArray[Any], n: int) -> tuple[FloatArray, IntArray]:
    """The n-th best calibration score of every attack and fold, −inf where there are fewer, and
    where it stands.
    """
    reached = calibration >= n
    at = reached.argmax(axis=2)
    return np.where(reached[:, :, -1], np.take_along_axis(scores, at, axis=1), -np.inf), at


def without_speakers(
    lists: tuple[FloatArray, IntArray, BoolArray],
    rank: int,
    success: BoolArray,
    deepest: IntArray,
    own: int,
) -> tuple[IntArray, IntArray, IntArray]:
    """In how many more folds an attack succeeds once all entries of another test speaker are gone.

    ``lists`` holds scores, which descend, their speakers, and which are test entries in each fold.
    Only speakers with an entry down to ``deepest``, that of the threshold, can matter; the
    enrolment speaker ``own`` stays. Gives the attack, the speaker, and the number of folds; none
    where the list holds too few others to set the threshold.
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
    passes, below, _ = _passes(scores[attack], tested & kept, ~tested & kept, rank)
    before = success[attack]
    after = np.where(below > -np.inf, passes == 1, before)
    return attack, gone, after.sum(axis=1) - before.sum(axis=1)


def single_out(
    row: Best, exact: Exact, margin: float, draws: Sequence[Draw], rank: int, counts: IntArray
) -> Isolation:
    """Success of one enrolment speaker's predicate, with threshold rank ``rank``.

    Single-precision scores of ``row`` err by ``margin``. All attacks go through the same few array
    operations; those whose lists prove too short go again.
    """
    folds, speakers = len(draws[0].slots), len(row.population.per_speaker)
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
            is_test = np.concatenate(
                [_is_test(row.population, draws[i], chosen[d == i]) for i in np.unique(d)]
            )
            won, deep, deepest = isolated(scores, is_test, rank, bound)
            success[some[deep]] = won[deep]
            short.append(some[~deep])
            deep &= d < DRAWS_WITHOUT
            if deep.any():
                parts = scores[deep], row.population.owner[chosen[deep]], is_test[deep]
                attack, gone, change = without_speakers(parts, rank, won[deep], deepest[deep], own)
                keys.append(c[deep][attack] * speakers + gone)
                changes.append(change)
        left = np.concatenate(short)
        depth *= _DEEPER
    absent, which = np.unique(np.concatenate(keys), return_inverse=True)
    total = np.zeros(absent.size, dtype=np.int64)
    np.add.at(total, which, np.concatenate(changes))
    return Isolation(success.reshape(len(draws), len(counts), folds), absent, total)


def _is_test(population: Population, draw: Draw, chosen: IntArray) -> BoolArray:
    """Which conversations are test entries in a draw: attacks × folds × conversations."""
    tested = draw.slots.take(population.owner[chosen], axis=1).swapaxes(0, 1)
    return np.asarray(tested == population.slot[chosen][:, None, :])


def _descending(lists: Sequence[IntArray], exact: Exact) -> tuple[IntArray, FloatArray]:
    """Conversations of each list and their exact scores, best first.

    Shorter lists are filled up with scores of −inf, which neither pass nor move a threshold.
    """
    sizes = np.array([len(some) for some in lists])
    filled = np.arange(sizes.max()) < sizes[:, None]
    chosen = np.zeros(filled.shape, dtype=np.int64)
    scores = np.full(filled.shape, -np.inf)
    chosen[filled] = np.concatenate(lists)
    different, which = np.unique(chosen[filled], return_inverse=True)
    scores[filled] = exact(different)[which]
    order = np.argsort(-scores, axis=1)
    return np.take_along_axis(chosen, order, axis=1), np.take_along_axis(scores, order, axis=1)
