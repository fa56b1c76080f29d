"""The report and its filing copy, each as one HTML file that loads nothing."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup, escape

from unmask._version import __version__
from unmask.assessment import SPELLED, spelled
from unmask.base import grouped, visible
from unmask.display import THRESHOLDS
from unmask.engine import LARGEST_D_ECE
from unmask.estimate import Estimate, Notice
from unmask.figures import NIGHT, STYLE, Figure, fragment, javascript, policy_of, svg
from unmask.privacy.legal import RELEASE, spoken
from unmask.report.assessment import Assessment
from unmask.report.case import CaseRecord
from unmask.report.documents import Document, Row
from unmask.report.headline import (
    Card,
    Headline,
    attempts,
    by_luck,
    conclusion,
    listed,
)
from unmask.report.section import Choice, Section, TableBlock, figures_in
from unmask.report.table import (
    EXPLANATIONS,
    LABELS,
    Grid,
    compared,
    condition_label,
    label,
    rate_digits,
    reasons,
    shown_value,
    threshold_value,
)
from unmask.report.words import labels, note, words
from unmask.trials import Source, short_encoder

SHOWN_ANSWERS, SHOWN_CARDS, SHOWN_LIMITS = 2, 5, 8
PRINTED = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""The policy of the filing copy."""
MOST_COLUMNS = 7
FIRST = ("Linkability", f"Linkability, {RELEASE}")
SECOND = ("Resemblance left", "Evidence")
PERCENT, BITS = ("0", "25", "50", "75", "100 %"), ("0", "", f"{LARGEST_D_ECE:.3f} bit")
_COUNTS = ("speakers", "utterances", "impostors", "N", "L")
_NEED = ("min_dcf", "act_dcf", "tpr_at_fpr")


@dataclass(frozen=True)
class Number:
    """A number as it is shown: ``place`` is its index in ``results.json``, if it is there."""

    value: str
    low: str
    high: str
    unit: str
    sort: float | str
    place: int | None
    signature: str
    chance: str = ""


class Numbers:
    """Where each estimate of the report stands in ``results.json``."""

    def __init__(self, document: Document) -> None:
        flat = [pair for row in document.rows for pair in row.of_estimates()]
        self.places = {id(estimate): i for i, (_, estimate) in enumerate(flat)}

    def __call__(self, estimate: Estimate, digits: int | None = None) -> Number:
        """The estimate as it is shown; one that only follows from another has no place."""
        made, unit = estimate.interval, estimate.unit
        ends = (None, None) if made is None else (made.low, made.high)
        precise = digits
        if digits is None and isinstance(estimate.value, float):
            precise = rate_digits(unit, estimate.value, *(end for end in ends if end is not None))
        is_threshold = estimate.metric in THRESHOLDS

        def shown(one: float | str | None, digits: int | None = precise) -> str:
            if one is None or isinstance(one, str):
                return one or ""
            return threshold_value(one) if is_threshold else shown_value(one, unit, digits)

        value, low, high = shown(estimate.value), shown(ends[0]), shown(ends[1])
        chance = shown(estimate.chance, digits)
        place = self.places.get(id(estimate))
        return Number(value, low, high, unit, estimate.value, place, estimate.signature, chance)


@dataclass(frozen=True)
class TableView(Grid):
    """A table ready for the template: headings are (text, explanation, is a number)."""

    title: str
    folded: bool
    note: str

    def sheets(self, most: int) -> list[TableView]:
        """Parts of at most ``most`` characters across, each with the columns that name the rows."""
        sizes = [max(map(_size, column)) for column in zip(*self.rows, strict=True)]
        *others, last = self.parts(sizes, most) if self.rows else [self]
        return [*(replace(part, note="") for part in others), last]


def _size(item: str | Number | None) -> int:
    if item is None or isinstance(item, str):
        return len(item or "–")
    return len(item.value) + (len(item.low) + len(item.high) + 5 if item.low else 0)


def table_view(block: TableBlock, numbers: Numbers) -> TableView:
    """Conditions down, metrics across, or the other way round; numbers know their place in JSON."""
    rows = block.rows
    if {row.conditions.get("table") for row in rows} == {block.title}:
        bare = ({n: v for n, v in row.conditions.items() if n != "table"} for row in rows)
        rows = [replace(row, conditions=own) for row, own in zip(rows, bare, strict=True)]
    rows, kinds = zip(*map(compared, rows), strict=True)
    named = [
        {_head(estimate, rows, of): estimate for estimate in row.estimates}
        for row, of in zip(rows, kinds, strict=True)
    ]
    first = {head: one for own in reversed(named) for head, one in own.items()}
    whole = Grid.of(rows, [{h: numbers(one) for h, one in own.items()} for own in named], None)
    heads = [(condition_label(name), "", name in _COUNTS) for name in whole.header[: whole.keys]]
    heads += [
        (head, EXPLANATIONS.get(first[head].metric, ""), not isinstance(first[head].value, str))
        for head in whole.header[whole.keys :]
    ]
    if len(heads) > MOST_COLUMNS and len(rows) < len(heads) - whole.keys:
        whole = whole.turned(", ")
        heads = [("Metric", "", False), *((name, "", True) for name in whole.header[1:])]
    return TableView(heads, whole.rows, whole.keys, block.title, block.folded, block.note)


