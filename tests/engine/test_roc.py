"""The ROC statistic against its definition, trial by trial."""

import math

import brute
import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp
from tests.helpers.notices import lines_of

import unmask as um
from unmask import Roc
from unmask.engine.operating import equal_errors

few_values = st.sampled_from([-math.inf, -2.0, -1.0, -0.5, 0.0, 0.25, 1.5, 3.0, math.inf])
any_values = st.floats(-1e6, 1e6)
scores = st.lists(st.one_of(few_values, any_values), min_size=1, max_size=12)
weights = st.lists(st.integers(0, 4), min_size=12, max_size=12)


@given(scores, scores)
def test_raw_eer_is_the_crossing_of_the_polygon(target, nontarget):
    expected = brute.crossing(brute.polygon(target, nontarget))
    assert um.eer(target, nontarget, estimator="raw") == pytest.approx(float(expected), abs=1e-12)


@given(scores, scores)
def test_rocch_eer_is_the_largest_minimum_bayes_error(target, nontarget):
    value = um.eer(target, nontarget)
    assert value == pytest.approx(float(brute.hull_eer(target, nontarget)), abs=1e-12)
    assert value <= 0.5


binned = hnp.arrays(
    np.int64,
    st.tuples(st.just(2), st.integers(1, 6), st.integers(1, 9)),
    elements=st.integers(0, 5),
)


@given(binned)
def test_many_hulls_at_once_are_the_same_hulls(counts):
    target, nontarget = counts + (counts.sum(axis=2, keepdims=True) == 0)
    result = equal_errors(target.astype(float), nontarget.astype(float))
    for value, *classes in zip(result, target, nontarget, strict=True):
        one, other = (np.repeat(np.arange(row.size), row).tolist() for row in classes)
        assert value == pytest.approx(float(brute.hull_eer(one, other)), abs=1e-12)


def test_many_long_hulls_at_once_are_those_of_the_engine():
    rng = np.random.default_rng(0)
    rate = np.exp(-(np.linspace(-3, 3, 257) ** 2) / 2)
    target = rng.poisson(30 * np.roll(rate, 20), (50, 257)).astype(float)
    nontarget = rng.poisson(3_000_000 * np.roll(rate, -20), (50, 257)).astype(float)
    result = equal_errors(target, nontarget)
    gaps = np.zeros(258)
    known = [Roc(np.arange(257.0), *row, gaps).eer() for row in zip(target, nontarget, strict=True)]
    assert result == pytest.approx(known, abs=1e-14)


@given(scores, scores, st.floats(0.001, 0.999), st.floats(0.1, 10), st.floats(0.1, 10))
def test_min_dcf_searches_all_thresholds(target, nontarget, p, c_miss, c_fa):
    value = um.min_dcf(target, nontarget, p_target=p, c_miss=c_miss, c_fa=c_fa)
    assert value == pytest.approx(brute.min_dcf(target, nontarget, p, c_miss, c_fa), abs=1e-12)
    assert value <= 1 + 1e-12


@given(scores, scores, st.booleans())
def test_pav_equals_repeated_pooling(target, nontarget, laplace):
    roc = Roc.from_scores(target, nontarget)
    pav = roc.pav_laplace if laplace else roc.pav
    expected = brute.oracle_llrs(target, nontarget, laplace)
    result = pav.apply(np.array(target)), pav.apply(np.array(nontarget))
    for one, two in zip(result, expected, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-12)


@given(scores, scores)
def test_thresholds_give_the_rates_they_promise(target, nontarget):
    roc = Roc.from_scores(target, nontarget)
    for point in (
        roc.eer_point(),
        roc.eer_point(estimator="raw"),
        roc.min_dcf_point(p_target=0.3),
        roc.tpr_point(0.1),
        roc.tpr_point(0.0),
        roc.tpr_point(1.0),
    ):
        accepted = np.array(target) >= point.threshold
        false_alarms = np.array(nontarget) >= point.threshold
        if point.threshold == math.inf and math.inf not in target:
            # "reject all": nontargets of +inf count as above all targets, no more is known of them
            assert (point.p_miss, point.p_fa) == (1.0, 0.0)
            continue
        assert 1 - accepted.mean() == pytest.approx(point.p_miss, abs=1e-12)
        assert false_alarms.mean() == pytest.approx(point.p_fa, abs=1e-12)


