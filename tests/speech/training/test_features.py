"""Filterbanks in torch against Kaldi's own code and against definitions written out."""

from __future__ import annotations

import numpy as np
import pytest

from unmask.speech.audio import filterbanks

torch = pytest.importorskip("torch")


@pytest.fixture
def speech() -> np.ndarray:
    generator = np.random.default_rng(0)
    wave = np.cumsum(generator.standard_normal((3, 9000)), axis=1)
    wave = wave - wave.mean(axis=1, keepdims=True) + 3.0 * generator.standard_normal((3, 9000))
    return (0.1 * wave / wave.std()).astype(np.float32)


@pytest.mark.parametrize("bins", [80, 30])
def test_filterbanks_are_those_of_kaldi(speech, bins):
    from unmask.speech.encoders.neural import Filterbanks

    batched = Filterbanks(bins)(torch.from_numpy(speech)).numpy()
    for one, samples in zip(batched, speech, strict=True):
        np.testing.assert_allclose(one, filterbanks(samples, bins=bins), rtol=2e-5, atol=1e-4)


def test_cepstra_are_those_of_kaldi(speech):
    kaldi = pytest.importorskip("kaldi_native_fbank")
    from unmask.speech.encoders.neural import Cepstra

    options = kaldi.MfccOptions()
    options.frame_opts.samp_freq, options.frame_opts.dither = 16000, 0.0
    options.mel_opts.num_bins, options.num_ceps, options.use_energy = 30, 24, True
    computer = kaldi.OnlineMfcc(options)
    computer.accept_waveform(16000, speech[0])
    computer.input_finished()
    wanted = np.stack([computer.get_frame(n) for n in range(computer.num_frames_ready)])
    result = Cepstra(24, bins=30)(torch.from_numpy(speech[:1]))[0].numpy()
    np.testing.assert_allclose(result, wanted, atol=1e-3)


def test_deltas_are_slopes():
    from unmask.speech.encoders.neural import deltas

    features = torch.arange(40.0).reshape(1, 10, 4) ** 1.5
    result = deltas(features)
    for t in range(10):
        at = lambda n, t=t: features[0, min(max(t + n, 0), 9)]  # noqa: E731
        wanted = sum(n * (at(n) - at(-n)) for n in (1, 2)) / 10.0
        torch.testing.assert_close(result[0, t], wanted)


def test_a_straight_line_has_its_slope():
    from unmask.speech.encoders.neural import deltas

    line = 3.0 * torch.arange(12.0).reshape(1, 12, 1)
    torch.testing.assert_close(deltas(line)[0, 2:-2], torch.full((8, 1), 3.0))
