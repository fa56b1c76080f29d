from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from tests.helpers.populations import speakers_with_noise

from unmask import InputError
from unmask.scoring import Plda, backend_named, score_matrix
from unmask.scoring.cosine import SpeakerMoments
from unmask.scoring.plda import em_step
from unmask.trials import Embeddings


@dataclass
class Ids:
    codes: np.ndarray


@dataclass
class Set:
    vectors: np.ndarray
    speakers: Ids


def population(rng, speakers=40, each=6, dimension=5, between=1.0, within=0.4):
    share = within / between
    rows, codes = speakers_with_noise(speakers, each, dimension, noise=share, means=rng)
    return Set(2.0 + between * rows, Ids(codes))


def brute_force(plda, enrol, test):
    """log p(enrol, test | same) − log p(enrol, test | different) of stacked Gaussian vectors."""
    stacked = np.concatenate([enrol, test[None]])
    k, d = stacked.shape
    same = np.kron(np.ones((k, k)), plda.between) + np.kron(np.eye(k), plda.within)
    apart = same.copy()
    apart[-d:, :-d] = apart[:-d, -d:] = 0.0
    x = stacked.reshape(-1)
    return multivariate_normal.logpdf(x, cov=same) - multivariate_normal.logpdf(x, cov=apart)


@pytest.mark.parametrize("lda", [None, 3])
@pytest.mark.parametrize("iterations", [0, 3])
def test_llr_of_a_pair_is_the_ratio_of_gaussian_densities(lda, iterations):
    rng = np.random.default_rng(0)
    data = population(rng)
    plda = Plda.fit(data, lda=lda, iterations=iterations)
    enrol, test = data.vectors[:7], data.vectors[100:111]
    scores = score_matrix(plda, enrol, test)
    e, t = plda.transform(enrol), plda.transform(test)
    expected = [[brute_force(plda, a[None], b) for b in t] for a in e]
    np.testing.assert_allclose(scores, expected, atol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_llr_of_n_enrolment_utterances_is_the_ratio_of_gaussian_densities(n):
    data = population(np.random.default_rng(1))
    plda = Plda.fit(data)
    enrol, test = data.vectors[: 3 * n], data.vectors[50:58]
    models = plda.enrol(enrol, np.repeat([4, 7, 9], n))
    e, t = plda.transform(enrol).reshape(3, n, -1), plda.transform(test)
    expected = [[brute_force(plda, group, b) for b in t] for group in e]
    np.testing.assert_allclose(plda.score_models(models, test), expected, atol=1e-9)


def test_models_of_different_sizes_are_scored_together():
    data = population(np.random.default_rng(2))
    plda = Plda.fit(data)
    together = plda.enrol(data.vectors[:5], np.array([0, 0, 0, 1, 1]))
    test = data.vectors[60:70]
    scores = plda.score_models(together, test)
    for row, part in enumerate([slice(0, 3), slice(3, 5)]):
        alone = plda.enrol(data.vectors[part], np.zeros(part.stop - part.start, dtype=int))
        np.testing.assert_allclose(plda.score_models(alone, test)[0], scores[row])


def test_one_utterance_gives_the_score_of_the_pair():
    data = population(np.random.default_rng(3))
    plda = Plda.fit(data)
    models = plda.enrol(data.vectors[:4], np.arange(4))
    pairs = score_matrix(plda, data.vectors[:4], data.vectors[9:20])
    np.testing.assert_allclose(plda.score_models(models, data.vectors[9:20]), pairs, atol=1e-10)


def likelihood(rows, codes, between, within):
    total = 0.0
    for code in np.unique(codes):
        x = rows[codes == code]
        k = x.shape[0]
        covariance = np.kron(np.ones((k, k)), between) + np.kron(np.eye(k), within)
        total += multivariate_normal.logpdf(x.reshape(-1), cov=covariance)
    return total


def test_each_em_step_raises_the_likelihood_of_unbalanced_data():
    rng = np.random.default_rng(4)
    codes = np.repeat(np.arange(12), rng.integers(1, 6, 12))
    rows = rng.normal(size=(12, 3))[codes] + rng.normal(size=(codes.size, 3))
    rows -= rows.mean(axis=0)
    moments = SpeakerMoments.of(rows, codes)
    between, within = moments.between + 0.1 * np.eye(3), moments.within
    values = [likelihood(rows, codes, between, within)]
    for _ in range(8):
        between, within = em_step(moments, between, within)
        values.append(likelihood(rows, codes, between, within))
    assert np.all(np.diff(values) > -1e-9)
    assert values[-1] > values[0]


def test_closed_form_finds_the_covariances_of_a_large_set():
    rng = np.random.default_rng(5)
    codes = np.repeat(np.arange(4000), 5)
    between, within = np.diag([4.0, 1.0, 0.0]), np.diag([0.5, 1.0, 2.0])
    rows = rng.multivariate_normal(np.zeros(3), between, 4000)[codes]
    rows += rng.multivariate_normal(np.zeros(3), within, codes.size)
    moments = SpeakerMoments.of(rows, codes)
    np.testing.assert_allclose(moments.between, between, atol=0.25)
    np.testing.assert_allclose(moments.within, within, atol=0.06)


def test_same_speaker_pairs_score_higher():
    data = population(np.random.default_rng(6), within=0.2)
    plda = Plda.fit(data)
    scores = score_matrix(plda, data.vectors, data.vectors)
    same = data.speakers.codes[:, None] == data.speakers.codes
    assert scores[same].mean() > 0 > scores[~same].mean()


def test_directions_without_speakers_are_dropped():
    data = population(np.random.default_rng(7), speakers=4, dimension=6)
    assert Plda.fit(data, iterations=0).rank <= 3


@pytest.mark.parametrize("lda", [None, 4])
def test_saved_and_loaded_plda_scores_alike(tmp_path: Path, lda):
    data = population(np.random.default_rng(8))
    plda = Plda.fit(data, lda=lda)
    plda.save(tmp_path / "plda.npz")
    loaded = Plda.load(tmp_path / "plda.npz")
    assert loaded.name == plda.name
    assert loaded.iterations == plda.iterations
    np.testing.assert_array_equal(loaded.sides(data.vectors).enrol, plda.sides(data.vectors).enrol)
    assert [p.name for p in tmp_path.iterdir()] == ["plda.npz"]


def test_bad_files_and_bad_sets_are_named(tmp_path: Path, sentences):
    (tmp_path / "x.npz").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"x\.npz"):
        Plda.load(tmp_path / "x.npz")
    np.savez(tmp_path / "y.npz", a=1)
    with pytest.raises(InputError, match=r"y\.npz.*unmask-plda-1"):
        Plda.load(tmp_path / "y.npz")
    np.savez(tmp_path / "z.npz", format="unmask-plda-1", centre=1)
    with pytest.raises(InputError, match=r"z\.npz.*mean, between"):
        Plda.load(tmp_path / "z.npz")
    data = population(np.random.default_rng(9))
    Plda.fit(data).save(tmp_path / "good.npz")
    good = dict(np.load(tmp_path / "good.npz"))
    for name, bad in (
        ("mean", good["mean"].astype(str)),
        ("within", good["within"][:-1]),
        ("between", np.where(good["between"] > 0, good["between"], np.nan)),
    ):
        np.savez(tmp_path / "bad.npz", **{**good, name: bad})
        with pytest.raises(InputError) as error:
            Plda.load(tmp_path / "bad.npz")
        sentences.check(str(error.value))
    with pytest.raises(InputError, match="LDA: expected 1 to 5"):
        Plda.fit(data, lda=6)
    with pytest.raises(InputError, match="5 dimensions"):
        Plda.fit(data).sides(np.ones((2, 4)))
    with pytest.raises(InputError, match="2 speakers"):
        Plda.fit(Set(np.eye(3), Ids(np.zeros(3, dtype=int))))
    with pytest.raises(InputError, match="2 vectors"):
        Plda.fit(Set(np.eye(3), Ids(np.arange(3))))
    with pytest.raises(InputError, match="shrinkage"):
        Plda.fit(data, shrinkage=2.0)
    with pytest.raises(InputError, match="cosine"):
        backend_named("magic")


@pytest.mark.parametrize("back_end", ["wccn", "lda", "plda"])
@pytest.mark.parametrize("rounding", [0, 1e-8])
def test_recordings_that_equal_each_other_are_refused_by_the_name_of_the_back_end(
    back_end, rounding
):
    rng = np.random.default_rng(4)
    who = np.repeat(np.arange(20), 5)
    rows = rng.normal(size=(20, 64))[who] + rounding * rng.normal(size=(100, 64))
    message = rf"^back-end {back_end}: expected (recordings of a person|vectors) that differ, found"
    with pytest.raises(InputError, match=message):
        backend_named(back_end, Embeddings(rows, who))
