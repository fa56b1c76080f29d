from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.helpers.notices import lines_of
from tests.helpers.populations import population

import unmask as um
from unmask.base import score_interval
from unmask.privacy.legal.probe import Probe, speaker_folds


def test_probe_minimises_its_loss():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(80, 3))
    labels = rng.integers(0, 3, 80)
    features = (vectors - vectors.mean(axis=0)) / vectors.std(axis=0)

    def loss(flat):
        both = flat.reshape(4, 3)
        scores = features @ both[:3] + both[3]
        scores = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        return -scores[np.arange(80), labels].mean() + 2.0 * (both[:3] ** 2).sum() / 160

    probe = Probe.fit(vectors, labels, 3, penalty=2.0)
    result = loss(np.vstack([probe.weights, probe.bias]).ravel())
    assert result == pytest.approx(minimize(loss, np.zeros(12)).fun, abs=1e-5)


def test_the_interval_knows_that_folds_share_their_training_speech():
    voices = population(30, 3, noise=2.0, tag="p", columns=True)
    result = um.attribute_inference(voices, "gender", folds=4)
    share = result.per_speaker
    variance = (1 + 4 / 3) * share.var(ddof=1) / 30
    ends = score_interval(share.mean(), variance, 30, level=0.95)
    assert (result.low, result.high) == pytest.approx(ends)


def test_a_class_unseen_in_training_is_never_predicted():
    vectors = np.random.default_rng(0).normal(size=(20, 2))
    probe = Probe.fit(vectors, np.arange(20) % 2, 3, penalty=1.0)
    assert set(probe.predict(100 * vectors)) <= {0, 1}


def test_folds_split_speakers_and_spread_classes():
    speakers = np.repeat(np.arange(20), 3)
    labels = (speakers % 2).astype(np.int64)
    fold = speaker_folds(speakers, labels, 5, np.random.default_rng(0))
    for speaker in range(20):
        assert len(set(fold[speakers == speaker])) == 1
    for part in range(5):
        assert sorted(np.bincount(labels[fold == part])) == [6, 6]


def test_reads_what_is_there_and_nothing_else(sentences):
    clear = population(80, 3, noise=0.1, tag="p", columns=True)
    result = um.attribute_inference(clear, "gender", unprotected=clear, replicates=200)
    assert result.value > 0.8
    assert result.low > result.chance
    assert not result.warnings
    assert result.attacks == 240
    rng = np.random.default_rng(0)
    blank = um.Embeddings(rng.normal(size=(240, 16)), clear.speakers, columns=clear.columns)
    nothing = um.attribute_inference(blank, "gender", unprotected=clear, replicates=200)
    assert abs(nothing.value - nothing.chance) < 0.12
    assert nothing.unprotected > 0.8
    sentences.check(*lines_of(nothing, "chance"))
    assert nothing.estimates[-1].metric == "inference_unprotected"


def test_speakers_are_disjoint_so_identity_does_not_help():
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(60, 30))
    labels = np.repeat(np.where(rng.random(60) < 0.5, "a", "b"), 10)
    vectors = np.repeat(centres, 10, axis=0) + 0.01 * rng.normal(size=(600, 30))
    known = um.Embeddings(
        vectors, np.repeat(np.arange(60), 10).astype(str), columns={"coin": labels}
    )
    result = um.attribute_inference(known, "coin", replicates=100)
    assert result.value < 0.7, "a probe that knew the test speakers would reach 1"


def test_bands_and_lone_classes():
    people = population(40, 2, noise=0.1, tag="p", columns=True)
    result = um.attribute_inference(people, "age", bands=(25, 35), replicates=50)
    assert set(result.classes) == {"below 25", "25 to below 35", "35 and above"}
    ages = people.columns["age"].to_series().cast(float).to_numpy()
    shares = np.histogram(ages, [-np.inf, 25, 35, np.inf])[0] / 80
    assert result.chance == pytest.approx(shares.max())
    first = np.where(np.arange(80) < 2, "only", np.where(np.arange(80) % 4 < 2, "x", "y"))
    lone = um.Embeddings(people.vectors, people.speakers, columns={"accent": first})
    text = um.attribute_inference(lone, "accent", replicates=50)
    assert text.lone == ("only",)
    assert "cannot be learnt" in " ".join(text.warnings)


def test_bad_input(sentences):
    people = population(20, 2, noise=0.1, tag="p", columns=True)
    with pytest.raises(um.InputError) as error:
        um.attribute_inference(people, "accent")
    sentences.check(str(error.value))
    with pytest.raises(um.InputError) as error:
        um.attribute_inference(people, "gender", bands=(1,))
    sentences.check(str(error.value))
    with pytest.raises(um.InputError, match="2 to the 20 speakers"):
        um.attribute_inference(people, "gender", folds=21)
    one = um.Embeddings(people.vectors, people.speakers, columns={"c": ["v"] * 40})
    with pytest.raises(um.InputError) as error:
        um.attribute_inference(one, "c")
    sentences.check(str(error.value))
