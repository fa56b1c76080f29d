"""All figures of a privacy assessment."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from unmask.figures import (
    Figure,
    Point,
    calibration_profiles,
    disclosure_profiles,
    similarity_matrices,
    speaker_protection,
    system_colours,
    zoo_plots,
)
from unmask.figures.safeguards import distinctiveness
from unmask.privacy import zoo_of_set
from unmask.privacy.similarity import (
    PrivacyAssessment,
    Pseudonymisation,
    Safeguard,
    SimilaritySet,
    quadrants,
    single,
)
from unmask.privacy.zebra import disclosure_of

ORIGINAL = "original"
MOST_IN_ONE_FIGURE = 100


def privacy_figures(assessment: PrivacyAssessment, *, order: str = "given") -> list[Figure]:
    """Matrices, disclosure, protection and zoo per set, and the scatter over all sets."""
    colours = system_colours([ORIGINAL, *assessment.systems], original=ORIGINAL)
    points = [
        Point(
            s.system,
            s.dataset,
            s.result.deid,
            s.result.g_vd,
            s.result.interval("deid"),
            s.result.interval("g_vd"),
            *s.result.beyond_plain,
        )
        for s in assessment
    ]
    figures = []
    if any(math.isfinite(point.g_vd) for point in points):
        figures.append(distinctiveness(points, colours=colours))
    several = len(assessment.datasets) > 1
    for dataset in assessment.datasets:
        chosen = [s for s in assessment if s.dataset == dataset]
        figures += _of_set(chosen, colours, order, f"_{_plain(dataset)}" if several else "")
    return figures


def _of_set(
    chosen: list[Safeguard], colours: dict[str, str], order: str, suffix: str
) -> list[Figure]:
    results = {s.system: s.result for s in chosen}
    first = chosen[0].result
    disclosures = {ORIGINAL: disclosure_of(first.sets["oo"].roc, system=ORIGINAL)} | {
        system: disclosure_of(result.sets["op"].roc, system=system)
        for system, result in results.items()
    }
    negated = {
        system: disclosure_of(result.sets["op"].roc.negated(), system=system)
        for system, result in results.items()
        if result.negated_discloses_more
    }
    figures = [
        *_matrices(results, order, suffix),
        disclosure_profiles(
            disclosures, negated=negated, colours=colours, name=f"zebra_profiles{suffix}"
        ),
        speaker_protection(
            {system: result.per_speaker for system, result in results.items()},
            colours=colours,
            name=f"speaker_protection{suffix}",
        ),
        _zoo({"OO": first.sets["oo"]}, ORIGINAL, order, suffix),
    ]
    figures += [
        _zoo({name.upper(): result.sets[name] for name in ("op", "pp")}, system, order, suffix)
        for system, result in results.items()
    ]
    figures += [
        calibration_profiles(
            s.distortions, name=f"calibration_distortion_{_plain(s.system)}{suffix}"
        )
        for s in chosen
        if s.distortions
    ]
    return figures


def _matrices(results: Mapping[str, Pseudonymisation], order: str, suffix: str) -> list[Figure]:
    """All safeguards in one figure, or in one figure each where the matrices are large."""
    views = {system: quadrants(result, order=order) for system, result in results.items()}
    name = "similarity_matrices"
    if max(len(view.labels) for view in views.values()) <= MOST_IN_ONE_FIGURE or len(views) == 1:
        return [similarity_matrices(views, name=f"{name}{suffix}")]
    return [
        similarity_matrices({system: view}, name=f"{name}_{_plain(system)}{suffix}")
        for system, view in views.items()
    ]


def _zoo(sets: Mapping[str, SimilaritySet], system: str, order: str, suffix: str) -> Figure:
    return zoo_plots(
        {name: zoo_of_set(own) for name, own in sets.items()},
        matrices={name: single(own, order=order) for name, own in sets.items()},
        name=f"zoo_{_plain(system)}{suffix}",
        title=f"Zoo plot of {system}: who is recognised, who is confused with others",
    )


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip("-") or "set"
