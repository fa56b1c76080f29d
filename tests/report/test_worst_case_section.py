"""The worst case in a report: what cannot be told is counted and left out."""

from __future__ import annotations

import numpy as np

from unmask.report.config import Config
from unmask.report.frameworks.attacks import Attacks
from unmask.report.frameworks.study import Study
from unmask.report.frameworks.worst_case import FRAMEWORK, RATES, Growth
from unmask.trials import Ids, Scores


def table(*, single: bool) -> Scores:
    """Twelve speakers of four utterances; one of them has been compared with two others only."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(12, 6))
    rows = []
    for a in range(12):
        for b in range(a, 12):
            if a == 0 and b > 2:
                continue
            for k in range(1 if single or (a, b) == (3, 4) else 4):
                score = centres[a] @ centres[b] + rng.normal()
                rows.append((f"u{a}-{k}", f"v{b}-{k}", f"s{a}", f"s{b}", a == b, score))
                if a != b:
                    rows.append((f"u{b}-{k}", f"v{a}-{k}", f"s{b}", f"s{a}", False, score))
    enrol, test, left, right, target, score = zip(*rows, strict=True)
    both = Ids.from_strings([*left, *right])
    half = np.arange(len(rows))
    return Scores(
        Ids.from_strings(enrol),
        Ids.from_strings(test),
        np.array(target, dtype=np.int8),
        enrol_speaker=both.take(half),
        test_speaker=both.take(half + len(rows)),
        systems={"cosine": np.array(score)},
    )


def study(scores: Scores) -> Study:
    config = Config(scores=[{"name": "table", "files": ["none.tsv"]}])
    return Study(config, None, Attacks({}, {}, {}), {}, {"table": scores})


def growth(scores: Scores) -> Growth:
    found = FRAMEWORK.later(study(scores))["growth"]["table"].compute()
    assert isinstance(found, Growth)
    return found


def test_single_scores_and_lonely_targets_are_left_out_by_number() -> None:
    found = growth(table(single=False))
    (one,) = found.systems
    assert one.found.targets == 11
    told = " ".join(found.warnings)
    assert "2 of 114 pairs have one score, left out" in told
    assert "1 of 12 targets have fewer than 3 impostors, left out" in told
    shown = FRAMEWORK.section(study(table(single=True)), {"growth": {"table": found}})
    assert len(shown.figures) == 1
    assert "one closest of" in shown.answer[0]


def test_a_table_of_single_scores_does_not_end_the_report() -> None:
    found = growth(table(single=True))
    assert found.systems == ()
    assert "0 targets remain, too few for a worst case" in found.warnings[-1]
    shown = FRAMEWORK.section(study(table(single=True)), {"growth": {"table": found}})
    assert shown.figures == ()
    assert any("too few" in line for line in shown.warnings)


def test_the_threshold_of_the_eer_counts_scores_that_it_accepts() -> None:
    scores = table(single=False)
    (one,) = growth(scores).systems
    last = one.found.thresholds[len(RATES)]
    nontargets = scores.nontargets("cosine")
    assert not (nontargets == last).any()
