"""Documents of privacy assessments."""

from __future__ import annotations

from unmask.estimate import Estimate
from unmask.privacy.similarity_assessment import PrivacyAssessment, Safeguard
from unmask.report.document import Document, Row
from unmask.trials import Source


def document_of_privacy(
    assessment: PrivacyAssessment, *, inputs: tuple[Source, ...] = (), details: bool = False
) -> Document:
    """One row per set and safeguard, and one for the original speech (Noé 2022, Tables 2–4)."""
    several = len(assessment.datasets) > 1
    rows = []
    for dataset in assessment.datasets:
        chosen = [s for s in assessment if s.dataset == dataset]
        where = {"set": dataset} if several else {}
        for safeguard in chosen:
            estimates = (*safeguard.estimates, *(safeguard.details if details else ()))
            rows.append(Row({**where, "system": safeguard.system}, _unique(estimates)))
        rows.append(Row({**where, "system": "original"}, _original(chosen[0])))
    return Document(
        tuple(rows),
        inputs=inputs,
        notes=_notes(assessment),
        warnings=assessment.warnings,
        seed=assessment.seed,
    )


def _original(safeguard: Safeguard) -> tuple[Estimate, ...]:
    """D_ECE, l_w and tag of the original speech against itself: what there is to protect."""
    own = safeguard.result.sets["oo"]
    n = {
        "target": own.zebra.targets,
        "nontarget": own.zebra.nontargets,
        "speakers": len(own.speakers),
    }
    params = {"set": "oo", "backend": safeguard.result.backend}
    trials = safeguard.result.trials
    return (
        Estimate("d_ece", own.zebra.d_ece, "bit", chance=0.0, n=n, params=params, trials=trials),
        Estimate("l_w", own.zebra.l_w, chance=0.0, n=n, params=params, trials=trials),
        Estimate("tag", own.zebra.tag, n=n, params=params, trials=trials),
    )


def _unique(estimates: tuple[Estimate, ...]) -> tuple[Estimate, ...]:
    """Each estimate once: C_ECE stands in the main row and among the details."""
    return tuple({estimate.signature: estimate for estimate in estimates}.values())


def _notes(assessment: PrivacyAssessment) -> tuple[str, ...]:
    told = []
    several = len(assessment.datasets) > 1
    for safeguard in {s.dataset: s for s in assessment}.values():
        result = safeguard.result
        roc = result.sets["oo"].roc
        where = f"{safeguard.dataset}: " if several else ""
        told.append(
            f"{where}{len(result.speakers):,} speakers, {round(roc.targets):,} same-speaker and"
            f" {round(roc.nontargets):,} different-speaker comparisons in each of OO, OP and PP."
        )
    for safeguard in assessment:
        where = f", {safeguard.dataset}" if several else ""
        worst = ", ".join(safeguard.result.per_speaker.worst(3))
        if worst:
            told.append(f"{safeguard.system}{where}: least protected are {worst}.")
        told += [f"{safeguard.system}{where}: {text}" for text in safeguard.result.notes]
    interval = next(iter(assessment)).result.interval("deid")
    if interval is not None:
        told.append(
            f"In brackets: {100 * interval.level:g} % intervals over speakers"
            f" ({interval.replicates:,} bootstrap replicates of the matrices, seed {interval.seed},"
            " calibration held)."
        )
    return tuple(told)
