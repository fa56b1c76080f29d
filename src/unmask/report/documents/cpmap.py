"""Documents of C-P maps (Li 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from unmask.estimate import Estimate
from unmask.report.documents import Document, Row, document
from unmask.report.words import note
from unmask.stress import CpAssessment


@document.register
def _(assessment: CpAssessment, *, further: Sequence[CpAssessment] = ()) -> Document:
    """Rows per map, config placed on it and comparison; ``further`` ones by another metric."""
    every = (assessment, *further)
    parts = [map_rows(assessed, several=bool(further)) for assessed in every]
    return Document(
        [row for kinds in zip(*parts, strict=True) for rows in kinds for row in rows],
        tables=[rows for kinds in parts for rows in kinds],
        inputs=assessment.sources,
        notes=list(dict.fromkeys(note for assessed in every for note in _notes(assessed))),
        warnings=list(dict.fromkeys(line for assessed in every for line in assessed.warnings)),
        seed=assessment.seed,
    )


def map_rows(
    assessment: CpAssessment, *, several: bool = False, **where: str
) -> tuple[list[Row], list[Row], list[Row]]:
    """Maps, trial configs placed on them, and comparisons."""
    by = {"by": assessment.metric.name} if several else {}
    maps = [
        Row({**where, "system": name, **by}, _raw(assessment.estimates_of(name)))
        for name in assessment.maps
    ]
    configs, deltas = [], []
    for name, placed in assessment.positions.items():
        for position in placed:
            at = {"system": name, "trials": position.name, **by}
            configs.append(Row(at, _raw(assessment.position_estimates(name, position))))
    for delta in assessment.deltas:
        at = {**where, "systems": f"{delta.reference} → {delta.test}", **by}
        deltas.append(Row(at, assessment.delta_estimates(delta)))
    return maps, configs, deltas


def _raw(estimates: Sequence[Estimate]) -> list[Estimate]:
    """The EER of a map is that of the ROC itself, which has another name than that of the hull."""
    return [replace(e, metric="eer_raw") if e.metric == "eer" else e for e in estimates]


def _notes(assessment: CpAssessment) -> list[str]:
    cp = next(iter(assessment.maps.values()))
    by = "by each system's own scores"
    if len(assessment.references) == 1:
        by = f"by {assessment.references[0]}"
    elif assessment.references:
        of = {"rank": "mean rank", "mean": "mean score"}[assessment.combine]
        by = f"by the {of} of {', '.join(assessment.references)}"
    notes = [note("cp_trials", cp=cp, by=by, trials=assessment.trials)]
    if cp.intervals is not None:
        made = cp.intervals.mean
        notes.append(note("cp_cells", made=made, level=100 * made.level, grid=cp.intervals.grid))
    return notes
