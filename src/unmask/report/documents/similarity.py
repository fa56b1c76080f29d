"""Documents of safeguards by their similarity matrices (Noé 2022, Tables 2–4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unmask.base import grouped
from unmask.estimate import Estimate
from unmask.privacy import WORDS, Pseudonymisation, similarity as similar
from unmask.report.documents import Document, Row, document, with_groups
from unmask.report.table import label
from unmask.report.words import note
from unmask.trials import Source


@document.register
def _(
    assessment: similar.PrivacyAssessment, *, inputs: tuple[Source, ...] = (), details: bool = False
) -> Document:
    """Rows of each set, safeguard and attacker, and of the original (Noé 2022, Tables 2–4)."""
    several = len(assessment.datasets) > 1
    rows = []
    for dataset in assessment.datasets:
        chosen = [s for s in assessment if s.dataset == dataset]
        where = {"set": dataset} if several else {}
        for safeguard in chosen:
            # C_ECE stands in the main row and among the details.
            estimates = (*safeguard.estimates, *(safeguard.details if details else ()))
            unique = {estimate.signature: estimate for estimate in estimates}
            named = {**where, "system": safeguard.system}
            rows += by_attacker(named, safeguard.result, tuple(unique.values()))
        named = {**where, "system": "original"}
        rows += by_attacker(named, chosen[0].result, _original(chosen[0]))
    tables = apart(rows, {row.system: row.result for row in assessment})[::-1]
    about: Any = {"warnings": assessment.warnings, "seed": assessment.seed, "tables": tables}
    made = Document(rows, inputs=inputs, notes=_notes(assessment), **about)
    return with_groups(made, assessment.gaps)


def by_attacker(
    where: Mapping[str, str], result: Pseudonymisation, estimates: Sequence[Estimate]
) -> list[Row]:
    """A row for each attacker, that of the plain score first and the strongest after it."""
    rows = grouped((result.attacker_of(estimate), estimate) for estimate in estimates)
    return [
        Row({**where, "attacker": attacker, "trials": result.compared}, some)
        for attacker, some in rows.items()
    ]


def apart(
    rows: Sequence[Row], results: Mapping[str, Pseudonymisation]
) -> tuple[list[Row], list[Row]]:
    """Rows of the plain scores, and of all other attacks."""
    names = {result.named() for result in results.values()}
    plain, others = (
        [row for row in rows if (row.conditions["attacker"] in names) == own]
        for own in (True, False)
    )
    return plain, others


def _original(safeguard: similar.SafeguardRow) -> tuple[Estimate, ...]:
    """D_ECE, l_w and tag of the original speech against itself: what there is to protect."""
    result = safeguard.result
    own = result.sets["oo"]
    zebra, interval = own.zebra, result.interval("d_ece_oo")
    n = {"target": zebra.targets, "nontarget": zebra.nontargets, "speakers": len(own.speakers)}
    params = {"set": "oo", "backend": result.backend, "bins": own.bins or None}
    about: dict[str, Any] = {"n": n, "params": params, "trials": result.trials}
    none = similar.UNDEFINED if result.replicates else similar.NOT_ASKED
    reason = none if interval is None else ""
    return (
        Estimate("d_ece", zebra.d_ece, "bit", interval, 0.0, no_interval=reason, **about),
        Estimate("l_w", zebra.l_w, chance=0.0, no_interval=similar.WITH_TRIALS, **about),
        Estimate("tag", zebra.tag, no_interval=similar.WITH_TRIALS, **about),
    )


def _notes(assessment: similar.PrivacyAssessment) -> list[str]:
    notes = []
    several = len(assessment.datasets) > 1
    for safeguard in {s.dataset: s for s in assessment}.values():
        result = safeguard.result
        where = f"{safeguard.dataset}: " if several else ""
        counts = [
            f"{sets}: {round(roc.targets):,} same-speaker and {round(roc.nontargets):,}"
            " different-speaker comparisons"
            for sets, part in (("OO and PP each", "oo"), ("OP", "op"))
            for roc in [result.sets[part].roc]
        ]
        notes.append(f"{where}{len(result.speakers):,} speakers. {'; '.join(counts)}.")
    for safeguard in assessment:
        where = f", {safeguard.dataset}" if several else ""
        luck = safeguard.result.strongest.deid.luck
        people = len(safeguard.result.speakers)
        shown = luck is None or luck.beyond or not luck.decides(people)
        worst = ", ".join(safeguard.result.per_speaker.worst(3) if shown else ())
        if worst:
            notes.append(f"{safeguard.system}{where}: least protected are {worst}.")
        notes += [n.about(f"{safeguard.system}{where}").line for n in safeguard.result.notes]
        if safeguard.retrained is not None:
            told = safeguard.retrained.said(safeguard.result["g_vd"])
            notes.append(f"{safeguard.system}{where}: {told}.")
        lucky = [e for e in safeguard.result.estimates if e.luck is not None and e.unit]
        alone = [e for e in lucky if e.params["attacker"] == WORDS]
        best = f"the strongest of {len(safeguard.result.attacks)}"
        for who, some in ((best, [e for e in lucky if e not in alone]), (f"{WORDS} alone", alone)):
            if said := "; ".join(f"{label(e).partition(' [')[0]} {e.luck_shown}" for e in some):
                read = "read" if some is alone else "reads"
                notes.append(f"{safeguard.system}{where}: {who} {read} without information {said}.")
    tried = ("; ".join(map(row.result.named, row.result.attacks)) for row in assessment)
    notes += [f"Attacks tried: {some}." for some in dict.fromkeys(tried)]
    result = next(iter(assessment)).result
    notes.append(note("lowest_deid"))
    if any(safeguard.retrained is not None for safeguard in assessment):
        notes.append(note("retrained_bound"))
    if result.replicates:
        notes.append(note("calibrated_anew", level=100 * result.level, result=result))
    return notes
