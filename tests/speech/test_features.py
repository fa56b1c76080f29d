from __future__ import annotations

import numpy as np
import pytest

from unmask.errors import InputError
from unmask.speech.audio import filterbanks, mel_spectrogram, slaney_bands


def kaldi_by_definition(samples: np.ndarray, bins: int) -> np.ndarray:
    """Kaldi's filterbank written out: DC off, pre-emphasis, Povey window, power, mel, log."""
    count = 1 + (samples.size - 400) // 160
    frames = np.stack([samples[160 * n : 160 * n + 400] for n in range(count)]).astype(float)
    frames -= frames.mean(axis=1, keepdims=True)
    before = np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
    frames -= 0.97 * before
    frames *= (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 399)) ** 0.85
    power = np.abs(np.fft.rfft(frames, 512, axis=1)) ** 2

    def mel(hertz):
        return 1127 * np.log1p(hertz / 700)

    edges = np.linspace(mel(20.0), mel(8000.0), bins + 2)
    at = mel(np.arange(257) * 16000 / 512)
    bands = np.zeros((bins, 257))
    for b in range(bins):
        left, middle, right = edges[b : b + 3]
        up, down = (at - left) / (middle - left), (right - at) / (right - middle)
        bands[b] = np.clip(np.minimum(up, down), 0, None)
    bands[:, 256] = 0.0
    return np.log(np.maximum(power @ bands.T, np.finfo(np.float32).eps))


def test_filterbanks_are_kaldis(speakers):
    samples = speakers["bert"].say(seconds=1.0)
    expected = kaldi_by_definition(samples, 80)
    result = filterbanks(samples, centre=False)
    assert result.shape == expected.shape
    np.testing.assert_allclose(result, expected, atol=1e-3)
    normalised = filterbanks(samples)
    np.testing.assert_allclose(normalised, expected - expected.mean(axis=0), atol=1e-3)


def test_filterbanks_are_those_of_kaldis_own_code(speakers):
    kaldi = pytest.importorskip("kaldi_native_fbank")
    noise = 1e-3 * np.random.default_rng(0).standard_normal(20000)  # a band of 0 has no logarithm
    samples = (speakers["anna"].say(seconds=1.3)[:20000] + noise).astype(np.float32)
    options = kaldi.FbankOptions()
    options.frame_opts.dither, options.mel_opts.num_bins = 0.0, 80
    computer = kaldi.OnlineFbank(options)
    computer.accept_waveform(16000, 32768.0 * samples)
    computer.input_finished()
    expected = np.stack([computer.get_frame(n) for n in range(computer.num_frames_ready)])
    result = filterbanks(samples, scale=32768.0, centre=False)
    np.testing.assert_allclose(result, expected, atol=1e-3)


def test_scale_only_shifts_uncentred_features():
    samples = 0.1 * np.random.default_rng(0).standard_normal(8000)
    plain, scaled = filterbanks(samples, centre=False), filterbanks(samples, centre=False, scale=8)
    np.testing.assert_allclose(scaled - plain, 2 * np.log(8), atol=1e-3)


def test_too_short_is_an_error(sentences):
    with pytest.raises(InputError) as error:
        filterbanks(np.ones(399))
    sentences.check(str(error.value))


def test_mel_spectrogram_is_the_power_of_each_band(speakers):
    samples = speakers["cleo"].say(seconds=0.3)
    result = mel_spectrogram(samples)
    assert result.shape == (1 + samples.size // 160, 40)
    frame = samples[10 * 160 - 200 : 10 * 160 + 200]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    angles = np.exp(-2j * np.pi * np.outer(np.arange(201), np.arange(400)) / 400)
    expected = slaney_bands(40) @ np.abs(angles @ (frame * window)) ** 2
    np.testing.assert_allclose(result[10], expected, rtol=1e-4, atol=1e-9)


def test_slaney_bands():
    bands = slaney_bands(40)
    # Each triangle has area 1 over frequency; narrow ones are sampled too coarsely to show it.
    np.testing.assert_allclose(bands[25:].sum(axis=1) * 40.0, 1.0, rtol=0.05)
    centres = bands.argmax(axis=1) * 40.0
    assert (np.diff(centres) >= 0).all()
    # The scale is linear, 66.7 Hz a step, up to 1 kHz = 15, and reaches 45.2456 at 8 kHz.
    step = 45.2456 / 41
    assert centres[5] == pytest.approx(6 * step * 200 / 3, abs=20)
