"""Encoders that are networks of torch, built in or folders of :func:`unmask.speech.train`; and what
they hear, Kaldi filterbanks and cepstra (Povey et al., 2011), on any device.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from unmask.errors import InputError
from unmask.speech.audio import (
    FFT,
    FRAME,
    HOP,
    PREEMPHASIS,
    SAMPLE_RATE,
    SMALLEST,
    Float32Array,
    levelled,
    mel_bands,
    mel_spectrogram,
    povey_window,
    without_pauses,
)
from unmask.speech.encoders import weights_of
from unmask.speech.encoders.card import fingerprint_of_folder, recipe_of, weights_of_folder
from unmask.speech.encoders.networks import (
    GE2E,
    CamPlusPlus,
    build,
    mean_over_time,
    only_heard,
    padded,
)


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
        window, bands = (torch.from_numpy(one) for one in (povey_window(), mel_bands(bins)))
        self.register_buffer("window", window, persistent=False)
        self.register_buffer("bands", bands, persistent=False)

    def forward(self, samples: Tensor) -> Tensor:
        with torch.autocast(samples.device.type, enabled=False):
            frames = frames_of(samples)
            before = functional.pad(frames, (1, 0), mode="replicate")[..., :-1]
            spectrum = torch.fft.rfft((frames - PREEMPHASIS * before) * self.window, n=FFT)
            power = spectrum.real.square() + spectrum.imag.square()
            features = (power[..., : FFT // 2] @ self.bands).clamp(min=SMALLEST).log()
            if not self.centre:
                return features
            by_band = features.transpose(1, 2)
            return only_heard(by_band - mean_over_time(by_band)).transpose(1, 2)


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
            energy = frames.square().sum(-1, keepdim=True).clamp(min=SMALLEST).log()
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


_ALONE = threading.Lock()


@dataclass(frozen=True)
class Batching:
    """Frames at once, the least length beside the longest, and what frames and rows of a batch are
    multiples of: a GPU looks up how to do each new shape, which takes longer than doing it.
    """

    most: int = 65536
    least: float = 0.0
    frames: int = 128
    rows: int = 32

    def batches(self, sizes: Sequence[int]) -> Iterator[tuple[list[int], int, int]]:
        """Recordings of like sizes, the longest first, with the frames and rows of their batch."""
        some: list[int] = []
        for n in [*sorted(range(len(sizes)), key=lambda n: -sizes[n]), -1]:
            longest = -(-sizes[some[0]] // self.frames) * self.frames if some else 0
            full = longest * (len(some) + 1) > self.most
            if some and (n < 0 or full or sizes[n] < self.least * longest):
                rows = min(-(-len(some) // self.rows) * self.rows, self.most // longest)
                yield some, longest, max(rows, len(some))
                some = []
            some.append(n)


BATCHING = {"cpu": Batching(1200, 0.8, 16, 1)}
"""A processor core has no cache for more, and what is padded costs it time; so does a new shape."""


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
    """No gradients, one at a time; one thread on a CPU: the number of cores changes no bit of a
    vector. On a GPU whole 32-bit products, and no search for the best algorithm of every length.
    """
    with _ALONE, torch.inference_mode():
        if device.type != "cpu":
            exact = {"benchmark": False, "deterministic": True, "allow_tf32": False}
            with torch.backends.cudnn.flags(enabled=True, **exact):
                yield
            return
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)


def by_length(
    recordings: Sequence[Float32Array], forward: Callable[[Tensor], Tensor], device: torch.device
) -> Float32Array:
    """Vectors of recordings, in the order given; those of like length at once, padded, which moves
    no number of a vector but by rounding.
    """
    sizes = [1 + (recording.size - FRAME) // HOP for recording in recordings]
    order: list[int] = []
    vectors: list[Tensor] = []
    with inference(device):
        for some, frames, rows in BATCHING.get(device.type, Batching()).batches(sizes):
            length = FRAME + (frames - 1) * HOP
            samples = torch.zeros(rows, length, pin_memory=device.type == "cuda")
            for row, n in zip(samples.numpy(), some, strict=False):
                heard = recordings[n][:length]
                row[: heard.size] = heard
            ends = [sizes[n] for n in some] + [frames] * (rows - len(some))
            with padded(ends, frames, device):
                made = forward(samples.to(device, non_blocking=True)).float()
            vectors.append(made[: len(some)])
            order += some
        found = torch.cat(vectors).cpu().numpy()
    return np.asarray(found[np.argsort(order)])


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

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.features = Filterbanks().to(self.device)

    def encode(self, recordings: Sequence[Float32Array]) -> Float32Array:
        return by_length(recordings, lambda one: self.network(self.features(one)), self.device)


class ResemblyzerEncoder(Published):
    """GE2E (256 dimensions), light and weaker: raised to −30 dB, pauses shortened, the mean of unit
    vectors of windows of 1.6 s, 0.77 s apart, normalised.
    """

    name, kind, shortest = "resemblyzer", GE2E, 480
    window, step, least_cover = 160, 77, 0.75

    def encode(self, recordings: Sequence[Float32Array]) -> Float32Array:
        windows = [self._windows(without_pauses(levelled(recording))) for recording in recordings]
        with inference(self.device):
            mels = torch.from_numpy(np.concatenate(windows)).to(self.device)
            parts = np.asarray(self.network(mels).cpu().numpy())
        ends = np.cumsum([len(window) for window in windows])[:-1]
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
    if name not in built_in and recipe_of(name).network == "ivector":
        from unmask.speech.encoders.ivector import IvectorEncoder

        return IvectorEncoder(name, device)
    made = built_in[name](device) if name in built_in else TrainedEncoder(name, device)
    # A width of 1 has no dilation, but with one torch takes oneDNN, which on some processors is
    # twice as fast as what it takes else on one thread.
    if made.device.type == "cpu" and torch.backends.mkldnn.is_available():
        for layer in made.network.modules():
            if isinstance(layer, nn.Conv1d) and layer.kernel_size == (1,):
                layer.dilation = (2,)
    return made
