"""The first screen: a card for each safeguard, what to conclude, what limits it, what is next."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from unmask.estimate import Estimate, Notice
from unmask.privacy.legal import STRONG_ENOUGH, extent, spoken
from unmask.report.config import ORIGINAL
from unmask.report.documents import Row
from unmask.report.inputs import Inputs
from unmask.report.section import note, percent

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


def legal_number(rows: Sequence[Row], metric: str, safeguard: str) -> Headline | None:
    """Linkability or Singling Out of the strongest attack at the worst point of its curve."""
    worst = largest(find(rows, metric, safeguard=safeguard, point=WORST))
    if worst is None:
        return None
    where = {name: worst.conditions[name] for name in ("utterances", "speakers")}
    bare = largest(find(rows, metric, safeguard=ORIGINAL, **where))
    label, what = (
        ("Linkability", "linked to the right one of {} people")
        if metric == "linkability"
        else ("Singling Out", "one person isolated among {}")
    )
    what = f"{what.format(where['speakers'])}, {spoken(int(where['utterances']))}"
    return Headline(label, what, worst.estimate, bare.estimate if bare else None, worst.attacker)


def deid_number(rows: Sequence[Row], safeguard: str) -> Headline | None:
    """1 − DeID under the reading of the score that finds most resemblance to the original voice."""
    for match in find(rows, "deid_strongest", safeguard=safeguard):
        what = "1 − DeID: how far the protected voice still points to its owner"
        attacker = f"one recogniser, {match.estimate.params.get('attacker')} score"
        return Headline("Resemblance left", what, match.estimate, None, attacker, complement=True)
    return None


def evidence_number(rows: Sequence[Row], safeguard: str) -> Headline | None:
    """D_ECE of the strongest attack, with its tag."""
    most = largest(find(rows, "d_ece", safeguard=safeguard))
    if most is None:
        return None
    bare = largest(find(rows, "d_ece", safeguard=ORIGINAL))
    control = bare.estimate if bare else None
    tags = find(rows, "tag", safeguard=safeguard, attacker=most.attacker)
    tag = tags[0].estimate if tags else None
    what = "D_ECE: what a comparison tells of identity on average, of at most 0.721 bit"
    return Headline("Evidence", what, most.estimate, control, most.attacker, tag)


def inference_number(rows: Sequence[Row], safeguard: str) -> Headline | None:
    """The attribute that is read best above chance from protected speech."""
    probes = find(rows, "inference", safeguard=safeguard)
    if not probes:
        return None
    best = max(probes, key=lambda match: residual(match.estimate))
    attribute = best.conditions["attribute"]
    bare = find(rows, "inference_unprotected", safeguard=safeguard, attribute=attribute)
    control = bare[0].estimate if bare else None
    what, by = f"{attribute} guessed rightly from one utterance", "a simple probe"
    return Headline("Inference", what, best.estimate, control, by, subject=attribute)


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


def verdict(rows: Sequence[Row], name: str) -> tuple[Extent, str]:
    """The conclusion on a safeguard in a few words, as far as the interval goes."""
    worst = largest(find(rows, "linkability", safeguard=name, point=WORST))
    if worst is None:
        return "untried", ""
    if weak_control(rows):
        return "unknown", "Nothing can be concluded: attackers fail without protection too"
    low = residual(worst.estimate)
    made = worst.estimate.interval
    if made is not None and not math.isnan(made.low):
        low = residual(replace(worst.estimate, value=made.low))
    counted = people(worst.estimate)
    if low >= STRONG_ENOUGH:
        return "most", f"Most people are recognised: {counted}"
    if low > 0:
        return "some", f"Some people are recognised: {counted}"
    return "chance", f"Not clearly more people are recognised than by chance: {counted}"


def sentences(rows: Sequence[Row], name: str, known: Mapping[str, str]) -> list[str]:
    """What the strongest attack does, at the worst point of its curve and among all candidates.

    ``known`` tells what each attacker knows.
    """
    worst = largest(find(rows, "linkability", safeguard=name, point=WORST))
    every = largest(find(rows, "linkability", safeguard=name, point=ALL))
    if worst is None:
        return []
    who = f"An attacker {known.get(worst.attacker, '')}".rstrip()
    lines = [note("links", who=who, **_linked(worst))]
    if every is not None and every.estimate is not worst.estimate:
        lines.append(note("among_all", **_linked(every)))
    return lines


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


def cards(
    descriptions: Mapping[str, str],
    rows: Mapping[str, Sequence[Row]],
    *,
    colours: Mapping[str, str],
    known: Mapping[tuple[str, str], str],
    notices: Sequence[Notice],
) -> list[Card]:
    """A card for each safeguard from the rows of the sections, the worst first.

    ``descriptions`` say what each safeguard is, ``known`` what an attacker on it knows.
    """
    made = []
    legal = rows.get("legal", ())
    for name, description in descriptions.items():
        every = (
            legal_number(legal, "linkability", name),
            legal_number(legal, "singling_out", name),
            inference_number(legal, name),
            deid_number(rows.get("similarity", ()), name),
            evidence_number(rows.get("zebra", ()), name),
        )
        numbers = [number for number in every if number is not None]
        extent, words = verdict(legal, name)
        if numbers and not words:
            words = f"{numbers[0].label}: {percent(numbers[0].shown)}"
        of_attacker = {who: what for (of, who), what in known.items() if of == name}
        said = sentences(legal, name, of_attacker)
        beside = [notice for notice in notices if notice.subject == name]
        made.append(Card(name, description, words, said, extent, numbers, beside, colours[name]))
    return sorted(made, key=lambda card: card.risk, reverse=True)


@dataclass(frozen=True)
class Conclusions:
    """The first screen: the worst line first, what limits them, what to do next."""

    lines: Sequence[Card]
    limits: Sequence[str]
    steps: Sequence[str]


def conclude(
    cards: Sequence[Card],
    rows: Mapping[str, Sequence[Row]],
    inputs: Inputs,
    missing: Mapping[tuple[str, str], str],
) -> Conclusions:
    """Conclusions from the cards and the tables of error rates, among the rows of the sections.

    ``missing`` tells, by safeguard and attacker, why an attacker was not run.
    """
    return Conclusions(
        [*(card for card in cards if card.numbers), *_tables(rows.get("verification", ()))],
        list(_limits(cards, inputs, missing)),
        list(_steps(cards, inputs, missing)),
    )


def _tables(rows: Sequence[Row]) -> Iterable[Card]:
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


def _limits(
    cards: Sequence[Card], inputs: Inputs, missing: Mapping[tuple[str, str], str]
) -> Iterable[str]:
    """What was not tried, how few people there are, what the data cannot tell."""
    untried: dict[tuple[str, str], list[str]] = {}
    for (name, attacker), why in missing.items():
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


def _steps(
    cards: Sequence[Card], inputs: Inputs, missing: Mapping[tuple[str, str], str]
) -> Iterable[str]:
    """What to do next, each with the safeguards that it is about."""
    readable: dict[str, list[str]] = {}
    for card in cards:
        for number in card.numbers:
            if number.subject and number.share(float(number.estimate.value)) >= READABLE:
                readable.setdefault(number.subject, []).append(card.safeguard)
    lacking = {name: inputs.speech[name].known for name, _ in missing}
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