@given(scores, scores, st.floats(-3, 3))
def test_act_dcf_counts_at_the_bayes_threshold(target, nontarget, log_odds):
    p = 1 / (1 + math.exp(log_odds))
    threshold = math.log((1 - p) / p)
    p_miss = np.mean(np.array(target) < threshold)
    p_fa = np.mean(np.array(nontarget) >= threshold)
    expected = (p * p_miss + (1 - p) * p_fa) / min(p, 1 - p)
    assert um.act_dcf(target, nontarget, p_target=p) == pytest.approx(expected, abs=1e-12)


@given(scores, scores, st.integers(1, 5))
def test_blocks_equal_the_whole(target, nontarget, size):
    whole = Roc.from_scores(target, nontarget, thresholds=[0.5], cllr=True)
    blocks = (nontarget[i : i + size] for i in range(0, len(nontarget), size))
    streamed = Roc.from_blocks(target, blocks, thresholds=[0.5], cllr=True)
    for name in ("scores", "target", "equal", "between"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(streamed, name))
    assert streamed.cllr() == pytest.approx(whole.cllr(), rel=1e-12)


@given(scores, scores, scores)
def test_statistics_of_parts_add_up(target, first, second):
    merged = Roc.from_scores(target, first) + Roc.from_scores(target, second)
    whole = Roc.from_scores(target, first + second)
    np.testing.assert_array_equal(merged.between, whole.between)
    np.testing.assert_array_equal(merged.equal, whole.equal)
    assert merged.eer() == whole.eer()


def test_statistics_over_other_targets_do_not_merge():
    with pytest.raises(um.InputError, match="same target scores"):
        Roc.from_scores([1.0], [0.0]) + Roc.from_scores([2.0], [0.0])


@given(scores, scores, weights, weights)
def test_integer_weights_are_repetitions(target, nontarget, a, b):
    a, b = a[: len(target)], b[: len(nontarget)]
    if sum(a) == 0 or sum(b) == 0:
        with pytest.raises(um.InputError, match="class is empty"):
            Roc.from_scores(target, nontarget, target_weights=a, nontarget_weights=b)
        return
    weighted = Roc.from_scores(
        target, nontarget, target_weights=a, nontarget_weights=b, thresholds=[4.0], cllr=True
    )
    plain = Roc.from_scores(
        brute.repeated(target, a), brute.repeated(nontarget, b), thresholds=[4.0], cllr=True
    )
    for metric in ("eer", "min_dcf", "min_cllr", "d_ece", "l_w", "d_sys", "cllr"):
        expected = getattr(plain, metric)()
        assert getattr(weighted, metric)() == pytest.approx(expected, rel=1e-11, abs=1e-12)
    assert weighted.eer(estimator="raw") == pytest.approx(plain.eer(estimator="raw"), abs=1e-12)
    assert weighted.tpr_at_fpr(0.2) == pytest.approx(plain.tpr_at_fpr(0.2), abs=1e-12)


@given(scores, scores, st.randoms())
def test_order_of_trials_changes_nothing(target, nontarget, random):
    before = um.detection(target, nontarget)
    random.shuffle(target)
    random.shuffle(nontarget)
    after = um.detection(target, nontarget)
    assert after.cllr == pytest.approx(before.cllr, rel=1e-12)
    assert after.points == before.points
    ranked = [[e for e in one.estimates if e.metric != "cllr"] for one in (before, after)]
    assert ranked[0] == ranked[1]


@given(
    st.lists(st.integers(-20, 20), min_size=1, max_size=30),
    st.lists(st.integers(-20, 20), min_size=1, max_size=30),
)
def test_monotone_maps_leave_the_ranking_metrics_alone(target, nontarget):
    mapped = [np.exp(np.array(x) / 7.0) * 3 - 11 for x in (target, nontarget)]
    before, after = Roc.from_scores(target, nontarget), Roc.from_scores(*mapped)
    for metric in ("eer", "min_dcf", "min_cllr", "d_ece", "l_w", "d_sys"):
        assert getattr(before, metric)() == getattr(after, metric)()


