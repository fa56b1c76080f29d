"""Documents of C-P maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unmask.report.document import Document, Row
from unmask.report.table import render
from unmask.stress import CpAssessment


def document_of_cp_maps(assessment: CpAssessment, *further: CpAssessment) -> Document:
    """One row per map, per trial config placed on it, and per comparison.

    ``further`` assessments are of the same trials by another metric; every row then names its own.
    """
    every = (assessment, *further)
    parts = [_rows(one, several=bool(further)) for one in every]
    return Document(
        tuple(row for kinds in zip(*parts, strict=True) for rows in kinds for row in rows),
        inputs=assessment.sources,
        notes=tuple(dict.fromkeys(note for one in every for note in _notes(one))),
        warnings=tuple(dict.fromkeys(line for one in every for line in one.warnings)),
        seed=assessment.seed,
    )


def render_cp_maps(
    assessment: CpAssessment, format: str = "text", *, further: Sequence[CpAssessment] = ()
) -> str:
    """The document in any format; people get a table each of maps, configs and comparisons."""
    whole = document_of_cp_maps(assessment, *further)
    if format in ("json", "csv"):
        return render(whole, format)
    made = [
        rows for one in (assessment, *further) for rows in _rows(one, several=bool(further)) if rows
    ]
    *first, last = (tuple(rows) for rows in made)
    documents = [*(Document(rows) for rows in first), replace(whole, rows=last)]
    return "\n".join(render(document, format) for document in documents)


def _rows(assessment: CpAssessment, *, several: bool) -> tuple[list[Row], list[Row], list[Row]]:
    metric = next(iter(assessment.maps.values())).metric.name
    by = {"by": metric} if several else {}
    maps = [Row({"system": name, **by}, assessment.estimates(name)) for name in assessment.maps]
    configs = [
        Row(
            {"system": name, "trials": position.name, **by},
            assessment.position_estimates(name, position),
        )
        for name, placed in assessment.positions.items()
        for position in placed
    ]
    deltas = [
        Row(
            {"systems": f"{delta.reference} → {delta.test}", **by},
            assessment.delta_estimates(delta),
        )
        for delta in assessment.deltas
    ]
    return maps, configs, deltas


def _notes(assessment: CpAssessment) -> tuple[str, ...]:
    cp = next(iter(assessment.maps.values()))
    by = "by each system's own scores"
    if len(assessment.references) == 1:
        by = f"by {assessment.references[0]}"
    elif assessment.references:
        of = {"rank": "mean rank", "mean": "mean score"}[assessment.combine]
        by = f"by the {of} of {', '.join(assessment.references)}"
    notes = [
        f"{cp.n['target']:,} target and {cp.n['nontarget']:,} nontarget trials, ordered {by}; "
        f"{cp.x.size} x {cp.y.size} cells; trial list {assessment.trials}."
    ]
    made = cp.intervals
    if made is not None:
        unit = made.mean.method.partition(",")[0]
        notes.append(
            f"In brackets: {100 * made.mean.level:g} % intervals over {unit}s "
            f"({made.mean.replicates:,} bootstrap replicates on {made.grid[0]} x {made.grid[1]} "
            f"cells, seed {made.mean.seed}); cells themselves have none."
        )
    return tuple(notes)
