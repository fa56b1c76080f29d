"""Documents of worst-case studies and of the comparison of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from unmask.report.document import Document, Row
from unmask.stress.extrapolation import ModelComparison
from unmask.stress.worst_case_study import WorstCaseStudy
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
            f"{said}to keep the worst case of {need.count:,} impostors at {100 * need.rate:g} %,"
            f" accept above {need.threshold:.4g}: {100 * need.p_miss:.2f} % misses."
            for need in study.needed
        ]
        warnings += [said + line for line in study.warnings]
    seed = next(iter(studies.values())).extrapolation.seed
    return Document(
        tuple(rows), inputs=inputs, notes=tuple(notes), warnings=tuple(warnings), seed=seed
    )


def document_of_models(comparisons: Sequence[ModelComparison]) -> Document:
    """One row per population and model."""
    rows = tuple(
        Row({"population": table.population, "model": row.model}, table.estimates(row))
        for table in comparisons
        for row in table.rows
    )
    return Document(rows)


def _counts(study: WorstCaseStudy, said: str) -> str:
    fitted = study.extrapolation
    errors = fitted.errors
    how = (
        f"the least held-out error ({100 * errors[fitted.name]:.2f} % on hard thresholds)"
        if fitted.name in errors
        else "the model asked for"
    )
    told = (
        f"{said}{study.empirical.targets:,} targets with at least {study.empirical.impostors:,}"
        f" impostors; beyond them {fitted.name}, {how}."
    )
    if study.sample is not None:
        told += (
            f" It is fitted to at most {study.sample.per_pair:,} scores of each pair of"
            f" {study.sample.targets:,} targets; the measured rates rest on all scores."
        )
    if not fitted.rivals:
        return told
    far = study.predicted
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
