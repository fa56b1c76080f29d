"""The first screen: one card per safeguard, a sentence in plain words, who is least protected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from unmask.estimate import Estimate
from unmask.report.config import ORIGINAL
from unmask.report.document import Row
from unmask.report.frameworks.attacks import DESCRIPTIONS

LARGEST_D_ECE = 0.7213475204444817
FEW_SPEAKERS = 30
_ALARMS = ("weak attacker", "negated", "no better than chance", "less like themselves")


@dataclass(frozen=True)
class Headline:
    """One number of a card; ``chance`` and ``unprotected`` are where the bar and its mark stand.

    ``share`` places a value on the bar, 0 … 1; ``protective`` tells which way is more protective.
    """

    label: str
    what: str
    estimate: Estimate
    bounds: tuple[float, float]
    unprotected: Estimate | None = None
    attacker: str = ""
    tag: Estimate | None = None
    protective: str = "lower"
    chance: float | None = None

    def share(self, value: float) -> float:
        """Place on the bar."""
        low, high = self.bounds
        return min(1.0, max(0.0, (value - low) / (high - low)))


@dataclass(frozen=True)
class Card:
    """What the first screen says of one safeguard."""

    safeguard: str
    colour: str
    numbers: tuple[Headline, ...]
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]


def find(rows: Iterable[Row], metric: str, **conditions: str) -> Estimate | None:
    """The estimate of a metric in the first row under these conditions."""
    for row in rows:
        if all(row.conditions.get(name) == value for name, value in conditions.items()):
            for estimate in row.estimates:
                if estimate.metric == metric:
                    return estimate
    return None


def strongest(rows: Sequence[Row], metric: str, **conditions: str) -> tuple[str, Estimate] | None:
    """The attacker with the largest value."""
    best: tuple[str, Estimate] | None = None
    for row in rows:
        if any(row.conditions.get(name) != value for name, value in conditions.items()):
            continue
        for estimate in row.estimates:
            if estimate.metric == metric and isinstance(estimate.value, float):
                who = row.conditions.get("attacker", "")
                if best is None or estimate.value > float(best[1].value):
                    best = (who, estimate)
    return best


def legal_number(rows: Sequence[Row], metric: str, safeguard: str, length: int) -> Headline | None:
    """Linkability or Singling Out of the strongest attacker at the largest number of speakers."""
    found = strongest(rows, metric, safeguard=safeguard, utterances=str(length))
    if found is None:
        return None
    who, estimate = found
    bare = strongest(rows, metric, safeguard=ORIGINAL, utterances=str(length))
    number = int(estimate.params["N"])  # type: ignore[arg-type]
    label, sign = ("Linkability", "N′") if metric == "linkability" else ("Singling Out", "N")
    spoken = f"{length} utterance{'s' if length > 1 else ''}"
    return Headline(
        label,
        f"{sign} = {number:,}, {spoken}",
        estimate,
        (float(estimate.chance or 0.0), 1.0),
        None if bare is None else bare[1],
        who,
        chance=estimate.chance,
    )


def deid_number(rows: Sequence[Row], safeguard: str) -> Headline | None:
    """DeID: how much of the resemblance to the original voice is gone."""
    estimate = find(rows, "deid", safeguard=safeguard)
    if estimate is None:
        return None
    return Headline(
        "DeID",
        "resemblance that is gone",
        estimate,
        (0.0, 1.0),
        protective="higher",
    )


def evidence_number(rows: Sequence[Row], safeguard: str) -> Headline | None:
    """D_ECE of the strongest attacker, with its tag."""
    found = strongest(rows, "d_ece", safeguard=safeguard)
    if found is None:
        return None
    who, estimate = found
    bare = strongest(rows, "d_ece", safeguard=ORIGINAL)
    return Headline(
        "D_ECE",
        "mean evidence, at most 0.721",
        estimate,
        (0.0, LARGEST_D_ECE),
        None if bare is None else bare[1],
        who,
        tag=find(rows, "tag", safeguard=safeguard, attacker=who),
        chance=0.0,
    )


def sentence(number: Headline, enrols: str) -> str:
    """``An attacker who … links 95 of 100 voices to the right one of 20; …``."""
    who = DESCRIPTIONS.get(enrols, "")
    count = int(number.estimate.params["N"])  # type: ignore[arg-type]
    value, chance = 100 * float(number.estimate.value), 100 * float(number.chance or 0.0)
    return (
        f"An attacker {who} links {_whole(value)} of 100 voices to the right one of {count:,};"
        f" by chance it would be {_whole(chance)}."
    )


def _whole(percent: float) -> str:
    """A count out of 100; fractions only where a whole number would say none."""
    return f"{percent:.0f}" if percent >= 1 or percent == 0 else f"{percent:.2g}"


def card_warnings(
    name: str, attackers: Sequence[str], told: Sequence[str], speakers: int
) -> tuple[str, ...]:
    """What has to stand right beside the numbers of a safeguard: those of its strongest attacks."""
    found = []
    for line in told:
        said = line.removeprefix(f"{name}: ")
        if said == line and not line.startswith(f"{name},"):
            continue
        weak = "weak attacker" in said
        turned = said.startswith("OP") and "negated" in said
        named = any(who and re.search(rf"(?<![\w-]){re.escape(who)}", said) for who in attackers)
        own = named and any(word in said for word in _ALARMS)
        if weak or turned or own:
            found.append(said)
    if speakers < FEW_SPEAKERS:
        found.append(f"only {speakers} speakers: intervals are wide, chance is high")
    return tuple(dict.fromkeys(found))


def cards(
    names: Sequence[str],
    rows: Mapping[str, Sequence[Row]],
    *,
    colours: Mapping[str, str],
    length: int,
    enrols: Mapping[tuple[str, str], str],
    told: Sequence[str],
    speakers: int,
) -> tuple[Card, ...]:
    """A card for each safeguard from the rows of the sections."""
    made = []
    for name in names:
        legal = rows.get("legal", ())
        link = legal_number(legal, "linkability", name, length)
        numbers = [
            link,
            legal_number(legal, "singling_out", name, length),
            deid_number(rows.get("similarity", ()), name),
            evidence_number(rows.get("zebra", ()), name),
        ]
        said = []
        if link is not None:
            said.append(sentence(link, enrols.get((name, link.attacker), "")))
        made.append(
            Card(
                name,
                colours[name],
                tuple(number for number in numbers if number is not None),
                tuple(said),
                card_warnings(name, [n.attacker for n in numbers if n is not None], told, speakers),
            )
        )
    return tuple(made)
