from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from studies.sholokhov2020 import closeness, simulate_worst_case
from tests.helpers.populations import cube

from unmask.errors import InputError
from unmask.stress import (
    ImpostorProtocol,
    PairScores,
    groups_of,
    speaker_pairs,
    worst_case,
    worst_case_false_alarms,
)
from unmask.stress.impostors.rates import closest_weights
from unmask.trials import Embeddings

LEVELS = np.linspace(-2.5, 2.5, 9)


def test_equally_close_impostors_have_one_place() -> None:
    means = np.array([[3.0, 1.0, 3.0, 2.0], [1.0, 1.0, 0.0, 5.0]])
    close = closeness(PairScores.from_array(means[:, :, None])).reshape(2, 4)
    for row, expected in zip(close, ([2, 0, 2, 1], [1, 1, 0, 2]), strict=True):
        assert (np.unique(row, return_inverse=True)[1] == expected).all()


def over_all_subsets(
    scores: np.ndarray, levels: np.ndarray, count: int, similarity: np.ndarray | None = None
) -> np.ndarray:
    """Every subset of every target; equally close impostors share the choice."""
    likeness = scores.mean(axis=2) if similarity is None else similarity
    total, cases = np.zeros(levels.size), 0
    for i in range(scores.shape[0]):
        for subset in combinations(range(scores.shape[1]), count):
            chosen = list(subset)
            best = likeness[i, chosen].max()
            closest = [j for j in chosen if likeness[i, j] == best]
            total += np.mean([(scores[i, j][:, None] > levels).mean(axis=0) for j in closest], 0)
            cases += 1
    return total / cases


def test_the_surface_is_the_mean_over_all_subsets() -> None:
    scores = cube(4, 6, 3)
    surface = worst_case_false_alarms(scores, LEVELS, counts=range(1, 7))
    wanted = [over_all_subsets(scores, LEVELS, n) for n in range(1, 7)]
    np.testing.assert_allclose(surface, wanted, atol=1e-14)


def test_equally_close_impostors_share_the_choice() -> None:
    scores = np.array(
        [
            [[0.0, 2.0], [1.0, 1.0], [2.0, 0.0], [-1.0, 3.0]],
            [[0.0, 0.0], [0.5, -0.5], [3.0, 1.0], [2.0, 2.0]],
            [[1.0, 2.0], [4.0, 5.0], [4.5, 4.5], [0.0, 0.0]],
        ]
    )
    surface = worst_case_false_alarms(scores, LEVELS, counts=[1, 2, 3, 4])
    wanted = [over_all_subsets(scores, LEVELS, n) for n in (1, 2, 3, 4)]
    np.testing.assert_allclose(surface, wanted, atol=1e-14)
    shuffled = scores[:, [2, 0, 3, 1]][:, :, ::-1]
    again = worst_case_false_alarms(shuffled, LEVELS, counts=[1, 2, 3, 4])
    np.testing.assert_allclose(surface, again, atol=1e-14)


def test_one_impostor_gives_the_ordinary_false_alarm_rate() -> None:
    scores = cube(5, 7, 4)
    rate = (scores.reshape(-1)[:, None] > LEVELS).mean(axis=0)
    np.testing.assert_allclose(worst_case_false_alarms(scores, LEVELS, counts=[1])[0], rate)


def test_a_score_at_the_threshold_is_no_false_alarm() -> None:
    scores = cube(3, 3, 2)
    top = scores.max()
    assert worst_case_false_alarms(scores, [top, -np.inf], counts=[3]).tolist() == [[0.0, 1.0]]


def test_algorithm_1_agrees_within_its_error() -> None:
    scores = cube(8, 12, 4)
    exact = worst_case_false_alarms(scores, LEVELS, counts=[1, 4, 12])
    mean, error = simulate_worst_case(scores, LEVELS, counts=[1, 4, 12], simulations=3000, seed=1)
    assert np.abs((mean - exact) / np.maximum(error, 1e-3)).max() < 4


def test_the_weights_are_the_hypergeometric_ones() -> None:
    from math import comb

    wanted = [[comb(9 - r, n - 1) / comb(9, n) for r in range(1, 10)] for n in (1, 4, 9)]
    np.testing.assert_allclose(closest_weights(9, [1, 4, 9]), wanted, rtol=1e-12)
    np.testing.assert_allclose(closest_weights(2000, [1, 700, 2000]).sum(axis=1), 1.0, rtol=1e-9)


