from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.helpers.populations import named_speakers

import unmask as um
from unmask.engine import eer
from unmask.errors import InputError
from unmask.privacy.legal import SCENARIOS, Attacker, attack_scenarios, half_by_content
from unmask.scoring import Whitening
from unmask.trials import Embeddings

SHAPE = SPEAKERS, PER, DIMENSION = 40, 6, 30


def voices(seed: int = 0, *, shift: float = 0.0, key: int = 0, prefix: str = "s") -> Embeddings:
    """Speakers on a sphere; the safeguard adds noise along 4 directions, drawn per speaker and key.

    Two runs of the safeguard share the speaker and the residual and differ in that noise.
    """
    made = named_speakers(*SHAPE, noise=0.35, means=seed, speaker=f"{prefix}{{:02}}")
    noise = np.random.default_rng([seed, key]).standard_normal((SPEAKERS, 4))
    moved = made.vectors.copy()
    moved[:, :4] += shift * np.repeat(noise, PER, axis=0)
    return replace(made, vectors=moved)


def test_folds_cover_every_speaker_once_and_no_utterance_meets_itself():
    original = voices()
    attack = Attacker(original, original).held_out(folds=3, seed=1)
    folds = [fold["cosine"] for fold in attack.folds]
    groups = [set(fold.test.speakers.to_series()) for fold in folds]
    assert [len(group) for group in groups] == [14, 13, 13]
    assert len(set.union(*groups)) == SPEAKERS
    for fold in folds:
        assert set(fold.enrol.speakers.to_series()) == set(fold.test.speakers.to_series())
        assert not set(fold.enrol.utterances.to_series()) & set(fold.test.utterances.to_series())
    target, nontarget = attack.scores()
    assert target.size == SPEAKERS * (PER // 2) ** 2
    assert nontarget.size == (14 * 13 + 2 * 13 * 12) * (PER // 2) ** 2


def test_scores_are_the_cosines_of_the_definition():
    original = voices()
    attack = Attacker(original, original).held_out(folds=1)
    unit = original.vectors / np.linalg.norm(original.vectors, axis=1, keepdims=True)
    first = half_by_content(original, 0, sessions=False)
    cosine = unit[first] @ unit[~first].T
    owner = np.repeat(np.arange(SPEAKERS), PER // 2)
    same = owner[:, None] == owner
    target, nontarget = attack.scores("cosine")
    np.testing.assert_allclose(np.sort(target), np.sort(cosine[same]), atol=1e-12)
    np.testing.assert_allclose(np.sort(nontarget), np.sort(cosine[~same]), atol=1e-12)


def test_sets_without_shared_utterances_are_used_whole():
    original = voices()
    later = Embeddings(
        original.vectors, original.speakers, [f"later-{n}" for n in range(len(original))]
    )
    attack = Attacker(original, later).held_out()
    assert sum(len(fold["cosine"].enrol) for fold in attack.folds) == len(original)


def test_who_knows_the_safeguard_sees_through_it():
    original = voices()
    protected, own = voices(shift=6.0, key=1), voices(shift=6.0, key=2)
    more = voices(shift=6.0, key=3)
    related = (voices(shift=3.0, key=4),)
    result = attack_scenarios(original, protected, own=(own, more), related=related)
    assert tuple(result) == ("original", *SCENARIOS)
    assert list(result) == [
        *("original", "original enrolment", "ignorant"),
        *("semi-informed", "informed", "informed with originals"),
    ]
    error = {name: eer(*attacker.held_out().scores()) for name, attacker in result.items()}
    assert error["original"] < 0.01
    assert error["ignorant"] > 0.3
    assert error["original enrolment"] > 0.15
    assert error["informed"] < 0.1
    assert error["informed with originals"] < 0.1
    assert error["informed"] < error["original enrolment"] < error["ignorant"]


def test_a_key_of_its_own_does_not_open_an_unrelated_voice():
    rng = np.random.default_rng(5)
    protected, own, related = (named_speakers(*SHAPE, noise=0.35, means=rng) for _ in range(3))
    result = attack_scenarios(voices(), protected, own=(own,), related=(related,))
    for name, attacker in result.items():
        if name != "original":
            assert eer(*attacker.held_out().scores()) > 0.35, name


def test_the_strongest_is_named_with_hindsight():
    original = voices()
    protected, own = voices(shift=6.0, key=1), voices(shift=6.0, key=2)
    attack = attack_scenarios(original, protected, own=(own,))["informed"].held_out()
    assert attack.backends == ("cosine", "centred", "wccn", "lda", "plda")
    costs = {name: attack.roc(name).min_cllr() for name in attack.backends}
    assert attack.strongest == min(costs, key=costs.get)
    np.testing.assert_array_equal(attack.scores()[0], attack.scores(attack.strongest)[0])


def test_back_ends_never_see_the_speakers_they_are_tested_on():
    original = voices()
    attack = Attacker(original, original, train=original).held_out(["wccn"], folds=2)
    for fold in attack.folds:
        trained = set(fold["wccn"].train.speakers.to_series())
        assert not trained & set(fold["wccn"].test.speakers.to_series())
        assert len(trained) == SPEAKERS // 2
        again = Whitening.fit(fold["wccn"].train)
        assert again.projection.tolist() == fold["wccn"].backend.projection.tolist()


def test_a_fold_is_an_attacker_like_any_other():
    original = voices()
    attack = Attacker(original, original, train=original).held_out()
    one = attack.folds[0]["wccn"]
    result = um.assess_attackers(
        {"x": one}, counts=[20], lengths=[1], metrics=["linkability"], replicates=0
    )
    linked = um.linkability(
        one.enrol, one.test, counts=[20], backend=one.ready().backend_in_use, replicates=0
    )
    assert result.curves["x", "linkability", 1].value == linked.value


def test_a_matrix_of_speakers_and_utterances(sentences):
    whole = voices()
    first = half_by_content(whole, 0)
    original, protected = whole.select(first), voices(shift=1.0, key=1).select(~first)
    attacker = Attacker(original, protected, "wccn", original)
    assert attacker.readings == um.privacy.legal.READINGS
    matrix = attacker.read().matrix()
    assert matrix.shape == (SPEAKERS, len(protected))
    assert attacker.read("negated").matrix().tolist() == (-matrix).tolist()
    assert attacker.read("centred").matrix().tolist() == (
        attacker.centred().read().matrix().tolist()
    )
    with pytest.raises(InputError) as error:
        Attacker(whole, protected, "wccn", original).read().matrix()
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        Attacker(original, protected, "wccn", whole).read().matrix()
    sentences.check(str(error.value))
    original = whole
    unit = original.vectors / np.linalg.norm(original.vectors, axis=1, keepdims=True)
    means = unit.reshape(SPEAKERS, PER, -1).mean(axis=1)
    cosine = Attacker(original, original).read().matrix()
    np.testing.assert_allclose(
        cosine, means / np.linalg.norm(means, axis=1, keepdims=True) @ unit.T, atol=1e-12
    )


def test_bad_attacks_are_refused(sentences):
    original = voices()
    with pytest.raises(InputError) as error:
        Attacker(original, original).held_out(folds=21)
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        Attacker(original, voices(prefix="t")).held_out()
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        Attacker(original, original).held_out(["wccn"])
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        Attacker(original, original, train=original).held_out(folds=1)
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        attack_scenarios(original, original, own=())
    sentences.check(str(error.value))
    unnamed = Embeddings(original.vectors, original.speakers)
    with pytest.raises(InputError) as error:
        Attacker(unnamed, original).held_out()
    sentences.check(str(error.value))
