"""Documents of privacy assessments."""

from __future__ import annotations

from typing import Any

from unmask.estimate import Estimate
from unmask.privacy.similarity import NOT_ASKED, SAME, WITH_TRIALS, PrivacyAssessment, Safeguard
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
    result = safeguard.result
    own = result.sets["oo"]
    n = {
        "target": own.zebra.targets,
        "nontarget": own.zebra.nontargets,
        "speakers": len(own.speakers),
    }
    about: dict[str, Any] = {
        "n": n,
        "params": {"set": "oo", "backend": result.backend, "bins": own.bins or None},
        "trials": result.trials,
    }
    interval = result.interval("d_ece_oo")
    reason = "" if interval is not None else SAME if result.replicates else NOT_ASKED
    return (
        Estimate(
            "d_ece",
            own.zebra.d_ece,
            "bit",
            interval=interval,
            chance=0.0,
            no_interval=reason,
            **about,
        ),
        Estimate("l_w", own.zebra.l_w, chance=0.0, no_interval=WITH_TRIALS, **about),
        Estimate("tag", own.zebra.tag, no_interval=WITH_TRIALS, **about),
    )


def _unique(estimates: tuple[Estimate, ...]) -> tuple[Estimate, ...]:
    """Each estimate once: C_ECE stands in the main row and among the details."""
    return tuple({estimate.signature: estimate for estimate in estimates}.values())


def _notes(assessment: PrivacyAssessment) -> tuple[str, ...]:
    told = []
    several = len(assessment.datasets) > 1
    for safeguard in {s.dataset: s for s in assessment}.values():
        result = safeguard.result
        where = f"{safeguard.dataset}: " if several else ""
        counts = [
            f"{sets}: {round(roc.targets):,} same-speaker and {round(roc.nontargets):,}"
            " different-speaker comparisons"
            for sets, roc in (
                ("OO and PP each", result.sets["oo"].roc),
                ("OP", result.sets["op"].roc),
            )
        ]
        told.append(f"{where}{len(result.speakers):,} speakers. {'; '.join(counts)}.")
    for safeguard in assessment:
        where = f", {safeguard.dataset}" if several else ""
        worst = ", ".join(safeguard.result.per_speaker.worst(3))
        if worst:
            told.append(f"{safeguard.system}{where}: least protected are {worst}.")
        told += [f"{safeguard.system}{where}: {text}" for text in safeguard.result.notes]
        strongest = safeguard.result.strongest
        told.append(
            f"{safeguard.system}{where}: strongest of {len(strongest.tried)} attacks tried"
            f" ({', '.join(strongest.tried)}): {strongest.attacker}."
        )
    result = next(iter(assessment)).result
    told.append(
        "The strongest attack has the lowest DeID of all that beat the plain score by more than"
        " noise; to take the lowest errs towards more risk."
    )
    if result.replicates:
        told.append(
            f"In brackets: {100 * result.level:g} % intervals over speakers ({result.replicates:,}"
            f" bootstrap replicates, each calibrated anew, less their bias; seed {result.seed})."
        )
    return tuple(told)
