"""C-P maps of the strongest attacks and of score tables (Li 2022)."""

from __future__ import annotations

from unmask.assessment.config import ORIGINAL
from unmask.assessment.frameworks.verification import table_steps
from unmask.assessment.study import Framework, Plan, Study
from unmask.stress import cp_maps, hardest_people


def _later(study: Study) -> Plan:
    """Maps of all systems of a table; with the original among them, each safeguard against it."""
    config, steps, people = study.config, {}, {}
    for table in study.compared():
        others = [name for name in table.systems if name != ORIGINAL]
        options = {
            **config.cpmap.model_dump(),
            "level": config.intervals.level,
            "seed": config.seed,
            "references": list(table.references),
            "deltas": [(ORIGINAL, n) for n in others] if ORIGINAL in table.systems else None,
        }
        weight = 1 + table.size * len(table.systems) * config.cpmap.replicates / 3e7
        steps[table.name] = table.step("C-P maps", cp_maps, options, weight)
        if table.speakers and not config.redact:
            names = {"references": list(table.references), **config.drawn}
            people[table.name] = table.step("hardest people", hardest_people, names, 1.0)
    return {"maps": steps, "people": people}


def _steps(study: Study) -> Plan:
    """The raw EER of all trials is that of verification, with the same interval."""
    return {"tables": table_steps(study)}


FRAMEWORK = Framework("cpmap", steps=_steps, later=_later, trials=True, main="maps")
