"""Documents of worst-case studies and of the comparison of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from unmask.report.document import Document, Row
from unmask.stress import Needed, WorstCaseStudy
from unmask.stress.extrapolation import ModelComparison
from unmask.trials import Source


def document_of_worst_case(
    studies: Mapping[str, WorstCaseStudy], *, inputs: tuple[Source, ...] = ()
) -> Document:
    """One row per group and threshold."""
    rows: list[Row] = []
    notes: list[str] = []
    warnings: list[str] = []
    for group, study in studies.items():
        where = {"group": group} if len(studies) > 1 else {}
        said = f"{group}: " if where else ""
        count = study.empirical.impostors
        columns = (
            "P_FA, N = 1 [%]",
            f"N = {count:,} [%]" if not where else "all impostors [%]",
            f"N = {study.population:,} [%]" if not where else "population [%]",
            "P_miss [%]",
        )
        for place, point in enumerate(study.operating):
            conditions = where | {
                "threshold": point.name
                if _is_number(point.name)
                else f"{point.name} = {point.threshold:.4g}"
            }
            rows.append(Row(conditions, study.estimates(place), columns))
        notes.append(_counts(study, said))
        notes += [
            f"{said}to keep the closest of {need.count:,} voices at {100 * need.rate:g} %, accept"
            f" above {need.threshold:.4g}: {100 * need.p_miss:.2f} % misses{_safe(need, study)}."
            for need in study.needed
        ]
        notes += [_beside(study, name, said) for name in study.compared]
        warnings += [said + line for line in study.warnings]
    seed = next(iter(studies.values())).extrapolation.seed
    return Document(
        tuple(rows), inputs=inputs, notes=tuple(notes), warnings=tuple(warnings), seed=seed
    )


def _safe(need: Needed, study: WorstCaseStudy) -> str:
    if not np.isfinite(need.high):
        return ""
    told = (
        f", and the rate may be {100 * need.high:.2g} % (upper end of the"
        f" {100 * study.predicted.level:g} % interval)"
    )
    if not np.isfinite(need.safe_threshold):
        return f"{told}; {study.empirical.targets:,} targets are too few to keep that end there"
    return (
        f"{told}; to keep that end there, accept above"
        f" {need.safe_threshold:.4g}: {100 * need.safe_p_miss:.2f} % misses"
    )


def _beside(study: WorstCaseStudy, name: str, said: str) -> str:
    far = study.compared[name]
    at = int(np.searchsorted(far.counts, study.population))
    rates = "; ".join(
        f"{point.name} {100 * far.values[at, t]:.1f} %"
        + (f" [{100 * far.low[at, t]:.1f}, {100 * far.high[at, t]:.1f}]" if far.groups else "")
        for t, point in enumerate(study.operating)
    )
    return f"{said}{name} at N = {study.population:,}: {rates}."


def document_of_models(
    comparisons: Sequence[ModelComparison], *, inputs: tuple[Source, ...] = ()
) -> Document:
    """One row per population and model: Table 1 of Sholokhov 2020, with the baseline that repeats
    the last known column, and hard thresholds apart.
    """
    rows = tuple(
        Row({"population": table.population, "model": row.model}, table.estimates(row))
        for table in comparisons
        for row in table.rows
    )
    notes = tuple(
        f"{table.population}: trained on N ≤ {table.train_count:,}, judged on"
        f" N = {min(table.counts):,} … {max(table.counts):,}; hard thresholds have 2 to 98 % at"
        f" N = {table.train_count:,}."
        for table in comparisons
    )
    return Document(rows, inputs=inputs, notes=notes)


def _counts(study: WorstCaseStudy, said: str) -> str:
    fitted = study.extrapolation
    errors = fitted.errors
    held = ", ".join(f"{name} {100 * error:.2f} %" for name, error in errors.items())
    told = (
        f"{said}{study.empirical.targets:,} targets with at least {study.empirical.impostors:,}"
        f" impostors; beyond them {fitted.name}"
        f"{f' (held-out errors on hard thresholds: {held})' if held else ''}."
        " One attempt by the one closest of N voices, not N attempts."
    )
    if study.sample is not None:
        told += (
            f" It is fitted to at most {study.sample.per_pair:,} scores of each pair of"
            f" {study.sample.targets:,} targets; the measured rates rest on all scores."
        )
    far = study.predicted
    if not far.rivals:
        return told
    at = int(np.searchsorted(far.counts, study.population))
    spread = "; ".join(
        f"{point.name} {100 * low:.1f} to {100 * high:.1f} %"
        for point, low, high in zip(
            study.operating, far.spread_low[at], far.spread_high[at], strict=True
        )
    )
    return f"{told} Models that fit about as well give at N = {study.population:,}: {spread}."


def _is_number(name: str) -> bool:
    return name.lstrip("-")[:1].isdigit()
