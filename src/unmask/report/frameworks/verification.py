"""Detection metrics: of evaluations and comparisons, of attacks as systems, of score tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from unmask.engine import Battery, Evaluation, curves, evaluate
from unmask.estimate import Estimate, Notice
from unmask.figures import (
    ORIGINAL as GREY,
    Figure,
    calibration_plot,
    det,
    ece_profile,
    pav_map,
    roc_hull,
    score_histograms,
    system_colours,
)
from unmask.privacy.legal import matrix_risks
from unmask.report.cache import Step
from unmask.report.documents import Row, figures_of
from unmask.report.frameworks.study import Framework, Plan, Study
from unmask.report.frameworks.trialled import Groups, Trialled, group_step, leaders, strongest
from unmask.report.section import TWO_RATES, Method, Section, TableBlock, shown
from unmask.trials import Scores

_ERRORS = ("eer", "min_dcf", "act_dcf", "cllr", "d_sys", "tpr_at_fpr", "eer_raw")
CHOSEN = (
    "The strongest variant of each attacker (back-end, centred or not, either sign), chosen on the"
    " very trials that are shown: what is left to chance in the choice errs towards more risk."
)


@figures_of.register
def _(evaluation: Evaluation, *, p_target: float = 0.01) -> list[Figure]:
    """Histogram, DET, ROC hull, PAV map, ECE profile and calibration plot over all trials.

    Of trials that were counted and not kept (no ``scores``) DET and ROC hull can be drawn.
    """
    scores = evaluation.scores
    rocs = {result.system: result.roc for result in evaluation if result.group is None}
    colours = system_colours(list(rocs))
    det_curves = {name: curves.det_curve(roc, p_target=p_target) for name, roc in rocs.items()}
    counted = [det(det_curves, colours=colours), roc_hull(det_curves, colours=colours)]
    if scores is None:
        return counted
    trials = {n: (scores.targets(n), scores.nontargets(n), roc) for n, roc in rocs.items()}
    return [
        score_histograms({name: curves.histogram(*one) for name, one in trials.items()}),
        *counted,
        pav_map({name: curves.pav_map(*one) for name, one in trials.items()}, colours=colours),
        ece_profile(
            {name: curves.ece_profile(*one) for name, one in trials.items()}, colours=colours
        ),
        calibration_plot(
            {name: curves.reliability(*one[:2]) for name, one in trials.items()}, colours=colours
        ),
    ]


def _evaluated(
    scores: Scores,
    *,
    p_target: Sequence[float],
    fpr: Sequence[float],
    by: str | None,
    **options: Any,
) -> Evaluation:
    """A score table; ``by`` groups it where it has that column."""
    battery = Battery(p_target=tuple(p_target), fpr=tuple(fpr))
    grouped = by if by is not None and _has(scores, by) else None
    return replace(evaluate(scores, by=grouped, battery=battery, **options), scores=None)


def _has(scores: Scores, column: str) -> bool:
    return column in scores.columns or f"enrol_{column}" in scores.columns


def _steps(study: Study) -> Plan:
    """Every score table."""
    how = {**study.config.trials, "by": study.config.verification.by}
    return {
        "tables": {
            name: Step.of(
                f"verification of {name}",
                _evaluated,
                scores,
                weight=1 + len(scores) * len(scores.systems) * how["replicates"] / 5e6,
                **how,
            )
            for name, scores in study.tables.items()
        },
        "risks": {
            name: Step.of(
                f"Linkability and Singling Out of {name}",
                matrix_risks,
                scores,
                **study.config.drawn,
            )
            for name, scores in study.tables.items()
        },
    }


def _later(study: Study) -> Plan:
    """The strongest attack on each safeguard, by the groups of a column."""
    by = study.config.verification.by
    strongest = study.strongest() if by is not None else {}
    return {
        "groups": {
            name: group_step(attack, variant, study.config, str(by))
            for name, (attack, variant) in strongest.items()
        }
    }


def named_colours(systems: Mapping[str, Trialled], colours: Mapping[str, str]) -> dict[str, str]:
    """The safeguard's colour for each system of a chart."""
    return {label: colours.get(one.safeguard, GREY) for label, one in systems.items()}


