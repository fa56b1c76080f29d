"""Do several attacks link the same people? Overlap of the easiest and of the hardest tenth."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from unmask.base import FloatArray
from unmask.errors import InputError
from unmask.estimate import Estimate
from unmask.privacy.legal.curve import RiskCurve

SHARE = 0.1
EASIEST, HARDEST = "easiest", "hardest"
_EXACT = "an exact chance level and probability stand beside it"


@dataclass(frozen=True)
class Overlap:
    """How many people are in the same tenth under two attacks; made by :func:`overlaps`.

    ``which`` tenth, of ``size`` people out of ``speakers``; ``shared`` of them are in both.
    ``drawn`` counts those of either tenth whose place was drawn by lot, since others were linked as
    often: they lower the overlap towards chance.
    """

    first: str
    second: str
    which: str
    shared: int
    size: int
    speakers: int
    drawn: int

    @property
    def chance(self) -> float:
        """Share of the tenth that two unrelated attacks have in common: size/speakers."""
        return self.size / self.speakers

    @property
    def probability(self) -> float:
        """P(as many or more in common by chance), exact: hypergeometric with ``size`` marked of
        ``speakers`` and ``size`` drawn.
        """
        from scipy.stats import hypergeom

        return float(hypergeom.sf(self.shared - 1, self.speakers, self.size, self.size))

    @property
    def estimate(self) -> Estimate:
        """The share of the tenth that both have."""
        return Estimate(
            "overlap",
            self.shared / self.size,
            "%",
            None,
            self.chance,
            {"speakers": self.speakers, "tenth": self.size, "drawn": self.drawn},
            {"by_chance": round(self.probability, 6)},
            no_interval=_EXACT,
        )


def overlaps(risks: Mapping[str, RiskCurve], *, share: float = SHARE) -> tuple[Overlap, ...]:
    """Overlap of the easiest and of the hardest ``share`` of people for each pair of attacks.

    ``risks`` are curves by the name of the attack, safeguard or length. People are ordered by their
    mean risk over the curve's numbers of candidates; those of equal risk by a lot that each attack
    draws anew, so that ties create no overlap. Only people attacked by both count.
    """
    if not 0 < share <= 0.5:
        raise InputError(f"share: expected more than 0 and at most 0.5, found {share:g}")
    found = []
    for (first, one), (second, other) in combinations(risks.items(), 2):
        values = [
            dict(zip(c.speakers, c.per_speaker.mean(axis=1), strict=True)) for c in (one, other)
        ]
        names = sorted(values[0].keys() & values[1].keys())
        size = max(1, round(share * len(names)))
        if len(names) < 2 * size:
            continue
        sides = [
            _ordered(names, np.array([table[name] for name in names]), label)
            for table, label in zip(values, (first, second), strict=True)
        ]
        for which in (EASIEST, HARDEST):
            tenths = [_tenth(order, risk, size, which) for order, risk in sides]
            shared = len(tenths[0][0] & tenths[1][0])
            drawn = tenths[0][1] + tenths[1][1]
            found.append(Overlap(first, second, which, shared, size, len(names), drawn))
    return tuple(found)


def _ordered(names: Sequence[str], risk: FloatArray, label: str) -> tuple[list[str], FloatArray]:
    """People from the most to the least linked, with their risks; ties by a lot of the label."""
    lot = [hashlib.sha256(f"{label}\0{name}".encode()).hexdigest() for name in names]
    order = sorted(range(len(names)), key=lambda i: (-risk[i], lot[i]))
    return [names[i] for i in order], risk[order]


def _tenth(order: list[str], risk: FloatArray, size: int, which: str) -> tuple[set[str], int]:
    """The people of a tenth, and how many of them were drawn from others of equal risk."""
    if which == HARDEST:
        order, risk = order[::-1], risk[::-1]
    edge = risk[size - 1]
    drawn = int((risk[:size] == edge).sum()) if risk[size] == edge else 0
    return set(order[:size]), drawn
