"""The strongest attack on halves of the people: how much fits and choice gain from few people.

An attack that is fitted on few people fits them too well, and the best of several is the luckiest
of them. No resample shows either, since both go about as one over the number of people. So the
strongest number is computed once more on random halves of the people, attacks fitted and chosen
anew: how much more risk the halves show is how much more risk the sample shows than the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from unmask.base import in_order
from unmask.errors import InputError
from unmask.estimate import Interval
from unmask.privacy.similarity.attackers import competing_attacks
from unmask.privacy.similarity.matrix import Comparisons
from unmask.run import progress

SPLITS = 4
LEAST_PEOPLE = 6
"""Of fewer there are no halves."""
FEW_PEOPLE = 15
"""With fewer the end of less risk moves twice as far, and may still be too near."""
STRONGEST = ("deid_strongest", "d_ece_strongest", "eer_strongest")
_MORE_RISK = {"deid_strongest": -1.0, "d_ece_strongest": 1.0, "eer_strongest": -1.0}
_LEAST_RISK = {"deid_strongest": 1.0, "d_ece_strongest": 0.0, "eer_strongest": 0.5}
_STREAM = 0x68616C66

Numbers = Mapping[str, float]


def halves_of(names: Sequence[str], seed: int) -> list[set[str]]:
    """Both halves of the people in each of some random splits, none of fewer than six people.

    Who is in which half depends on the seed and on the order of all names.
    """
    people = len(names)
    if people < LEAST_PEOPLE:
        return []
    number = in_order(names)
    random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM,)))
    chosen = []
    for _ in range(SPLITS):
        is_first = (random.permutation(people) < people // 2)[number]
        first = {name for name, is_inside in zip(names, is_first, strict=True) if is_inside}
        chosen += [first, set(names) - first]
    return chosen


def strongest_numbers(made: Comparisons) -> Numbers:
    """DeID, D_ECE and EER, each of its own strongest attack."""
    attacks = competing_attacks(made).values()
    whole = made.sets["oo"].d_diag
    return {
        "deid_strongest": min(1 - abs(attack.signed) / whole for attack in attacks),
        "d_ece_strongest": max(attack.d_ece for attack in attacks),
        "eer_strongest": min(attack.eer for attack in attacks),
    }


def comparisons_of_halves(
    names: Sequence[str], seed: int, compared: Callable[[set[str]], Comparisons]
) -> list[Comparisons]:
    """What ``compared`` makes of the people of each half.

    A half in which original voices cannot be told apart is left out.
    """
    found = []
    with progress(None):
        for half in halves_of(names, seed):
            try:
                made = compared(half)
                made.check_original("oo")
            except InputError:
                continue
            found.append(made)
    return found


def gain_of_few(metric: str, value: float, halves: Sequence[Numbers]) -> float:
    """How much more risk the mean of the halves shows than the ``value``, 0 if less."""
    mean = float(np.mean([numbers[metric] for numbers in halves]))
    return max(_MORE_RISK[metric] * (mean - value), 0.0)


def stretched(
    interval: Interval, metric: str, value: float, people: int, halves: Sequence[Numbers]
) -> Interval:
    """The interval of a strongest number with its end of less risk moved outwards.

    The end of more risk stays: shifting both lets the truth fall out there. The method says of how
    many halves, and where the end moved twice as far, as it does with fewer than fifteen people.
    """
    if not halves:
        return interval
    times = 2 if people < FEW_PEOPLE else 1
    reach = times * gain_of_few(metric, value, halves)
    method = f"{interval.method},{len(halves)} halves{' twice' if times > 1 else ''}"
    least = _LEAST_RISK[metric]
    if _MORE_RISK[metric] > 0:
        low = min(interval.low, max(interval.low - reach, least))
        return replace(interval, low=low, method=method)
    high = max(interval.high, min(interval.high + reach, least))
    return replace(interval, high=high, method=method)
