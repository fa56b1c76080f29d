import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats
from scipy.special import expit
from scipy.stats import binomtest

from unmask.base import intervals


@given(units=st.integers(2, 80), data=st.data())
def test_a_score_interval_has_a_width_and_stays_inside_the_unit_interval(units, data):
    values = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.3, 1.0]), min_size=units)))
    (low,), (high,) = intervals.mean_interval(values[:, None], level=0.95)
    assert 0 <= low < high <= 1
    assert low <= values.mean() <= high


@pytest.mark.parametrize("successes", [0, 1, 17, 59, 60])
def test_outcomes_of_zero_and_one_give_wilsons_interval(successes):
    values = (np.arange(60) < successes).astype(float)
    (low,), (high,) = intervals.mean_interval(values[:, None], level=0.95)
    wilson = binomtest(successes, 60).proportion_ci(0.95, method="wilson")
    assert low == pytest.approx(wilson.low, abs=0.006)
    assert high == pytest.approx(wilson.high, abs=0.006)


@given(units=st.integers(1, 200))
def test_exact_bounds_are_those_of_clopper_and_pearson(units):
    none, every = (binomtest(n, units).proportion_ci(0.9, method="exact") for n in (0, units))
    assert intervals.exact_bound("high", units, level=0.9) == pytest.approx(none.high)
    assert intervals.exact_bound("low", units, level=0.9) == pytest.approx(every.low)


def test_score_intervals_cover_means_near_0_in_the_middle_and_near_1():
    rng = np.random.default_rng(3)
    for truth in (0.02, 0.1, 0.5, 0.97):
        for outcomes in (
            (rng.random((40, 2000)) < truth).astype(float),
            rng.beta(truth, 1 - truth, (40, 2000)),
        ):
            low, high = intervals.mean_interval(outcomes, level=0.95)
            assert 0.92 <= ((low <= truth) & (truth <= high)).mean() <= 0.985


def test_the_high_end_reckons_with_one_speaker_at_risk_who_was_not_drawn():
    """By hand: the variance of the sample and a 1, in the score interval of the sample's mean."""
    values = np.random.default_rng(4).beta(2, 30, (40, 1))
    mean, units = values.mean(), len(values)
    more = np.append(values, 1.0).var(ddof=1) / (units + 1)
    low, high = intervals.mean_interval(values, level=0.95)
    soft, differ = (units * mean + 0.5) / (units + 1), units * mean * (1 - mean)
    added = 3 / (1 + differ) * soft * (1 - soft)
    for end, variance in ((low, values.var(ddof=1) / units), (high, more)):
        ratio = (units**2 * variance + added) / (differ + added)
        allowed = stats.t.ppf(0.975, units - 1) ** 2 * ratio * end * (1 - end) / units
        assert (mean - end) ** 2 == pytest.approx(allowed)


@pytest.mark.parametrize("units", [20, 40, 60])
def test_score_intervals_cover_a_risk_that_few_people_carry(units):
    rng = np.random.default_rng(units)
    outcomes = rng.binomial(5, 0.05, (units, 4000)) / 5
    outcomes[rng.random(outcomes.shape) < 0.05] = 1.0
    low, high = intervals.mean_interval(outcomes, level=0.95)
    truth = 0.05 + 0.95 * 0.05
    assert ((low <= truth) & (truth <= high)).mean() >= 0.93


def test_an_interval_takes_out_the_bias_that_resampling_shows():
    """A squared length in 6 dimensions: biased upwards by noise, and once more in a resample."""
    rng = np.random.default_rng(5)
    truth = 6 * 0.3**2
    covered = {"corrected": 0, "percentile": 0}
    for _ in range(400):
        sample = rng.normal(0.3, 1.0, (24, 6))
        means = sample[rng.integers(0, 24, (400, 24))].mean(axis=1)
        value, replicates = (sample.mean(axis=0) ** 2).sum(), (means**2).sum(axis=1)
        low, high = intervals.bias_corrected(
            value, replicates, 24, level=0.95, within=intervals.MetricRange(0.0)
        )
        covered["corrected"] += low <= truth <= high
        low, high = np.quantile(replicates, [0.025, 0.975])
        covered["percentile"] += low <= truth <= high
    assert covered["corrected"] >= 0.89 * 400
    assert covered["percentile"] < 0.8 * 400


@pytest.mark.parametrize("wider", [1.0, 1.2])
@pytest.mark.parametrize(("longer", "hard"), [("low", (True, False)), ("high", (False, True))])
def test_the_end_that_hard_speakers_move_lies_three_tenths_further(longer, hard, wider):
    drawn = np.array([0.1, 0.2, 0.3, 0.4])
    even = intervals.bias_corrected(0.25, drawn, 20, level=0.95)
    ends = intervals.bias_corrected(
        0.25, drawn, 20, level=0.95, within=intervals.MetricRange(longer=longer), wider=wider
    )
    factors = np.where(hard, 1.3 * wider**2, wider)
    np.testing.assert_allclose(np.subtract(ends, 0.25), factors * np.subtract(even, 0.25))


