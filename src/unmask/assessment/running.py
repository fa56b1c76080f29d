"""An assessment is run: its data are read, steps planned and computed, one framework at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from unmask.assessment.attacks import attacks_of
from unmask.assessment.cache import Step, Work
from unmask.assessment.config import FRAMEWORKS as KEYS, Config
from unmask.assessment.frameworks import FRAMEWORKS
from unmask.assessment.frameworks.legal import with_fitting_lengths
from unmask.assessment.frameworks.utility import check_code
from unmask.assessment.inputs import read_inputs
from unmask.assessment.runs import Runs
from unmask.assessment.study import TRIALS, Plan, Results, Study
from unmask.errors import InputError
from unmask.estimate import Notice

K = TypeVar("K")
_A_SECTION, _FIGURES, _SORTED = 0.3, 1.0, 0.06
"""Seconds of a section, of the figures of a safeguard in one format, and of some sorting."""


def read_study(
    config: Config,
    work: Work,
    folder: Path,
    *,
    allow_code: bool,
    say: Callable[[str], None] | None = None,
) -> Study:
    """What every framework works on: all that is read and checked before anything is computed."""
    asked, config = config, config.effective
    check_code(config, allow_code=allow_code)
    runs = Runs(config, work, allow_code=allow_code)
    made = (runs.released(one) if one.made else one for one in config.safeguards)
    config = config.model_copy(update={"safeguards": tuple(made)})
    inputs = read_inputs(config, work, base=folder.resolve(), allow_code=allow_code, say=say)
    attacks, missing = attacks_of(config, inputs)
    left_out = config.left_out
    config, notices = with_fitting_lengths(config, attacks)
    tables = {**inputs.tables, **inputs.lists}
    study = Study(config, inputs, attacks, missing, tables, left_out, asked=asked)
    study.inputs = replace(inputs, notices=(*inputs.notices, *notices, *study.fewer))
    return study


def expected(study: Study, work: Work) -> float:
    """About how many seconds a run takes: what dry ``work`` has timed already, steps that are not
    kept, the page, figures. Before the attacks have been tried any may be the strongest.
    """
    wanted = [f for f in FRAMEWORKS if f.key in (study.config.frameworks or KEYS)]
    plans = [plan for one in wanted for plan in (one.steps(study), one.later(study))]
    tried = study.trials().values() if any(framework.trials for framework in wanted) else ()
    steps = [*tried, *(step for plan in plans for some in plan.values() for step in some.values())]
    left = {step.key: step for step in steps if not work.path(step).is_file()}.values()
    timed: float = work.total + sum(one.timed() for one in left if one.timed)
    weights: float = sum(one.weight for one in left if not one.timed)
    figures = 0 if study.config.quick else len(study.config.figures)
    page = figures * _FIGURES * (2 + len(study.inputs.safeguards))
    page += sum(_A_SECTION + (framework.key == "trust") * len(study.every) for framework in wanted)
    return timed + _pace() * (weights + page)


def _pace() -> float:
    """How much slower than where the weights of steps were measured: sorting a few numbers."""
    numbers = np.random.default_rng(0).random(300_000)
    start = time.perf_counter()
    for _ in range(3):
        np.sort(numbers)
    return min(max((time.perf_counter() - start) / _SORTED, 0.5), 4.0)


@dataclass(frozen=True)
class Done:
    """The results of a framework, in the groups of its plan, and the steps that they are of."""

    key: str
    steps: list[Step]
    results: Results


class Run:
    """One run: steps are planned as soon as can be, so that it is known how much is left.

    A step that its data do not allow costs itself alone; ``failures`` tell why, ``reason`` is the
    first of them.
    """

    def __init__(self, study: Study, work: Work) -> None:
        self.study, self.work, self.reason = study, work, ""
        unread = (notice for notice in study.inputs.notices if notice.code == "not-read")
        self.failures = [replace(notice, sentence=notice.line) for notice in unread]

    def frameworks(self) -> Iterator[Done]:
        """Each framework that has something to report, as soon as its steps are done."""
        study = self.study
        wanted = [f for f in FRAMEWORKS if f.key in (study.config.frameworks or KEYS)]
        plans = {framework.key: framework.steps(study) for framework in wanted}
        trials = study.trials() if any(framework.trials for framework in wanted) else {}
        self._expect({TRIALS: trials}, *plans.values())
        tried = self.compute(TRIALS, trials)
        study.tried(tried)
        later = {framework.key: framework.later(study) for framework in wanted}
        self._expect(*later.values())
        for framework in wanted:
            plan = {**plans[framework.key], **later[framework.key]}
            results = {group: self.compute(framework.key, steps) for group, steps in plan.items()}
            if framework.trials:
                plan, results = {TRIALS: trials, **plan}, {TRIALS: tried, **results}
            done = [
                step
                for group, steps in plan.items()
                for name, step in steps.items()
                if name in results[group]
            ]
            if done and (framework.main is None or results.get(framework.main)):
                yield Done(framework.key, done, results)

    def _expect(self, *plans: Plan) -> None:
        self.work.expect([step for p in plans for group in p.values() for step in group.values()])

    def compute(self, key: str, steps: Mapping[K, Step]) -> dict[K, Any]:
        """Results of the steps that their data allow; why others failed is kept for the report."""
        results = {}
        for name, step in steps.items():
            try:
                results[name] = self.work.run(step)
            except InputError as error:
                reason = f"{step.what}: {error}"
                self.reason = self.reason or reason
                self.failures.append(Notice("not-computed", key, f"not computed: {reason}"))
        return results
