"""Documents of C-P maps."""

from __future__ import annotations

from dataclasses import replace

from unmask.report.document import Document, Row
from unmask.report.table import render
from unmask.stress.cpmap_assess import CpAssessment


def document_of_cp_maps(assessment: CpAssessment) -> Document:
    """One row per map, per trial config placed on it, and per comparison."""
    rows = _map_rows(assessment) + _config_rows(assessment) + _delta_rows(assessment)
    return Document(
        tuple(rows),
        inputs=assessment.sources,
        notes=_notes(assessment),
        warnings=assessment.warnings,
        seed=assessment.seed,
    )


def render_cp_maps(assessment: CpAssessment, format: str = "text") -> str:
    """The document in any format; people get a table each of maps, configs and comparisons."""
    whole = document_of_cp_maps(assessment)
    if format in ("json", "csv"):
        return render(whole, format)
    made = _map_rows(assessment), _config_rows(assessment), _delta_rows(assessment)
    *first, last = (tuple(rows) for rows in made if rows)
    documents = [*(Document(rows) for rows in first), replace(whole, rows=last)]
    return "\n".join(render(document, format) for document in documents)


def _map_rows(assessment: CpAssessment) -> list[Row]:
    return [Row({"system": name}, assessment.estimates(name)) for name in assessment.maps]


def _config_rows(assessment: CpAssessment) -> list[Row]:
    return [
        Row(
            {"system": name, "trials": position.name},
            assessment.position_estimates(name, position),
        )
        for name, placed in assessment.positions.items()
        for position in placed
    ]


def _delta_rows(assessment: CpAssessment) -> list[Row]:
    return [
        Row(
            {"systems": f"{delta.reference} → {delta.test}"},
            assessment.delta_estimates(delta),
        )
        for delta in assessment.deltas
    ]


def _notes(assessment: CpAssessment) -> tuple[str, ...]:
    cp = next(iter(assessment.maps.values()))
    told = "by each system's own scores"
    if assessment.references:
        of = "mean rank" if "rank" in cp.hardness else "mean score"
        told = f"by the {of} of {', '.join(assessment.references)}"
    notes = [
        f"{cp.n['target']:,} target and {cp.n['nontarget']:,} nontarget trials, ordered {told}; "
        f"{cp.x.size} x {cp.y.size} cells; trial list {assessment.trials}."
    ]
    made = next((d.intervals for d in assessment.deltas if d.intervals is not None), None)
    if made is not None:
        notes.append(
            f"In brackets: {100 * made.win.level:g} % intervals over {made.win.over} "
            f"({made.win.replicates:,} bootstrap replicates on {made.grid[0]} x {made.grid[1]} "
            f"cells, seed {made.win.seed})."
        )
    return tuple(notes)
