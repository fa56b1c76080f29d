"""The result of a sweep: every curve, who is strongest, and one table of estimates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from unmask.errors import InputError
from unmask.estimate import Estimate
from unmask.privacy.legal.attributes import Inference
from unmask.privacy.legal.curve import Curve
from unmask.privacy.legal.ranks import Ranks
from unmask.privacy.legal.strongest import Strongest, Worst, strongest_of
from unmask.privacy.legal.variants import CENTRED, base_name, variant_name
from unmask.trials import Source


@dataclass(frozen=True, eq=False)
class LegalSweep:
    """Curves by (attacker, metric, length); ranks by (attacker, length); inference by attribute.

    Among the curves are those of the variants of each attacker (negated, centred, centred
    negated), under its name with theirs. ``original`` is the attacker on unprotected speech,
    ``asked`` the one whose risk was asked for. ``consistency`` names what is no attack: enrolment
    from the attacked run itself, which shows whether pseudonyms are consistent.
    """

    curves: Mapping[tuple[str, str, int], Curve]
    ranks: Mapping[tuple[str, int], Ranks]
    inferences: Mapping[tuple[str, str], Inference]
    original: str | None
    asked: str | None
    seed: int
    warnings: tuple[str, ...]
    sources: tuple[Source, ...] = ()
    consistency: tuple[str, ...] = ()

    @property
    def attackers(self) -> tuple[str, ...]:
        """Names of the attackers, in order, without variants."""
        return tuple(dict.fromkeys(base_name(key[0], c) for key, c in self.curves.items()))

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
        """Attackers on protected speech; all there are where no other was given."""
        return attacks_among(self.attackers, self.original, self.consistency)

    def counts(self, length: int) -> tuple[int, ...]:
        """All counts at which some metric was computed for this length, ascending."""
        found = {int(n) for key, c in self.curves.items() if key[2] == length for n in c.counts}
        return tuple(sorted(found))

    def estimate(self, attacker: str, metric: str, length: int, count: int) -> Estimate | None:
        """One point of the panel, or None where there were too few speakers for it."""
        place = self._place(attacker, metric, length, count)
        return None if place is None else self.curves[attacker, metric, length].estimate(place)

    def details(self, attacker: str, metric: str, length: int, count: int) -> tuple[Estimate, ...]:
        """Residual risk, worst decile and the other variants of the score at one point."""
        place = self._place(attacker, metric, length, count)
        if place is None:
            return ()
        found = list(self.curves[attacker, metric, length].details(place))
        name = variant_name(attacker, CENTRED)
        if (name, metric, length) in self.curves:
            centred = self.curves[name, metric, length]
            for curve in (centred, centred.negated):
                if curve is not None:
                    called = f"{metric}_{curve.variant.replace(' ', '_')}"
                    found.append(replace(curve.estimate(place), metric=called))
        return tuple(found)

    def _place(self, attacker: str, metric: str, length: int, count: int) -> int | None:
        return self.curves[attacker, metric, length].place(count)

    def competing(self, metric: str, length: int) -> dict[str, Curve]:
        """Curves of all attacks on protected speech, every variant by its name."""
        return {
            name: curve
            for (name, which, size), curve in self.curves.items()
            if (which, size) == (metric, length) and base_name(name, curve) in self.protected
        }

    def shown(self, attacker: str, metric: str, length: int) -> Curve:
        """The curve of an attacker to draw: its variant that is strongest with most speakers."""
        found = {
            name: curve
            for (name, which, size), curve in self.curves.items()
            if (which, size) == (metric, length) and base_name(name, curve) == attacker
        }
        if not found:
            raise InputError(f"{metric}: no curve of {attacker} for length {length}")
        count = max(int(curve.counts.max()) for curve in found.values())
        return found[strongest_of(found, count, seed=self.seed).attacker]

    def strongest(self, metric: str, length: int, count: int) -> Strongest:
        """The strongest attack on protected speech, all variants competing.

        Chosen on half of the speakers and judged by the others (see :func:`strongest_of`); 1 − EER
        has no outcomes of speakers, there it is the largest value.
        """
        found = self.competing(metric, length)
        if not any(curve.place(count) is not None for curve in found.values()):
            raise InputError(f"{metric}: no value for length {length} and {count} speakers")
        return strongest_of(found, count, seed=self.seed)

    def worst(self, metric: str) -> Worst:
        """The largest risk over all lengths and counts, and where it lies."""
        points = [
            Worst(length, count, self.strongest(metric, length, count))
            for length in self.lengths
            for count in sorted(
                {int(n) for c in self.competing(metric, length).values() for n in c.counts}
            )
        ]
        return max(points, key=lambda point: float(point.strongest.estimate.value))

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
        """For each metric the largest risk over lengths and counts, then for each length that with
        everyone, with the attacker asked for beside the strongest.
        """
        lines = []
        for metric in self.metrics:
            worst = self.worst(metric)
            lines.append(self._sentence(metric, worst.length, worst.count, "largest risk, "))
            for length in self.lengths:
                curves = self.competing(metric, length).values()
                count = max(int(curve.counts.max()) for curve in curves)
                if (length, count) != (worst.length, worst.count):
                    lines.append(self._sentence(metric, length, count))
        return tuple(lines)

    def _sentence(self, metric: str, length: int, count: int, what: str = "") -> str:
        best = self.strongest(metric, length, count)
        text = (
            f"{TITLES[metric]}, {what}{length} utterance{'s' if length > 1 else ''},"
            f" {count:,} speakers: strongest attacker {best.attacker}, {_shown(best.estimate)}"
        )
        if self.asked is not None and self.asked != best.attacker:
            asked = self.estimate(self.asked, metric, length, count)
            if asked is not None:
                text += f"; asked for: {self.asked}, {_shown(asked)}"
        return f"{text}; chance {100 * float(best.estimate.chance or 0):.2f} %."


def attacks_among(
    names: Sequence[str], original: str | None, consistency: Sequence[str]
) -> tuple[str, ...]:
    """Attackers on protected speech: neither the control nor what is no attack, if others exist."""
    others = tuple(name for name in names if name != original)
    attacks = tuple(name for name in others if name not in consistency)
    return attacks or others or tuple(names)


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
