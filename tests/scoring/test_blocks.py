from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from tests.helpers.populations import speakers_with_noise

from unmask import InputError
from unmask.scoring import (
    Backend,
    Cosine,
    Plda,
    Whitening,
    average_groups,
    backend_named,
    score_matrix,
)
from unmask.scoring.cosine import SpeakerMoments


class Ids:
    def __init__(self, codes):
        self.codes = codes


class Set:
    def __init__(self, vectors, codes):
        self.vectors, self.speakers = vectors, Ids(codes)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return Set(*speakers_with_noise(120, 5, 16, noise=0.3, means=rng))


@pytest.fixture(scope="module", params=["cosine", "wccn", "whitening", "plda", "lda-plda"])
def backend(request, data):
    made = {
        "cosine": lambda: Cosine(),
        "wccn": lambda: Whitening.fit(data),
        "whitening": lambda: Whitening.fit(data, covariance="total"),
        "plda": lambda: Plda.fit(data),
        "lda-plda": lambda: Plda.fit(data, lda=8),
    }[request.param]()
    assert isinstance(made, Backend)
    assert made.name == request.param
    return made


def test_cosine_is_one_minus_the_cosine_distance():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    scores = score_matrix(Cosine(), a, b)
    np.testing.assert_allclose(scores, 1 - cdist(a, b, "cosine"))


def test_scores_have_the_same_bits_whatever_rows_are_with_them(backend, data):
    sides = backend.sides(data.vectors)
    scores = score_matrix(backend, data.vectors, data.vectors)
    np.testing.assert_allclose(scores, sides.enrol @ sides.test.T, atol=1e-9)
    np.testing.assert_array_equal(
        score_matrix(backend, data.vectors[:512], data.vectors), scores[:512]
    )


def test_scores_are_symmetric_and_ignore_length(backend, data):
    rows = backend.sides(data.vectors[:50])
    scores = rows.enrol @ rows.test.T
    np.testing.assert_allclose(scores, scores.T, atol=1e-9)
    louder = backend.sides(3.0 * data.vectors[:50])
    np.testing.assert_allclose(louder.enrol, rows.enrol, atol=1e-9)


def test_wccn_makes_the_within_covariance_the_identity(data):
    backend = Whitening.fit(data, shrinkage=0.0)
    unit = data.vectors / np.linalg.norm(data.vectors, axis=1, keepdims=True)
    rows = (unit - backend.centre) @ backend.projection
    np.testing.assert_allclose(
        SpeakerMoments.of(rows, data.speakers.codes).within, np.eye(16), atol=1e-8
    )
    with pytest.raises(InputError, match="within or total"):
        Whitening.fit(data, covariance="between")


def test_average_is_normalise_mean_normalise():
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(6, 4))
    groups = np.array([3, 1, -1, 3, 1, 3])
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = np.stack([unit[[1, 4]].mean(axis=0), unit[[0, 3, 5]].mean(axis=0)])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(average_groups(vectors, groups), expected)


def test_bad_vectors_are_named(sentences):
    with pytest.raises(InputError) as error:
        Cosine().sides([[1.0, 2.0], [np.nan, 1.0]])
    sentences.check(str(error.value))
    with pytest.raises(InputError, match="row 1 has length 0"):
        Cosine().sides([[1.0, 2.0], [0.0, 0.0]])
    with pytest.raises(InputError, match="shape"):
        Cosine().sides([1.0, 2.0])
    with pytest.raises(InputError, match="groups: expected 2"):
        average_groups(np.eye(2), np.zeros(3, dtype=int))
    with pytest.raises(InputError, match="no vector"):
        average_groups(np.eye(2), np.full(2, -1))
    with pytest.raises(InputError, match="speakers: expected 3"):
        Plda.fit(Set(np.eye(3), np.zeros(2, dtype=int)))


@pytest.mark.parametrize("name", ["cosine", "wccn", "plda", "centred", "lda"])
def test_back_ends_have_names(data, name, tmp_path):
    backend = backend_named(name, data)
    assert backend.name == name
    assert isinstance(backend, Backend)
    assert backend_named(backend) is backend
    again = backend_named(name, data)
    rows = backend.sides(data.vectors[:5]).enrol
    np.testing.assert_array_equal(again.sides(data.vectors[:5]).enrol, rows)
    if isinstance(backend, Plda):
        backend.save(tmp_path / "saved.npz")
        saved = backend_named(tmp_path / "saved.npz")
        np.testing.assert_array_equal(saved.sides(data.vectors[:5]).enrol, rows)


def test_options_of_training_go_through(data):
    assert backend_named("plda", data, lda=4).name == "lda-plda"
    assert backend_named("lda", data, directions=3).sides(data.vectors).enrol.shape[1] == 3


def test_back_ends_that_cannot_be_named_are_told_in_a_line(sentences):
    with pytest.raises(InputError) as error:
        backend_named("euclidean")
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        backend_named("wccn")
    sentences.check(str(error.value))