def test_a_proxy_chooses_and_the_real_system_is_attacked() -> None:
    scores, proxy = cube(4, 5, 3), cube(4, 5, 2, seed=9)
    surface = worst_case_false_alarms(scores, LEVELS, counts=[1, 3, 5], proxy=proxy)
    wanted = [over_all_subsets(scores, LEVELS, n, proxy.mean(axis=2)) for n in (1, 3, 5)]
    np.testing.assert_allclose(surface, wanted, atol=1e-14)
    by_matrix = worst_case_false_alarms(scores, LEVELS, counts=[1, 3, 5], proxy=proxy.mean(axis=2))
    np.testing.assert_allclose(surface, by_matrix, atol=1e-14)
    pairs = PairScores.from_array(proxy)
    np.testing.assert_allclose(
        surface, worst_case_false_alarms(scores, LEVELS, counts=[1, 3, 5], proxy=pairs)
    )


def test_targets_may_miss_impostors_and_pairs_differ_in_size() -> None:
    rng = np.random.default_rng(3)
    present = np.ones((5, 6, 4), dtype=bool)
    present[0, 2] = present[1, 0] = present[1, 5] = False
    present[2, 3, 2:] = False
    scores = rng.normal(size=(5, 6, 4))
    pairs = PairScores.from_array(scores, present=present)
    assert pairs.impostors.tolist() == [5, 4, 6, 6, 6]
    total = np.zeros(LEVELS.size)
    for i in range(5):
        mine = [j for j in range(6) if present[i, j].any()]
        rates = [
            max(subset, key=lambda j: scores[i, j][present[i, j]].mean())
            for subset in combinations(mine, 3)
        ]
        shares = [(scores[i, j][present[i, j]][:, None] > LEVELS).mean(axis=0) for j in rates]
        total += np.mean(shares, axis=0)
    surface = worst_case_false_alarms(pairs, LEVELS, counts=[3])
    np.testing.assert_allclose(surface[0], total / 5, atol=1e-14)
    assert pairs.with_impostors(5).impostors.tolist() == [5, 6, 6, 6]


def test_trial_lists_give_the_same_as_arrays() -> None:
    scores = cube(4, 4, 3)
    scores = (scores + scores.transpose(1, 0, 2)) / 2
    names = np.array(["ann", "bob", "cat", "dan"])
    left, right = np.triu_indices(4, 1)
    pairs = PairScores.from_trials(
        np.repeat(names[left], 3),
        np.repeat(names[right], 3),
        scores[left, right].reshape(-1),
        both_ways=True,
    )
    wanted = PairScores.from_array(scores, present=~np.eye(4, dtype=bool))
    np.testing.assert_allclose(
        worst_case_false_alarms(pairs, LEVELS, counts=[1, 2, 3]),
        worst_case_false_alarms(wanted, LEVELS, counts=[1, 2, 3]),
    )


def test_embeddings_are_scored_pair_by_pair() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(10, 3))
    speakers = np.array([0, 1, 2, 3, 0, 1, 2, 3, 0, 0])
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    matrix = unit @ unit.T
    data = Embeddings(vectors, ["abcd"[k] for k in speakers])
    whole = speaker_pairs(data)
    assert len(whole) == 12
    for p in range(len(whole)):
        own = matrix[speakers == whole.target[p]][:, speakers == whole.impostor[p]]
        held = whole.scores[whole.start[p] : whole.start[p + 1]]
        np.testing.assert_allclose(np.sort(held), np.sort(own.reshape(-1)))
    fewer = speaker_pairs(data, per_pair=2)
    assert set(fewer.sizes.tolist()) == {2}
    assert np.isin(fewer.scores, whole.scores).all()
    every = speaker_pairs(data, per_pair=99)
    np.testing.assert_allclose(np.sort(every.scores), np.sort(whole.scores))


def test_groups_keep_pairs_of_their_own(sentences) -> None:
    rng = np.random.default_rng(0)
    sex = ["f"] * 12 + ["m"] * 12
    names = [f"s{k}" for k in range(8) for _ in range(3)]
    voices = Embeddings(rng.normal(size=(24, 5)), names, columns={"sex": sex})
    parts, left_out = groups_of(voices, "sex")
    assert (list(parts), left_out) == (["f", "m"], ())
    assert speaker_pairs(parts["m"]).target_names == ("s4", "s5", "s6", "s7")
    with pytest.raises(InputError) as error:
        groups_of(voices, "age")
    sentences.check(str(error.value))


