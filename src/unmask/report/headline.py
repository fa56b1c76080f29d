"""The first screen: a card for each safeguard, what to conclude, what limits it, what is next."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from unmask.assessment import COMPARED, ORIGINAL, Inputs
from unmask.base import VERDICT, few_speakers, grouped
from unmask.engine import LARGEST_D_ECE
from unmask.estimate import Estimate, Notice
from unmask.privacy.legal import RELEASE, STRONG_ENOUGH, extent, lengths_vary, spoken
from unmask.report.documents import Row
from unmask.report.section import Section, colours_of
from unmask.report.words import (
    in_words,
    labels,
    note,
    one_decimal,
    shown,
    title,
    whole_percent,
    with_level,
)
from unmask.trials import Embeddings

if TYPE_CHECKING:
    from unmask.assessment import Study

Rows = Mapping[str, Sequence[Row]]
"""Rows of all sections, by framework."""
WORST, ALL, CONTROL = "headline", "all candidates", "control"
SURE = "headline, for the verdict"
"""Points of a curve: the two that a card tells of, where unprotected speech is compared, and, with
an interval of the level of all verdicts, the first where another level is shown.
"""
BELIEVED = ("absent", "not-matched", "people-drawn", "length-left-out")
"""Notices on the inputs that a reader of the conclusion has to know, the last told last."""
LOWER_BOUND = ("overfitted", "weak-own-run", "learning-rises")
"""Notices on trained attackers that make the risk a lower bound."""
_NAMED = 3
"""Most safeguards that the title names."""
_NEARLY_ALL = 0.95
"""A risk that may be as large is told without what makes it a lower bound."""
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
    recognised, ``verdict`` tells people, ``doubts`` what stands against it. ``worst`` is the attack
    that it tells of.
    """

    safeguard: str
    description: str
    verdict: str
    sentences: Sequence[str]
    extent: Extent = "untried"
    numbers: Sequence[Headline] = ()
    notices: Sequence[Notice] = ()
    colour: str = ""
    doubts: Sequence[str] = ()
    worst: Match | None = None

    @property
    def lines(self) -> list[str]:
        """The verdict and what follows, each after the name."""
        verdict = [f"{self.verdict}."] if self.verdict else []
        said = [*verdict, *self.doubts, *self.sentences]
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
        what = f"1 − DeID of {of}: how strongly the protected voice still resembles its owner"
        by = f"the {match.attacker}"
        yield Headline("Resemblance left", what, match.estimate, None, by, complement=True)
    if most := largest(find(zebra, "d_ece", safeguard=name)):
        bare = largest(find(zebra, "d_ece", safeguard=ORIGINAL))
        control = bare.estimate if bare else None
        tags = find(zebra, "tag", safeguard=name, attacker=most.attacker)
        tag = tags[0].estimate if tags else None
        of = most.conditions["trials"]
        what = f"D_ECE of {of}: average evidence of identity per comparison, of at most 0.721 bit"
        yield Headline("Evidence", what, most.estimate, control, most.attacker, tag)


def residual(estimate: Estimate) -> float:
    """How far a risk goes from chance to certainty."""
    chance = float(estimate.chance or 0.0)
    return (float(estimate.value) - chance) / (1 - chance) if chance < 1 else 0.0


def attempts(estimate: Estimate, more: str = "") -> str:
    """``60 of 60 attempts (99.7 %) succeed (58 to 60)``: as if each person were tried once. In
    percent too where nearly all or hardly any are told as all or none; ends of intervals are
    rounded outwards. ``more`` stands beside the interval.
    """
    total, value = int(estimate.n["speakers"]), float(estimate.value)
    count = round(total * value)
    exactly = f" ({one_decimal(value)})" if 0 < value < 1 and count in (0, total) else ""
    text = f"{count:,} of {total:,} attempts{exactly} succeed"
    return f"{text} ({span}{more})" if (span := _span(estimate)) else text


def _span(estimate: Estimate) -> str:
    """``58 to 60``, with the level where it is not that of verdicts."""
    made, total = estimate.interval, int(estimate.n["speakers"])
    if made is None or math.isnan(made.low):
        return ""
    low, high = math.floor(total * made.low + 1e-9), math.ceil(total * made.high - 1e-9)
    level = "" if made.level == VERDICT else f"{100 * made.level:.10g} % confidence interval "
    return f"{level}{low:,} to {high:,}"


