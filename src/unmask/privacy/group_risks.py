"""Risks by group: each group under its own strongest attack, and the gap between the groups.

Attacks are fitted on everybody and run within each group, whose people are compared among
themselves alone. Whether equal groups would lie as far apart is told by permuting the labels of
people, sizes kept: in every labelling the people of a permuted group are ranked again among
themselves, and each permuted group takes its strongest attack.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from unmask.base import FloatArray, IntArray, joined_interval
from unmask.engine import GroupGaps
from unmask.estimate import Estimate, Interval, Luck, Notice

LABELLINGS, LABELLINGS_OF_DEID = 1000, 200
LEAST_PEOPLE = 4
"""In each group: of fewer there is no p."""
TOO_FEW = f"a group has fewer than {LEAST_PEOPLE} people"
_STREAM = 0x6C61626C
_TIE = 1e-9
_ROUNDED = 0.0005


@dataclass(frozen=True, eq=False, repr=False)
class RiskGaps(GroupGaps):
    """One ``risk`` of each group under its own strongest attack, and the gap between the groups.

    ``labelled`` has what the strongest attacks read of each group (columns) as people are labelled
    (first row) and under permuted labels; None where there is no p, and ``no_level`` says why.
    """

    risk: str = ""
    no_level: str = ""
    labelled: FloatArray | None = field(default=None, repr=False)

    @property
    def metrics(self) -> tuple[str, ...]:
        """What was measured of each group."""
        return (self.risk,)

    def of(self, metric: str) -> dict[str, Estimate]:
        """The risk of all and of each group, by name."""
        return {row.name: row.estimates[0] for row in self.groups if metric == self.risk}

    def level_of(self, metric: str) -> Luck | None:
        """What equal groups read of the gap, and how often as much; None where not known."""
        gap = f"{metric}_gap"
        return next((estimate.luck for estimate in self.gaps if estimate.metric == gap), None)

    def why_no_level(self, metric: str) -> str:
        """Why it is not known what equal groups read."""
        return self.no_level

    def sentence(self, metric: str) -> str:
        """The groups of the highest and the lowest risk, and what equal groups read."""
        found = self.of(metric)
        low, high = (f"{100 * float(found[n].value):.1f} % ({n})" for n in self.ends(metric))
        text = f"highest {high} and lowest {low}"
        if not self.gaps:
            return f"{text}; {self.no_level}."
        points = 100 * float(self.gaps[0].value)
        shown = [float(found[name].value) for name in self.ends(metric)]
        apart = f"{points:.1f} points apart"
        if abs(shown[1] - shown[0] - points / 100) > _ROUNDED:
            apart = f"{apart} under attacks fitted on everybody"
        luck = self.level_of(metric)
        if luck is None:
            return f"{text}, {apart}; no p, {self.no_level}."
        less = "" if luck.beyond else ", so no group stands out"
        equal = f"equal groups read {100 * luck.value:.1f} points (p = {luck.p:.3f})"
        return f"{text}, {apart}; {equal}{less}."


def permuted_labels(member: IntArray, number: int, seed: int) -> IntArray:
    """The group of each person as it is (first row) and with labels permuted among people."""
    random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(_STREAM,)))
    labels = np.tile(member, (1 + number, 1))
    for row in labels[1:]:
        random.shuffle(row)
    return labels


def level_of_gap(labelled: FloatArray, attacks: int, people: int) -> Luck | None:
    """What equal groups read of the gap in the mean, and the share of labellings that reach it."""
    gaps = np.ptp(labelled, axis=1)
    if not np.isfinite(gaps).all():
        return None
    found, permuted = gaps[0], gaps[1:]
    reached = int((permuted >= found - _TIE).sum())
    share = (1 + reached) / (1 + len(permuted))
    return Luck(float(permuted.mean()), share, attacks, len(permuted), people)


def level_of_pairs(level: float, groups: int) -> float:
    """The level of the groups' intervals from which that of the gap is made."""
    return 1 - (1 - level) / (groups * (groups - 1) / 2)


def gap_between(
    metric: str, risks: Mapping[str, Estimate], luck: Luck | None, by: str, level: float
) -> Estimate:
    """The largest of the groups' risks less the smallest, with its interval and level.

    The interval is made of the groups' own by square and add, and cut to [0, 100] points.
    """

    def rank(name: str) -> tuple[float, ...]:
        """By value, and where values are equal by their intervals: never by name."""
        within = risks[name].interval
        ends = () if within is None else (within.low, within.high)
        return float(risks[name].value), *ends

    order = sorted(risks, key=rank)
    smallest, largest = risks[order[0]], risks[order[-1]]
    value = float(largest.value) - float(smallest.value)
    people = sum(estimate.n.get("speakers", 0) for estimate in risks.values())
    one, other = largest.interval, smallest.interval
    interval = None
    if one is not None and other is not None:
        low, high = joined_interval(
            (float(smallest.value), (other.low, other.high)),
            (float(largest.value), (one.low, one.high)),
        )
        method = f"{one.method},square and add"
        ends = max(low, 0.0), min(high, 1.0)
        interval = Interval(*ends, level, method, one.replicates, one.seed)
    return Estimate(
        f"{metric}_gap",
        value,
        "%",
        interval,
        chance=None if luck is None else luck.value,
        n={"groups": len(risks), "speakers": people},
        params={"by": by, "N": largest.params.get("N")},
        no_interval="" if interval is not None else "a group has no interval",
        luck=luck,
    )


def notices_of(left_out: int, no_level: str, subject: str) -> tuple[Notice, ...]:
    """What is to be said of groups of one person, and where there is no p."""
    told = []
    if left_out:
        sentence = f"{left_out} groups of one person are left out"
        told.append(Notice("group-left-out", "", sentence, "note"))
    if no_level:
        told.append(Notice("no-level", subject, f"no p of the gap: {no_level}", "note"))
    return tuple(told)
