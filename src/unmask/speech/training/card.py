"""A trained encoder on disk: a folder with weights (safetensors) and a card (JSON); and as ONNX,
for other programs and for machines without torch.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask._version import __version__
from unmask.errors import InputError
from unmask.run import atomic_path, write_whole
from unmask.speech.audio import needed
from unmask.speech.training.recipe import Recipe

CARD = "card.json"
WEIGHTS = "weights.safetensors"
KIND = "unmask encoder 1"
_FRAMES = 203
"""Frames of the example that is followed through the network; any other number works."""

Tensors = dict[str, npt.NDArray[Any]]


def write_tensors(path: Path, tensors: Mapping[str, npt.NDArray[Any]], note: str = "") -> None:
    """Named arrays and a line of text into a safetensors file, whole or not at all."""
    safetensors = needed("safetensors.numpy", "safetensors", "train")
    plain = {name: np.asarray(value, order="C") for name, value in tensors.items()}
    write_whole(path, safetensors.save(plain, {"note": note} if note else None))


def read_tensors(path: Path) -> tuple[Tensors, str]:
    """What :func:`write_tensors` wrote."""
    safetensors = needed("safetensors", "safetensors", "train")
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            note = (file.metadata() or {}).get("note", "")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, safetensors.SafetensorError) as error:
        raise InputError(f"{path}: not readable as safetensors: {error}") from None
    return tensors, note


def write_encoder(folder: Path, tensors: Mapping[str, npt.NDArray[Any]], card: Any) -> None:
    """Weights, then the card, whose presence says that the encoder is finished."""
    write_tensors(folder / WEIGHTS, tensors)
    digest = hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()
    head = {"kind": KIND, "tool": f"unmask {__version__}", "weights": digest}
    text = json.dumps({**head, **card}, indent=1, ensure_ascii=False, allow_nan=False)
    write_whole(folder / CARD, f"{text}\n".encode())


def is_encoder(folder: str | Path) -> bool:
    """Whether a folder holds a trained encoder."""
    return (Path(folder) / CARD).is_file()


def read_card(folder: str | Path) -> dict[str, Any]:
    """The card of a trained encoder, the folder named: network, options, data, validation curve."""
    path = Path(folder) / CARD
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{folder}: expected a trained encoder, found no {CARD}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not readable as JSON: {error}") from None
    if not isinstance(card, dict) or card.get("kind") != KIND:
        raise InputError(f"{path}: expected the card of an encoder ({KIND})")
    if not isinstance(card.get("weights"), str):
        raise InputError(f"{path}: expected the sha256 of the weights, found none")
    _recipe(path, card)
    return card


def recipe_of(folder: str | Path) -> Recipe:
    """The recipe on the card."""
    return _recipe(Path(folder) / CARD, read_card(folder))


def _recipe(path: Path, card: Mapping[str, Any]) -> Recipe:
    try:
        return Recipe.from_dict(card.get("recipe"))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def weights_of_folder(folder: str | Path) -> Tensors:
    """The weights, checked against the hash on the card."""
    card = read_card(folder)
    path = Path(folder) / WEIGHTS
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        raise InputError(f"{path}: no such file") from None
    if digest != card["weights"]:
        raise InputError(
            f"{path}: expected sha256 {card['weights'][:8]}… of the card, found {digest[:8]}…"
        )
    return read_tensors(path)[0]


def fingerprint_of_folder(folder: str | Path) -> str:
    """What the vectors depend on: network and weights."""
    card = read_card(folder)
    return f"{_recipe(Path(folder) / CARD, card).network}:{card['weights']}"


def refuse_other(run: Mapping[str, Any], kept: Mapping[str, Any], expected: str) -> None:
    """Refuse a kept run that is not this one; ``expected`` begins the line."""
    for name, value in run.items():
        if kept.get(name) != value:
            raise InputError(
                f"{expected} with {name} {_short(value)}, found {_short(kept.get(name))}: remove"
                " it, or name another folder"
            )


def _short(value: Any) -> str:
    """A value of a run's name in few characters."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 24 else f"{text[:8]}…"


def export_onnx(folder: str | os.PathLike[str], path: str | os.PathLike[str]) -> Path:
    """Write the network in ``folder``, an encoder of :func:`~unmask.speech.train`, to ``path``.

    The model takes mean-normalised Kaldi filterbanks (batch, frames, bins) of samples in [−1, 1],
    and says so in its metadata (``unmask_scale``); ``load_encoder`` reads it. An i-vector extractor
    is no network and is refused.
    """
    for package in ("torch", "onnx", "onnxscript"):
        needed(package, package, "train")
    import torch

    from unmask.speech.encoders.neural import TrainedEncoder

    recipe = recipe_of(Path(folder))
    if recipe.network == "ivector":
        raise InputError(
            f"{folder}: expected a network, found an i-vector extractor: no ONNX of it"
        )
    with _quiet(), torch.inference_mode():
        program = torch.onnx.export(
            TrainedEncoder(Path(folder), "cpu").network,
            (torch.zeros(2, _FRAMES, recipe.bins),),
            input_names=["features"],
            output_names=["vector"],
            dynamic_shapes=({0: torch.export.Dim("batch"), 1: torch.export.Dim("frames", min=8)},),
            dynamo=True,
            verbose=False,
        )
    program.model.metadata_props["unmask_scale"] = "1"
    program.model.metadata_props["unmask_network"] = recipe.network
    final = Path(path)
    with atomic_path(final) as temporary:
        program.save(str(temporary), external_data=False)
    return final


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter's remarks about itself are for its developers."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(before)
