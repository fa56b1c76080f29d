"""No fit sees two versions of a recording: an ideal pseudonymiser reads as ideal, a leak as one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unmask as um
from unmask.privacy.attack import ALIGNMENTS
from unmask.privacy.recordings import half_by_content
from unmask.trials import Ids

PEOPLE, EACH, DIM = 30, 10, 48
NAMES = [f"s{i // EACH:02d}" for i in range(PEOPLE * EACH)]
SPOKEN = [f"{name}-{i % EACH}" for i, name in enumerate(NAMES)]


def speech(vectors):
    return um.Embeddings(vectors, NAMES, SPOKEN)


def voices(rng):
    return np.repeat(rng.normal(size=(PEOPLE, DIM)), EACH, axis=0)


def rest(rng):
    return 0.8 * rng.normal(size=(PEOPLE * EACH, DIM))


def attacked(original, protected, backends=ALIGNMENTS):
    rivals = {b: um.Attacker(original, protected, b, enrols="original") for b in backends}
    return um.pseudonymisation(original, protected, attackers=rivals, replicates=0)


@pytest.mark.filterwarnings("ignore::unmask.UnmaskWarning")
@pytest.mark.parametrize("kept", [0.0, 0.5, 1.0])
def test_new_voices_that_keep_words_and_room_read_as_ideal_under_every_attack(kept):
    every = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        own = rest(rng)
        original = speech(voices(rng) + own)
        protected = speech(voices(rng) + kept * own + np.sqrt(1 - kept**2) * rest(rng))
        every.append(attacked(original, protected, (*ALIGNMENTS, "coral")).attacks)
    for name in every[0]:
        assert np.mean([one[name] for one in every]) >= 0.97, name


@pytest.mark.filterwarnings("ignore::unmask.UnmaskWarning")
def test_rows_of_protected_speech_may_stand_in_any_order():
    rng = np.random.default_rng(1)
    own = voices(rng)
    original, protected = (speech(own + 2 * rest(rng)) for _ in range(2))
    wanted = attacked(original, protected, ("whitened",)).attacks
    moved = protected.select(rng.permutation(len(protected)))
    assert attacked(original, moved, ("whitened",)).attacks == pytest.approx(wanted, abs=1e-9)


@pytest.mark.filterwarnings("ignore::unmask.UnmaskWarning")
def test_a_shift_of_all_voices_hides_nobody():
    rng = np.random.default_rng(0)
    original = voices(rng) + rest(rng)
    result = attacked(speech(original), speech(original + 5 * rng.normal(size=DIM)))
    assert result.attacks["centred"] <= 0.02
    assert result.attacks["wasserstein"] <= 0.02
    assert result.deid > 0.5
    assert result.most_evidence[0] in ("centred", "wasserstein", "whitened")


@pytest.mark.filterwarnings("ignore::unmask.UnmaskWarning")
def test_what_is_left_of_a_voice_is_found_as_without_halves():
    rng = np.random.default_rng(1)
    own = voices(rng)
    original = speech(own + rest(rng))
    protected = speech(0.6 * own + 0.8 * voices(rng) + rest(rng))
    result = attacked(original, protected)
    lowest = min(result.attacks.values())
    assert lowest <= result.deid + 0.05


@pytest.mark.filterwarnings("ignore::unmask.UnmaskWarning")
def test_each_way_is_that_of_its_halves_alone():
    rng = np.random.default_rng(2)
    original, protected = speech(voices(rng) + rest(rng)), speech(voices(rng) + rest(rng))
    result = attacked(original, protected, ["whitened"])
    first = half_by_content(original, 0)
    similar = []
    for here, way in ((first, "first"), (~first, "second")):
        one = um.Attacker(original.select(here), protected.select(~here), "whitened")
        target, nontarget = one.read().scores()
        own = result.sets[f"whitened, {way} half"]
        assert own.roc.eer() == pytest.approx(um.eer(target, nontarget))
        assert own.roc.targets == target.size
        similar.append(own.matrix)
    both = np.sqrt(similar[0] * similar[1])
    off = ~np.eye(PEOPLE, dtype=bool)
    dominance = abs(np.diag(both).mean() - both[off].mean())
    assert result.attacks["whitened"] == pytest.approx(1 - dominance / result.sets["oo"].d_diag)
    evidence = result.evidence["whitened"]
    rates = [result.sets[f"whitened, {way} half"].roc for way in ("first", "second")]
    assert evidence.d_ece == pytest.approx(np.mean([roc.d_ece() for roc in rates]))
    assert evidence.eer == pytest.approx(np.mean([roc.eer() for roc in rates]))


def test_halves_go_by_content_or_are_whole_sessions():
    rng = np.random.default_rng(3)
    one = speech(rest(rng))
    order = rng.permutation(len(one))
    chosen = half_by_content(one, 0)
    assert (chosen.reshape(PEOPLE, EACH).sum(axis=1) == EACH // 2).all()
    assert (half_by_content(one.select(order), 0) == chosen[order]).all()
    assert (half_by_content(one, 1) != chosen).any()
    sessions = Ids.from_strings([f"d{(i % EACH) // 5}" for i in range(len(one))])
    whole = half_by_content(replace(one, sessions=sessions), 0).reshape(PEOPLE, 2, 5)
    assert (whole.all(axis=2) | ~whole.any(axis=2)).all()
    assert (whole.all(axis=2).sum(axis=1) == 1).all()
    assert 0 < whole[:, 0].all(axis=1).sum() < PEOPLE
