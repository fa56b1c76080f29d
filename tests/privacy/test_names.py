"""Names are claims: people who may be one, voices under another name, two values of a column."""

from __future__ import annotations

from importlib import resources

import numpy as np
import pytest

import unmask as um
from unmask.errors import InputError
from unmask.privacy import alike_people, misplaced_voices, name_notices
from unmask.privacy.names import DOUBLE_NAMES, MISPLACED
from unmask.trials import Embeddings

CASE = resources.files("unmask.data").joinpath("case_study", "campplus.npz")
PEOPLE, EACH = 60, 20
NAMES = [f"s{n:02}" for n in range(PEOPLE)]
CODES = np.repeat(np.arange(PEOPLE), EACH)


@pytest.fixture(scope="module")
def voices():
    """CAM++ vectors of 60 AudioMNIST speakers, 20 utterances each."""
    return np.load(CASE)["original"].astype(float)


def speech(vectors, names=None, **more):
    names = [NAMES[code] for code in CODES] if names is None else names
    return Embeddings(vectors, names, [f"u{n:04}" for n in range(len(vectors))], **more)


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def partly(voices, kept):
    """A share of everybody's voice, in a new voice for each utterance."""
    other = np.random.default_rng(4).normal(size=voices.shape)
    return kept * unit(voices) + np.sqrt(1 - kept**2) * unit(other)


def stored_under_the_next(vectors, moved=PEOPLE):
    names = [NAMES[(code + 1) % moved] if code < moved else NAMES[code] for code in CODES]
    return speech(vectors, names)


def pair_means(vectors, names):
    """s(i, j) and the median within a person, written out over all pairs of recordings."""
    rows = unit(unit(vectors) - unit(vectors).mean(axis=0))
    cosines = rows @ rows.T
    names = np.array(names)
    people = sorted(set(names))
    apart = {(a, b): cosines[np.ix_(names == a, names == b)].mean() for a in people for b in people}
    own = []
    for person in people:
        block = cosines[np.ix_(names == person, names == person)]
        own.append(block[~np.eye(len(block), dtype=bool)].mean())
    return apart, float(np.median(own))


def test_people_as_they_are_are_not_doubted(voices):
    assert alike_people(speech(voices)).pairs == ()
    assert misplaced_voices(speech(voices), speech(partly(voices, 0.9))).pairs == ()


def test_each_person_under_two_names_is_told(voices):
    rng = np.random.default_rng(0)
    split = [f"{NAMES[code]}{'ab'[rng.integers(2)]}" for code in CODES]
    found = alike_people(speech(voices, split))
    right = [pair for pair in found.pairs if pair[0][:-1] == pair[1][:-1]]
    assert len(right) >= 55
    assert len(right) == len(found.pairs)


def test_similarities_are_means_over_all_pairs_of_recordings(voices):
    split = [f"{NAMES[code]}{'ab'[n % 2]}" for n, code in enumerate(CODES)][:200]
    apart, within = pair_means(voices[:200], split)
    found = alike_people(speech(voices[:200], split))
    assert found.within == pytest.approx(within, abs=1e-12)
    assert len(found.pairs) == 10
    for pair, similarity in zip(found.pairs, found.similarities, strict=True):
        assert similarity == pytest.approx(apart[pair], abs=1e-12)


def test_blocks_of_people_change_nothing(voices, monkeypatch):
    split = [f"{NAMES[code]}{'ab'[n % 2]}" for n, code in enumerate(CODES)]
    sets = speech(voices), stored_under_the_next(partly(voices, 0.9))
    found = alike_people(speech(voices, split)).pairs, misplaced_voices(*sets).pairs
    monkeypatch.setattr("unmask.privacy.names._ROWS_AT_ONCE", 7)
    assert (alike_people(speech(voices, split)).pairs, misplaced_voices(*sets).pairs) == found


def test_voices_stored_under_the_next_person_are_told(voices, sentences):
    found = misplaced_voices(speech(voices), stored_under_the_next(partly(voices, 0.9)))
    assert len(found.pairs) > 50
    assert all(int(name[1:]) == (int(owner[1:]) + 1) % PEOPLE for name, owner in found.pairs)
    (notice,) = name_notices(speech(voices), {"V": stored_under_the_next(partly(voices, 0.9))})
    assert (notice.code, notice.subject) == (MISPLACED, "V")
    assert "of 60 people" in notice.sentence
    sentences.check(notice.sentence)
    assert " resembles s" in notice.sentence


