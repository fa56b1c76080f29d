"""All figures of an evaluation, every system in its own colour."""

from __future__ import annotations

from unmask.engine import Evaluation, curves
from unmask.figures import (
    Figure,
    calibration_plot,
    ece_profile,
    pav_map,
    score_histograms,
    system_colours,
)
from unmask.figures.tradeoff import det, roc_hull
from unmask.trials import Scores


def counted_figures(evaluation: Evaluation, *, p_target: float = 0.01) -> list[Figure]:
    """DET and ROC hull: what can be drawn of trials that were counted and not kept."""
    rocs = {result.system: result.roc for result in evaluation if result.group is None}
    colours = system_colours(list(rocs))
    drawn = {name: curves.det_curve(roc, p_target=p_target) for name, roc in rocs.items()}
    return [det(drawn, colours=colours), roc_hull(drawn, colours=colours)]


def detection_figures(
    scores: Scores, evaluation: Evaluation, *, p_target: float = 0.01
) -> list[Figure]:
    """Histogram, DET, ROC hull, PAV map, ECE profile and calibration plot over all trials."""
    rocs = {result.system: result.roc for result in evaluation if result.group is None}
    classes = {name: (scores.targets(name), scores.nontargets(name)) for name in rocs}
    colours = system_colours(list(rocs))
    det_curves = {name: curves.det_curve(roc, p_target=p_target) for name, roc in rocs.items()}
    return [
        score_histograms(
            {name: curves.histogram(*classes[name], roc) for name, roc in rocs.items()}
        ),
        det(det_curves, colours=colours),
        roc_hull(det_curves, colours=colours),
        pav_map(
            {name: curves.pav_map(*classes[name], roc) for name, roc in rocs.items()},
            colours=colours,
        ),
        ece_profile(
            {name: curves.ece_profile(*classes[name], roc) for name, roc in rocs.items()},
            colours=colours,
        ),
        calibration_plot(
            {name: curves.reliability(*pair) for name, pair in classes.items()}, colours=colours
        ),
    ]
