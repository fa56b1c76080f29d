"""From a config to an assessment: all frameworks that the data allow, step by step."""

from __future__ import annotations

import datetime
import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

from unmask.assessment import (
    COMPARED,
    ORIGINAL,
    Config,
    Done,
    Listener,
    Results,
    Run,
    Step,
    Study,
    Work,
    by_label,
    cache_of,
    duration,
    expected,
    for_display,
    labelled,
    needs,
    read_study,
    strongest,
)
from unmask.base import Part, Tabular, estimate_row, grouped
from unmask.errors import InputError
from unmask.estimate import Estimate, Notice
from unmask.figures import Figure, Strip, speaker_strip
from unmask.privacy.legal import known_backend
from unmask.report import levels
from unmask.report.documents import Document, Row, document, figures_of
from unmask.report.frameworks import SECTIONS
from unmask.report.frameworks.legal import EACH, LegalResults, tables
from unmask.report.frameworks.utility import plane_of
from unmask.report.headline import (
    BELIEVED,
    Card,
    cards,
    extractor_note,
    find,
    limits,
    next_steps,
    numbers_of,
    of_tables,
    untried,
)
from unmask.report.overview import overview
from unmask.report.section import Section, TableBlock, colours_of, worst_first
from unmask.report.standings import conclusions, result_for_rank, standings
from unmask.report.words import labels, note
from unmask.run import Place, beside, current_place, private_files, run_on, within
from unmask.scoring import BACKENDS

ONE_PERSON = "recordings of one person: there is nobody else to draw"
_WORTH, _MOST = 20.0, 4
"""Seconds of work that other processes are started for, and how many there are at most."""


@dataclass(frozen=True, eq=False, repr=False)
class Assessment(Tabular):
    """Everything a report says. ``facts`` tell what was tested, as (name, value).

    ``attackers`` are those that were run against some safeguard, which config may name more of.
    ``ranks`` are result files in a challenge's form, by system.
    ``tried`` has, by attacker, what it needs in practice and its largest Linkability, or why it was
    not run, of every safeguard.
    ``lines`` conclude, the worst first, ``limits`` and ``next_steps`` are sentences.
    ``notices`` are those on what was read, ``failures`` tell what could not be computed; the rest
    of the report stands.
    ``kept`` is the folder of finished steps and figures, which holds names and voiceprints.
    ``asked`` is the config as it was given, ``config`` what was run of it.
    """

    config: Config
    asked: Config
    attackers: Sequence[str]
    facts: Sequence[tuple[str, str]]
    line: str
    extractor: str
    tried: Sequence[tuple[str, str, Sequence[tuple[str, Estimate | None, str]]]]
    lines: Sequence[Card]
    limits: Sequence[str]
    next_steps: Sequence[str]
    plane: Figure | None
    strip: Figure | None
    least: Sequence[TableBlock]
    sections: Sequence[Section]
    document: Document
    overview: Document
    ranks: Mapping[str, str]
    colours: Mapping[str, str]
    notices: Sequence[Notice]
    failures: Sequence[Notice]
    date: str | None
    kept: Path
    reused: int
    computed: int

    @property
    def cards(self) -> list[Card]:
        """The lines that have numbers, one of each safeguard."""
        return [line for line in self.lines if line.numbers]

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Every number of the report."""
        return tuple(estimate for row in self.document.rows for estimate in row.estimates)

    @property
    def parts(self) -> dict[str, Part]:
        """The numbers of each safeguard."""
        parts = grouped((row.conditions.get("safeguard"), row) for row in self.document.rows)
        some = {name: [e for row in rows for e in row.estimates] for name, rows in parts.items()}
        return {name: Part(tuple(estimates)) for name, estimates in some.items() if name}

    def rows(self) -> list[dict[str, Any]]:
        """Every number with the conditions it holds under."""
        every = [pair for row in self.document.rows for pair in row.of_estimates()]
        names = dict.fromkeys(name for where, _ in every for name in where)
        return [estimate_row(e, **{n: where.get(n) for n in names}) for where, e in every]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to be careful about, in words, of all sections."""
        return tuple(self.document.warnings)

    def __repr__(self) -> str:
        """The tables and sentences of the terminal."""
        from unmask.report.writing import summary_table

        return summary_table(self).rstrip()

    def write(self, folder: str | Path, *, file_copy: bool = False) -> Path:
        """Write the report folder, with a filing copy if asked for; gives the path of the page."""
        from unmask.report.writing import write_report

        return write_report(self, folder, file_copy=file_copy)

    @property
    def all_figures(self) -> list[Figure]:
        """Every figure of the report."""
        first = [figure for figure in (self.plane, self.strip) if figure is not None]
        return [*first, *(f for section in self.sections for f in section.all_figures)]


