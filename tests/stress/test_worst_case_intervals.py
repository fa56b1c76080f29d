"""Speakers who leave on both sides, scores that choose apart from those that attack."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from studies.coverage.study import Study, cell
from studies.coverage.worst_case import Law, measured, near_truth
from tests.helpers.populations import cube

from unmask.errors import InputError
from unmask.stress import PairScores, worst_case, worst_case_false_alarms
from unmask.stress.impostors.rates import crossed_rates
from unmask.stress.impostors.uncertainty import (
    CrossFitted,
    Jackknife,
    fold_weight,
    interval,
    middle,
)


def square(speakers: int, size: int, seed: int = 0) -> PairScores:
    scores = cube(speakers, speakers, size, seed)
    return PairScores.from_array(scores, present=~np.eye(speakers, dtype=bool))


def test_without_a_group_its_speakers_are_neither_targets_nor_impostors() -> None:
    pairs = square(17, 3)
    groups = Jackknife(6, seed=1).of(pairs)
    assert groups is not None
    assert groups.number == 6
    assert (groups.target == groups.impostor).all()
    levels, counts = [-0.5, 0.7, 1.5], [1, 4, 16]
    result = crossed_rates(CrossFitted.of(pairs, split=False), levels, counts, groups)
    assert result.without is not None
    for group, surface in enumerate(result.without):
        stays = (groups.target[pairs.target] != group) & (groups.impostor[pairs.impostor] != group)
        some = pairs.select(stays)
        wanted = worst_case_false_alarms(some, levels, counts=np.minimum(counts, groups.least))
        np.testing.assert_allclose(surface, wanted, atol=1e-12)
    assert result.fewer.tolist() == [1, 4, 13]


def test_sides_of_different_people_are_dealt_apart() -> None:
    rng = np.random.default_rng(0)
    pairs = PairScores.from_array(rng.normal(size=(12, 9, 2)))
    groups = Jackknife(5).of(pairs)
    assert groups is not None
    assert groups.target.size == 12
    assert groups.impostor.size == 9
    assert set(groups.target) | set(groups.impostor) == set(range(5))
    assert groups.least >= 1


def test_groups_are_of_even_size(sentences) -> None:
    dealt = [Jackknife(15).dealt(size, lambda group: 1) for size in (10, 15, 20, 24, 40, 300)]
    assert [groups.number for groups in dealt] == [10, 15, 10, 12, 14, 15]
    alone = Jackknife(5).dealt(20, lambda group: int(group.max() == 19))
    assert alone.number == 20
    with pytest.raises(InputError) as error:
        Jackknife(5).dealt(20, lambda group: 0)
    sentences.check(str(error.value))
    with pytest.raises(InputError) as error:
        worst_case(square(8, 2), [0.0], counts=[1], groups=3)
    sentences.check(str(error.value))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.5, 0.999), st.integers(5, 15))
def test_an_interval_has_a_width_and_stays_within_zero_and_one(
    seed: int, level: float, groups: int
) -> None:
    rng = np.random.default_rng(seed)
    values = np.clip(rng.normal(0.5, 0.6, (4, 5)), 0, 1)
    without = np.clip(values + rng.normal(0, 0.02, (groups, 4, 5)), 0, 1)
    without[:, 0] = values[0]
    low, high = interval(values, without, level, cases=np.array([900.0, 90, 30, 9]))
    assert (low >= 0).all()
    assert (high <= 1).all()
    inner = (values > 0) & (values < 1) & (np.ptp(without, axis=0) > 0)
    assert (low[inner] < high[inner]).all()
    assert (low[values >= 1] < 1).all()
    assert (high[values <= 0] > 0).all()
    assert ((low <= values) & (values <= high)).all()


def test_every_score_attacks_once_and_never_where_it_chose() -> None:
    rng = np.random.default_rng(2)
    target = rng.integers(0, 6, 900)
    impostor = (target + rng.integers(1, 6, 900)) % 6
    pairs = PairScores.from_trials(
        [f"s{k}" for k in target], [f"s{k}" for k in impostor], np.arange(900.0)
    )
    crossed = CrossFitted.of(pairs)
    assert len(crossed.folds) == 4
    used = np.sort(np.concatenate([fold.scores for fold in crossed.folds]))
    assert used.tolist() == np.arange(900.0).tolist()
    for fold in crossed.folds:
        total = np.add.reduceat(fold.scores, fold.start[:-1]) + fold.similarity * (
            pairs.sizes - fold.sizes
        )
        np.testing.assert_allclose(total, pairs.similarity * pairs.sizes)
    two = CrossFitted.of(square(5, 2))
    assert all((fold.sizes == 1).all() for fold in two.folds)


def test_the_middle_of_two_rates_is_between_them() -> None:
    every, other = np.array([0.0, 0.3, 0.2, 1.0, 0.4]), np.array([0.0, 0.1, 0.0, 1.0, 0.4])
    assert fold_weight(np.array([4, 9, 40])) == pytest.approx(4 / 7)
    assert fold_weight(np.array([2])) == pytest.approx(2 / 3)
    result = middle(every, other, 4 / 7, 1e-3)
    assert result[[0, 3, 4]].tolist() == [0.0, 1.0, 0.4]
    assert 0.1 < result[1] < 0.3
    assert 0 < result[2] < 0.2


@pytest.mark.parametrize("few", [4, 9])
def test_few_scores_a_pair_give_the_rate_of_many(few: int) -> None:
    """Against 324 scores a pair of the same speakers, as many as in the paper."""
    rng = np.random.default_rng(few)
    speakers, error, plain = 70, [], []
    for _ in range(6):
        place = rng.normal(size=(speakers, speakers, 1))
        scores = place + rng.normal(size=(speakers, speakers, 324))
        present = ~np.eye(speakers, dtype=bool)
        level, counts = [2.2], [20, speakers - 1]
        many = PairScores.from_array(scores, present=present)
        truth = worst_case_false_alarms(many, level, counts=counts)
        some = PairScores.from_array(scores[:, :, :few], present=present)
        result = worst_case(some, level, counts=counts, groups=0)
        error.append(result.values - truth)
        plain.append(worst_case_false_alarms(some, level, counts=counts) - truth)
    noise = np.std(error, axis=0) / np.sqrt(6)
    bias = np.abs(np.mean(error, axis=0))
    assert (bias < 3 * noise + 0.005).all()
    assert (bias < 0.4 * np.mean(plain, axis=0)).all()
    assert f"{few} scores a pair" in result.warnings[0]


def test_measured_intervals_hold_what_they_promise() -> None:
    """A short version of ``studies.coverage``: 24 samples of 30 speakers."""
    law = Law("student", 2001)
    known = near_truth(law, 30, draws=3000)
    drawn = [measured(law, 30, number, scores=8) for number in range(24)]
    study = Study(law.name, 30, (), ())
    made = [
        cell(study, name, np.array([one[name] for one in drawn]), truth)
        for name, truth in known.items()
    ]
    for level, least in ((0.99, 0.96), (0.95, 0.9)):
        assert np.mean([one.coverage for one in made if one.level == level]) > least
