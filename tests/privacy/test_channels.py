"""The length of vectors as an attack: its LLR by the definition, what it finds, where it is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve

import unmask as um
from unmask.errors import InputError
from unmask.privacy import TwoCovariance, with_length
from unmask.privacy.channels import log_lengths
from unmask.scoring import sides_of_means
from unmask.scoring.cosine import average_groups

DATA = Path(__file__).parents[3] / "shared" / "data" / "embeddings"
HOW = {"counts": [20], "lengths": [1], "metrics": ["linkability"], "replicates": 0}


def log_density(values, covariance):
    """Of a Gaussian about 0, by Cholesky."""
    factor = cho_factor(covariance, lower=True)
    logdet = 2 * np.log(np.diag(factor[0])).sum()
    return -(values @ cho_solve(factor, values) + logdet + len(values) * np.log(2 * np.pi)) / 2


def joint_llr(enrol, test, within, between):
    """LLR of raw utterances of one person against two, from the covariance of all of them."""
    n, size = len(enrol) + len(test), len(within)
    both = np.concatenate([enrol, test])

    def covariance(same):
        people = np.repeat([0, same], [len(enrol), len(test)])
        alike = people[:, None] == people
        return np.kron(np.eye(n), within) + np.kron(alike, between)

    assert size == len(between)
    flat = both.ravel()
    return log_density(flat, covariance(0)) - log_density(flat, covariance(1))


@pytest.mark.parametrize("columns", [1, 3])
def test_scores_are_the_llr_of_the_joint_gaussian(columns):
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(12), 6)
    mixing = rng.normal(size=(columns, columns))
    raw = (rng.normal(size=(12, columns))[who] + 0.7 * rng.normal(size=(72, columns))) @ mixing + 5
    backend = TwoCovariance.fit(raw, who, "x", shrinkage=0.0)
    z = backend.standardised(raw)
    counts = np.array([6] * 12)
    means = np.array([z[who == k].mean(axis=0) for k in range(12)])
    scatter = sum(np.cov(z[who == k].T, bias=True).reshape(columns, -1) * 6 for k in range(12))
    within = scatter / (72 - 12)
    value, basis = np.linalg.eigh(np.cov(means.T).reshape(columns, -1) - within / 6)
    between = (basis * np.maximum(value, 0)) @ basis.T
    packed = backend.packed(z, np.linalg.norm(z, axis=1).max() + 1)
    np.testing.assert_allclose(np.linalg.norm(packed, axis=1), np.linalg.norm(packed[0]))
    # Utterances are averaged as any vectors are: at length one, and at length one again.
    tests = np.array([0, 0, 0, 1, 1, 2])
    sizes, enrolled = np.bincount(tests), average_groups(packed, who)
    tested = average_groups(packed[30:36], tests)
    sides = sides_of_means(backend, enrolled, counts, tested, sizes)
    scores = sides.enrol @ sides.test.T
    for k in range(12):
        for t in range(3):
            mine = z[30:36][tests == t]
            assert scores[k, t] == pytest.approx(
                joint_llr(z[who == k], mine, within, between), abs=1e-10
            )


def test_any_mixture_of_the_columns_has_the_same_scores():
    rng = np.random.default_rng(1)
    who = np.repeat(np.arange(40), 5)
    raw = rng.normal(size=(40, 9))[who] + rng.normal(size=(200, 9))
    scores = []
    for mixing in (np.eye(9), 1000 * np.eye(9), rng.normal(size=(9, 9))):
        backend = TwoCovariance.fit(raw @ mixing, who, "x", shrinkage=0.0)
        z = backend.standardised(raw @ mixing)
        sides = backend.sides(backend.packed(z, np.linalg.norm(z, axis=1).max() + 1))
        scores.append(sides.enrol @ sides.test.T)
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-8)
    np.testing.assert_allclose(scores[0], scores[2], atol=1e-8)


def test_a_column_that_does_not_vary_is_dropped(sentences):
    rng = np.random.default_rng(2)
    who = np.repeat(np.arange(20), 5)
    raw = np.column_stack([rng.normal(size=20)[who] + rng.normal(size=100), np.full(100, 7.0)])
    assert TwoCovariance.fit(raw, who, "x").used.tolist() == [True, False]
    with pytest.raises(InputError) as error:
        TwoCovariance.fit(raw[:, 1:], who, "x")
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        TwoCovariance.fit(rng.normal(size=(20, 1))[who], who, "x")
    sentences.check(str(error.value))


def only_lengths(seed, *, personal=True, people=30, each=10):
    """New voices of unrelated people whose lengths are their owner's, or anybody's."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(people), each)
    mine = rng.normal(size=people)
    names = [f"s{n:02}" for n in who]
    sets = []
    for side in "et":
        rows = rng.normal(size=(people, 24))[who] + 0.5 * rng.normal(size=(len(who), 24))
        own = mine if personal else rng.normal(size=people)
        length = np.exp(own[who] + 0.4 * rng.normal(size=len(who)))
        rows *= (length / np.linalg.norm(rows, axis=1))[:, None]
        sets.append(um.Embeddings(rows, names, [f"{side}{n}" for n in range(len(who))]))
    return sets


def test_a_safeguard_that_keeps_the_length_alone_is_found():
    sets = only_lengths(0)
    attackers = with_length({"ignorant": um.Attacker(*sets, enrols="original")})
    assert list(attackers) == ["ignorant", "ignorant (length)"]
    found = um.assess_attackers(attackers, **HOW)
    best = found.worst("linkability")
    assert best.attacker.startswith("ignorant (length)")
    assert best.luck.p <= 0.01
    assert {name for name, _, _ in found.curves if "length" in name} == {
        "ignorant (length)",
        "ignorant (length), centred",
    }
    longer = um.assess_attackers(attackers, **{**HOW, "lengths": [1, 5]})
    one, five = (longer.strongest("linkability", n).estimate.value for n in (1, 5))
    assert five > one


