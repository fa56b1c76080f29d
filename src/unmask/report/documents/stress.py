"""Documents of worst cases, and of models that extrapolate them (Sholokhov 2020)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from unmask import stress
from unmask.estimate import Notice
from unmask.report.documents import Document, Row, document
from unmask.report.table import threshold_value
from unmask.report.words import labels, note
from unmask.trials import Source


@document.register(Mapping)
def _(studies: Mapping[str, stress.WorstCaseStudy], *, inputs: tuple[Source, ...] = ()) -> Document:
    """One row per group and threshold."""
    rows: list[Row] = []
    notes: list[str] = []
    notices: list[Notice] = []
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
            weight = labels("thresholds").get(point.name, "as asked")
            threshold = f"{point.name} ({weight}) = {point.threshold:.4g}"
            if point.name.lstrip("-")[:1].isdigit():
                threshold = point.name
            rows.append(Row({**where, "threshold": threshold}, study.estimates_of(place), columns))
        notes.append(_counts(study, said))
        notes += [
            f"{said}to keep the closest of {need.count:,} voices at {100 * need.rate:g} %, accept"
            f" above {threshold_value(need.threshold)}: {100 * need.p_miss:.2f} %"
            f" misses{_safe(need, study)}."
            for need in study.needed
        ]
        at = f" at N = {study.population:,}: "
        notes += [f"{said}{name}{at}{_rates(study, far)}." for name, far in study.compared.items()]
        notices += [notice.about(where.get("group", "")) for notice in study.notices]
    seed = next(iter(studies.values())).extrapolation.seed
    warnings = [notice.line for notice in notices]
    return Document(rows, inputs=inputs, notes=notes, warnings=warnings, seed=seed)


def _safe(need: stress.Needed, study: stress.WorstCaseStudy) -> str:
    if not np.isfinite(need.high):
        return ""
    upper = (
        f", and the rate may be {100 * need.high:.2g} % (upper end of the"
        f" {100 * study.predicted.level:g} % interval)"
    )
    if not np.isfinite(need.safe_threshold):
        return f"{upper}; {study.empirical.targets:,} targets are too few to keep that end there"
    return (
        f"{upper}; to keep that end there, accept above"
        f" {threshold_value(need.safe_threshold)}: {100 * need.safe_p_miss:.2f} % misses"
    )


def _rates(study: stress.WorstCaseStudy, far: stress.Prediction) -> str:
    at = int(np.searchsorted(far.counts, study.population))
    return "; ".join(
        f"{point.name} {100 * far.values[at, t]:.1f} %"
        + (f" [{100 * far.low[at, t]:.1f}, {100 * far.high[at, t]:.1f}]" if far.groups else "")
        for t, point in enumerate(study.operating)
    )


@document.register(list)
@document.register(tuple)
def _(
    comparisons: Sequence[stress.ModelComparison], *, inputs: tuple[Source, ...] = ()
) -> Document:
    """A row per population and model, hard thresholds apart (Sholokhov 2020, Table 1)."""
    rows = [
        Row({"population": table.population, "model": row.model}, table.estimates_of(row))
        for table in comparisons
        for row in table.errors
    ]
    notes = [
        note("judged", table=table, least=min(table.counts), most=max(table.counts))
        for table in comparisons
    ]
    return Document(rows, inputs=inputs, notes=notes)


def _counts(study: stress.WorstCaseStudy, said: str) -> str:
    fitted = study.extrapolation
    held = ", ".join(f"{name} {100 * error:.2f} %" for name, error in fitted.errors.items())
    text = (
        f"{said}{study.empirical.targets:,} targets with at least {study.empirical.impostors:,}"
        f" impostors; beyond them {fitted.name}"
        f"{f' (held-out errors on hard thresholds: {held})' if held else ''}."
        " One attempt by the one closest of N voices, not N attempts."
    )
    if study.sample is not None:
        text += f" {note('sampled', sample=study.sample)}"
    far = study.predicted
    if not far.rivals:
        return text
    at = int(np.searchsorted(far.counts, study.population))
    spread = "; ".join(
        f"{point.name} {100 * low:.1f} to {100 * high:.1f} %"
        for point, low, high in zip(
            study.operating, far.spread_low[at], far.spread_high[at], strict=True
        )
    )
    return f"{text} Models that fit about as well give at N = {study.population:,}: {spread}."
