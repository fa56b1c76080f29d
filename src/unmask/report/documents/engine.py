"""Documents of evaluations and comparisons: tables alone, no charts are loaded for them."""

from __future__ import annotations

from math import isnan

from unmask.engine import Comparison, Evaluation
from unmask.estimate import Estimate
from unmask.report.documents import Document, Row, document
from unmask.report.table import label

_READING = "C_llr and actDCF read the scores as natural-log likelihood ratios."


@document.register
def _(evaluation: Evaluation) -> Document:
    """One row per system and group."""
    grouped = any(result.group is not None for result in evaluation)
    first = next(iter(evaluation)).estimates[0]
    rows = []
    for result in evaluation:
        conditions = {"system": result.system}
        if grouped:
            conditions["group"] = "all" if result.group is None else result.group
        rows.append(Row(conditions, result.estimates))
    notes, title = [*counts(first), _READING], "Detection and disclosure"
    return Document.of(evaluation, rows, notes=notes, title=title)


def counts(estimate: Estimate) -> list[str]:
    """What the numbers rest on and how the intervals were made, in one sentence each."""
    n, made = estimate.n, estimate.interval
    speakers = f", {n['speakers']:,} speakers" if "speakers" in n else ""
    notes = [
        f"{n['target']:,} target and {n['nontarget']:,} nontarget trials{speakers}, "
        f"trial list {estimate.trials}."
    ]
    if made is not None and not isnan(made.low):
        first_order = ", first order" if "first order" in made.method else ""
        notes.append(
            f"In brackets: {100 * made.level:g} % intervals over {made.over} ({made.replicates:,} "
            f"bootstrap replicates{first_order}, corrected for bias, seed {made.seed})."
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
    notes = [*counts(comparison.differences[0].first), comparison.verdict]
    title = f"{second} against {first}{' as safeguards' if comparison.privacy else ''}"
    return Document.of(comparison, rows, notes=notes, title=title)
