"""Encoders that are networks of torch: the built-in ones, and folders of
:func:`unmask.speech.train`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unmask.errors import InputError
from unmask.speech.audio import SAMPLE_RATE
from unmask.speech.encoders.networks import GE2E, CamPlusPlus
from unmask.speech.encoders.weights import installed_path, weights_of
from unmask.speech.features import (
    Float32Array,
    filterbanks,
    levelled,
    mel_spectrogram,
    without_pauses,
)
from unmask.speech.training.card import fingerprint_of_folder, recipe_of, weights_of_folder
from unmask.speech.training.features import Filterbanks
from unmask.speech.training.networks import build

_THREADS = threading.Lock()
_BATCH = 32
"""Recordings at once on a GPU; a processor core has no cache for more than one."""


def checked(device: str) -> torch.device:
    """A device of this machine, or a line that says there is none."""
    try:
        known = torch.device(device)
    except RuntimeError:
        raise InputError(f"device: expected cpu, cuda or cuda:N, found {device}") from None
    if known.type == "cuda":
        count = torch.cuda.device_count()
        if (known.index or 0) >= count:
            raise InputError(f"device {device}: found {count} CUDA devices")
        return torch.device("cuda", known.index or 0)
    return known


@contextmanager
def inference(device: torch.device) -> Iterator[None]:
    """No gradients, and one thread on a CPU, so that the number of cores never changes the last bit
    of a vector.
    """
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
        self.fingerprint = weights_of(self.name).fingerprint
        state = torch.load(installed_path(self.name), weights_only=True, map_location="cpu")
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
    """GE2E (256 dimensions): light and weaker.

    The recording is raised to −30 dB if it is quieter, its pauses are shortened, and the unit
    vectors of windows of 1.6 s, 0.77 s apart, are averaged and normalised.
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
    for kind in (CamPlusPlusEncoder, ResemblyzerEncoder):
        if name == kind.name:
            return kind(device)
    if recipe_of(name).network == "ivector":
        from unmask.speech.training.ivector import IvectorEncoder

        return IvectorEncoder(name, device)
    return TrainedEncoder(name, device)