@given(scores, scores)
def test_negation_counts_the_negated_scores(target, nontarget):
    turned = Roc.from_scores(target, nontarget).negated()
    fresh = Roc.from_scores([-s for s in target], [-s for s in nontarget])
    assert turned.d_ece() == pytest.approx(fresh.d_ece(), abs=1e-14)
    assert turned.eer() == pytest.approx(fresh.eer(), abs=1e-14)


def test_ties_assume_no_order():
    """Uninformative equal scores are chance, not "EER 0 %" or "no privacy"."""
    result = um.detection([1.0] * 5, [1.0] * 7)
    assert result.eer == result.eer_raw == 0.5
    assert result.d_ece == result.d_sys == 0.0
    # The pseudo-trials below are pooled with the ties, those above stand alone.
    laplace = math.log10((5 + 1) / (7 + 1)) - math.log10(5 / 7)
    assert result.l_w == pytest.approx(laplace, abs=1e-12)
    assert result.min_cllr == pytest.approx(1.0)


def test_inverted_scores(sentences):
    result = um.detection([0.0, 1.0], [2.0, 3.0])
    assert result.eer == 0.5
    assert result.eer_raw == 1.0
    sentences.check(*lines_of(result, "negated"))


def test_one_trial_of_each_class():
    assert um.eer([1.0], [0.0]) == 0.0
    assert um.eer([0.0], [1.0]) == 0.5
    assert um.eer([0.0], [1.0], estimator="raw") == 1.0


def test_accept_all_is_a_threshold_of_min_dcf():
    assert um.min_dcf([0.0], [1.0], p_target=0.99) == pytest.approx(1.0)
    point = Roc.from_scores([0.0], [1.0]).min_dcf_point(p_target=0.99)
    assert point.threshold == -math.inf


def test_long_blocks_are_cut_and_short_ones_joined():
    rng = np.random.default_rng(1)
    target, nontarget = rng.normal(2, 1, 500), rng.normal(0, 1, 2_500_000)
    blocks = [nontarget[:3], nontarget[3:2_400_000], nontarget[2_400_000:]]
    streamed = Roc.from_blocks(target, iter(blocks))
    np.testing.assert_array_equal(streamed.between, Roc.from_scores(target, nontarget).between)


@pytest.mark.parametrize(
    ("target", "nontarget"),
    [
        ([], [1.0]),
        ([1.0], []),
        ([1.0, math.nan], [1.0]),
        ([1.0], [math.nan, 0.0, math.nan]),
        ([[1.0]], [1.0]),
        (["high"], [1.0]),
    ],
)
def test_bad_scores_are_told_in_one_line(target, nontarget, sentences):
    with pytest.raises(um.InputError) as caught:
        um.eer(target, nontarget)
    sentences.check(str(caught.value))
    assert "\n" not in str(caught.value)


def test_a_stream_is_checked_too():
    with pytest.raises(um.InputError, match="NaN"):
        Roc.from_blocks([1.0], [[0.0], [math.nan]])
    with pytest.raises(um.InputError, match="no nontarget scores"):
        Roc.from_blocks([1.0], [])


def test_unknown_options_are_named():
    with pytest.raises(um.InputError, match="rocch, raw, kaldi"):
        um.eer([1.0], [0.0], estimator="best")
    with pytest.raises(um.InputError, match="prior between 0 and 1"):
        um.min_dcf([1.0], [0.0], p_target=1.0)
    with pytest.raises(um.InputError, match="costs"):
        um.min_dcf([1.0], [0.0], c_fa=0.0)
    with pytest.raises(um.InputError, match="0 to 1"):
        um.tpr_at_fpr([1.0], [0.0], fpr=1.5)
    with pytest.raises(um.InputError, match="thresholds="):
        Roc.from_scores([1.0], [0.0]).at_threshold(0.3)
    with pytest.raises(um.InputError, match="cllr=True"):
        Roc.from_scores([1.0], [0.0]).cllr()
