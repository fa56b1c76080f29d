"""The joint speaker bootstrap against the definition, and its intervals against truth."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from tests.helpers.populations import trials_with_effects

from unmask import InputError, Roc
from unmask.base import Replicates, intervals
from unmask.engine.bootstrap import SortedTrials, Units, bootstrap
from unmask.engine.evaluation import Battery
from unmask.run import NUMPY, progress, run_on

BATTERY = Battery()


@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_a_replicate_weighs_trials_by_the_multiplicities(seed, speakers):
    rng = np.random.default_rng(seed)
    target, nontarget, codes = trials_with_effects(rng, speakers)
    target, nontarget = np.round(target, 1), np.round(nontarget, 1)
    units = Units.speakers(*codes)
    times = units.draw(seed, 0)
    assert times.sum() == speakers
    result = SortedTrials.of(target, nontarget, units, thresholds=BATTERY.thresholds).weighted(
        NUMPY, times
    )
    weights = times[codes[0]], times[codes[1]] * times[codes[2]]
    if not weights[0].any() or not weights[1].any():
        assert result is None
        return
    expected = Roc.from_scores(
        target,
        nontarget,
        target_weights=weights[0],
        nontarget_weights=weights[1],
        thresholds=BATTERY.thresholds,
        cllr=True,
    )
    for key, value in BATTERY.values(expected).items():
        assert BATTERY.values(result)[key] == pytest.approx(value, abs=1e-11), key


def test_trials_within_one_speaker_weigh_once():
    units = Units.speakers(np.array([0, 1]), np.array([0, 1]), np.array([0, 0]))
    resampled = SortedTrials.of(np.array([1.0, 2.0]), np.array([0.0, 0.5]), units)
    roc = resampled.weighted(NUMPY, np.array([3.0, 2.0]))
    assert roc.targets == 5
    assert roc.nontargets == 3 + 6


def test_trial_draws_keep_the_size_of_each_class():
    units = Units.trials(5, 7)
    times = units.draw(0, 0)
    assert times[:5].sum() == 5
    assert times[5:].sum() == 7


def test_workers_and_seeds():
    target, nontarget, codes = trials_with_effects(8, 12)
    units = Units.speakers(*codes)
    prepared = [SortedTrials.of(target, nontarget, units, thresholds=BATTERY.thresholds)]

    def drawn(seed, workers):
        with run_on(workers=workers):
            return bootstrap(prepared, BATTERY.values, replicates=50, seed=seed)

    one, four, other = drawn(0, 1), drawn(0, 4), drawn(1, 1)
    for key in one.values:
        np.testing.assert_array_equal(one.values[key], four.values[key])
    assert (one.values["eer"] != other.values["eer"]).any()


@pytest.mark.parametrize(
    ("on", "kind"),
    [("processes", "trials"), ("dask", "speakers"), ("kept", "speakers"), ("kept", "trials")],
)
def test_all_places_draw_the_same(on, kind, tmp_path, shared_place):
    if on == "dask":
        pytest.importorskip("distributed")
    rng = np.random.default_rng(5)
    target, nontarget, codes = trials_with_effects(rng, 12)
    nontarget[0] = -np.inf
    units = Units.speakers(*codes) if kind == "speakers" else Units.trials(36, nontarget.size)
    prepared = [
        SortedTrials.of(target + shift, nontarget, units, thresholds=BATTERY.thresholds)
        for shift in (0.0, 0.5)
    ]
    here = bootstrap(prepared, BATTERY.values, replicates=21)
    with run_on(state=tmp_path) if on == "kept" else shared_place(on):
        there = bootstrap(prepared, BATTERY.values, replicates=21)
    for key in here.values:
        np.testing.assert_array_equal(here.values[key], there.values[key])


@pytest.mark.parametrize("kind", ["speakers", "trials", "few speakers"])
def test_a_device_draws_the_same(kind):
    pytest.importorskip("torch")
    target, nontarget, codes = trials_with_effects(6, 12)
    nontarget[:2] = -np.inf, np.inf
    codes[1][3] = codes[2][3]
    units = Units.speakers(*codes) if kind == "speakers" else Units.trials(36, nontarget.size)
    if kind == "few speakers":
        units = Units.speakers(np.arange(36) % 2, np.ones(nontarget.size, int), codes[2] + 1)
    prepared = SortedTrials.of(target, nontarget, units, thresholds=BATTERY.thresholds)
    here = bootstrap([prepared], BATTERY.values, replicates=30, seed=3)
    with run_on("cuda", devices=["cpu"]):
        there = bootstrap([prepared], BATTERY.values, replicates=30, seed=3)
    for key, values in here.values.items():
        np.testing.assert_allclose(there.values[key], values, rtol=1e-12)
    assert (kind != "few speakers") or here.undefined("eer")


def test_two_systems_share_their_draws():
    target, nontarget, codes = trials_with_effects(9, 10)
    units = Units.speakers(*codes)
    same = [
        SortedTrials.of(target, nontarget, units, thresholds=BATTERY.thresholds) for _ in range(2)
    ]
    drawn = bootstrap(same, BATTERY.values, replicates=40)
    interval = drawn.difference("eer", level=0.95, first=0, second=1)
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)
    assert drawn.share_below("eer", first=0, second=1) == 0.5


def test_progress_is_told_and_few_replicates_are_refused():
    target, nontarget, codes = trials_with_effects(10, 5)
    units = Units.speakers(*codes)
    prepared = [SortedTrials.of(target, nontarget, units, thresholds=BATTERY.thresholds)]
    steps = []
    with progress(lambda *pair: steps.append(pair)):
        bootstrap(prepared, BATTERY.values, replicates=10)
    assert steps == [(1, 3), (2, 3), (3, 3)]
    with pytest.raises(InputError, match="at least 2 replicates"):
        bootstrap(prepared, BATTERY.values, replicates=1)


def test_infinite_losses_count_only_when_drawn():
    units = Units.speakers(np.array([0, 1]), np.array([0]), np.array([1]))
    resampled = SortedTrials.of(np.array([-math.inf, 1.0]), np.array([0.0]), units)
    assert resampled.weighted(NUMPY, np.array([1.0, 1.0])).cllr() == math.inf
    units = Units.speakers(np.array([0, 1]), np.array([1]), np.array([2]))
    resampled = SortedTrials.of(np.array([-math.inf, 1.0]), np.array([0.0]), units)
    assert math.isfinite(resampled.weighted(NUMPY, np.array([0.0, 1.0, 2.0])).cllr())


def test_intervals_cover_the_truth_about_as_often_as_they_say():
    """Speakers with random effects: the speaker bootstrap covers, the trial bootstrap does not."""
    truth_rng = np.random.default_rng(11)
    target, nontarget, _ = trials_with_effects(truth_rng, 700, nontargets=1)
    truth = Roc.from_scores(target, nontarget).eer(estimator="raw")
    covered = {"speaker": 0, "trial": 0}
    runs = 40
    for seed in range(runs):
        target, nontarget, codes = trials_with_effects(1000 + seed, 25)
        for units in (Units.speakers(*codes), Units.trials(target.size, nontarget.size)):
            prepared = [SortedTrials.of(target, nontarget, units)]
            drawn = bootstrap(
                prepared, lambda roc: {"eer": roc.eer(estimator="raw")}, replicates=60
            )
            interval = drawn.interval("eer", level=0.95)
            covered[units.method] += interval.low <= truth <= interval.high
    assert covered["speaker"] / runs > 0.85
    assert covered["speaker"] > covered["trial"]


def test_a_difference_takes_out_its_bias_once():
    """By hand: on the scale of the difference, less the mean shift of the replicates once, and
    further away from 0, where people lie who are hard to recognise.
    """
    rng = np.random.default_rng(8)
    drawn = np.stack([0.10 + 0.01 * rng.normal(size=300), 0.16 + 0.01 * rng.normal(size=300)])
    made = Replicates(
        {"eer": drawn}, {"eer": np.array([0.1, 0.15])}, 20, "speaker", 0, 300, Battery().ranges
    )
    result = made.difference("eer", level=0.95, first=0, second=1)
    within = intervals.MetricRange(-0.5, 0.5, longer="high")
    expected = intervals.bias_corrected(
        0.15 - 0.1, drawn[1] - drawn[0], 20, level=0.95, within=within
    )
    low, high = np.quantile(drawn[1] - drawn[0], [0.025, 0.975], method="inverted_cdf")
    held = min(expected[0], low), max(expected[1], high)
    assert (result.low, result.high) == pytest.approx(held)


@pytest.mark.parametrize(("separation", "reaches"), [(0.0, True), (2.0, False)])
def test_numbers_of_a_hull_reach_chance_where_the_raw_eer_does(separation, reaches):
    rng = np.random.default_rng(11)
    target, nontarget = rng.normal(separation, 1, 60), rng.normal(0, 1, 300)
    units, battery = Units.trials(60, 300), Battery()
    system = SortedTrials.of(target, nontarget, units, thresholds=battery.thresholds)
    drawn = bootstrap([system], battery.values, ranges=battery.ranges, replicates=60)
    result = battery.intervals(drawn, level=0.95)
    assert (result["eer_raw"].low <= 0.5 <= result["eer_raw"].high) == reaches
    assert (result["eer"].high == 0.5) == reaches
    assert (result["min_cllr"].high == 1.0) == reaches
    assert (result["d_ece"].low == result["d_sys"].low == 0.0) == reaches
    assert result["tpr@0.01"] == drawn.interval("tpr@0.01", level=0.95)
