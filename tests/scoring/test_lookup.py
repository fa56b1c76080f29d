"""Places are those of a binary search, found faster."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from unmask.base.lookup import Lookup, ceiling

SIDES = ("left", "right", "both")
KINDS = (np.float32, np.float64)


def numbers(kind):
    width = np.finfo(kind).bits
    odd = [-np.inf, np.inf, 0.0, -0.0, 0.5, np.nextafter(kind(0.5), kind(1))]
    odd += [np.finfo(kind).tiny, np.finfo(kind).smallest_subnormal, np.finfo(kind).max]
    return st.one_of(
        st.floats(width=width),
        st.floats(-3, 3, width=width),
        st.floats(-1, 1, width=width).map(lambda x: 1000 + x / 512),
        st.sampled_from([*map(float, odd), *(-float(x) for x in odd)]),
    )


def searched(boundaries, scores, side):
    sides = ("left", "right") if side == "both" else (side,)
    return sum(np.searchsorted(boundaries, scores, side=one) for one in sides)


@st.composite
def lists(draw):
    """Boundaries, some of them repeated, and scores around them."""
    kind = draw(st.sampled_from(KINDS))
    number = numbers(kind)
    some = draw(st.lists(number.filter(lambda x: not np.isnan(x)), max_size=40))
    again = draw(st.lists(st.sampled_from(some), max_size=20)) if some else []
    boundaries = np.sort(np.array([*some, *again], kind))
    with np.errstate(over="ignore", under="ignore"):
        around = [np.nextafter(boundaries, kind(end)) for end in (-np.inf, np.inf)]
    scores = np.array(draw(st.lists(number, max_size=40)), kind)
    return boundaries, np.concatenate([scores, boundaries, *around])


@settings(max_examples=150, deadline=None)
@given(lists(), st.sampled_from(SIDES))
@example((np.zeros(0), np.array([0.0, -np.inf, np.nan])), "both")
@example((np.array([-1e308, 1e308]), np.array([-np.inf, -1e308, 0.0, 1e308, np.inf])), "left")
@example((np.array([0.0, 5e-324]), np.array([-1.0, 0.0, 5e-324, 1e-300, 1.0])), "right")
@example((np.array([np.inf, np.inf]), np.array([0.0, np.inf, np.nan])), "right")
def test_a_place_is_that_of_a_binary_search(both, side):
    boundaries, scores = both
    places = Lookup(boundaries, side)
    assert places(scores).tolist() == searched(boundaries, scores, side).tolist()


@settings(max_examples=100, deadline=None)
@given(lists(), lists(), st.sampled_from(SIDES))
def test_of_two_precisions_the_higher_counts(one, other, side):
    result = Lookup(one[0], side)(other[1])
    assert result.tolist() == searched(one[0], other[1], side).tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("size", [1, 700, 40_000])
def test_many_scores_around_many_boundaries_of_any_shape(size, side, kind):
    rng = np.random.default_rng(size)
    boundaries = np.sort(rng.normal(0.3, 0.1, size).astype(kind))
    boundaries[size // 3 : size // 2] = boundaries[size // 3]
    near = boundaries[rng.integers(0, size, 20_000)]
    scores = np.concatenate([rng.normal(0, 0.1, 40_000), near, np.nextafter(near, kind(1))])
    scores = scores.astype(kind).reshape(2, 400, 100)
    result = Lookup(boundaries, side)(scores[:, ::-1, ::3])
    np.testing.assert_array_equal(result, searched(boundaries, scores[:, ::-1, ::3], side))


def test_boundaries_that_crowd_are_told_apart():
    rng = np.random.default_rng(0)
    boundaries = np.sort(np.concatenate([rng.normal(0, 1e-9, 500), [-1.0, 1.0]]))
    scores = np.concatenate([rng.normal(0, 1e-9, 30_000), boundaries])
    for side in SIDES:
        result = Lookup(boundaries, side)(scores)
        np.testing.assert_array_equal(result, searched(boundaries, scores, side))


def test_distinct_boundaries_make_a_code_of_gaps_and_ties():
    assert Lookup(np.array([1.0, 2.0]), "both")(np.array([0.5, 1, 1.5, 2, 3])).tolist() == [
        *range(5)
    ]


def test_no_scores_have_no_places():
    assert Lookup(np.ones(3))(np.empty((0, 4))).shape == (0, 4)


def test_the_lowest_single_that_reaches_a_threshold():
    exact = np.array([0.1, 0.5, -0.1, np.nextafter(0.5, 1)])
    result = ceiling(exact)
    assert result.dtype == np.float32
    assert (result >= exact).all()
    assert (np.nextafter(result, np.float32(-np.inf)) < exact).all()
