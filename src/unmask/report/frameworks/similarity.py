"""Voice similarity matrices, DeID and G_VD of every safeguard (Noé 2020, 2022)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from unmask import figures as charts
from unmask.estimate import Estimate
from unmask.privacy import Pseudonymisation, disclosure_of, similarity as similar, zoo
from unmask.privacy.legal import Attacker, of_people
from unmask.report.cache import Step, digest_of
from unmask.report.config import ORIGINAL
from unmask.report.documents import Document, Row, document, figures_of
from unmask.report.frameworks.attacks import matrix_attackers
from unmask.report.frameworks.study import Framework, Plan, Results, Study
from unmask.report.inputs import counterpart
from unmask.report.section import (
    Choice,
    Section,
    TableBlock,
    note,
    noted,
    whole_percent,
    with_level,
)
from unmask.report.table import label
from unmask.stress import sex_column
from unmask.trials import Embeddings, Source

NARROW = 0.5
MOST_IN_ONE_FIGURE = 100
LONG = 12
_GROUPED = ("deid", "g_vd", "deid_strongest")


@document.register
def _(
    assessment: similar.PrivacyAssessment, *, inputs: tuple[Source, ...] = (), details: bool = False
) -> Document:
    """Rows for each set, safeguard and attacker, and one for the original speech (Noé 2022, Tables
    2–4).
    """
    several = len(assessment.datasets) > 1
    rows = []
    for dataset in assessment.datasets:
        chosen = [s for s in assessment if s.dataset == dataset]
        where = {"set": dataset} if several else {}
        for safeguard in chosen:
            # C_ECE stands in the main row and among the details.
            estimates = (*safeguard.estimates, *(safeguard.details if details else ()))
            unique = {estimate.signature: estimate for estimate in estimates}
            named = {**where, "system": safeguard.system}
            rows += _by_attacker(named, safeguard.result, tuple(unique.values()))
        named = {**where, "system": "original"}
        rows += _by_attacker(named, chosen[0].result, _original(chosen[0]))
    tables = _apart(rows, {one.system: one.result for one in assessment})[::-1]
    about: Any = {"warnings": assessment.warnings, "seed": assessment.seed, "tables": tables}
    return Document(rows, inputs=inputs, notes=_notes(assessment), **about)


def _by_attacker(
    where: Mapping[str, str], result: Pseudonymisation, estimates: Sequence[Estimate]
) -> list[Row]:
    """A row for each attacker, that of the plain score first and the strongest after it."""
    rows: dict[str, list[Estimate]] = {}
    for one in estimates:
        rows.setdefault(result.attacker_of(one), []).append(one)
    return [
        Row({**where, "attacker": attacker, "trials": result.compared}, some)
        for attacker, some in rows.items()
    ]


def _apart(
    rows: Sequence[Row], results: Mapping[str, Pseudonymisation]
) -> tuple[list[Row], list[Row]]:
    """Rows of the plain scores, and of all other attacks."""
    names = {one.named() for one in results.values()}
    plain, others = (
        [row for row in rows if (row.conditions["attacker"] in names) == own]
        for own in (True, False)
    )
    return plain, others


def _original(safeguard: similar.SafeguardRow) -> tuple[Estimate, ...]:
    """D_ECE, l_w and tag of the original speech against itself: what there is to protect."""
    result = safeguard.result
    own = result.sets["oo"]
    zebra, interval = own.zebra, result.interval("d_ece_oo")
    n = {"target": zebra.targets, "nontarget": zebra.nontargets, "speakers": len(own.speakers)}
    params = {"set": "oo", "backend": result.backend, "bins": own.bins or None}
    about: dict[str, Any] = {"n": n, "params": params, "trials": result.trials}
    none = similar.UNDEFINED if result.replicates else similar.NOT_ASKED
    reason = none if interval is None else ""
    return (
        Estimate("d_ece", zebra.d_ece, "bit", interval, 0.0, no_interval=reason, **about),
        Estimate("l_w", zebra.l_w, chance=0.0, no_interval=similar.WITH_TRIALS, **about),
        Estimate("tag", zebra.tag, no_interval=similar.WITH_TRIALS, **about),
    )


def _notes(assessment: similar.PrivacyAssessment) -> list[str]:
    notes = []
    several = len(assessment.datasets) > 1
    for safeguard in {s.dataset: s for s in assessment}.values():
        result = safeguard.result
        where = f"{safeguard.dataset}: " if several else ""
        counts = [
            f"{sets}: {round(roc.targets):,} same-speaker and {round(roc.nontargets):,}"
            " different-speaker comparisons"
            for sets, part in (("OO and PP each", "oo"), ("OP", "op"))
            for roc in [result.sets[part].roc]
        ]
        notes.append(f"{where}{len(result.speakers):,} speakers. {'; '.join(counts)}.")
    for safeguard in assessment:
        where = f", {safeguard.dataset}" if several else ""
        worst = ", ".join(safeguard.result.per_speaker.worst(3))
        if worst:
            notes.append(f"{safeguard.system}{where}: least protected are {worst}.")
        notes += [n.about(f"{safeguard.system}{where}").line for n in safeguard.result.notes]
        lucky = [e for e in safeguard.result.estimates if e.luck is not None and e.unit]
        if said := "; ".join(f"{label(e).partition(' [')[0]} {e.luck_shown}" for e in lucky):
            best = f"the strongest of {len(safeguard.result.attacks)} reads without information"
            notes.append(f"{safeguard.system}{where}: {best} {said}.")
    tried = ("; ".join(map(one.result.named, one.result.attacks)) for one in assessment)
    notes += [f"Attacks tried: {some}." for some in dict.fromkeys(tried)]
    result = next(iter(assessment)).result
    notes.append(note("lowest_deid"))
    if result.replicates:
        notes.append(note("calibrated_anew", level=100 * result.level, result=result))
    return notes


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
    return figures


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
        figures = [one.called(f"{one.name}_{_plain(system)}") for system, one in each.items()]
    of = f"{first.compared}, by {first.named()}"
    figures.append(charts.disclosure_profiles(disclosures, negated=negated, colours=colours, of=of))
    figures.append(charts.speaker_protection(speakers, colours=colours))
    for system, sets in zoos.items():
        placed = {name: zoo(own) for name, own in sets.items()}
        matrices = {name: similar.single(own, order=order) for name, own in sets.items()}
        drawn = charts.zoo_plots(placed, matrices=matrices)
        figures.append(drawn.called(f"zoo_{_plain(system)}"))
    for s in (one for one in chosen if one.distortions):
        drawn = charts.calibration_profiles(s.distortions, of=of)
        figures.append(drawn.called(f"calibration_distortion_{_plain(s.system)}"))
    return figures


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip("-") or "set"


def _steps(study: Study) -> Plan:
    """The three matrices of each safeguard, of all and of each sex (or of each group by which
    verification goes); sessions where protected utterances name theirs.
    """
    inputs, config = study.inputs, study.config
    how = {"mean": config.similarity.mean, **config.drawn}
    all_pairs = {**how, "pairs": config.similarity.pairs}
    matrices, grouped, within = {}, {}, {}
    for name, protected in inputs.protected.items():
        assert inputs.original is not None
        voices = (counterpart(inputs.original, protected), protected)
        rivals = matrix_attackers(config, inputs, name)
        matrices[name] = _compared(f"voice similarity of {name}", voices, rivals, all_pairs)
        for group, people in _groups(voices[0], config.verification.by).items():
            some = of_people(voices[0], people), of_people(voices[1], people)
            among = {label: one.among(people) for label, one in rivals.items()}
            what = f"voice similarity of {name}, {group}"
            grouped[name, group] = _compared(what, some, among, {**all_pairs, **config.of_trials})
        if protected.sessions is not None and protected.sessions.n_unique > 1:
            within[name] = Step.of(
                f"sessions of {name}", similar.sessions, *voices, weight=2.0, **how
            )
    for name, sets in inputs.sets.items():
        scores = [sets[part] for part in ("oo", "op", "pp") if part in sets]
        if len(scores) == 3:
            what, of = f"voice similarity of {name}", similar.pseudonymisation
            matrices[name] = Step.of(what, of, *scores, weight=2.0, **all_pairs)
    return {"matrices": matrices, "groups": grouped, "sessions": within}


def _compared(
    what: str,
    voices: tuple[Embeddings, Embeddings],
    rivals: Mapping[str, Attacker],
    how: Mapping[str, Any],
) -> Step:
    held = [x for one in rivals.values() for x in (one.enrol, one.test, one.train) if x]
    return Step(
        what,
        [digest_of(one) for one in (*voices, *held)],
        {**how, "attackers": list(rivals), "backends": [one.backend for one in rivals.values()]},
        partial(similar.pseudonymisation, *voices, attackers=rivals, **how),
        weight=2.0 + 0.5 * len(rivals),
    )


def _groups(speech: Embeddings, by: str | None) -> dict[str, set[str]]:
    """People by a column, that of the sex where it is not there; none where a column does not tell
    people apart, or has two values for one.
    """
    named = by if by in speech.columns else sex_column(speech)
    if named is None:
        return {}
    told = zip(speech.columns[named].to_series(), speech.speakers.to_series(), strict=True)
    groups: dict[str, set[str]] = {}
    for value, speaker in told:
        groups.setdefault(f"{named} {value}", set()).add(speaker)
    several = sum(map(len, groups.values())) > speech.n_speakers or len(groups) < 2
    return {} if several else dict(sorted(groups.items()))


def _section(study: Study, results: Results) -> Section:
    """Matrices, distinctiveness against de-identification, each speaker, the zoo."""
    every: Mapping[str, Pseudonymisation] = results["matrices"]
    groups: Mapping[tuple[str, str], Pseudonymisation] = results["groups"]
    within: Mapping[str, similar.SessionAssessment] = results["sessions"]
    matrices, speakers, zoos = {}, {}, {}
    for name, result in every.items():
        left, against = whole_percent(_left(result)), f"against {result.named(result.attacker)}"
        title = f"{name}: {left} of what ties a voice to its owner is left {against}"
        views = {name: similar.quadrants(result)}
        matrices[name] = charts.similarity_matrices(views).called(title=title)
        own, people = 100 * result.per_speaker.deid, {name: result.per_speaker}
        low, high = math.floor(own.min()), math.floor(own.max() + 1e-9)
        title = f"{name}: DeID from {low} to {high} %, person by person, {against}"
        drawn = charts.speaker_protection(people, colours=study.colours)
        speakers[name] = drawn.called(title=title)
        title = f"{name}: whose protected voice is recognised and whose is confused"
        sets = {part.upper(): result.sets[part] for part in ("op", "pp")}
        views = {part: similar.single(own) for part, own in sets.items()}
        placed = {part: zoo(own) for part, own in sets.items()}
        zoos[name] = charts.zoo_plots(placed, matrices=views).called(title=title)
    cost = "Resemblance left and gain of distinctiveness: " + ", ".join(
        f"{n} {whole_percent(_left(r))} at {r.g_vd:+.1f} dB" for n, r in every.items()
    )
    points = [_point(name, "all", result) for name, result in every.items()]
    plane = charts.distinctiveness(points, colours=study.colours)

    def rows(some: Mapping[str, Sequence[Estimate]]) -> list[Row]:
        return [
            row
            for name, estimates in some.items()
            if name in every
            for row in _by_attacker({"safeguard": name}, every[name], estimates)
        ]

    by_group = [
        row
        for (name, group), result in groups.items()
        for row in _by_attacker(
            {"safeguard": name, "group": group},
            result,
            [one for one in result.estimates if one.metric in _GROUPED],
        )
    ]
    twins, attacks = _apart(rows({name: one.details for name, one in every.items()}), every)
    return Section(
        key="similarity",
        answer=[_answer(name, result) for name, result in every.items()],
        figures=[
            Choice.of("Matrices of", "similarity", matrices),
            plane.called(title=cost.replace("-", "−")),
            Choice.of("Speakers under", "speaker_protection", speakers),
            Choice.of("Zoo of", "zoo", zoos),
        ],
        tables=[
            TableBlock(
                "De-identification and voice distinctiveness",
                rows({name: one.estimates for name, one in every.items()}),
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
            TableBlock("Normalised twins, diagonal dominance", twins, folded=True),
            TableBlock("De-identification against every attack", attacks, folded=True),
        ],
        notices=[*noted(every), *noted(within)],
        options={
            "mean": study.config.similarity.mean,
            "pairs": "all pairs"
            if study.config.similarity.pairs == "all"
            else "one order of pairs",
        },
    )


def _left(result: Pseudonymisation) -> float:
    """Resemblance that the strongest reading of the scores still finds, as a share."""
    return 1 - float(result.strongest.deid.value)


def _answer(name: str, result: Pseudonymisation) -> str:
    deid = result.strongest.deid
    return (
        f"Under this recogniser {name} takes {with_level(deid)} of the diagonal dominance that"
        f" ties a voice to its owner (DeID of {result.compared}, {result.attacker_of(deid)}"
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


FRAMEWORK = Framework("similarity", _section, steps=_steps, main="matrices")
