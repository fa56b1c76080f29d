"""Are the trained attackers to be trusted? Controls, held-out people and learning curves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from unmask import figures as charts
from unmask.assessment import Results, Study
from unmask.assessment.frameworks import Trusted
from unmask.estimate import Notice
from unmask.privacy import legal as law
from unmask.report.documents import Row
from unmask.report.headline import residual
from unmask.report.section import Choice, Section, TableBlock
from unmask.report.words import note, shown

_OVERFIT = 0.1
_WEAK = {"unprotected": "weak-control", "own_run": "weak-own-run"}
_VERDICTS = {"rises": "still improve", "steady": "do not", "unclear": "may or may not"}
"""Controls at which an attacker must succeed, and the code of what it means where it does not."""


def section(study: Study, results: Results) -> Section:
    """What trained attackers reach where they must succeed, and how they learn."""
    attackers: Mapping[tuple[str, str], Trusted] = results["trusted"]
    curves_of: dict[str, dict[str, law.LearningCurve]] = {}
    for (name, _), trusted in attackers.items():
        curves_of.setdefault(name, {})[trusted.label] = trusted.curve
    drawn = {name: charts.learning_curves(some) for name, some in curves_of.items()}
    panels = Choice.of("Learning curves on", "learning_curves", drawn)
    rows, curves = [], []
    for trusted in attackers.values():
        where = {"safeguard": trusted.safeguard, "attacker": trusted.label}
        rows.append(Row(where, list(trusted.controls.values())))
        curves += [
            Row({**where, "people trained on": str(estimate.params["trained_on"])}, [estimate])
            for estimate in trusted.curve.estimates
        ]
    rising = [trusted for trusted in attackers.values() if trusted.curve.verdict == "rises"]
    answer = [
        f"{trusted.safeguard}, {trusted.label}: {notice.sentence}."
        for trusted in rising
        for notice in trusted.curve.notices
    ]
    drawn_of = [trusted.curve for trusted in attackers.values() if len(trusted.curve.people) > 1]
    counts = Counter(curve.verdict for curve in drawn_of)
    told = ", ".join(f"{counts[one]} {words}" for one, words in _VERDICTS.items() if counts[one])
    answer.append(note("curves", every=len(drawn_of), told=told) if told else note("no_curves"))
    tables = [
        TableBlock("What trained attackers reach", rows, note=note("controls")),
        TableBlock("Learning curves", curves, folded=True),
    ]
    notices = [notice for trusted in attackers.values() for notice in _doubts(trusted)]
    return Section("trust", answer, [panels], tables, notices)


def _doubts(one: Trusted) -> tuple[Notice, ...]:
    """What stands against believing a low risk of an attacker."""
    sentences = []
    for name, code in _WEAK.items():
        control = one.controls.get(name)
        if control is not None and not residual(control) >= law.STRONG_ENOUGH:
            sentences.append((code, note(code, linked=shown(control, 1, scale=100))))
    seen, unseen = one.controls.get("seen"), one.controls["unseen"]
    if seen is not None and seen.interval is not None and unseen.interval is not None:
        apart = float(seen.value) - float(unseen.value)
        if apart > _OVERFIT and seen.interval.low > unseen.interval.high:
            linked, others = (shown(x, 1, scale=100) for x in (seen, unseen))
            sentences.append(("overfitted", note("overfitted", linked=linked, others=others)))
    sentences += [(notice.code, notice.sentence) for notice in one.curve.notices]
    return tuple(Notice(code, f"{one.safeguard}, {one.label}", s) for code, s in sentences)
