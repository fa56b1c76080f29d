"""A trained encoder on disk: a folder with weights (safetensors) and a card (JSON)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask._version import __version__
from unmask.errors import InputError
from unmask.run import write_whole
from unmask.speech.audio import needed
from unmask.speech.training.recipe import Recipe

CARD = "card.json"
WEIGHTS = "weights.safetensors"
KIND = "unmask encoder 1"

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
    content = (folder / WEIGHTS).read_bytes()
    whole = {
        "kind": KIND,
        "tool": f"unmask {__version__}",
        "weights": hashlib.sha256(content).hexdigest(),
        **card,
    }
    text = json.dumps(whole, indent=1, ensure_ascii=False, allow_nan=False)
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
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        raise InputError(f"{path}: no such file") from None
    if found != card["weights"]:
        raise InputError(
            f"{path}: expected sha256 {card['weights'][:8]}… of the card, found {found[:8]}…"
        )
    return read_tensors(path)[0]


def fingerprint_of_folder(folder: str | Path) -> str:
    """What the vectors depend on: network and weights."""
    card = read_card(folder)
    return f"{_recipe(Path(folder) / CARD, card).network}:{card['weights']}"
