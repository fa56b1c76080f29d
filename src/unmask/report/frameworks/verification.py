"""Attacks as verification systems, evidence they disclose (ZEBRA), and score tables given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unmask.engine import Battery, Evaluation, curves, evaluate
from unmask.estimate import Estimate
from unmask.figures import ORIGINAL as GREY
from unmask.figures import calibration_profiles, disclosure_profiles
from unmask.figures.tradeoff import det
from unmask.privacy.similarity import calibration_distortion_from_scores
from unmask.privacy.zebra import CalibrationDistortion, Disclosure, disclosure_of
from unmask.report.cache import Progress, Step, digest_of_scores
from unmask.report.config import ORIGINAL, Config
from unmask.report.document import Row
from unmask.report.frameworks.attacks import (
    Attack,
    Groups,
    Trialled,
    Variant,
    leaders,
    shown,
    strongest,
)
from unmask.report.inputs import Inputs
from unmask.report.section import NOE_2022, Choice, Method, Section, TableBlock
from unmask.trials import Scores

_EVIDENCE = ("d_ece", "l_w", "tag", "min_cllr")
_ERRORS = ("eer", "min_dcf", "act_dcf", "cllr", "d_sys", "tpr_at_fpr", "eer_raw")


@dataclass(frozen=True, eq=False)
class TableResult:
    """A score table: its evaluation and the curves of its systems."""

    evaluation: Evaluation
    det: Mapping[str, curves.DetCurve]
    histograms: Mapping[str, curves.Histogram]
    trials: str


def table_steps(config: Config, inputs: Inputs) -> dict[str, Step]:
    """Every score table given."""
    how = config.verification
    replicates = config.intervals.replicates if how.replicates is None else how.replicates
    params = {
        "p_target": how.p_target,
        "fpr": how.fpr,
        "by": how.by,
        "replicates": replicates,
        "level": config.intervals.level,
        "seed": config.seed,
    }
    steps = {}
    for name, scores in inputs.tables.items():

        def compute(progress: Progress, s: Scores = scores) -> TableResult:
            grouped = how.by if how.by is not None and _has(s, how.by) else None
            found = evaluate(
                s,
                by=grouped,
                battery=Battery(p_target=how.p_target, fpr=how.fpr),
                replicates=replicates,
                level=config.intervals.level,
                seed=config.seed,
                progress=progress,
            )
            rocs = {r.system: r.roc for r in found if r.group is None}
            return TableResult(
                found,
                {n: curves.det_curve(r, p_target=how.p_target[0]) for n, r in rocs.items()},
                {n: curves.histogram(s.targets(n), s.nontargets(n), r) for n, r in rocs.items()},
                s.digest,
            )

        seconds = 1 + len(scores) * len(scores.systems) * replicates / 5e6
        steps[name] = Step(
            f"verification of {name}", [digest_of_scores(scores)], params, compute, weight=seconds
        )
    return steps


def _has(scores: Scores, column: str) -> bool:
    return column in scores.columns or f"enrol_{column}" in scores.columns


def distortion_steps(
    config: Config, inputs: Inputs, attacks: Mapping[str, Sequence[Attack]]
) -> dict[str, Step]:
    """Calibration learnt on another run of the same safeguard, where there is one (eq. 15).

    A keyless safeguard has none: its second run is the first. A related safeguard is another one.
    """
    drawn = config.verification.replicates
    how: dict[str, Any] = {
        "replicates": config.intervals.replicates if drawn is None else drawn,
        "level": config.intervals.level,
        "seed": config.seed,
    }
    steps = {}
    for name, other in inputs.again.items():
        if name not in attacks:
            continue
        control = attacks[ORIGINAL][0]
        attacked = replace(control, test=inputs.attacked(inputs.protected[name]))
        learnt = replace(control, test=inputs.attacked(other))

        def compute(progress: Progress, a=attacked, b=learnt) -> CalibrationDistortion:  # type: ignore[no-untyped-def]
            first, second = (one.scores(Variant("cosine"), names=["cosine"]) for one in (b, a))
            return calibration_distortion_from_scores(first, second, **how)

        steps[name] = Step(
            f"calibration of {name} by another run",
            [*attacked.inputs, *learnt.inputs],
            how,
            compute,
            weight=0.5,
        )
    return steps


def named_colours(systems: Mapping[str, Trialled], colours: Mapping[str, str]) -> dict[str, str]:
    """The safeguard's colour for each system of a chart."""
    return {label: colours.get(one.safeguard, GREY) for label, one in systems.items()}


