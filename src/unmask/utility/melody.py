"""Melody: how well the pitch of protected speech follows that of the original."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray
from unmask.speech import SAMPLE_RATE, needed

LEAST_FRAMES = 10


class Melody(NamedTuple):
    """``rho_f0``: Pearson's correlation of F0 over frames voiced in both (the pitch correlation
    ρ^F0 of the VoicePrivacy 2022 challenge); ``semitones``: mean shift, 12·log2 of the ratio. NaN
    with fewer than ten such frames, and ρ where a pitch does not move.
    """

    rho_f0: float
    semitones: float


def pitch(samples: npt.ArrayLike) -> FloatArray:
    """F0 in Hz every 5 ms, 0 where unvoiced: WORLD's DIO and StoneMask."""
    world: Any = needed("pyworld", "pyworld-prebuilt", "utility")
    signal = np.ascontiguousarray(samples, dtype=np.float64)
    rough, times = world.dio(signal, SAMPLE_RATE)
    return np.asarray(world.stonemask(signal, rough, times, SAMPLE_RATE))


def melody(original: FloatArray, protected: FloatArray) -> Melody:
    """Compare two tracks of pitch; where one is longer, the other is stretched to its frames."""
    length = max(original.size, protected.size)
    first, second = (_stretched(track, length) for track in (original, protected))
    both = (first > 0.0) & (second > 0.0)
    if both.sum() < LEAST_FRAMES:
        return Melody(float("nan"), float("nan"))
    a, b = first[both], second[both]
    shift = float(np.mean(12.0 * np.log2(b / a)))
    a, b = a - a.mean(), b - b.mean()
    power = float(np.sqrt(np.sum(a**2) * np.sum(b**2)))
    return Melody(float(np.sum(a * b)) / power if power > 0.0 else float("nan"), shift)


def _stretched(track: FloatArray, length: int) -> FloatArray:
    """The frame nearest in relative time; voicing is not interpolated."""
    if track.size == length or not track.size:
        return track if track.size else np.zeros(length)
    place = np.rint(np.linspace(0, track.size - 1, length)).astype(np.int64)
    return np.asarray(track[place])
