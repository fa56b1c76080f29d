from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.notices import lines_of
from tests.helpers.populations import population

import unmask as um
from unmask.base import Sampling
from unmask.base.intervals import score_interval
from unmask.privacy.legal.verification import ListDraws, errors_of
from unmask.run import NUMPY


def cosines(enrol, test):
    left, right = (e.vectors / np.linalg.norm(e.vectors, axis=1)[:, None] for e in (enrol, test))
    return right @ left.T


def drawn(seed, speakers):
    """Numbers of speakers in random order: of names, whatever the rows."""
    by_name = np.argsort([f"s{i}" for i in range(speakers)])
    return by_name[np.random.default_rng(seed).permutation(speakers)]


def test_everyone_against_everyone_is_the_engine_on_the_whole_matrix():
    enrol, test = population(300, 1, noise=1.0, tag="e"), population(250, 1, noise=1.0, tag="t")
    scores = cosines(enrol, test)
    own = np.eye(250, 300, dtype=bool)
    result = um.privacy.one_minus_eer(enrol, test, counts=[300, 20, 2], replicates=100)
    assert result.value[0] == pytest.approx(1 - um.eer(scores[own], scores[~own]), abs=1e-12)
    assert result.value == pytest.approx(np.full(3, result.value[0]), abs=0.05)
    assert result.attacks.tolist() == [75_000, 5_000, 500]
    assert (result.low <= result.value).all()
    assert (result.value <= result.high).all()
    assert result.chance.tolist() == [0.5] * 3


def test_a_small_count_uses_so_many_others():
    enrol, test = (population(30, 1, noise=1.0, tag=t) for t in "et")
    scores = cosines(enrol, test)
    seeds = np.random.SeedSequence(9).spawn(3)
    order = drawn(seeds[2], 30)
    target = np.diag(scores)
    others = [[j for j in order if j != i][:6] for i in range(30)]
    nontarget = np.concatenate([scores[i, others[i]] for i in range(30)])
    result = um.privacy.one_minus_eer(enrol, test, counts=[7], seed=9, replicates=0)
    assert result.value[0] == pytest.approx(1 - um.eer(target, nontarget), abs=1e-12)
    assert np.isnan(result.low[0])


@pytest.mark.parametrize("side", [(), ("gender",)])
def test_every_count_is_the_engine_on_its_lists(side):
    enrol = population(1100, 1, noise=1.0, tag="e", columns=True)
    test = population(300, 1, noise=1.0, tag="t", columns=True)
    scores = cosines(enrol, test)
    if side:
        gender = [e.columns["gender"].to_series().to_numpy() for e in (enrol, test)]
        scores[gender[1][:, None] != gender[0]] = -np.inf
    order = drawn(np.random.SeedSequence(1).spawn(3)[2], 1100)
    protocol = um.LegalProtocol(side=side)
    counts = [1100, 2, 20, 20, 600]
    result = um.privacy.one_minus_eer(
        enrol, test, counts=counts, protocol=protocol, seed=1, replicates=20
    )
    target = np.diagonal(scores)
    for n, count in enumerate(counts):
        others = np.concatenate([scores[i, order[order != i][: count - 1]] for i in range(300)])
        assert result.value[n] == pytest.approx(1 - um.eer(target, others), abs=1e-12)
        ruled_out = np.isneginf(others)
        turned = um.Roc.from_scores(-target, np.where(ruled_out, -np.inf, -others))
        assert result.negated is not None
        assert result.negated.value[n] == pytest.approx(1 - turned.eer(), abs=1e-12)
    assert result.low[2] == result.low[3]


def test_a_replicate_is_a_sample_of_speakers_on_both_sides():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(12, 12)) + 1.5 * np.eye(12)
    own = np.diagonal(scores)
    knots, which = np.unique(own, return_inverse=True)
    nontarget = np.zeros((1, 144, 25), dtype=int)
    code = np.searchsorted(knots, scores) * 2
    for i, j in np.argwhere(~np.eye(12, dtype=bool)):
        nontarget[0, 12 * i + j, code[i, j]] += 1
    target = np.zeros((12, 25), dtype=int)
    target[np.arange(12), 2 * which + 1] = 1
    how = Sampling(5, 0.95, 0)
    resampled = ListDraws(np.vstack([np.ones(12), how.times(12)]), target, nontarget)
    errors = errors_of(NUMPY, resampled, (0, 6))["errors"]
    for times, result in zip(resampled.times.astype(int), errors, strict=True):
        drawn = np.repeat(np.arange(12), times)
        same = drawn[:, None] == drawn
        sample = scores[np.ix_(drawn, drawn)]
        for sign, value in ((1, result[0, 0]), (-1, result[1, 0])):
            eer = um.eer(sign * own[drawn], sign * sample[~same])
            assert value == pytest.approx(eer, abs=1e-12)


