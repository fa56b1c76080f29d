"""Audio in and out, 16 kHz mono inside; and what encoders hear of it: speech without pauses, Kaldi
filterbanks, the mel spectrogram of GE2E.
"""

from __future__ import annotations

import importlib
import io
import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from unmask._extras import MissingExtra
from unmask.base import one_line
from unmask.errors import InputError
from unmask.run import (
    Place,
    current_place,
    memory_left,
    run_on,
    scratch_folder,
    within,
    write_whole,
)
from unmask.trials import Sound

SAMPLE_RATE = 16000
LOWEST_RATE, HIGHEST_RATE = 1000, 768000
_BLOCK = 1 << 20
_SLACK = 0.025
_UNKNOWN = 1 << 62
_STREAM = 2**31 - 4096
_COMPANDED = (6, 7)  # the WAV tags of A-law and µ-law
FULL_SCALE = 1.0 - 2.0**-14
SILENCE, BELOW_LOUDEST = -60.0, 40.0
"""A window is silent below this many dB, or by as many below the loudest of its recording."""
SUFFIXES = frozenset({".wav", ".flac", ".ogg", ".mp3", ".opus", ".aif", ".aiff"})


@dataclass(frozen=True)
class Audio:
    """Mono samples at 16 kHz, and the rate and channel count of the file they come from."""

    samples: npt.NDArray[np.float32]
    rate: int
    channels: int

    @property
    def seconds(self) -> float:
        return self.samples.size / SAMPLE_RATE

    @property
    def sound(self) -> Sound:
        """What it is like, whatever is said in it."""
        share = clipped(self.samples)
        return Sound(self.seconds, level(self.samples), silent(self.samples), share, self.rate)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader should know about how the file was brought to 16 kHz mono."""
        low = f"recorded at {self.rate} Hz: there is nothing above {self.rate / 2000:g} kHz"
        mixed = f"{self.channels} channels: mixed down to their mean"
        return (low,) * (self.rate < SAMPLE_RATE) + (mixed,) * (self.channels > 2)


def level(samples: npt.ArrayLike) -> float:
    """Root mean square in dB below full scale."""
    power = float(np.mean(np.square(samples, dtype=np.float64)))
    return 10.0 * float(np.log10(power)) if power > 0.0 else -float("inf")


def clipped(samples: npt.ArrayLike) -> float:
    """Share of samples that stand at full scale beside another that does."""
    full = np.abs(samples) >= FULL_SCALE
    beside = np.zeros_like(full)
    beside[1:] |= full[:-1]
    beside[:-1] |= full[1:]
    return float(np.mean(full & beside))


def silent(samples: npt.NDArray[np.float32]) -> float:
    """Share of windows of 30 ms that are silent; all of what is shorter is one window."""
    length = min(WINDOW, samples.size)
    windows = samples[: samples.size - samples.size % length].reshape(-1, length)
    power = np.square(windows, dtype=np.float64).mean(axis=1)
    least = max(10 ** (SILENCE / 10), power.max() * 10 ** (-BELOW_LOUDEST / 10))
    return float(np.mean(power < least))


_WHOLE = {"audio": "speech", "torch": "speech"}
"""Extras that are a part of another one, which is the one to install."""


def needed(module: str, package: str, extra: str) -> ModuleType:
    """Import an optional module, or tell the user how to get it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError:
        extra = _WHOLE.get(extra, extra)
        raise MissingExtra(
            f"{package} is not installed: it comes with the extra {extra}:"
            f" pip install 'unmask[{extra}]', or pip install '.[{extra}]' in a checkout"
        ) from None
    except ImportError as error:
        raise InputError(f"{package} is installed and cannot be loaded: {error}") from None


def cut_of(path: str | os.PathLike[str]) -> tuple[Path, tuple[float, float] | None]:
    """The file of ``talk.wav#t=1.5,4.25``, and the seconds from where to where it is meant."""
    found = re.fullmatch(r"(.+)#t=([0-9.]+),([0-9.]+)", os.fspath(path))
    return (Path(found[1]), (float(found[2]), float(found[3]))) if found else (Path(path), None)


@contextmanager
def as_file(path: str | os.PathLike[str], audio: Audio) -> Iterator[str]:
    """The name of a file that holds the recording ``path`` alone; of a cut, a temporary one."""
    if cut_of(path)[1] is None:
        yield str(path)
        return
    with scratch_folder() as folder:
        write_audio(folder / "cut.wav", audio.samples)
        yield str(folder / "cut.wav")


