"""Curves of all attacks of an assessment, and the strongest of them at each point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from unmask.privacy.legal import (
    Curve,
    Inference,
    LegalSweep,
    Overlap,
    RiskCurve,
    Worst,
    extent,
    overlaps,
    strongest_of,
    sweep_notices,
)
from unmask.report.config import ORIGINAL, Config


class LegalResults:
    """Curves of every attack on every safeguard, and of the same attacks on unprotected speech.

    ``sweeps`` are by safeguard and attacker, ``probes`` by safeguard and attribute.
    """

    def __init__(
        self,
        config: Config,
        sweeps: Mapping[tuple[str, str], LegalSweep],
        probes: Mapping[tuple[str, str], Inference],
        consistency: Mapping[str, LegalSweep],
    ) -> None:
        self.sweeps, self.probes, self.consistency = sweeps, probes, consistency
        self.metrics: tuple[str, ...] = config.legal.metrics
        self.lengths, self.seed = config.legal.lengths, config.seed
        self.whole = {
            name: self._joined([s for (n, _), s in sweeps.items() if n == name])
            for name in dict.fromkeys(name for name, _ in sweeps)
        }
        self.safeguards = tuple(name for name in self.whole if name != ORIGINAL)
        self._found: dict[tuple[str, str, int, int, str | None], Worst] = {}

    def _joined(self, sweeps: Sequence[LegalSweep]) -> LegalSweep:
        """The curves of several attackers on one safeguard."""
        curves = {key: curve for one in sweeps for key, curve in one.curves.items()}
        ranks = {key: rank for one in sweeps for key, rank in one.ranks.items()}
        return LegalSweep(curves, ranks, {}, None, None, self.seed, ())

    def of(
        self, safeguard: str, metric: str, length: int, attacker: str | None = None
    ) -> dict[str, Curve]:
        """Curves of one metric and length by their attacker's name, of one attacker or of all."""
        sweep = self.whole[safeguard] if attacker is None else self.sweeps[safeguard, attacker]
        return sweep.competing(metric, length)

    def lengths_of(self, safeguard: str) -> list[int]:
        """Lengths of conversations that a safeguard was attacked with."""
        known = {length for _, _, length in self.whole[safeguard].curves}
        return [length for length in self.lengths if length in known]

    def counts(self, safeguard: str, metric: str, length: int) -> list[int]:
        """Numbers of speakers at which attacks were run."""
        curves = self.of(safeguard, metric, length).values()
        return sorted({int(n) for curve in curves for n in curve.counts})

    def strongest(
        self, safeguard: str, metric: str, length: int, count: int, attacker: str | None = None
    ) -> Worst:
        """The strongest attack at one point, of one attacker or of all."""
        key = (safeguard, metric, length, count, attacker)
        if key not in self._found:
            curves = self.of(safeguard, metric, length, attacker)
            best = strongest_of(curves, count, seed=self.seed)
            self._found[key] = Worst(length, count, best)
        return self._found[key]

    def worst(self, safeguard: str, metric: str) -> Worst:
        """The largest risk of all points, the surest of equal ones."""
        points = [
            self.strongest(safeguard, metric, length, count)
            for length in self.lengths
            for count in self.counts(safeguard, metric, length)
        ]
        return max(points, key=lambda risk: extent(risk.strongest.estimate))

    def crowd(self, safeguard: str, metric: str) -> Worst:
        """The fewest utterances and all candidates."""
        return self.most(safeguard, metric, min(self.lengths))

    def most(self, safeguard: str, metric: str, length: int, attacker: str | None = None) -> Worst:
        """The strongest attack with most speakers, of one attacker or of all."""
        count = self.counts(safeguard, metric, length)[-1]
        return self.strongest(safeguard, metric, length, count, attacker)

    def shown(self, safeguard: str) -> dict[tuple[str, str, int], Curve]:
        """For each attacker the curve of the variant that is strongest among most speakers."""
        shown = {}
        attackers = [who for name, who in self.sweeps if name == safeguard]
        for key in product(attackers, self.metrics, self.lengths_of(safeguard)):
            attacker, metric, length = key
            label = self.most(safeguard, metric, length, attacker).strongest.attacker
            shown[key] = self.sweeps[safeguard, attacker].curves[label, metric, length]
        return shown

    def sweep(self, safeguard: str) -> LegalSweep:
        """Unprotected speech and every attacker of a safeguard in one sweep."""
        own = self.lengths_of(safeguard)
        control = {key: curve for key, curve in self.shown(ORIGINAL).items() if key[2] in own}
        curves = {**control, **self.shown(safeguard)}
        probes = {(name, a): i for (name, a), i in self.probes.items() if name == safeguard}
        notices = tuple(dict.fromkeys(sweep_notices(curves, probes, {}, ORIGINAL)))
        return LegalSweep(curves, {}, probes, ORIGINAL, None, self.seed, notices)

    def overlaps(self) -> dict[str, tuple[Overlap, ...]]:
        """Whether the same people are linked by several attackers of a safeguard, under several
        safeguards, and with one utterance or more: by what the attacks differ in.
        """
        first = self.lengths[0]
        if "linkability" not in self.metrics:
            return {}
        compared = {}
        for name in self.safeguards:
            shown = self.shown(name)
            risks = {
                attacker: curve
                for (attacker, metric, length), curve in shown.items()
                if metric == "linkability" and length == first and isinstance(curve, RiskCurve)
            }
            compared[f"attackers on {name}"] = overlaps(risks)
            by_length = {n: self._strongest_curve(name, n) for n in self.lengths_of(name)}
            compared[f"lengths under {name}"] = overlaps(
                {f"{length} utterances": curve for length, curve in by_length.items()}
            )
        compared["safeguards"] = overlaps(
            {name: self._strongest_curve(name, first) for name in self.safeguards}
        )
        return {what: some for what, some in compared.items() if some}

    def _strongest_curve(self, safeguard: str, length: int) -> RiskCurve:
        label = self.most(safeguard, "linkability", length).strongest.attacker
        curve = self.of(safeguard, "linkability", length)[label]
        assert isinstance(curve, RiskCurve)
        return curve
