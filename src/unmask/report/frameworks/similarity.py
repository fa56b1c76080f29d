"""Voice similarity matrices, DeID and G_VD of every safeguard (Noé 2020, 2022)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from unmask import figures as charts
from unmask.assessment import ORIGINAL, Results, Study, by_label, ranked_sets
from unmask.estimate import Estimate
from unmask.privacy import Pseudonymisation, disclosure_of, similarity as similar, zoo
from unmask.report.documents import Row, figures_of
from unmask.report.documents.similarity import apart, by_attacker
from unmask.report.section import (
    Choice,
    Section,
    TableBlock,
    colours_of,
    group_blocks,
    group_choice,
    group_figures,
    noted,
)
from unmask.report.words import note, whole_percent, with_level

NARROW = 0.5
MOST_IN_ONE_FIGURE = 100
LONG = 12
_GROUPED = ("deid", "g_vd", "deid_strongest")


@figures_of.register(similar.PrivacyAssessment)
def _(assessment: similar.PrivacyAssessment, *, order: str = "given") -> list[charts.Figure]:
    """Matrices, disclosure, protection and zoo per set, and the scatter over all sets."""
    colours = charts.system_colours([ORIGINAL, *assessment.systems], original=ORIGINAL)
    points = [_point(s.system, s.dataset, s.result) for s in assessment]
    figures = []
    if any(math.isfinite(point.g_vd) for point in points):
        figures.append(charts.distinctiveness(points, colours=colours))
    several = len(assessment.datasets) > 1
    for dataset in assessment.datasets:
        chosen = [s for s in assessment if s.dataset == dataset]
        drawn = _of_set(chosen, colours, order)
        which = f"_{_plain(dataset)}" if several else ""
        figures += [figure.called(f"{figure.name}{which}") for figure in drawn]
    return [*figures, *group_figures(assessment.gaps)]


@figures_of.register(Pseudonymisation)
def _(result: Pseudonymisation, *, order: str = "given") -> list[charts.Figure]:
    return figures_of(
        similar.PrivacyAssessment((similar.SafeguardRow("protected", "all", result),)), order=order
    )


def _point(system: str, dataset: str, result: Pseudonymisation) -> charts.Point:
    intervals = (result.interval("deid"), result.interval("g_vd"))
    return charts.Point(system, dataset, result.deid, result.g_vd, *intervals, *result.beyond_plain)


def _of_set(
    chosen: list[similar.SafeguardRow], colours: dict[str, str], order: str
) -> list[charts.Figure]:
    results = {s.system: s.result for s in chosen}
    first = chosen[0].result
    disclosures = {ORIGINAL: disclosure_of(first.sets["oo"].roc, system=ORIGINAL)}
    negated = {}
    zoos = {ORIGINAL: {"OO": first.sets["oo"]}}
    for system, result in results.items():
        roc = result.sets["op"].roc
        disclosures[system] = disclosure_of(roc, system=system)
        if result.negated_discloses_more:
            negated[system] = disclosure_of(roc.negated(), system=system)
        zoos[system] = {name.upper(): result.sets[name] for name in ("op", "pp")}
    speakers = {system: result.per_speaker for system, result in results.items()}
    views = {system: similar.quadrants(result, order=order) for system, result in results.items()}
    large = max(len(view.labels) for view in views.values()) > MOST_IN_ONE_FIGURE
    if not large or len(views) == 1:
        figures = [charts.similarity_matrices(views)]
    else:
        each = {name: charts.similarity_matrices({name: view}) for name, view in views.items()}
        figures = [chart.called(f"{chart.name}_{_plain(system)}") for system, chart in each.items()]
    of = f"{first.compared}, by {first.named()}"
    figures.append(charts.disclosure_profiles(disclosures, negated=negated, colours=colours, of=of))
    figures.append(charts.speaker_protection(speakers, colours=colours))
    for system, sets in zoos.items():
        placed = {name: zoo(own) for name, own in sets.items()}
        matrices = {name: similar.single(own, order=order) for name, own in sets.items()}
        drawn = charts.zoo_plots(placed, matrices=matrices)
        figures.append(drawn.called(f"zoo_{_plain(system)}"))
    for s in (row for row in chosen if row.distortions):
        drawn = charts.calibration_profiles(s.distortions, of=of)
        figures.append(drawn.called(f"calibration_distortion_{_plain(s.system)}"))
    return figures


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip("-") or "set"


def section(study: Study, results: Results) -> Section:
    """Matrices, distinctiveness against de-identification, each speaker, the zoo."""
    every: Mapping[str, Pseudonymisation] = results["matrices"]
    groups: Mapping[str, similar.GroupedPseudonymisation] = results["groups"]
    within: Mapping[str, similar.SessionAssessment] = results["sessions"]
    anew: Mapping[str, similar.Retrained] = results["retrained"]
    told = {name: by_label(one, study) for name, one in every.items() if name in _told(study)}
    colours, base = colours_of(study), study.config.table.baseline
    matrices, speakers, zoos = {}, {}, {}
    for name, result in told.items():
        left, against = whole_percent(_left(result)), f"against {result.named(result.attacker)}"
        title = f"{name} leaves {left} of the resemblance to the owner, {against}"
        views = {name: similar.quadrants(result)}
        matrices[name] = charts.similarity_matrices(views).called(title=title)
        own, people = 100 * result.per_speaker.deid, {name: result.per_speaker}
        low, high = math.floor(own.min()), math.floor(own.max() + 1e-9)
        title = f"{name}: DeID from {low} to {high} %, person by person, {against}"
        drawn = charts.speaker_protection(people, colours=colours)
        speakers[name] = drawn.called(title=title)
        title = f"{name}: whose protected voice is recognised and whose is confused"
        sets = {part.upper(): result.sets[part] for part in ("op", "pp")}
        views = {part: similar.single(own) for part, own in sets.items()}
        placed = {part: zoo(own) for part, own in sets.items()}
        zoos[name] = charts.zoo_plots(placed, matrices=views).called(title=title)
    cost = "Resemblance left and gain of distinctiveness: " + ", ".join(
        f"{n} {whole_percent(_left(r))} at {r.g_vd:+.1f} dB" for n, r in told.items()
    )
    points = [_point(name, "all", result) for name, result in told.items()]
    planes = []
    # Where no safeguard leaves voices apart every gain is −∞, which has no place on an axis.
    if any(math.isfinite(point.g_vd) for point in points):
        plane = charts.distinctiveness(points, colours=colours)
        planes.append(plane.called(title=cost.replace("-", "−")))

    def rows(some: Mapping[str, Sequence[Estimate]]) -> list[Row]:
        return [
            row
            for name, estimates in some.items()
            if name in every
            for row in by_attacker({"safeguard": name}, every[name], estimates)
        ]

    by_group: list[Row] = []
    for name, grouped in groups.items():
        for group, result in grouped.results.items():
            where = {"safeguard": name, "group": group}
            some = [estimate for estimate in result.estimates if estimate.metric in _GROUPED]
            by_group += by_attacker(where, result, some)
    gaps = [
        replace(grouped.gaps, conditions={"safeguard": name}) for name, grouped in groups.items()
    ]
    twins, attacks = apart(rows({name: one.details for name, one in every.items()}), every)
    return Section(
        key="similarity",
        answer=[
            *(_answer(name, result) for name, result in told.items()),
            *(f"{name}: {one.said(every[name]['g_vd'])}." for name, one in anew.items()),
        ],
        figures=[
            Choice.of("Matrices of", "similarity", matrices),
            *planes,
            Choice.of("Speakers under", "speaker_protection", speakers),
            Choice.of("Which speakers are easy or hard to recognise (zoo) under", "zoo", zoos),
            *group_choice(gaps, "groups_deid"),
        ],
        tables=[
            TableBlock(
                "De-identification and voice distinctiveness",
                rows(
                    {
                        name: (*one.estimates, *(anew[name].estimates if name in anew else ()))
                        for name, one in every.items()
                    }
                ),
            ),
            TableBlock(
                f"De-identification and distinctiveness above those of {base}",
                [Row({"safeguard": name}, some) for name, some in results["differences"].items()],
            ),
            TableBlock(
                "Within and between sessions",
                rows({name: one.estimates for name, one in within.items()}),
            ),
            TableBlock(
                "De-identification and distinctiveness by group",
                by_group,
                folded=len(by_group) > LONG,
                note=note("by_group"),
            ),
            *group_blocks(gaps)[1:],
            TableBlock("Normalised twins, diagonal dominance", twins, folded=True),
            TableBlock("De-identification against every attack", attacks, folded=True),
        ],
        notices=[
            *noted(every),
            *(similar.UNTAUGHT.about(n) for n in study.inputs.protected if n not in anew),
            *noted(within),
        ],
        options={
            "mean": study.config.similarity.mean,
            "pairs": "all pairs"
            if study.config.similarity.pairs == "all"
            else "one order of pairs",
        },
    )


def _told(study: Study) -> set[str]:
    """What is drawn and told: safeguards of voices, and the first ranked of lists of scores."""
    first: dict[str, str] = {}
    for safeguard in study.config.safeguards:
        ranked = next(iter(ranked_sets(given.set or "" for given in safeguard.scores)), None)
        for given in (given for given in safeguard.scores if (given.set or "") == ranked):
            first.setdefault(safeguard.name, given.label(safeguard.name))
    return {*study.inputs.protected, *first.values()}


def _left(result: Pseudonymisation) -> float:
    """Resemblance that the strongest reading of the scores still finds, as a share."""
    return 1 - float(result.strongest.deid.value)


def _answer(name: str, result: Pseudonymisation) -> str:
    deid = result.strongest.deid
    return (
        f"Judged by this recogniser, {name} removes {with_level(deid)} of the resemblance to the"
        f" original speaker (DeID of {result.compared}, {result.attacker_of(deid)}"
        f"{'' if deid.luck is None else f'; {deid.by_luck}'}); {_distinct(result)}."
    ).replace("-", "−")


def _distinct(result: Pseudonymisation) -> str:
    """Whether protected voices stay distinct, as far as the interval of G_VD can tell."""
    gain, interval = result.g_vd, result.interval("g_vd")
    if interval is None:
        return f"G_VD of protected voices is {gain:+.1f} dB, without an interval"
    measured = f"G_VD {gain:+.1f} dB [{interval.low:+.1f}, {interval.high:+.1f}]"
    if interval.low > 0:
        return f"protected voices are easier to tell apart than before ({measured})"
    if interval.high < 0:
        return f"protected voices are harder to tell apart than before ({measured})"
    if max(-interval.low, interval.high) <= NARROW:
        return f"protected voices are as distinct as before ({measured})"
    return f"whether protected voices are as distinct as before remains open ({measured})"