@document.register
def _(assessment: Assessment) -> Document:
    """All rows of the report."""
    return assessment.document


@figures_of.register(Assessment)
def _(assessment: Assessment) -> list[Figure]:
    return assessment.all_figures


@private_files()
def run_assessment(
    config: Config,
    output: str | Path,
    *,
    cache: str | Path | None = None,
    allow_code: bool = False,
    listener: Listener | None = None,
    say: Callable[[str], None] | None = None,
    processes: int = 1,
) -> Assessment:
    """Run what the config names; finished steps are kept in ``cache`` and reused.

    That folder belongs to ``output`` and lies outside it (:func:`unmask.assessment.cache_of`
    unless given), since steps hold names and voiceprints; where others can read it, a private one
    is made inside it. ``say`` hears first how long all will take. Nothing but the cache is written.
    As many as ``processes`` share the steps where that saves time and memory allows it.
    """
    folder = Path(output)
    kept = Path(cache) if cache is not None else cache_of(folder)
    work = Work(kept, report=folder.resolve(), listener=listener, quick=config.quick)
    recorded = any(voices.audio for voices in (config.original, *config.safeguards))
    dry = Work(kept, dry=True, quick=config.quick)
    if say is not None and recorded:
        plain = config.model_copy(update={"redact": False})
        planned = read_study(plain, dry, folder, allow_code=allow_code, say=say)
        say(f"the whole assessment takes about {duration(expected(planned, dry))}")
    study = read_study(config, work, folder, allow_code=allow_code)
    labels = study.inputs.labels
    if listener is not None and labels is not None:
        work.listener = lambda what, done, total: listener(labels.text(what), done, total)
    small = processes > 1 and study.light and not any(one.token for one in BACKENDS.values())
    shared = small and current_place() == Place(workers=current_place().workers)
    seconds = expected(study, dry) if shared or (say is not None and not recorded) else 0.0
    turns = min(processes, _MOST) if shared and seconds >= _WORTH else 1
    if say is not None and not recorded:
        say(f"the whole assessment takes about {duration(seconds / turns)}")
    place = current_place() if turns == 1 else Place(workers=max(1, processes // turns))
    run = Run(study, work, turns=turns)
    how = config, folder, kept, allow_code, turns, place.workers
    with within(place), beside(turns - 1, _share, *how) as others:
        sections = list(_sections(run))
        lost = sum(process.exitcode not in (0, None) for process in others)
    if say is not None and lost:
        say(f"{lost} of {turns} processes ended early: the others did their part")
    if sections and study.config.levels:
        rows = {section.key: section.rows for section in sections}
        sections.insert(0, _finished(study, levels.section(study, rows)))
    if not sections:
        none = "frameworks: none of those named can be run on these data"
        if study.lists and not study.attacks:
            none += (
                ": lists of scores take verification, similarity, zebra, cpmap and worst_case;"
                " their Linkability is part of verification"
            )
        raise InputError(run.reason or none)
    return _assessment(run, sections)


def check_inputs(
    config: Config, *, allow_code: bool = False, cache: str | Path | None = None
) -> list[str]:
    """Read and check what a config names as :func:`run_assessment` does, short of computing
    anything, and say what there is, what will be run, what will not be tried, and how long it
    takes with what ``cache`` holds.
    """
    from unmask.speech.encoders import load_encoder, runs_code

    for part in (config.original, config.training, *config.safeguards):
        if part.audio is not None and (allow_code or not runs_code(part.encoder)):
            load_encoder(part.encoder)
    work = Work(Path(cache or cache_of(Path())), dry=True, quick=config.quick)
    plain = config.model_copy(update={"redact": False})
    lines: list[str] = []
    study = read_study(plain, work, Path(), allow_code=allow_code, say=lines.append)
    inputs = study.inputs
    voices = {"original": inputs.original} if inputs.original is not None else {}
    for key, speech in {
        **voices,
        **{f"safeguards.{n}": x for n, x in inputs.protected.items()},
    }.items():
        asked = {"attributes": tuple(config.legal.attributes), "side": config.legal.side}
        for what, names in asked.items() if speech.dimension > 1 else ():
            lacking = [name for name in names if name not in speech.columns]
            if lacking and "legal" in (config.frameworks or ("legal",)):
                known = ", ".join(speech.columns) or "none"
                raise InputError(f"legal.{what}: {key}: no column {lacking[0]}, found {known}")
        lines.append(f"{key}: {len(speech):,} recordings of {speech.n_speakers:,} speakers")
    for name, scores in study.tables.items():
        counts = scores.counts
        lines.append(f"{name}: {counts['target']:,} target and {counts['nontarget']:,} nontarget")
    for name, attacks in study.attacks.items():
        who = (f"{run.attacker} ({', '.join(run.backends)})" for run in attacks)
        lines += [] if name == ORIGINAL else [f"attackers of {name}: {'; '.join(who)}"]
    seconds = expected(study, work)
    lines += [note("quick")] if config.quick else []
    lines += [note("check_redacted")] if config.redact else []
    return [*lines, *untried(study), f"A run takes about {duration(seconds)}."]


def _share(
    turn: int,
    config: Config,
    folder: Path,
    kept: Path,
    allow_code: bool,
    turns: int,
    workers: int | None,
) -> None:
    """Steps of a run of another process, from another one on."""
    with warnings.catch_warnings(), private_files(), run_on(workers=workers):
        warnings.simplefilter("ignore")  # the other run hears them
        work = Work(kept, quick=config.quick)
        study = read_study(config, work, folder, allow_code=allow_code)
        Run(study, work, turn=turn, turns=turns).planned()


def _sections(run: Run) -> Iterator[Section]:
    """A section of each framework, kept under the keys of its steps and what its words rest on."""
    for done in run.frameworks():
        if done.key == "legal":
            run.study = _worst_first(run.study, done.results)
        study = run.study
        parts = {"redact", "safeguards", "attackers", done.key}
        words: dict[str, Any] = {"config": study.config.model_dump(mode="json", include=parts)}
        if study.inputs.labels is not None:
            words["labels"] = study.inputs.labels.token
        step = Step(
            f"charts and tables of {done.key}",
            [made.key for made in done.steps],
            {"colours": colours_of(study), "steps": [made.what for made in done.steps], **words},
            partial(_section, study, done),
            weight=0.3,
        )
        run.work.expect([step])
        yield from run.compute(done.key, {done.key: step}).values()


def _section(study: Study, done: Done) -> Section:
    names, labels = study.inputs.safeguards, study.inputs.labels
    results = {group: worst_first(some, names) for group, some in done.results.items()}
    if labels is not None:
        results = labelled(results, labels)
        study = for_display(study)
    return _finished(study, SECTIONS[done.key](study, results))


def _worst_first(study: Study, results: Results) -> Study:
    """The study with its safeguards in the order of the first screen, which all sections follow."""
    told = takewhile(lambda block: not block.folded, tables(LegalResults(study.config, results)))
    legal = [row for block in told for row in block.rows]
    risk = {
        name: [one.share(float(one.shown.value)) for one in numbers_of({"legal": legal}, name)]
        for name in study.inputs.speech
    }
    names = sorted(risk, key=lambda name: risk[name], reverse=True)
    given = {safeguard.name: safeguard for safeguard in study.config.safeguards}
    made = copy(study)
    made.config = study.config.model_copy(
        update={"safeguards": tuple(worst_first(given, names).values())}
    )
    made.inputs = replace(study.inputs, speech=worst_first(study.inputs.speech, names))
    made.attacks = worst_first(study.attacks, names)
    made.trialled = worst_first(study.trialled, names)
    made.missing = worst_first(study.missing, names)
    return made


def _finished(study: Study, made: Section) -> Section:
    return _of_quick_look(made) if study.config.quick else made.plain()


def _of_quick_look(section: Section) -> Section:
    """A section of a quick look: no figures, and every number says so in its signature."""

    def marked(row: Row) -> Row:
        params = ({**estimate.params, "quick": True} for estimate in row.estimates)
        both = zip(row.estimates, params, strict=True)
        return replace(row, estimates=[replace(estimate, params=more) for estimate, more in both])

    tables = [replace(table, rows=list(map(marked, table.rows))) for table in section.tables]
    return replace(section, figures=[], tables=tables)


def _assessment(run: Run, sections: Sequence[Section]) -> Assessment:
    study = for_display(run.study)
    config, inputs = study.config, study.inputs
    strip, least = (None, []) if config.quick else _least(study)
    rows = {section.key: section.rows for section in sections}
    every = standings(study, rows)
    noticed = [notice for section in sections for notice in section.notices]
    made = [*cards(study, rows, noticed), *conclusions(study, rows, every)]
    limiting = [*([note("quick")] if config.quick else []), *limits(made, study, sections)]
    told = ("not-read", *COMPARED, *BELIEVED)
    notices = [notice for notice in inputs.notices if notice.code not in told]
    table = overview(study, rows, every)
    notices += [Notice("another-run", "", sentence) for sentence in table.warnings]
    found = {"speakers": [row for block in least for row in block.rows], **rows}
    return Assessment(
        config,
        study.asked or config,
        attackers=study.attackers,
        facts=_facts(study),
        line=_line(study),
        extractor=extractor_note(inputs) if study.attacks else "",
        tried=list(_tried(study, rows.get("legal", ()))),
        lines=[*(c for c in made if c.verdict), *of_tables(rows.get("verification", ()))],
        limits=limiting,
        next_steps=list(next_steps(made, study)),
        plane=plane_of(study, rows),
        strip=strip,
        least=least,
        sections=sections,
        document=Document(
            [
                Row({"framework": key, **row.conditions}, row.estimates)
                for key, some in found.items()
                for row in some
            ],
            inputs=inputs.sources,
            conditions={"assessment": config.title, **({"run": "quick"} if config.quick else {})},
            notes=[line for card in made for line in card.lines],
            warnings=[
                *(notice.line for notice in notices),
                *(notice.sentence for notice in run.failures),
                *limiting,
                *(f"{s.words['title']}: {line}" for s in sections for line in s.warnings),
            ],
            seed=config.seed,
        ),
        overview=table,
        ranks={
            name: result_for_rank(
                [standing for standing in every if standing.system == name], rates, _date(config)
            )
            for name, rates in inputs.stated.items()
        },
        colours=colours_of(study),
        notices=notices,
        failures=run.failures,
        date=_date(config),
        kept=run.work.folder,
        reused=run.work.reused,
        computed=run.work.computed,
    )


def _least(study: Study) -> tuple[Figure | None, list[TableBlock]]:
    """Every speaker under the attack that links most recordings."""
    strips, rows = [], []
    for name, variants in study.trialled.items():
        if name == ORIGINAL:
            continue
        one = by_label(strongest(variants, "identified"), study)
        chance = 1 / one.candidates
        strips.append(Strip(name, one.label, one.speakers, one.identified, one.recordings, chance))
        about: dict[str, Any] = {"chance": chance, "trials": one.trials, "no_interval": ONE_PERSON}
        about["params"] = {"candidates": one.candidates}
        for speaker, share, number in zip(
            one.speakers, one.identified, one.recordings, strict=True
        ):
            n = {"recordings": int(number)}
            where = {"safeguard": name, "attacker": one.label, "speaker": speaker}
            rows.append(Row(where, [Estimate("identified", float(share), "%", n=n, **about)]))
    if not strips:
        return None, []
    rows.sort(key=lambda row: -float(row.estimates[0].value))
    table = TableBlock("Every speaker, the least protected first", rows, folded=True)
    counts = ", ".join(f"{s.system} {int((s.risk >= 0.5).sum())}" for s in strips)
    title = (
        f"From a single recording, among all {max(len(s.speakers) for s in strips):,}:"
        f" people recognised in at least half of their recordings: {counts}"
    )
    return speaker_strip(strips, colours=colours_of(study)).called(title=title).plain(), [table]


def _facts(study: Study) -> list[tuple[str, str]]:
    inputs, attacks = study.inputs, study.attacks
    facts = []
    if inputs.original is not None and attacks:
        control = attacks[ORIGINAL][0]
        facts += [
            ("Speakers", f"{inputs.original.n_speakers:,}"),
            ("Utterances", f"{len(inputs.original):,}"),
            ("Enrolled", f"{len(control.data.enrol):,} utterances"),
            ("Attacked", f"{study.utterances} utterances of {study.people} people"),
        ]
    if inputs.safeguards:
        facts.append(("Safeguards", ", ".join(inputs.safeguards)))
    if attacks:
        facts += [(f"Attacker {name}", _attacker(study, name)) for name in study.attackers]
        facts.append(("Extractor", extractor_note(inputs)))
    if lists := study.lists:
        sets = dict.fromkeys(given.set for _, given, _ in lists.values() if given.set)
        of = f" of the sets {', '.join(sets)}" if sets else ""
        facts.append(("Scores", f"{_counted(lists, 'list')}{of}"))
    for name, scores in study.inputs.tables.items():
        counts = scores.counts
        trials = f"{counts['target']:,} target and {counts['nontarget']:,} nontarget trials"
        facts.append((f"Scores {name}", f"{trials}, {_counted(scores.systems, 'system')}"))
    return facts


def _tried(
    study: Study, rows: Sequence[Row]
) -> Iterator[tuple[str, str, list[tuple[str, Estimate | None, str]]]]:
    """Every attacker of the config that was run, or could not be."""
    found = find(rows, "linkability", point=EACH)
    for attacker in study.config.attackers if found else ():
        name, risks = attacker.name, []
        for safeguard in study.inputs.safeguards:
            own = (m for m in found if m.conditions["safeguard"] == safeguard)
            risk = next((m.estimate for m in own if m.attacker.startswith(f"{name} (")), None)
            risks.append((safeguard, risk, study.missing.get((safeguard, name), "not run")))
        learnt = any(speech.learnt for speech in study.inputs.speech.values())
        free = all(known_backend(backend).is_free for backend in attacker.backends)
        yield name, needs(attacker, taught=attacker.trains or (learnt and not free)), risks


def _attacker(study: Study, attacker: str) -> str:
    """What an attacker enrols, trains on and compares with, and whom it could not attack."""
    one = next(a for a in study.config.attackers if a.name == attacker)
    run = (a.backends for a in study.every.values() if a.attacker == attacker)
    used = dict.fromkeys(backend for backends in run for backend in backends)
    held = labels("data")
    text = f"enrols {held[one.enrol]}; {' and '.join(used)}"
    data = " and ".join(held[data] for data in one.train)
    if one.trains:
        text += f"; extractor and back-ends trained on {data} of other people"
    elif not all(known_backend(name).is_free for name in used):
        learnt = any(speech.learnt for speech in study.inputs.speech.values())
        text += f", trained on {data}{' of other people' if learnt else ''}"
    missing = [name for name, who in study.missing if who == attacker]
    return f"{text}. Not run on {', '.join(missing)}" if missing else text


def _line(study: Study) -> str:
    speech, tables = study.inputs.original, study.inputs.tables
    parts = []
    if speech is not None:
        everyone = f"{speech.n_speakers:,}"
        fewer = f"{study.people} of " if study.attacks and study.people != everyone else ""
        parts.append(f"{fewer}{everyone} speakers, {len(speech):,} utterances")
    every = {"safeguard": study.inputs.safeguards, "attacker": study.attackers}
    for what, names in every.items():
        parts += [_counted(names, what)] if names else []
    parts += [_counted(tables, "score table")] if tables else []
    parts += [_counted(study.lists, "list") + " of scores"] if study.lists else []
    return f"{'. '.join(parts)}."


def _counted(things: Collection[str], what: str) -> str:
    return f"{len(things)} {what}{'s' if len(things) > 1 else ''}"


def _date(config: Config) -> str | None:
    """The date of the config, or of SOURCE_DATE_EPOCH; never that of the clock."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    if config.date is not None or not epoch.isdigit():
        return config.date
    return datetime.datetime.fromtimestamp(int(epoch), datetime.UTC).date().isoformat()
