"""The level of a pseudonym (Noé 2022): what a shared voice keeps, and what it lets be linked."""

from __future__ import annotations

from dataclasses import replace

from unmask import figures as charts
from unmask.assessment import Study
from unmask.estimate import Estimate
from unmask.privacy.legal import RELEASE
from unmask.report.documents import Row
from unmask.report.headline import WORST, Rows, find, largest
from unmask.report.section import Section, TableBlock
from unmask.report.words import labels, note, shown, whole_percent

LEVELS, SCALE = "levels", {"%": 100.0, "dB": 1.0}
_FROM: dict[str, tuple[str, str, dict[str, str]]] = {
    "deid_strongest": ("similarity", "deid_strongest", {}),
    "g_vd_within": ("similarity", "g_vd_within", {}),
    "g_vd": ("similarity", "g_vd", {}),
    "linked_known": ("legal", "linkability", {"point": WORST}),
    "linked_release": ("legal", "linkability", {"point": RELEASE}),
    "linked_within": ("similarity", "linkability_within", {}),
    "linked_between": ("similarity", "linkability_between", {}),
    "wer": ("utility", "wer", {}),
}
"""Columns of the table: the framework, the metric and the point that they come from."""


def section(study: Study, rows: Rows) -> Section:
    """One table and one chart of all levels, from the ``rows`` of the frameworks."""
    every = {name: _numbers(rows, name) for name in study.config.levels}
    bare = not any("g_vd_within" in own for own in every.values())
    block = TableBlock(
        "What each level keeps and lets be linked",
        [Row({"level": name}, list(own.values())) for name, own in every.items()],
        note=" ".join([note("of_levels"), *([note("without_sessions")] if bare else [])]),
    )
    risks, kept = (
        {n: {what: own[m] for m, what in words.items() if m in own} for n, own in every.items()}
        for words in (labels("linked"), labels("kept"))
    )
    answer = []
    for name, own in risks.items():
        linked = (f"{whole_percent(float(one.value))} {what}" for what, one in own.items())
        said = (f"{what} {shown(e, 1, scale=SCALE[e.unit])}" for what, e in kept[name].items())
        answer.append("; ".join([f"{name}: linked {', '.join(linked)}", *said]) + ".")
    return Section(LEVELS, answer, [charts.level_trade(risks, kept)], [block], [])


def _numbers(rows: Rows, name: str) -> dict[str, Estimate]:
    """The numbers of a level, each by its strongest attack; G_VD of all pairs without sessions."""
    made = {}
    for column, (key, metric, where) in _FROM.items():
        best = largest(find(rows.get(key, ()), metric, safeguard=name, **where))
        if best is not None and not (column == "g_vd" and "g_vd_within" in made):
            made[column] = replace(best.estimate, metric=column, params={}, no_interval="")
    return made
