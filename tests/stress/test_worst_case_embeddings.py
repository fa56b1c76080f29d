"""Worst-case false alarms straight from embeddings are those of the scores in memory."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from tests.helpers.populations import named_speakers
from tests.helpers.worst_case import COUNTS, FEW, MANY, same, voices

import unmask as um
from unmask.run import run_on
from unmask.stress.impostors import voices as worst_case_voices
from unmask.stress.impostors.voices import SpeakerOrder

PLAIN = um.ImpostorProtocol(split=False)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(worst_case_voices, "ROWS", 40)
    monkeypatch.setattr(worst_case_voices, "BLOCK", 16)
    monkeypatch.setattr(worst_case_voices, "STRIP", 21)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("thresholds", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize("kind", ["cosine", "wccn", "plda"])
@pytest.mark.parametrize("with_proxy", [False, True])
def test_the_surface_is_that_of_all_scores_in_memory(thresholds, kind, with_proxy):
    real, weak = voices(), voices(dimension=7, spread=2.0, seed=3)
    trained = {"cosine": lambda e: "cosine", "wccn": um.Whitening.fit, "plda": um.Plda.fit}
    backend = trained[kind](real)
    how = replace(PLAIN, backend=backend)
    options = {"counts": COUNTS, "protocol": how, "seed": 4}
    proxy = um.stress.speaker_pairs(weak) if with_proxy else None
    wanted = um.worst_case(
        um.stress.speaker_pairs(real, backend=backend), thresholds, proxy=proxy, **options
    )
    result = um.worst_case(real, thresholds, proxy=weak if with_proxy else None, **options)
    same(result, wanted)


def test_the_surface_is_the_mean_over_all_subsets():
    data = voices(speakers=7, most=3)
    names = data.speakers.to_series().to_numpy()
    unit = data.vectors / np.linalg.norm(data.vectors, axis=1, keepdims=True)
    scores = unit @ unit.T
    who = sorted(set(names))
    held = {(a, b): scores[np.ix_(names == a, names == b)] for a in who for b in who}
    total = np.zeros(2)
    subsets = list(combinations(range(6), 3))
    for target in who:
        others = [name for name in who if name != target]
        for subset in subsets:
            means = [round(held[target, others[k]].mean(), 12) for k in subset]
            best = [others[k] for k, mean in zip(subset, means, strict=True) if mean == max(means)]
            total += np.mean(
                [(held[target, b][..., None] > [0.1, 0.3]).mean((0, 1)) for b in best], axis=0
            )
    result = um.worst_case(data, [0.1, 0.3], counts=[3], groups=0, protocol=PLAIN)
    np.testing.assert_allclose(result.values[0], total / len(who) / len(subsets), atol=1e-14)


def test_neither_the_order_of_rows_nor_the_block_matters(monkeypatch):
    data = voices()
    wanted = um.worst_case(data, FEW, counts=COUNTS, groups=0, protocol=PLAIN).values
    turned = data.select(np.random.default_rng(5).permutation(len(data)))
    result = um.worst_case(turned, FEW, counts=COUNTS, groups=0, protocol=PLAIN).values
    np.testing.assert_allclose(result, wanted, atol=1e-14)
    for rows, block, strip in ((1, 1, 1), (17, 5, 300), (10_000, 64, 50)):
        monkeypatch.setattr(worst_case_voices, "ROWS", rows)
        monkeypatch.setattr(worst_case_voices, "BLOCK", block)
        monkeypatch.setattr(worst_case_voices, "STRIP", strip)
        result = um.worst_case(data, FEW, counts=COUNTS, groups=0, protocol=PLAIN).values
        np.testing.assert_allclose(result, wanted, atol=1e-14)


@pytest.mark.parametrize("thresholds", [FEW, MANY], ids=["few", "many"])
def test_a_speaker_may_have_more_utterances_than_a_byte_or_a_block_holds(thresholds):
    data = named_speakers(5, [700, 3, 300, 2, 5], 6, noise=1.0, means=6, utterance=None)
    options = {"counts": [1, 2, 4], "protocol": PLAIN}
    wanted = um.worst_case(um.stress.speaker_pairs(data), thresholds, **options)
    same(um.worst_case(data, thresholds, **options), wanted)


@pytest.mark.usefixtures("small_blocks")
def test_pairs_with_one_score_are_left_out_on_request(sentences):
    data = voices(least=1, most=3, seed=8)
    pairs = um.stress.speaker_pairs(data)
    single = SpeakerOrder.of(data).skipped
    assert single > 2
    with pytest.raises(um.InputError) as error:
        um.worst_case(data, FEW, counts=[1])
    sentences.check(str(error.value))
    wanted = um.worst_case(pairs.without_single_scores(), FEW, counts=[1, 9], protocol=PLAIN)
    result = um.worst_case(data, FEW, counts=[1, 9], protocol=replace(PLAIN, skip_single=True))
    same(result, wanted)
    assert pairs.without_single_scores().skipped == single


def test_the_scores_are_never_held():
    rng = np.random.default_rng(9)
    code = np.repeat(np.arange(500), 8)
    data = um.Embeddings(rng.normal(size=(4000, 8)), [f"s{k}" for k in code])
    tracemalloc.start()
    with run_on(workers=1):
        um.worst_case(data, FEW, counts=[1, 499], protocol=PLAIN)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 48 << 20, "the scores alone take 128 MB"


@pytest.mark.parametrize(
    "change",
    [
        {"counts": [40]},
        {"counts": [0]},
        {"thresholds": [np.nan]},
        {"groups": 1},
        {"level": 1.0},
        {"protocol": um.ImpostorProtocol(backend="magic")},
        {"proxy": voices(speakers=30)},
    ],
)
def test_bad_input_is_one_line_before_any_work(change, sentences):
    options = {"thresholds": FEW, "counts": [1], **change}
    with pytest.raises(um.InputError) as error:
        um.worst_case(voices(), **options)
    sentences.check(str(error.value))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("vectors", "speakers"),
    [
        (np.eye(4), "aabb"),
        (np.eye(6), "aabbcc"),
        (np.ones((8, 3)), "aabbccdd"),
        (np.eye(8)[[0, 1, 2, 3, 4, 5, 6, 6]] - np.eye(8)[6], "aabbccdd"),
    ],
)
def test_sets_that_tell_nothing_are_refused(vectors, speakers, sentences):
    with pytest.raises(um.InputError) as error:
        um.worst_case(um.Embeddings(vectors, list(speakers)), FEW, counts=[1])
    sentences.check(str(error.value))


def test_some_scores_of_a_pair_keep_the_mean_of_all():
    data = voices(least=3, most=6)
    whole, some = um.stress.speaker_pairs(data), um.stress.speaker_pairs(data, per_pair=4)
    assert set(some.sizes.tolist()) == {4}
    np.testing.assert_allclose(some.similarity, whole.similarity, atol=1e-15)
    fewer = um.stress.speaker_pairs(data, per_pair=4, targets=6)
    assert len(fewer.target_names) == 6
    assert fewer.max_count == whole.max_count == 33
    kept = np.isin(some.target, [some.target_names.index(name) for name in fewer.target_names])
    assert fewer.scores.tolist() == some.select(kept).scores.tolist()
    assert fewer.similarity.tolist() == some.select(kept).similarity.tolist()


def test_the_scores_kept_use_every_utterance_before_one_recurs():
    """Scores that tell their row and column: 10 · row + column."""

    class Placed(um.Cosine):
        def sides(self, vectors):
            one = np.ones((len(vectors), 1))
            return um.Sides(np.hstack([10 * vectors, one]), np.hstack([one, vectors]))

    sizes = (4, 6, 3, 5)
    within = np.concatenate([np.arange(size) for size in sizes])
    data = um.Embeddings(within[:, None] * 1.0, np.repeat(list("abcd"), sizes).tolist())
    for taken in (2, 4, 6, 12):
        pairs = um.stress.speaker_pairs(data, backend=Placed(), per_pair=taken)
        for p in range(len(pairs)):
            row, column = np.divmod(pairs.scores[pairs.start[p] : pairs.start[p + 1]], 10)
            assert len(set(zip(row, column, strict=True))) == taken
            for used, size in ((row, sizes[pairs.target[p]]), (column, sizes[pairs.impostor[p]])):
                times = np.bincount(used.astype(int), minlength=size)
                assert times.max() - times.min() <= 1 + (taken > size)


def test_a_sample_of_scores_does_not_move_the_worst_case():
    data = named_speakers(150, 6, 16, noise=1.5, means=11, speaker="s{}", utterance=None)
    exact = um.worst_case(data, [0.3], counts=[1, 30, 149], protocol=PLAIN)
    some = um.worst_case_false_alarms(
        um.stress.speaker_pairs(data, per_pair=6), [0.3], counts=[1, 30, 149]
    )
    error = (exact.high - exact.low) / 5
    assert (np.abs(some - exact.values) < 3 * error + 0.01).all()


def test_targets_in_even_steps_reach_both_ends(sentences):
    data = um.Embeddings(np.eye(10), [f"s{k}" for k in range(10)])
    assert um.stress.speaker_pairs(data, targets=3).target_names == ("s0", "s4", "s9")
    assert len(um.stress.speaker_pairs(data, targets=99).target_names) == 10
    with pytest.raises(um.InputError) as error:
        um.stress.speaker_pairs(data, targets=0)
    sentences.check(str(error.value))
