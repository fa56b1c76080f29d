from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from unmask.scoring.knots import Knots

numbers = st.one_of(
    st.floats(-1e6, 1e6),
    st.sampled_from([-np.inf, np.inf, 0.0, 1e-300, 0.5, np.nextafter(0.5, 1)]),
)


def searched(values, scores):
    below, upto = (np.searchsorted(values, scores, side=side) for side in ("left", "right"))
    return below + upto


@settings(max_examples=200, deadline=None)
@given(
    hnp.arrays(float, st.integers(1, 12), elements=numbers),
    hnp.arrays(float, (3, 7), elements=numbers),
)
def test_a_look_equals_a_search(values, scores):
    values = np.unique(values)
    knots = Knots(values)
    scores.reshape(-1)[: values.size] = values[: scores.size]
    assert knots.code(scores).tolist() == searched(values, scores).tolist()
    assert knots.codes == 2 * values.size + 1


@pytest.mark.parametrize("size", [1, 700, 40_000])
def test_many_scores_around_many_knots(size):
    rng = np.random.default_rng(size)
    values = np.unique(rng.normal(0.3, 0.1, size))
    scores = np.concatenate([rng.normal(0, 0.1, 50_000), values, np.nextafter(values, 1)])
    found = Knots(values).code(scores)
    assert (found == searched(values, scores)).all()
