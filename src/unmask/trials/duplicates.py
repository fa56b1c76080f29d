"""Trials that occur more than once: refused, or the first one kept and the rest counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeVar

import numpy as np

from unmask.errors import InputError
from unmask.trials.messages import repeated
from unmask.trials.trial_list import TrialList

OnProblem = Literal["error", "skip"]
L = TypeVar("L", bound=TrialList)


def check_choice(name: str, value: str) -> None:
    """Refuse anything but ``error`` and ``skip``."""
    if value not in ("error", "skip"):
        raise InputError(f"expected {name}='error' or 'skip', found {value!r}")


def without_duplicates(
    trials: L, duplicates: OnProblem, *, where: Callable[[int], str] | None = None
) -> L:
    """Return the trials with each one once; ``where`` names a row of the file in messages."""
    check_choice("duplicates", duplicates)
    first = trials.first_occurrence if trials.has_ids else None
    if first is None:
        return trials
    count = int((~first).sum())
    if duplicates == "error":
        again = int(np.flatnonzero(~first)[0])
        earlier = int(np.flatnonzero(trials.codes == trials.codes[again])[0])
        enrol, test, _ = trials.ids
        place = where or _row(trials)
        trial = f"{enrol.decode(again)} {test.decode(again)}"
        raise repeated(place(again), trial, place(earlier), count)
    return trials.select(first)._with_duplicates(count)


def _row(trials: TrialList) -> Callable[[int], str]:
    return lambda row: f"{trials.name}, row {row + 1}"