def test_without_a_split_the_rates_are_the_exact_ones() -> None:
    scores = cube(30, 10, 4)
    plain = ImpostorProtocol(split=False)
    result = worst_case(scores, [0.0, 1.0], counts=[1, 5], protocol=plain)
    exact = worst_case_false_alarms(scores, [0.0, 1.0], counts=[1, 5])
    np.testing.assert_allclose(result.values, exact)
    assert (result.low < result.values).all()
    assert (result.values < result.high).all()
    assert [e.params["count"] for e in result.estimates] == [1, 1, 5, 5]
    assert [e.chance for e in result.estimates] == [*result.values[0], *result.values[0]]
    assert "jackknife" in result.estimates[0].signature
    again = worst_case(scores, [0.0, 1.0], counts=[1, 5], protocol=plain)
    np.testing.assert_array_equal(result.low, again.low)
    none = worst_case(scores, [0.0, 1.0], counts=[1, 5], groups=0)
    assert np.isnan(none.low).all()
    assert all(e.interval is None for e in none.estimates)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 6), st.integers(3, 7), st.integers(2, 4))
def test_more_impostors_never_lower_the_closest_mean(
    seed: int, targets: int, impostors: int, size: int
) -> None:
    scores = cube(targets, impostors, size, seed)
    counts = np.arange(1, impostors + 1)
    surface = worst_case_false_alarms(scores, LEVELS, counts=counts)
    assert (np.diff(surface, axis=1) <= 1e-12).all()
    assert surface.min() >= 0
    assert surface.max() <= 1
    moved = worst_case_false_alarms(3 * scores + 1, 3 * LEVELS + 1, counts=counts)
    np.testing.assert_allclose(surface, moved, atol=1e-12)
    turned = scores[:, np.random.default_rng(seed).permutation(impostors)]
    np.testing.assert_allclose(
        surface, worst_case_false_alarms(turned, LEVELS, counts=counts), atol=1e-12
    )


@pytest.mark.parametrize(
    "scores",
    [
        cube(2, 5, 3),
        cube(5, 2, 3),
        cube(4, 4, 1),
        np.ones((4, 4, 3)),
        np.full((4, 4, 3), np.nan),
        np.full((4, 4, 3), np.inf),
        np.ones((4, 4)),
    ],
)
def test_bad_scores_are_told_in_one_line(scores: np.ndarray, sentences) -> None:
    with pytest.raises(InputError) as caught:
        worst_case_false_alarms(scores, LEVELS, counts=[1])
    sentences.check(str(caught.value))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("count", [0, 0.5, 7, np.nan])
def test_bad_counts_are_told(count: float) -> None:
    with pytest.raises(InputError, match="counts: expected"):
        worst_case_false_alarms(cube(3, 6, 2), LEVELS, counts=[count])


def test_pairs_with_one_score_can_be_left_out(sentences) -> None:
    present = np.ones((4, 5, 3), dtype=bool)
    present[:, 4, 1:] = False
    pairs = PairScores.from_array(cube(4, 5, 3), present=present)
    with pytest.raises(InputError) as error:
        worst_case_false_alarms(pairs, LEVELS, counts=[1])
    sentences.check(str(error.value))
    rest = pairs.without_single_scores()
    assert rest.skipped == 4
    assert worst_case_false_alarms(rest, LEVELS, counts=[4]).shape == (1, 9)


def test_a_speaker_against_themselves_is_refused(sentences) -> None:
    with pytest.raises(InputError) as error:
        PairScores.from_trials(["a", "b"], ["b", "b"], [0.1, 0.2])
    sentences.check(str(error.value))


def test_a_proxy_must_know_every_pair(sentences) -> None:
    scores = cube(4, 5, 2)
    present = np.ones((4, 5), dtype=bool)
    present[1, 2] = False
    proxy = PairScores.from_array(scores, present=present)
    with pytest.raises(InputError) as error:
        worst_case_false_alarms(scores, LEVELS, counts=[1], proxy=proxy)
    sentences.check(str(error.value))
