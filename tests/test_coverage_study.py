"""How the simulations of coverage count."""

from __future__ import annotations

import numpy as np
import pytest
from studies.coverage.study import Study, cell, simulate, summary, table

from unmask.run import NUMPY

STUDY = Study("law", 20, (), ())


class Backwards:
    """Workers that finish the last task first."""

    def each(self, call, tasks):
        for number in reversed(range(len(tasks))):
            yield number, call(NUMPY, tasks[number])


class Forwards:
    def each(self, call, tasks):
        yield from ((number, call(NUMPY, task)) for number, task in enumerate(tasks))


def drawn(width: float, number: int) -> dict[str, tuple[float, float, float]]:
    value = np.random.default_rng(number).normal()
    return {"mean": (value, value - width, value + width), "unknown": (value, value, np.nan)}


def known(width: float) -> dict[str, float]:
    return {"mean": 0.0 * width}


def test_the_order_of_work_changes_nothing():
    studies = [
        Study("narrow", 20, (drawn, 1.0), (known, 1.0)),
        Study("wide", 40, (drawn, 2.0), (known, 2.0), part=0.5),
    ]
    one, other = (simulate(studies, how(), samples=31) for how in (Forwards, Backwards))
    assert table(one[0]) == table(other[0])
    assert [cell.samples for cell in one[0]] == [31, 31, 16, 16]
    assert all(np.array_equal(one[1][key], other[1][key], equal_nan=True) for key in one[1])


def test_shares_are_counted_on_both_sides():
    low = np.array([-1.0, 0.5, -2.0, -1.0, np.nan])
    rows = np.column_stack([np.zeros(5), low, low + 1.5])
    made = cell(STUDY, "mean", rows, 0.0)
    assert (made.coverage, made.above, made.below, made.given) == (0.5, 0.25, 0.25, 0.8)
    assert made.width == pytest.approx(1.5)
    # Clopper and Pearson of 2 in 4.
    assert made.low == pytest.approx(0.0676, abs=1e-4)
    assert made.high == pytest.approx(0.9324, abs=1e-4)


def test_places_that_do_not_count_are_left_out():
    value = np.array([[0.5, 0.5, 0.5], [0.1, 0.1, 0.1]])
    rows = np.stack([value, value - 0.2, value + 0.2], axis=1)
    made = cell(STUDY, "rate, 99 %", rows, np.array([0.4, np.nan, 0.6]))
    assert (made.level, made.coverage) == (0.99, 0.5)
    assert made.error == pytest.approx((0.1 + 0.1 + 0.3 + 0.5) / 4)
    assert (made.short, made.shortest) == (0.5, pytest.approx(0.4))


def test_cells_outside_are_counted_with_the_error_of_the_simulation(sentences):
    def share(held: int, of: int):
        low = np.where(np.arange(of) < held, -1.0, 1.0)
        return cell(STUDY, f"{held} of {of}", np.column_stack([low, low, low + 2]), 0.0)

    made = [share(95, 100), share(91, 100), share(80, 100), share(1000, 1000)]
    assert [one.side for one in made] == [0, -1, -1, 1]
    assert [one.sure for one in made] == [False, False, True, True]
    (line,) = summary(made)
    sentences.check(line)
    assert line.endswith("1 above, 1 beyond it")
