"""False alarms when the closest of N impostors tries (Sholokhov 2020)."""

from __future__ import annotations

from itertools import product

from unmask import figures as charts, stress
from unmask.assessment import Results, Study
from unmask.assessment.frameworks import SystemGrowth, by_table
from unmask.report.documents import Row, figures_of
from unmask.report.section import Section, TableBlock, colours_of, noted
from unmask.report.words import labels, whole_percent, with_level

_CHART = 1
"""The threshold that charts and sentences take: both errors weigh alike."""


figures_of.register(stress.WorstCaseStudy, lambda study: list(charts.worst_case_figures(study)))


def section(study: Study, results: Results) -> Section:
    every = by_table(results["growth"])
    colours = colours_of(study)
    figures, answers, largest, beyond, rest = [], [], [], [], []
    for number, (name, growth) in enumerate(every.items(), start=1):
        if not growth.systems:
            continue
        lines = [
            charts.GrowthLine(system.system, system.measured, _CHART, system.predicted)
            for system in growth.systems
        ]
        most = max(growth.systems, key=lambda system: float(system.measured.values[-1, _CHART]))
        passed = whole_percent(float(most.measured.values[-1, _CHART]))
        title = (
            f"{name}: the most similar of {most.measured.counts[-1]:,} impostors is accepted up to"
            f" {passed} of the time ({most.system})"
        )
        own = colours if all(system.system in colours for system in growth.systems) else None
        drawn = f"worst_case_{number}"
        figures.append(charts.worst_case_growth(lines, colours=own).called(drawn, title))
        for system in growth.systems:
            answers.append(_answer(system))
            measured, width = _growth_rows(system, name, system.measured), len(system.operating)
            largest += measured[-width:]
            rest += measured[:-width]
            if system.predicted is not None:
                beyond += _growth_rows(system, name, system.predicted)[-width:]
    weights = "; ".join(f"{name}, {words}" for name, words in labels("thresholds").items())
    names = f"Thresholds of least cost at even odds: {weights}."
    blocks = [
        TableBlock("All impostors at hand", largest, note=names),
        TableBlock("Extrapolated", beyond, note=names),
        TableBlock("Fewer impostors", rest, folded=True),
    ]
    return Section("worst_case", answers, figures, blocks, noted(every))


def _growth_rows(
    one: SystemGrowth, table: str, rates: stress.WorstCase | stress.Prediction
) -> list[Row]:
    """A row of each count and threshold; those of most impostors are last."""
    where = {"table": table, "system": one.system}
    cells = product((f"{int(count):,}" for count in rates.counts), one.operating)
    return [
        Row({**where, "threshold": point.name, "impostors": count}, (estimate,))
        for (count, point), estimate in zip(cells, rates.estimates, strict=True)
    ]


def _answer(one: SystemGrowth) -> str:
    """How often the closest of all voices passes."""
    name, last = one.operating[_CHART].name, _CHART - len(one.operating)
    text = (
        f"{one.system}: at {name} ({labels('thresholds').get(name, 'as asked')}), the most"
        f" similar of {int(one.measured.counts[-1]):,} impostors is accepted"
        f" {with_level(one.measured.estimates[last])} of the time"
    )
    far = one.predicted
    if far is None:
        return f"{text}."
    rate = with_level(far.estimates[last])
    return f"{text}; of {int(far.counts[-1]):,}, {rate}, a model's answer."
