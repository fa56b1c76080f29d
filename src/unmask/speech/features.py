"""What encoders hear: speech without pauses, Kaldi filterbanks, the mel spectrogram of GE2E."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from unmask.errors import InputError
from unmask.speech.audio import SAMPLE_RATE, needed

Float32Array = npt.NDArray[np.float32]

SHORTEST = 400
"""Samples in one frame of 25 ms at 16 kHz: nothing shorter has any features."""
WINDOW = 480
"""Samples in one decision: 30 ms."""
SMOOTHING = 8
LONGEST_PAUSE = 6
MODE = 3
"""The detector's strictest setting."""
_KNEE_HZ = 1000.0
_HZ_PER_MEL = 200.0 / 3.0
_KNEE = _KNEE_HZ / _HZ_PER_MEL
_LOG_STEP = float(np.log(6.4)) / 27.0


def filterbanks(
    samples: npt.ArrayLike, *, bins: int = 80, scale: float = 1.0, centre: bool = True
) -> Float32Array:
    """Log mel filterbanks as Kaldi computes them: 25 ms Povey windows every 10 ms, no dither.

    ``scale`` multiplies the samples first (Kaldi's own tools expect 16-bit integers: 32768);
    ``centre`` subtracts the mean over time.
    """
    kaldi = needed("kaldi_native_fbank", "kaldi-native-fbank", "speech")
    signal = np.asarray(samples, dtype=np.float32)
    if signal.ndim != 1:
        raise InputError(f"samples: expected one channel, found shape {signal.shape}")
    if signal.size < SHORTEST:
        raise InputError(
            f"{signal.size} samples: expected at least one frame of {SHORTEST} (25 ms at 16 kHz)"
        )
    options = kaldi.FbankOptions()
    options.frame_opts.samp_freq = SAMPLE_RATE
    options.frame_opts.dither = 0.0
    options.mel_opts.num_bins = bins
    computer = kaldi.OnlineFbank(options)
    computer.accept_waveform(SAMPLE_RATE, np.ascontiguousarray(scale * signal))
    computer.input_finished()
    features = np.stack([computer.get_frame(i) for i in range(computer.num_frames_ready)])
    return features - features.mean(axis=0) if centre else features


def mel_spectrogram(samples: npt.ArrayLike, *, bands: int = 40) -> Float32Array:
    """Mel power spectrogram (not its logarithm): 25 ms periodic Hann windows every 10 ms.

    Frames are centred on multiples of 10 ms, with zeros beyond the ends of the signal.
    """
    signal = np.pad(np.asarray(samples, dtype=np.float32), SHORTEST // 2)
    window = np.hanning(SHORTEST + 1)[:-1].astype(np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(signal, SHORTEST)[:: SAMPLE_RATE // 100]
    power = np.abs(np.fft.rfft(frames * window, axis=1)) ** 2
    return (power @ slaney_bands(bands).T).astype(np.float32)


@cache
def slaney_bands(bands: int) -> npt.NDArray[np.float64]:
    """Triangular bands of equal area on Slaney's scale: linear to 1 kHz, logarithmic above."""
    top = _KNEE + float(np.log(SAMPLE_RATE / 2 / _KNEE_HZ)) / _LOG_STEP
    mel = np.linspace(0.0, top, bands + 2)[:, None]
    above = _KNEE_HZ * np.exp(_LOG_STEP * (mel - _KNEE))
    corners = np.where(mel < _KNEE, mel * _HZ_PER_MEL, above)
    frequency = np.fft.rfftfreq(SHORTEST, 1 / SAMPLE_RATE)
    rising = (frequency - corners[:-2]) / (corners[1:-1] - corners[:-2])
    falling = (corners[2:] - frequency) / (corners[2:] - corners[1:-1])
    triangles = np.maximum(np.minimum(rising, falling), 0.0)
    return np.asarray(triangles * 2.0 / (corners[2:] - corners[:-2]))


def without_pauses(samples: Float32Array) -> Float32Array:
    """Shorten pauses: keep windows of 30 ms with speech, smoothed over 8 and widened by 3.

    Samples after the last whole window are dropped. The result is empty if no speech is found.
    """
    from scipy.ndimage import binary_dilation

    detector = needed("webrtcvad", "webrtcvad-wheels", "speech").Vad(MODE)
    whole = samples[: samples.size - samples.size % WINDOW]
    if not whole.size:
        return whole
    integers = np.round(np.clip(whole, -1.0, 1.0) * 32767).astype("<i2").reshape(-1, WINDOW)
    flags = [detector.is_speech(window.tobytes(), SAMPLE_RATE) for window in integers]
    padded = np.pad(np.array(flags, float), ((SMOOTHING - 1) // 2, SMOOTHING // 2))
    smooth = np.convolve(padded, np.full(SMOOTHING, 1.0 / SMOOTHING), mode="valid")
    speech = binary_dilation(np.round(smooth) > 0, np.ones(LONGEST_PAUSE + 1))
    return np.asarray(whole[np.repeat(speech, WINDOW)])


def levelled(samples: Float32Array, *, decibels: float = -30.0) -> Float32Array:
    """Raise a quiet recording to a root mean square of ``decibels``; leave a loud one alone."""
    level = 20.0 * np.log10(np.sqrt(np.mean(samples.astype(np.float64) ** 2)))
    if level >= decibels:
        return samples
    return np.asarray(samples * 10.0 ** ((decibels - level) / 20.0), dtype=np.float32)
