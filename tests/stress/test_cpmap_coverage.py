"""Coverage of the intervals in small; ``python -m benchmarks.coverage.cpmap`` prints it in full."""

from __future__ import annotations

import pytest
from benchmarks.coverage import cpmap


@pytest.mark.parametrize("law", cpmap.LAWS[1:], ids=lambda law: law.name)
def test_intervals_hold_the_truth(law):
    found = cpmap.cover(law, 20, samples=14, replicates=25, trials=100_000)
    assert {"win", "lose", "mean of cells", "hardest tenth", "gap of a config"} <= set(found)
    for name, number in found.items():
        assert number.held >= 0.8, name
        assert 0 < number.width <= 1, name
    assert found["tie"].held == 1