def _head(estimate: Estimate, rows: Sequence[Row], of: str) -> str:
    """The metric's heading with what is compared; parameters only where they tell columns apart."""
    several = sum(e.metric == estimate.metric for e in rows[0].estimates) > 1
    whole = several or estimate.metric in _NEED
    bare = {"attacker": estimate.params.get("attacker")}
    text = label(estimate if whole else replace(estimate, params=bare), of)
    return text if estimate.metric in LABELS else text[:1].upper() + text[1:]


_SYMBOLS = re.compile(
    r"10\^(?P<power>−?[\d.]+)|\b(?P<base>D_(?=E|d|s)|G_(?=V)|C_(?=l|E)|P_(?=F|m)|l_(?=w))"
    r"(?P<sub>[A-Za-z]+)(?:\^(?P<sup>\w+))?"
)


_TOGETHER = re.compile(
    r"(?<=[\d\]]) (?=%|bit\b|dB\b|utterance|candidate)|(?<=\d,) (?=[−+]?[\d.]+\])"
)


def symbols(text: str) -> Markup:
    """The text with powers of ten raised and indices of symbols such as D_ECE lowered; a number
    keeps its unit and an interval its ends on one line.
    """

    def typeset(match: re.Match[str]) -> str:
        if match["power"]:
            return f"10<sup>{match['power']}</sup>"
        raised = f"<sup>{match['sup']}</sup>" if match["sup"] else ""
        return f"{match['base'][:-1]}<sub>{match['sub']}</sub>{raised}"

    return Markup(_SYMBOLS.sub(typeset, _TOGETHER.sub("\u00a0", str(escape(text)))))


_NUMBER = r"(?<![\w.^])[−+-]?\d+(?:,\d{3})*(?:\.\d+)?(?!\w)"
_NUMBERS = re.compile(rf"{_NUMBER}(?: \[[^]]*\]|(?:(?:, | to ){_NUMBER})+)?")
_VARIANT = re.compile(r" \(.*|, \d+ utterances?$")


def merged(notices: Iterable[Notice], names: Collection[str]) -> list[str]:
    """Lines of notices. Those that differ only in safeguard or system, attack and numbers are one,
    which names the attackers and gives the range of each number.
    """
    alike: dict[tuple[str, ...], list[tuple[str, str, str]]] = {}
    for notice in dict.fromkeys(notices):
        parts = notice.subject.split(": ")
        held = (
            (i, n)
            for i, part in enumerate(parts)
            for n in names
            if f"{part}, ".startswith(f"{n}, ")
        )
        at, name = max(held, key=lambda one: (-one[0], len(one[1])), default=(0, ""))
        own = parts[at].removeprefix(name).removeprefix(", ") if name else ""
        more = [part for part in (own, *parts[at + 1 :]) if part and part != name]
        about, *rest = [p for p in dict.fromkeys(more) if p == own or not own.startswith(p)] or [""]
        sentence = ": ".join([*rest, notice.sentence])
        first = ": ".join(parts[:at]) if name else notice.subject
        same = notice.code, first, _NUMBERS.sub("0", sentence)
        alike.setdefault(same, []).append((name, about, sentence))
    return [_joined(first, some) for (_, first, _), some in alike.items()]


def _joined(first: str, some: Sequence[tuple[str, str, str]]) -> str:
    """One line of notices whose sentences differ in numbers only."""
    attackers: dict[str, dict[str, None]] = {}
    for name, about, _ in some:
        who = about if len(some) == 1 else _VARIANT.sub("", about)
        attackers.setdefault(name, {}).update({who: None} if who else {})
    safeguards = grouped((", ".join(every), name) for name, every in attackers.items())
    named = [listed(each) + (f" ({who})" if who else "") for who, each in safeguards.items()]
    slots = zip(*(_NUMBERS.findall(said) for *_, said in some), strict=True)
    ranges = map(_range, slots)
    sentence = _NUMBERS.sub(lambda _: next(ranges), some[0][2])
    line = ": ".join(part for part in (first, "; ".join(named), sentence) if part)
    return line if first or any(attackers) else line[:1].upper() + line[1:]


