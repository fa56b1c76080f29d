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
            {"attacker": attacker, "L": str(length), "N": str(count)},
            (
                *_estimates(sweep, attacker, length, count),
                *_ranks(sweep, attacker, length, count),
            ),
        )
        for attacker in sweep.attackers
        for length in sweep.lengths
        for count in _counts(sweep, attacker, length)
    ]
    rows = [row for row in rows if row.estimates]
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


def _counts(sweep: LegalSweep, attacker: str, length: int) -> list[int]:
    """Counts of the curves, and the number of candidates of the ranks."""
    ranks = sweep.ranks.get((attacker, length))
    found = {*sweep.counts(length), *(() if ranks is None else (ranks.candidates,))}
    return sorted(found)


def _ranks(sweep: LegalSweep, attacker: str, length: int, count: int) -> tuple[Estimate, ...]:
    ranks = sweep.ranks.get((attacker, length))
    return ranks.estimates if ranks is not None and ranks.candidates == count else ()


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
