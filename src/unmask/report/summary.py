"""The headline table of an assessment as text."""

from __future__ import annotations

from unmask.estimate import Estimate
from unmask.report.assess import Assessment
from unmask.report.document import Document, Row
from unmask.report.table import text


def summary_table(assessment: Assessment) -> str:
    """One row per safeguard: the numbers of its card; score tables by their error rates."""
    rows = [
        Row({"safeguard": card.safeguard}, tuple(_plain(h.estimate) for h in card.numbers))
        for card in assessment.cards
    ]
    notes = [f"{card.safeguard}: {said}" for card in assessment.cards for said in card.sentences]
    warnings = [
        *(notice.sentence for notice in assessment.failures),
        *(f"{n.subject}: {n.sentence}" for card in assessment.cards for n in card.notices),
    ]
    parts = []
    if rows:
        parts.append(text(Document(tuple(rows), notes=tuple(notes), warnings=tuple(warnings))))
    elif warnings:
        parts.append("".join(f"- {line}\n" for line in warnings))
    systems = [
        Row({"system": r.conditions["system"]}, r.estimates)
        for section in assessment.sections
        if section.key == "verification"
        for block in section.tables
        if not block.folded
        for r in block.rows
        if "table" in r.conditions and "group" not in r.conditions
    ]
    if systems:
        parts.append(text(Document(tuple(systems))))
    return "\n".join(parts)


def _plain(estimate: Estimate) -> Estimate:
    """Without the parameters that would lengthen a heading."""
    return Estimate(estimate.metric, estimate.value, estimate.unit, estimate.interval)
