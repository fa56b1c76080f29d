"""Encoders that are networks of torch, built in or folders of :func:`unmask.speech.train`; and what
they hear, Kaldi filterbanks and cepstra (Povey et al., 2011), on any device.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from unmask.errors import InputError
from unmask.speech.audio import (
    SAMPLE_RATE,
    Float32Array,
    filterbanks,
    levelled,
    mel_spectrogram,
    without_pauses,
)
from unmask.speech.encoders import weights_of
from unmask.speech.encoders.card import fingerprint_of_folder, recipe_of, weights_of_folder
from unmask.speech.encoders.networks import GE2E, CamPlusPlus, build

FRAME = 400
"""Samples in a frame: 25 ms."""
HOP = 160
"""Samples between frames: 10 ms."""
_FFT = 512
_PREEMPHASIS = 0.97
_LOWEST_HZ = 20.0
_SMALLEST = torch.finfo(torch.float32).eps


def mel_bands(bins: int) -> Tensor:
    """Triangles of equal width on Kaldi's mel scale, 1127 ln(1 + f / 700), from 20 Hz to half the
    sampling rate: (bins, lines).
    """
    line = torch.arange(_FFT // 2, dtype=torch.float64) * SAMPLE_RATE / _FFT
    ends = torch.tensor([_LOWEST_HZ, SAMPLE_RATE / 2], dtype=torch.float64)
    lines, (low, high) = (1127.0 * torch.log(1.0 + hertz / 700.0) for hertz in (line, ends))
    width = (high - low) / (bins + 1)
    left = low + width * torch.arange(bins, dtype=torch.float64)[:, None]
    rising = (lines - left) / width
    return torch.minimum(rising, 2.0 - rising).clamp(min=0.0).float()


class Filterbanks(nn.Module):
    """Samples (batch, time) to log mel filterbanks (batch, frames, bins), as
    :func:`unmask.speech.audio.filterbanks` gives them, always in 32-bit floats.
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
    """Mel cepstra of Kaldi, (batch, frames, count), liftered with 1 + 11 sin(π k / 22), the log
    energy of the frame in place of the first; not centred.
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


def deltas(features: Tensor) -> Tensor:
    """Regression slopes over two frames on both sides, ends repeated (Kaldi's deltas):
    Δ_t = Σ_n n (x_{t+n} − x_{t−n}) / (2 Σ_n n²).
    """
    frames = features.shape[1]
    padded = features[:, torch.arange(-2, frames + 2).clamp(0, frames - 1)]
    one, two = (padded[:, 2 + n :][:, :frames] - padded[:, 2 - n :][:, :frames] for n in (1, 2))
    return (one + 2 * two) / 10.0


_THREADS = threading.Lock()
_BATCH = 32
"""Recordings at once on a GPU; a processor core has no cache for more than one."""


def checked(device: str) -> torch.device:
    """A device of this machine, or a line that says there is none."""
    try:
        known = torch.device(device)
    except RuntimeError:
        raise InputError(f"device: expected cpu, cuda or cuda:N, found {device}") from None
    if known.type != "cuda":
        return known
    if (known.index or 0) >= (count := torch.cuda.device_count()):
        raise InputError(f"device {device}: found {count} CUDA devices")
    return torch.device("cuda", known.index or 0)


@contextmanager
def inference(device: torch.device) -> Iterator[None]:
    """No gradients, and one thread on a CPU: the number of cores changes no bit of a vector."""
    with torch.inference_mode():
        if device.type != "cpu":
            yield
            return
        with _THREADS:
            before = torch.get_num_threads()
            torch.set_num_threads(1)
            try:
                yield
            finally:
                torch.set_num_threads(before)


def by_length(
    rows: Sequence[Float32Array], forward: Callable[[Tensor], Tensor], device: torch.device
) -> Float32Array:
    """Vectors of samples or features, in the order given; those of equal length at once."""
    batch = 1 if device.type == "cpu" else _BATCH
    order = sorted(range(len(rows)), key=lambda n: len(rows[n]))
    vectors: dict[int, Float32Array] = {}
    with inference(device):
        for _, group in groupby(order, key=lambda n: len(rows[n])):
            members = list(group)
            for start in range(0, len(members), batch):
                some = members[start : start + batch]
                stacked = torch.from_numpy(np.stack([rows[n] for n in some])).to(device)
                vectors |= dict(zip(some, forward(stacked).float().cpu().numpy(), strict=True))
    return np.stack([vectors[n] for n in range(len(rows))])


class Published:
    """A network with the weights of a built-in encoder."""

    name: str
    kind: type[nn.Module]

    def __init__(self, device: str) -> None:
        self.device = checked(device)
        weights = weights_of(self.name)
        self.fingerprint = weights.fingerprint
        state = torch.load(weights.checked(), weights_only=True, map_location="cpu")
        state = state.get("model_state", state)
        self.network = self.kind()
        kept = {k: v for k, v in state.items() if not k.startswith("similarity")}
        self.network.load_state_dict(kept)
        self.network.eval().to(self.device)


class CamPlusPlusEncoder(Published):
    """CAM++ (192 dimensions): the default."""

    name, kind, shortest = "campplus", CamPlusPlus, 720

    def encode(self, recordings: Sequence[Float32Array]) -> Float32Array:
        return by_length([filterbanks(one) for one in recordings], self.network, self.device)


class ResemblyzerEncoder(Published):
    """GE2E (256 dimensions), light and weaker: raised to −30 dB, pauses shortened, the mean of unit
    vectors of windows of 1.6 s, 0.77 s apart, normalised.
    """

    name, kind, shortest = "resemblyzer", GE2E, 480
    window, step, least_cover = 160, 77, 0.75

    def encode(self, recordings: Sequence[Float32Array]) -> Float32Array:
        windows = [self._windows(without_pauses(levelled(one))) for one in recordings]
        with inference(self.device):
            mels = torch.from_numpy(np.concatenate(windows)).to(self.device)
            parts = np.asarray(self.network(mels).cpu().numpy())
        ends = np.cumsum([len(one) for one in windows])[:-1]
        means = np.stack([part.mean(axis=0) for part in np.split(parts, ends)])
        return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True))

    def _windows(self, samples: Float32Array) -> Float32Array:
        if not samples.size:
            raise InputError("expected speech, found none (voice activity detection)")
        hop = SAMPLE_RATE // 100
        frames = -(-(samples.size + 1) // hop)
        starts = list(range(0, max(1, frames - self.window + self.step + 1), self.step))
        covered = (samples.size / hop - starts[-1]) / self.window
        if covered < self.least_cover and len(starts) > 1:
            starts.pop()
        end = (starts[-1] + self.window) * hop
        mel = mel_spectrogram(np.pad(samples, (0, max(0, end - samples.size))))
        return np.stack([mel[start : start + self.window] for start in starts])


class TrainedFolder:
    """What a training left in a folder: a recipe and tensors."""

    def __init__(self, folder: str | Path, device: str) -> None:
        self.recipe = recipe_of(folder)
        self.name = Path(folder).resolve().name
        self.fingerprint = fingerprint_of_folder(folder)
        self.device = checked(device)
        self.tensors = {k: torch.from_numpy(v) for k, v in weights_of_folder(folder).items()}


class TrainedEncoder(TrainedFolder):
    """A network of a training, with the filterbanks it was trained on."""

    shortest = 720

    def __init__(self, folder: str | Path, device: str) -> None:
        super().__init__(folder, device)
        recipe, tensors = self.recipe, self.tensors
        self.features = Filterbanks(recipe.bins).to(self.device)
        with torch.device("meta"):
            expected = {k: v.shape for k, v in build(recipe).state_dict().items()}
        for name in sorted(expected.keys() | tensors.keys()):
            shape = tensors[name].shape if name in tensors else None
            # A counter may be one number, or a row of one.
            if shape != expected.get(name) and (shape, expected.get(name)) != ((1,), ()):
                raise InputError(f"{folder}: weights of another network than the card's: {name}")
        network = build(recipe)
        network.load_state_dict(tensors)
        self.network = network.eval().to(self.device)

    def encode(self, recordings: Sequence[Float32Array]) -> Float32Array:
        return by_length(recordings, lambda one: self.network(self.features(one)), self.device)


def load(name: str, *, device: str = "cpu") -> Any:
    """The built-in encoder of a name, or that of a folder: a network or an i-vector extractor."""
    built_in = {kind.name: kind for kind in (CamPlusPlusEncoder, ResemblyzerEncoder)}
    if name in built_in:
        return built_in[name](device)
    if recipe_of(name).network == "ivector":
        from unmask.speech.encoders.ivector import IvectorEncoder

        return IvectorEncoder(name, device)
    return TrainedEncoder(name, device)
