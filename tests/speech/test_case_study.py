from __future__ import annotations

import hashlib
import json
from importlib import resources

import numpy as np
import pytest

from unmask.data import librispeech_readers
from unmask.engine import eer
from unmask.errors import InputError
from unmask.speech import case_study, case_study_provenance, trained_case_study
from unmask.speech.embedding import CONDITIONS, ENCODERS
from unmask.trials import read_embeddings


@pytest.mark.parametrize(("encoder", "dimension"), [("campplus", 192), ("resemblyzer", 256)])
def test_sixty_voices_in_nine_conditions(encoder, dimension):
    sets = case_study(encoder)
    assert tuple(sets) == CONDITIONS
    for name, one in sets.items():
        assert (len(one), one.n_speakers, one.dimension) == (1200, 60, dimension), name
        np.testing.assert_allclose(np.linalg.norm(one.vectors, axis=1), 1.0, atol=2e-3)
        assert one.columns["gender"].n_unique == 2


# EER of all pairs of original utterances, in percent: measured with the reference
# implementations of both encoders on the same recordings.
@pytest.mark.parametrize(("encoder", "expected"), [("campplus", 0.56), ("resemblyzer", 2.79)])
def test_unprotected_voices_have_the_eer_of_the_reference(encoder, expected):
    original = case_study(encoder)["original"].normalised()
    scores = original.vectors @ original.vectors.T
    first, second = np.triu_indices(len(scores), 1)
    same = original.speakers.codes[first] == original.speakers.codes[second]
    pairs = scores[first, second]
    assert 100 * eer(pairs[same], pairs[~same]) == pytest.approx(expected, abs=0.1)


def test_provenance_names_source_licence_seeds_and_hashes():
    note = case_study_provenance()
    assert note["source"]["recordings"]["licence"] == "MIT"
    for keyed in ("b2r", "b2w", "pooling"):
        assert note["conditions"][keyed]["seed"] != note["conditions"][f"{keyed}-again"]["seed"]
    assert all("seed" not in note["conditions"][name] for name in ("b2", "restate"))
    assert set(note["encoders"]) == set(ENCODERS)
    folder = resources.files("unmask.data").joinpath("case_study")
    for name, digest in note["files"].items():
        assert hashlib.sha256(folder.joinpath(name).read_bytes()).hexdigest() == digest
    total = sum(len(folder.joinpath(name).read_bytes()) for name in note["files"])
    assert total < 8e6


@pytest.mark.parametrize("encoder", ENCODERS)
def test_second_runs_are_other_runs_of_the_same_voices(encoder):
    sets = case_study(encoder)
    for keyed in ("b2r", "b2w", "pooling"):
        first, second = sets[keyed].vectors, sets[f"{keyed}-again"].vectors
        likeness = (first * second).sum(axis=1)
        assert 0.5 < likeness.mean() < 0.999, keyed


@pytest.mark.parametrize("encoder", ENCODERS)
def test_restated_voices_are_recognised_by_chance_alone(encoder):
    sets = case_study(encoder)
    for enrolled in ("original", "restate"):
        scores = sets[enrolled].vectors @ sets["restate"].vectors.T
        same = sets["restate"].speakers.codes[:, None] == sets[enrolled].speakers.codes
        other = ~np.eye(len(scores), dtype=bool)
        assert 0.47 < eer(scores[same & other], scores[~same]) < 0.53


def test_readers_of_librispeech_travel_with_where_they_come_from():
    folder = resources.files("unmask.data").joinpath("librispeech")
    note = json.loads(folder.joinpath("provenance.json").read_text(encoding="utf-8"))
    with librispeech_readers() as path:
        content, readers = path.read_bytes(), read_embeddings(path)
    assert len(content) < 1e6
    assert hashlib.sha256(content).hexdigest() == note["file_sha256"]
    assert "CC BY 4.0" in note["speech"]
    subset = readers.columns["subset"].to_series()
    for name, counts in note["subsets"].items():
        some = readers.select((subset == name).to_numpy())
        assert (some.n_speakers, len(some)) == (counts["readers"], counts["vectors"])
    np.testing.assert_allclose(np.linalg.norm(readers.vectors, axis=1), 1.0, atol=2e-3)


def test_an_unknown_encoder_is_refused(sentences):
    with pytest.raises(InputError) as error:
        case_study("ecapa")
    sentences.check(str(error.value))


def test_a_trained_attacker_hears_through_b2w_on_voices_it_never_heard():
    """The same recordings through CAM++ as it was and through CAM++ trained on B2w."""
    before, after = case_study("campplus"), trained_case_study()
    names = set(after["original"].utterances.to_series())
    kept = before["b2w"].utterances.to_series().is_in(names).to_numpy()
    rates = []
    for enrol, test in (
        (before["b2w-again"].vectors[kept], before["b2w"].vectors[kept]),
        (after["b2w-again"].vectors, after["b2w"].vectors),
    ):
        people = after["b2w"].speakers.codes
        other = np.arange(400)[:, None] % 2 < np.arange(400)[None] % 2
        same = people[:, None] == people[None]
        scores = enrol @ test.T
        rates.append(eer(scores[same & other], scores[~same & other]))
    assert rates[0] > 0.25
    assert rates[1] < 0.05
    assert (len(after["original"]), after["original"].n_speakers) == (400, 20)
