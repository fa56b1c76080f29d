"""The first screen: a card for each safeguard, what to conclude, what limits it, what is next."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from unmask.assessment import COMPARED, ORIGINAL, Inputs
from unmask.base import few_speakers, grouped
from unmask.estimate import Estimate, Notice
from unmask.privacy.legal import RELEASE, STRONG_ENOUGH, extent, spoken
from unmask.report.documents import Row
from unmask.report.section import Section, colours_of
from unmask.report.words import labels, note, title, whole_percent, with_level
from unmask.trials import Embeddings

if TYPE_CHECKING:
    from unmask.assessment import Study

Rows = Mapping[str, Sequence[Row]]
"""Rows of all sections, by framework."""
LARGEST_D_ECE = 0.7213475204444817
WORST, ALL, CONTROL = "headline", "all candidates", "control"
SURE = "headline, for the verdict"
"""Points of a curve: the two that a card tells of, where unprotected speech is compared, and, with
an interval of the level of all verdicts, the first where another level is shown.
"""
BELIEVED = ("absent", "not-matched", "length-left-out", "people-drawn")
"""Notices on the inputs that a reader of the conclusion has to know."""
LOWER_BOUND = ("overfitted", "weak-own-run", "learning-rises")
"""Notices on trained attackers that make the risk a lower bound."""
_OPEN = 0.5  # an interval this wide leaves a risk open
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
        """How far a value goes from chance to the largest possible, 0 … 1."""
        return max(
            0.0, (self.place(value) - self.place(self.chance)) / (1 - self.place(self.chance))
        )

    def place(self, value: float) -> float:
        """Where a value stands between 0 and the largest possible, 0 … 1."""
        most = LARGEST_D_ECE if self.estimate.metric == "d_ece" else 1.0
        return min(1.0, max(0.0, value / most))


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
    def lines(self) -> list[str]:
        """The verdict and what follows, each after the name."""
        said = [f"{self.verdict}.", *self.sentences] if self.verdict else self.sentences
        return [f"{self.safeguard}: {sentence}" for sentence in said]

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
    and Singling Out among 20 people, the attribute read best above chance, 1 − DeID
    under the reading that finds most resemblance to the original voice, and D_ECE.
    """
    legal, zebra = rows.get("legal", ()), rows.get("zebra", ())
    for metric, label, what in (
        ("linkability", "Linkability", "linked to the right one of {} people"),
        ("singling_out", "Singling Out", "one person isolated among {}"),
    ):
        for point, how in ((WORST, ""), (RELEASE, f", {RELEASE}")):
            if worst := largest(find(legal, metric, safeguard=name, point=point)):
                where = {key: worst.conditions[key] for key in ("utterances", "speakers")}
                told = f"{what.format(where['speakers'])}, {spoken(int(where['utterances']))}"
                bare = largest(find(legal, metric, safeguard=ORIGINAL, **where))
                control = bare.estimate if bare else None
                yield Headline(f"{label}{how}", told, worst.estimate, control, worst.attacker)
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


def attempts(estimate: Estimate) -> str:
    """``65 % of attempts, 39 of 60 (95 % confidence interval 35 to 43)``: as if each
    person were tried once, nearly all never told as all; ends of intervals are rounded outwards.
    """
    total, value = int(estimate.n["speakers"]), float(estimate.value)
    count = f"{total * value:.0f}"
    if 0 < value < 1 and count in ("0", str(total)):
        count = f"{min(max(total * value, 0.1), total - 0.1):.1f}"
    text = f"{whole_percent(value)} of attempts, {count} of {total:,}"
    return f"{text} ({span})" if (span := _span(estimate)) else text


def _span(estimate: Estimate) -> str:
    made, total = estimate.interval, int(estimate.n["speakers"])
    if made is None or math.isnan(made.low):
        return ""
    low, high = math.floor(total * made.low + 1e-9), math.ceil(total * made.high - 1e-9)
    return f"{100 * made.level:.10g} % confidence interval {low:,} to {high:,}"