def test_the_low_end_takes_out_the_bias_of_a_hull_and_the_high_end_none():
    rng = np.random.default_rng(3)
    target, nontarget = rng.integers(0, 3, (24, 16)), rng.integers(0, 3, (1, 24 * 24, 16))
    target[:, 8:] += 2
    times = np.vstack([np.ones(24), Sampling(200, 0.95, 0).times(24)])
    resampled = ListDraws(times, target, nontarget)
    drawn = 1 - errors_of(NUMPY, resampled, (0, 201))["errors"][:, 0, 0]
    value, bias = drawn[0], drawn[1:].mean() - drawn[0]
    assert bias > 0
    low, high = resampled.intervals(np.full((2, 1), value), level=0.95)
    variance = 1.1**2 * drawn[1:].var() * 24 / 23
    hull = score_interval(value - bias / (2 ** (2 / 3) - 1), variance, 24, level=0.95)
    shown = score_interval(value, variance, 24, level=0.95)
    assert (low[0, 0], high[0, 0]) == (pytest.approx(hull[0]), pytest.approx(shown[1]))
    assert 0.5 < low[0, 0] < shown[0] < value < high[0, 0]


def test_the_interval_is_that_of_the_value_and_of_the_negated_score():
    enrol = population(50, 6, noise=1.4, tag="e", columns=True)
    test = population(50, [2, 3, 5, 6, 9] * 10, noise=1.4, tag="t", columns=True)
    result = um.privacy.one_minus_eer(
        enrol,
        test,
        counts=[20, 5, 50],
        seed=4,
        replicates=100,
        protocol=um.LegalProtocol(side=("gender",)),
    )
    for curve in (result, result.negated):
        assert (curve.low <= curve.value).all()
        assert (curve.value <= curve.high).all()
        assert (curve.low < curve.high).all()
        assert (curve.low >= 0.5).all()


def test_separable_and_reversed(sentences):
    enrol, test = (population(50, 1, noise=1e-3, tag=t) for t in "et")
    assert um.privacy.one_minus_eer(enrol, test, counts=[50], replicates=50).value[0] == 1.0
    turned = um.Embeddings(-test.vectors, test.speakers)
    result = um.privacy.one_minus_eer(enrol, turned, counts=[50], replicates=50)
    assert result.value[0] == pytest.approx(0.5)
    assert result.negated.value[0] == pytest.approx(1.0)
    assert 0.9 < result.negated.low[0] < result.negated.high[0] == 1.0
    sentences.check(*lines_of(result, "negated"))


def test_equal_scores_say_nothing():
    same = um.Embeddings(np.ones((20, 4)), [str(i) for i in range(20)])
    assert um.privacy.one_minus_eer(same, same, counts=[20], replicates=20).value[
        0
    ] == pytest.approx(0.5)
    assert um.linkability(same, same, counts=[2, 20]).value == pytest.approx([1 / 2, 1 / 20])


@pytest.mark.parametrize("speakers", [500])
def test_the_interval_covers_the_truth(speakers):
    inside = 0
    for seed in range(12):
        sets = [population(60, 1, noise=1.2, tag=t, seed=seed) for t in "et"]
        result = um.privacy.one_minus_eer(*sets, counts=[60], replicates=100, seed=seed)
        inside += bool(result.low[0] <= 0.83 <= result.high[0])
    wide = [population(speakers, 1, noise=1.2, tag=t) for t in "et"]
    truth = um.privacy.one_minus_eer(*wide, counts=[speakers], replicates=0).value[0]
    assert truth == pytest.approx(0.83, abs=0.03)
    assert inside >= 9
