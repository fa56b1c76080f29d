"""Voice activity: which parts of a recording hold speech."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.ndimage import binary_dilation

from unmask.base import BoolArray
from unmask.speech.audio import SAMPLE_RATE, needed

WINDOW = 480
"""Samples in one decision: 30 ms."""
SMOOTHING = 8
LONGEST_PAUSE = 6
MODE = 3
"""The detector's strictest setting."""


def without_pauses(samples: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Shorten pauses: keep windows of 30 ms with speech, smoothed over 8 and widened by 3.

    Samples after the last whole window are dropped. The result is empty if no speech is found.
    """
    whole = samples[: samples.size - samples.size % WINDOW]
    return whole[np.repeat(_speech(whole), WINDOW)]


def levelled(
    samples: npt.NDArray[np.float32], *, decibels: float = -30.0
) -> npt.NDArray[np.float32]:
    """Raise a quiet recording to a root mean square of ``decibels``; leave a loud one alone."""
    level = 20.0 * np.log10(np.sqrt(np.mean(samples.astype(np.float64) ** 2)))
    if level >= decibels:
        return samples
    return np.asarray(samples * 10.0 ** ((decibels - level) / 20.0), dtype=np.float32)


def _speech(samples: npt.NDArray[np.float32]) -> BoolArray:
    detector = needed("webrtcvad", "webrtcvad-wheels", "speech").Vad(MODE)
    integers = np.round(np.clip(samples, -1.0, 1.0) * 32767).astype("<i2")
    flags = np.array(
        [detector.is_speech(window.tobytes(), SAMPLE_RATE) for window in _windows(integers)],
        dtype=np.float64,
    )
    if not flags.size:
        return np.zeros(0, dtype=np.bool_)
    padded = np.pad(flags, ((SMOOTHING - 1) // 2, SMOOTHING // 2))
    smooth = np.convolve(padded, np.full(SMOOTHING, 1.0 / SMOOTHING), mode="valid")
    return np.asarray(binary_dilation(np.round(smooth) > 0, np.ones(LONGEST_PAUSE + 1)))


def _windows(integers: npt.NDArray[np.int16]) -> npt.NDArray[np.int16]:
    return integers.reshape(-1, WINDOW)
