"""Calibration learnt on another run of a safeguard (Noé 2022)."""

from __future__ import annotations

from dataclasses import replace

from unmask.assessment.attacks import AttackRun, Variant
from unmask.assessment.cache import Step
from unmask.assessment.config import ORIGINAL
from unmask.assessment.study import HALVES, TRIALS, Framework, Plan, Study
from unmask.privacy import CalibrationDistortion
from unmask.privacy.similarity import distortions as distortions_of, speaker_trials

LEARNT = "cosine"


def _steps(study: Study) -> Plan:
    """Calibration learnt on another run of each safeguard that has a key (eq. 15)."""
    inputs, attacks = study.inputs, study.attacks
    how = study.config.of_trials
    steps = {}
    for name, other in inputs.again.items():
        if name not in attacks:
            continue
        control = attacks[ORIGINAL][0]
        people = set(study.tested[ORIGINAL, control.attacker].data.enrol.speakers.present)
        learnt, attacked = (
            replace(control, data=replace(control.data, test=inputs.attacked(run))).among(people)
            for run in (other, inputs.protected[name])
        )

        def compute(
            learnt: AttackRun = learnt, attacked: AttackRun = attacked
        ) -> tuple[CalibrationDistortion, ...]:
            sides = {"first run": learnt, "second run": attacked}
            lists = (run.scores(Variant(LEARNT), names=[LEARNT]) for run in sides.values())
            return distortions_of(*speaker_trials(dict(zip(sides, lists, strict=True))), **how)

        what, data = f"calibration of {name} by another run", [*attacked.inputs, *learnt.inputs]
        seconds = 0.5 + how["replicates"] * (0.014 + 2e-7 * attacked.size)
        steps[name] = Step(what, data, how, compute, weight=seconds)
    return {"distortions": steps}


def _later(study: Study) -> Plan:
    """The strongest attacks on halves of the people."""
    return {HALVES: study.halves()}


FRAMEWORK = Framework("zebra", steps=_steps, later=_later, trials=True, main=TRIALS)
