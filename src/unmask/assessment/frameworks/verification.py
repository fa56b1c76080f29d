"""Detection metrics of score tables, and of attacks within groups."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from unmask.assessment.attacks import AttackRun, Variant
from unmask.assessment.cache import Step
from unmask.assessment.config import Config
from unmask.assessment.inputs import GENDER
from unmask.assessment.study import HALVES, Framework, Plan, Study, compared
from unmask.engine import Evaluation, compare, evaluate, negated_notices
from unmask.estimate import Estimate
from unmask.privacy.legal import linkability_difference, matrix_risks
from unmask.trials import Scores


def _evaluated(scores: Scores, *, by: str | None, **options: Any) -> Evaluation:
    """A score table; ``by`` groups it where it has that column."""
    grouped = by if {by, f"enrol_{by}"} & set(scores.columns) else None
    return replace(evaluate(scores, by=grouped, **options), scores=None)


def _difference(first: Scores, second: Scores, **options: Any) -> tuple[Estimate, ...]:
    """How much higher EER and, of a matrix, Linkability of the second list of a system are."""
    names = ("first", "second")
    tables = (
        replace(table, systems={name: table.scores()})
        for name, table in zip(names, (first, second), strict=True)
    )
    both = Scores.merged(*tables)
    whole = compare(both, *names, privacy=True, **options)
    made = [next(difference for difference in whole.differences if difference.metric == "eer")]
    linked = linkability_difference(both, *names, **options)
    return tuple(
        Estimate(
            **{field.name: getattr(each, field.name) for field in fields(Estimate)}
            | {"metric": f"{each.metric}_difference"}
        )
        for each in (*made, *(linked or ())[2:])
    )


def table_steps(study: Study) -> dict[str, Step]:
    """Detection metrics of each score table."""
    how, tables = dict(study.config.trials), {}
    for name, scores in study.tables.items():
        how["by"] = study.config.verification.by or (GENDER if name in study.lists else None)
        weight = 1 + len(scores) * len(scores.systems) * how["replicates"] / 5e6
        tables[name] = Step.of(f"verification of {name}", _evaluated, scores, weight=weight, **how)
    return tables


def _steps(study: Study) -> Plan:
    risks = {}
    for name, scores in study.tables.items():
        what = f"Linkability and Singling Out of {name}"
        risks[name] = Step.of(what, matrix_risks, scores, **study.config.drawn)
    return {"tables": table_steps(study), "risks": risks, "differences": _differences(study)}


def _differences(study: Study) -> dict[str, Step]:
    """Every other system against the baseline, on each list that both have."""
    names: dict[tuple[str | None, ...], str] = {
        (given.label(system), part): name for name, (system, given, part) in study.lists.items()
    }
    steps = {}
    for label, other in study.beside_baseline.items():
        for which in ("op", "pp"):
            first, name = names.get((other, which)), names.get((label, which))
            if first and name:
                both = (study.tables[first], study.tables[name])
                what = f"{name} against {study.config.table.baseline}"
                steps[name] = Step.of(what, _difference, *both, **study.config.of_trials)
    return steps


def _group_step(attack: AttackRun, variant: Variant, config: Config, by: str) -> Step:
    """Measure an attack within and between the groups of a column, such as women and men."""
    how = config.of_trials

    def compute() -> Evaluation:
        whole = evaluate(compared(attack.scores(variant), variant), by=by, **how)
        parts = tuple(result for result in whole if result.group is not None)
        told = [notice for notice in whole.notices if notice.subject.startswith("group ")]
        told = [notice for notice in told if notice.code != "inverted"]
        for result in parts:
            turned = (notice.about(result.system) for notice in negated_notices(result.roc))
            told += [notice.about(f"group {result.group}") for notice in turned]
        return Evaluation(parts, (), tuple(told), config.seed, gaps=whole.gaps)

    what = f"groups of {by} under {attack.safeguard}, {attack.attacker}"
    params = {**how, "by": by, "variant": [variant.fitted, variant.reading]}
    return Step(what, attack.inputs, params, compute, weight=1.5)


def _later(study: Study) -> Plan:
    """The strongest attack on each safeguard, by the groups of a column, and on halves."""
    by = study.config.verification.by
    attacks = {} if by is None else study.strongest()
    groups = {name: _group_step(*attack, study.config, str(by)) for name, attack in attacks.items()}
    return {"groups": groups, HALVES: study.halves()}


FRAMEWORK = Framework("verification", steps=_steps, later=_later, trials=True)
