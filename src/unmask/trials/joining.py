"""Lists of trials compared, in memory or on disk: repeated trials, two labels of one, partners."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from unmask.base import IntArray, Labels
from unmask.trials import problems
from unmask.trials.formats import OnProblem

if TYPE_CHECKING:
    from unmask.trials.large import SpooledTrials
    from unmask.trials.trial_list import TrialList

Again = tuple[IntArray, int]
"""Rows of trials that came before, in order, and where the first of them came before."""


def check_repeats(
    trials: TrialList | SpooledTrials,
    duplicates: OnProblem,
    where: Callable[[int], str],
    drop: Callable[[IntArray], object],
) -> None:
    """Refuse trials that came before, or ``drop`` them; refuse two labels of one trial, either way
    round.
    """

    def repeated() -> Iterator[Again]:
        for again, earlier in trials.repeats:
            if duplicates == "skip":
                drop(again)
            yield again, earlier

    checks = [
        (repeated(), problems.repeated if duplicates == "error" else None),
        (trials.contradictions, problems.contradiction),
    ]
    for found, refused in checks if duplicates == "error" else checks[::-1]:
        some = [(int(rows[0]), earlier, rows.size) for rows, earlier in found if rows.size]
        if some and refused is not None:
            row, earlier, _ = min(some)
            count = sum(size for *_, size in some)
            raise refused(where(row), trials.trial(row), where(earlier), count)


def paired(partner: IntArray, size: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Which trials have a ``partner`` among ``size`` others, and which; and those that only one
    side has.
    """
    met, alone = np.flatnonzero(partner >= 0), np.flatnonzero(partner < 0)
    others = partner[met]
    left = np.ones(size, bool)
    left[others] = False
    return met, others, alone, np.flatnonzero(left)


class Meeting:
    """How two lists fit: how many trials either has ``alone``, and how many they label unlike."""

    def __init__(self, first: TrialList | SpooledTrials, second: TrialList | SpooledTrials) -> None:
        self.lists = first, second
        self._sizes = len(first), len(second)
        self.alone, self._rows, self._conflicts = [0, 0], [1 << 62, 1 << 62], 0

    def add(self, *alone: IntArray, labels: tuple[Labels | None, Labels | None]) -> None:
        """Rows that one list has alone, and labels of those that both have, in a part of them."""
        for side, rows in enumerate(alone):
            self._rows[side] = int(rows.min(initial=self._rows[side]))
            self.alone[side] += rows.size
        if labels[0] is not None and labels[1] is not None:
            self._conflicts += int((labels[0] != labels[1]).sum())

    def check_key(self, missing: OnProblem) -> None:
        """Refuse scores that do not fit their key."""
        scores, key = self.lists
        if missing == "error" and any(self.alone):
            zipped = zip(self.alone, self._sizes, self.lists, self._rows, strict=True)
            first, second = ((n, of, x.trial(row) if n else "") for n, of, x, row in zipped)
            raise problems.mismatch(scores.name, key.name, first, second)
        if self.alone[0] == self._sizes[0]:
            raise problems.nothing_in_common(scores.name, self._sizes[0], key.name)
        if self._conflicts:
            raise problems.other_labels(scores.name, key.name, self._conflicts)

    def check_same(self) -> None:
        """Refuse lists that are not of the same labelled trials."""
        first, other = self.lists
        if any(self.alone):
            raise problems.other_trials(first.name, other.name, *self.alone)
        if self._conflicts:
            raise problems.other_labels(other.name, first.name, self._conflicts)
