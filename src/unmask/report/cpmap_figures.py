"""All figures of an assessment by C-P maps."""

from __future__ import annotations

from unmask.figures import (
    Figure,
    cp_map_figure,
    delta_cp_map_figure,
    roadmap_figure,
    trial_bias_figure,
)
from unmask.stress import CpAssessment, contour

LEVELS = {"eer": (0.01, 0.02, 0.05, 0.1, 0.2, 0.5), "min_dcf": (0.1, 0.2, 0.5, 0.8)}


def cp_figures(assessment: CpAssessment, *further: CpAssessment) -> list[Figure]:
    """The maps on one scale, each with its trial configs, trial bias, delta maps, the roadmap.

    ``further`` assessments are of the same trials by another metric: their delta maps stand beside
    those of the first.
    """
    every = (assessment, *further)
    figures = [figure for one in every for figure in _of_maps(one, several=bool(further))]
    figures += [
        trial_bias_figure(
            bias, name=f"trial_bias_{number}", title=f"Trial bias: {name} on other trials"
        )
        for number, (name, bias) in enumerate(assessment.bias.items(), start=1)
        if len(bias) > 1
    ]
    if assessment.deltas:
        paired = zip(*(one.deltas for one in every), strict=True)
        figures.append(delta_cp_map_figure([delta for pair in paired for delta in pair]))
    for one in every:
        if one.roadmap is not None:
            figures.append(roadmap_figure(one.roadmap, name=f"cp_roadmap{_end(one, further)}"))
    return figures


def _end(one: CpAssessment, further: tuple[CpAssessment, ...]) -> str:
    return f"_{next(iter(one.maps.values())).metric.name}" if further else ""


def _of_maps(assessment: CpAssessment, *, several: bool) -> list[Figure]:
    maps = assessment.maps
    metric = next(iter(maps.values())).metric.name
    end = f"_{metric}" if several else ""
    lines = {name: [contour(cp, level) for level in LEVELS[metric]] for name, cp in maps.items()}
    figures = [cp_map_figure(maps, contours=lines, name=f"cp_map{end}")] if len(maps) > 1 else []
    figures += [
        cp_map_figure(
            {name: cp},
            contours=lines,
            positions=assessment.positions,
            name=f"cp_map{end}_{number}",
            title=f"C-P map of {name}",
        )
        for number, (name, cp) in enumerate(maps.items(), start=1)
    ]
    return figures
