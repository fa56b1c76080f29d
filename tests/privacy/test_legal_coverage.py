from __future__ import annotations

import numpy as np
import pytest
from studies.coverage.legal import LAWS, sample
from studies.coverage.study import Study, cell


@pytest.mark.parametrize("law", [LAWS[0], LAWS[2]], ids=lambda law: law.name)
def test_intervals_hold_the_truth(law):
    drawn = [sample(law, 20, number) for number in range(40)]
    for name in ("singling_out N=20", "linkability N=20"):
        made = cell(Study(law.name, 20, (), ()), name, np.array([one[name] for one in drawn]), None)
        assert made.coverage >= 0.85, made
    assert len(drawn[0]["worst decile N=20"]) == 3
