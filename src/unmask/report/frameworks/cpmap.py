"""C-P maps of systems, of the attacks and of the score tables (Li 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from unmask import figures as charts
from unmask.engine import Evaluation
from unmask.estimate import Estimate
from unmask.report.config import ORIGINAL
from unmask.report.documents import Document, Row, document, figures_of
from unmask.report.frameworks.study import Framework, Plan, Results, Study, strongest
from unmask.report.frameworks.verification import table_steps
from unmask.report.section import Section, TableBlock, note, noted, with_level
from unmask.report.table import MODELS
from unmask.stress import Contour, CpAssessment, CpMap, DeltaCpMap, contour, cp_maps

LEVELS = {"eer": (0.01, 0.02, 0.05, 0.1, 0.2, 0.5), "min_dcf": (0.1, 0.2, 0.5, 0.8)}


@document.register
def _(assessment: CpAssessment, *, further: Sequence[CpAssessment] = ()) -> Document:
    """One row per map, per trial config placed on it, and per comparison.

    ``further`` assessments are of the same trials by another metric; every row then names its own.
    """
    every = (assessment, *further)
    parts = [_rows(one, several=bool(further)) for one in every]
    return Document(
        [row for kinds in zip(*parts, strict=True) for rows in kinds for row in rows],
        tables=[rows for kinds in parts for rows in kinds],
        inputs=assessment.sources,
        notes=list(dict.fromkeys(note for one in every for note in _notes(one))),
        warnings=list(dict.fromkeys(line for one in every for line in one.warnings)),
        seed=assessment.seed,
    )


def _rows(
    assessment: CpAssessment, *, several: bool = False, **where: str
) -> tuple[list[Row], list[Row], list[Row]]:
    """Maps, trial configs placed on them, and comparisons."""
    by = {"by": assessment.metric.name} if several else {}
    maps = [
        Row({**where, "system": name, **by}, _raw(assessment.estimates_of(name)))
        for name in assessment.maps
    ]
    configs, deltas = [], []
    for name, placed in assessment.positions.items():
        for position in placed:
            at = {"system": name, "trials": position.name, **by}
            configs.append(Row(at, _raw(assessment.position_estimates(name, position))))
    for delta in assessment.deltas:
        at = {**where, "systems": f"{delta.reference} → {delta.test}", **by}
        deltas.append(Row(at, assessment.delta_estimates(delta)))
    return maps, configs, deltas


def _raw(estimates: Sequence[Estimate]) -> list[Estimate]:
    """The EER of a map is that of the ROC itself, which has another name than that of the hull."""
    return [replace(e, metric="eer_raw") if e.metric == "eer" else e for e in estimates]


def _notes(assessment: CpAssessment) -> list[str]:
    cp = next(iter(assessment.maps.values()))
    by = "by each system's own scores"
    if len(assessment.references) == 1:
        by = f"by {assessment.references[0]}"
    elif assessment.references:
        of = {"rank": "mean rank", "mean": "mean score"}[assessment.combine]
        by = f"by the {of} of {', '.join(assessment.references)}"
    notes = [note("cp_trials", cp=cp, by=by, trials=assessment.trials)]
    if cp.intervals is not None:
        made = cp.intervals.mean
        notes.append(note("cp_cells", made=made, level=100 * made.level, grid=cp.intervals.grid))
    return notes


def _contours(assessment: CpAssessment) -> dict[str, list[Contour]]:
    levels = LEVELS[assessment.metric.name]
    return {name: [contour(cp, level) for level in levels] for name, cp in assessment.maps.items()}


@figures_of.register(CpAssessment)
def _(assessment: CpAssessment, *, further: Sequence[CpAssessment] = ()) -> list[charts.Figure]:
    """The maps on one scale, each with its trial configs, trial bias, delta maps, the roadmap.

    ``further`` assessments are of the same trials by another metric: their delta maps stand beside
    those of the first.
    """
    every = {(f"_{one.metric.name}" if further else ""): one for one in (assessment, *further)}
    figures = []
    for end, one in every.items():
        lines = _contours(one)
        if len(one.maps) > 1:
            figures.append(charts.cp_map_figure(one.maps, contours=lines).called(f"cp_map{end}"))
        on_it: Any = {"contours": lines, "positions": one.positions}
        for number, (name, cp) in enumerate(one.maps.items(), start=1):
            title, drawn = f"C-P map of {name}", f"cp_map{end}_{number}"
            figures.append(charts.cp_map_figure({name: cp}, **on_it).called(drawn, title))
    for number, (name, bias) in enumerate(assessment.bias.items(), start=1):
        if len(bias) > 1:
            title, drawn = f"Trial bias: {name} on other trials", f"trial_bias_{number}"
            figures.append(charts.trial_bias_figure(bias).called(drawn, title))
    if assessment.deltas:
        paired = zip(*(one.deltas for one in every.values()), strict=True)
        figures.append(charts.delta_cp_map_figure([delta for pair in paired for delta in pair]))
    return figures + [
        charts.roadmap_figure(one.roadmap).called(f"cp_roadmap{end}")
        for end, one in every.items()
        if one.roadmap is not None
    ]


figures_of.register(CpMap, lambda result: [charts.cp_map_figure({"system": result})])
figures_of.register(DeltaCpMap, lambda result: [charts.delta_cp_map_figure([result])])


def _later(study: Study) -> Plan:
    """Maps of all systems of a table; with the original among them, each safeguard against it.

    Without references all compared systems order the trials alike, by the mean of their ranks.
    """
    config, steps = study.config, {}
    for table in study.compared():
        others = [name for name in table.systems if name != ORIGINAL]
        options = {
            **config.cpmap.model_dump(),
            "level": config.intervals.level,
            "seed": config.seed,
            "references": list(table.references),
            "deltas": [(ORIGINAL, n) for n in others] if ORIGINAL in table.systems else None,
        }
        weight = 1 + table.size * len(table.systems) * config.cpmap.replicates / 3e6
        steps[table.name] = table.step("C-P maps", cp_maps, options, weight)
    return {"maps": steps}


def _steps(study: Study) -> Plan:
    """The raw EER of all trials is that of verification, with the same interval."""
    return {"tables": table_steps(study)}


def _known_rates(
    study: Study, evaluated: Mapping[str, Evaluation]
) -> dict[tuple[str, str], Estimate]:
    """Raw EERs by table and system: those of attacks stand under no table."""
    chosen = {name: strongest(tried, "eer").result for name, tried in study.trialled.items()}
    raw = {("", name): one["eer_raw"] for name, one in chosen.items()}
    for name, table in evaluated.items():
        raw |= {(name, one.system): one["eer_raw"] for one in table if one.group is None}
    return raw


def _section(study: Study, results: Results) -> Section:
    assessments: Mapping[str, CpAssessment] = results["maps"]
    raw = _known_rates(study, results["tables"])

    def same(name: str, row: Row) -> Row:
        """The row with the raw EER that verification tells too in place of its own."""
        table = name if name in results["tables"] else ""
        first, *rest = row.estimates
        if first.metric == "eer_raw":
            known = raw.get((table, row.conditions["system"]), first)
            first = replace(known if known.interval else first, metric="eer_raw")
        return replace(row, estimates=(first, *rest))

    figures: list[charts.Figure] = []
    rows: list[Row] = []
    deltas: list[Row] = []
    answer: list[str] = []
    for number, (name, result) in enumerate(assessments.items(), start=1):
        worst, cp = max(result.maps.items(), key=lambda m: m[1].hardest_decile - m[1].full)
        hard, every = (
            f"{100 * value:.1f} %" if cp.metric.name == "eer" else f"{value:.3f}"
            for value in (cp.hardest_decile, cp.full)
        )
        title = f"{name}: hard trials cost most under {worst}, {hard} instead of {every}"
        lines, drawn = _contours(result), f"cp_map_{number}"
        figures.append(charts.cp_map_figure(result.maps, contours=lines).called(drawn, title))
        answer += [line for delta in result.deltas for line in _everywhere(delta)]
        mixed = [delta for delta in result.deltas if not _everywhere(delta)]
        if mixed:
            won = "; ".join(
                f"{delta.test} errs less than {delta.reference} in {100 * delta.win:.0f} % of cells"
                for delta in mixed
            )
            drawn = f"delta_cp_map_{number}"
            figures.append(charts.delta_cp_map_figure(mixed).called(drawn, f"{name}: {won}"))
        maps, _, compared = _rows(result, table=name)
        for row in (same(name, one) for one in maps):
            by = _attacker(study, name, row.conditions["system"])
            more = {"attacker": by, "trials": MODELS} if by else {}
            rows.append(replace(row, conditions={**row.conditions, **more}))
        deltas += compared
    answer[:0] = [
        f"{', '.join(row.conditions[k] for k in ('system', 'attacker') if k in row.conditions)}:"
        f" raw EER {with_level(full)} on all trials, {with_level(hardest)} on the hardest tenth of"
        " each kind."
        for row in rows
        for full, *_, hardest in [row.estimates]
        if full.metric == "eer_raw"
    ]
    blocks = [
        TableBlock("C-P maps in numbers", rows, note=note("two_rates")),
        TableBlock("Who errs less", deltas, folded=True),
    ]
    return Section("cpmap", answer, figures, blocks, noted(assessments))


def _attacker(study: Study, table: str, system: str) -> str:
    """Who attacks in a table of attacks; nobody in one that was given."""
    if table in study.tables:
        return ""
    attack, variant = study.strongest()[system]
    return attack.label(variant)


def _everywhere(delta: DeltaCpMap) -> list[str]:
    """A sentence in place of a map of one colour."""
    for share, word in ((delta.lose, "more"), (delta.win, "fewer")):
        if share == 1:
            return [f"{delta.test}: {word} errors than {delta.reference} in every cell of the map."]
    return []


FRAMEWORK = Framework("cpmap", _section, steps=_steps, later=_later, trials=True, main="maps")
