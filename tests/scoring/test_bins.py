"""Bins are a binary search, faster; edges are kept apart."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unmask.scoring.bins import Bins, ceiling, separable

finite = st.floats(-1e6, 1e6, width=32)


@given(st.lists(finite, min_size=1, max_size=60), st.lists(finite, max_size=80), st.data())
def test_bins_are_a_binary_search(edges, scores, data):
    given_edges = np.array(edges)
    wanted = np.array(data.draw(st.lists(st.booleans(), min_size=len(edges), max_size=len(edges))))
    kept = separable(given_edges, wanted=wanted)
    assert set(kept) <= set(edges)
    assert (np.diff(kept) > 0).all()
    bins = Bins.of(ceiling(kept))
    values = np.array([*scores, *edges], np.float32)
    np.testing.assert_array_equal(bins(values), np.searchsorted(bins.edges, values, side="right"))


def test_a_wanted_edge_is_kept_before_a_neighbour():
    edges = np.array([0.0, 0.5, 0.5 + 1e-9, 1.0])
    assert 0.5 in separable(edges, wanted=np.array([False, False, False, False]))
    kept = separable(edges, wanted=np.array([False, False, True, False]))
    assert kept.tolist() == [0.0, 0.5 + 1e-9, 1.0]


def test_the_lowest_single_that_reaches_a_threshold():
    exact = np.array([0.1, 0.5, -0.1, np.nextafter(0.5, 1)])
    found = ceiling(exact)
    assert found.dtype == np.float32
    assert (found >= exact).all()
    assert (np.nextafter(found, np.float32(-np.inf)) < exact).all()
