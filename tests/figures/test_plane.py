"""The plane: its front by brute force, its words, its spec."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, strategies as st

from unmask.errors import InputError
from unmask.figures import PlanePoint, cost_plane, pareto

VALUES = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=7), st.booleans())
def test_the_front_is_whom_nobody_beats(pairs, more_is_better):
    points = [PlanePoint(str(n), risk, cost) for n, (risk, cost) in enumerate(pairs)]
    front = pareto(points, more_is_better=more_is_better)
    beaten = set()
    for a, b in itertools.permutations(points, 2):
        gain = b.cost - a.cost if not more_is_better else a.cost - b.cost
        if a.risk <= b.risk and gain >= 0 and (a.risk < b.risk or gain > 0):
            beaten.add(b.system)
    assert [point.system not in beaten for point in points] == list(front)
    assert any(front)


def test_a_plane_is_drawn(sentences):
    points = [
        PlanePoint("original", 1.0, 0.05, (0.9, 1.0), (0.03, 0.07), "plain", anchor=True),
        PlanePoint("B2", 0.9, 0.3, (0.8, 0.95), (0.25, 0.4), "informed"),
        PlanePoint("worse", 0.95, 0.5),
        PlanePoint("silence", 0.05, 1.0, anchor=True),
    ]
    figure = cost_plane(points, chance=0.05, missing=["Pooling"])
    spec = figure.spec()
    assert "B2: risk 90 %, cost 30" in spec["description"]
    assert "Dominated: worse." in figure.caption
    assert figure.caption.endswith(": Pooling.")
    assert "Not drawn" not in cost_plane(points).caption
    assert len(spec["layer"]) == 7
    with pytest.raises(InputError) as error:
        cost_plane([])
    sentences.check(figure.caption, str(error.value))
