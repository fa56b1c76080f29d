from __future__ import annotations

import pytest
from benchmarks.coverage.legal import LAWS, coverage, sampled


@pytest.mark.parametrize("law", [LAWS[0], LAWS[2]], ids=lambda law: law.name)
def test_intervals_hold_the_truth(law):
    found = sampled(law, 20, 40, seed=1)
    for name in ("singling_out N=20", "linkability N=20"):
        held, *_ = coverage(found[name], float(found[name][:, 0].mean()))
        assert held >= 0.85, name
    assert found["worst decile N=20"].shape == (40, 3)
