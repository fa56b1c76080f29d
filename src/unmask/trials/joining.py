"""Lists of trials compared, in memory or on disk: repeated trials, two labels of one, partners."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from unmask.base import IntArray, Labels
from unmask.errors import InputError
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

    checks = [repeated(), trials.contradictions]
    for found in checks if duplicates == "error" else checks[::-1]:
        some = [(int(rows[0]), before, rows.size) for rows, before in found if rows.size]
        if not some or (found is checks[0] and duplicates == "skip"):
            continue
        row, before, _ = min(some)
        count, trial = sum(size for *_, size in some), trials.trial(row)
        earlier = where(before).rsplit(", ", 1)[-1]
        if found is checks[0]:
            raise InputError(
                f"{where(row)}: expected each trial once, found {trial} again, first in {earlier} "
                f"({count} duplicates in all); duplicates='skip' keeps the first"
            )
        expected = f"{trial}, in either order, labelled as in {earlier}"
        raise InputError(where(row), expected, f"another label ({count} such trials in all)")


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
        (scores, key), (lacking, surplus), (size, others) = self.lists, self.alone, self._sizes
        said = []
        if lacking and missing == "error":
            first = scores.trial(self._rows[0])
            said.append(f"{lacking} of its {size} trials are not in {key.name} (first: {first})")
        if surplus and missing == "error":
            text = f"{surplus} of the {others} trials of {key.name} have no score"
            said.append(f"{text} (first: {key.trial(self._rows[1])})")
        if said:
            raise InputError(
                f"{scores.name}: {'; '.join(said)}; missing='skip' goes on without them"
            )
        if lacking == size:
            raise InputError(f"{scores.name}: none of its {size} trials is in {key.name}")
        self._check_labels(scores.name, key.name)

    def check_same(self) -> None:
        """Refuse lists that are not of the same labelled trials."""
        names = [table.name for table in self.lists]
        sides = zip(self.alone, names, names[::-1], strict=True)
        said = [f"{n} trials of {own} are not in {other}" for n, own, other in sides if n]
        if said:
            raise InputError(f"expected the same trials, found that {' and '.join(said)}")
        self._check_labels(names[1], names[0])

    def _check_labels(self, name: str, reference: str) -> None:
        if self._conflicts:
            actual = f"{self._conflicts} trials labelled otherwise"
            raise InputError(name, f"the labels of {reference}", actual)
