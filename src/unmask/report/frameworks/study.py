"""What every framework works on, and how it takes part in an assessment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from unmask.report.cache import Step, digest_of
from unmask.report.config import ORIGINAL, Config
from unmask.report.frameworks.attacks import ATTACKS, Attack, Attacks, Variant
from unmask.report.frameworks.trialled import Trialled, Trials, strongest, trial_step
from unmask.report.inputs import Inputs
from unmask.report.section import Section
from unmask.trials import Scores


@dataclass(frozen=True, eq=False)
class Table:
    """Systems on one list of trials: a table that was given, or the strongest attacks as systems.

    ``inputs`` are its digests, ``size`` counts its trials; ``load`` gives the scores, which nobody
    computes before a step needs them. ``references`` tell hard trials from easy.
    """

    name: str
    systems: tuple[str, ...]
    size: int
    inputs: Sequence[str]
    load: Callable[[], Scores]
    speakers: bool = True
    references: Sequence[str] = ()


@dataclass(eq=False)
class Study:
    """What every framework of an assessment works on.

    ``tables`` are the score tables by name; ``trialled`` holds every variant of every attack by
    safeguard, once the attacks have been tried.
    """

    config: Config
    inputs: Inputs
    attacks: Attacks
    colours: Mapping[str, str]
    tables: Mapping[str, Scores]
    trialled: Mapping[str, Sequence[Trialled]] = field(default_factory=dict)

    def trial_steps(self) -> dict[tuple[str, str], Step]:
        """Every attack as a verification system, by safeguard and attacker."""
        return self.per_attack(lambda attack: trial_step(attack, self.config))

    def per_attack(self, make: Callable[[Attack], Step]) -> dict[tuple[str, str], Step]:
        """A step for each attack, by safeguard and attacker."""
        return {
            (name, attack.attacker): make(attack)
            for name, found in self.attacks.of.items()
            for attack in found
        }

    def tried(self, done: Mapping[tuple[str, str], Trials]) -> None:
        """Take the tried attacks; of their scores only those of the strongest are held."""
        trialled: dict[str, list[Trialled]] = {}
        for (name, _), found in done.items():
            trialled.setdefault(name, []).extend(found.variants)
        self.trialled = trialled
        strongest = {id(attack): variant for attack, variant in self.strongest().values()}
        for attacks in self.attacks.of.values():
            for attack in attacks:
                attack.hold(*([strongest[id(attack)]] if id(attack) in strongest else []))

    def strongest(self) -> dict[str, tuple[Attack, Variant]]:
        """The attack with the lowest equal error rate on each safeguard."""
        best = {name: strongest(found, "eer") for name, found in self.trialled.items()}
        return {
            name: (
                next(a for a in self.attacks.of[name] if a.attacker == one.attacker),
                one.variant,
            )
            for name, one in best.items()
        }

    def compared(self) -> list[Table]:
        """The strongest attacks, those on one list of trials in one table, and the given tables."""
        groups: list[dict[str, tuple[Attack, Variant]]] = []
        for name, (attack, variant) in self.strongest().items():
            same = (g for g in groups if next(iter(g.values()))[0].same_trials(attack))
            group = next(same, None)
            if group is None:
                groups.append({name: (attack, variant)})
            else:
                group[name] = (attack, variant)
        references = {one.name: one.reference for one in self.config.scores}
        return [
            *map(_attack_table, groups),
            *(
                Table(
                    name,
                    tuple(scores.systems),
                    len(scores),
                    [digest_of(scores)],
                    lambda scores=scores: scores,  # type: ignore[misc]
                    scores.enrol_speaker is not None,
                    references.get(name, ()),
                )
                for name, scores in self.tables.items()
            ),
        ]


def _attack_table(group: Mapping[str, tuple[Attack, Variant]]) -> Table:
    names = tuple(group)
    (first, variant), *others = group.values()

    def load() -> Scores:
        table = first.scores(variant, names=names[:1])
        more = {n: a.matrix(v).ravel() for n, (a, v) in zip(names[1:], others, strict=True)}
        return replace(table, systems={**table.systems, **more})

    inputs = [one for attack, v in group.values() for one in (*attack.inputs, attack.label(v))]
    whole = ORIGINAL in names and len(names) > 1
    name = ATTACKS if whole else f"{ATTACKS} on {' and '.join(names)}"
    return Table(name, names, first.size, inputs, load)


Plan = dict[str, Mapping[Any, Step]]
"""Steps of a framework in named groups; what is found comes back in the same groups."""
TRIALS = "trials"


@dataclass(frozen=True)
class Framework:
    """How a framework takes part in an assessment.

    ``steps`` are planned from the inputs, ``later`` ones when the attacks have been tried;
    ``section`` makes its part of the report from their results. ``trials`` tells that it looks at
    the tried attacks; without results in the group ``main`` there is no section.
    """

    key: str
    section: Callable[[Study, Mapping[str, Mapping[Any, Any]]], Section]
    steps: Callable[[Study], Plan] = lambda study: {}
    later: Callable[[Study], Plan] = lambda study: {}
    trials: bool = False
    main: str | None = None
