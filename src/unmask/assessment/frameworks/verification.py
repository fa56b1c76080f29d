"""Detection metrics of score tables, and of attacks within groups."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from unmask.assessment.attacks import AttackRun, Variant
from unmask.assessment.cache import Step
from unmask.assessment.config import Config
from unmask.assessment.inputs import GENDER
from unmask.assessment.study import Framework, Plan, Study, compared
from unmask.engine import Evaluation, compare, evaluate, group_masks
from unmask.estimate import Estimate, Notice
from unmask.privacy.legal import matrix_risks
from unmask.run import part
from unmask.trials import Scores


def _evaluated(scores: Scores, *, by: str | None, **options: Any) -> Evaluation:
    """A score table; ``by`` groups it where it has that column."""
    grouped = by if {by, f"enrol_{by}"} & set(scores.columns) else None
    return replace(evaluate(scores, by=grouped, **options), scores=None)


def _difference(first: Scores, second: Scores, **options: Any) -> Estimate:
    """How much higher the EER of the second list of one system is than that of the first."""
    names = ("first", "second")
    tables = (
        replace(one, systems={name: one.scores()})
        for name, one in zip(names, (first, second), strict=True)
    )
    whole = compare(Scores.merged(*tables), *names, privacy=True, **options)
    made = next(one for one in whole.differences if one.metric == "eer")
    kept = {one.name: getattr(made, one.name) for one in fields(Estimate)}
    return Estimate(**{**kept, "metric": "eer_difference"})


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
    base = str(study.config.table.baseline)
    names: dict[tuple[str | None, ...], str] = {
        (system, given.set, given.extractor, part): name
        for name, (system, given, part) in study.lists.items()
    }
    steps = {}
    for (system, *which), name in names.items():
        first = names.get((base, *which))
        if first is not None and system != base and which[-1] != "oo":
            both = (study.tables[first], study.tables[name])
            how = study.config.of_trials
            steps[name] = Step.of(f"{name} against {base}", _difference, *both, **how)
    return steps


def _group_step(attack: AttackRun, variant: Variant, config: Config, by: str) -> Step:
    """Measure an attack within and between the groups of a column, such as women and men."""
    how = config.of_trials

    def compute() -> Evaluation:
        scores = compared(attack.scores(variant), variant)
        parts = []
        notices: list[Notice] = []
        masks = group_masks(scores, by)
        for index, (group, mask) in enumerate(masks):
            chosen = scores.select(mask)
            if not (chosen.is_target.any() and chosen.is_nontarget.any()):
                sentence = f"group {group} has no trials of both kinds and is left out"
                notices.append(Notice("group-left-out", "", sentence))
                continue
            with part(index, len(masks)):
                evaluation = evaluate(chosen, **how)
            parts.append(replace(evaluation.results[0], group=group))
            notices += [notice.about(f"group {group}") for notice in evaluation.notices]
        return Evaluation(tuple(parts), (), tuple(notices), config.seed)

    what = f"groups of {by} under {attack.safeguard}, {attack.attacker}"
    params = {**how, "by": by, "variant": [variant.fitted, variant.reading]}
    return Step(what, attack.inputs, params, compute, weight=1.5)


def _later(study: Study) -> Plan:
    """The strongest attack on each safeguard, by the groups of a column."""
    by = study.config.verification.by
    attacks = {} if by is None else study.strongest()
    groups = {name: _group_step(*attack, study.config, str(by)) for name, attack in attacks.items()}
    return {"groups": groups}


FRAMEWORK = Framework("verification", steps=_steps, later=_later, trials=True)
