"""Audio in and out: any rate and channel count in, 16 kHz mono samples inside."""

from __future__ import annotations

import importlib
import io
import os
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from unmask.base import one_line
from unmask.errors import InputError
from unmask.run import Place, current_place, memory_left, place, write_whole

SAMPLE_RATE = 16000
LOWEST_RATE, HIGHEST_RATE = 1000, 768000
_BLOCK = 1 << 20
_UNKNOWN = 1 << 62
_STREAM = 2**31 - 4096
_COMPANDED = (6, 7)  # the WAV tags of A-law and µ-law
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
    def remarks(self) -> tuple[str, ...]:
        """What a reader should know about how the file was brought to 16 kHz mono."""
        low = f"recorded at {self.rate} Hz: there is nothing above {self.rate / 2000:g} kHz"
        mixed = f"{self.channels} channels: mixed down to their mean"
        return (low,) * (self.rate < SAMPLE_RATE) + (mixed,) * (self.channels > 2)


def needed(module: str, package: str, extra: str) -> ModuleType:
    """Import an optional module, or tell the user how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f"{package} is not installed ({error}): pip install 'unmask[{extra}]'"
        ) from None


def read_audio(path: str | os.PathLike[str]) -> Audio:
    """Read the file ``path`` as 16 kHz mono: channels are averaged, other rates resampled.

    Raises :class:`InputError`, naming the file, if it is missing, not audio, cut short, empty,
    silent, or holds NaN or infinite samples.
    """
    soundfile = needed("soundfile", "soundfile", "audio")
    try:
        with soundfile.SoundFile(os.fspath(path)) as file:
            rate, expected = int(file.samplerate), int(file.frames)
            if not LOWEST_RATE <= rate <= HIGHEST_RATE:
                ends = f"{LOWEST_RATE} to {HIGHEST_RATE}"
                raise InputError(f"{path}: expected {ends} samples a second, found {rate}")
            samples = _samples(file, path)
    except InputError:
        raise
    except (soundfile.SoundFileError, OSError, TypeError, ValueError) as error:
        reason = "no such file" if not Path(path).exists() else f"not readable as audio: {error}"
        raise InputError(f"{path}: {reason}") from None
    if len(samples) < expected < _UNKNOWN:
        raise InputError(f"{path}: cut short: expected {expected} samples, found {len(samples)}")
    _check_header(Path(path))
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
    cluster of the current place where it is one, else on this machine with as many workers as that
    place names; ``alone`` in this process. ``state`` is the folder of what is done.
    """
    here = current_place()
    if alone or here.workers == 1:
        return place(workers=1, state=state)
    return place("processes" if here.here else here.on, workers=here.workers, state=state)


def failure(path: str | os.PathLike[str], error: Exception) -> str:
    """The line of a recording that failed: an :class:`InputError` says what is wrong with it."""
    if not isinstance(error, InputError):
        return f"{path}: {type(error).__name__}: {one_line(str(error)) or 'no reason given'}"
    return str(error) if str(error).startswith(os.fspath(path)) else f"{path}: {error}"


def _check_header(path: Path) -> None:
    """WAV and AIFF files state their length; libsndfile reads a shorter one without a word, and
    companded samples whatever number of bits is stated.

    Lengths of 0 and of 2 GB or more are those of a stream whose end was not known.
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
    """Write ``samples``, 16 kHz mono, to ``path`` as 16-bit WAV or FLAC (by suffix), whole or not
    at all.
    """
    soundfile = needed("soundfile", "soundfile", "audio")
    kind = Path(path).suffix.lower()
    if kind not in (".wav", ".flac"):
        raise InputError(f"{path}: expected a name that ends in .wav or .flac")
    content = io.BytesIO()
    soundfile.write(content, samples, SAMPLE_RATE, subtype="PCM_16", format=kind[1:].upper())
    write_whole(Path(path), content.getvalue())
