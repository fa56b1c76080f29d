"""Coverage of the intervals in small; ``python -m studies.coverage cpmap`` prints it in full."""

from __future__ import annotations

import numpy as np
import pytest
from studies.coverage import cpmap
from studies.coverage.study import Study, cell


@pytest.mark.parametrize("law", cpmap.LAWS[1:], ids=lambda law: law.name)
def test_intervals_hold_the_truth(law):
    known = cpmap.truth(law, 20, trials=100_000)
    drawn = [cpmap.sample(law, 20, number, replicates=25) for number in range(14)]
    assert {"win", "lose", "mean of cells", "hardest tenth", "gap of a config"} <= set(drawn[0])
    for name, truth in known.items():
        rows = np.array([one[name] for one in drawn])
        made = cell(Study(law.name, 20, (), ()), name, rows, truth)
        assert made.coverage >= (1 if name == "tie" else 0.8), made
        assert 0 < made.width <= 1, made
