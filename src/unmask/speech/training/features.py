"""What is heard of crops, on the device that trains: Kaldi filterbanks (Povey et al., 2011), noise
and rooms added to speech.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from unmask.speech.audio import SAMPLE_RATE
from unmask.speech.training.data import Samples

FRAME = 400
"""Samples in a frame: 25 ms."""
HOP = 160
"""Samples between frames: 10 ms."""
_FFT = 512
_PREEMPHASIS = 0.97
_LOWEST_HZ = 20.0
_SMALLEST = torch.finfo(torch.float32).eps


def mel(hertz: float) -> float:
    """The mel scale of Kaldi: 1127 ln(1 + f / 700)."""
    return 1127.0 * math.log(1.0 + hertz / 700.0)


def mel_bands(bins: int) -> Tensor:
    """Triangles of equal width on the mel scale, from 20 Hz to half the sampling rate.

    One row per band, one column per line of the spectrum below the last one.
    """
    low, high = mel(_LOWEST_HZ), mel(SAMPLE_RATE / 2)
    width = (high - low) / (bins + 1)
    hertz = [line * SAMPLE_RATE / _FFT for line in range(_FFT // 2)]
    lines = torch.tensor([mel(one) for one in hertz], dtype=torch.float64)
    left = low + width * torch.arange(bins, dtype=torch.float64)[:, None]
    rising = (lines - left) / width
    return torch.minimum(rising, 2.0 - rising).clamp(min=0.0).float()


class Filterbanks(nn.Module):
    """Samples (batch, time) to log mel filterbanks (batch, frames, bins), as
    :func:`unmask.speech.features.filterbanks` gives them: frames of 25 ms every 10 ms, mean
    removed, pre-emphasis 0.97, Povey window (Hann to the power 0.85), power spectrum, no dither.

    ``centre`` subtracts the mean over time. Always computed in 32-bit floats.
    """

    window: Tensor
    bands: Tensor

    def __init__(self, bins: int = 80, *, centre: bool = True) -> None:
        super().__init__()
        self.bins = bins
        self.centre = centre
        angle = 2.0 * math.pi * torch.arange(FRAME, dtype=torch.float64) / (FRAME - 1)
        window = (0.5 - 0.5 * torch.cos(angle)) ** 0.85
        self.register_buffer("window", window.float(), persistent=False)
        self.register_buffer("bands", mel_bands(bins).T.contiguous(), persistent=False)

    def forward(self, samples: Tensor) -> Tensor:
        with torch.autocast(samples.device.type, enabled=False):
            frames = frames_of(samples)
            before = functional.pad(frames, (1, 0), mode="replicate")[..., :-1]
            spectrum = torch.fft.rfft((frames - _PREEMPHASIS * before) * self.window, n=_FFT)
            power = spectrum.real.square() + spectrum.imag.square()
            features = (power[..., : _FFT // 2] @ self.bands).clamp(min=_SMALLEST).log()
            return features - features.mean(1, keepdim=True) if self.centre else features


def frames_of(samples: Tensor) -> Tensor:
    """Frames (batch, frames, 400) without their means; what does not fill a frame is left out."""
    frames = samples.float().unfold(-1, FRAME, HOP)
    return frames - frames.mean(-1, keepdim=True)


class Cepstra(nn.Module):
    """Mel cepstra of Kaldi with log energy in place of the first: (batch, frames, count).

    The cosine transform of log filterbanks, liftered with 1 + 11 sin(π k / 22); the energy is that
    of the frame before pre-emphasis and window. Not centred.
    """

    transform: Tensor

    def __init__(self, count: int = 24, *, bins: int = 30) -> None:
        super().__init__()
        self.filterbanks = Filterbanks(bins, centre=False)
        order = torch.arange(count, dtype=torch.float64)[:, None]
        place = torch.arange(bins, dtype=torch.float64) + 0.5
        cosines = math.sqrt(2.0 / bins) * torch.cos(math.pi / bins * order * place)
        lifter = 1.0 + 11.0 * torch.sin(math.pi * order / 22.0)
        self.register_buffer("transform", (lifter * cosines).T.float(), persistent=False)

    def forward(self, samples: Tensor) -> Tensor:
        with torch.autocast(samples.device.type, enabled=False):
            frames = frames_of(samples)
            energy = frames.square().sum(-1, keepdim=True).clamp(min=_SMALLEST).log()
            cepstra = self.filterbanks(samples) @ self.transform
            return torch.cat((energy, cepstra[..., 1:]), dim=-1)


def deltas(features: Tensor, window: int = 2) -> Tensor:
    """Regression slopes over ``window`` frames on both sides, ends repeated (Kaldi's deltas):
    Δ_t = Σ_n n (x_{t+n} − x_{t−n}) / (2 Σ_n n²).
    """
    frames = features.shape[1]
    padded = features[:, torch.arange(-window, frames + window).clamp(0, frames - 1)]
    slopes = sum(
        (n * (padded[:, window + n :][:, :frames] - padded[:, window - n :][:, :frames]))
        for n in range(1, window + 1)
    )
    return torch.as_tensor(slopes) / (2.0 * sum(n * n for n in range(1, window + 1)))


LONGEST_RESPONSE = 8000
"""Samples of an impulse response that are used: half a second."""


def responses_of(samples: Samples, device: torch.device) -> Tensor:
    """Impulse responses from their peak on, of unit energy: (count, 8000)."""
    rows = []
    for number in range(len(samples)):
        whole = samples.row(number).astype(np.float32)
        tail = whole[int(np.abs(whole).argmax()) :][:LONGEST_RESPONSE]
        tail = tail / np.linalg.norm(tail)
        rows.append(np.pad(tail, (0, LONGEST_RESPONSE - tail.size)))
    return torch.from_numpy(np.stack(rows)).to(device)


def speech_of(batch: Mapping[str, Tensor], responses: Tensor | None) -> Tensor:
    """Crops as floats in [−1, 1], with noise or in a room where the batch says so."""
    speech = batch["crops"].float() / 32768.0
    if "noise" in batch:
        speech = add_noise(speech, batch["noise"].float() / 32768.0, batch["snr"])
    if responses is not None:
        speech = in_rooms(speech, responses, batch["response"])
    return speech


def add_noise(speech: Tensor, noise: Tensor, snr: Tensor) -> Tensor:
    """Speech with noise ``snr`` decibels below it; where noise is all zeros, speech as it is."""
    power = noise.square().mean(1)
    gain = speech.square().mean(1) / power.clamp(min=1e-12) * 10.0 ** (-snr / 10.0)
    return speech + torch.where(power > 0, gain, 0.0).sqrt()[:, None] * noise


def in_rooms(speech: Tensor, responses: Tensor, numbers: Tensor) -> Tensor:
    """Speech convolved with the response of that number; −1 leaves it as it is."""
    size = speech.shape[1] + responses.shape[1]
    chosen = torch.fft.rfft(responses[numbers.clamp(min=0)], n=size)
    heard = torch.fft.irfft(torch.fft.rfft(speech, n=size) * chosen, n=size)
    return torch.where(numbers[:, None] >= 0, heard[:, : speech.shape[1]], speech)
