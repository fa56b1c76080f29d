"""The worst case in a report: what cannot be told is counted and left out."""

from __future__ import annotations

import numpy as np
import pytest
from tests.sentences import Sentences

from unmask.assessment.config import Config
from unmask.assessment.frameworks.worst_case import FRAMEWORK, Growth, growth_of
from unmask.assessment.inputs import Inputs
from unmask.assessment.study import Study
from unmask.report.frameworks.worst_case import section
from unmask.report.words import with_level
from unmask.trials import Ids, Scores

NOTHING = Inputs(None, {}, frozenset(), frozenset(), {}, {})


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
    config = Config(
        scores=[{"name": "table", "files": ["none.tsv"]}],
        worst_case={"model": "gpd", "population": 200},
    )
    return Study(config, NOTHING, {}, {}, {"table": scores})


def growth(scores: Scores) -> Growth:
    (step,) = FRAMEWORK.later(study(scores))["growth"].values()
    result = step.compute()
    assert isinstance(result, Growth)
    return result


def test_single_scores_and_lonely_targets_are_left_out_by_number(sentences: Sentences) -> None:
    result = growth(table(single=False))
    (one,) = result.systems
    assert one.measured.targets == 11
    pairs, targets = (
        [line for line in result.warnings if count in line] for count in ("2 of 114 ", "1 of 12 ")
    )
    assert pairs
    assert targets
    sentences.check(*pairs, *targets)
    shown = section(study(table(single=True)), {"growth": {("table", "a"): result}})
    assert len(shown.figures) == 1
    sentences.check(shown.answer[0])
    at = len(one.operating) * (len(one.measured.counts) - 1) + 1
    rate = with_level(one.measured.estimates[at])
    assert f" {rate} " in shown.answer[0]


def test_a_table_of_single_scores_does_not_end_the_report(sentences: Sentences) -> None:
    result = growth(table(single=True))
    assert result.systems == ()
    assert "0 targets " in result.warnings[-1]
    sentences.check(result.warnings[-1])
    shown = section(study(table(single=True)), {"growth": {("table", "a"): result}})
    assert not shown.figures
    assert any(result.warnings[-1] in line for line in shown.warnings)


def test_thresholds_are_those_of_least_cost_and_rates_go_on_beyond_the_impostors() -> None:
    scores = table(single=False)
    (one,) = growth(scores).systems
    assert [point.name for point in one.operating] == ["τ₁", "τ₂", "τ₃"]
    targets, nontargets = scores.targets(), scores.nontargets()
    for point, weight in zip(one.operating, (10, 1, 0.1), strict=True):
        cost = weight * point.p_miss + point.p_fa
        every = [
            weight * (targets < level).mean() + (nontargets >= level).mean()
            for level in np.concatenate([targets, nontargets])
        ]
        assert cost == pytest.approx(min(every), abs=0.05)
    assert one.predicted is not None
    assert one.predicted.counts[-1] == 200
    assert (one.predicted.values[-1] >= one.measured.values[-1]).all()


def test_attacks_are_measured_at_the_same_thresholds_and_not_extrapolated() -> None:
    scores = table(single=False)
    options = {"counts": None, "by": None, "population": None, "model": "gpd"}
    (one,) = growth_of(scores, far=False, groups=0, **options).systems
    (far,) = growth(scores).systems
    assert one.predicted is None
    assert [p.threshold for p in one.operating] == [p.threshold for p in far.operating]
