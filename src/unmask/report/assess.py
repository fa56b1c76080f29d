"""From a config to an assessment: all frameworks that the data allow, step by step."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from unmask.errors import InputError
from unmask.estimate import Estimate
from unmask.figures import system_colours
from unmask.figures.speaker_strip import Strip, speaker_strip
from unmask.report.cache import Cache, Step, Told, Work, cache_of
from unmask.report.config import FRAMEWORKS, ORIGINAL, Config
from unmask.report.document import Document, Row
from unmask.report.drawn import Drawn
from unmask.report.frameworks import cpmap, legal, similarity, verification, worst_case
from unmask.report.frameworks.attacks import (
    Attack,
    Trialled,
    attacks_of,
    group_step,
    joined_scores,
    strongest,
    trial_step,
)
from unmask.report.headline import Card, cards
from unmask.report.inputs import Inputs, read_inputs
from unmask.report.section import Section, TableBlock
from unmask.scoring.job import Where, by_default
from unmask.trials import Scores

K = TypeVar("K")
ATTACKS = "Attacks"


@dataclass(frozen=True, eq=False)
class Assessment:
    """Everything a report says. ``facts`` tell what was tested, as (name, value).

    ``kept`` is the folder of finished steps and figures, which holds names and voiceprints.
    """

    config: Config
    facts: tuple[tuple[str, str], ...]
    line: str
    cards: tuple[Card, ...]
    strip: Drawn | None
    least: tuple[TableBlock, ...]
    sections: tuple[Section, ...]
    document: Document
    colours: Mapping[str, str]
    date: str | None
    kept: Path
    reused: int = 0
    computed: int = 0

    @property
    def figures(self) -> tuple[Drawn, ...]:
        """Every figure of the report."""
        found = [f for section in self.sections for f in section.all_figures]
        return (*([] if self.strip is None else [self.strip]), *found)


def assess(
    config: Config,
    output: str | Path,
    *,
    on: str = "local",
    workers: int | None = None,
    state: str | Path | None = None,
    cache: str | Path | None = None,
    told: Told | None = None,
) -> Assessment:
    """Run what the config names; finished steps are kept in ``cache`` and reused.

    That folder belongs to ``output`` and lies outside it (:func:`unmask.report.cache.cache_of`
    unless given), since steps hold names and voiceprints. ``on``, ``workers`` and ``state`` say
    where scores are counted, as in :func:`unmask.cross_pairing`. Nothing but the cache is written:
    :func:`unmask.report.writing.write_report` does the rest.
    """
    where = Where(on, workers, state)
    folder = Path(output)
    work = Work(Cache(Path(cache) if cache is not None else cache_of(folder)), told=told)
    inputs = read_inputs(config, work, base=folder.resolve())
    wanted = config.frameworks or FRAMEWORKS
    with by_default(where):
        return _Run(config, inputs, work, frozenset(wanted)).result()


class _Run:
    """One run: steps are planned first, so that it is known how much is left."""

    def __init__(self, config: Config, inputs: Inputs, work: Work, wanted: frozenset[str]) -> None:
        self.attacks = attacks_of(config, inputs)
        self.config, notes = legal.with_fitting_lengths(config, self.attacks)
        self.inputs = replace(inputs, notes=(*inputs.notes, *notes))
        self.work, self.wanted = work, wanted
        names = [*([ORIGINAL] if inputs.original is not None else []), *inputs.safeguards]
        self.colours = system_colours(names, original=ORIGINAL)
        self.rooms = {**inputs.tables}
        for name, sets in inputs.sets.items():
            self.rooms |= {f"{name} {part.upper()}": scores for part, scores in sets.items()}

    def result(self) -> Assessment:
        config, inputs, wanted = self.config, self.inputs, self.wanted
        every = {
            "legal": self._per_attack(legal.sweep_step) if "legal" in wanted else {},
            "trials": self._per_attack(trial_step) if self._trials else {},
        }
        probes = legal.inference_steps(config, inputs) if every["legal"] else {}
        matrices = similarity.similarity_steps(config, inputs) if "similarity" in wanted else {}
        within = similarity.session_steps(config, inputs) if "similarity" in wanted else {}
        tables = self._table_steps() if wanted & {"verification", "zebra"} else {}
        runs = (
            verification.distortion_steps(config, inputs, self.attacks) if "zebra" in wanted else {}
        )
        planned: list[Step] = [s for d in every.values() for found in d.values() for s in found]
        for group in (probes, matrices, within, tables, runs):
            planned += group.values()
        late = 2.0 * len(self.rooms) + 2.0 * bool(self.attacks)
        self.work.expect(planned)
        self.work.total += late
        trialled: dict[str, list[Trialled]] = {
            name: self.work.run_all(steps) for name, steps in every["trials"].items()
        }
        best = strongest(trialled)
        tried = [step for steps in every["trials"].values() for step in steps]
        sections = []
        if every["legal"]:
            sweeps = every["legal"]

            def legal_section() -> Section:
                results = legal.LegalResults(
                    self.attacks,
                    {name: self.work.run_all(steps) for name, steps in sweeps.items()},
                    self._run(probes),
                    config,
                )
                return legal.section(results, self.colours)

            parts = [s for steps in sweeps.values() for s in steps] + list(probes.values())
            sections.append(self._section("legal", parts, legal_section))
        if matrices:
            sections.append(
                self._section(
                    "similarity",
                    [*matrices.values(), *within.values()],
                    lambda: similarity.section(
                        self._run(matrices), self._run(within), self.colours
                    ),
                )
            )
        if "zebra" in wanted and trialled:
            sections.append(
                self._section(
                    "zebra",
                    [*tried, *runs.values()],
                    lambda: verification.zebra_section(
                        trialled, best, self._run(runs), self.colours
                    ),
                )
            )
        if "verification" in wanted and (trialled or tables):
            groups = self._group_steps(best)
            sections.append(
                self._section(
                    "verification",
                    [*tried, *tables.values(), *groups.values()],
                    lambda: verification.section(
                        trialled, best, self._run(tables), self._run(groups), self.colours
                    ),
                )
            )
        self.work.total -= late
        sections += self._stress(best)
        if not sections:
            raise InputError("frameworks: none of those named can be run on these data")
        return self._assessment(sections, trialled, best)

    def _run(self, steps: Mapping[K, Step]) -> dict[K, Any]:
        return {name: self.work.run(step) for name, step in steps.items()}

    def _section(self, key: str, steps: Sequence[Step], make: Callable[[], Section]) -> Section:
        """A section with its figures, kept under the keys of the steps it is made from."""
        step = Step(
            f"charts and tables of {key}",
            [one.key for one in steps],
            {"colours": self.colours, "steps": [one.what for one in steps]},
            lambda progress: make().drawn(),
            weight=1.0,
        )
        self.work.expect([step])
        made: Section = self.work.run(step)
        return made

    @property
    def _trials(self) -> bool:
        return bool(self.wanted & {"verification", "zebra", "cpmap", "worst_case"})

    def _per_attack(self, make: object) -> dict[str, list[Step]]:
        return {
            name: [make(attack, self.config) for attack in found]  # type: ignore[operator]
            for name, found in self.attacks.items()
        }

    def _table_steps(self) -> dict[str, Step]:
        return verification.table_steps(self.config, replace(self.inputs, tables=self.rooms))

    def _group_steps(self, best: Mapping[str, int]) -> dict[str, Step]:
        """The strongest attack on each safeguard, by the groups of a column."""
        by = self.config.verification.by
        if by is None:
            return {}
        steps = {
            name: group_step(self.attacks[name][place], self.config, by)
            for name, place in best.items()
        }
        self.work.expect(list(steps.values()))
        return steps

    def _stress(self, best: Mapping[str, int]) -> list[Section]:
        """C-P maps and worst case of the strongest attacks and of the tables."""
        if not self.wanted & {"cpmap", "worst_case"}:
            return []
        chosen: dict[str, Attack] = {
            name: self.attacks[name][place] for name, place in best.items()
        }
        rooms: dict[str, Scores] = {}
        references: dict[str, Sequence[str]] = {}
        for names, table in joined_scores(chosen):
            rooms[ATTACKS if len(names) > 1 else f"{ATTACKS} on {names[0]}"] = table
        for name, table in self.rooms.items():
            rooms[name] = table
            given = next((one for one in self.config.scores if one.name == name), None)
            references[name] = given.reference if given is not None else ()
        maps = {
            name: cpmap.cpmap_step(name, table, self.config, references=references.get(name, ()))
            for name, table in (rooms.items() if "cpmap" in self.wanted else [])
        }
        growth = {
            name: worst_case.worst_case_step(name, table, self.config)
            for name, table in (rooms.items() if "worst_case" in self.wanted else [])
            if worst_case.usable(table)
        }
        self.work.expect([*maps.values(), *growth.values()])
        sections = []
        if maps:
            sections.append(
                self._section("cpmap", list(maps.values()), lambda: cpmap.section(self._run(maps)))
            )
        if growth:
            sections.append(
                self._section(
                    "worst_case",
                    list(growth.values()),
                    lambda: worst_case.section(self._run(growth), self.colours),
                )
            )
        return sections

    def _assessment(
        self,
        sections: Sequence[Section],
        trialled: Mapping[str, Sequence[Trialled]],
        best: Mapping[str, int],
    ) -> Assessment:
        strip, least = self._least(trialled, best)
        ordered = sorted(sections, key=lambda s: FRAMEWORKS.index(s.key))
        told = [line for section in ordered for line in section.warnings]
        rows = {section.key: section.tables[0].rows for section in ordered}
        speakers = 0 if self.inputs.original is None else self.inputs.original.n_speakers
        enrols = {
            (name, attack.label): attack.enrols
            for name, found in self.attacks.items()
            for attack in found
        }
        made = cards(
            self.inputs.safeguards,
            rows,
            colours=self.colours,
            length=self.config.legal.lengths[0],
            enrols=enrols,
            told=told,
            speakers=speakers,
        )
        document = Document(
            (
                *(Row({"framework": "speakers", **r.conditions}, r.estimates)
                  for block in least for r in block.rows),
                *(Row({"framework": s.key, **r.conditions}, r.estimates)
                  for s in ordered for r in s.rows),
            ),
            inputs=self.inputs.sources,
            conditions={"assessment": self.config.title},
            notes=tuple(said for card in made for said in card.sentences),
            warnings=(
                *self.inputs.notes,
                *(f"{s.title}: {w}" for s in ordered for w in s.warnings),
            ),
            seed=self.config.seed,
        )  # fmt: skip
        facts = self._facts()
        return Assessment(
            self.config,
            facts,
            self._line(),
            tuple(card for card in made if card.numbers),
            strip,
            least,
            tuple(ordered),
            document,
            self.colours,
            _date(self.config),
            self.work.cache.folder,
            self.work.reused,
            self.work.computed,
        )

    def _least(
        self, trialled: Mapping[str, Sequence[Trialled]], best: Mapping[str, int]
    ) -> tuple[Drawn | None, tuple[TableBlock, ...]]:
        chosen = {n: found[best[n]] for n, found in trialled.items() if n != ORIGINAL}
        if not chosen:
            return None, ()
        strips = [
            Strip(n, one.label, one.speakers, one.identified, one.recordings, 1 / one.candidates)
            for n, one in chosen.items()
        ]
        rows = [
            Row(
                {"safeguard": name, "attacker": one.label, "speaker": speaker},
                (
                    Estimate(
                        "identified",
                        float(one.identified[i]),
                        "%",
                        chance=1 / one.candidates,
                        n={"recordings": int(one.recordings[i])},
                        params={"candidates": one.candidates},
                        trials=one.trials,
                    ),
                ),
            )
            for name, one in chosen.items()
            for i, speaker in enumerate(one.speakers)
        ]
        rows.sort(key=lambda row: -float(row.estimates[0].value))
        table = TableBlock("Every speaker, the least protected first", tuple(rows), folded=True)
        return Drawn.of(speaker_strip(strips, colours=self.colours)), (table,)

    def _facts(self) -> tuple[tuple[str, str], ...]:
        inputs, config = self.inputs, self.config
        facts = []
        if inputs.original is not None:
            test = next(iter(self.attacks.values()))[0]
            facts += [
                ("Speakers", f"{inputs.original.n_speakers:,}"),
                ("Utterances", f"{len(inputs.original):,}"),
                ("Enrolled", f"{len(test.enrol):,} utterances"),
                ("Attacked", f"{len(test.test):,} utterances"),
            ]
        if inputs.safeguards:
            facts.append(("Safeguards", ", ".join(inputs.safeguards)))
        if self.attacks:
            facts.append(("Attackers", "; ".join(
                f"{a.name} (enrols {a.enrol}, {' and '.join(a.backends)})"
                for a in config.attackers
            )))  # fmt: skip
        for name, scores in self.rooms.items():
            counts = scores.counts
            facts.append((
                f"Scores {name}",
                f"{counts['target']:,} target and {counts['nontarget']:,} nontarget trials,"
                f" {len(scores.systems)} system{'s' if len(scores.systems) > 1 else ''}",
            ))  # fmt: skip
        return tuple(facts)

    def _line(self) -> str:
        inputs = self.inputs
        parts = []
        if inputs.original is not None:
            parts.append(
                f"{inputs.original.n_speakers:,} speakers, {len(inputs.original):,} utterances"
            )
        if inputs.safeguards:
            count = len(inputs.safeguards)
            named = ", ".join(inputs.safeguards)
            parts.append(f"{count} safeguard{'s' if count > 1 else ''} ({named})")
        if self.attacks:
            named = ", ".join(a.name for a in self.config.attackers)
            parts.append(f"{len(self.config.attackers)} attackers ({named})")
        if self.rooms:
            parts.append(f"{len(self.rooms)} score table{'s' if len(self.rooms) > 1 else ''}")
        return "; ".join(parts) + "."


def _date(config: Config) -> str | None:
    """The date of the config, or of SOURCE_DATE_EPOCH; never that of the clock."""
    if config.date is not None:
        return config.date
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not epoch.isdigit():
        return None
    return datetime.datetime.fromtimestamp(int(epoch), datetime.UTC).date().isoformat()
