"""The strongest attack on halves of the people: how much fits and choice gain from few people.

An attack that is fitted on few people fits them too well, and the best of several is the luckiest
of them. No resample shows either, since both go about as one over the number of people. So the
strongest number is computed once more on random halves of the people, attacks fitted and chosen
anew: how much more risk the halves show is how much more risk the sample shows than the truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from unmask.base import in_order
from unmask.estimate import Interval

SPLITS = 4
LEAST_PEOPLE = 6
"""Of fewer there are no halves."""
FEW_PEOPLE = 15
"""With fewer the end of less risk moves twice as far, and may still be too near."""
_STREAM = 0x68616C66


@dataclass(frozen=True)
class RiskScale:
    """How a metric tells risk.

    Attributes
    ----------
    sign
        1 where a larger number is more risk, −1 where it is less.
    least
        The number that leaves no risk.
    """

    sign: float
    least: float


DEID = RiskScale(-1.0, 1.0)
D_ECE = RiskScale(1.0, 0.0)
EER = RiskScale(-1.0, 0.5)


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


def gain_of_few(scale: RiskScale, value: float, halves: Sequence[float]) -> float:
    """How much more risk the mean of the ``halves`` shows than the ``value``, 0 if less."""
    return max(scale.sign * (float(np.mean(halves)) - value), 0.0)


def stretched(
    interval: Interval, scale: RiskScale, value: float, people: int, halves: Sequence[float]
) -> Interval:
    """The interval of a strongest number with its end of less risk moved outwards.

    ``halves`` are the strongest numbers of halves of the people. The end of more risk stays:
    shifting both lets the truth fall out there. The method says of how many halves, and where the
    end moved twice as far, as it does with fewer than fifteen people.
    """
    if len(halves) == 0:
        return interval
    times = 2 if people < FEW_PEOPLE else 1
    reach = times * gain_of_few(scale, value, halves)
    method = f"{interval.method},{len(halves)} halves{' twice' if times > 1 else ''}"
    if scale.sign > 0:
        low = min(interval.low, max(interval.low - reach, scale.least))
        return replace(interval, low=low, method=method)
    high = max(interval.high, min(interval.high + reach, scale.least))
    return replace(interval, high=high, method=method)
