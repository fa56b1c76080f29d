from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from unmask.errors import InputError
from unmask.speech.vocoding import PEAK_CEILING, linear_prediction, mcadams, poles, warp_poles


def decibels(ratio: float) -> float:
    return 10 * np.log10(ratio)


@pytest.mark.parametrize("name", ["anna", "bert", "cleo"])
def test_a_coefficient_of_one_gives_the_input_back(speakers, name):
    signal = speakers[name].say(seconds=1.5)
    result = mcadams(signal, 1.0)
    assert result.samples.shape == signal.shape
    error = np.mean((result.samples - signal) ** 2) / np.mean(signal**2)
    assert decibels(error) < -100


@pytest.mark.parametrize("length", [320, 321, 479, 480, 481, 16000])
def test_every_length_is_kept(length):
    signal = 0.1 * np.random.default_rng(length).standard_normal(length)
    np.testing.assert_allclose(mcadams(signal, 1.0).samples, signal, atol=1e-7)


@settings(deadline=None)
@given(
    st.floats(0.3, 0.999),
    st.floats(-np.pi, np.pi).filter(lambda angle: abs(angle) > 1e-6),
    st.floats(0.4, 1.3),
)
def test_warped_poles_keep_their_radius_and_their_conjugates(radius, angle, alpha):
    pole = radius * np.exp(1j * angle)
    moved = warp_poles(np.array([pole, np.conj(pole), -radius, radius]), alpha)
    np.testing.assert_allclose(np.abs(moved), radius, rtol=1e-12)
    assert moved[0] == pytest.approx(np.conj(moved[1]), abs=1e-9)
    np.testing.assert_array_equal(moved[2:], [-radius, radius])
    assert abs(np.angle(moved[0])) == pytest.approx(min(abs(angle) ** alpha, np.pi), abs=1e-9)


def resonances(signal: np.ndarray) -> np.ndarray:
    """Frequencies of the four resonances: poles of a filter of order 8 over the whole vowel."""
    frame = (signal * np.hanning(signal.size))[None]
    roots = poles(linear_prediction(frame, 8))[0]
    near = roots[roots.imag > 0]
    return np.sort(np.angle(near) * 16000 / (2 * np.pi))


@pytest.mark.parametrize("alpha", [0.8, 0.9])
def test_formants_move_as_their_angle_to_the_power_alpha(speakers, alpha):
    vowel = speakers["bert"].vowel("a", 1.0, whispered=True)
    before, after = resonances(vowel), resonances(mcadams(vowel, alpha).samples)
    formants = np.array(speakers["bert"].formants("a"))
    knee = 16000 / (2 * np.pi)
    np.testing.assert_allclose(before, formants, rtol=0.02)
    np.testing.assert_allclose(after, knee * (formants / knee) ** alpha, rtol=0.12)
    assert (after > before)[formants < knee].all()
    assert (after < before)[formants > knee].all()


def test_the_level_is_restored(speakers):
    signal = speakers["anna"].say(seconds=1.0)
    result = mcadams(signal, 0.8)
    assert np.mean(result.samples**2) == pytest.approx(np.mean(signal**2), rel=1e-9)
    assert result.guarded_db == 0.0


def test_peaks_never_clip(speakers):
    signal = speakers["anna"].say(seconds=1.0)
    loud = signal / np.abs(signal).max()
    result = mcadams(loud, 0.75)
    assert np.abs(result.samples).max() <= PEAK_CEILING + 1e-12
    lowered = decibels(np.mean(loud**2) / np.mean(result.samples**2))
    assert result.guarded_db == pytest.approx(max(lowered, 0.0), abs=1e-6)


def test_scaling_the_input_scales_the_output(speakers):
    signal = 0.1 * speakers["cleo"].say(seconds=0.5)
    np.testing.assert_allclose(
        mcadams(signal / 4, 0.8).samples, mcadams(signal, 0.8).samples / 4, atol=1e-9
    )


def test_blocks_of_frames_leave_no_seam(speakers, monkeypatch):
    signal = speakers["bert"].say(seconds=1.0)
    whole = mcadams(signal, 0.8).samples
    monkeypatch.setattr(sys.modules["unmask.speech.vocoding"], "FRAMES_PER_BLOCK", 7)
    np.testing.assert_allclose(mcadams(signal, 0.8).samples, whole, atol=1e-9)


@pytest.mark.parametrize(
    ("samples", "alpha"),
    [
        (np.zeros(319), 0.8),
        (np.zeros((2, 400)), 0.8),
        (np.full(400, np.nan), 0.8),
        (np.zeros(400), 0.0),
        (np.zeros(400), float("nan")),
    ],
)
def test_bad_input_is_refused(samples, alpha, sentences):
    with pytest.raises(InputError) as error:
        mcadams(samples, alpha)
    sentences.check(str(error.value))


def test_silence_stays_silence():
    assert not mcadams(np.zeros(1000), 0.8).samples.any()
