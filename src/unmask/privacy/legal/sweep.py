"""The legally validated metrics over counts × lengths × attackers (Vauquier 2025, Figure 1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from unmask.base import FEW_SPEAKERS, Tabular, estimate_row, few_speakers, lazy
from unmask.estimate import Estimate, Notice
from unmask.privacy.attack import CENTRED
from unmask.privacy.legal.curve import TITLES, Curve, base_name, no_better, residual, spoken
from unmask.privacy.legal.linking import Ranks
from unmask.privacy.legal.probe import Inference
from unmask.privacy.legal.strongest import STRONG_ENOUGH, Strongest, extent, strongest_of
from unmask.privacy.luck import luck_of
from unmask.trials import Source

if TYPE_CHECKING:
    from unmask.engine import GroupGaps
    from unmask.privacy.legal.crowd import ExtrapolatedLinkability

HEADLINE = 20
"""Candidates, or speakers among whom one is singled out, at which attacks are ranked."""
_CHECKED = ("linkability", "one_minus_eer")
_LARGER = "; risks in a larger crowd are unknown"
_NO_CONTROL = (
    "no attacker on unprotected speech was given: whether the attacks are strong enough to be"
    " believed is not known"
)
_RELEASE = (
    "enrolment comes from the release itself: whether two of its recordings are linked to each"
    " other, which takes no key, not whether a known person is found in it; the two are told apart"
)
_ISOLATED = (
    "people who cannot be linked are isolated all the same: protected voices that stay the same"
    " stand out whoever is enrolled"
)


@dataclass(frozen=True, eq=False, repr=False)
class LegalSweep(Tabular):
    """Curves by (attacker, metric, length); ranks by (attacker, length); inference by attribute.

    Made by :func:`assess_attackers`. Among the curves are those of the variants of each attacker
    (negated, centred, centred negated), under its name with theirs. ``original`` is the attacker on
    unprotected speech, ``asked`` the one whose risk was asked for. ``release`` names attacks within
    the release, which link its recordings to each other and not to a known person. ``skipped`` says
    what could not be tried, ``untried`` what was not asked for or lacked data. ``crowds`` continue
    Linkability of the strongest attack to more people, by length. ``words`` are attacks by words
    alone: they stand beside the others and do not compete. ``gaps`` are the largest risks by groups
    of people. ``channels`` are attackers who compare something else than the direction of vectors:
    they compete, and the control, which compares directions, tells nothing of their strength.
    """

    curves: Mapping[tuple[str, str, int], Curve]
    ranks: Mapping[tuple[str, int], Ranks]
    inferences: Mapping[tuple[str, str], Inference]
    original: str | None
    asked: str | None
    seed: int
    sources: tuple[Source, ...] = ()
    release: tuple[str, ...] = ()
    skipped: tuple[Notice, ...] = ()
    untried: tuple[Notice, ...] = ()
    crowds: Mapping[int, ExtrapolatedLinkability] = field(default_factory=dict)
    words: tuple[str, ...] = ()
    gaps: tuple[GroupGaps, ...] = ()
    channels: tuple[str, ...] = ()

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

    def lengths_of(self, metric: str) -> tuple[int, ...]:
        """Conversation lengths at which a metric was computed, in order."""
        return tuple(dict.fromkeys(size for _, which, size in self.curves if which == metric))

    @property
    def protected(self) -> tuple[str, ...]:
        """Attackers who link protected speech to known people: neither the control nor attacks
        within the release or by words alone, if others exist.
        """
        beside = (self.original, *self.words)
        others = tuple(name for name in self.attackers if name not in beside)
        attacks = tuple(name for name in others if name not in self.release)
        return attacks or others or self.attackers

    def counts(self, length: int) -> tuple[int, ...]:
        """All counts at which some metric was computed for this length, ascending."""
        curves = [curve for key, curve in self.curves.items() if key[2] == length]
        return tuple(sorted({int(n) for curve in curves for n in curve.counts}))

    def estimate(self, attacker: str, metric: str, length: int, count: int) -> Estimate | None:
        """One point of the panel, or None where there were too few speakers for it."""
        curve = self.curves.get((attacker, metric, length))
        if curve is None:
            return None
        return None if (i := curve.index(count)) is None else curve.estimate(i)

    def details(self, attacker: str, metric: str, length: int, count: int) -> tuple[Estimate, ...]:
        """Residual risk, worst decile and the other variants of the score at one point."""
        own = self.curves[attacker, metric, length]
        if (i := own.index(count)) is None:
            return ()
        details = list(own.details(i))
        centred = self.curves.get((CENTRED.of(attacker), metric, length))
        for curve in filter(None, (centred, centred and centred.negated)):
            name = f"{metric}_{curve.variant.replace(' ', '_')}"
            details.append(replace(curve.estimate(i), metric=name))
        return tuple(details)

    def competing(
        self, metric: str, length: int, attackers: Sequence[str] | None = None
    ) -> dict[str, Curve]:
        """Curves of some attackers, by default of those on protected speech, every variant by its
        name.
        """
        chosen = self.protected if attackers is None else attackers
        return {
            name: curve
            for (name, which, size), curve in self.curves.items()
            if (which, size) == (metric, length) and base_name(name, curve) in chosen
        }

    def shown(self, attacker: str, metric: str, length: int) -> Curve:
        """The curve of an attacker to draw: its variant that is strongest with most speakers."""
        curves = self.competing(metric, length, [attacker])
        return curves[strongest_of(curves, seed=self.seed).attacker]

    def strongest(
        self,
        metric: str,
        length: int,
        count: int | None = None,
        attackers: Sequence[str] | None = None,
    ) -> Strongest:
        """The strongest of the ``attackers``, by default of those on protected speech, among
        ``count`` speakers, by default the most there are, all variants competing.

        It has the largest risk; the low end of its interval allows for the choice where outcomes of
        speakers are known (see :func:`strongest_of`), which 1 − EER has none of.
        """
        return strongest_of(self.competing(metric, length, attackers), count, seed=self.seed)

    def worst(self, metric: str, attackers: Sequence[str] | None = None) -> Strongest:
        """The largest risk over all lengths, the surest of equal ones, at one number of speakers:
        20, or the nearest to it that all ``attackers`` have.
        """
        curves = {n: self.competing(metric, n, attackers).values() for n in self.lengths_of(metric)}
        first, *others = (set(curve.counts.tolist()) for curve in curves[min(curves)])
        every = first.intersection(*others) or first.union(*others)
        count = min(every, key=lambda n: (abs(n - HEADLINE), n))
        rivals = {
            length: [(curve.permuted, i) for curve in some if (i := curve.index(count)) is not None]
            for length, some in curves.items()
        }
        points = [self.strongest(metric, n, count, attackers) for n, some in rivals.items() if some]
        most = max(points, key=lambda point: extent(point.estimate))
        luck = luck_of(one for some in rivals.values() for one in some)
        return replace(most, estimate=replace(most.estimate, luck=luck))

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """All estimates: the curves, their details, ranks and inference."""
        curves = [
            estimate
            for curve in self.curves.values()
            for i in range(len(curve.counts))
            for estimate in (curve.estimate(i), *curve.details(i))
        ]
        others: list[Ranks | Inference | Curve] = [*self.ranks.values(), *self.inferences.values()]
        others += self.crowds.values()
        return (*curves, *(estimate for result in others for estimate in result.estimates))

    def rows(self) -> list[dict[str, Any]]:
        """The table: every attacker, metric and length over the numbers of speakers."""
        return [
            estimate_row(estimate, attacker=attacker, length=length)
            for (attacker, _, length), curve in self.curves.items()
            for estimate in curve.estimates
        ]

    def __getitem__(self, name: Any) -> Any:
        """The largest risk of a metric, under the strongest attacker; an attacker beside the
        control; or the curve of an (attacker, metric, length).
        """
        return self.worst(name).estimate if name in self.metrics else super().__getitem__(name)

    @property
    def parts(self) -> dict[Any, Any]:
        """A sweep for each attacker, with the control, and all curves."""
        return {name: self._alone(name) for name in self.attackers} | dict(self.curves)

    def _alone(self, attacker: str) -> LegalSweep:
        both = (attacker, self.original)
        return replace(
            self,
            curves={k: c for k, c in self.curves.items() if base_name(k[0], c) in both},
            ranks={key: ranks for key, ranks in self.ranks.items() if key[0] in both},
            inferences={key: one for key, one in self.inferences.items() if key[0] in both},
            release=tuple(name for name in self.release if name == attacker),
            words=tuple(name for name in self.words if name == attacker),
            crowds={n: one for n, one in self.crowds.items() if one.attacker.startswith(attacker)},
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """For each metric the largest risk over lengths, then for each length that with
        everyone, with the attacker asked for beside the strongest.
        """
        lines = []
        for metric in self.metrics:
            worst = self.worst(metric)
            lines.append(self._sentence(worst, "largest risk, "))
            among_most = [self.strongest(metric, length) for length in self.lengths_of(metric)]
            at = worst.length, worst.count
            lines += [self._sentence(o) for o in among_most if (o.length, o.count) != at]
            if self.release and not set(self.release) & set(self.protected):
                within = self.worst(metric, self.release)
                lines.append(self._sentence(within, "within the release, "))
            alone = [self.worst(metric, [name]) for name in self.words]
            lines += [self._sentence(strongest, "by words alone, ") for strongest in alone]
        return (*lines, *(crowd.sentence for crowd in self.crowds.values()))

    def _sentence(self, best: Strongest, what: str = "") -> str:
        metric, length, count = best.estimate.metric, best.length, best.count
        text = (
            f"{TITLES[metric]}, {what}{spoken(length)}, {count:,}"
            f" speakers: strongest attacker {best.attacker}, {_shown(best.estimate)}"
        )
        if self.asked is not None and self.asked != best.attacker:
            asked = self.estimate(self.asked, metric, length, count)
            if asked is not None:
                text += f"; asked for: {self.asked}, {_shown(asked)}"
        text += f"; chance {100 * float(best.estimate.chance or 0):.2f} %."
        return text if best.luck is None else f"{text[:-1]}; {best.estimate.by_luck}."

    @lazy
    def notices(self) -> tuple[Notice, ...]:
        """What was skipped, whether the attackers are strong enough to be believed, what all parts
        say, each once with its attackers and lengths, and what was not tried.
        """
        people = [len(curve.speakers) for curve in self.curves.values()]
        few = few_speakers(min(people, default=FEW_SPEAKERS))
        notices = [
            *self.skipped,
            *(
                []
                if few is None
                else [Notice("few-speakers", "", f"{few}{'' if self.crowds else _LARGER}")]
            ),
            *self._on_control(),
            *(Notice("release", name, _RELEASE) for name in self.release),
            *(Notice("words", name, self._kept(name), "note") for name in self.words),
            *self._at_chance(),
            *self._isolated(),
            *self._of_parts(),
            *(notice for crowd in self.crowds.values() for notice in crowd.notices),
            *self.untried,
        ]
        return tuple(dict.fromkeys(notices))

    def _kept(self, name: str) -> str:
        """What is left to an attack by words alone, whatever becomes of the voice."""
        metric = "linkability" if "linkability" in self.metrics else self.metrics[0]
        alone = self.worst(metric, [name])
        share, chance = _shown(alone.estimate), 100 * float(alone.estimate.chance or 0)
        most = f"{TITLES[metric]} {share}, chance {chance:.1f} %, {spoken(alone.length)}"
        return f"of the risk, words alone give {most}; a perfect voice anonymiser would keep that"

    def _of_parts(self) -> Iterator[Notice]:
        said: list[tuple[str, list[int], Sequence[Notice]]] = [
            *((name, [length], curve.remarks) for (name, _, length), curve in self._own().items()),
            *((name, [length], rank.notices) for (name, length), rank in self.ranks.items()),
            *((name, [], probe.notices) for (name, _), probe in self.inferences.items()),
        ]
        conditions: dict[Notice, dict[str, list[int]]] = {}
        for name, lengths, notices in said:
            for notice in notices:
                conditions.setdefault(notice, {}).setdefault(name, []).extend(lengths)
        for notice, names in conditions.items():
            alike: dict[str, list[str]] = {}
            for name, lengths in names.items():
                alike.setdefault(f", {spoken(*lengths)}" if lengths else "", []).append(name)
            subject = "; ".join(f"{', '.join(some)}{length}" for length, some in alike.items())
            yield notice.about(subject)

    def _own(self) -> dict[tuple[str, str, int], Curve]:
        """The curves under the names of their attackers."""
        return {key: one for key, one in self.curves.items() if base_name(key[0], one) == key[0]}

    def _on_control(self) -> Iterator[Notice]:
        """An attack is believed if, on unprotected speech and the smallest count, its residual risk
        in Linkability (or in 1 − EER) reaches one half.
        """
        if self.original is None:
            yield Notice("no-control", "", _NO_CONTROL)
        for (name, metric, length), curve in self.curves.items():
            least = int(curve.counts.argmin())
            strong = curve.residual[least] >= STRONG_ENOUGH
            if name == self.original and metric in _CHECKED and not strong:
                value, chance = 100 * curve.value[least], 100 * curve.chance[least]
                sentence = (
                    f"weak attacker: {TITLES[metric]} on unprotected speech reaches {value:.1f} %"
                    f" with {curve.counts[least]:,} speakers and {spoken(length)} (chance"
                    f" {chance:.1f} %); low risks with {spoken(length)} cannot be believed"
                )
                yield Notice("weak-control", "", sentence)

    def _at_chance(self) -> Iterator[Notice]:
        """Attacks at chance in every variant: evidence where the same succeed unprotected."""
        variants: dict[tuple[str, str, int], list[Curve]] = {}
        for (name, metric, length), curve in self.curves.items():
            variants.setdefault((base_name(name, curve), metric, length), []).append(curve)
        for (name, metric, length), readings in variants.items():
            if name in self.words:
                continue
            at_chance = no_better(readings, np.all([one.at_chance for one in readings], axis=0))
            control = variants.get((str(self.original), metric, length), [])
            if name in self.channels:
                control = []
            verdicts: dict[str, list[str]] = {}
            what = "the voice alone" if "+ words" in name else "the same attack"
            for count in readings[0].counts[at_chance] if name != self.original else ():
                verdicts.setdefault(_by_control(control, int(count), what), []).append(f"{count:,}")
            for verdict, some in verdicts.items():
                sentence = (
                    f"{TITLES[metric]} is not clearly better than chance with {', '.join(some)}"
                    f" speakers; {verdict}"
                )
                yield Notice("chance", f"{name}, {spoken(length)}", sentence)

    def _isolated(self) -> Iterator[Notice]:
        """Where voices are isolated although nobody is linked: they keep a voice that is not
        theirs, and entries that resemble each other stand out under any predicate.
        """
        for (name, metric, length), curve in self._own().items():
            linked = self.curves.get((name, "linkability", length))
            if metric != "singling_out" or linked is None or name in (self.original, *self.words):
                continue
            if linked.at_chance.all() and not curve.at_chance.all():
                yield Notice("isolated", f"{name}, {spoken(length)}", _ISOLATED)


def _by_control(control: Sequence[Curve], count: int, what: str) -> str:
    """What to say of an attack at chance, by the residual risk of the control."""
    strength = [
        (float(residual(curve.value[i], curve.chance[i])), float(curve.value[i]))
        for curve in control
        if (i := curve.index(count)) is not None
    ]
    if not strength:
        return f"without {what} on unprotected speech this tells nothing"
    above, value = max(strength)
    reached = f"on unprotected speech {what} reaches {100 * value:.0f} %"
    return reached if above >= STRONG_ENOUGH else f"{reached}: too weak, this tells nothing"


def _shown(estimate: Estimate) -> str:
    text = f"{100 * float(estimate.value):.1f}"
    if estimate.interval is not None:
        text += f" [{100 * estimate.interval.low:.1f}, {100 * estimate.interval.high:.1f}]"
    return f"{text} %"