def _range(texts: Sequence[str]) -> str:
    """The only text, or the lowest and the highest number of all."""
    if len(set(texts)) == 1:
        return texts[0]
    found = (re.findall(_NUMBER, text.partition(" [")[0]) for text in texts)
    size = {one: float(one.replace(",", "").replace("−", "-")) for each in found for one in each}
    low, high = min(size, key=lambda one: size[one]), max(size, key=lambda one: size[one])
    return low if low == high else f"{low} to {high}"


@cache
def _environment() -> jinja2.Environment:
    loader = jinja2.PackageLoader("unmask.report", "templates")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
        # Names move no cursor where the page is shown as text; markup of ours is left as it is.
        finalize=lambda value: visible(value) if type(value) is str else value,
    )  # fmt: skip
    environment.tests["choice"] = lambda value: isinstance(value, Choice)
    environment.filters["symbols"] = symbols
    environment.filters["shade"] = shade
    return environment


def shade(colour: str) -> str:
    """The colour of a safeguard by day and by night, as charts have them."""
    return f"--colour:{colour};--night:{NIGHT.get(colour, colour)}"


def template_part(name: str) -> str:
    """A style sheet or script of the templates."""
    return resources.files("unmask.report").joinpath("templates", name).read_text(encoding="utf-8")


def bar(headline: Headline) -> dict[str, float | None]:
    """Places on the track of a number, from 0 to the largest value possible, in percent."""
    value, interval, bare = headline.shown.value, headline.shown.interval, headline.unprotected
    places = {
        "value": value,
        "low": value if interval is None else interval.low,
        "high": value if interval is None else interval.high,
        "chance": headline.chance or None,
        "bare": None if bare is None else bare.value,
    }
    return {n: None if x is None else 100 * headline.place(float(x)) for n, x in places.items()}


@dataclass(frozen=True)
class Picture:
    """The first screen's chart: for each safeguard, worst first, a number or none on each track.

    ``tracks`` are (title, question, numbers of the axis), ``chance`` is what guessing means.
    """

    title: str
    chance: str
    tracks: Sequence[tuple[str, str, Sequence[str]]]
    rows: Sequence[tuple[Card, Sequence[Headline | None]]]

    @classmethod
    def of(cls, cards: Sequence[Card]) -> Picture | None:
        """The two headlines side by side; where nobody was linked, resemblance and evidence."""
        numbers = [{headline.label: headline for headline in card.numbers} for card in cards]
        held = {name for own in numbers for name in own}
        chosen = [one for one in FIRST if one in held] or [one for one in SECOND if one in held]
        if not chosen:
            return None
        tracks = [
            (*labels("tracks")[one], BITS if one == "Evidence" else PERCENT) for one in chosen
        ]
        rows = [[own.get(one) for one in chosen] for own in numbers]
        crowds = {card.worst.conditions["speakers"] for card in cards if card.worst is not None}
        of = f", 1 of {crowds.pop()} candidates" if len(crowds) == 1 and chosen[0] in FIRST else ""
        return cls(conclusion(cards), f"chance{of}", tracks, list(zip(cards, rows, strict=True)))


_FROM = re.compile(r"(?<= from )(\d+) utterances?")


def together(cards: Sequence[Card]) -> list[tuple[Sequence[Card], str]]:
    """Cards of which the same is said but for the number of utterances, and what is said."""
    same: dict[tuple[str, ...], list[Card]] = {}
    for card in cards:
        same.setdefault((_FROM.sub("", card.verdict), *card.doubts), []).append(card)
    return [(some, _FROM.sub(_utterances(some), some[0].verdict)) for some in same.values()]


def _counted(card: Card) -> str:
    """How many attempts succeed, or what else a card tells."""
    return attempts(card.worst.estimate).partition(" attempts")[0] if card.worst else card.verdict


def _utterances(cards: Sequence[Card]) -> str:
    """``1 to 5 utterances``."""
    lengths = sorted({int(n) for card in cards for n in _FROM.findall(card.verdict)})
    return f"{lengths[0]} to {spoken(lengths[-1])}" if lengths[1:] else spoken(*lengths or [1])


def file_table(sources: Sequence[Source]) -> list[list[str]]:
    """What was read, but for its hash, headings first; encoders and sound where any file tells."""
    heads = ("File", "Format", "Speakers", "Left out", "Used as", "Encoder", *SPELLED)
    rows = [
        (
            *(one.name, one.format, "–" if one.speakers is None else f"{one.speakers:,}"),
            *(f"{one.missing + one.duplicates:,}", one.role or "–"),
            short_encoder(one.encoder) or "–",
            *(("–",) * len(SPELLED) if one.sound is None else spelled(one.sound)),
        )
        for one in sources
    ]
    told = [n for n, column in enumerate(zip(*rows, strict=True)) if n < 4 or set(column) != {"–"}]
    return [[line[n] for n in told] for line in (heads, *rows)]


