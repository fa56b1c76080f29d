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
from unmask.assessment.redact import WITHHELD
from unmask.assessment.runs import Runs
from unmask.assessment.study import TRIALS, Framework, Plan, Results, Study
from unmask.errors import InputError
from unmask.estimate import Notice

K = TypeVar("K")
READ_FILES = ("utility",)
"""Frameworks whose steps read files that the inputs do not hold."""
_A_SECTION, _FIGURES, _SORTED = 0.3, 1.0, 0.08
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
    return min(max((time.perf_counter() - start) / _SORTED, 0.4), 4.0)


@dataclass(frozen=True)
class Done:
    """The results of a framework, in the groups of its plan, and the steps that they are of."""

    key: str
    steps: list[Step]
    results: Results


class Run:
    """One run: steps are planned as soon as can be, so that it is known how much is left.

    A step that its data do not allow costs itself alone; ``failures`` tell why, ``reason`` is the
    first of them. Of ``turns`` runs that share the steps each has a ``turn``, and begins elsewhere.
    """

    def __init__(self, study: Study, work: Work, *, turn: int = 0, turns: int = 1) -> None:
        self.study, self.work, self.reason = study, work, ""
        self.turn, self.turns = turn, turns
        self.tried: Mapping[Any, Any] = {}
        unread = (notice for notice in study.inputs.notices if notice.code == "not-read")
        self.failures = [replace(notice, sentence=notice.line) for notice in unread]

    def frameworks(self) -> Iterator[Done]:
        """Each framework that has something to report, once all steps are done."""
        for framework, plan in self.planned().items():
            results = {
                group: self.tried if group == TRIALS else self.compute(framework.key, steps)
                for group, steps in plan.items()
            }
            done = [
                step
                for group, steps in plan.items()
                for name, step in steps.items()
                if name in results[group]
            ]
            if done and (framework.main is None or results.get(framework.main)):
                yield Done(framework.key, done, results)

    def planned(self) -> dict[Framework, Plan]:
        """The steps of every framework, all of which are done, by this run or by others."""
        study = self.study
        wanted = [f for f in FRAMEWORKS if f.key in (study.config.frameworks or KEYS)]
        plans = {framework: framework.steps(study) for framework in wanted}
        trials = study.trials() if any(framework.trials for framework in wanted) else {}
        self.work.expect(_steps_of({TRIALS: trials}, *plans.values()))
        self._make({TRIALS: trials})
        self.tried = self.compute(TRIALS, trials)
        study.tried(self.tried)
        tried: Plan = {TRIALS: trials}
        plans = {f: {**tried, **plan} if f.trials else plan for f, plan in plans.items()}
        plans = {framework: {**plan, **framework.later(study)} for framework, plan in plans.items()}
        self._make(*plans.values())
        return plans

    def _make(self, *plans: Plan) -> None:
        steps = _steps_of(*plans)
        first = len(steps) * self.turn // self.turns
        self.work.expect(steps)
        self.work.make([*steps[first:], *steps[:first]])

    def public(self, text: str) -> str:
        """A text as the report says it: under labels where it is redacted."""
        labels = self.study.inputs.labels
        return text if labels is None else labels.text(text)

    def why(self, key: str, error: InputError) -> str:
        """What an error of a framework says in the report. Redacted, those that read files again
        say nothing, since there is no list of the names that files hold.
        """
        labels = self.study.inputs.labels
        if labels is None:
            return str(error)
        return WITHHELD if key in READ_FILES else labels.public(str(error))

    def compute(self, key: str, steps: Mapping[K, Step]) -> dict[K, Any]:
        """Results of the steps that their data allow; why others failed is kept for the report."""
        results = {}
        for name, step in steps.items():
            try:
                results[name] = self.work.run(step)
            except InputError as error:
                reason = f"{self.public(step.what)}: {self.why(key, error)}"
                self.reason = self.reason or reason
                self.failures.append(Notice("not-computed", key, f"not computed: {reason}"))
        return results


def _steps_of(*plans: Plan) -> list[Step]:
    return [step for plan in plans for group in plan.values() for step in group.values()]
