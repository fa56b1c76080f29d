"""All figures of an assessment by C-P maps."""

from __future__ import annotations

from unmask.figures import Figure
from unmask.figures.cp_map import cp_map_figure
from unmask.figures.delta_cp_map import delta_cp_map_figure
from unmask.figures.roadmap import roadmap_figure
from unmask.stress.cpmap_assess import CpAssessment
from unmask.stress.cpmap_contours import contour

LEVELS = {"eer": (0.01, 0.02, 0.05, 0.1, 0.2, 0.5), "min_dcf": (0.1, 0.2, 0.5, 0.8)}


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