def _rendered(template: str, assessment: Assessment, **more: Any) -> str:
    """A page from the template of this name."""
    config, number = assessment.config, Numbers(assessment.document)
    names = {line.safeguard for line in assessment.lines}
    names |= {row.conditions.get("system", "") for row in assessment.document.rows}

    def risk(headline: Headline) -> Number:
        return number(headline.shown, 1 if headline.estimate.unit == "%" else 3)

    def view(section: Section) -> dict[str, Any]:
        """What a template needs of a section; what is an answer, or limits all, is said once."""
        said = {line.rstrip(".") for line in section.answer}
        notices = (
            notice
            for notice in section.notices
            if notice.code != "few-speakers" and notice.line.rstrip(".") not in said
        )
        return {
            "section": section,
            "tables": [table_view(block, number) for block in section.tables],
            "warnings": merged(notices, names),
        }

    drawn = {"level": 100 * config.intervals.level, "replicates": config.intervals.replicates}
    method = [("Intervals", note("intervals", **drawn, seed=config.seed))]
    if assessment.attackers:
        attackers = f"{note('attackers')} {assessment.extractor}"
        settings = ("Two settings", note("two_settings"))
        method = [("Attackers", attackers), settings, *method]
    groups = together(assessment.lines)
    alike = {_counted(card): card.safeguard for card in reversed(assessment.cards)}
    leading = set(alike.values())
    shown = sorted(assessment.cards, key=lambda card: card.safeguard not in leading)
    page = _environment().get_template(template)
    return page.render(
        a=assessment,
        config=config,
        version=__version__,
        number=number,
        risk=risk,
        bar=bar,
        picture=Picture.of(assessment.cards),
        groups=groups,
        luck=by_luck(assessment.lines),
        cards=shown,
        shown_cards=min(len(leading), SHOWN_CARDS),
        terms=words()["terms"],
        views=[view(section) for section in assessment.sections],
        files=file_table(assessment.document.inputs),
        least=[table_view(block, number) for block in assessment.least],
        method=method,
        glossary=note("glossary"),
        not_assessed=note("not_assessed"),
        redacted=note("redacted") if config.redact else "",
        attempts=note("attempts"),
        signature=assessment.document.signature,
        **more,
    )


def render_html(assessment: Assessment) -> str:
    """The whole page."""
    drawing = javascript() if assessment.all_figures else ""
    script = drawing + "\n" + template_part("report.js")
    return _rendered(
        "report.html.j2",
        assessment,
        policy=policy_of(script),
        style=Markup(STYLE + template_part("report.css")),
        script=Markup(script),
        figure=lambda figure: Markup(fragment(figure)),
        shown_answers=SHOWN_ANSWERS,
        shown_limits=SHOWN_LIMITS,
    )


def filing_html(assessment: Assessment) -> str:
    """The filing copy: two pages to read and an annex, on A4, with nothing that needs a screen."""
    date = assessment.date
    return _rendered(
        "filing.html.j2",
        assessment,
        policy=PRINTED,
        style=Markup(template_part("filing.css")),
        running=_css_string(assessment.config.title),
        dated=_css_string(f"unmask {__version__}{f', {date}' if date else ''}"),
        figures_of=lambda section: [f for part in section.figures[:1] for f in figures_in(part)],
        drawn=_picture,
    )


def page_html(document: Document, figures: Sequence[Figure], case: CaseRecord | None = None) -> str:
    """A document with its figures on one page of A4, to print and file under a ``case``."""
    view = table_view(TableBlock("", document.rows), Numbers(document))
    return (
        _environment()
        .get_template("page.html.j2")
        .render(
            d=document,
            case=case or CaseRecord(),
            view=view,
            reasons=reasons(document),
            files=document.inputs,
            pictures=list(map(_picture, figures)),
            policy=PRINTED,
            style=Markup(template_part("filing.css")),
            version=__version__,
        )
    )


def _picture(figure: Figure) -> Markup:
    """The figure, with title and caption, as an image that loads nothing."""
    data = base64.b64encode(svg(figure).encode()).decode()
    return Markup('<img src="data:image/svg+xml;base64,{}" alt="{}">').format(data, figure.title)


def _css_string(text: str) -> Markup:
    """Text as a string of a style sheet, whatever characters it holds."""
    parts = (c if c.isalnum() and c.isascii() else f"\\{ord(c):06x}" for c in text)
    return Markup(f'"{"".join(parts)}"')
