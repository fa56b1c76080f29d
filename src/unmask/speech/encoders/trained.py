"""Encoders of :func:`unmask.speech.train`: a folder with weights and a card."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unmask.errors import InputError
from unmask.speech.encoders.lengths import batch_on, by_length, one_thread
from unmask.speech.features import Float32Array
from unmask.speech.training.card import (
    fingerprint_of_folder,
    recipe_of,
    weights_of_folder,
)
from unmask.speech.training.features import Filterbanks
from unmask.speech.training.group import checked
from unmask.speech.training.networks import build

SHORTEST = 720


class TrainedEncoder:
    """A network of a training, with the filterbanks it was trained on."""

    shortest = SHORTEST

    def __init__(self, folder: str | Path, *, device: str = "cpu") -> None:
        recipe = recipe_of(folder)
        assert recipe.bins is not None
        self.name = Path(folder).resolve().name
        self.fingerprint = fingerprint_of_folder(folder)
        self.device = checked(device)
        self.features = Filterbanks(recipe.bins).to(self.device)
        tensors = {k: torch.from_numpy(v) for k, v in weights_of_folder(folder).items()}
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
        return vectors_of(self.network, self.features, recordings, self.device)


def vectors_of(
    network: Any, features: Filterbanks, recordings: Sequence[Float32Array], device: torch.device
) -> Float32Array:
    """Vectors of whole recordings, those of equal length at once on a GPU."""

    def forward(samples: Float32Array) -> Float32Array:
        heard = features(torch.from_numpy(np.ascontiguousarray(samples)).to(device))
        return np.asarray(network(heard).float().cpu().numpy())

    network.eval()
    with one_thread(torch, device.type), torch.inference_mode():
        return by_length(recordings, forward, batch=batch_on(device.type))


def load_trained(folder: str | Path, *, device: str = "cpu") -> Any:
    """The encoder of a folder, network or i-vector."""
    if recipe_of(folder).network == "ivector":
        from unmask.speech.training.ivector import IvectorEncoder

        return IvectorEncoder(folder, device=device)
    return TrainedEncoder(folder, device=device)
