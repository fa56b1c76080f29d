from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.linalg import toeplitz
from scipy.signal import lfilter

from unmask.speech.vocoding import from_poles, linear_prediction, poles, residual, synthesis

ORDER = 20


@pytest.fixture
def frames(speakers):
    signal = speakers["bert"].say(seconds=1.0)
    window = np.hanning(320)
    return np.lib.stride_tricks.sliding_window_view(signal, 320)[::160] * window


def test_coefficients_solve_the_normal_equations(frames):
    result = linear_prediction(frames, ORDER)
    for frame, coefficients in zip(frames[::7], result[::7], strict=True):
        lags = np.array([frame[: frame.size - k] @ frame[k:] for k in range(ORDER + 1)])
        lags[0] *= 1 + 1e-9
        left = toeplitz(lags[:-1]) @ coefficients[1:]
        np.testing.assert_allclose(left, -lags[1:], atol=1e-7 * lags[0])


def test_silence_predicts_nothing():
    np.testing.assert_array_equal(linear_prediction(np.zeros((2, 320)), 4), [[1, 0, 0, 0, 0]] * 2)


def test_residual_and_synthesis_are_the_filters_of_the_textbook(frames):
    coefficients = linear_prediction(frames, ORDER)
    error = residual(frames, coefficients)
    signal = synthesis(error, coefficients)
    for n in (0, 5, len(frames) - 1):
        np.testing.assert_allclose(error[n], lfilter(coefficients[n], [1.0], frames[n]), atol=1e-12)
        np.testing.assert_allclose(signal[n], lfilter([1.0], coefficients[n], error[n]), atol=1e-9)
    np.testing.assert_allclose(signal, frames, atol=1e-9)


def test_poles_lie_inside_the_unit_circle_and_give_the_coefficients_back(frames):
    coefficients = linear_prediction(frames, ORDER)
    roots = poles(coefficients)
    assert np.abs(roots).max() < 1.0
    np.testing.assert_allclose(from_poles(roots), coefficients, atol=1e-8)
    np.testing.assert_allclose(from_poles(roots)[3], np.poly(roots[3]).real, atol=1e-12)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32 - 1), st.floats(0.0, 0.99))
def test_any_frame_gives_a_stable_filter(seed, colour):
    noise = np.random.default_rng(seed).standard_normal((3, 320))
    frames = lfilter([1.0], [1.0, -colour], noise, axis=1)
    assert np.abs(poles(linear_prediction(frames, ORDER))).max() < 1.0