@pytest.mark.parametrize("seed", range(5))
def test_unrelated_voices_are_not_told(voices, seed):
    rng = np.random.default_rng(seed)
    stable = rng.normal(size=(PEOPLE, voices.shape[1]))[CODES]
    for noise in (0.5, 30.0):
        protected = speech(stable + noise * rng.normal(size=voices.shape))
        assert list(name_notices(speech(voices), {"V": protected})) == []


def test_one_voice_for_all_and_two_people_are_not_told(voices):
    same = np.random.default_rng(1).normal(size=voices.shape[1])
    noisy = same + 0.1 * np.random.default_rng(2).normal(size=voices.shape)
    assert list(name_notices(speech(voices), {"V": speech(noisy)})) == []
    few = speech(voices).select(CODES < 2)
    assert list(name_notices(few, {"V": few})) == []
    flat = speech(np.abs(voices[:, :1]) + 1)
    assert list(name_notices(flat, {"V": flat})) == []


def test_python_tells_in_comparisons_and_sweeps(voices, sentences):
    original, moved = speech(voices), stored_under_the_next(partly(voices, 0.9))
    moved = Embeddings(moved.vectors, moved.speakers, original.utterances)
    half = np.arange(len(original)) % 2 == 0
    attackers = {
        "original": um.Attacker(original.select(half), original.select(~half)),
        "ignorant": um.Attacker(original.select(half), moved.select(~half), enrols="original"),
    }
    how = {"counts": [20], "lengths": [1], "metrics": ["linkability"], "replicates": 0}
    for given in (attackers, {"ignorant": attackers["ignorant"]}):
        found = um.assess_attackers(given, **how)
        (told,) = [one for one in found.notices if one.code == MISPLACED]
        assert told.subject == "ignorant"
    split = speech(voices, [f"{NAMES[code]}{'ab'[n // 2 % 2]}" for n, code in enumerate(CODES)])
    table = um.compare_safeguards(split, {"V": split}, replicates=0)
    (told,) = [one for one in table.notices if one.code == DOUBLE_NAMES]
    sentences.check(told.sentence)
    honest = um.assess_attackers(
        {**attackers, "ignorant": um.Attacker(original.select(half), original.select(~half))}, **how
    )
    assert not {DOUBLE_NAMES, MISPLACED} & {one.code for one in honest.notices}


def sides(*spellings):
    rng = np.random.default_rng(0)
    people = np.repeat(np.arange(30), 4)
    voices = rng.normal(size=(30, 8))[people]
    made = []
    for side, spelling in zip("et", spellings, strict=True):
        made.append(
            Embeddings(
                voices + rng.normal(size=voices.shape),
                [f"s{n:02}" for n in people],
                [f"{side}{n}" for n in range(len(people))],
                columns={"sex": [spelling[n % 2] for n in people]},
            )
        )
    return made


@pytest.mark.parametrize("second", [("female", "male"), ("f", "male"), ("f", "")])
def test_a_person_with_two_values_of_a_side_column_is_refused(second, sentences):
    enrol, test = sides("fm", second)
    attackers = {"a": um.Attacker(enrol, test, enrols="original")}
    protocol = um.LegalProtocol(side=("sex",))
    how = {"counts": [10], "protocol": protocol}
    who = "s00" if second[0] != "f" else "s01"
    ways = [
        lambda: um.linkability(enrol, test, **how),
        lambda: um.singling_out(enrol, test, **how),
        lambda: um.assess_attackers(attackers, lengths=[1], replicates=0, **how),
        lambda: um.compare_safeguards(enrol, {"V": test}, side=("sex",), replicates=0),
        lambda: um.Attacker(enrol, test, "whitened", by=("sex",)).ready(),
    ]
    for way in ways:
        with pytest.raises(InputError) as refused:
            way()
        sentences.check(str(refused.value))
        mine = {"s00": "f and female", "s01": f"m and {second[1] or 'no value'}"}[who]
        assert f"found {mine} for {who}, and two for {29 if second[0] != 'f' else 14} more" in str(
            refused.value
        )


def test_one_spelling_is_taken():
    enrol, test = sides("fm", "fm")
    found = um.linkability(
        enrol, test, counts=[10], protocol=um.LegalProtocol(side=("sex",)), replicates=0
    )
    assert found.value[0] > 0
