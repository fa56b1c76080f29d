"""C-P maps in the report of an assessment."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.stats import rankdata

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


def test_references_of_the_user_stand_and_are_warned_about(sentences):
    result = found_by(study(reference=("original",)))
    assert result.references == ("original",)
    usual = found_by(study()).warnings
    told = [line for line in result.warnings if line not in usual]
    assert any(line.startswith("original ") and " one " in line for line in told)
    sentences.check(*told)


def test_the_answer_carries_intervals(sentences):
    result = found_by(study())
    made = section(study(), {"maps": {"table": result}, "tables": {}})
    assert made.answer[0].startswith("original: ")
    assert made.answer[0].count("95 % confidence interval") == 2
    sentences.check(made.words["method"][0]["text"])


def test_maps_without_errors_are_left_out(sentences):
    clean, table = study(), scores()
    apart = {name: s + 100.0 * table.is_target for name, s in table.systems.items()}
    clean.tables["table"] = replace(table, systems=apart)
    made = section(clean, {"maps": {"table": found_by(clean)}, "tables": {}})
    (answer,) = [line for line in made.answer if line.startswith("table: ")]
    sentences.check(answer)
    assert made.figures == []
    assert made.rows


def hard_study(redact=False):
    """Two of the eight people are recognised by nobody, both women, of whom there are three."""
    table = scores()
    poor = np.isin(table.test_speaker.to_series().to_numpy(), ["s0", "s1"])
    systems = {n: s - 6.0 * (poor & table.is_target) for n, s in table.systems.items()}
    women = ("s0", "s1", "s2")
    sexes = Ids.from_strings(["f" if s in women else "m" for s in table.test_speaker.to_series()])
    numbers = Ids.from_strings([f"{n}" for n in range(len(table))])
    columns = {"test_sex": sexes, "enrol_sex": sexes, "test_number": numbers}
    made = study()
    made.config = made.config.model_copy(update={"redact": redact})
    made.tables = {"table": replace(table, systems=systems, columns=columns)}
    return made


def test_who_stands_in_the_hardest_tenth_is_counted_by_the_definition():
    made = hard_study()
    table = made.tables["table"]
    found = FRAMEWORK.later(made)["people"]["table"].compute()
    for kind, here, sign in (("target", table.is_target, 1), ("nontarget", table.is_nontarget, -1)):
        ranks = np.mean([rankdata(s[here]) for s in table.systems.values()], axis=0)
        hard = np.argsort(sign * ranks, kind="stable")[: -(-int(here.sum()) // 10)]
        who = table.test_speaker.to_series().to_numpy()[here]
        shares = {n: np.isin(np.flatnonzero(who == n), hard).mean() for n in sorted(set(who))}
        listed = {who: share.value for of, who, share in found if of == kind and who in shares}
        assert listed == {n: share for n, share in shares.items() if share > 0.1}
    targets = {who: share for kind, who, share in found if kind == "target"}
    assert set(targets) <= {"s0", "s1", "sex f"}
    group = targets["sex f"]
    assert group.interval.low < group.value < group.interval.high
    assert group.n == {"trials": 24, "speakers": 3}


def test_the_report_names_people_and_groups_unless_it_is_redacted():
    for redact in (False, True):
        made = hard_study(redact)
        plan = {**FRAMEWORK.steps(made), **FRAMEWORK.later(made)}
        results = {g: {n: step.compute() for n, step in some.items()} for g, some in plan.items()}
        page = section(made, results)
        listed = [
            block for block in page.tables if block.title == "Who stands in the hardest tenth"
        ]
        assert bool(listed) == (not redact)
        if listed:
            assert {"table": "table", "trials": "target", "who": "sex f"} in [
                row.conditions for row in listed[0].rows
            ]