def verdict(
    rows: Sequence[Row], name: str, known: Mapping[str, str]
) -> tuple[Extent, str, list[str]]:
    """The conclusion on a safeguard: what the strongest attack does, and how sure that is; then by
    chance and by luck, within the release, among all candidates and beyond.

    ``known`` tells what each attacker knows.
    """
    worst = largest(find(rows, "linkability", safeguard=name, point=WORST))
    every = largest(find(rows, "linkability", safeguard=name, point=ALL))
    if worst is None:
        return "untried", "", []
    lines = [note("chance", **_linked(worst))]
    if within := largest(find(rows, "linkability", safeguard=name, point=RELEASE)):
        lines.append(note("within", **_linked(within)))
    if every is not None and every.conditions["speakers"] != worst.conditions["speakers"]:
        lines.append(note("among_all", **_linked(every)))
    if more := largest(find(rows, "linkability_extrapolated", safeguard=name)):
        from_, ends = spoken(int(more.conditions["utterances"])), more.estimate.interval
        tested, of = (more.estimate.params.get(name) for name in ("tested", "people"))
        if tested is not None:
            from_ += f" (measured on {tested} of {of} people)"
        wide = ends is not None and ends.high - ends.low > _OPEN
        said, people = "beyond_open" if wide else "beyond", more.conditions["speakers"]
        lines.append(note(said, people=people, share=with_level(more.estimate), spoken=from_))
    sure = largest(find(rows, "linkability", safeguard=name, point=SURE)) or worst
    beside = "" if sure is worst else f"; this goes by the 95 % one, {_span(sure.estimate)}"
    who = f"someone {known.get(worst.attacker, '')}".rstrip()
    counted = {**_linked(worst), "attempts": attempts(worst.estimate, beside)}
    said = note("links", who=who, **counted)
    if weak_control(rows):
        return "unknown", f"{note('nothing').rstrip('.')}: {said}", lines
    low, made = residual(sure.estimate), sure.estimate.interval
    if made is not None and not math.isnan(made.low):
        low = residual(replace(sure.estimate, value=made.low))
    luck = worst.estimate.luck
    if luck is not None and luck.decides(int(worst.estimate.n["speakers"])):
        low = max(low, np.nextafter(0, 1)) if luck.beyond else min(low, 0.0)
    if low >= STRONG_ENOUGH:
        return "most", said, lines
    if low > 0:
        return "some", f"At least some succeed: {said}", lines
    # A known person is not found: that says nothing of linking recordings of the release.
    if within is not None and within.estimate.luck is not None and within.estimate.luck.beyond:
        share = 100 * float(within.estimate.value)
        said += f"; within the release {share:.1f} % succeed, more than by chance"
    return "chance", f"Success beyond chance is not shown: {said}", lines


def conclusion(cards: Sequence[Card]) -> str:
    """What the picture shows, as far as the intervals go: against how many safeguards attempts
    succeed, and against which they do not.
    """
    shares = labels("shares")
    found = {one: [c.safeguard for c in cards if c.extent == one] for one in ("unknown", *shares)}
    if found.pop("unknown"):
        return note("nothing")
    (first, names), *others = [(one, some) for one, some in found.items() if some] or [("", [])]
    if not names:
        return note("untried")
    whom = f"{in_words(len(names))} of {in_words(len(cards))} safeguards"
    if len(names) == len(cards):
        whom = f"all {in_words(len(cards))} safeguards" if len(cards) > 1 else names[0]
    told = [f"{shares[first].capitalize()} against {whom}."]
    for one, some in others:
        named = listed(some) if len(some) <= _NAMED else f"{in_words(len(some))} others"
        told.append(f"Against {named}, {shares[one]}.")
    return " ".join(told)


def by_luck(cards: Sequence[Card]) -> str:
    """What guessing and the luckiest of as many attacks would reach, over all safeguards."""
    told = [card.worst.estimate for card in cards if card.worst is not None]
    lucks = [estimate.luck for estimate in told if estimate.luck is not None]
    if not lucks:
        return ""
    attacks, shares = ([getattr(luck, name) for luck in lucks] for name in ("attacks", "value"))
    chance = [float(estimate.chance or 0.0) for estimate in told]
    return note(
        "luck",
        chance=f"{_range([100 * one for one in chance])} %",
        attacks=_range(attacks),
        share=f"{_range([100 * share for share in shares])} %",
    )


def _range(values: Sequence[float]) -> str:
    """``8 to 9``, or ``8`` where all read the same."""
    return " to ".join(dict.fromkeys(f"{one:,.0f}" for one in (min(values), max(values))))


