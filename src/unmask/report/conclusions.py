"""What to conclude: a line for each safeguard or score table, what limits it, what to do next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from unmask.estimate import Notice
from unmask.report.documents import Row
from unmask.report.headline import Card, find
from unmask.report.inputs import Inputs
from unmask.report.section import Section, percent

EXTRACTOR = (
    "No attacker trained a recogniser of its own on protected speech; one who does may succeed more"
    " often."
)
SESSIONS = (
    "Recordings do not say which session they are from: people are easier to recognise within one"
    " room and day than across them."
)
READABLE = 0.5
"""Share of what chance leaves open that a guessed attribute must reach to be called readable."""


@dataclass(frozen=True)
class Line:
    """The conclusion on one safeguard or score table, which has no colour, and what it is."""

    name: str
    description: str
    verdict: str
    sentences: tuple[str, ...]
    colour: str = ""


@dataclass(frozen=True)
class Conclusions:
    """The first screen: the worst line first, what limits them, what to do next."""

    lines: tuple[Line, ...]
    limits: tuple[str, ...]
    steps: tuple[str, ...]


def conclude(
    cards: Sequence[Card],
    sections: Sequence[Section],
    inputs: Inputs,
    missing: Mapping[tuple[str, str], str],
) -> Conclusions:
    """Conclusions from the cards and the tables of error rates.

    ``missing`` tells, by safeguard and attacker, why an attacker was not run.
    """
    lines = [
        Line(
            card.safeguard,
            card.description,
            card.verdict.text or f"{card.numbers[0].label}: {percent(card.numbers[0].shown)}",
            card.sentences,
            card.colour,
        )
        for card in cards
        if card.numbers
    ]
    verification = [row for s in sections if s.key == "verification" for row in s.rows]
    lines += _tables(verification)
    return Conclusions(
        tuple(lines),
        tuple(_limits(cards, inputs, missing)),
        tuple(_steps(cards, inputs, missing)),
    )


def _tables(rows: Sequence[Row]) -> list[Line]:
    """The system of fewest errors in each score table, beside the others."""
    tables: dict[str, dict[str, Row]] = {}
    for row in rows:
        if "table" in row.conditions and "group" not in row.conditions and find([row], "eer"):
            named = tables.setdefault(row.conditions["table"], {})
            named.setdefault(row.conditions["system"], row)
    lines = []
    for name, systems in tables.items():
        rates = {one: find([row], "eer")[0].estimate for one, row in systems.items()}
        best = min(rates, key=lambda one: float(rates[one].value))
        said = {one: percent(estimate) for one, estimate in rates.items()}
        others = ", ".join(f"{one} {rate}" for one, rate in said.items() if one != best)
        verdict = f"Equal error rate of {best}: {said[best]}"
        beside = (f"It errs least of {len(said)} systems; {others}.",) if others else ()
        lines.append(Line(name, "scores of verification", verdict, beside))
    return lines


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
            yield EXTRACTOR
        yield (
            f"{inputs.original.n_speakers:,} people were tested: nothing is known of larger crowds."
        )
    for code in ("weak-control", "few-speakers"):
        said = dict.fromkeys(notice.sentence for notice in _notices(cards, code))
        yield from (f"{sentence[:1].upper()}{sentence[1:]}." for sentence in said)
    sessions = None if inputs.original is None else inputs.original.sessions
    if inputs.original is not None and (sessions is None or sessions.n_unique < 2):
        yield SESSIONS


def _steps(
    cards: Sequence[Card], inputs: Inputs, missing: Mapping[tuple[str, str], str]
) -> Iterable[str]:
    """What would change the conclusion, or follows from it."""
    exposed = [card.safeguard for card in cards if card.verdict.extent == "most"]
    if exposed:
        yield f"Handle speech protected by {listed(exposed)} as you would unprotected speech."
    partly = [c.safeguard for c in cards if c.verdict.extent in ("some", "chance")]
    if partly:
        yield (
            f"{listed(partly)}: look at who is least protected before relying on an average, and"
            " decide which risk the purpose allows."
        )
    attributes: dict[str, list[str]] = {}
    for card in cards:
        for number in card.numbers:
            if number.subject and number.share(float(number.estimate.value)) >= READABLE:
                attributes.setdefault(number.subject, []).append(card.safeguard)
    for attribute, names in attributes.items():
        yield f"Count on {attribute} being readable from speech protected by {listed(names)}."
    lacking = dict.fromkeys(name for name, _ in missing)
    again = [n for n in lacking if n not in inputs.again and n not in inputs.keyless]
    if again:
        yield f"Run {listed(again)} a second time under other keys (again) and assess anew."
    related = [name for name in lacking if name not in inputs.related]
    if related:
        yield (
            f"Give speech of a related safeguard (related) for {listed(related)}, so that the"
            " semi-informed attacker can be tried."
        )
    if inputs.protected and not inputs.trained:
        yield "Let an attacker train a recogniser (train = true); it takes recordings."
    if _notices(cards, "few-speakers"):
        yield "Test more people: thirty at least."


def _notices(cards: Sequence[Card], code: str) -> list[Notice]:
    return [notice for card in cards for notice in card.notices if notice.code == code]


def listed(names: Sequence[str]) -> str:
    """``a, b and c``."""
    return " and ".join([*([", ".join(names[:-1])] if len(names) > 1 else []), *names[-1:]])