def verdict(
    rows: Sequence[Row], name: str, known: Mapping[str, str]
) -> tuple[Extent, str, list[str]]:
    """The conclusion on a safeguard in a few words, as far as the interval goes; then what the
    strongest attack does, among 20 candidates and among all.

    ``known`` tells what each attacker knows.
    """
    worst = largest(find(rows, "linkability", safeguard=name, point=WORST))
    every = largest(find(rows, "linkability", safeguard=name, point=ALL))
    if worst is None:
        return "untried", "", []
    who = f"an attacker {known.get(worst.attacker, '')}".rstrip()
    lines = [note("links", who=who, **_linked(worst))]
    if within := largest(find(rows, "linkability", safeguard=name, point=RELEASE)):
        lines.append(note("within", **_linked(within)))
    if every is not None and {**every.conditions, "point": WORST} != worst.conditions:
        lines.append(note("among_all", **_linked(every)))
    if more := largest(find(rows, "linkability_extrapolated", safeguard=name)):
        from_, ends = spoken(int(more.conditions["utterances"])), more.estimate.interval
        wide = ends is not None and ends.high - ends.low > _OPEN
        said, people = "beyond_open" if wide else "beyond", more.conditions["speakers"]
        lines.append(note(said, people=people, share=with_level(more.estimate), spoken=from_))
    if weak_control(rows):
        return "unknown", note("nothing").rstrip("."), lines
    sure = largest(find(rows, "linkability", safeguard=name, point=SURE)) or worst
    low, made = residual(sure.estimate), sure.estimate.interval
    if made is not None and not math.isnan(made.low):
        low = residual(replace(sure.estimate, value=made.low))
    counted = attempts(worst.estimate)
    luck = worst.estimate.luck
    if luck is not None and luck.decides(int(worst.estimate.n["speakers"])):
        low = max(low, np.nextafter(0, 1)) if luck.beyond else min(low, 0.0)
    if sure is not worst:
        counted += f"; this goes by the {_span(sure.estimate)}"
    if low >= STRONG_ENOUGH:
        return "most", f"Most attempts succeed: {counted}", lines
    if low > 0:
        return "some", f"At least some attempts succeed: {counted}", lines
    return "chance", f"Recognition beyond chance is not shown: {counted}", lines


def conclusion(cards: Sequence[Card]) -> str:
    """What the picture shows, as far as the intervals go: against how many safeguards attempts
    succeed.
    """
    counts = Counter(str(card.extent) for card in cards)
    if counts["unknown"]:
        return note("nothing")
    found = [(words, counts[one]) for one, words in labels("shares").items() if counts[one]]
    if not found:
        return note("untried")
    (words, number), *others = found
    whom = f"{number} of {len(cards)} safeguards" if others else f"all {number} safeguards"
    first = f"{words} {whom if len(cards) > 1 else cards[0].safeguard}"
    return "; ".join([first, *(f"{w[:1].lower()}{w[1:]} {n}" for w, n in others)]) + "."


def _linked(match: Match) -> dict[str, str]:
    """How many attempts succeed, among whom and from what, and how many would by chance."""
    where, estimate = match.conditions, match.estimate
    return {
        "attempts": attempts(estimate),
        "chance": whole_percent(float(estimate.chance or 0.0)),
        "luck": "" if estimate.luck is None else f"; {estimate.by_luck}",
        "candidates": where["speakers"],
        "spoken": spoken(int(where["utterances"])),
    }


def weak_control(rows: Sequence[Row]) -> list[str]:
    """An attack that fails on unprotected speech proves nothing when it fails on protected speech.

    It is believed if its residual risk in Linkability on unprotected speech reaches one half at the
    headline's number of candidates.
    """
    control = largest(find(rows, "linkability", safeguard=ORIGINAL, point=WORST))
    if control is None or residual(control.estimate) >= STRONG_ENOUGH:
        return []
    return [note("weak_attackers", **_linked(control))]


