"""What figures draw, against what it means."""

import numpy as np

from unmask.engine import curves
from unmask.engine.curves import reliability
from unmask.engine.operating import Polygon


def test_whiskers_of_calibrated_scores_hold_the_diagonal():
    """Calibrated scores at 200 targets and 20,000 nontargets: LLRs of two Gaussians."""
    covered, every = 0, 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        shift = 3.0
        target = shift * rng.normal(shift, 1, 200) - shift**2 / 2
        nontarget = shift * rng.normal(0, 1, 20_000) - shift**2 / 2
        result = reliability(target, nontarget)
        inside = (result.low <= result.predicted) & (result.predicted <= result.high)
        covered, every = covered + inside.sum(), every + inside.size
        assert result.count.sum() == 20_200
        assert (result.low < result.high).all()
    assert every > 1000
    assert 0.92 <= covered / every <= 0.985


def test_posteriors_are_at_the_prior_of_the_trials():
    result = reliability(np.zeros(10), np.zeros(30), bins=4)
    np.testing.assert_allclose(result.predicted, [0.25])
    np.testing.assert_allclose(result.observed, [0.25])


def test_both_ends_of_a_curve_are_kept():
    """However near their neighbours are; between them, the first and last point of each pixel."""
    rates = np.array([1.0, 1.0, 0.5, 0.5, 0.0, 0.0])
    np.testing.assert_array_equal(curves._visible(Polygon(rates, 1.0 - rates)), [0, 1, 2, 3, 4, 5])
    rates = np.array([1.0, 1.0, 1.0, 0.5, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(curves._visible(Polygon(rates, 1.0 - rates)), [0, 2, 3, 4, 6])
