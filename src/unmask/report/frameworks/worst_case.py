"""False alarms when the closest of N impostors tries (Sholokhov 2020)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from unmask import figures as charts, stress
from unmask.engine import Roc
from unmask.estimate import Notice, Noticed
from unmask.report.documents import Document, Row, document, figures_of
from unmask.report.frameworks.study import Framework, Plan, Results, Study
from unmask.report.section import Section, TableBlock, note, noted, whole_percent, with_level
from unmask.run import part
from unmask.trials import Scores, Source

_STEPS = (1, 2, 5)
_CHART = 1
"""The threshold that charts and sentences take: both errors weigh alike."""
_WEIGHTS = {
    "τ₁": "misses weigh ten times more",
    "τ₂": "both errors weigh alike",
    "τ₃": "false alarms weigh ten times more",
}


@dataclass(frozen=True, eq=False)
class SystemGrowth:
    """One system at the thresholds of a study; ``predicted`` is None where no model was fitted."""

    system: str
    operating: tuple[stress.Operating, ...]
    measured: stress.WorstCase
    predicted: stress.Prediction | None = None

    def rows(self, table: str, rates: stress.WorstCase | stress.Prediction) -> list[Row]:
        """A row of each count and threshold; those of most impostors are last."""
        where = {"table": table, "system": self.system}
        cells = product((f"{int(count):,}" for count in rates.counts), self.operating)
        return [
            Row({**where, "threshold": point.name, "impostors": count}, (estimate,))
            for (count, point), estimate in zip(cells, rates.estimates, strict=True)
        ]

    @property
    def answer(self) -> str:
        """How often the closest of all voices passes."""
        name, last = self.operating[_CHART].name, _CHART - len(self.operating)
        text = (
            f"{self.system}: at {name} ({_WEIGHTS.get(name, 'as asked')}), the one closest"
            f" of {int(self.measured.counts[-1]):,} voices passes, in one attempt,"
            f" {with_level(self.measured.estimates[last])} of the time"
        )
        far = self.predicted
        if far is None:
            return f"{text}."
        rate = with_level(far.estimates[last])
        return f"{text}; of {int(far.counts[-1]):,}, {rate}, a model's answer."


@dataclass(frozen=True, eq=False)
class Growth(Noticed):
    """All systems of one table."""

    systems: tuple[SystemGrowth, ...]
    notices: tuple[Notice, ...]


def default_counts(most: int) -> tuple[int, ...]:
    """1, 2, 5, 10, … below the number of impostors, and that number."""
    steps = (step * 10**power for power in range(8) for step in _STEPS)
    return (*(n for n in steps if n < most), most)


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
            weight = _WEIGHTS.get(point.name, "as asked")
            threshold = f"{point.name} ({weight}) = {point.threshold:.4g}"
            if point.name.lstrip("-")[:1].isdigit():
                threshold = point.name
            rows.append(Row({**where, "threshold": threshold}, study.estimates(place), columns))
        notes.append(_counts(study, said))
        notes += [
            f"{said}to keep the closest of {need.count:,} voices at {100 * need.rate:g} %, accept"
            f" above {need.threshold:.4g}: {100 * need.p_miss:.2f} % misses{_safe(need, study)}."
            for need in study.needed
        ]
        at = f" at N = {study.population:,}: "
        notes += [f"{said}{name}{at}{_rates(study, far)}." for name, far in study.compared.items()]
        notices += [one.about(where.get("group", "")) for one in study.notices]
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
        f" {need.safe_threshold:.4g}: {100 * need.safe_p_miss:.2f} % misses"
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
    """One row per population and model: Table 1 of Sholokhov 2020, with the baseline that repeats
    the last known column, and hard thresholds apart.
    """
    rows = [
        Row({"population": table.population, "model": row.model}, table.estimates(row))
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


figures_of.register(stress.WorstCaseStudy, lambda study: list(charts.worst_case_figures(study)))


def growth_of(
    scores: Scores,
    *,
    counts: Sequence[int] | None,
    by: str | None,
    far: bool,
    population: int | None,
    model: str,
    **options: Any,
) -> Growth:
    """False alarms of every system of a table; what its data do not allow is left out and noted.

    ``counts`` are numbers of impostors, by default 1, 2, 5, 10, …; ``by`` names a column within
    whose groups impostors are taken. ``far`` asks for a study, which goes on to ``population`` by
    ``model``; further options are those of :func:`unmask.worst_case`.
    """
    notices: list[Notice] = []
    systems = []
    chosen = scores.is_nontarget & _same_group(scores, by, notices)
    impostors = scores.select(chosen) if chosen.any() else None
    for index, system in enumerate(scores.systems):
        if impostors is None:
            sentence = "no impostor trials within the groups, left out"
            notices.append(Notice("no-impostors", system, sentence))
            continue
        every = stress.speaker_pairs(impostors, system=system, both_ways=False)
        pairs = _usable_pairs(every, system, notices)
        if pairs is None:
            continue
        most, own = pairs.max_count, scores.targets(system)
        with part(index, len(scores.systems)):
            if far:
                reach: dict[str, Any] = {"population": population, "model": model}
                study = stress.worst_case(pairs, target=own, **reach, **options)
                one = SystemGrowth(system, study.operating, study.empirical, study.predicted)
            else:
                points = stress.thresholds_of_roc(Roc.from_scores(own, pairs.scores))
                wanted = [n for n in counts or default_counts(most) if n <= most]
                levels = [point.threshold for point in points]
                measured = stress.worst_case(pairs, levels, counts=wanted, **options)
                one = SystemGrowth(system, points, measured)
        systems.append(one)
        both = (one.measured, one.predicted) if one.predicted else (one.measured,)
        notices += [notice.about(system) for rates in both for notice in rates.notices]
    return Growth(tuple(systems), tuple(notices))


def _usable_pairs(
    pairs: stress.PairScores, system: str, notices: list[Notice]
) -> stress.PairScores | None:
    """Pairs that allow a worst case, the others counted; none if too few remain."""
    kept = pairs.without_single_scores()
    least = stress.LEAST_SPEAKERS
    several = kept.with_impostors(least)
    every, left = len(pairs.target_names), len(several.target_names)
    lone = f"{kept.skipped} of {len(pairs)} pairs have one score, left out"
    gone = f"{every - left} of {every} targets have fewer than {least} impostors, left out"
    few = f"{left} targets remain, too few for a worst case"
    for code, holds, sentence in (
        ("pairs-left-out", kept.skipped, lone),
        ("targets-left-out", left < every, gone),
        ("few-speakers", left < least, few),
    ):
        notices += [Notice(code, system, sentence)] if holds else []
    return None if left < least else several


def _same_group(scores: Scores, by: str | None, notices: list[Notice]) -> np.ndarray:
    """Trials within one group, by default one sex, if the table knows groups."""
    by = by or stress.sex_column(scores)
    if by == stress.POOLED:
        return np.ones(len(scores), dtype=bool)
    columns = [scores.columns.get(f"{side}_{by}") for side in ("enrol", "test")]
    sides = [ids.to_series().to_numpy() for ids in columns if ids is not None]
    if len(sides) == 2:
        return np.asarray(sides[0] == sides[1])
    sentence = f"no column {by or 'of sex'}: impostors of all groups are taken together"
    notices.append(Notice("no-column", "", sentence))
    return np.ones(len(scores), dtype=bool)


def _section(study: Study, results: Results) -> Section:
    every: Mapping[str, Growth] = results["growth"]
    colours = study.colours
    figures, answers, largest, beyond, rest = [], [], [], [], []
    for number, (name, growth) in enumerate(every.items(), start=1):
        if not growth.systems:
            continue
        lines = [
            charts.GrowthLine(one.system, one.measured, _CHART, one.predicted)
            for one in growth.systems
        ]
        most = max(growth.systems, key=lambda one: float(one.measured.values[-1, _CHART]))
        passed = whole_percent(float(most.measured.values[-1, _CHART]))
        title = (
            f"{name}: the closest of {most.measured.counts[-1]:,} voices passes up to"
            f" {passed} of the time ({most.system})"
        )
        own = colours if all(one.system in colours for one in growth.systems) else None
        drawn = f"worst_case_{number}"
        figures.append(charts.worst_case_growth(lines, colours=own).called(drawn, title))
        for one in growth.systems:
            answers.append(one.answer)
            measured, width = one.rows(name, one.measured), len(one.operating)
            largest += measured[-width:]
            rest += measured[:-width]
            if one.predicted is not None:
                beyond += one.rows(name, one.predicted)[-width:]
    weights = "; ".join(f"{name}, {words}" for name, words in _WEIGHTS.items())
    names = f"Thresholds of least cost at even odds: {weights}."
    blocks = [
        TableBlock("All impostors at hand", largest, note=names),
        TableBlock("Extrapolated", beyond, note=names),
        TableBlock("Fewer impostors", rest, folded=True),
    ]
    return Section("worst_case", answers, figures, blocks, noted(every))


def _later(study: Study) -> Plan:
    config, steps = study.config, {}
    for table in (one for one in study.compared() if one.speakers):
        options = {
            **config.worst_case.model_dump(),
            "level": config.intervals.level,
            "groups": stress.GROUPS if config.intervals.replicates else 0,
            "seed": config.seed,
            "far": table.name in study.tables,
        }
        weight = (6.0 if options["far"] else 0.5) * len(table.systems)
        steps[table.name] = table.step("worst case", growth_of, options, weight)
    return {"growth": steps}


FRAMEWORK = Framework("worst_case", _section, later=_later, trials=True, main="growth")
