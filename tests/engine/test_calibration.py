"""Calibration: fit on one set, apply to another."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.special import expit

import unmask as um
from unmask.engine import calibrate, fusion_weights
from unmask.errors import InputError

scores = st.lists(st.integers(-6, 6).map(float), min_size=1, max_size=15)


def test_linear_recovers_the_llr_of_gaussians():
    """Classes N(±1, 1): the LLR is 2s, so a shift and a scale of the score are undone."""
    rng = np.random.default_rng(5)
    target, nontarget = rng.normal(1, 1, 200_000), rng.normal(-1, 1, 200_000)
    fitted = calibrate(3 * target + 7, 3 * nontarget + 7)
    assert fitted.scale == pytest.approx(2 / 3, rel=0.02)
    assert fitted.offset == pytest.approx(-14 / 3, rel=0.02)
    assert not fitted.separable


def test_linear_minimises_cllr():
    rng = np.random.default_rng(6)
    target, nontarget = rng.normal(1, 1, 300), rng.normal(-1, 2, 900)
    fitted = calibrate(target, nontarget)
    best = um.cllr(fitted.apply(target), fitted.apply(nontarget))
    for scale, offset in ((1.001, 0), (0.999, 0), (1, 0.001), (1, -0.001)):
        near = [scale * fitted.apply(s) + offset for s in (target, nontarget)]
        assert um.cllr(*near) > best


def test_linear_weighs_the_classes_by_the_prior():
    """Ten copies of the nontargets change nothing."""
    rng = np.random.default_rng(7)
    target, nontarget = rng.normal(1, 1, 100), rng.normal(-1, 1, 100)
    once, often = calibrate(target, nontarget), calibrate(target, np.tile(nontarget, 10))
    assert often.scale == pytest.approx(once.scale, rel=1e-8)
    assert often.offset == pytest.approx(once.offset, abs=1e-8)


@pytest.mark.parametrize("prior", [0.01, 0.999])
def test_steps_that_overshoot_are_halved(prior):
    """Where whole Newton steps from zero lead away, the fit is still where the loss is least: at
    the prior π its gradient Σ w·(p − y)·(s, 1) vanishes, p the posterior of a score at that prior.
    """
    rng = np.random.default_rng(0)
    target, nontarget = rng.normal(3, 1, 40), rng.normal(0, 1, 60)
    fitted = calibrate(target, nontarget, prior=prior)
    assert fitted.scale > 1
    odds = math.log(prior / (1 - prior))
    missed = prior * (1 - expit(fitted.apply(target) + odds)) / len(target)
    taken = (1 - prior) * expit(fitted.apply(nontarget) + odds) / len(nontarget)
    assert missed.sum() == pytest.approx(taken.sum(), abs=1e-9)
    assert (missed * target).sum() == pytest.approx((taken * nontarget).sum(), abs=1e-9)


@pytest.mark.parametrize(
    ("target", "nontarget", "prior"),
    [
        ([1e6, 2.9, 2.8, 3.0, 2.7, 0.5], [0.1, 3.1, -1.0, 2.0, 1.0], 0.5),
        ([1.0, 2.0, 0.0], [-1e9, 0.5, -1.0, 1.5], 0.5),
        ([-1.0] + [0.0] * 5 + [1.0] * 11 + [2.0] * 9 + [3.0, 4.0], [0.0] * 7, 0.01),
    ],
)
def test_outliers_and_constant_scores_end_where_the_gradient_vanishes(target, nontarget, prior):
    fitted = calibrate(target, nontarget, prior=prior)
    odds = math.log(prior / (1 - prior))
    missed = prior * expit(-fitted.apply(target) - odds) / len(target)
    taken = (1 - prior) * expit(fitted.apply(nontarget) + odds) / len(nontarget)
    assert missed.sum() == pytest.approx(taken.sum(), abs=1e-8)
    bounded = np.clip(target, -10, 10), np.clip(nontarget, -10, 10)
    moments = (missed * bounded[0]).sum(), (taken * bounded[1]).sum()
    assert moments[0] == pytest.approx(moments[1], abs=1e-8)


def test_linear_without_information_or_without_overlap():
    constant = calibrate([1.0, 1.0], [1.0])
    np.testing.assert_array_equal(constant.apply([0.0, 5.0, math.inf]), 0.0)
    assert calibrate([2.0, 3.0], [0.0, 1.0]).separable
    turned = calibrate([0.0, 1.0, 2.0], [1.0, 2.0, 3.0])
    assert turned.scale < 0
    with pytest.raises(um.InputError, match="finite"):
        calibrate([math.inf], [0.0])


@given(scores, scores)
def test_isotonic_on_its_own_scores_is_the_oracle(target, nontarget):
    fitted = calibrate(target, nontarget, "isotonic", laplace=False)
    roc = um.Roc.from_scores(target, nontarget)
    for own in (np.array(target), np.array(nontarget)):
        np.testing.assert_allclose(fitted.apply(own), roc.pav.apply(own), atol=1e-12)


@given(scores, scores, st.booleans())
def test_isotonic_never_falls(target, nontarget, laplace):
    fitted = calibrate(target, nontarget, "isotonic", laplace=laplace)
    llr = fitted.apply(np.linspace(-8, 8, 161))
    with np.errstate(invalid="ignore"):
        step = np.diff(llr)
    assert not (step < 0).any()
    assert llr[0] == fitted.apply([-1e9])[0]
    assert llr[-1] == fitted.apply([1e9])[0]
    if laplace:
        assert np.isfinite(llr).all()


def test_isotonic_interpolates_between_blocks():
    """Blocks {0, 1} and {3, 4} of posteriors 1/4 and 3/4: halfway between them the LLR is 0."""
    target, nontarget = [0.0, 3.0, 3.0, 3.0], [0.0, 0.0, 0.0, 3.0]
    fitted = calibrate(target, nontarget, "isotonic", laplace=False)
    np.testing.assert_allclose(
        fitted.apply([-5, 0, 0.75, 1.5, 3, 9]),
        np.log(3) * np.array([-1, -1, -0.5, 0, 1, 1]),
        atol=1e-12,
    )


def test_isotonic_next_to_infinity_keeps_to_the_finite_side():
    fitted = calibrate([1.0, 2.0], [0.0, 1.0], "isotonic", laplace=False)
    np.testing.assert_allclose(
        fitted.apply([0.0, 0.5, 1.0, 1.5, 2.0]), [-math.inf, 0, 0, 0, math.inf], atol=1e-12
    )
    apart = calibrate([1.0], [0.0], "isotonic", laplace=False)
    np.testing.assert_array_equal(apart.apply([0.4, 0.6]), [-math.inf, math.inf])


def test_fusion_of_one_system_is_its_linear_calibration():
    rng = np.random.default_rng(0)
    a, b = rng.normal(1, 1, 200), rng.normal(0, 1, 500)
    weights = fusion_weights(a[:, None], b[:, None])
    assert weights == pytest.approx([calibrate(a, b).scale], rel=1e-12)


def test_fusion_weights_minimise_the_prior_weighted_loss():
    rng = np.random.default_rng(1)
    a, b = rng.normal([1, 0.5, 0], 1, (300, 3)), rng.normal(0, 1, (400, 3))
    weights = fusion_weights(a, b)

    def loss(w):
        return min(
            np.logaddexp(0, -(a @ w + c)).mean() + np.logaddexp(0, b @ w + c).mean()
            for c in np.linspace(-2, 0.5, 501)
        )

    best = loss(weights)
    for step in 0.05 * np.vstack([np.eye(3), -np.eye(3)]):
        assert best < loss(weights + step)
    assert weights[0] > weights[1] > abs(weights[2])
    with pytest.raises(InputError, match="a column per system"):
        fusion_weights(a, b[:, :2])
