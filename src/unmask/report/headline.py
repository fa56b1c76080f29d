"""The first screen: a card for each safeguard, what to conclude, what limits it, what is next."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from unmask.base import few_speakers
from unmask.engine import speaker_count
from unmask.estimate import Estimate, Notice
from unmask.privacy.legal import STRONG_ENOUGH, extent, spoken
from unmask.report.config import ORIGINAL
from unmask.report.documents import Row
from unmask.report.inputs import set_label
from unmask.report.section import note, percent

if TYPE_CHECKING:
    from unmask.report.frameworks.study import Study

Rows = Mapping[str, Sequence[Row]]
"""Rows of all sections, by framework."""
LARGEST_D_ECE = 0.7213475204444817
WORST, ALL, CONTROL = "worst of the curve", "all candidates", "control"
"""Points of a curve: the two that a card tells of, and where unprotected speech is compared."""
READABLE = 0.5
"""Share of what chance leaves open that a guessed attribute must reach to be called readable."""


@dataclass(frozen=True)
class Headline:
    """One number of a card; ``unprotected`` is where the mark of its bar stands.

    Longer bars are more risk: ``estimate`` is what ``results.json`` holds, ``shown`` the same as a
    risk where that is its ``complement``. ``subject`` is the attribute that is inferred.
    """

    label: str
    what: str
    estimate: Estimate
    unprotected: Estimate | None
    attacker: str
    tag: Estimate | None = None
    complement: bool = False
    subject: str = ""

    @property
    def shown(self) -> Estimate:
        """The estimate as a risk; what lies below 0 leaves no more than everything."""
        if not self.complement:
            return self.estimate
        made, value = self.estimate.interval, float(self.estimate.value)
        if made is not None:
            made = replace(made, low=min(1 - made.high, 1.0), high=min(1 - made.low, 1.0))
        return replace(self.estimate, value=min(1 - value, 1.0), interval=made)

    @property
    def chance(self) -> float:
        """Where the bar begins."""
        return 0.0 if self.complement else float(self.estimate.chance or 0.0)

    def share(self, value: float) -> float:
        """Place on the bar, 0 … 1."""
        most = LARGEST_D_ECE if self.estimate.metric == "d_ece" else 1.0
        return min(1.0, max(0.0, (value - self.chance) / (most - self.chance)))


Extent = Literal["most", "some", "chance", "unknown", "untried"]


@dataclass(frozen=True)
class Card:
    """What the first screen says of one safeguard or score table, which has no colour.

    ``description`` is what the safeguard is, ``extent`` tells programs how many people are
    recognised, ``verdict`` tells people.
    """

    safeguard: str
    description: str
    verdict: str
    sentences: Sequence[str]
    extent: Extent = "untried"
    numbers: Sequence[Headline] = ()
    notices: Sequence[Notice] = ()
    colour: str = ""

    @property
    def risk(self) -> list[float]:
        """How far the bars reach, by which cards are put in order."""
        return [number.share(float(number.shown.value)) for number in self.numbers]


@dataclass(frozen=True)
class Match:
    """An estimate with the conditions of its row."""

    conditions: Mapping[str, str]
    estimate: Estimate

    @property
    def attacker(self) -> str:
        return self.conditions.get("attacker", "")


def find(rows: Iterable[Row], metric: str, **conditions: str) -> list[Match]:
    """All estimates of a metric under these conditions."""
    return [
        Match(row.conditions, estimate)
        for row in rows
        if all(row.conditions.get(name) == value for name, value in conditions.items())
        for estimate in row.estimates
        if estimate.metric == metric
    ]


def largest(matches: Sequence[Match]) -> Match | None:
    """The largest value, of equal ones that of the higher low end; None where there is none."""
    defined = [match for match in matches if isinstance(match.estimate.value, float)]
    return max(defined, key=lambda match: extent(match.estimate), default=None)


def numbers_of(rows: Rows, name: str) -> Iterator[Headline]:
    """What the sections say of a safeguard, by the attack that is strongest in each: Linkability
    and Singling Out at the worst point of its curve, the attribute read best above chance, 1 − DeID
    under the reading that finds most resemblance to the original voice, and D_ECE.
    """
    legal, zebra = rows.get("legal", ()), rows.get("zebra", ())
    for metric, label, what in (
        ("linkability", "Linkability", "linked to the right one of {} people"),
        ("singling_out", "Singling Out", "one person isolated among {}"),
    ):
        if worst := largest(find(legal, metric, safeguard=name, point=WORST)):
            where = {key: worst.conditions[key] for key in ("utterances", "speakers")}
            what = f"{what.format(where['speakers'])}, {spoken(int(where['utterances']))}"
            bare = largest(find(legal, metric, safeguard=ORIGINAL, **where))
            control = bare.estimate if bare else None
            yield Headline(label, what, worst.estimate, control, worst.attacker)
    if probes := find(legal, "inference", safeguard=name):
        best = max(probes, key=lambda match: residual(match.estimate))
        attribute = best.conditions["attribute"]
        same = find(legal, "inference_unprotected", safeguard=name, attribute=attribute)
        control = same[0].estimate if same else None
        what, by = f"{attribute} guessed rightly from one utterance", "a simple probe"
        yield Headline("Inference", what, best.estimate, control, by, subject=attribute)
    for match in find(rows.get("similarity", ()), "deid_strongest", safeguard=name)[:1]:
        of = match.conditions["trials"]
        what = f"1 − DeID of {of}: how far the protected voice still points to its owner"
        by = f"the {match.attacker}"
        yield Headline("Resemblance left", what, match.estimate, None, by, complement=True)
    if most := largest(find(zebra, "d_ece", safeguard=name)):
        bare = largest(find(zebra, "d_ece", safeguard=ORIGINAL))
        control = bare.estimate if bare else None
        tags = find(zebra, "tag", safeguard=name, attacker=most.attacker)
        tag = tags[0].estimate if tags else None
        of = most.conditions["trials"]
        what = f"D_ECE of {of}: what a comparison tells of identity, of at most 0.721 bit"
        yield Headline("Evidence", what, most.estimate, control, most.attacker, tag)


def residual(estimate: Estimate) -> float:
    """How far a risk goes from chance to certainty."""
    chance = float(estimate.chance or 0.0)
    return (float(estimate.value) - chance) / (1 - chance) if chance < 1 else 0.0


def people(estimate: Estimate) -> str:
    """``58 to 60 of 60 people``: the interval as people, rounded outwards."""
    total = int(estimate.n["speakers"])
    ends = (float(estimate.value),) * 2
    if estimate.interval is not None and not math.isnan(estimate.interval.low):
        ends = (estimate.interval.low, estimate.interval.high)
    low, high = math.floor(total * ends[0] + 1e-9), math.ceil(total * ends[1] - 1e-9)
    return f"{low if low == high else f'{low} to {high}'} of {total:,} people"


def verdict(
    rows: Sequence[Row], name: str, known: Mapping[str, str]
) -> tuple[Extent, str, list[str]]:
    """The conclusion on a safeguard in a few words, as far as the interval goes; then what the
    strongest attack does, at the worst point of its curve and among all candidates.

    ``known`` tells what each attacker knows.
    """
    worst = largest(find(rows, "linkability", safeguard=name, point=WORST))
    every = largest(find(rows, "linkability", safeguard=name, point=ALL))
    if worst is None:
        return "untried", "", []
    who = f"An attacker {known.get(worst.attacker, '')}".rstrip()
    lines = [note("links", who=who, **_linked(worst))]
    if every is not None and every.estimate is not worst.estimate:
        lines.append(note("among_all", **_linked(every)))
    if weak_control(rows):
        words = "Nothing can be concluded: attackers fail without protection too"
        return "unknown", words, lines
    low, made, counted = residual(worst.estimate), worst.estimate.interval, people(worst.estimate)
    if made is not None and not math.isnan(made.low):
        low = residual(replace(worst.estimate, value=made.low))
    if low >= STRONG_ENOUGH:
        return "most", f"Most people are recognised: {counted}", lines
    if low > 0:
        return "some", f"Some people are recognised: {counted}", lines
    return "chance", f"Recognition beyond chance is not shown: {counted}", lines


def _linked(match: Match) -> dict[str, str]:
    """How many people an attack links, among whom and from what; of those whom chance would link,
    fractions only where a whole number would say none.
    """
    total, where = int(match.estimate.n["speakers"]), match.conditions
    count = total * float(match.estimate.chance or 0.0)
    return {
        "people": people(match.estimate),
        "candidates": where["speakers"],
        "spoken": spoken(int(where["utterances"])),
        "chance": f"{count:.0f}" if count >= 1 or count == 0 else f"{count:.2g}",
        "total": f"{total:,}",
    }


def weak_control(rows: Sequence[Row]) -> list[str]:
    """An attack that fails on unprotected speech proves nothing when it fails on protected speech.

    It is believed if its residual risk in Linkability on unprotected speech reaches one half at the
    worst point of the curve.
    """
    control = largest(find(rows, "linkability", safeguard=ORIGINAL, point=WORST))
    if control is None or residual(control.estimate) >= STRONG_ENOUGH:
        return []
    candidates = control.conditions["speakers"]
    return [note("weak_attackers", people=people(control.estimate), candidates=candidates)]


def cards(study: Study, rows: Rows) -> list[Card]:
    """A card for each safeguard from the rows of the sections, the worst first."""
    legal, inputs = rows.get("legal", ()), study.inputs
    described = {
        label: one.description
        for one in study.config.safeguards
        for label in (one.name, *(set_label(one.name, given.set) for given in one.scores))
    }
    made = []
    for name in inputs.safeguards:
        numbers = list(numbers_of(rows, name))
        attacks = study.attacks.get(name, ())
        known = {one.label(variant): one.description for one in attacks for variant in one.variants}
        extent, words, said = verdict(legal, name, known)
        if numbers and not words:
            words = f"{numbers[0].label}: {percent(numbers[0].shown)}"
        beside = list(_beside(study, name, weak_control(legal)))
        colour = study.colours[name]
        made.append(Card(name, described[name], words, said, extent, numbers, beside, colour))
    return sorted(made, key=lambda card: card.risk, reverse=True)


def _beside(study: Study, name: str, weak: Iterable[str]) -> Iterable[Notice]:
    """What has to stand right beside the numbers of a safeguard."""
    for (of, attacker), why in study.missing.items():
        if of == name:
            yield Notice("attacker-not-run", name, f"the {attacker} attacker was {why}")
    yield from (Notice("weak-control", name, line) for line in weak)
    speech = study.inputs.protected.get(name)
    lists = study.inputs.sets.get(name, {}).values()
    speakers = speech.n_speakers if speech else speaker_count(next(iter(lists)))
    few = None if speakers is None else few_speakers(speakers)
    if few:
        yield Notice("few-speakers", name, few)


def of_tables(rows: Sequence[Row]) -> Iterable[Card]:
    """The system of fewest errors in each score table, beside the others."""
    tables: dict[str, dict[str, Estimate]] = {}
    for match in find(rows, "eer"):
        where = match.conditions
        if "table" in where and "group" not in where:
            tables.setdefault(where["table"], {}).setdefault(where["system"], match.estimate)
    for name, rates in tables.items():
        best = min(rates, key=lambda one: float(rates[one].value))
        said = {one: percent(estimate) for one, estimate in rates.items()}
        others = ", ".join(f"{one} {rate}" for one, rate in said.items() if one != best)
        beside = [f"It errs least of {len(said)} systems; {others}."] if others else []
        verdict = f"Equal error rate of {best}: {said[best]}"
        yield Card(name, "scores of verification", verdict, beside)


def limits(cards: Sequence[Card], study: Study) -> Iterable[str]:
    """What was not tried, how few people there are, what the data cannot tell."""
    inputs = study.inputs
    untried: dict[tuple[str, str], list[str]] = {}
    for (name, attacker), why in study.missing.items():
        untried.setdefault((attacker, why), []).append(name)
    for (attacker, why), names in untried.items():
        yield f"The {attacker} attacker was {why} ({listed(names)})."
    if inputs.original is not None and inputs.protected:
        if not inputs.trained:
            yield note("no_extractor")
        yield note("crowd", people=f"{inputs.original.n_speakers:,}")
    for code in ("weak-control", "few-speakers"):
        said = dict.fromkeys(notice.sentence for notice in _notices(cards, code))
        yield from (f"{sentence[:1].upper()}{sentence[1:]}." for sentence in said)
    sessions = None if inputs.original is None else inputs.original.sessions
    if inputs.original is not None and (sessions is None or sessions.n_unique < 2):
        yield note("no_sessions")


def next_steps(cards: Sequence[Card], study: Study) -> Iterable[str]:
    """What to do next, each with the safeguards that it is about."""
    inputs = study.inputs
    readable: dict[str, list[str]] = {}
    for card in cards:
        for number in card.numbers:
            if number.subject and number.share(float(number.estimate.value)) >= READABLE:
                readable.setdefault(number.subject, []).append(card.safeguard)
    lacking = {name: inputs.speech[name].known for name, _ in study.missing}
    for said, names, attribute in (
        ("exposed", [card.safeguard for card in cards if card.extent == "most"], ""),
        ("partly", [c.safeguard for c in cards if c.extent in ("some", "chance")], ""),
        *(("readable", names, attribute) for attribute, names in readable.items()),
        ("again", [name for name, known in lacking.items() if "own" not in known], ""),
        ("related", [name for name, known in lacking.items() if "related" not in known], ""),
    ):
        if names:
            yield note(said, names=listed(names), attribute=attribute)
    if inputs.protected and not inputs.trained:
        yield note("train")
    if _notices(cards, "few-speakers"):
        yield note("more_people")


def _notices(cards: Sequence[Card], code: str) -> list[Notice]:
    return [notice for card in cards for notice in card.notices if notice.code == code]


def listed(names: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join([*([", ".join(names[:-1])] if len(names) > 1 else []), *names[-1:]])
