"""The one speaker bootstrap: what a replicate draws, and that rooms draw the same people."""

import numpy as np
import pytest

from unmask.base import chosen, draw, draws, generator, in_order, weighted_means
from unmask.errors import InputError


def test_a_replicate_draws_as_many_as_there_are_and_depends_on_nothing_else():
    times = draws(7, 20, 3)
    assert times.shape == (20, 7)
    assert (times.sum(axis=1) == 7).all()
    assert np.array_equal(times[4:9], draws(7, 5, 3, first=4))
    assert np.array_equal(times[6], draw(7, 3, 6))
    assert np.array_equal(times[6], np.bincount(chosen(7, 3, 6), minlength=7))
    assert not np.array_equal(times, draws(7, 20, 4))


def test_the_generator_is_a_child_of_the_seed():
    children = np.random.SeedSequence(5).spawn(3)
    expected = np.random.default_rng(children[2]).random(4)
    assert np.array_equal(generator(5, 2).random(4), expected)


def test_strata_keep_their_sizes():
    times = draw((5, 9), 0, 1)
    assert times[:5].sum() == 5
    assert times[5:].sum() == 9
    assert np.array_equal(times[:5], draw(5, 0, 1))


def test_no_replicates():
    assert draws(3, 0, 0).shape == (0, 3)
    with pytest.raises(InputError, match="found -1"):
        draws(3, -1, 0)


def test_names_have_their_place_in_the_order_of_all_of_them():
    assert in_order(["ζ", "b", "a", "B"]).tolist() == [3, 2, 1, 0]


def test_means_of_resamples_are_means_of_the_drawn():
    values = np.arange(12.0).reshape(4, 3) ** 2
    expected = [values[chosen(4, 1, index)].mean(axis=0) for index in range(6)]
    assert weighted_means(values, draws(4, 6, 1)) == pytest.approx(np.array(expected))