def zebra_section(
    trialled: Mapping[str, Sequence[Trialled]],
    distortions: Mapping[str, CalibrationDistortion],
    keyless: Sequence[str],
    colours: Mapping[str, str],
) -> Section:
    """How much evidence of identity the strongest attacker's scores disclose."""
    chosen = {name: strongest(found, "d_ece") for name, found in trialled.items()}
    disclosures: dict[str, Disclosure] = {
        one.name: disclosure_of(one.result.roc, system=one.name) for one in chosen.values()
    }
    systems = {one.name: one for one in chosen.values()}
    tables = _blocks("Evidence disclosed", trialled, "d_ece", _EVIDENCE)
    figures: list[object] = [
        disclosure_profiles(disclosures, colours=named_colours(systems, colours))
    ]
    if distortions:
        told = tuple(
            (
                name,
                calibration_profiles(
                    [found],
                    name=f"calibration_distortion_{number}",
                    title=f"{name}: a calibration learnt on another run",
                ),
            )
            for number, (name, found) in enumerate(distortions.items(), start=1)
        )
        figures.append(Choice("Another run of", told))
        tables.append(
            TableBlock(
                "Calibration learnt on another run",
                tuple(Row({"safeguard": n}, d.estimates) for n, d in distortions.items()),
                folded=True,
                note="".join(
                    f"{name} is deterministic: a second run is the same, and there is none to learn"
                    " from. "
                    for name in keyless
                ).strip(),
            )
        )
    return Section(
        key="zebra",
        title="Evidence disclosed (ZEBRA)",
        question="How strongly does a comparison speak for or against an identity, on average and"
        " at worst?",
        answer=tuple(_evidence(one, len(trialled[name])) for name, one in chosen.items()),
        figures=tuple(figures),  # type: ignore[arg-type]
        tables=tuple(tables),
        warnings=tuple(
            dict.fromkeys(
                [
                    *_told(trialled, "d_ece"),
                    *(f"{n}: {line}" for n, d in distortions.items() for line in d.warnings),
                ]
            )
        ),
        method=_ZEBRA,
        citation=NOE_2022,
    )


def _evidence(one: Trialled, tried: int) -> str:
    return (
        f"{one.name}: {shown(one.result['d_ece'], 3)} bit on average of at most 0.721; at worst the"
        f" odds change by a factor of 10^{one.value('l_w'):.1f}, tag {one.result['tag'].value}"
        f"{_of_many(tried)}."
    )


def _of_many(tried: int) -> str:
    return f" (strongest of {tried} attacks)" if tried > 1 else ""


def _told(trialled: Mapping[str, Sequence[Trialled]], metric: str) -> list[str]:
    """What the evaluation of the strongest variant of each attacker warns of."""
    return [
        f"{one.name}: {line}"
        for found in trialled.values()
        for one in leaders(found, metric)
        for line in one.warnings
    ]


