"""C-P maps in the report of an assessment."""

from __future__ import annotations

import numpy as np

import unmask as um
from unmask.assessment.config import Config, CpMaps, ScoreTable
from unmask.assessment.frameworks.cpmap import FRAMEWORK
from unmask.assessment.inputs import Inputs
from unmask.assessment.study import Study
from unmask.report.frameworks.cpmap import section
from unmask.trials import Ids

NOTHING = Inputs(None, {}, frozenset(), frozenset(), {}, {})


def scores():
    rng = np.random.default_rng(0)
    speaker, test = (part.ravel() for part in np.meshgrid(np.arange(8), np.arange(64)))
    label = (speaker == test // 8).astype(np.int8)
    voice = 3.0 * label + rng.normal(0, 1, label.size)
    systems = {
        name: voice + rng.normal(0, noise, label.size)
        for name, noise in (("original", 0.3), ("one", 1.5), ("two", 3.0))
    }
    return um.Scores(
        Ids.from_strings([f"s{s}" for s in speaker]),
        Ids.from_strings([f"u{t}" for t in test]),
        label,
        systems=systems,
        enrol_speaker=Ids.from_strings([f"s{s}" for s in speaker]),
        test_speaker=Ids.from_strings([f"s{t // 8}" for t in test]),
    )


def study(reference=()):
    table = ScoreTable(name="table", files=("scores",), reference=reference)
    config = Config(scores=(table,), cpmap=CpMaps(grid=6, replicates=8))
    return Study(config, NOTHING, {}, {}, {"table": scores()})


def found_by(study):
    return FRAMEWORK.later(study)["maps"]["table"].compute()


def test_all_attacks_order_the_trials_alike():
    """Ordered by the original alone, every safeguard would be put ahead of it."""
    result = found_by(study())
    assert result.references == ("original", "one", "two")
    assert result.combine == "rank"
    assert [(d.reference, d.test) for d in result.deltas] == [
        ("original", "one"),
        ("original", "two"),
    ]
    assert not any("orders the trials" in line for line in result.warnings)


def test_references_of_the_user_stand_and_are_warned_about():
    result = found_by(study(reference=("original",)))
    assert result.references == ("original",)
    assert any("original orders the trials and one does not" in line for line in result.warnings)


def test_the_answer_carries_intervals():
    result = found_by(study())
    made = section(study(), {"maps": {"table": result}, "tables": {}})
    assert made.answer[0].startswith("original: ")
    assert made.answer[0].count("95 % confidence interval") == 2
    assert "mean of their ranks" in made.words["method"][0]["text"]