@pytest.mark.parametrize(("value", "expected"), [(0.0, (0.0, 0.0712)), (0.5, (0.4288, 0.5))])
def test_a_value_that_never_moves_from_the_edge_gets_the_exact_bound(value, expected):
    given_bounds = intervals.bias_corrected(
        value, np.full(100, value), 24, level=0.95, within=intervals.MetricRange(0.0, 0.5)
    )
    assert given_bounds == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("bounds", [(0.0, 0.5), (-2.0, 3.0), (0.0, np.inf), (-np.inf, np.inf)])
def test_a_scale_leads_back_to_where_it_came_from(bounds):
    to, back = intervals.scale_of(intervals.MetricRange(*bounds))
    values = np.concatenate([np.linspace(0, 0.5, 33), [1e-12, 1e-6, 0.5 - 1e-9]])
    np.testing.assert_allclose(back(to(values)), values, atol=1e-12)
    assert (np.diff(to(np.sort(values))) > 0).all()


@given(st.data())
def test_a_corrected_interval_holds_its_value_and_stays_in_its_range(data):
    share = st.floats(0, 1, allow_subnormal=False)
    value, drawn = data.draw(share), np.array(data.draw(st.lists(share, min_size=2)))
    units, overfit = data.draw(st.integers(2, 50)), data.draw(st.sampled_from([1.0, 1.7]))
    low, high = intervals.bias_corrected(
        value, drawn, units, level=0.95, within=intervals.MetricRange(0.0, 1.0, overfit)
    )
    if np.isnan(low):
        assert 0 < value < 1
        assert (drawn == value).all()
    else:
        assert 0 <= low <= value <= high <= 1
        assert low < high


@pytest.mark.parametrize(("count", "sentence"), [(12, True), (29, True), (30, False)])
def test_few_speakers_are_told_by_number(count, sentence):
    text = intervals.few_speakers(count)
    assert (text is not None) == sentence
    assert not sentence or text.startswith(f"{count} speakers")


def test_one_unit_or_no_defined_replicate_gives_no_interval():
    assert np.isnan(intervals.bias_corrected(0.2, np.array([0.1, 0.3]), 1, level=0.95)).all()
    assert np.isnan(intervals.bias_corrected(0.2, np.array([np.nan]), 20, level=0.95)).all()


def test_a_rate_has_a_t_interval_on_the_scale_of_its_logit():
    """By hand: logit 0.2 ± t·√(20/19)·sd, and back."""
    drawn = expit(np.array([-1.9, -1.4, -1.0, -1.6, -1.2]))
    away = (
        stats.t.ppf(0.975, 19) * np.sqrt(20 / 19) * np.std([-1.9, -1.4, -1.0, -1.6, -1.2], ddof=1)
    )
    expected = expit(np.log(0.25) - away), expit(np.log(0.25) + away)
    result = intervals.logit_interval(0.2, drawn, 20, level=0.95, least=0.001)
    assert result == pytest.approx(expected)
    mirrored = intervals.logit_interval(0.8, 1 - drawn, 20, level=0.95, least=0.001)
    assert mirrored == pytest.approx((1 - expected[1], 1 - expected[0]))


def test_a_rate_on_the_edge_has_an_interval():
    none = np.zeros(50)
    low, high = intervals.logit_interval(0.0, none, 20, level=0.95, least=0.01)
    assert low == 0.0
    assert high == pytest.approx(0.168, abs=1e-3)
    assert intervals.logit_interval(1.0, 1 - none, 20, level=0.95, least=0.01)[1] == 1.0
    low, high = intervals.logit_interval(0.4, none + 0.4, 20, level=0.95, least=0.01)
    assert low < 0.4 < high
    assert np.isnan(intervals.logit_interval(0.4, none, 1, level=0.95, least=0.01)).all()
    low, high = intervals.logit_interval(0.4, none + 0.4, 2, level=0.95, least=0.01)
    assert low < 0.4 < high


def test_a_bounded_interval_ends_where_resamples_do():
    """One speaker moves the number from 0 to 0.15: written out with quantiles and the median."""
    rng = np.random.default_rng(0)
    drawn = np.clip(0.07 * rng.poisson(1.0, 2000) + 0.002 * rng.random(2000), 0, 0.5)
    plain = intervals.MetricRange(0.0, 0.5, 1.0, "high")
    free, bounded = (
        intervals.bias_corrected(0.07, drawn, 16, level=0.95, within=within)
        for within in (plain, plain._replace(bounded=True))
    )
    to, back = intervals.scale_of(plain)
    low, median, high = np.quantile(to(drawn), [0.025, 0.5, 0.975])
    wider, at = intervals.widening(16, 0.95), to(np.array(0.07))
    end = at - (median - at) + 1.25 * 1.3 * wider * (high - median)
    assert free[1] > bounded[1] == pytest.approx(max(float(back(end)), drawn.max()))
    assert bounded[0] == pytest.approx(max(free[0], min(float(back(low)), bounded[0])))
    even = rng.normal(0.2, 0.02, 2000)
    for within in (plain, plain._replace(bounded=True)):
        made = intervals.bias_corrected(0.2, even, 16, level=0.95, within=within)
        assert made == pytest.approx(
            intervals.bias_corrected(0.2, even, 16, level=0.95, within=plain)
        )