def _linked(match: Match) -> dict[str, str]:
    """How many attempts succeed, among whom and from what, and how many would by chance."""
    where, estimate, luck = match.conditions, match.estimate, match.estimate.luck
    lucky = {} if luck is None else {"attacks": f"{luck.attacks:,}", "luck": estimate.luck_shown}
    return {
        "attempts": attempts(estimate),
        "chance": whole_percent(float(estimate.chance or 0.0)),
        "luck": note("luckiest", **lucky) if lucky else "",
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


def cards(study: Study, rows: Rows, noticed: Sequence[Notice] = ()) -> list[Card]:
    """A card for each safeguard from the rows and notices of the sections, the worst first."""
    legal, inputs = rows.get("legal", ()), study.inputs
    described = {safeguard.name: safeguard.description for safeguard in study.config.safeguards}
    made = []
    for name in inputs.protected:
        numbers = list(numbers_of(rows, name))
        attacks = study.attacks.get(name, ())
        known = {run.label(variant): run.description for run in attacks for variant in run.variants}
        extent, words, said = verdict(legal, name, known)
        if numbers and not words:
            words = f"{numbers[0].label}: {with_level(numbers[0].shown)}"
        if study.config.quick and extent == "chance":
            words = words.replace("not shown", "not shown by this quick look")
            if not any(run.enrols_own for run in attacks):
                words += "; attackers who run the safeguard were not tried"
        beside = list(_beside(study, name, weak_control(legal)))
        colour = colours_of(study)[name]
        worst = largest(find(legal, "linkability", safeguard=name, point=WORST))
        against = list(doubts(name, extent, worst, noticed))
        about: Any = {"extent": extent, "numbers": numbers, "notices": beside, "colour": colour}
        made.append(Card(name, described[name], words, said, doubts=against, worst=worst, **about))
    return sorted(made, key=lambda card: card.risk, reverse=True)


def doubts(
    name: str, extent: Extent, worst: Match | None, noticed: Sequence[Notice]
) -> Iterable[str]:
    """What makes the risk of a safeguard a lower bound, unless it may be nearly 1 as it is."""
    if worst is None or extent == "unknown":
        return
    made = worst.estimate.interval
    if float(worst.estimate.value if made is None else made.high) >= _NEARLY_ALL:
        return
    codes = {notice.code for notice in noticed if notice.subject.startswith(f"{name}, ")}
    for code in LOWER_BOUND:
        if code in codes:
            failed = extent == "chance" and code == "weak-own-run"
            yield note("own-run-fails" if failed else f"bound-{code}")


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
    return all(estimate.interval is not None and estimate.interval.low > 0 for estimate in margins)


def of_tables(rows: Sequence[Row]) -> Iterable[Card]:
    """The system of fewest errors in each score table, where that is clear, beside the others."""
    tables: dict[str, dict[str, Estimate]] = {}
    for match in find(rows, "eer"):
        where = match.conditions
        if "table" in where and "group" not in where:
            tables.setdefault(where["table"], {}).setdefault(where["system"], match.estimate)
    for name, rates in tables.items():
        best = min(rates, key=lambda one: float(rates[one].value))
        said = {rate: with_level(estimate) for rate, estimate in rates.items()}
        others = ", ".join(f"{one} {rate}" for one, rate in said.items() if one != best)
        margins = find(rows, "eer_difference", table=name)
        behind = {m.conditions["system"] for m in margins if clear([m.estimate])}
        verdict, beside = f"Equal error rate of {best}: {said[best]}", []
        if others and behind == {*said} - {best}:
            beside = [f"It errs least of {len(said)} systems; {others}."]
        elif others:
            tied, worse = ([n for n in said if (n in behind) == more] for more in (False, True))
            errs = f"; {listed(worse)} {'err' if len(worse) > 1 else 'errs'} more" if worse else ""
            verdict = f"{listed(tied)} are not told apart{errs}"
            of = listed([str(m.estimate.params["of"]) for m in margins if not clear([m.estimate])])
            rest = ", ".join(f"{n} {shown(e, 1, scale=100)}" for n, e in rates.items())
            beside = [f"Equal error rate in %: {rest}.", note("tie", of=of)]
        yield Card(name, "scores of verification", verdict, beside)


def untried(study: Study) -> Iterable[str]:
    """Whom and what the data or the config leave out: known before anything is computed."""
    config, inputs = study.config, study.inputs
    *believed, left_out = ([*_alike_said(inputs.notices, [code])] for code in BELIEVED)
    yield from (f"{said[:1].upper()}{said[1:]}" for some in believed for said in some)
    for what, some in () if config.quick else study.left_out.items():
        named = [title(one) if what == "frameworks" else one for one in some]
        yield note("left_out", what=what, named=", ".join(named))
    if changed := config.changed:
        yield note("changed", named=", ".join(changed))
    held = {run for safeguard in config.safeguards for run in (safeguard.again, safeguard.related)}
    if hidden := [s.name for s in config.safeguards if s.hidden and s.given and s.name not in held]:
        yield note("hidden", names=listed(hidden))
    for (attackers, why), names in _alike(
        ((name, attacker), why) for (name, attacker), why in study.missing.items()
    ):
        who = f"{listed(attackers)} attacker{'s' if len(attackers) > 1 else ''}"
        yield f"Not run on {listed(names)}: the {who}, since {why.removeprefix('not run, ')}."
    lacking = (
        ((name, backend), f"of the {who} attacker, which learn {why}")
        for (name, who), attack in study.every.items()
        for backend, why in attack.untried.items()
    )
    for (backends, why), names in _alike(lacking):
        yield f"Not tried: {listed(backends)} {why} ({listed(names)})."
    yield from (f"{said[:1].upper()}{said[1:]}" for said in left_out)


def _lengths_left_out(study: Study) -> Iterator[str]:
    """Tell where the length of vectors varies and was not compared."""
    one_sided = []
    is_quick_and_varies = False
    for safeguard, attacks in study.attacks.items():
        if safeguard == ORIGINAL:
            continue
        sides = [(one.data.enrol, one.data.test) for one in attacks]
        vary = [(lengths_vary(enrol), lengths_vary(test)) for enrol, test in sides]
        if any(enrolled != tested for enrolled, tested in vary):
            one_sided.append(safeguard)
        elif study.config.quick and any(tested for _, tested in vary):
            is_quick_and_varies = True
    if is_quick_and_varies:
        yield note("quick_lengths")
    if one_sided:
        yield note("one_sided_lengths", names=listed(one_sided))


def _alike(
    reasons: Iterable[tuple[tuple[str, str], str]],
) -> Iterable[tuple[tuple[tuple[str, ...], str], list[str]]]:
    """Things of safeguards that have one reason, and the safeguards of which the same is said."""
    things = grouped(((safeguard, why), thing) for (safeguard, thing), why in reasons)
    alike = grouped(((tuple(some), why), who) for (who, why), some in things.items())
    return alike.items()


def limits(cards: Sequence[Card], study: Study, sections: Sequence[Section] = ()) -> Iterable[str]:
    """How few people there are, what the data cannot tell, what was not tried; what weighs most
    comes first.
    """
    inputs = study.inputs
    noticed = [notice for section in sections for notice in section.notices]
    weak = dict.fromkeys(notice.sentence for notice in _notices(cards, "weak-control"))
    yield from (f"{sentence[:1].upper()}{sentence[1:]}." for sentence in weak)
    yield from _alike_said(inputs.notices, COMPARED)
    for one in (one for one in noticed if one.code == "words" and one.subject in inputs.protected):
        yield f"{one.subject}: {one.sentence}."
    if ties := list(dict.fromkeys(notice.line for notice in noticed if notice.code == "ties")):
        more = f" ({len(ties) - 1} more like this)" if len(ties) > 1 else ""
        yield f"{ties[0]}{more}."
    if inputs.original is not None and inputs.protected:
        far = any(find(section.rows, "linkability_extrapolated") for section in sections)
        beyond = "extrapolated, " if far else ""
        few = _notices(cards, "few-speakers")
        people = f"{study.people} people were tested{' (fewer than 30)' if few else ''}"
        yield note("few" if few else "crowd", people=people, how=f"{beyond}not measured")
        if not inputs.trained:
            yield note("no_extractor")
        yield from _lengths_left_out(study)
    else:
        said = dict.fromkeys(notice.sentence for notice in _notices(cards, "few-speakers"))
        yield from (f"{sentence}." for sentence in said)
    if inputs.original is not None and not _several_sessions(inputs.original):
        yield note("no_sessions")
    aligned: dict[str, list[str]] = {}
    for card in cards:
        for number in card.numbers:
            if "(wasserstein" in number.attacker:
                aligned.setdefault(number.label, []).append(card.safeguard)
    if aligned:
        which = (f"{label} of {listed(names)}" for label, names in aligned.items())
        yield note("equal_shares", which="; ".join(which))
    yield from untried(study)
    unfitted = grouped((one.sentence, one.subject) for one in noticed if one.code == "not-fitted")
    left_out = [one for one in noticed if one.code == "metric-left-out"]
    unfitted |= grouped((one.sentence, one.subject) for one in left_out)
    for sentence, subjects in unfitted.items():
        yield f"{sentence} ({listed(list(dict.fromkeys(subjects)))})."
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
    alike = grouped((notice.sentence, notice.subject) for notice in notices if notice.code in codes)
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
