"""Lookup among thresholds, ranks with ties, and ranges of targets."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from unmask.run import NUMPY
from unmask.stress.impostors.rates import (
    Levels,
    closest_first,
    closest_weights,
    surfaces,
    target_ranges,
)

NUMBERS = st.one_of(
    st.floats(-3, 3),
    st.sampled_from([-np.inf, np.inf, 0.0, -0.0, 1e-300, 5e-324, 1e308, -1e308, 0.1 + 0.2, 0.3]),
)


@given(st.lists(NUMBERS, min_size=1, max_size=30), st.lists(NUMBERS, min_size=1, max_size=60))
def test_the_place_among_levels_is_that_of_a_binary_search(thresholds, scores):
    levels = Levels.of(thresholds)
    values = np.array([*scores, *thresholds])
    assert levels.exceeded(values).tolist() == np.searchsorted(levels.values, values).tolist()


def test_neighbouring_numbers_are_told_apart():
    one = np.nextafter(0.5, 1)
    levels = Levels.of([0.1, 0.5, one, 0.9])
    assert levels.exceeded(np.array([0.5, one, np.nextafter(one, 1)])).tolist() == [1, 2, 3]


def test_scores_above_each_level_are_counted_by_cell():
    rng = np.random.default_rng(0)
    scores, cell = rng.normal(size=500), rng.integers(0, 7, 500)
    levels = Levels.of(np.linspace(-2, 2, 30))
    wanted = [(scores[cell == k, None] > levels.values).sum(axis=0).tolist() for k in range(7)]
    assert levels.above(NUMPY, scores, cell, 7).tolist() == wanted


def test_rounding_does_not_break_a_tie_wherever_it_falls():
    rng = np.random.default_rng(1)
    above, trials = rng.integers(0, 9, (3, 2)), np.full(3, 8)
    for value in rng.normal(size=2000):
        similarity = np.array([value, value - 1, np.nextafter(value, np.inf)])
        rates, order = closest_first(above, trials, similarity, 2.0**-40)
        assert order[2] == 1
        together = (above[0] + above[2]) / 16
        np.testing.assert_allclose(rates, [together, together, above[1] / 8], rtol=1e-15)


def test_impostors_without_similarity_are_left_out():
    above = np.array([[1], [2], [3], [4]])
    similarity = np.array([0.1, -np.inf, 0.3, -np.inf])
    rates, order = closest_first(above, np.full(4, 4), similarity, 1e-9)
    assert rates.tolist() == [[0.75], [0.25]]
    assert order.tolist() == [2, 0]


def test_targets_with_different_numbers_of_impostors_are_weighed_alone():
    rng = np.random.default_rng(2)
    ranked = [rng.random((size, 3)) for size in rng.integers(4, 7, 90)]
    counts = np.array([1, 2, 4])
    order = np.arange(0)
    job = SimpleNamespace(
        counts=counts, groups=None, ranked=lambda xp, targets: ((rates, order) for rates in ranked)
    )
    each = surfaces(NUMPY, job, (0, 90))["each"]
    for rates, surface in zip(ranked, each, strict=True):
        np.testing.assert_allclose(surface, closest_weights(len(rates), counts) @ rates, atol=1e-15)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 60))
def test_ranges_cover_all_targets_and_keep_to_the_size(sizes, most):
    ranges = target_ranges(np.array(sizes), most)
    assert [i for start, stop in ranges for i in range(start, stop)] == list(range(len(sizes)))
    for start, stop in ranges:
        assert stop == start + 1 or sum(sizes[start:stop]) <= most
    for (start, stop), (_, after) in pairwise(ranges):
        assert sum(sizes[start : stop + 1]) > most or after == stop


@pytest.mark.parametrize("size", [1, 2, 1000])
def test_the_weights_of_all_ranks_add_up_to_one(size):
    weights = closest_weights(size, np.arange(1, size + 1))
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-9)
