"""The document of a sweep of the legally validated metrics."""

from __future__ import annotations

from unmask.estimate import Estimate
from unmask.privacy.legal_sweep import LegalSweep
from unmask.report.document import Document, Row

_NO_VERDICT = (
    "These are risks under the named attackers on this data; whether they are acceptable is for the"
    " controller to decide."
)


def document_of_legal(sweep: LegalSweep) -> Document:
    """One row per attacker, length and number of speakers; chance beside every risk."""
    rows = [
        Row(
            {"attacker": attacker, "L": str(length), "N": f"{count}"},
            _estimates(sweep, attacker, length, count),
        )
        for attacker in sweep.attackers
        for length in sweep.lengths
        for count in sweep.counts(length)
    ]
    rows = [row for row in rows if row.estimates]
    rows += [
        Row({"attacker": attacker, "L": str(length), "N": str(ranks.candidates)}, ranks.estimates)
        for (attacker, length), ranks in sweep.ranks.items()
    ]
    rows += [
        Row({"attacker": attacker, "attribute": attribute}, result.estimates)
        for (attacker, attribute), result in sweep.inferences.items()
    ]
    return Document(
        tuple(rows),
        inputs=sweep.sources,
        notes=(*sweep.sentences, *_how(sweep), _NO_VERDICT),
        warnings=sweep.warnings,
        seed=sweep.seed,
    )


def _estimates(sweep: LegalSweep, attacker: str, length: int, count: int) -> tuple[Estimate, ...]:
    found = [
        (estimate, sweep.details(attacker, metric, length, count))
        for metric in sweep.metrics
        if (estimate := sweep.estimate(attacker, metric, length, count)) is not None
    ]
    return (
        *(estimate for estimate, _ in found),
        *(_chance(estimate) for estimate, _ in found),
        *(detail for _, details in found for detail in details),
    )


def _chance(estimate: Estimate) -> Estimate:
    return Estimate(
        f"{estimate.metric}_chance",
        float(estimate.chance or 0),
        estimate.unit,
        params={"N": estimate.params["N"]},
    )


def _how(sweep: LegalSweep) -> tuple[str, ...]:
    made = next(e.interval for e in sweep.estimates if e.interval is not None)
    return (
        f"In brackets: {100 * made.level:g} % intervals over test speakers"
        f" ({made.replicates:,} bootstrap replicates, seed {made.seed}).",
    )
