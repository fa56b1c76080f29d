"""Single places of the engine that no other test would miss (``fuzz.mutants``)."""

import math

import numpy as np
import pytest

from unmask.engine.curves import det_curve, histogram
from unmask.engine.operating import Cost
from unmask.engine.roc import Roc
from unmask.errors import InputError


def rates(target, nontarget, threshold):
    """Pmiss and Pfa where scores of at least a threshold are accepted, by definition."""
    return np.mean(np.asarray(target) < threshold), np.mean(np.asarray(nontarget) >= threshold)


@pytest.fixture
def trials():
    rng = np.random.default_rng(5)
    return rng.normal(1.0, 1.0, 40), rng.normal(0.0, 1.0, 50)


@pytest.mark.parametrize("prior", [0, 1, -0.1, 1.1, math.nan])
def test_priors_at_the_ends_are_refused(prior):
    with pytest.raises(InputError, match="between 0 and 1"):
        Cost(prior, 1.0, 1.0).check()


@pytest.mark.parametrize("cost", [0.0, -1.0, math.inf])
def test_costs_that_are_none_are_refused(cost):
    for pair in ((cost, 1.0), (1.0, cost)):
        with pytest.raises(InputError, match="numbers above 0"):
            Cost(0.5, *pair).check()


@pytest.mark.parametrize("fpr", [0.0, 0.02, 0.05, 0.1, 0.31, 0.5, 0.98, 1.0])
def test_accepted_targets_at_a_rate_of_false_alarms(trials, fpr):
    """All scores differ: the best of all thresholds whose rate is no higher."""
    target, nontarget = trials
    steps = [*target, *nontarget, -math.inf, math.inf]
    points = [rates(target, nontarget, step) for step in steps]
    best = max(1 - miss for miss, fa in points if fa <= fpr + 1e-12)
    assert Roc.from_scores(target, nontarget).tpr_at_fpr(fpr) == pytest.approx(best, abs=1e-12)


def test_equal_scores_of_both_classes_are_interpolated():
    """Three targets and two nontargets at one score: half the false alarms, half the targets."""
    roc = Roc.from_scores([1.0, 1.0, 1.0, 2.0], [1.0, 1.0, 0.0, 0.0])
    assert roc.tpr_at_fpr(0.25) == pytest.approx(0.25 + 0.75 / 2)


def test_thresholds_of_the_negated_scores_are_negated(trials):
    target, nontarget = trials
    turned = Roc.from_scores(target, nontarget).negated()
    np.testing.assert_array_equal(turned.scores, np.sort(-target))
    point = turned.at_threshold(-target[3])
    assert (point.p_miss, point.p_fa) == pytest.approx(rates(-target, -nontarget, -target[3]))


def test_infinite_thresholds_with_and_without_infinite_scores():
    """At least +inf accepts the scores that are +inf, and nothing where there are none."""
    with_infinite = Roc.from_scores([0.0, math.inf], [1.0, math.inf, -1.0, 2.0])
    assert with_infinite.at_threshold(math.inf).p_miss == 0.5
    assert with_infinite.at_threshold(math.inf).p_fa == 0.25
    without = Roc.from_scores([0.0, 1.0], [0.5, 2.0], thresholds=[-3.0])
    assert (without.at_threshold(math.inf).p_miss, without.at_threshold(math.inf).p_fa) == (1, 0)
    everything = without.at_threshold(-math.inf)
    assert (everything.p_miss, everything.p_fa) == (0, 1)


def test_cllr_of_statistics_in_parts_is_that_of_all(trials):
    target, nontarget = trials
    whole = Roc.from_scores(target, nontarget, cllr=True)
    parts = Roc.from_blocks(target, [nontarget[:20], nontarget[20:]], cllr=True)
    written = 0.5 * (
        np.mean(np.log2(1 + np.exp(-target))) + np.mean(np.log2(1 + np.exp(nontarget)))
    )
    assert whole.cllr() == pytest.approx(written, rel=1e-12)
    assert parts.cllr() == pytest.approx(written, rel=1e-12)


def test_drawn_curves_begin_and_end_where_the_polygon_does_and_miss_no_step(trials):
    target, nontarget = np.random.default_rng(6).normal(2, 1, 4000), trials[1]
    roc = Roc.from_scores(target, nontarget)
    curve = det_curve(roc)
    for drawn, whole in ((curve.p_fa, roc.polygon.p_fa), (curve.p_miss, roc.polygon.p_miss)):
        assert (drawn[0], drawn[-1]) == (whole[0], whole[-1])
    np.testing.assert_array_equal(np.unique(curve.p_fa), np.unique(roc.polygon.p_fa))
    gaps = np.diff(np.sort(curve.p_miss))
    assert gaps.max() < 0.02
    assert len(curve.p_miss) < len(roc.polygon.p_miss)


@pytest.mark.parametrize(
    "scores", [[1e308, -1e308, 0.0], [5e-324, 0.0, 1e-323], [1e300, 1e300, 1e300], [0.1, 0.2, 0.3]]
)
def test_histograms_of_extreme_scores(scores):
    """Areas are 1 wherever the numbers can hold a density."""
    target, nontarget = np.array(scores), np.array(scores[::-1])
    result = histogram(target, nontarget, Roc.from_scores(target, nontarget))
    assert (np.diff(result.edges) > 0).all()
    width = result.edges[1] - result.edges[0]
    assert np.sum(result.target * width) == pytest.approx(1.0)
