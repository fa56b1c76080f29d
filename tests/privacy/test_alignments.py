"""Attackers that train no network, through the metrics."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from tests.helpers.populations import named_speakers

import unmask as um
from unmask.errors import InputError
from unmask.privacy.legal import BACKENDS, Attacker, pooled, with_backends
from unmask.trials import Embeddings

SPEAKERS, PER, D = 30, 8, 16
UNLABELLED = tuple(one.name for one in BACKENDS.values() if one.needs == "attacked")
LEARNT = tuple(one.name for one in BACKENDS.values() if one.apart)


def people(seed, prefix="s", *, speakers=SPEAKERS):
    return named_speakers(speakers, PER, D, noise=0.5, means=seed, speaker=f"{prefix}{{:02}}")


def changed(voices, matrix, shift=0.0, noise=0.0, seed=9):
    rng = np.random.default_rng(seed)
    vectors = voices.vectors @ matrix + shift + noise * rng.normal(size=voices.vectors.shape)
    return Embeddings(vectors, voices.speakers, voices.utterances)


def halves(voices):
    first = np.arange(len(voices)) % PER < PER // 2
    return voices.select(first), voices.select(~first)


def turned(angle, seed=0):
    """A rotation that turns many planes by an angle."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.normal(size=(D, D)))[0]
    block = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return basis @ np.kron(np.eye(D // 2), block) @ basis.T


def linked(attacker):
    result = um.assess_attackers(
        {"x": attacker}, counts=[SPEAKERS], lengths=[1], metrics=["linkability"], replicates=200
    )
    return result.curves["x", "linkability", 1]


@pytest.fixture(scope="module")
def rotated():
    """A safeguard that turns every voice alike, attacked and on training people."""
    matrix = turned(1.2)
    enrol, test = halves(people(1))
    others = people(2, "t")
    return Attacker(
        enrol,
        changed(test, matrix, noise=0.1),
        train=others,
        enrols="original",
        parallel=(others, changed(others, matrix, noise=0.1)),
    )


def test_who_finds_the_rotation_links_everybody(rotated):
    value = {
        name: linked(Attacker(**{**rotated.__dict__, "backend": name})).value[0]
        for name in ("cosine", "procrustes", "wasserstein")
    }
    assert value["procrustes"] > 0.95
    assert value["cosine"] < 0.5
    assert value["wasserstein"] > value["cosine"]


def test_a_stretched_voice_is_linked_once_moments_match():
    rng = np.random.default_rng(0)
    stretch = np.diag(np.exp(rng.normal(size=D)))
    enrol, test = halves(people(3))
    attacked = changed(test, stretch, shift=4.0)
    value = {
        name: linked(Attacker(enrol, attacked, name)).value[0] for name in ("cosine", *UNLABELLED)
    }
    assert value["whitened"] > value["cosine"] + 0.1
    assert value["coral"] > value["cosine"] + 0.1


def test_an_unrelated_new_voice_stays_protected_under_all_of_them():
    enrol, _ = halves(people(1))
    own = people(5)
    _, test = halves(people(6))
    others = people(2, "t")
    trained = {
        "train": pooled([others, people(8, "t")]),
        "parallel": (others, people(8, "t")),
        "release": False,
    }
    for name in ("cosine", *UNLABELLED, *LEARNT):
        for known in (enrol, halves(own)[0]):
            curve = linked(Attacker(known, test, name, **trained))
            assert curve.low[0] <= 1 / SPEAKERS + 0.02, name
            assert curve.value[0] < 0.15, name


def test_no_label_and_no_order_of_attacked_speech_is_used(rotated):
    order = np.random.default_rng(0).permutation(len(rotated.test))
    for name in UNLABELLED:
        plain = Attacker(rotated.enrol, rotated.test, name).ready()
        mixed = Attacker(rotated.enrol, rotated.test.select(order), name).ready()
        np.testing.assert_allclose(plain.enrol.vectors, mixed.enrol.vectors, atol=1e-6)
        np.testing.assert_allclose(plain.test.vectors[order], mixed.test.vectors, atol=1e-9)


def test_fusion_and_as_norm_are_attackers_like_any_other(rotated):
    for name in ("fusion", "asnorm"):
        attacker = Attacker(**{**rotated.__dict__, "backend": name})
        curve = linked(attacker)
        assert curve.backend == name
        matrix = attacker.read().matrix()
        assert matrix.shape == (SPEAKERS, len(rotated.test))
        assert np.isfinite(matrix).all()


def test_fusion_is_about_as_strong_as_its_best_member():
    enrol, test = halves(people(1))
    others, noise = people(2, "t"), {"noise": 1.0}
    data = {
        "train": others,
        "parallel": (others, changed(others, np.eye(D), seed=1, **noise)),
        "enrols": "original",
    }
    attacked = changed(test, np.eye(D), **noise)
    value = {
        name: linked(Attacker(enrol, attacked, name, **data)).value[0]
        for name in ("cosine", "wccn", "plda", "fusion")
    }
    assert value["fusion"] > 0.85 * max(value.values())
    assert value["fusion"] > 0.2


def test_fusion_of_many_people_is_weighed_by_a_million_trials_at_most(monkeypatch):
    module = sys.modules[BACKENDS["fusion"].fit.__module__]
    weigh, sizes = module.trial_weights, []

    def counted(made, *sides):
        sizes.append(made[0].size)
        return weigh(made, *sides)

    monkeypatch.setattr(module, "trial_weights", counted)
    others = people(2, "t", speakers=400)
    enrol, test = halves(people(1))
    pairs = others, changed(others, np.eye(D), noise=1.0)
    Attacker(enrol, test, "fusion", others, parallel=pairs, enrols="original").ready()
    assert sizes == [(100 * PER) ** 2]


def test_training_people_are_never_attacked(rotated, sentences):
    held, tested = halves(people(1, "t"))
    for name in LEARNT:
        bad = Attacker(rotated.enrol, tested, name, held, parallel=(held, held))
        with pytest.raises(InputError) as error:
            bad.read().matrix()
        sentences.check(str(error.value))
    for name in ("procrustes", "fusion"):
        with pytest.raises(InputError) as error:
            Attacker(rotated.enrol, rotated.test, name).read().matrix()
        sentences.check(str(error.value))
    folds = Attacker(
        rotated.enrol, rotated.test, train=rotated.enrol, parallel=(rotated.enrol, rotated.enrol)
    ).held_out(["procrustes", "asnorm", "whitened"])
    for fold in folds.folds:
        for one in fold.values():
            tested = set(one.test.speakers.to_series())
            assert not tested & set(one.parallel[0].speakers.to_series())


def test_each_attacker_gets_the_back_ends_that_its_data_allow(rotated):
    bare = Attacker(rotated.enrol, rotated.test)
    result = with_backends({"bare": bare, "full": rotated}, ["cosine", "wccn", "coral", "fusion"])
    assert list(result) == [
        *("bare (cosine)", "bare (coral)"),
        *("full (cosine)", "full (wccn)", "full (coral)", "full (fusion)"),
    ]


def test_pairs_without_common_utterances_are_refused(rotated, sentences):
    first, second = rotated.parallel
    other = Embeddings(second.vectors, second.speakers, [f"x{n}" for n in range(len(second))])
    with pytest.raises(InputError) as error:
        Attacker(rotated.enrol, rotated.test, "procrustes", parallel=(first, other)).read().matrix()
    sentences.check(str(error.value))
