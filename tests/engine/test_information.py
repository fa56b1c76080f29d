"""C_llr, ECE, Z, D_ECE, l_w, tags and D_sys against definitions, integrals and limits."""

import math

import brute
import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.integrate import quad
from scipy.stats import norm
from tests.helpers.notices import lines_of

import unmask as um
from unmask import Roc
from unmask.engine import information

scores = st.lists(
    st.one_of(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), st.floats(-30, 30)), min_size=1, max_size=12
)


@given(scores, scores)
def test_cllr_is_the_mean_softplus(target, nontarget):
    assert um.cllr(target, nontarget) == pytest.approx(brute.cllr(target, nontarget), rel=1e-12)


def test_cllr_of_long_arrays_takes_logs_of_products():
    rng = np.random.default_rng(2)
    for scale in (0.1, 3.0, 30.0):
        x = rng.normal(-1, scale, 200_000)
        expected = np.logaddexp(0, x).sum()
        assert information.summed_softplus(x) == pytest.approx(expected, rel=1e-12)


def test_infinite_and_huge_scores_do_not_overflow():
    assert um.cllr([800.0, math.inf], [-800.0, -math.inf]) == 0.0
    assert um.cllr([-math.inf], [0.0]) == math.inf
    assert information.expected_disclosure(np.array([800.0]), np.array([-800.0])) == pytest.approx(
        1 / (2 * math.log(2))
    )
    assert um.detection([800.0, 900.0], [-800.0, 2.0]).d_ece == pytest.approx(1 / (2 * math.log(2)))


@given(scores, scores)
def test_min_cllr_is_cllr_of_the_oracle(target, nontarget):
    a, b = brute.oracle_llrs(target, nontarget)
    assert um.min_cllr(target, nontarget) == pytest.approx(brute.cllr(a, b), abs=1e-12)


@pytest.mark.parametrize("llr", [-40.0, -3.0, -0.51, -0.49, -1e-3, 1e-9, 1e-4, 0.3, 0.5, 2.0, 60.0])
def test_z_to_full_precision(llr):
    with mpmath.workdps(60):
        e = mpmath.expm1(mpmath.mpf(llr))
        exact = mpmath.mpf(1) / 2 + (llr - e) / e**2
        assert float(information.z(llr)) == pytest.approx(float(exact), rel=1e-13)


def test_z_at_its_limits():
    np.testing.assert_array_equal(
        information.z([0.0, math.inf, 1e308, -math.inf]), [0.0, 0.5, 0.5, -math.inf]
    )


@given(scores, scores)
def test_d_ece_is_the_area_between_prior_and_oracle_profile(target, nontarget):
    """Eq. 13 is the integral over π of the prior's ECE minus the oracle's."""
    roc = Roc.from_scores(target, nontarget)

    def gap(prior):
        log_odds = np.array([math.log(prior / (1 - prior))])
        profile = information.prior_ece(log_odds) - information.oracle_ece(roc.pav, log_odds)
        return float(profile[0])

    area, _ = quad(gap, 0, 1, limit=200)
    assert roc.d_ece() == pytest.approx(area, abs=2e-6)


@given(scores, scores)
def test_ece_at_even_odds_is_cllr(target, nontarget):
    assert um.ece(target, nontarget, log_odds=0.0)[0] == pytest.approx(
        um.cllr(target, nontarget), rel=1e-12
    )
    roc = Roc.from_scores(target, nontarget)
    assert information.oracle_ece(roc.pav, np.zeros(1))[0] == pytest.approx(
        roc.min_cllr(), abs=1e-12
    )


@given(scores, scores)
def test_l_w_is_the_largest_llr_with_laplace(target, nontarget):
    a, b = brute.oracle_llrs(target, nontarget, laplace=True)
    expected = max(abs(x) for x in a + b) / math.log(10)
    assert Roc.from_scores(target, nontarget).l_w() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("l_w", "tag"),
    [(0.0, "0"), (0.01, "A"), (0.999, "A"), (1.0, "B"), (2.0, "C"), (3.976, "C"), (4.0, "D"),
     (5.0, "E"), (5.99, "E"), (6.0, "F"), (9.0, "F")],
)  # fmt: skip
def test_tags_of_table_1(l_w, tag):
    assert information.tag(l_w) == tag


def test_d_sys_of_gaussians_approaches_its_integral():
    def local(s):
        ratio = norm.pdf(s, 2) / norm.pdf(s)
        return norm.pdf(s, 2) * max(0.0, 2 * ratio / (1 + ratio) - 1)

    expected, _ = quad(local, -10, 12)
    rng = np.random.default_rng(3)
    target, nontarget = rng.normal(2, 1, 200_000), rng.normal(0, 1, 200_000)
    assert um.d_sys(target, nontarget) == pytest.approx(expected, abs=0.005)
    assert um.d_sys(target, nontarget, estimator="histogram") == pytest.approx(expected, abs=0.01)


def test_d_sys_at_its_ends():
    assert um.d_sys([2.0, 3.0], [0.0, 1.0]) == 1.0
    assert um.d_sys([1.0], [1.0]) == 0.0
    assert um.d_sys([0.0], [1.0]) == 0.0


def test_d_sys_histogram_with_few_or_equal_scores(sentences):
    with pytest.raises(um.InputError) as error:
        um.d_sys([1.0] * 19, [0.0] * 19, estimator="histogram")
    sentences.check(str(error.value))
    assert um.d_sys(np.linspace(5, 9, 20), [0.0] * 20, estimator="histogram") > 0
    assert um.d_sys([1.0] * 50, [1.0] * 50, estimator="histogram") == 0.0
    with pytest.raises(um.InputError, match="finite"):
        um.d_sys([math.inf] * 50, [1.0] * 50, estimator="histogram")
    with pytest.raises(um.InputError, match="pav or histogram"):
        um.d_sys([1.0], [0.0], estimator="kernel")


def test_zebra_reports_the_negated_score(sentences):
    rng = np.random.default_rng(4)
    result = um.zebra(rng.normal(-3, 1, 300), rng.normal(0, 1, 3000))
    assert result.d_ece < 0.01
    assert result.negated_d_ece > 0.4
    sentences.check(*lines_of(result, "negated"))
    assert um.zebra(rng.normal(3, 1, 300), rng.normal(0, 1, 3000)).warnings == ()


@pytest.mark.parametrize("size", [0, 1, 32_768, 100_000])
def test_softplus_of_blocks_has_the_bits_of_the_whole(size):
    rng = np.random.default_rng(size)
    values = rng.normal(0, 20, size)
    result = information.SummedSoftplus()
    for block in np.array_split(values, [7, 7, 40_000, 70_001]):
        result.add(block)
    assert result.total == information.summed_softplus(values)
