"""Documents and figures of C-P maps."""

from __future__ import annotations

from unmask.figures import Figure
from unmask.figures.cp_map import cp_map_figure
from unmask.figures.delta_cp_map import delta_cp_map_figure
from unmask.figures.roadmap import roadmap_figure
from unmask.report.document import Document, Row
from unmask.stress.cpmap_assess import CpAssessment
from unmask.stress.cpmap_contours import contour

LEVELS = {"eer": (0.01, 0.02, 0.05, 0.1, 0.2, 0.5), "min_dcf": (0.1, 0.2, 0.5, 0.8)}


def document_of_cp_maps(assessment: CpAssessment) -> Document:
    """One row per map, per trial config placed on it, and per comparison."""
    rows = [Row({"system": name}, assessment.estimates(name)) for name in assessment.maps]
    rows += [
        Row(
            {"system": name, "config": position.name},
            assessment.position_estimates(name, position),
        )
        for name, placed in assessment.positions.items()
        for position in placed
    ]
    rows += [
        Row(
            {"system": f"{delta.reference} → {delta.test}"},
            assessment.delta_estimates(delta),
        )
        for delta in assessment.deltas
    ]
    return Document(
        tuple(rows),
        inputs=assessment.sources,
        notes=_notes(assessment),
        warnings=assessment.warnings,
        seed=assessment.seed,
    )


def _notes(assessment: CpAssessment) -> tuple[str, ...]:
    cp = next(iter(assessment.maps.values()))
    told = (
        f"by {', '.join(assessment.references)} ({'ranks' if 'rank' in cp.hardness else 'mean'})"
        if assessment.references
        else "by each system's own scores"
    )
    notes = [
        f"{cp.n['target']:,} target and {cp.n['nontarget']:,} nontarget trials, ordered {told}; "
        f"{cp.x.size} x {cp.y.size} cells; trial list {assessment.trials}."
    ]
    made = next((d.intervals for d in assessment.deltas if d.intervals is not None), None)
    if made is not None:
        notes.append(
            f"In brackets: {100 * made.win.level:g} % intervals over {made.win.method}s "
            f"({made.win.replicates:,} bootstrap replicates on {made.grid[0]} x {made.grid[1]} "
            f"cells, seed {made.win.seed})."
        )
    return tuple(notes)


def cp_figures(assessment: CpAssessment) -> list[Figure]:
    """The maps on one scale, each map with its trial configs, the delta maps, the roadmap."""
    maps = assessment.maps
    lines = {
        name: [contour(cp, level) for level in LEVELS[cp.metric.name]] for name, cp in maps.items()
    }
    figures = [cp_map_figure(maps, contours=lines)] if len(maps) > 1 else []
    figures += [
        cp_map_figure(
            {name: cp},
            contours=lines,
            positions=assessment.positions,
            name=f"cp_map_{number}",
            title=f"C-P map of {name}",
        )
        for number, (name, cp) in enumerate(maps.items(), start=1)
    ]
    if assessment.deltas:
        figures.append(delta_cp_map_figure(assessment.deltas))
    if assessment.roadmap is not None:
        figures.append(roadmap_figure(assessment.roadmap))
    return figures
