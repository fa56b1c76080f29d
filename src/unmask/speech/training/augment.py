"""Noise and rooms added to crops, on the device that trains."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from unmask.speech.training.data import Samples

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
