"""Documents of evaluations and comparisons: tables alone, no charts are loaded for them."""

from __future__ import annotations

from math import isnan

from unmask.engine import Comparison, Evaluation
from unmask.estimate import Estimate
from unmask.report.documents import Document, Row, document
from unmask.report.table import label


@document.register
def _(evaluation: Evaluation) -> Document:
    """One row per system and group."""
    grouped = any(result.group is not None for result in evaluation)
    rows = []
    for result in evaluation:
        conditions = {"system": result.system}
        if grouped:
            conditions["group"] = "all" if result.group is None else result.group
        rows.append(Row(conditions, result.estimates))
    return Document(
        tuple(rows),
        inputs=evaluation.sources,
        notes=_counts(evaluation),
        warnings=evaluation.warnings,
        seed=evaluation.seed,
        title="Detection and disclosure",
    )


def _counts(evaluation: Evaluation) -> tuple[str, ...]:
    """What the numbers rest on and how the intervals were made, in one sentence each."""
    estimate = next(iter(evaluation)).estimates[0]
    notes = [f"{_trials(estimate)}."]
    if estimate.interval is not None and not isnan(estimate.interval.low):
        notes.append(_intervals(estimate))
    notes.append("C_llr and actDCF read the scores as natural-log likelihood ratios.")
    return tuple(notes)


def _trials(estimate: Estimate) -> str:
    n = estimate.n
    speakers = f", {n['speakers']:,} speakers" if "speakers" in n else ""
    return (
        f"{n['target']:,} target and {n['nontarget']:,} nontarget trials{speakers}, "
        f"trial list {estimate.trials}"
    )


def _intervals(estimate: Estimate) -> str:
    made = estimate.interval
    assert made is not None
    return (
        f"In brackets: {100 * made.level:g} % intervals over {made.over} ({made.replicates:,} "
        f"bootstrap replicates{', first order' if 'first order' in made.method else ''}, corrected "
        f"for bias, seed {made.seed})."
    )


@document.register
def _(comparison: Comparison) -> Document:
    """One row per metric: both systems, the difference, and how sure the better one is better."""
    first, second = comparison.first, comparison.second
    columns = (first, second, f"{second} − {first}")
    rows = []
    for row in comparison.differences:
        estimates = (row.first, row.second, row.difference)
        conditions = {"metric": label(row.first)}
        if row.second_better is None:
            rows.append(Row(conditions, estimates, columns))
            continue
        sure = Estimate(
            "share_better",
            row.second_better,
            "%",
            chance=0.5,
            n=row.first.n,
            params={"metric": row.first.metric, **row.first.params},
            trials=row.first.trials,
            no_interval="a share of resamplings",
        )
        rows.append(Row(conditions, (*estimates, sure), (*columns, f"{second} better [%]")))
    example = comparison.differences[0].first
    notes = [f"{_trials(example)}.", comparison.verdict]
    if example.interval is not None and not isnan(example.interval.low):
        notes.insert(1, _intervals(example))
    return Document(
        tuple(rows),
        inputs=comparison.sources,
        notes=tuple(notes),
        warnings=comparison.warnings,
        seed=comparison.seed,
        title=f"{second} against {first}",
    )
