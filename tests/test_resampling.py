"""The one speaker bootstrap: what a replicate draws, and that rooms draw the same people."""

import numpy as np
import pytest

from unmask.base import draw, draws, generator, in_order
from unmask.engine import evaluate, units_of
from unmask.errors import InputError
from unmask.privacy.similarity.intervals import Setup
from unmask.trials import NONTARGET, TARGET, Ids, Scores


def test_a_replicate_draws_as_many_as_there_are_and_depends_on_nothing_else():
    times = draws(7, 20, 3)
    assert times.shape == (20, 7)
    assert (times.sum(axis=1) == 7).all()
    assert np.array_equal(times[4:9], draws(7, 5, 3, first=4))
    assert np.array_equal(times[6], draw(7, 3, 6))
    numbers = generator(3, 6).integers(0, 7, 7)
    assert np.array_equal(times[6], np.bincount(numbers, minlength=7))
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


def listed(order):
    """Trials of all pairs of five people, in some order of the rows."""
    pairs = [(a, b) for a in PEOPLE for b in PEOPLE]
    enrol, test = zip(*(pairs[k] for k in order), strict=True)
    label = np.where(np.array(enrol) == np.array(test), TARGET, NONTARGET).astype(np.int8)
    sides = Ids.from_strings([*enrol, *test])
    return Scores(
        None,
        None,
        label,
        enrol_speaker=sides.take(np.arange(len(enrol))),
        test_speaker=sides.take(np.arange(len(enrol), 2 * len(enrol))),
        systems={"one": np.random.default_rng(0).normal(size=len(pairs))[list(order)]},
    )


PEOPLE = ("dana", "ada", "eve", "bob", "cy")


def test_rooms_draw_the_same_people_whatever_the_order_of_rows():
    expected = [dict(zip(sorted(PEOPLE), row, strict=True)) for row in draws(5, 4, 9)]
    for order in (np.arange(25), np.random.default_rng(1).permutation(25)):
        scores = listed(order)
        units, _ = units_of(scores)
        own = scores.enrol_speaker.take(scores.is_target).to_series()
        for index in range(4):
            times = units.draw(9, index)[units.target]
            assert dict(zip(own, times, strict=True)) == expected[index]
    similarity = Setup(replicates=4, seed=9).weights(PEOPLE)[:4]
    assert [dict(zip(PEOPLE, row, strict=True)) for row in similarity] == expected


def test_the_order_of_rows_moves_no_interval():
    one, other = (
        evaluate(listed(order), replicates=50)["one"]["eer"].interval
        for order in (np.arange(25), np.random.default_rng(1).permutation(25))
    )
    assert (one.low, one.high) == (other.low, other.high)