def test_lengths_of_anybody_are_at_chance():
    beyond = 0
    for seed in range(10):
        sets = only_lengths(seed, personal=False, each=6)
        attackers = {"length": um.Attacker(*sets, "length", enrols="original")}
        beyond += um.assess_attackers(attackers, **HOW).worst("linkability").luck.p <= 0.05
    assert beyond <= 2


def test_a_common_factor_of_all_lengths_hides_nothing_from_the_centred_reading():
    enrol, test = only_lengths(0)
    longer = replace(test, vectors=test.vectors * 50)
    read = [
        um.Attacker(enrol, side, "length", enrols="original").read("centred").matrix()
        for side in (test, longer)
    ]
    np.testing.assert_allclose(*read, atol=1e-9)


def test_vectors_of_length_one_have_no_such_channel():
    enrol, test = (
        um.Embeddings(side.normalised().vectors.astype(np.float32), side.speakers, side.utterances)
        for side in only_lengths(0)
    )
    attackers = {"ignorant": um.Attacker(enrol, test, enrols="original")}
    assert list(with_length(attackers)) == ["ignorant"]
    table = um.compare_safeguards(
        enrol, {"V": replace(test, utterances=enrol.utterances)}, replicates=0
    )
    assert not any("length" in name for name in table["V"].result.attacks)


def test_lengths_that_half_precision_left_are_no_channel():
    halves = []
    for side in only_lengths(0):
        rows = side.normalised().vectors.astype(np.float16)
        halves.append(um.Embeddings(rows, side.speakers, side.utterances))
    attackers = {"ignorant": um.Attacker(*halves, enrols="original")}
    assert list(with_length(attackers)) == ["ignorant"]


def not_tried(found):
    (notice,) = (one for one in found.notices if one.code == "not-tried")
    return notice.sentence


def test_lengths_that_are_not_compared_are_told():
    enrol, test = only_lengths(0)
    unit = um.Embeddings(test.normalised().vectors, test.speakers, test.utterances)
    both = {"ignorant": um.Attacker(enrol, test, enrols="original")}
    assert "length of vectors (not asked for)" in not_tried(um.assess_attackers(both, **HOW))
    compared = um.assess_attackers(with_length(both), **HOW)
    assert "length of vectors" not in not_tried(compared)
    halved = with_length({"ignorant": um.Attacker(enrol, unit, enrols="original")})
    assert list(halved) == ["ignorant"]
    found = um.assess_attackers(halved, **HOW)
    assert "length of vectors (all equal on one side only)" in not_tried(found)


def test_a_control_by_direction_says_nothing_of_the_length():
    enrol, test = only_lengths(3, personal=False)
    rows = np.random.default_rng(0).normal(size=(len(enrol), 24)) * 0.05 + enrol.vectors
    known = um.Embeddings(rows, enrol.speakers)
    attackers = {
        "original": um.Attacker(enrol, known),
        "ignorant": um.Attacker(enrol, test, enrols="original"),
    }
    found = um.assess_attackers(with_length(attackers), **HOW)
    told = {one.subject: one.sentence for one in found.notices if one.code == "chance"}
    assert "on unprotected speech the same attack reaches" in told["ignorant, 1 utterance"]
    assert "reaches" not in told["ignorant (length), 1 utterance"]
    assert told["ignorant (length), 1 utterance"].endswith("this tells nothing")


def test_training_people_join_where_there_are_thirty():
    enrol, test = only_lengths(0)
    other = only_lengths(5, people=40)[0]
    other = replace(other, speakers=um.Ids.from_strings([f"t{n // 10}" for n in range(400)]))

    def fitted(train):
        return um.Attacker(enrol, test, "length", train).read().ready.backend_in_use.mean

    joint = np.concatenate([log_lengths(enrol), log_lengths(other)]).mean()
    assert fitted(other) == pytest.approx(joint)
    assert fitted(other.select(np.arange(290))) == pytest.approx(log_lengths(enrol).mean())


def test_deid_by_length_competes_and_is_cross_fitted():
    original, protected = only_lengths(0)
    protected = replace(protected, utterances=original.utterances)
    result = um.compare_safeguards(original, {"V": protected}, replicates=20)["V"].result
    assert {"length", "length, centred"} <= set(result.attacks)
    assert not any("length" in name and "negated" in name for name in result.attacks)
    assert result.attacker.startswith("length")
    assert min(result.attacks[name] for name in ("length", "length, centred")) < 0.8
    assert result.deid > 0.95
    assert result.strongest.deid.luck.beyond


@pytest.mark.skipif(not DATA.is_dir(), reason="no shared data")
@pytest.mark.parametrize("encoder", ["ecapa192", "campplus192"])
def test_lengths_of_real_vectors_link_a_fifth(encoder):
    """privacy.md has 20 % for both, half against half, N' = 20, chance 5 %."""
    voices = um.read_embeddings(DATA / f"audiomnist_1200_{encoder}.npz")
    half = np.arange(len(voices)) % 2 == 0
    sets = voices.select(half), voices.select(~half)
    attacker = um.Attacker(*sets, "length", enrols="original")
    how = {**HOW, "lengths": [10]}
    found = um.assess_attackers({"length": attacker}, **how).worst("linkability").estimate
    assert 0.12 < found.value < 0.32
    assert found.luck.p <= 0.01
