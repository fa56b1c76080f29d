"""From a config to an assessment: all frameworks that the data allow, step by step."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from unmask.base import few_speakers
from unmask.engine import speaker_count
from unmask.errors import InputError
from unmask.estimate import Estimate
from unmask.figures import Strip, system_colours
from unmask.figures.speakers import speaker_strip
from unmask.report.cache import Cache, Step, Told, Work, cache_of
from unmask.report.config import FRAMEWORKS, ORIGINAL, Config
from unmask.report.document import Document, Row
from unmask.report.drawn import Drawn
from unmask.report.frameworks import cpmap, legal, similarity, verification, worst_case
from unmask.report.frameworks.attacks import (
    NO_EXTRACTOR,
    Attack,
    Trialled,
    Variant,
    attacks_of,
    group_step,
    joined_scores,
    strongest,
    trial_step,
)
from unmask.report.headline import Card, Notice, cards, weak_control
from unmask.report.inputs import Inputs, read_inputs
from unmask.report.section import Section, TableBlock
from unmask.run import Where, by_default
from unmask.trials import Scores

K = TypeVar("K")
ATTACKS = "Attacks"
ONE_PERSON = "recordings of one person: there is nobody else to draw"


@dataclass(frozen=True, eq=False)
class Assessment:
    """Everything a report says. ``facts`` tell what was tested, as (name, value).

    ``attackers`` are those that were run against some safeguard, which config may name more of.
    ``failures`` tell what could not be computed; the rest of the report stands.
    ``kept`` is the folder of finished steps and figures, which holds names and voiceprints.
    """

    config: Config
    attackers: tuple[str, ...]
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
    failures: tuple[Notice, ...] = ()
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
    allow_code: bool = False,
    told: Told | None = None,
) -> Assessment:
    """Run what the config names; finished steps are kept in ``cache`` and reused.

    That folder belongs to ``output`` and lies outside it (:func:`unmask.report.cache.cache_of`
    unless given), since steps hold names and voiceprints. ``on``, ``workers`` and ``state`` say
    where scores are counted, as in :func:`unmask.cross_pairing`. ``allow_code`` lets the
    config name Python to import as an encoder. Nothing but the cache is written:
    :func:`unmask.report.writing.write_report` does the rest.
    """
    where = Where(on, workers, state)
    folder = Path(output)
    work = Work(Cache(Path(cache) if cache is not None else cache_of(folder)), told=told)
    inputs = read_inputs(config, work, base=folder.resolve(), allow_code=allow_code)
    wanted = config.frameworks or FRAMEWORKS
    with by_default(where):
        return _Run(config, inputs, work, frozenset(wanted)).result()


class _Run:
    """One run: steps are planned first, so that it is known how much is left.

    A step that its data do not allow costs itself alone; a section without any step that worked is
    left out, and the report says why.
    """

    def __init__(self, config: Config, inputs: Inputs, work: Work, wanted: frozenset[str]) -> None:
        self.attacks = attacks_of(config, inputs)
        self.config, notes = legal.with_fitting_lengths(config, self.attacks.of)
        self.inputs = replace(inputs, notes=(*inputs.notes, *notes))
        self.work, self.wanted = work, wanted
        names = [*([ORIGINAL] if inputs.original is not None else []), *inputs.safeguards]
        self.colours = system_colours(names, original=ORIGINAL)
        self.rooms = {**inputs.tables}
        for name, sets in inputs.sets.items():
            self.rooms |= {f"{name} {part.upper()}": scores for part, scores in sets.items()}
        self.failures: dict[str, list[str]] = {}

    def result(self) -> Assessment:
        config, inputs, wanted = self.config, self.inputs, self.wanted
        sweeps = self._per_attack(legal.sweep_step) if "legal" in wanted else {}
        trials = self._per_attack(trial_step) if self._trials else {}
        probes = legal.inference_steps(config, inputs) if sweeps else {}
        consistency = legal.consistency_steps(config, self.attacks.consistency) if sweeps else {}
        matrices = similarity.similarity_steps(config, inputs) if "similarity" in wanted else {}
        within = similarity.session_steps(config, inputs) if "similarity" in wanted else {}
        tables = self._table_steps() if wanted & {"verification", "zebra"} else {}
        runs = (
            verification.distortion_steps(config, inputs, self.attacks.of)
            if "zebra" in wanted
            else {}
        )
        groups: tuple[Mapping[Any, Step], ...] = (
            sweeps, trials, probes, consistency, matrices, within, tables, runs,
        )  # fmt: skip
        late = 2.0 * len(self.rooms) + 2.0 * bool(self.attacks.of)
        self.work.expect([step for group in groups for step in group.values()])
        self.work.total += late
        done = self._run("trials", trials)
        trialled: dict[str, list[Trialled]] = {}
        for (name, _), found in done.items():
            trialled.setdefault(name, []).extend(found.variants)
        tried = [step for key, step in trials.items() if key in done]
        sections: list[Section] = []
        if sweeps:
            swept, probed = self._run("legal", sweeps), self._run("legal", probes)
            stable = self._run("legal", consistency)
            kept = _kept((sweeps, swept), (probes, probed), (consistency, stable))
            sections += self._section(
                "legal",
                kept if swept else [],
                lambda: legal.section(
                    legal.LegalResults(swept, probed, stable, config), self.colours
                ),
            )
        if matrices:
            found_matrices, sessions = (
                self._run("similarity", matrices),
                self._run("similarity", within),
            )
            sections += self._section(
                "similarity",
                _kept((matrices, found_matrices), (within, sessions)) if found_matrices else [],
                lambda: similarity.section(found_matrices, sessions, self.colours),
            )
        if "zebra" in wanted and trials:
            distortions = self._run("zebra", runs)
            sections += self._section(
                "zebra",
                [*tried, *_kept((runs, distortions))] if tried else [],
                lambda: verification.zebra_section(
                    trialled, distortions, sorted(inputs.keyless), self.colours
                ),
            )
        if "verification" in wanted and (trials or tables):
            by = self._group_steps(trialled)
            grouped, tabled = self._run("verification", by), self._run("verification", tables)
            sections += self._section(
                "verification",
                [*tried, *_kept((tables, tabled), (by, grouped))],
                lambda: verification.section(trialled, tabled, grouped, self.colours),
            )
        self.work.total -= late
        sections += self._stress(trialled)
        if not sections:
            told = next((line for lines in self.failures.values() for line in lines), None)
            raise InputError(told or "frameworks: none of those named can be run on these data")
        return self._assessment(sections, trialled)

    def _run(self, key: str, steps: Mapping[K, Step]) -> dict[K, Any]:
        """Results of the steps that their data allow; why others failed is kept for the report."""
        found = {}
        for name, step in steps.items():
            try:
                found[name] = self.work.run(step)
            except InputError as error:
                self.failures.setdefault(key, []).append(f"{step.what}: {error}")
        return found

    def _section(
        self, key: str, steps: Sequence[Step], make: Callable[[], Section]
    ) -> list[Section]:
        """A section with its figures, kept under the keys of the steps it is made from."""
        if not steps:
            return []
        step = Step(
            f"charts and tables of {key}",
            [one.key for one in steps],
            {"colours": self.colours, "steps": [one.what for one in steps]},
            lambda progress: make().drawn(),
            weight=1.0,
        )
        self.work.expect([step])
        return list(self._run(key, {key: step}).values())

    @property
    def _trials(self) -> bool:
        return bool(self.wanted & {"verification", "zebra", "cpmap", "worst_case"})

    def _per_attack(self, make: Callable[[Attack, Config], Step]) -> dict[tuple[str, str], Step]:
        return {
            (name, attack.attacker): make(attack, self.config)
            for name, found in self.attacks.of.items()
            for attack in found
        }

    def _table_steps(self) -> dict[str, Step]:
        return verification.table_steps(self.config, replace(self.inputs, tables=self.rooms))

    def _strongest(
        self, trialled: Mapping[str, Sequence[Trialled]]
    ) -> dict[str, tuple[Attack, Variant]]:
        """The attack with the lowest equal error rate on each safeguard."""
        best = {name: strongest(found, "eer") for name, found in trialled.items()}
        return {
            name: (
                next(a for a in self.attacks.of[name] if a.attacker == one.attacker),
                one.variant,
            )
            for name, one in best.items()
        }

    def _group_steps(self, trialled: Mapping[str, Sequence[Trialled]]) -> dict[str, Step]:
        """The strongest attack on each safeguard, by the groups of a column."""
        by = self.config.verification.by
        if by is None:
            return {}
        steps = {
            name: group_step(attack, variant, self.config, by)
            for name, (attack, variant) in self._strongest(trialled).items()
        }
        self.work.expect(list(steps.values()))
        return steps

    def _stress(self, trialled: Mapping[str, Sequence[Trialled]]) -> list[Section]:
        """C-P maps and worst case of the strongest attacks and of the tables."""
        if not self.wanted & {"cpmap", "worst_case"}:
            return []
        rooms: dict[str, Scores] = {}
        references: dict[str, Sequence[str]] = {}
        for names, table in joined_scores(self._strongest(trialled)):
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
        drawn, grown = self._run("cpmap", maps), self._run("worst_case", growth)
        return [
            *self._section("cpmap", _kept((maps, drawn)), lambda: _two_rates(cpmap.section(drawn))),
            *self._section(
                "worst_case",
                _kept((growth, grown)),
                lambda: worst_case.section(grown, self.colours),
            ),
        ]

    def _assessment(
        self, sections: Sequence[Section], trialled: Mapping[str, Sequence[Trialled]]
    ) -> Assessment:
        strip, least = self._least(trialled)
        ordered = sorted(sections, key=lambda s: FRAMEWORKS.index(s.key))
        rows = {section.key: section.rows for section in ordered}
        failures = self._failures()
        known = {
            (name, attack.label(variant)): attack.description
            for name, found in self.attacks.of.items()
            for attack in found
            for variant in attack.variants
        }
        made = cards(
            self.inputs.safeguards,
            rows,
            colours=self.colours,
            known=known,
            notices=self._notices(rows.get("legal", ())),
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
            notes=tuple(f"{card.safeguard}: {said}" for card in made for said in card.sentences),
            warnings=(
                *self.inputs.notes,
                *(notice.sentence for notice in failures),
                *(f"{n.subject}: {n.sentence}" for card in made for n in card.notices),
                *(f"{s.title}: {w}" for s in ordered for w in s.warnings),
            ),
            seed=self.config.seed,
        )  # fmt: skip
        return Assessment(
            self.config,
            self.attacks.names,
            self._facts(),
            self._line(),
            tuple(card for card in made if card.numbers),
            strip,
            least,
            tuple(ordered),
            document,
            self.colours,
            _date(self.config),
            self.work.cache.folder,
            failures,
            self.work.reused,
            self.work.computed,
        )

    def _failures(self) -> tuple[Notice, ...]:
        """What could not be computed, and why."""
        return tuple(
            Notice("not-computed", key, f"not computed: {line}")
            for key, lines in self.failures.items()
            for line in lines
        )

    def _notices(self, legal_rows: Sequence[Row]) -> list[Notice]:
        """What has to stand right beside the numbers of a safeguard."""
        found = [
            Notice("attacker-not-run", name, f"{attacker}: {why}")
            for (name, attacker), why in self.attacks.missing.items()
        ]
        for name in self.inputs.safeguards:
            found += [Notice("weak-control", name, line) for line in weak_control(legal_rows)]
            speakers = self._speakers(name)
            few = None if speakers is None else few_speakers(speakers)
            if few is not None:
                found.append(Notice("few-speakers", name, few))
        return found

    def _speakers(self, name: str) -> int | None:
        """How many people a safeguard was tested on; None where scores do not tell."""
        if name in self.inputs.protected:
            return self.inputs.protected[name].n_speakers
        return speaker_count(self.inputs.sets[name]["oo"])

    def _least(
        self, trialled: Mapping[str, Sequence[Trialled]]
    ) -> tuple[Drawn | None, tuple[TableBlock, ...]]:
        """Every speaker under the attack that links most recordings."""
        chosen = {
            name: strongest(found, "identified")
            for name, found in trialled.items()
            if name != ORIGINAL
        }
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
                        no_interval=ONE_PERSON,
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
        inputs = self.inputs
        facts = []
        if inputs.original is not None and self.attacks.of:
            control = self.attacks.of[ORIGINAL][0]
            facts += [
                ("Speakers", f"{inputs.original.n_speakers:,}"),
                ("Utterances", f"{len(inputs.original):,}"),
                ("Enrolled", f"{len(control.enrol):,} utterances"),
                ("Attacked", f"{len(control.test):,} utterances"),
            ]
        if inputs.safeguards:
            facts.append(("Safeguards", ", ".join(inputs.safeguards)))
        if self.attacks.of:
            facts += [(f"Attacker {name}", self._told_of(name)) for name in self.attacks.names]
            facts.append(("Extractor", NO_EXTRACTOR))
        for name, scores in self.rooms.items():
            counts = scores.counts
            facts.append((
                f"Scores {name}",
                f"{counts['target']:,} target and {counts['nontarget']:,} nontarget trials,"
                f" {len(scores.systems)} system{'s' if len(scores.systems) > 1 else ''}",
            ))  # fmt: skip
        return tuple(facts)

    def _told_of(self, attacker: str) -> str:
        """What an attacker enrols, trains on and compares with, and whom it could not attack."""
        one = next(a for a in self.config.attackers if a.name == attacker)
        text = f"enrols {DATA[one.enrol]}; {' and '.join(one.backends)}"
        if set(one.backends) != {"cosine"}:
            text += f", trained on {' and '.join(DATA[data] for data in one.train)}"
        missing = [name for name, who in self.attacks.missing if who == attacker]
        return f"{text}. Not run on {', '.join(missing)}" if missing else text

    def _line(self) -> str:
        inputs = self.inputs
        parts = []
        if inputs.original is not None:
            parts.append(
                f"{inputs.original.n_speakers:,} speakers, {len(inputs.original):,} utterances"
            )
        if inputs.safeguards:
            parts.append(_counted("safeguard", inputs.safeguards))
        if self.attacks.names:
            parts.append(_counted("attacker", self.attacks.names))
        if self.rooms:
            parts.append(f"{len(self.rooms)} score table{'s' if len(self.rooms) > 1 else ''}")
        return "; ".join(parts) + "."


DATA = {
    "original": "original speech",
    "own": "speech protected by the attacker's own run",
    "related": "speech protected by a related safeguard",
}


def _counted(what: str, names: Sequence[str]) -> str:
    return f"{len(names)} {what}{'s' if len(names) > 1 else ''} ({', '.join(names)})"


def _two_rates(section: Section) -> Section:
    """C-P maps with a note on the other equal error rate of the report."""
    first, *others = section.tables
    note = f"{first.note} {verification.TWO_RATES}".strip()
    return replace(section, tables=(replace(first, note=note), *others))


def _kept(*groups: tuple[Mapping[Any, Step], Mapping[Any, Any]]) -> list[Step]:
    """Steps that have a result."""
    return [step for steps, found in groups for name, step in steps.items() if name in found]


def _date(config: Config) -> str | None:
    """The date of the config, or of SOURCE_DATE_EPOCH; never that of the clock."""
    if config.date is not None:
        return config.date
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not epoch.isdigit():
        return None
    return datetime.datetime.fromtimestamp(int(epoch), datetime.UTC).date().isoformat()
