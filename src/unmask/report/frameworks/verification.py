"""Detection metrics: of evaluations and comparisons, of attacks as systems, of score tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from unmask import figures as charts
from unmask.assessment import (
    ATTACKERS,
    HALVES,
    ORIGINAL,
    HalfNumbers,
    Results,
    Study,
    Trialled,
    result_among,
    shown_sets,
    strongest,
)
from unmask.engine import (
    Comparison,
    Evaluation,
    ForensicValidation,
    GroupGaps,
    Roc,
    SpoofRoc,
    curves,
    det_bands,
    negated_notices,
)
from unmask.errors import InputError
from unmask.estimate import Estimate, Notice
from unmask.privacy import FEW_PEOPLE
from unmask.privacy.legal import why_no_matrix
from unmask.report.documents import Row, figures_of
from unmask.report.headline import clear
from unmask.report.section import (
    Choice,
    Section,
    TableBlock,
    colours_of,
    group_blocks,
    group_choice,
    group_figures,
    noted,
)
from unmask.report.table import MODELS, label
from unmask.report.words import note, shown
from unmask.stress import ImpostorProtocol, cp_maps, worst_case_study

POPULATION = 100_000
_GRID = 50
MOST_SETS = 4
_FIRST = ("eer", "min_dcf", "min_cllr", "d_ece", "l_w", "tag")
_SIGNS = ("inverted", "negated")
"""Codes of notices that scores of the other sign tell more."""
_ERRORS = ("eer", "min_dcf", "act_dcf", "cllr", "d_sys", "tpr_at_fpr", "eer_raw")


@figures_of.register(Evaluation)
def _(evaluation: Evaluation, *, p_target: float = 0.01) -> list[charts.Figure]:
    """Draw histograms, DET, PAV, ECE and calibration; of counted trials the DET alone."""
    scores = evaluation.scores
    rocs = {result.system: result.roc for result in evaluation if result.group is None}
    spoofed = _spoof_figures(evaluation, rocs, p_target)
    if scores is not None:
        rocs = {name: roc for name, roc in rocs.items() if name in scores.systems}
    colours = charts.system_colours(list(rocs))
    det_curves = {name: curves.det_curve(roc, p_target=p_target) for name, roc in rocs.items()}
    counted = [charts.det(det_curves, colours=colours), *group_figures(evaluation.gaps)]
    if scores is None:
        return counted
    trials = {n: (scores.targets(n), scores.nontargets(n)) for n in rocs}

    def each(curve: Callable[..., Any], *of: Mapping[str, Roc]) -> dict[str, Any]:
        return {name: curve(*trial, *(roc[name] for roc in of)) for name, trial in trials.items()}

    return [
        *spoofed,
        charts.score_histograms(each(curves.histogram, rocs)),
        *counted,
        charts.pav_map(each(curves.pav_map, rocs), colours=colours),
        charts.ece_profile(each(curves.ece_profile, rocs), colours=colours),
        charts.calibration_plot(each(curves.reliability), colours=colours),
    ]


def _spoof_figures(
    evaluation: Evaluation, rocs: Mapping[str, Roc], p_target: float
) -> list[charts.Figure]:
    """DETs of three classes, a-DCF over thresholds and paths of t-EER, where spoof trials count."""
    spoofed = {name: roc for name, roc in rocs.items() if isinstance(roc, SpoofRoc)}
    if not spoofed or evaluation.spoof_cost is None:
        return []
    drawn, costs, paths = [], {}, dict[tuple[str, str], curves.SpoofCurve]()
    for number, (system, roc) in enumerate(spoofed.items()):
        sides = zip(charts.SPOOF_SHADES, (roc, roc.spf, roc.sasv), strict=True)
        lines = {name: curves.det_curve(side, p_target=p_target) for name, side in sides}
        made = charts.det(lines, colours=charts.SPOOF_SHADES, hull=False, spoofs_of=system)
        drawn.append(made.called(f"det_spoof_{number + 1}" if number else None))
        costs[system] = curves.cost_curve(roc, evaluation.spoof_cost)
        cms = [one.params["cm"] for one in evaluation[system].estimates if one.metric == "t_eer"]
        paths |= {(system, cm): curves.tandem_path(roc, cm) for cm in map(str, cms)}
    return [*drawn, charts.a_dcf_curves(costs), *([charts.t_eer_paths(paths)] if paths else [])]


@figures_of.register(ForensicValidation)
def _(result: ForensicValidation, *, tippett: str = "consensus") -> list[charts.Figure]:
    """Tippett plot (``tippett="above"``: share at or above for both), PAV, ECE, calibration."""
    both = result.scores.targets(), result.scores.nontargets()
    name = next(iter(result.scores.systems))
    return [
        charts.tippett_plot(curves.tippett(*both, above=tippett == "above")),
        charts.pav_map({name: curves.pav_map(*both, result.roc)}, log10=True),
        charts.ece_profile({name: curves.ece_profile(*both, result.roc)}, log10=True),
        charts.calibration_plot({name: curves.reliability(*both)}),
    ]


@figures_of.register(Comparison)
def _(comparison: Comparison) -> list[charts.Figure]:
    """DETs with bands, differences, delta C-P map, worst case, as far as the trials allow."""
    scores = comparison.scores
    labels = [label(row.first).partition(" [")[0] for row in comparison.differences]
    differences = charts.difference_intervals(comparison, labels)
    if scores is None:
        return [differences]
    names = list(scores.systems)
    lines = dict(zip(names, map(curves.det_curve, comparison.rocs), strict=True))
    interval = comparison.differences[0].interval
    drawn: dict[str, Any] = (
        {} if interval is None else {"level": interval.level, "seed": comparison.seed}
    )
    bands = det_bands(scores, **drawn) if drawn else {}
    figures = [charts.det(lines, bands=bands, hull=False).called("compare_det"), differences]
    figures += group_figures(comparison.gaps)
    with suppress(InputError):
        maps = cp_maps(scores, systems=names, grid=_GRID, replicates=0)
        figures.append(charts.delta_cp_map_figure(maps.deltas, privacy=comparison.privacy))
    with suppress(InputError):
        how = {name: ImpostorProtocol(system=name, skip_single=True) for name in names}
        studies = {
            name: worst_case_study(scores, population=POPULATION, protocol=own, **drawn)
            for name, own in how.items()
        }
        figures.append(charts.worst_case_of_systems(studies, privacy=comparison.privacy))
    return figures


@figures_of.register(GroupGaps)
def _(gaps: GroupGaps) -> list[charts.Figure]:
    """The groups beside all."""
    return group_figures([gaps])


def _leaders(trialled: Sequence[Trialled], metric: str) -> tuple[Trialled, ...]:
    """The strongest variant of each attacker by a metric, in the order of the attackers."""
    names = dict.fromkeys(tried.attacker for tried in trialled)
    return tuple(strongest([o for o in trialled if o.attacker == name], metric) for name in names)


def section(study: Study, results: Results) -> Section:
    """Error rates of the attacks, and of the systems whose scores were given."""
    trialled = study.trialled
    groups: Mapping[str, Evaluation] = results["groups"]
    halves: Mapping[str, HalfNumbers] = results[HALVES]
    det_curve = partial(curves.det_curve, p_target=study.config.verification.p_target[0])
    chosen = {name: strongest(variants, "eer") for name, variants in trialled.items()}
    figures: list[charts.Figure | Choice] = []
    blocks: list[TableBlock] = []
    notices: list[Notice] = []
    answer = []
    for name, tried in chosen.items():
        eer = result_among(tried, trialled[name], "eer", halves.get(name))["eer"]
        answer.append(
            f"{named(tried)}: equal error rate of {MODELS} {shown(eer, 1, scale=100)} %"
            f"{of_many(eer)}; 50 % is chance."
        )
    if chosen:
        rates = ", ".join(f"{n} {100 * tried.value('eer'):.1f} %" for n, tried in chosen.items())
        title = f"Equal error rate of the strongest attacker, {MODELS}: {rates}"
        lines = {name: det_curve(tried.result.roc) for name, tried in chosen.items()}
        colours = {name: colours_of(study)[name] for name in chosen}
        figures.append(charts.det(lines, colours=colours).called("det_attacks", title))
        title, said = "Attackers as verification systems", f"{note('chosen')} {note('two_rates')}"
        blocks += variant_blocks(title, trialled, "eer", _ERRORS, halves, wide=2, note=said)
        by = []
        for name, r in ((name, result) for name, one in groups.items() for result in one):
            where = {"safeguard": name, "attacker": r.system, "group": str(r.group)}
            where["trials"] = MODELS
            by.append(Row(where, ordered(r.estimates, ("eer", "d_ece", "l_w", "tag"))))
        blocks.append(TableBlock("Strongest attacker, by group", by))
        few = few_people_notices(trialled, "eer")
        notices += [*notices_of(trialled, "eer"), *few, *noted(groups)]
    tables: Mapping[str, Evaluation] = results["tables"]
    blocks += _list_blocks(study, results)
    figures += _list_figures(study, tables, det_curve)
    given = {name: one for name, one in tables.items() if name not in study.lists}
    for number, (name, evaluation) in enumerate(given.items(), start=1):
        whole = [result for result in evaluation if result.group is None]
        best = min(whole, key=lambda result: float(result["eer"].value))
        rate = f"equal error rate {100 * float(best['eer'].value):.1f} %"
        title = f"{name}: {rate}"
        if evaluation.margins:
            sure = clear(evaluation.margins.values())
            least = (
                f"{best.system} errs least" if sure else f"no clear winner, {best.system} lowest"
            )
            title = f"{name}: {least}, {rate}"
        lines = {result.system: det_curve(result.roc) for result in whole}
        figures.append(charts.det(lines).called(f"det_scores_{number}", title))
        blocks += _table_blocks(name, evaluation, results["risks"].get(name, {}))
        answer += [
            f"{name}, {result.system}: equal error rate {shown(result['eer'], 2, scale=100)} %."
            for result in whole
        ]
    gaps = [
        replace(gap, system=f"{name}, {gap.system}", conditions={of: name, who: gap.system})
        for some, of, who in ((groups, "safeguard", "attacker"), (tables, "table", "system"))
        for name, evaluation in some.items()
        for gap in evaluation.gaps
    ]
    figures += group_choice(gaps)
    blocks += group_blocks(gaps)
    notices = list(dict.fromkeys([*notices, *noted(tables), *_without_linkability(study)]))
    return Section("verification", answer, figures, blocks, notices)


def _without_linkability(study: Study) -> Iterator[Notice]:
    """Why lists of scores have no Linkability, a sentence for those of one reason."""
    names: dict[str, list[str]] = {}
    for name in study.lists:
        if reason := why_no_matrix(study.tables[name]):
            names.setdefault(reason, []).append(name)
    for reason, some in names.items():
        more = f" and {len(some) - 2:,} more lists" if len(some) > 2 else ""
        yield Notice("no-linkability", ", ".join(some[:2]) + more, f"no Linkability: {reason}")


def _list_blocks(study: Study, results: Results) -> list[TableBlock]:
    """The lists of safeguards of which scores were given, by system, set and attacker."""
    first, rest, sexes, differences = [], [], [], []
    for name, (system, given, part) in study.lists.items():
        where = {"system": system, "set": given.set or ""}
        where["attacker"] = ATTACKERS[given.extractor, part]
        for one in results["tables"].get(name, ()):
            if one.group is not None:
                sexes.append(Row({**where, "group": one.group}, ordered(one.estimates, _FIRST)))
                continue
            risks = results["risks"].get(name, {}).get(one.system, ())
            first.append(Row(where, (*ordered(one.estimates, _FIRST), *risks)))
            rest.append(Row(where, [e for e in one.estimates if e.metric not in _FIRST]))
        if name in results["differences"]:
            differences.append(Row(where, results["differences"][name]))
    base = study.config.table.baseline
    return [
        TableBlock("Systems, sets and attackers", first),
        TableBlock(
            f"EER and Linkability above those of {base}",
            differences,
            note=note("baseline", of=base),
        ),
        TableBlock("Systems, sets and attackers: each sex", sexes, folded=True),
        TableBlock("Systems, sets and attackers: all metrics", rest, folded=True),
    ]


def _list_figures(
    study: Study, tables: Mapping[str, Evaluation], det_curve: Callable[[Roc], Any]
) -> list[charts.Figure]:
    """A DET of each shown set, up to four: systems under their best informed attackers."""
    shown = shown_sets(given.set or "" for _, given, _ in study.lists.values())
    ranks = list(ATTACKERS)
    lists = sorted(
        study.lists.items(), key=lambda one: -ranks.index((one[1][1].extractor, one[1][2]))
    )
    figures = []
    for number, name in enumerate(shown if len(shown) <= MOST_SETS else (), start=1):
        lines = {
            ORIGINAL if part == "oo" else system: det_curve(tables[table].results[0].roc)
            for table, (system, given, part) in lists
            if (given.set or "") == name and table in tables
        }
        colours = charts.system_colours(lines, original=ORIGINAL)
        title = f"{name or 'Scores'}: systems under their best informed attacker"
        figures.append(charts.det(lines, colours=colours).called(f"det_sets_{number}", title))
    return figures


def named(one: Trialled) -> str:
    """Safeguard and attacker, of unprotected speech the attacker alone."""
    return one.label if one.name == one.safeguard else one.name


def of_many(estimate: Estimate) -> str:
    """How many attacks the strongest was chosen from, and what luck reads."""
    luck = estimate.luck
    if luck is None:
        return ""
    return f" (strongest of {luck.attacks} attacks; {estimate.by_luck})"


def notices_of(trialled: Mapping[str, Sequence[Trialled]], metric: str) -> list[Notice]:
    """What the evaluation of the strongest variant of each attacker warns of."""
    return [
        notice if notice.code == "not-fitted" else notice.about(tried.name)
        for variants in trialled.values()
        for tried in _leaders(variants, metric)
        for notice in (*negated_notices(tried.result.roc), *tried.notices)
        if notice.code not in (_SIGNS[:1] if _beyond_luck(variants, metric) else _SIGNS)
    ]


def few_people_notices(trialled: Mapping[str, Sequence[Trialled]], metric: str) -> Iterator[Notice]:
    """Say of fewer than fifteen people what the interval of the strongest attack may lack."""
    for name, variants in trialled.items():
        attack = strongest(variants, metric)
        if len(attack.speakers) < FEW_PEOPLE and attack.result[metric].interval is not None:
            yield Notice("few-for-strongest", name, note("few_for_strongest"), "note")


def _beyond_luck(variants: Sequence[Trialled], metric: str) -> bool:
    """Whether the strongest attack reads more than luck, as far as that is known."""
    luck = result_among(strongest(variants, metric), variants, metric)[metric].luck
    return luck is None or luck.beyond


def variant_blocks(
    title: str,
    trialled: Mapping[str, Sequence[Trialled]],
    metric: str,
    metrics: Sequence[str],
    halves: Mapping[str, HalfNumbers],
    *,
    note: str,
    wide: int | None = None,
) -> list[TableBlock]:
    """The strongest variant of each attacker; further metrics and other variants folded."""

    def rows(every: Iterable[Trialled], metrics: Sequence[str]) -> list[Row]:
        made = []
        for tried in every:
            name = tried.safeguard
            result = result_among(tried, trialled[name], metric, halves.get(name))
            where = {"safeguard": name, "attacker": tried.label, "trials": MODELS}
            made.append(Row(where, ordered(result.estimates, metrics)))
        return made

    first = [tried for variants in trialled.values() for tried in _leaders(variants, metric)]
    others = [tried for variants in trialled.values() for tried in variants if tried not in first]
    rest = () if wide is None else metrics[wide:]
    return [
        TableBlock(title, rows(first, metrics[:wide]), note=note),
        TableBlock("All detection metrics", rows(first if rest else (), rest), folded=True),
        TableBlock(f"{title}: other variants tried", rows(others, metrics[:wide]), folded=True),
    ]


def _table_blocks(
    name: str, evaluation: Evaluation, risks: Mapping[str, tuple[Estimate, ...]]
) -> list[TableBlock]:
    first, rest = [], []
    for result in evaluation:
        where = {"table": name, "system": result.system}
        where |= {} if result.group is None else {"group": result.group}
        attacked = risks.get(result.system, ()) if result.group is None else ()
        first.append(Row(where, (*ordered(result.estimates, _FIRST), *attacked)))
        rest.append(Row(where, [e for e in result.estimates if e.metric not in _FIRST]))
    margins = [
        Row({"table": name, "system": system}, [margin])
        for system, margin in evaluation.margins.items()
    ]
    return [
        TableBlock(name, first),
        TableBlock(f"{name}: above the lowest EER", margins, note=note("margins")),
        TableBlock(f"{name}: all metrics", rest, folded=True),
    ]


def ordered(estimates: Sequence[Estimate], metrics: Sequence[str]) -> tuple[Estimate, ...]:
    """The estimates of these metrics, in their order."""
    return tuple(e for metric in metrics for e in estimates if e.metric == metric)
