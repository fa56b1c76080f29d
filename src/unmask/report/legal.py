"""The document of a sweep of the legally validated metrics."""

from __future__ import annotations

from unmask.estimate import Estimate
from unmask.privacy.legal import SPLITS, TITLES, LegalSweep
from unmask.report.document import Document, Row

_VALIDATED = (
    "The French data protection authority validated Linkability, Singling Out and their protocol,"
    " not this software; residual risk, ranks, worst deciles and inference were validated by"
    " nobody."
)
_NO_VERDICT = (
    "These are risks under the named attackers on this data; whether they are acceptable is for the"
    " controller to decide."
)


def document_of_legal(sweep: LegalSweep) -> Document:
    """One row per attacker, length and number of speakers; chance beside every risk."""
    rows = [
        Row(
            {"attacker": attacker, "L": str(length), "N": str(count)},
            (*_estimates(sweep, attacker, length, count), *_ranks(sweep, attacker, length, count)),
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
        notes=(*sweep.sentences, *_how(sweep), _VALIDATED, _NO_VERDICT),
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
    """Over whom the intervals are, for each metric, and how the strongest attack was chosen."""
    over = {
        metric: next(
            (
                curve.estimates[0].interval
                for (_, which, _), curve in sweep.curves.items()
                if which == metric
            ),
            None,
        )
        for metric in sweep.metrics
    }
    parts = [
        f"{TITLES[metric]} over {made.over.partition(',')[0]}"
        for metric, made in over.items()
        if made is not None
    ]
    lines = []
    made = next((one for one in over.values() if one is not None), None)
    if made is not None:
        lines.append(
            f"In brackets: {100 * made.level:g} % intervals, {'; '.join(parts)} (seed {made.seed})."
        )
    lines.append(
        "The strongest attack is chosen on half of the speakers and judged by the other half, over"
        f" {SPLITS} splits; for 1 − EER it is the largest value, which errs towards more risk."
    )
    return tuple(lines)
