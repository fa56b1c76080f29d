"""Alignments and two-sided scores against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from tests.helpers.populations import named_speakers

from unmask.errors import InputError
from unmask.scoring import AsNorm, Cosine, Fused, Plda, Whitening, score_matrix
from unmask.scoring.alignment import (
    centring,
    coral,
    procrustes,
    wasserstein_procrustes,
    whitening,
)

D = 6


def cloud(size=200, seed=0, *, mix=True):
    """Vectors of length one about 1 with their own shape."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(size, D)) @ (rng.normal(size=(D, D)) if mix else np.eye(D)) + 1
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def turn(seed=5):
    q, r = np.linalg.qr(np.random.default_rng(seed).normal(size=(D, D)))
    return q * np.sign(np.diag(r))


def moments(rows):
    return rows.mean(axis=0), (rows - rows.mean(axis=0)).T @ (rows - rows.mean(axis=0)) / len(rows)


def test_whitening_gives_the_identity():
    rows = cloud()
    mean, covariance = moments(whitening(rows, shrinkage=0.0).apply(rows))
    np.testing.assert_allclose(mean, 0, atol=1e-12)
    np.testing.assert_allclose(covariance, np.eye(D), atol=1e-9)


def test_coral_matches_second_moments():
    source, target = cloud(seed=1), cloud(seed=2)
    mapped = coral(source, target, shrinkage=0.0).apply(source)
    np.testing.assert_allclose(moments(mapped)[1], moments(target)[1], atol=1e-10)
    same = coral(source, source).apply(source)
    np.testing.assert_allclose(same, centring(source).apply(source), atol=1e-10)


def test_procrustes_recovers_a_planted_rotation():
    source, q = cloud(seed=3), turn()
    result = procrustes(source, source @ q)
    np.testing.assert_allclose(result.matrix, q, atol=1e-10)
    np.testing.assert_allclose(result.matrix @ result.matrix.T, np.eye(D), atol=1e-12)


def test_procrustes_beats_every_other_rotation():
    rng = np.random.default_rng(0)
    x, y = cloud(seed=3), cloud(seed=4)
    a, b = centring(x).apply(x), centring(y).apply(y)
    best = ((a @ procrustes(x, y).matrix - b) ** 2).sum()
    for seed in range(50):
        assert best <= ((a @ turn(seed) - b) ** 2).sum() + 1e-12
    assert rng is not None


def small_turn(angle):
    plane = np.eye(D)
    plane[:2, :2] = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    return plane


@settings(max_examples=10, deadline=None)
@given(st.floats(-0.5, 0.5), st.integers(0, 1000))
def test_wasserstein_procrustes_needs_no_pairs(angle, seed):
    """Well separated voices in another order, turned: the turn is found, whatever the order."""
    rng = np.random.default_rng(seed)
    source = rng.normal(size=(40, D))
    source /= np.linalg.norm(source, axis=1, keepdims=True)
    q = small_turn(angle)
    target = (source @ q)[rng.permutation(40)]
    result = wasserstein_procrustes(source, target)
    if angle**2 < 0.04:
        np.testing.assert_allclose(result.matrix, q, atol=1e-8)
    again = wasserstein_procrustes(source[::-1], target)
    np.testing.assert_allclose(result.matrix, again.matrix, atol=1e-6)


def test_wasserstein_procrustes_takes_sides_of_unequal_size():
    source = cloud(60, mix=False)
    target = (source @ small_turn(0.1))[:45]
    result = wasserstein_procrustes(source, target).matrix
    np.testing.assert_allclose(result @ result.T, np.eye(D), atol=1e-10)


def labelled(seed=0, speakers=12, per=4):
    return named_speakers(speakers, per, D, noise=0.4, means=seed, utterance=None)


def test_as_norm_is_its_definition():
    backend = AsNorm.fit(labelled(), top=5)
    enrol, test = cloud(7, 1), cloud(9, 2)
    cosine = score_matrix(Cosine(), enrol, test)
    expected = np.empty_like(cosine)
    for i, x in enumerate(enrol):
        for j, y in enumerate(test):
            own, other = (sorted(v @ c for c in backend.cohort)[-5:] for v in (x, y))
            expected[i, j] = (
                (cosine[i, j] - np.mean(own)) / np.std(own)
                + (cosine[i, j] - np.mean(other)) / np.std(other)
            ) / 2
    np.testing.assert_allclose(score_matrix(backend, enrol, test), expected, atol=1e-9)
    scores = backend.sides(enrol).enrol @ backend.sides(test).test.T
    np.testing.assert_allclose(scores, expected, atol=1e-9)


def test_a_fusion_is_the_weighted_sum():
    data = labelled()
    members = [Cosine(), Whitening.fit(data), Plda.fit(data)]
    weights = np.array([2.0, -0.5, 0.25])
    enrol, test = cloud(7, 1), cloud(9, 2)
    expected = sum(w * score_matrix(m, enrol, test) for w, m in zip(weights, members, strict=True))
    np.testing.assert_allclose(
        score_matrix(Fused(members, weights), enrol, test), expected, atol=1e-9
    )


def test_bad_sets_are_refused(sentences):
    with pytest.raises(InputError, match="as many vectors"):
        procrustes(cloud(10), cloud(11))
    with pytest.raises(InputError) as error:
        wasserstein_procrustes(cloud(10), cloud(10)[:, :4])
    sentences.check(str(error.value))
    with pytest.raises(InputError, match="2 vectors or more"):
        whitening(cloud(1))
    with pytest.raises(InputError) as error:
        whitening(cloud(3), shrinkage=0.0)
    sentences.check(str(error.value))
    with pytest.raises(InputError, match="cohort of 2"):
        AsNorm.fit(labelled(speakers=1))