def section(
    trialled: Mapping[str, Sequence[Trialled]],
    tables: Mapping[str, TableResult],
    groups: Mapping[str, Groups],
    colours: Mapping[str, str],
) -> Section:
    """Error rates of the attacks, and of the systems whose scores were given."""
    chosen = {name: strongest(found, "eer") for name, found in trialled.items()}
    figures: list[object] = []
    blocks = []
    warnings: list[str] = []
    if chosen:
        systems = {one.name: one for one in chosen.values()}
        figures.append(
            det(
                {label: one.det for label, one in systems.items()},
                colours=named_colours(systems, colours),
                name="det_attacks",
                title="Errors of the strongest attacker on each safeguard",
            )
        )
        attackers = _blocks("Attackers as verification systems", trialled, "eer", _ERRORS, wide=2)
        blocks += [replace(attackers[0], note=f"{CHOSEN} {TWO_RATES}"), *attackers[1:]]
        warnings += _told(trialled, "eer")
        by = tuple(
            Row(
                {"safeguard": name, "attacker": one.label, "group": str(r.group)},
                _ordered(r.estimates, ("eer", "d_ece", "l_w", "tag")),
            )
            for name, one in groups.items()
            for r in one.results
        )
        if by:
            blocks.append(TableBlock("Strongest attacker, by group", by))
            warnings += [f"{n}: {line}" for n, one in groups.items() for line in one.warnings]
    for number, (name, found) in enumerate(tables.items(), start=1):
        figures.append(
            det(found.det, name=f"det_scores_{number}", title=f"{name}: errors of every system")
        )
        blocks += _table_blocks(name, found)
        warnings += [f"{name}: {line}" for line in found.evaluation.warnings]
    answer = [
        f"{one.name}: equal error rate {shown(one.result['eer'], 1, scale=100)} %"
        f"{_of_many(len(trialled[name]))}; 50 % is a coin toss."
        for name, one in chosen.items()
    ]
    answer += [
        f"{name}, {r.system}: equal error rate {shown(r['eer'], 2, scale=100)} %."
        for name, found in tables.items()
        for r in found.evaluation
        if r.group is None
    ]
    return Section(
        key="verification",
        title="Verification errors",
        question="How often does the recogniser err, at every threshold?",
        answer=tuple(answer),
        figures=tuple(figures),  # type: ignore[arg-type]
        tables=tuple(blocks),
        warnings=tuple(dict.fromkeys(warnings)),
        method=_VERIFICATION,
        citation="ISO/IEC 19795-1 (error rates); Brümmer and du Preez 2006 (C_llr);"
        " Gomez-Barrero et al. 2017, Maouche et al. 2020 (D_sys).",
    )


TWO_RATES = (
    "Equal error rates of verification are taken on the convex hull of the ROC; C-P maps take the"
    " ROC itself, as their paper does, which never gives less."
)
CHOSEN = (
    "The strongest variant of each attacker (back-end, centred or not, either sign), chosen on the"
    " very trials that are shown: what is left to chance in the choice errs towards more risk."
)


def _blocks(
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
                _ordered(one.result.estimates, metrics),
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


def _table_blocks(name: str, found: TableResult) -> list[TableBlock]:
    def rows(metrics: Sequence[str]) -> tuple[Row, ...]:
        return tuple(
            Row(
                {
                    "table": name,
                    "system": r.system,
                    **({} if r.group is None else {"group": r.group}),
                },
                _ordered(r.estimates, metrics),
            )
            for r in found.evaluation
        )

    return [
        TableBlock(name, rows(("eer", "min_dcf", "min_cllr", "d_ece", "l_w", "tag"))),
        TableBlock(
            f"{name}: all metrics",
            rows(("eer_raw", "act_dcf", "cllr", "d_sys", "tpr_at_fpr")),
            folded=True,
        ),
    ]


def _ordered(estimates: Sequence[Estimate], metrics: Sequence[str]) -> tuple[Estimate, ...]:
    return tuple(e for metric in metrics for e in estimates if e.metric == metric)


_ZEBRA = (
    Method(
        "Expected disclosure",
        "D_ECE = area between the prior's and the oracle-calibrated cross-entropy, 0 … 0.721 bit",
        "What an attacker learns on average, whatever the prior (eq. 11–13).",
    ),
    Method(
        "Worst case",
        "l_w = max |log₁₀ LR|, oracle-calibrated with Laplace",
        "Tags: 0 none, A below 1, B below 2, C below 4, D below 5, E below 6, F from 6 (Table 1)."
        " It grows with the number of trials, so counts stand beside it.",
    ),
)
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