def read_audio(path: str | os.PathLike[str]) -> Audio:
    """Read ``path``, a file or a cut of one (:func:`cut_of`), as 16 kHz mono: channels are
    averaged, other rates resampled.

    Raises :class:`InputError`, naming the file, if it is missing, not audio, cut short, empty,
    silent, or holds NaN or infinite samples.
    """
    soundfile = needed("soundfile", "soundfile", "audio")
    place, cut = cut_of(path)
    try:
        with soundfile.SoundFile(os.fspath(place)) as file:
            rate, expected = int(file.samplerate), int(file.frames)
            if not LOWEST_RATE <= rate <= HIGHEST_RATE:
                ends = f"{LOWEST_RATE} to {HIGHEST_RATE}"
                raise InputError(f"{path}: expected {ends} samples a second, found {rate}")
            if cut is not None:
                first, last = (round(seconds * rate) for seconds in cut)
                last = expected if expected < last <= expected + _SLACK * rate else last
                if not first < last <= expected:
                    found = f"one of {expected / rate:g} s"
                    raise InputError(path, "a cut that lies in its recording", found)
                file.seek(first)
                samples = file.read(last - first, dtype="float32", always_2d=True)
                expected = last - first
            else:
                samples = _samples(file, path)
    except InputError:
        raise
    except (soundfile.SoundFileError, OSError, TypeError, ValueError) as error:
        reason = "no such file" if not place.exists() else f"not readable as audio: {error}"
        raise InputError(f"{path}: {reason}") from None
    if len(samples) < expected < _UNKNOWN:
        raise InputError(f"{path}: cut short: expected {expected} samples, found {len(samples)}")
    _check_header(place)
    channels = int(samples.shape[1])
    mono = samples.mean(axis=1) if channels > 1 else samples[:, 0]
    if mono.size == 0:
        raise InputError(f"{path}: expected audio, found no samples")
    if not np.isfinite(mono).all():
        bad = int((~np.isfinite(mono)).sum())
        raise InputError(f"{path}: {bad} of {mono.size} samples are NaN or infinite")
    if not mono.any():
        raise InputError(f"{path}: silent: all {mono.size} samples are 0")
    if rate != SAMPLE_RATE:
        mono = needed("soxr", "soxr", "audio").resample(mono, rate, SAMPLE_RATE, quality="HQ")
    return Audio(np.ascontiguousarray(mono, dtype=np.float32), rate, channels)


