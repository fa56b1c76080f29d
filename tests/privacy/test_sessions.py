from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.populations import named_speakers

import unmask as um
from unmask import InputError, compare_sessions
from unmask.trials import Embeddings

SPEAKERS, SESSIONS, EACH, DIMENSION = 10, 3, 4, 24


def original(rng):
    speaker, session, _ = (part.reshape(-1) for part in np.indices((SPEAKERS, SESSIONS, EACH)))
    names = {"speaker": "{}", "utterance": "u{row}", "sessions": session.astype(str)}
    shape = SPEAKERS, SESSIONS * EACH, DIMENSION
    return named_speakers(*shape, noise=0.4, means=rng, **names), speaker, session


def protected_like(embeddings, vectors):
    return Embeddings(vectors, embeddings.speakers, embeddings.utterances, embeddings.sessions)


def test_the_same_mapping_in_every_session_links_them():
    rng = np.random.default_rng(0)
    data, _, _ = original(rng)
    rotation = np.linalg.qr(rng.normal(size=(DIMENSION, DIMENSION)))[0]
    result = compare_sessions(data, protected_like(data, data.vectors @ rotation), replicates=0)
    assert result.g_vd_within == pytest.approx(0.0, abs=1e-9)
    assert result.unlinkability_between == pytest.approx(0.0, abs=1e-9)


def test_a_new_mapping_for_each_session_keeps_voices_distinct_and_unlinkable():
    rng = np.random.default_rng(1)
    data, _, session = original(rng)
    turns = [np.linalg.qr(rng.normal(size=(DIMENSION, DIMENSION)))[0] for _ in range(SESSIONS)]
    vectors = np.stack([v @ turns[s] for v, s in zip(data.vectors, session, strict=True)])
    result = compare_sessions(data, protected_like(data, vectors), replicates=100)
    assert abs(result.g_vd_within) < 0.1
    assert result.unlinkability_between > 0.8
    by_name = {e.metric: e for e in result.estimates}
    assert by_name["eer_between"].value > 0.35
    assert by_name["d_ece_between"].value < 0.1
    assert by_name["unlinkability_between"].interval.low < result.unlinkability_between
    assert by_name["eer_between"].interval.low < by_name["eer_between"].value
    for estimate in result.estimates:
        assert (estimate.interval is None) == bool(estimate.no_interval)
    assert by_name["g_vd_within"].n["sessions"] == SESSIONS


def test_pairs_within_and_between_sessions_are_all_pairs():
    data, _, _ = original(np.random.default_rng(2))
    result = compare_sessions(data, data, replicates=0)
    total = sum(result.sets[f"pp_{kind}"].sums.count.sum() for kind in ("within", "between"))
    assert total == len(data) * (len(data) - 1)
    counts = result.sets["pp_within"].sums.count
    assert counts[0, 0] == SESSIONS * EACH * (EACH - 1)
    assert counts[0, 1] == SESSIONS * EACH * EACH
    assert result.interval("g_vd_within") is None


def test_similarity_between_sessions_from_the_definition():
    rng = np.random.default_rng(3)
    data, speaker, session = original(rng)
    result = compare_sessions(data, data, replicates=0).sets["pp_between"]
    unit = data.vectors / np.linalg.norm(data.vectors, axis=1, keepdims=True)
    scores = unit @ unit.T
    kept = np.not_equal.outer(session, session)
    llr = result.roc.pav_laplace.apply(np.round(scores, 12))
    for i, j in ((0, 0), (0, 1), (4, 7)):
        cell = llr[np.ix_(speaker == i, speaker == j)][kept[np.ix_(speaker == i, speaker == j)]]
        expected = np.exp(-np.log1p(np.exp(-cell)).mean())
        assert result.matrix[i, j] == pytest.approx(expected, abs=0.02)


def test_speakers_who_share_no_session_are_counted():
    data, speaker, session = original(np.random.default_rng(4))
    rooms = np.where(speaker < 5, session, session + 10)
    moved = Embeddings(data.vectors, data.speakers, data.utterances, rooms.astype(str))
    result = compare_sessions(data, moved, replicates=50)
    assert any("50 of 90 ordered pairs" in line for line in result.warnings)
    assert np.isnan(result.sets["pp_within"].matrix[0, 9])
    assert np.isfinite(result.g_vd_within)


def test_bad_sessions_are_named(sentences):
    data, speaker, session = original(np.random.default_rng(5))
    bare = Embeddings(data.vectors, data.speakers, data.utterances)
    with pytest.raises(InputError) as error:
        compare_sessions(data, bare)
    sentences.check(str(error.value))
    alone = Embeddings(
        data.vectors, data.speakers, data.utterances, np.where(speaker == 3, 0, session).astype(str)
    )
    with pytest.raises(InputError) as error:
        compare_sessions(data, alone)
    sentences.check(str(error.value))
    split = np.where(speaker == 2, np.arange(speaker.size) + 100, session).astype(str)
    each = Embeddings(data.vectors, data.speakers, data.utterances, split)
    with pytest.raises(InputError) as error:
        compare_sessions(data, each)
    sentences.check(str(error.value))


@pytest.mark.filterwarnings("ignore::unmask.UnmaskWarning")
@pytest.mark.parametrize(
    ("change", "reading"),
    [("shift", "centred"), ("negate", "negated"), ("new voices", "")],
)
def test_all_readings_compete_between_sessions(change, reading):
    """One pseudo-voice in both sessions: a shift or a turned sign of one session hides nobody."""
    rng = np.random.default_rng(5)
    people, each, dim = 24, 4, 32
    speakers = [f"s{i:02d}" for i in range(people) for _ in range(2 * each)]
    days = [f"d{j // each}" for _ in range(people) for j in range(2 * each)]
    second = np.array(days) == "d1"
    names = [f"u{i:03d}" for i in range(len(speakers))]
    noise = 0.4 * rng.normal(size=(len(speakers), dim))
    original = np.repeat(rng.normal(size=(people, dim)), 2 * each, axis=0) + noise
    new = np.repeat(rng.normal(size=(people, dim)), 2 * each, axis=0)
    if change == "new voices":
        new[second] = np.repeat(rng.normal(size=(people, dim)), each, axis=0)
    protected = new + noise
    if change == "shift":
        protected[second] += 4 * rng.normal(size=dim)
    if change == "negate":
        protected[second] *= -1
    result = um.compare_sessions(
        um.Embeddings(original, speakers, names),
        um.Embeddings(protected, speakers, names, sessions=days),
        replicates=0,
    )
    lowest = result.attacks[result.attacker]
    linked = {e.metric: e.value for e in result.estimates}["linkability_between"]
    if reading:
        assert result.unlinkability_between > 0.7
        assert result.attacks[reading] < 0.2
        assert lowest <= result.attacks[reading]
        assert linked > 0.9
    else:
        assert lowest > 0.8
        assert linked < 0.4
