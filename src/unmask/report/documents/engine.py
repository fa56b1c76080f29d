"""Documents of evaluations and comparisons: tables alone, no charts are loaded for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isnan

from unmask.engine import SPOOF_METRICS, Comparison, Evaluation, Thresholds
from unmask.estimate import Estimate
from unmask.report.documents import Document, Row, document, with_groups
from unmask.report.table import OF_POINTS, label

_READING = "C_llr and actDCF read the scores as natural-log likelihood ratios."
_TANDEM = "t-EER and t-DCF take the errors of both systems as independent."
# How a t-DCF was made, by the rule of the ASV's threshold that its estimate names.
_ASV_RATES = {
    "": "In the min t-DCF the verification system is at its EER on the convex hull.",
    "organisers": (
        "min t-DCF has C0 and the organisers' fixed ASV rates (P_miss 0.018801, P_fa 0.018810,"
        " P_fa,spf 0.460708)."
    ),
    "asvspoof": (
        "min t-DCF is that of 2019, without C0; the verification system is at its EER by the"
        " organisers' rule (the nearest point of trials)."
    ),
}
_OF_CONVENTIONS = {
    "asvspoof5": (
        "a-DCF at priors 0.9405, 0.0095, 0.05 and costs 1, 10, 10; minDCF and actDCF of a"
        " countermeasure at prior 0.95, C_miss 1 and C_fa 10 (track 1)."
    ),
    "speechbrain": (
        "SpeechBrain does not divide its minDCF by the better fixed decision: multiply this one by"
        " 0.01 to compare."
    ),
    "voxsrc": "Tied scores are pooled; in the organisers' script the order of ties moves minDCF.",
}
_OF_CONVENTIONS |= dict.fromkeys(
    ("voiceprivacy-2020", "voiceprivacy-2022", "voiceprivacy-2024", "voiceprivacy-2026"),
    "Tied scores are pooled in D_ECE and l_w; the challenge's tools take them one by one.",
)
_NEAREST_POINT = "t-EER, nearest point, is the organisers' number, without interpolation."


@document.register
def _(evaluation: Evaluation) -> Document:
    """One row per system and group; numbers of three classes in a table before those of two."""
    grouped = any(result.group is not None for result in evaluation)
    first = next(iter(evaluation)).estimates[0]
    lists = [("evaluation", evaluation), ("development", evaluation.dev)]
    rows = []
    for name, some in lists:
        for result in some or ():
            conditions = {"system": result.system}
            if evaluation.dev is not None:
                conditions["list"] = name
            if grouped:
                conditions["group"] = "all" if result.group is None else result.group
            rows.append(Row(conditions, result.estimates))
    three, two = (
        [
            replace(row, estimates=found)
            for row in rows
            if (found := [one for one in row.estimates if (one.metric in SPOOF_METRICS) == spoofs])
        ]
        for spoofs in (True, False)
    )
    shown = [replace(row, estimates=_with_thresholds(row.estimates)) for row in two]
    notes = [*counts(first), *_conventions(first), *_tandems(evaluation), _READING]
    title = "Spoofing-aware verification" if three else "Detection and disclosure"
    made = Document.of(evaluation, rows, notes=notes, title=title, tables=[three, shown])
    return with_groups(made, evaluation.gaps)


def _tandems(evaluation: Evaluation) -> list[str]:
    """Which systems are countermeasures, and what numbers of a tandem rest on."""
    every = [(result.system, estimate) for result in evaluation for estimate in result.estimates]
    cms = ", ".join(dict.fromkeys(name for name, estimate in every if estimate.metric == "cm_eer"))
    tandems = [estimate for _, estimate in every if estimate.metric == "min_t_dcf"]
    rules = dict.fromkeys(str(estimate.params.get("asv", "")) for estimate in tandems)
    told = [f"Bona fide against spoof, as a countermeasure: {cms}."] if cms else []
    if not cms and any(source.spoof for source in evaluation.sources):
        from unmask.engine import is_countermeasure

        named = {name: None for name, _ in every if is_countermeasure(name, None)}
        why = "A countermeasure by its name, judged target against nontarget without spoofs"
        told += [f"{why}: {', '.join(named)}."] if named else []
    if tandems:
        told += [_TANDEM, *(_ASV_RATES[rule] for rule in rules)]
    if any(estimate.metric == "t_eer_nearest" for _, estimate in every):
        told.append(_NEAREST_POINT)
    return told


def _with_thresholds(estimates: Sequence[Estimate]) -> list[Estimate]:
    """The thresholds of EER and minimum cost as rows of their own, after all other numbers."""
    return [
        *estimates,
        *(
            Estimate("threshold", one.threshold, params={"set_by": label(one).partition(" [")[0]})
            for one in estimates
            if one.metric in ("eer", "min_dcf") and one.threshold is not None
        ),
    ]


def _conventions(estimate: Estimate) -> list[str]:
    """By whose rules the numbers are, and which conditions weigh alike."""
    told = []
    if name := estimate.params.get("convention"):
        told.append(f"By the convention {name}.")
        told += [_OF_CONVENTIONS[str(name)]] if name in _OF_CONVENTIONS else []
    if column := estimate.params.get("equalise"):
        told.append(f"Conditions of {column} weigh alike within each class.")
    return told


@document.register
def _(points: Thresholds) -> Document:
    """Rows of operating points alone."""
    whole = document(points.evaluation)
    wanted = (*OF_POINTS, "eer", "min_dcf")
    rows = [
        replace(row, estimates=[one for one in row.estimates if one.metric in wanted])
        for row in whole.rows
    ]
    shown = [replace(row, estimates=_with_thresholds(row.estimates)) for row in rows]
    return replace(whole, rows=rows, tables=[shown], title="Operating points")


_CLASSES = {
    "target": "target",
    "nontarget": "nontarget",
    "bona_fide": "bona fide",
    "spoof": "spoof",
}


def counts(estimate: Estimate, classes: Mapping[str, str] = _CLASSES) -> list[str]:
    """What the numbers rest on and how the intervals were made, in one sentence each; ``classes``
    are those of trials, by their names.
    """
    n, made = estimate.n, estimate.interval
    speakers = f", {n['speakers']:,} speakers" if "speakers" in n else ""
    sizes = [f"{n[kind]:,} {name}" for kind, name in classes.items() if kind in n]
    listed = " and ".join(filter(None, (", ".join(sizes[:-1]), sizes[-1])))
    notes = [f"{listed} trials{speakers}, trial list {estimate.trials}."]
    if made is not None and not isnan(made.low):
        first_order = ", first order" if "first order" in made.method else ""
        notes.append(
            f"In brackets: {100 * made.level:g} % confidence intervals over {made.over} "
            f"({made.replicates:,} bootstrap replicates{first_order}, corrected for bias, seed"
            f" {made.seed})."
        )
    return notes


@document.register
def _(comparison: Comparison) -> Document:
    """One row per metric: both systems, the difference, and how sure it is."""
    first, second = comparison.first, comparison.second
    columns = (first, second, f"{second} − {first}")
    rows = []
    for row in comparison.differences:
        estimates = (row.first, row.second, row)
        conditions = {"metric": label(row.first)}
        share = comparison.share(row)
        if share is None:
            rows.append(Row(conditions, estimates, columns))
            continue
        sure = Estimate(
            f"share_{comparison.gains.replace(' ', '_')}",
            share,
            "%",
            chance=0.5,
            n=row.first.n,
            params={"metric": row.first.metric, **row.first.params},
            trials=row.first.trials,
            no_interval="a share of resamplings",
        )
        named = *columns, f"{second} {comparison.gains} [%]"
        rows.append(Row(conditions, (*estimates, sure), named))
    about = comparison.differences[0].first
    notes = [*counts(about), *_conventions(about), comparison.verdict]
    title = f"{second} against {first}{' as safeguards' if comparison.privacy else ''}"
    made = Document.of(comparison, rows, notes=notes, title=title)
    return with_groups(made, comparison.gaps)