def _samples(file: Any, path: str | os.PathLike[str]) -> npt.NDArray[np.float32]:
    """All samples, block by block: a header may promise any number of them, or not know it."""
    blocks, size, most = [], 0, memory_left() // 8
    file.seekable = lambda: False  # positions are unknown where the length is
    frames = max(1, _BLOCK // file.channels)
    while (block := file.read(frames, dtype="float32", always_2d=True)).size:
        blocks.append(block)
        size += block.nbytes
        if size > most:
            raise InputError(f"{path}: expected at most {most / 1e9:.1f} GB of samples, found more")
    return np.concatenate(blocks) if blocks else np.zeros((0, 1), np.float32)


def file_workers(*, alone: bool, state: Path | None = None) -> AbstractContextManager[Place]:
    """Meanwhile jobs over files run in processes, since threads would wait for each other: on the
    current place where it is a cluster, else here; ``alone`` in this process.
    """
    here = current_place()
    if alone or here.workers == 1:
        return run_on(workers=1, state=state)
    if here.here:
        return run_on("processes", workers=here.workers, state=state)
    return within(replace(here, state=state))


def failure(path: str | os.PathLike[str], error: Exception) -> str:
    """The line of a recording that failed: an :class:`InputError` says what is wrong with it."""
    if not isinstance(error, InputError):
        return f"{path}: {type(error).__name__}: {one_line(str(error)) or 'no reason given'}"
    return str(error) if str(error).startswith(os.fspath(path)) else f"{path}: {error}"


def _check_header(path: Path) -> None:
    """WAV and AIFF files state their length (0 and 2 GB or more are those of a stream): libsndfile
    reads a shorter one without a word, and companded samples whatever number of bits is stated.
    """
    actual = path.stat().st_size
    with open(path, "rb") as file:
        head = file.read(12)
        order: Literal["little", "big"] = "little" if head.startswith(b"RIFF") else "big"
        if head[:4] not in (b"RIFF", b"RIFX", b"FORM"):
            return
        stated = int.from_bytes(head[4:8], order) + 8
        stated = stated if 8 < stated < _STREAM else actual
        end = stated - 1
        while file.tell() < stated and len(part := file.read(8)) == 8:
            size = int.from_bytes(part[4:], order)
            if part[:4] in (b"data", b"SSND"):
                end = max(end, file.tell() + size) if 0 < size < _STREAM else 0
                break
            start = file.tell()
            if part[:4] == b"fmt " and len(layout := file.read(16)) == 16:
                bits = int.from_bytes(layout[14:16], order)
                if int.from_bytes(layout[:2], order) in _COMPANDED and bits != 8:
                    raise InputError(f"{path}: expected 8 bits a companded sample, found {bits}")
            file.seek(start + size + size % 2)
    if actual < end:
        raise InputError(f"{path}: cut short: expected {end} bytes, found {actual}")


def write_audio(path: str | os.PathLike[str], samples: npt.ArrayLike) -> None:
    """Write ``samples``, 16 kHz mono, to ``path``, 16-bit WAV or FLAC (by suffix), whole or not."""
    soundfile = needed("soundfile", "soundfile", "audio")
    kind = Path(path).suffix.lower()
    if kind not in (".wav", ".flac"):
        raise InputError(f"{path}: expected a name that ends in .wav or .flac")
    content = io.BytesIO()
    soundfile.write(content, samples, SAMPLE_RATE, subtype="PCM_16", format=kind[1:].upper())
    write_whole(Path(path), content.getvalue())


Float32Array = npt.NDArray[np.float32]

FRAME, HOP = 400, 160
"""Samples of a frame, 25 ms at 16 kHz, and between frames: nothing shorter has any features."""
FFT, PREEMPHASIS, LOWEST_HZ, SMALLEST = 512, 0.97, 20.0, float(np.finfo(np.float32).eps)
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
    """Log mel filterbanks as Kaldi computes them (25 ms Povey windows every 10 ms, no dither) of
    ``scale`` times the samples (Kaldi expects 32768), less their mean over time if ``centre``.
    """
    from scipy import fft  # numpy's takes several times as long

    signal = np.asarray(samples, dtype=np.float32)
    if signal.ndim != 1:
        raise InputError(f"samples: expected one channel, found shape {signal.shape}")
    if signal.size < FRAME:
        raise InputError(
            f"{signal.size} samples: expected at least one frame of {FRAME} (25 ms at 16 kHz)"
        )
    frames = np.lib.stride_tricks.sliding_window_view(np.float32(scale) * signal, FRAME)[::HOP]
    frames = frames - frames.mean(axis=1, keepdims=True)
    before = np.concatenate((frames[:, :1], frames[:, :-1]), axis=1)
    windowed = (frames - PREEMPHASIS * before) * povey_window()
    spectrum = fft.rfft(windowed.astype(np.float64), FFT)
    power = (np.square(spectrum.real) + np.square(spectrum.imag)).astype(np.float32)
    bands: Float32Array = power[:, : FFT // 2] @ mel_bands(bins)
    features = np.log(np.maximum(bands, SMALLEST))
    return features - features.mean(axis=0) if centre else features


@cache
def povey_window() -> Float32Array:
    """A Hann window to the power of 0.85."""
    return np.asarray(np.hanning(FRAME) ** 0.85, dtype=np.float32)


@cache
def mel_bands(bins: int) -> Float32Array:
    """Triangles of equal width on Kaldi's mel scale, 1127 ln(1 + f / 700), from 20 Hz to half the
    sampling rate: (lines, bins).
    """
    hertz = np.append(np.arange(FFT // 2) * SAMPLE_RATE / FFT, (LOWEST_HZ, SAMPLE_RATE / 2))
    *lines, low, high = 1127.0 * np.log1p(hertz / 700.0)
    width = (high - low) / (bins + 1)
    rising = (np.array(lines)[:, None] - low) / width - np.arange(bins)
    triangles = np.minimum(rising, 2.0 - rising).clip(min=0.0)
    return np.ascontiguousarray(triangles, dtype=np.float32)


def mel_spectrogram(samples: npt.ArrayLike, *, bands: int = 40) -> Float32Array:
    """Mel power spectrogram: 25 ms periodic Hann windows centred on multiples of 10 ms."""
    from scipy import fft

    signal = np.pad(np.asarray(samples, dtype=np.float32), FRAME // 2)
    window = np.hanning(FRAME + 1)[:-1].astype(np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(signal, FRAME)[:: SAMPLE_RATE // 100]
    power = np.abs(fft.rfft(frames * window, axis=1)) ** 2
    return np.asarray(power @ slaney_bands(bands).T, dtype=np.float32)


@cache
def slaney_bands(bands: int) -> npt.NDArray[np.float64]:
    """Triangular bands of equal area on Slaney's scale: linear to 1 kHz, logarithmic above."""
    top = _KNEE + float(np.log(SAMPLE_RATE / 2 / _KNEE_HZ)) / _LOG_STEP
    mel = np.linspace(0.0, top, bands + 2)[:, None]
    above = _KNEE_HZ * np.exp(_LOG_STEP * (mel - _KNEE))
    corners = np.where(mel < _KNEE, mel * _HZ_PER_MEL, above)
    frequency = np.fft.rfftfreq(FRAME, 1 / SAMPLE_RATE)
    rising = (frequency - corners[:-2]) / (corners[1:-1] - corners[:-2])
    falling = (corners[2:] - frequency) / (corners[2:] - corners[1:-1])
    triangles = np.maximum(np.minimum(rising, falling), 0.0)
    return np.asarray(triangles * 2.0 / (corners[2:] - corners[:-2]))


def without_pauses(samples: Float32Array) -> Float32Array:
    """Keep whole windows of 30 ms with speech, smoothed over 8 and widened by 3; maybe none."""
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


def levelled(samples: Float32Array) -> Float32Array:
    """Raise a quiet recording to a root mean square of −30 dB; leave a loud one alone."""
    level = 20.0 * np.log10(np.sqrt(np.mean(samples.astype(np.float64) ** 2)))
    return np.asarray(samples * 10.0 ** (max(-30.0 - level, 0.0) / 20.0), dtype=np.float32)
