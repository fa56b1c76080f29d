from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.helpers.notices import lines_of

import unmask as um
from unmask.base import Sampling
from unmask.engine import Units
from unmask.report import render
from unmask.stress import contour
from unmask.trials import Ids

SHARED = Path(__file__).parents[2] / ".." / "shared" / "data" / "scores"


def table(*, speakers=6, utterances=8, seed=0, with_speakers=True):
    """Every ordered pair of utterances, scored by two systems, the second the better one."""
    rng = np.random.default_rng(seed)
    n = speakers * utterances
    enrol, test = (part.ravel() for part in np.meshgrid(np.arange(n), np.arange(n)))
    enrol, test = enrol[enrol != test], test[enrol != test]
    label = (enrol // utterances == test // utterances).astype(np.int8)
    truth = 2.5 * label + rng.normal(0, 1, label.size)
    names = np.array([f"s{u // utterances}-u{u % utterances}" for u in range(n)])
    spoken = {}
    if with_speakers:
        spoken = {
            "enrol_speaker": Ids.from_strings([f"s{u // utterances}" for u in enrol]),
            "test_speaker": Ids.from_strings([f"s{u // utterances}" for u in test]),
        }
    return um.Scores(
        Ids.from_strings(names[enrol]),
        Ids.from_strings(names[test]),
        label,
        systems={"old": truth + rng.normal(0, 1.5, label.size), "new": truth},
        columns={
            "quality": Ids.from_strings([f"{x:.3f}" for x in truth]),
            "sex": Ids.from_strings(["f"] * label.size),
        },
        **spoken,
    )


def test_the_roadmap_is_the_default(sentences):
    scores = table()
    result = um.cp_maps(scores, references=["old"], grid=12, replicates=20)
    assert list(result.maps) == ["old", "new"]
    expected = um.cp_map(
        scores.targets("new"),
        scores.nontargets("new"),
        target_hardness=scores.targets("old"),
        nontarget_hardness=scores.nontargets("old"),
        grid=12,
    )
    np.testing.assert_array_equal(result.maps["new"].values, expected.values)
    assert result.roadmap is not None
    delta = result.deltas[0]
    assert delta.intervals.grid == (12, 12)
    assert delta.intervals.win.low <= delta.win <= delta.intervals.win.high
    assert {e.trials for e in result.estimates_of("old")} == {scores.digest}
    assert len(result.warnings) == 4
    assert [notice.code for notice in result.notices].count("few-speakers") == 1
    sentences.check(result.warnings[0])


def test_all_compared_systems_order_alike_by_default():
    scores = table()
    result = um.cp_maps(scores, grid=6, replicates=0)
    ranks = um.cp_maps(scores, references=["old", "new"], combine="rank", grid=6, replicates=0)
    np.testing.assert_array_equal(result.maps["old"].values, ranks.maps["old"].values)
    assert "hardness:rank(old,new)" in result.estimates_of("old")[1].signature
    alone = um.cp_maps(scores, systems=["old"], grid=6, replicates=0)
    own = um.cp_map(scores.targets("old"), scores.nontargets("old"), grid=6)
    np.testing.assert_array_equal(alone.maps["old"].values, own.values)
    assert "hardness:own" in alone.estimates_of("old")[1].signature


def test_the_mean_of_scores_on_unlike_scales_is_warned_about(sentences):
    scores = table()
    wide = replace(scores, systems={**scores.systems, "wide": 30 * scores.systems["old"]})
    mean = {"combine": "mean", "grid": 4, "replicates": 0}
    result = um.cp_maps(wide, references=["new", "wide"], systems=["new"], **mean)
    sentences.check(*lines_of(result, "unlike-scales"))
    like = um.cp_maps(wide, references=["new", "old"], **mean)
    assert not any("as wide as" in text for text in like.warnings)


def test_comparisons_may_branch_or_stay_apart(sentences):
    scores = table()
    more = replace(
        scores,
        systems={
            **scores.systems,
            "third": scores.systems["new"] * 2 + 1,
            "fourth": scores.systems["old"],
        },
    )
    options = {"grid": 4, "replicates": 0}
    tree = um.cp_maps(more, deltas=[("old", "new"), ("old", "third")], **options)
    assert tree.roadmap.levels == (("old",), ("new", "third"))
    assert tree.references == ("old", "new", "third")
    apart = um.cp_maps(more, deltas=[("old", "new"), ("third", "fourth")], **options)
    assert apart.roadmap is None
    sentences.check(*lines_of(apart, "no-roadmap"))


def test_intervals_have_a_hundred_steps_a_side_at_most():
    fine, coarse = (um.cp_maps(table(), grid=grid, replicates=4) for grid in (120, (30, 110)))
    assert fine.maps["new"].intervals.grid == (100, 100)
    assert coarse.maps["new"].intervals.grid == (30, 100)


def test_every_number_of_a_map_has_an_interval_but_the_cells():
    scores = table()
    result = um.cp_maps(scores, grid=8, replicates=30, below=0.1)
    for estimate in result.estimates_of("new"):
        made = estimate.interval
        assert 0 <= made.low <= estimate.value <= made.high <= 1
        assert made.low < made.high
    assert result.estimates_of("new")[1].interval.method == "speaker,logit t"
    every = um.cp_maps(scores, grid=8, replicates=30, below=1.5).estimates_of("new")[2]
    assert every.value == every.interval.high == 1
    assert every.interval.low > 0.5
    every, fixed = (
        {e.metric: e.interval for e in result.position_estimates("new", position)}
        for position in result.positions["new"]
    )
    assert [name for name, made in every.items() if made is not None] == ["eer"]
    assert fixed["cp_cell"] is None
    assert fixed["cp_gap"].low < result.positions["new"][1].gap < fixed["cp_gap"].high
    single = um.cp_maps(scores, systems=["new"], grid=8, replicates=30)
    assert single.maps["new"].intervals is not None
    other = um.cp_map(scores.targets("new"), scores.nontargets("new"), grid=8)
    assert [e.interval for e in other.estimates] == [None] * 4
    assert result.maps["new"].estimates_below(0.2)[2].interval is None


def test_intervals_of_the_chain_are_those_of_each_pair():
    scores = table()
    result = um.cp_maps(scores, references=["old"], grid=9, replicates=15, seed=4)
    alone = um.stress.cp_intervals(
        [(scores.targets(name), scores.nontargets(name)) for name in ("old", "new")],
        speaker_units(scores),
        compared=[(0, 1)],
        hardness=(scores.targets("old"), scores.nontargets("old")),
        grid=9,
        sampling=Sampling(15, seed=4),
    )
    assert result.deltas[0].intervals == alone.deltas[0]


def test_replicates_that_leave_a_class_empty_are_told(sentences):
    scores = table()
    codes = scores.enrol_speaker.codes
    few = scores.select(scores.is_nontarget | (codes == codes[scores.is_target][0]))
    said = um.cp_maps(few, grid=2, replicates=30).warnings
    sentences.check(*said)
    whole = um.cp_maps(scores, grid=2, replicates=4).warnings
    assert not any("a class empty" in line for line in whole)


def speaker_units(scores):
    t, n = scores.is_target, scores.is_nontarget
    enrol, test = scores.enrol_speaker.codes, scores.test_speaker.codes
    return Units.speakers(enrol[t], enrol[n], test[n])


def test_a_column_may_order_the_trials():
    scores = table()
    by_column = um.cp_maps(scores, references=["quality"], grid=5, replicates=0)
    by_system = um.cp_maps(scores, references=["new"], grid=5, replicates=0)
    np.testing.assert_allclose(
        by_column.maps["old"].values, by_system.maps["old"].values, atol=0.02
    )


def test_cross_pairing_and_deployment_are_placed():
    scores = table()
    hard = scores.select(np.argsort(scores.systems["old"])[::5])
    result = um.cp_maps(scores, references=["old"], grid=10, replicates=0, subset={"mine": hard})
    placed = result.positions["new"]
    assert [p.name for p in placed] == ["full cross-pairing", "enrolment-fixed", "mine"]
    assert (placed[0].x, placed[0].y) == pytest.approx((1, 1))
    assert (placed[1].targets, placed[1].nontargets) == (6 * 7, 6 * 5 * 7)
    assert placed[2].targets + placed[2].nontargets == len(hard)
    names = [e.metric for e in result.position_estimates("new", placed[2])]
    assert names == ["eer", "cp_x", "cp_y", "cp_cell", "cp_gap"]


def test_a_part_of_cross_pairing_is_called_all_trials():
    scores = table().select(np.arange(0, 2256, 3))
    result = um.cp_maps(scores, grid=5, replicates=0)
    assert result.positions["old"][0].name == "all trials"
    assert result.references == ("old", "new")
    assert not any("orders the trials" in text for text in result.warnings)


def test_one_comparison_only():
    result = um.cp_maps(table(), deltas=[("new", "old")], grid=5, replicates=0)
    assert [(d.reference, d.test) for d in result.deltas] == [("new", "old")]
    assert result.roadmap.levels == (("new",), ("old",))
    single = um.cp_maps(table(), systems=["old"], grid=5, replicates=5)
    assert single.deltas == ()
    assert single.roadmap is None


def test_without_speakers_trials_are_drawn_and_said_so():
    scores = table(with_speakers=False)
    result = um.cp_maps(scores, references=["old"], grid=5, replicates=10)
    assert result.deltas[0].intervals.win.method == "trial,bands of cells"
    assert any("no speaker ids" in text for text in result.warnings)


def test_bad_requests_are_one_line(sentences):
    scores = table()
    other = replace(scores.select([0, 1]), enrol=Ids.from_strings(["x", "y"]))
    wrong = replace(scores.select([0, 100]), label=1 - scores.label[[0, 100]])
    targets = scores.select(scores.is_target)
    for change in [
        {"references": ["none"]},
        {"references": ["sex"]},
        {"deltas": [("old", "none")]},
        {"systems": ["none"]},
        {"subset": other},
        {"subset": wrong},
        {"subset": targets},
        {"grid": 0},
    ]:
        with pytest.raises(um.InputError) as caught:
            um.cp_maps(scores, **{"grid": 4, "replicates": 0, **change})
        sentences.check(str(caught.value))
        assert "\n" not in str(caught.value)
    with pytest.raises(um.InputError) as error:
        um.cp_maps(targets)
    sentences.check(str(error.value))


def test_many_trials_get_intervals_only_when_asked(monkeypatch, sentences):
    monkeypatch.setattr("unmask.stress.cpmap.systems.AUTO_TRIALS", 100)
    result = um.cp_maps(table(), references=["old"], grid=4)
    assert result.deltas[0].intervals is None
    sentences.check(*result.warnings)


def test_documents_and_tables():
    result = um.cp_maps(table(), references=["old"], grid=40, replicates=10)
    document = um.document(result)
    metrics = [e.metric for row in document.rows for e in row.estimates]
    assert {"eer_raw", "cp_mean", "cp_x", "cp_gap", "cp_win", "cp_tie", "cp_lose"} <= set(metrics)
    assert "not well-defined" in document.warnings[-1]
    text = render(um.document(result))
    assert text.count("───") >= 3
    assert "old → new" in text
    single = um.cp_maps(table(), systems=["old"], grid=4, replicates=5)
    assert "full cross-pairing" in render(um.document(single), "md")


def test_contours_separate_the_cells():
    cp = um.cp_map(np.arange(60.0) + 25, np.arange(60.0), grid=(6, 4))
    line = contour(cp, 0.3)
    below = cp.values < 0.3
    crossings = int((below[:, 1:] != below[:, :-1])[cp.well_defined[:, :-1]].sum())
    assert (line.x == line.x2).sum() == crossings
    assert np.all((line.x == line.x2) ^ (line.y == line.y2))
    assert contour(cp, 2.0).x.size == 0


@pytest.mark.skipif(not SHARED.is_dir(), reason="the data are not at hand")
def test_voxceleb_systems():
    """EERs of the table that comes with the data: 9.67, 5.69 and 5.56 %."""
    scores = um.read_scores(SHARED / "voxceleb1_o_3systems_cranDET.tsv.gz")
    result = um.cp_maps(
        scores, references=["lda_cosine", "plda"], combine="rank", grid=20, replicates=0
    )
    full = [round(100 * cp.full, 2) for cp in result.maps.values()]
    assert full == [9.67, 5.69, 5.56]
    assert result.deltas[0].win > 0.99
