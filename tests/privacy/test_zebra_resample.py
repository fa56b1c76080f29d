from __future__ import annotations

import numpy as np
import pytest

from unmask.engine import calibrate, information, weighted_line
from unmask.privacy import calibration_distortion
from unmask.privacy.similarity.distortion import (
    BinnedRun,
    _distortion,
    cross_scores,
    distortions,
)
from unmask.privacy.similarity.intervals import Setup
from unmask.privacy.similarity.lists import RunScores
from unmask.trials import Embeddings

SPEAKERS, EACH = 6, 3


def run_of(rng, shift):
    codes = np.repeat(np.arange(SPEAKERS), EACH)
    one, other = (side.reshape(-1) for side in np.meshgrid(codes, codes, indexing="ij"))
    same = one == other
    scores = np.round(rng.normal(size=one.size) + shift * same, 2)
    return RunScores(scores[same], scores[~same], one[same], one[~same], other[~same], SPEAKERS)


def expanded(run, times):
    """Scores of a resample, every copy written out."""
    target = np.repeat(run.target, times[run.owner].astype(int))
    number = (times[run.first] * times[run.second]).astype(int)
    return target, np.repeat(run.nontarget, number)


def test_a_weight_is_so_many_copies():
    rng = np.random.default_rng(4)
    scores = np.round(rng.normal(size=40), 1)
    weights = rng.integers(0, 4, (2, 40)).astype(float)
    line = weighted_line(scores, *weights, prior=0.3)
    expected = calibrate(*(np.repeat(scores, w.astype(int)) for w in weights), prior=0.3)
    assert (line.scale, line.offset) == pytest.approx((expected.scale, expected.offset), rel=1e-9)


def test_the_weighted_line_is_that_of_the_scores_written_out():
    rng = np.random.default_rng(0)
    run = run_of(rng, 1.5)
    times = np.array([2.0, 0, 1, 3, 0, 0])
    target, nontarget = expanded(run, times)
    made = BinnedRun.of(run)
    line = weighted_line(made.score, *made.weighted(times))
    expected = calibrate(target, nontarget)
    assert line.scale == pytest.approx(expected.scale, rel=0.02)
    assert line.offset == pytest.approx(expected.offset, abs=0.02)


def test_replicates_are_those_of_an_explicit_resampling():
    rng = np.random.default_rng(1)
    first, second = run_of(rng, 1.5), run_of(rng, 1.0)
    runs = BinnedRun.of(first), BinnedRun.of(second)
    for times in Setup(replicates=5, seed=3).weights(SPEAKERS)[:5]:
        line = calibrate(*expanded(first, times))
        target, nontarget = (line.apply(scores) for scores in expanded(second, times))
        expected = information.expected_disclosure(target, nontarget)
        result, _ = _distortion(*runs, times, "linear", True)
        assert result == pytest.approx(expected, abs=0.02)


def test_both_calibrations_have_intervals_that_hold_their_values(sentences):
    rng = np.random.default_rng(2)
    first, second = run_of(rng, 1.5), run_of(rng, 1.5)
    for made in distortions(first, second, replicates=50):
        for estimate in made.estimates:
            interval = estimate.interval
            assert interval.low < estimate.value < interval.high
            assert interval.method == "speaker,recalibrated,corrected"
    none = distortions(first, second, replicates=0)[0].estimates[0]
    assert none.interval is None
    sentences.check(none.no_interval)


def test_an_infinite_distortion_has_none(sentences):
    run = RunScores(
        np.array([2.0, 3, 2, 3]),
        np.array([0.0, 1, 0, 1]),
        np.array([0, 0, 1, 1]),
        np.array([0, 0, 1, 1]),
        np.array([1, 1, 0, 0]),
        2,
    )
    other = RunScores(np.array([0.0, 3, 2, 3]), run.nontarget, run.owner, run.first, run.second, 2)
    made = calibration_distortion(run, other, method="isotonic", laplace=False, replicates=20)
    assert made.c_ece == -np.inf
    assert made.intervals == (None, None)
    sentences.check(made.estimates[0].no_interval)


def test_speakers_come_with_the_scores_of_embeddings():
    rng = np.random.default_rng(3)
    codes = np.repeat(np.arange(5), 4)
    vectors = rng.normal(size=(5, 8))[codes] + 0.5 * rng.normal(size=(20, 8))
    original = Embeddings(vectors, [f"s{c}" for c in codes], [f"u{i}" for i in range(20)])
    runs = [
        Embeddings(vectors + rng.normal(size=vectors.shape), original.speakers, original.utterances)
        for _ in range(2)
    ]
    result = cross_scores(original, runs[0])
    assert np.bincount(result.owner).tolist() == [12] * 5
    assert (result.first != result.second).all()
    assert result.nontarget.size == result.first.size == 20 * 16
    made = calibration_distortion(*(cross_scores(original, one) for one in runs), replicates=20)
    assert made.estimates[0].interval.low < made.c_ece < made.estimates[0].interval.high
