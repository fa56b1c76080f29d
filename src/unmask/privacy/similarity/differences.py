"""How much more DeID and G_VD one safeguard has than another, on the same trials."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from unmask.base import FloatArray
from unmask.errors import InputError
from unmask.estimate import Estimate
from unmask.privacy.similarity.intervals import (
    NOT_ASKED,
    UNDEFINED,
    Setup,
    Statistic,
    gain,
    ratio,
)
from unmask.privacy.similarity.lists import sets_of_lists
from unmask.privacy.similarity.matrix import Comparisons
from unmask.privacy.similarity.result import SETS
from unmask.trials import Scores

_READ: dict[str, tuple[str, str, Callable[[FloatArray], FloatArray]]] = {
    "deid": ("op", "%", lambda left: 1 - np.abs(left)),
    "g_vd": ("pp", "dB", lambda left: gain(np.abs(left))),
}
"""Of each metric the set whose dominance over that of OO it is read off, its unit, and how."""


def safeguard_differences(*lists: Scores, **how: Any) -> tuple[Estimate, ...]:
    """``deid_difference`` and ``g_vd_difference``: what the second of two safeguards has more.

    ``lists`` are OO, OP, PP of the first and of the second, trials of the same speakers. Each
    replicate draws the same speakers for both and calibrates either anew, so that what they share
    cancels out. ``how`` are the options of :func:`pseudonymisation`.
    """
    setup = Setup(**how)
    both = [
        sets_of_lists(dict(zip(SETS, one, strict=True)), setup, system=None)[0]
        for one in (lists[:3], lists[3:])
    ]
    people = [one.sets["oo"].speakers for one in both]
    if set(people[0]) != set(people[1]):
        raise InputError("lists", "the same speakers of both safeguards", "others")
    made = []
    for metric, (name, unit, read) in _READ.items():
        one, two = (_over_oo(own, name) for own in both)
        with np.errstate(invalid="ignore"):
            value = float(read(np.array(two[0])) - read(np.array(one[0])))
            drawn = read(two[1]) - read(one[1])
        if people[0] != people[1]:  # speakers are left out in another order
            drawn = drawn[: setup.replicates]
        ends = setup.intervals({metric: Statistic(value, drawn, setup.replicates)}, len(people[0]))
        why = "" if ends else UNDEFINED if setup.replicates else NOT_ASKED
        n = {"speakers": len(people[0])}
        params = {"mean": setup.mean, "pairs": setup.pairs}
        difference = f"{metric}_difference"
        about = difference, value, unit, ends.get(metric), 0.0, n, params
        made.append(Estimate(*about, no_interval=why))
    return tuple(made)


def _over_oo(made: Comparisons, name: str) -> tuple[float, FloatArray]:
    """The signed dominance of a set over that of OO, and those of the replicates."""
    own, whole = (made.readings[one][0] for one in (name, "oo"))
    if not made.setup.replicates:
        return own.signed / whole.signed, np.empty(0)
    return ratio(own.signed, whole.signed, own.draws.signed, whole.draws.signed)