def cards(study: Study, rows: Rows) -> list[Card]:
    """A card for each safeguard from the rows of the sections, the worst first."""
    legal, inputs = rows.get("legal", ()), study.inputs
    described = {one.name: one.description for one in study.config.safeguards}
    made = []
    for name in inputs.protected:
        numbers = list(numbers_of(rows, name))
        attacks = study.attacks.get(name, ())
        known = {one.label(variant): one.description for one in attacks for variant in one.variants}
        extent, words, said = verdict(legal, name, known)
        if numbers and not words:
            words = f"{numbers[0].label}: {with_level(numbers[0].shown)}"
        if study.config.quick and extent == "chance":
            words = words.replace("not shown", "not shown by this quick look")
            if not any(one.enrols_own for one in attacks):
                words += "; attackers who run the safeguard were not tried"
        beside = list(_beside(study, name, weak_control(legal)))
        colour = colours_of(study)[name]
        made.append(Card(name, described[name], words, said, extent, numbers, beside, colour))
    return sorted(made, key=lambda card: card.risk, reverse=True)


def _beside(study: Study, name: str, weak: Iterable[str]) -> Iterable[Notice]:
    """What has to stand right beside the numbers of a safeguard."""
    for (of, attacker), why in study.missing.items():
        if of == name:
            yield Notice("attacker-not-run", name, f"the {attacker} attacker was {why}")
    yield from (Notice("weak-control", name, line) for line in weak)
    if few := few_speakers(study.inputs.protected[name].n_speakers):
        yield Notice("few-speakers", name, few)


def clear(margins: Iterable[Estimate]) -> bool:
    """Whether a system errs least: every other errs more by a paired difference above 0."""
    return all(one.interval is not None and one.interval.low > 0 for one in margins)


def of_tables(rows: Sequence[Row]) -> Iterable[Card]:
    """The system of fewest errors in each score table, where that is clear, beside the others."""
    tables: dict[str, dict[str, Estimate]] = {}
    for match in find(rows, "eer"):
        where = match.conditions
        if "table" in where and "group" not in where:
            tables.setdefault(where["table"], {}).setdefault(where["system"], match.estimate)
    for name, rates in tables.items():
        best = min(rates, key=lambda one: float(rates[one].value))
        said = {one: with_level(estimate) for one, estimate in rates.items()}
        others = ", ".join(f"{one} {rate}" for one, rate in said.items() if one != best)
        margins = [match.estimate for match in find(rows, "eer_difference", table=name)]
        verdict, beside = f"Equal error rate of {best}: {said[best]}", []
        if others and clear(margins):
            beside = [f"It errs least of {len(said)} systems; {others}."]
        elif others:
            verdict = f"No clear winner among {len(said)} systems"
            unclear = listed([str(one.params["of"]) for one in margins if not clear([one])])
            beside = [
                f"Equal error rate of {best} {said[best]}, {others}.",
                note("tie", of=unclear),
            ]
        yield Card(name, "scores of verification", verdict, beside)


def untried(study: Study) -> Iterable[str]:
    """Whom and what the data or the config leave out: known before anything is computed."""
    config, inputs = study.config, study.inputs
    for said in _alike_said(inputs.notices, BELIEVED):
        yield f"{said[:1].upper()}{said[1:]}"
    for what, some in () if config.quick else study.left_out.items():
        named = [title(one) if what == "frameworks" else one for one in some]
        yield note("left_out", what=what, named=", ".join(named))
    if changed := config.changed:
        yield note("changed", named=", ".join(changed))
    held = {run for one in config.safeguards for run in (one.again, one.related)}
    if hidden := [s.name for s in config.safeguards if s.hidden and s.given and s.name not in held]:
        yield note("hidden", names=listed(hidden))
    for (attackers, why), names in _alike(
        ((name, attacker), why) for (name, attacker), why in study.missing.items()
    ):
        several = "attackers were" if len(attackers) > 1 else "attacker was"
        yield f"The {listed(attackers)} {several} {why} ({listed(names)})."
    lacking = (
        ((name, backend), f"of the {who} attacker, which learn {why}")
        for (name, who), attack in study.every.items()
        for backend, why in attack.untried.items()
    )
    for (backends, why), names in _alike(lacking):
        yield f"Not tried: {listed(backends)} {why} ({listed(names)})."


