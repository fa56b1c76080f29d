"""Attacks as verification systems, evidence they disclose (ZEBRA), and score tables given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from unmask.detection import curves
from unmask.detection.battery import Battery
from unmask.detection.evaluate import Evaluation, evaluate
from unmask.estimate import Estimate
from unmask.figures.det import det
from unmask.figures.disclosure import calibration_profiles, disclosure_profiles
from unmask.figures.theme import ORIGINAL as GREY
from unmask.privacy.zebra import (
    CalibrationDistortion,
    Disclosure,
    calibration_distortion,
    disclosure_of,
)
from unmask.report.cache import Progress, Step, digest_of_scores
from unmask.report.config import Config
from unmask.report.document import Row
from unmask.report.frameworks.attacks import Attack, Groups, Trialled
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
    """Calibration learnt on the other run, where a safeguard has one."""
    steps = {}
    for name, found in attacks.items():
        plain = next((a for a in found if a.enrols == "original" and a.backend == "cosine"), None)
        if plain is None or name not in inputs.again:
            continue
        other = replace(plain, test=inputs.attacked(inputs.again[name]))

        def compute(progress: Progress, a=plain, b=other) -> CalibrationDistortion:  # type: ignore[no-untyped-def]
            first, second = b.scores(), a.scores()
            return calibration_distortion(
                (first.targets(), first.nontargets()), (second.targets(), second.nontargets())
            )

        scores = [digest_of_scores(one.scores()) for one in (plain, other)]
        steps[name] = Step(f"calibration of {name} by another run", scores, {}, compute, weight=0.5)
    return steps


def named_colours(systems: Mapping[str, Trialled], colours: Mapping[str, str]) -> dict[str, str]:
    """The safeguard's colour for each system of a chart."""
    return {label: colours.get(one.safeguard, GREY) for label, one in systems.items()}


def zebra_section(
    trialled: Mapping[str, Sequence[Trialled]],
    best: Mapping[str, int],
    distortions: Mapping[str, CalibrationDistortion],
    colours: Mapping[str, str],
) -> Section:
    """How much evidence of identity the strongest attacker's scores disclose."""
    chosen = {found[best[name]].name: found[best[name]] for name, found in trialled.items()}
    disclosures: dict[str, Disclosure] = {
        label: disclosure_of(one.result.roc, system=label) for label, one in chosen.items()
    }
    rows = [
        Row(
            {"safeguard": one.safeguard, "attacker": one.label},
            tuple(e for e in one.result.estimates if e.metric in _EVIDENCE),
        )
        for found in trialled.values()
        for one in found
    ]
    tables = [TableBlock("Evidence disclosed", tuple(rows))]
    figures: list[object] = [
        disclosure_profiles(disclosures, colours=named_colours(chosen, colours))
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
            )
        )
    return Section(
        key="zebra",
        title="Evidence disclosed (ZEBRA)",
        question="How strongly does a comparison speak for or against an identity, on average and"
        " at worst?",
        answer=tuple(
            f"{label}: {one.value('d_ece'):.3f} bit on average of at most 0.721; at worst the odds"
            f" change by a factor of 10^{one.value('l_w'):.1f}, tag {one.result['tag'].value}."
            for label, one in chosen.items()
        ),
        figures=tuple(figures),  # type: ignore[arg-type]
        tables=tuple(tables),
        warnings=tuple(
            dict.fromkeys(
                [
                    *(
                        f"{one.name}: {line}"
                        for found in trialled.values()
                        for one in found
                        for line in one.warnings
                    ),
                    *(f"{n}: {line}" for n, d in distortions.items() for line in d.warnings),
                ]
            )
        ),
        method=_ZEBRA,
        citation=NOE_2022,
    )


def section(
    trialled: Mapping[str, Sequence[Trialled]],
    best: Mapping[str, int],
    tables: Mapping[str, TableResult],
    groups: Mapping[str, Groups],
    colours: Mapping[str, str],
) -> Section:
    """Error rates of the attacks, and of the systems whose scores were given."""
    chosen = {found[best[name]].name: found[best[name]] for name, found in trialled.items()}
    figures: list[object] = []
    blocks = []
    warnings: list[str] = []
    if chosen:
        figures.append(
            det(
                {label: one.det for label, one in chosen.items()},
                colours=named_colours(chosen, colours),
                name="det_attacks",
                title="Errors of the strongest attacker on each safeguard",
            )
        )
        every = [one for found in trialled.values() for one in found]
        blocks += _blocks("Attackers as verification systems", every)
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
        f"{label}: equal error rate {100 * one.value('eer'):.1f} %; 50 % is a coin toss."
        for label, one in chosen.items()
    ]
    answer += [
        f"{name}, {r.system}: equal error rate {100 * float(r['eer'].value):.2f} %."
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


def _blocks(title: str, every: Sequence[Trialled]) -> list[TableBlock]:
    def rows(metrics: Sequence[str]) -> tuple[Row, ...]:
        return tuple(
            Row(
                {"safeguard": one.safeguard, "attacker": one.label},
                _ordered(one.result.estimates, metrics),
            )
            for one in every
        )

    return [
        TableBlock(title, rows(_ERRORS[:2])),
        TableBlock("All detection metrics", rows(_ERRORS[2:]), folded=True),
    ]


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
        "Ties are joined by straight lines, no order among them is assumed.",
    ),
    Method(
        "Detection cost",
        "min over thresholds of C_miss·p·P_miss + C_fa·(1−p)·P_fa, normalised",
        "minDCF at the best threshold, actDCF at the Bayes threshold of scores read as LLRs.",
    ),
)