def _section(study: Study, results: Mapping[str, Mapping[Any, Any]]) -> Section:
    """Error rates of the attacks, and of the systems whose scores were given."""
    trialled = study.trialled
    tables: Mapping[str, Evaluation] = results["tables"]
    groups: Mapping[str, Groups] = results["groups"]
    det_curve = partial(curves.det_curve, p_target=study.config.verification.p_target[0])
    chosen = {name: strongest(found, "eer") for name, found in trialled.items()}
    figures: list[Figure] = []
    blocks = []
    notices: list[Notice] = []
    if chosen:
        rates = ", ".join(f"{n} {100 * one.value('eer'):.1f} %" for n, one in chosen.items())
        figures.append(
            det(
                {name: det_curve(one.result.roc) for name, one in chosen.items()},
                colours=named_colours(chosen, study.colours),
                name="det_attacks",
                title=f"Equal error rate of the strongest attacker: {rates}",
            )
        )
        attackers = variant_blocks(
            "Attackers as verification systems", trialled, "eer", _ERRORS, wide=2
        )
        blocks += [replace(attackers[0], note=f"{CHOSEN} {TWO_RATES}"), *attackers[1:]]
        notices += notices_of(trialled, "eer")
        by = tuple(
            Row(
                {"safeguard": name, "attacker": one.label, "group": str(r.group)},
                ordered(r.estimates, ("eer", "d_ece", "l_w", "tag")),
            )
            for name, one in groups.items()
            for r in one.results
        )
        if by:
            blocks.append(TableBlock("Strongest attacker, by group", by))
            notices += [one.about(n) for n, some in groups.items() for one in some.notices]
    for number, (name, found) in enumerate(tables.items(), start=1):
        figures.append(
            det(
                {r.system: det_curve(r.roc) for r in found if r.group is None},
                name=f"det_scores_{number}",
                title=f"{name}: {_best(found)}",
            )
        )
        blocks += _table_blocks(name, found, results["risks"].get(name, {}))
        notices += [notice.about(name) for notice in found.notices]
    answer = [
        f"{one.name}: equal error rate {shown(one.result['eer'], 1, scale=100)} %"
        f"{of_many(len(trialled[name]))}; 50 % is a coin toss."
        for name, one in chosen.items()
    ]
    answer += [
        f"{name}, {r.system}: equal error rate {shown(r['eer'], 2, scale=100)} %."
        for name, found in tables.items()
        for r in found
        if r.group is None
    ]
    return Section(
        key="verification",
        title="Verification errors",
        question="How often does the recogniser err, at every threshold?",
        answer=tuple(answer),
        figures=tuple(figures),
        tables=tuple(blocks),
        notices=tuple(dict.fromkeys(notices)),
        method=_VERIFICATION,
        citation="ISO/IEC 19795-1 (error rates); Brümmer and du Preez 2006 (C_llr);"
        " Gomez-Barrero et al. 2017, Maouche et al. 2020 (D_sys).",
    )


def _best(found: Evaluation) -> str:
    """Who errs least."""
    rates = {r.system: float(r["eer"].value) for r in found if r.group is None}
    best = min(rates, key=lambda system: rates[system])
    return f"{best} errs least, equal error rate {100 * rates[best]:.1f} %"


def of_many(tried: int) -> str:
    """How many attacks the strongest was chosen from."""
    return f" (strongest of {tried} attacks)" if tried > 1 else ""


def notices_of(trialled: Mapping[str, Sequence[Trialled]], metric: str) -> list[Notice]:
    """What the evaluation of the strongest variant of each attacker warns of."""
    return [
        notice.about(one.name)
        for found in trialled.values()
        for one in leaders(found, metric)
        for notice in one.notices
    ]


def variant_blocks(
    title: str,
    trialled: Mapping[str, Sequence[Trialled]],
    metric: str,
    metrics: Sequence[str],
    *,
    wide: int | None = None,
) -> list[TableBlock]:
    """The strongest variant of each attacker; further metrics and other variants folded."""

    def rows(every: Iterable[Trialled], metrics: Sequence[str]) -> tuple[Row, ...]:
        return tuple(
            Row(
                {"safeguard": one.safeguard, "attacker": one.label},
                ordered(one.result.estimates, metrics),
            )
            for one in every
        )

    first = [one for found in trialled.values() for one in leaders(found, metric)]
    others = [one for found in trialled.values() for one in found if one not in first]
    blocks = [TableBlock(title, rows(first, metrics[:wide]), note=CHOSEN)]
    if wide is not None:
        blocks.append(TableBlock("All detection metrics", rows(first, metrics[wide:]), folded=True))
    blocks.append(
        TableBlock(f"{title}: other variants tried", rows(others, metrics[:wide]), folded=True)
    )
    return [block for block in blocks if block.rows]


def _table_blocks(
    name: str, found: Evaluation, risks: Mapping[str, tuple[Estimate, ...]]
) -> list[TableBlock]:
    def rows(metrics: Sequence[str], *, attacked: bool = False) -> tuple[Row, ...]:
        return tuple(
            Row(
                {
                    "table": name,
                    "system": r.system,
                    **({} if r.group is None else {"group": r.group}),
                },
                (
                    *ordered(r.estimates, metrics),
                    *(risks.get(r.system, ()) if attacked and r.group is None else ()),
                ),
            )
            for r in found
        )

    first = ("eer", "min_dcf", "min_cllr", "d_ece", "l_w", "tag")
    return [
        TableBlock(name, rows(first, attacked=True)),
        TableBlock(
            f"{name}: all metrics",
            rows(("eer_raw", "act_dcf", "cllr", "d_sys", "tpr_at_fpr")),
            folded=True,
        ),
    ]


def ordered(estimates: Sequence[Estimate], metrics: Sequence[str]) -> tuple[Estimate, ...]:
    """The estimates of these metrics, in their order."""
    return tuple(e for metric in metrics for e in estimates if e.metric == metric)


_VERIFICATION = (
    Method(
        "Equal error rate",
        "where miss and false-alarm rate meet on the convex hull of the ROC",
        f"Ties are joined by straight lines, no order among them is assumed. {TWO_RATES}",
    ),
    Method(
        "Detection cost",
        "min over thresholds of C_miss·p·P_miss + C_fa·(1−p)·P_fa, normalised",
        "minDCF at the best threshold, actDCF at the Bayes threshold of scores read as LLRs.",
    ),
)

FRAMEWORK = Framework("verification", _section, steps=_steps, later=_later, trials=True)
