"""The result of a sweep: every curve, who is strongest, and one table of estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unmask.errors import InputError
from unmask.estimate import Estimate
from unmask.privacy.inference import Inference
from unmask.privacy.legal_curve import Curve
from unmask.privacy.ranks import Ranks
from unmask.trials import Source


@dataclass(frozen=True)
class Strongest:
    """The protected attacker with the largest value at one point."""

    attacker: str
    estimate: Estimate


@dataclass(frozen=True, eq=False)
class LegalSweep:
    """Curves by (attacker, metric, length); ranks by (attacker, length); inference by attribute.

    ``original`` is the attacker on unprotected speech, ``asked`` the one whose risk was asked for.
    """

    curves: Mapping[tuple[str, str, int], Curve]
    ranks: Mapping[tuple[str, int], Ranks]
    inferences: Mapping[tuple[str, str], Inference]
    original: str | None
    asked: str | None
    seed: int
    warnings: tuple[str, ...]
    sources: tuple[Source, ...] = ()

    @property
    def attackers(self) -> tuple[str, ...]:
        """Names of the attackers, in order."""
        return tuple(dict.fromkeys(name for name, _, _ in self.curves))

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the metrics, in order."""
        return tuple(dict.fromkeys(metric for _, metric, _ in self.curves))

    @property
    def lengths(self) -> tuple[int, ...]:
        """Conversation lengths, in order."""
        return tuple(dict.fromkeys(length for _, _, length in self.curves))

    @property
    def protected(self) -> tuple[str, ...]:
        """Attackers on protected speech; all of them where only unprotected speech was given."""
        return tuple(n for n in self.attackers if n != self.original) or self.attackers

    def counts(self, length: int) -> tuple[int, ...]:
        """All counts at which some metric was computed for this length, ascending."""
        found = {int(n) for key, c in self.curves.items() if key[2] == length for n in c.counts}
        return tuple(sorted(found))

    def estimate(self, attacker: str, metric: str, length: int, count: int) -> Estimate | None:
        """One point of the panel, or None where there were too few speakers for it."""
        place = self._place(attacker, metric, length, count)
        return None if place is None else self.curves[attacker, metric, length].estimate(place)

    def details(self, attacker: str, metric: str, length: int, count: int) -> tuple[Estimate, ...]:
        """Residual risk, negated score and worst decile at one point."""
        place = self._place(attacker, metric, length, count)
        return () if place is None else self.curves[attacker, metric, length].details(place)

    def _place(self, attacker: str, metric: str, length: int, count: int) -> int | None:
        found = np.flatnonzero(self.curves[attacker, metric, length].counts == count)
        return int(found[0]) if found.size else None

    def strongest(self, metric: str, length: int, count: int) -> Strongest:
        """The protected attacker with the largest value; the first of equals."""
        best: Strongest | None = None
        for name in self.protected:
            found = self.estimate(name, metric, length, count)
            if found is not None and (best is None or _number(found) > _number(best.estimate)):
                best = Strongest(name, found)
        if best is None:
            raise InputError(f"{metric}: no value for length {length} and {count} speakers")
        return best

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """All estimates: the curves, their details, ranks and inference."""
        curves = [
            estimate
            for curve in self.curves.values()
            for i in range(len(curve.counts))
            for estimate in (curve.estimate(i), *curve.details(i))
        ]
        others = [e for result in self.ranks.values() for e in result.estimates]
        probes = [e for result in self.inferences.values() for e in result.estimates]
        return (*curves, *others, *probes)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The strongest attacker beside the one asked for, in words, for each metric and length."""
        lines = []
        for metric in self.metrics:
            for length in self.lengths:
                count = max(
                    int(self.curves[n, metric, length].counts.max()) for n in self.protected
                )
                lines.append(self._sentence(metric, length, count))
        return tuple(lines)

    def _sentence(self, metric: str, length: int, count: int) -> str:
        best = self.strongest(metric, length, count)
        text = (
            f"{TITLES[metric]}, {length} utterance{'s' if length > 1 else ''},"
            f" {count:,} speakers: strongest attacker {best.attacker}, {_shown(best.estimate)}"
        )
        if self.asked is not None and self.asked != best.attacker:
            asked = self.estimate(self.asked, metric, length, count)
            if asked is not None:
                text += f"; asked for: {self.asked}, {_shown(asked)}"
        return f"{text}; chance {100 * float(best.estimate.chance or 0):.2f} %."


TITLES = {
    "singling_out": "Singling Out",
    "linkability": "Linkability",
    "one_minus_eer": "1 − EER",
}


def _number(estimate: Estimate) -> float:
    return float(estimate.value)


def _shown(estimate: Estimate) -> str:
    text = f"{100 * _number(estimate):.1f}"
    if estimate.interval is not None:
        text += f" [{100 * estimate.interval.low:.1f}, {100 * estimate.interval.high:.1f}]"
    return f"{text} %"
