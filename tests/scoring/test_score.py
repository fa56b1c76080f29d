"""Scores of a list of trials, against their definitions written out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.helpers.populations import population

import unmask as um
from unmask.scoring import Plda, score_matrix, trial_scores
from unmask.trials import TrialList
from unmask.trials.writing import long_frame

VOICES = population(8, 5, noise=0.6, tag="u", dimension=6)
COHORT = population(12, 4, noise=0.6, tag="c", seed=3, dimension=6)
OTHERS = replace(
    COHORT, speakers=um.Ids.from_strings([f"other-{speaker}" for speaker in COHORT.speakers])
)
NAMES = list(VOICES.utterances)
UNIT = VOICES.vectors / np.linalg.norm(VOICES.vectors, axis=1, keepdims=True)


def trials(pairs, label=True):
    enrol, test = (um.Ids.from_strings(side) for side in zip(*pairs, strict=True))
    speaker = dict(zip(NAMES, VOICES.speakers, strict=True))
    same = [speaker.get(a, a) == speaker[b] for a, b in pairs]
    return um.Trials(enrol, test, same) if label else TrialList(enrol, test, None)


def some_pairs(number=300):
    rng = np.random.default_rng(0)
    both = rng.choice(len(NAMES) ** 2, number, replace=False)
    return [(NAMES[k // len(NAMES)], NAMES[k % len(NAMES)]) for k in both if k % 41]


def test_the_score_of_a_trial_is_the_cosine_of_its_two_vectors():
    pairs = some_pairs()
    scored = um.score(VOICES, trials=trials(pairs))
    row = {name: i for i, name in enumerate(NAMES)}
    expected = [
        sum(x * y for x, y in zip(UNIT[row[a]], UNIT[row[b]], strict=True)) for a, b in pairs
    ]
    np.testing.assert_allclose(scored.scores("cosine"), expected, atol=1e-14)
    spoken = list(VOICES.speakers)
    assert list(scored.enrol_speaker) == [spoken[row[a]] for a, _ in pairs]
    assert list(scored.test_speaker) == [spoken[row[b]] for _, b in pairs]
    assert um.evaluate(scored, replicates=0)["eer"].value < 0.5


def test_a_speaker_and_a_model_are_averages_of_unit_vectors(tmp_path):
    (tmp_path / "spk2utt").write_text("two u-0 u-1\none u-7\n")
    listed = trials([("two", "u-2"), ("one", "u-9"), ("two", "u-30")], label=False)
    by_model = um.score(VOICES, trials=listed, models=tmp_path / "spk2utt").scores()
    two = UNIT[0] + UNIT[1]
    two /= np.linalg.norm(two)
    np.testing.assert_allclose(by_model, [two @ UNIT[2], UNIT[7] @ UNIT[9], two @ UNIT[30]])
    by_name = um.score(VOICES, trials=trials([("s0", "u-9"), ("u-3", "u-9")])).scores()
    whole = UNIT[:5].sum(axis=0)
    expected = [whole @ UNIT[9] / np.linalg.norm(whole), UNIT[3] @ UNIT[9]]
    np.testing.assert_allclose(by_name, expected)


def test_a_cohort_normalises_the_scores_of_any_back_end():
    """Definition: ½((s − μ_e)/σ_e + (s − μ_t)/σ_t) with the 7 closest of the cohort."""
    plda = Plda.fit(VOICES)
    listed = trials(some_pairs(60))
    found = um.score(VOICES, trials=listed, backend=plda, cohort=OTHERS, top=7)
    codes = OTHERS.speakers.codes
    unit = OTHERS.vectors / np.linalg.norm(OTHERS.vectors, axis=1, keepdims=True)
    cohort = np.stack([unit[codes == code].mean(axis=0) for code in np.unique(codes)])
    rows = [[NAMES.index(one) for one in side] for side in (listed.enrol, listed.test)]
    scores = score_matrix(plda, VOICES.vectors, VOICES.vectors)
    of_enrol = np.sort(score_matrix(plda, VOICES.vectors, cohort), axis=1)[:, -7:]
    of_test = np.sort(score_matrix(plda, cohort, VOICES.vectors).T, axis=1)[:, -7:]
    for i, j, value in zip(*rows, found.scores("plda-asnorm"), strict=True):
        e, t = of_enrol[i], of_test[j]
        normal = (scores[i, j] - e.mean()) / e.std() + (scores[i, j] - t.mean()) / t.std()
        assert value == pytest.approx(normal / 2, abs=1e-9)


@pytest.mark.parametrize("option", ["train", "cohort"])
def test_training_and_cohort_voices_of_tested_people_are_refused(option, sentences):
    """By the speakers of the trials that are scored, whoever else is in the file."""
    listed = trials(some_pairs(50))
    backend = "plda" if option == "train" else "cosine"
    with pytest.raises(um.InputError) as error:
        um.score(VOICES, trials=listed, backend=backend, **{option: COHORT})
    sentences.check(str(error.value))
    others = COHORT.select([speaker not in set(VOICES.speakers) for speaker in COHORT.speakers])
    um.score(VOICES, trials=listed, backend=backend, **{option: others})
    # Speakers 0 and 1 alone are tested: the others of the same files may be trained on.
    untested = COHORT.select([speaker not in ("s0", "s1") for speaker in COHORT.speakers])
    pair = trials([("u-0", "u-5")])
    scored = um.score(VOICES, trials=pair, backend=backend, **{option: untested})
    assert np.isfinite(scored.scores()).all()


def test_a_name_trains_its_back_end(tmp_path, sentences):
    listed = trials(some_pairs(50))
    found = um.score(VOICES, trials=listed, backend="plda", train=OTHERS).scores()
    same = um.score(VOICES, trials=listed, backend=Plda.fit(OTHERS)).scores()
    np.testing.assert_array_equal(found, same)
    Plda.fit(OTHERS).save(tmp_path / "plda.npz")
    saved = um.score(VOICES, trials=listed, backend=tmp_path / "plda.npz").scores()
    np.testing.assert_array_equal(found, saved)
    with pytest.raises(um.InputError) as error:
        um.score(VOICES, trials=listed, backend="wccn")
    sentences.check(str(error.value))
    with pytest.raises(um.InputError, match="cohort"):
        um.score(VOICES, trials=listed, backend="asnorm")
    with pytest.raises(um.InputError, match="aligns"):
        um.score(VOICES, trials=listed, backend="coral")


def test_blocks_and_two_files_change_no_bit(monkeypatch, tmp_path):
    listed = trials(some_pairs())
    whole = um.score(VOICES, trials=listed).scores()
    monkeypatch.setattr(trial_scores, "BLOCK", 37)
    monkeypatch.setattr(trial_scores, "_GATHERED", 5)
    um.write(VOICES, tmp_path / "a.npz")
    um.write(VOICES, tmp_path / "b.npz")
    again = um.score(tmp_path / "a.npz", tmp_path / "b.npz", trials=listed).scores()
    np.testing.assert_array_equal(whole, again)


def test_a_list_without_labels_is_scored(tmp_path):
    (tmp_path / "list").write_text("u-0 u-1\nu-0 u-9\n")
    scored = um.score(VOICES, trials=tmp_path / "list")
    assert scored.label is None
    np.testing.assert_allclose(scored.scores(), [UNIT[0] @ UNIT[1], UNIT[0] @ UNIT[9]])


@pytest.mark.parametrize(
    ("lines", "models"),
    [
        ("u-0 u-1 target\nu-0 gone nontarget\n", ""),
        ("u-0 u-1 target\nx u-1 target\n", ""),
        ("m u-1 target\nx u-1 nontarget\n", "m u-0 u-1\n"),
        ("m u-1 target\n", "n u-1\nm u-0 gone\n"),
        ("m u-1 target\n", "m u-0 u-7\n"),
        ("m u-1 target\n", "m u-0\nm u-1\n"),
        ("u-0 u-1 target\nu-0 u-1 target\n", ""),
    ],
)
def test_what_nobody_said_is_refused_by_its_line(tmp_path, lines, models, sentences):
    (tmp_path / "list").write_text(lines)
    (tmp_path / "models").write_text(models)
    with pytest.raises(um.InputError) as error:
        um.score(VOICES, trials=tmp_path / "list", models=tmp_path / "models" if models else None)
    sentences.check(str(error.value))
    assert "\n" not in str(error.value)


def test_vectors_that_do_not_fit_are_refused(sentences):
    narrow = population(8, 5, noise=0.6, tag="u", dimension=5)
    listed = trials(some_pairs(9))
    with pytest.raises(um.InputError, match="6 dimensions"):
        um.score(VOICES, narrow, trials=listed)
    nameless = population(8, 5, noise=0.6, tag="u", dimension=6, named=False)
    with pytest.raises(um.InputError) as error:
        um.score(nameless, trials=listed)
    sentences.check(str(error.value))


def test_evaluate_scores_embeddings_on_the_way(tmp_path):
    listed = trials(some_pairs())
    um.write(VOICES, tmp_path / "v.npz")
    um.write(listed, tmp_path / "key")
    expected = um.evaluate(um.score(VOICES, trials=listed), replicates=0)["eer"].value
    for voices in (VOICES, tmp_path / "v.npz", [str(tmp_path / "v.npz")]):
        found = um.evaluate(voices, key=tmp_path / "key", replicates=0)
        assert found["eer"].value == expected
    frame = long_frame(um.score(VOICES, trials=listed), scores=True).drop("label")
    assert um.evaluate(frame, key=tmp_path / "key", replicates=0)["eer"].value == expected
    with pytest.raises(um.InputError, match="missing"):
        um.evaluate(VOICES, key=tmp_path / "key", missing="skip")
    with pytest.raises(um.InputError, match="backend: expected embeddings"):
        um.evaluate(([1.0], [0.0]), backend="cosine")
