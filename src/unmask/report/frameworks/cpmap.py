"""C-P maps of systems, of the attacks and of the score tables (Li 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from unmask import figures as charts
from unmask.assessment import Results, Study, strongest
from unmask.engine import Evaluation
from unmask.estimate import Estimate
from unmask.report.documents import Row, figures_of
from unmask.report.documents.cpmap import map_rows
from unmask.report.section import Section, TableBlock, noted, worst_first
from unmask.report.table import MODELS
from unmask.report.words import note, with_level
from unmask.stress import Contour, CpAssessment, CpMap, DeltaCpMap, contour

LEVELS = {"eer": (0.01, 0.02, 0.05, 0.1, 0.2, 0.5), "min_dcf": (0.1, 0.2, 0.5, 0.8)}


def _contours(assessment: CpAssessment) -> dict[str, list[Contour]]:
    levels = LEVELS[assessment.metric.name]
    return {name: [contour(cp, level) for level in levels] for name, cp in assessment.maps.items()}


@figures_of.register(CpAssessment)
def _(assessment: CpAssessment, *, further: Sequence[CpAssessment] = ()) -> list[charts.Figure]:
    """Draw every map once, then trial bias, delta maps (``further`` beside) and the roadmap.

    A roadmap holds all maps. Where there is none, or where trial configs are marked on the maps,
    maps stand side by side on one scale.
    """
    every = {(f"_{one.metric.name}" if further else ""): one for one in (assessment, *further)}
    figures = []
    for end, one in every.items():
        is_marked = any(one.positions.values())
        if one.roadmap is None or is_marked:
            maps = charts.cp_map_figure(one.maps, contours=_contours(one), positions=one.positions)
            figures.append(maps.called(f"cp_map{end}"))
    for number, (name, bias) in enumerate(assessment.bias.items(), start=1):
        if len(bias) > 1:
            title, drawn = f"Trial bias: {name} on other trials", f"trial_bias_{number}"
            figures.append(charts.trial_bias_figure(bias).called(drawn, title))
    if assessment.deltas:
        paired = zip(*(assessed.deltas for assessed in every.values()), strict=True)
        figures.append(charts.delta_cp_map_figure([delta for pair in paired for delta in pair]))
    return figures + [
        charts.roadmap_figure(assessed.roadmap).called(f"cp_roadmap{end}")
        for end, assessed in every.items()
        if assessed.roadmap is not None
    ]


figures_of.register(CpMap, lambda result: [charts.cp_map_figure({"system": result})])
figures_of.register(DeltaCpMap, lambda result: [charts.delta_cp_map_figure([result])])


def _known_rates(
    study: Study, evaluated: Mapping[str, Evaluation]
) -> dict[tuple[str, str], Estimate]:
    """Raw EERs by table and system: those of attacks stand under no table."""
    chosen = {name: strongest(tried, "eer").result for name, tried in study.trialled.items()}
    raw = {("", name): result["eer_raw"] for name, result in chosen.items()}
    for name, table in evaluated.items():
        raw |= {(name, one.system): one["eer_raw"] for one in table if one.group is None}
    return raw


def section(study: Study, results: Results) -> Section:
    given: Mapping[str, CpAssessment] = results["maps"]
    names = study.inputs.safeguards
    assessments = {n: replace(one, maps=worst_first(one.maps, names)) for n, one in given.items()}
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
        maps, _, compared = map_rows(result, table=name)
        for row in (same(name, one) for one in maps):
            by = _attacker(study, name, row.conditions["system"])
            more = {"attacker": by, "trials": MODELS} if by else {}
            rows.append(replace(row, conditions={**row.conditions, **more}))
        deltas += compared
        worst, cp = max(result.maps.items(), key=lambda m: m[1].hardest_decile - m[1].full)
        if not any((one.values > 0).any() for one in result.maps.values()):
            answer.append(f"{name}: no errors to map.")
            continue
        rate = "EER" if cp.metric.name == "eer" else "minDCF"
        hard, every = (
            f"{100 * value:.1f} %" if rate == "EER" else f"{value:.3f}"
            for value in (cp.hardest_decile, cp.full)
        )
        title = f"{name}, {worst}: {rate} goes from {every} to {hard} on the hardest trials"
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
    answer[:0] = [
        f"{', '.join(row.conditions[k] for k in ('system', 'attacker') if k in row.conditions)}:"
        f" raw EER {with_level(full)} on all trials, {with_level(hardest)} on the hardest tenth of"
        " each kind."
        for row in rows
        for full, *_, hardest in [row.estimates]
        if full.metric == "eer_raw"
    ]
    hardest = [
        Row({"table": name, "trials": kind, "who": who}, [share])
        for name, people in results.get("people", {}).items()
        for kind, who, share in people
    ]
    blocks = [
        TableBlock("C-P maps in numbers", rows, note=note("two_rates")),
        TableBlock("Who errs less", deltas, folded=True),
        TableBlock("Who stands in the hardest tenth", hardest, folded=True, note=note("hardest")),
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