def _alike(
    reasons: Iterable[tuple[tuple[str, str], str]],
) -> Iterable[tuple[tuple[tuple[str, ...], str], list[str]]]:
    """Things of safeguards that have one reason, and the safeguards of which the same is said."""
    things = grouped(((safeguard, why), thing) for (safeguard, thing), why in reasons)
    alike = grouped(((tuple(some), why), who) for (who, why), some in things.items())
    return alike.items()


def limits(cards: Sequence[Card], study: Study, sections: Sequence[Section] = ()) -> Iterable[str]:
    """What was not tried, how few people there are, what the data cannot tell."""
    inputs = study.inputs
    yield from _alike_said(inputs.notices, COMPARED)
    yield from untried(study)
    noticed = [notice for section in sections for notice in section.notices]
    unfitted = grouped((one.sentence, one.subject) for one in noticed if one.code == "not-fitted")
    for sentence, subjects in unfitted.items():
        yield f"{sentence} ({listed(list(dict.fromkeys(subjects)))})."
    for one in (one for one in noticed if one.code == "words" and one.subject in inputs.protected):
        yield f"{one.subject}: {one.sentence}."
    for code in LOWER_BOUND:
        weak = [one.subject for one in noticed if one.code == code]
        if names := [n for n in inputs.protected if any(w.startswith(f"{n}, ") for w in weak)]:
            yield note(f"bound-{code}", names=listed(names))
    if aligned := [
        c.safeguard for c in cards if any("(wasserstein" in n.attacker for n in c.numbers)
    ]:
        yield note("equal_shares", names=listed(aligned))
    if inputs.original is not None and inputs.protected:
        if not inputs.trained:
            yield note("no_extractor")
        yield note("crowd", people=study.people)
    for code in ("weak-control", "few-speakers"):
        said = dict.fromkeys(notice.sentence for notice in _notices(cards, code))
        yield from (f"{sentence[:1].upper()}{sentence[1:]}." for sentence in said)
    if inputs.original is not None and not _several_sessions(inputs.original):
        yield note("no_sessions")
    if not inputs.protected:
        turned = list(
            dict.fromkeys(one.line for one in noticed if one.code in ("negated", "inverted"))
        )
        more = f" ({len(turned) - 1} more like this)" if len(turned) > 1 else ""
        yield from (f"{line}{more}." for line in turned[:1])


def extractor_note(inputs: Inputs) -> str:
    """Which extractors were trained on protected speech, or why none was."""
    if not inputs.trained:
        why = dict.fromkeys(f"{who}, {why}" for (_, who), why in inputs.untrained.items())
        return f"No extractor was trained: {'; '.join(why)}." if why else note("backends_only")
    trained = (
        f"{who} on {name}, by {speech.people} people"
        for (name, who), speech in inputs.trained.items()
    )
    return note("extractors", trained="; ".join(trained))


def _several_sessions(speech: Embeddings) -> bool:
    """Whether some person was recorded in two sessions or more."""
    if speech.sessions is None:
        return False
    both = np.stack([speech.speakers.codes, speech.sessions.codes])
    return bool(np.unique(both, axis=1).shape[1] > speech.n_speakers)


def _alike_said(notices: Iterable[Notice], codes: Collection[str]) -> Iterable[str]:
    """What notices of these codes say, once for all of whom the same is said."""
    alike = grouped((one.sentence, one.subject) for one in notices if one.code in codes)
    for said, subjects in alike.items():
        names = listed(list(filter(None, subjects)))
        yield f"{names}: {said}." if names else f"{said[:1].upper()}{said[1:]}."


def next_steps(cards: Sequence[Card], study: Study) -> Iterable[str]:
    """What to do next, each with the safeguards that it is about."""
    inputs = study.inputs
    readable = grouped(
        (number.subject, card.safeguard)
        for card in cards
        for number in card.numbers
        if number.subject and number.share(float(number.estimate.value)) >= READABLE
    )
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
