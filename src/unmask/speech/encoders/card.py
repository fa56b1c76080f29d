"""How an encoder is trained, all options in one value; and a trained one on disk, a folder with
weights (safetensors) and a card (JSON), or as ONNX for machines without torch.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask._version import __version__
from unmask.errors import InputError
from unmask.run import atomic_path, content_digest, write_whole
from unmask.speech.audio import SAMPLE_RATE, needed

NETWORKS = ("campplus", "tdnn", "resnet34", "ecapa", "ivector")
LOSSES = ("softmax", "am", "aam")
POOLINGS = ("tsp", "asp")
PRECISIONS = ("auto", "fp32", "bf16")
_CHOICES = {"network": NETWORKS, "pooling": POOLINGS, "loss": LOSSES, "precision": PRECISIONS}
_USUAL: dict[str, dict[str, Any]] = {
    "campplus": {"bins": 80, "dimension": 192, "channels": None, "pooling": "tsp"},
    "tdnn": {"bins": 30, "dimension": 512, "channels": 512, "pooling": "tsp"},
    "resnet34": {"bins": 80, "dimension": 256, "channels": 32, "pooling": "tsp"},
    "ecapa": {"bins": 80, "dimension": 192, "channels": 512, "pooling": "asp"},
    "ivector": {"bins": 30, "dimension": 400, "channels": None, "pooling": "tsp"},
}
_ONLY = {"campplus": "tsp", "ecapa": "asp"}


def _within(default: Any, low: float, high: float) -> Any:
    return field(default=default, metadata={"ends": (low, high)})


@dataclass(frozen=True)
class Recipe:
    """What to train and how. None, 0 and an empty word stand for what is usual for the network.

    ``network`` is campplus, tdnn, resnet34, ecapa or ivector; ``pooling`` tsp (temporal statistics)
    or asp (attentive statistics; ecapa has no other, campplus none but tsp); ``loss`` softmax, am
    or aam with ``margin`` and ``scale``, the margin rising from 0 over ``margin_steps`` (a fifth
    of the run). ``bins`` of the filterbanks, ``dimension`` of the vectors, ``channels`` of the
    layers (C of ecapa: 512 or 1024).

    A step takes ``batch`` crops of ``crop`` seconds, each from another recording; an epoch takes
    one of every recording. ``steps`` replaces ``epochs``. ``rate`` is the highest learning rate of
    AdamW, reached after ``warm_up`` steps (a twentieth of the run) and falling as a cosine to a
    hundredth of it; ``decay`` is the weight decay.

    ``speeds`` adds every recording at other speeds, whose pitch moves as well: as new speakers
    unless ``speeds_are_speakers`` is false. A share ``augmented`` of the crops gets noise from the
    folder ``noise`` at a level ``snr`` of decibels drawn between two, or an impulse response from
    the folder ``responses``.

    ``held_out`` speakers are kept apart for a validation EER: 5 % (2 to 50, none of fewer than 20)
    unless it says how many. Every ``every`` steps (an epoch) there is a validation and a
    checkpoint; after ``patience`` of them without a better EER training ends. ``precision`` is
    fp32, bf16 (on CUDA devices) or auto.

    The i-vector has ``components`` Gaussians, ``iterations`` of EM for them and for the total
    variability matrix, and ``full`` covariances or diagonal ones.
    """

    network: str = "campplus"
    pooling: str = ""
    loss: str = "aam"
    margin: float = _within(0.2, 0.0, 1.5)
    scale: float = _within(30.0, 1.0, 1000.0)
    margin_steps: int | None = _within(None, 0, math.inf)
    bins: int = _within(0, 8, 160)
    dimension: int = _within(0, 2, 8192)
    channels: int | None = _within(None, 8, 8192)
    crop: float = _within(2.0, 0.1, 60.0)
    batch: int = _within(32, 2, 1 << 20)
    epochs: int = _within(10, 1, 1 << 20)
    steps: int | None = _within(None, 1, math.inf)
    rate: float = _within(1e-3, 0.0, 10.0)
    decay: float = _within(1e-4, 0.0, 1.0)
    warm_up: int | None = _within(None, 0, math.inf)
    speeds: tuple[float, ...] = ()
    speeds_are_speakers: bool = True
    noise: str | None = None
    responses: str | None = None
    augmented: float = _within(0.6, 0.0, 1.0)
    snr: tuple[float, float] = (0.0, 15.0)
    held_out: int | None = _within(None, 0, math.inf)
    every: int | None = _within(None, 1, math.inf)
    patience: int | None = _within(None, 1, math.inf)
    precision: str = "auto"
    seed: int = _within(0, 0, 2**63)
    components: int = _within(256, 1, 1 << 16)
    iterations: int = _within(10, 1, 1000)
    full: bool = False

    def __post_init__(self) -> None:
        for name, value in _USUAL.get(self.network, {}).items():
            if getattr(self, name) in (None, 0, ""):
                object.__setattr__(self, name, value)
        for name, allowed in _CHOICES.items():
            if getattr(self, name) not in allowed:
                words = f"one of {', '.join(allowed)}, found {getattr(self, name)}"
                raise InputError(f"{name}: expected {words}")
        if _ONLY.get(self.network, self.pooling) != self.pooling:
            raise InputError("pooling", f"{_ONLY[self.network]} for {self.network}", self.pooling)
        for member in fields(self):
            low, high = member.metadata.get("ends", (None, None))
            value = getattr(self, member.name)
            if None not in (low, value) and not low <= value <= high:
                raise InputError(
                    f"{member.name}: expected {low:g} to {high:g}, found {value!s:.20}"
                )
        if self.network == "ecapa" and (self.channels or 0) % 8:
            raise InputError(f"channels: expected a multiple of 8, found {self.channels}")
        if self.network == "campplus" and self.bins % 8:
            raise InputError(f"bins: expected a multiple of 8, found {self.bins}")
        for speed in self.speeds:
            if not 0.5 <= speed <= 2.0 or speed == 1.0:
                raise InputError(f"speeds: expected 0.5 to 2 but not 1, found {speed:g}")
        if len(set(self.speeds)) < len(self.speeds):
            raise InputError(f"speeds: expected different ones, found {self.speeds}")

    @property
    def crop_samples(self) -> int:
        """Samples in a crop."""
        return round(self.crop * SAMPLE_RATE)

    def to_dict(self) -> dict[str, Any]:
        """All options, as JSON has them."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Any) -> Recipe:
        """The recipe of a card; ``values`` are those of :meth:`to_dict`."""
        known = {field.name: str(field.type) for field in fields(cls)}
        if not isinstance(values, dict) or not set(values) <= set(known):
            raise InputError(f"recipe: expected {', '.join(sorted(known))}, found others")
        given: dict[str, Any] = {}
        for name, value in values.items():
            if not _is_of(value, known[name]):
                raise InputError(f"recipe: {name}: expected {known[name]}, found {value!r}"[:200])
            given[name] = tuple(value) if isinstance(value, list) else value
        return cls(**given)


def _is_of(value: Any, kind: str) -> bool:
    """Whether a value of JSON is of the type that a field is declared with."""
    if kind.startswith("tuple"):
        lengths = (2,) if kind.endswith("float]") else range(100)
        return (
            isinstance(value, list)
            and len(value) in lengths
            and all(_is_of(one, "float") for one in value)
        )
    kinds = {"str": (str,), "bool": (bool,), "int": (int,), "float": (float, int)}
    allowed = kinds[kind.removesuffix(" | None")]
    return type(value) in allowed or (value is None and kind.endswith("None"))


@dataclass(frozen=True)
class Status:
    """How far a training is: ``loss``, crops per second, ``remaining`` seconds, last EER if any."""

    step: int
    steps: int
    loss: float
    speed: float
    remaining: float
    eer: float | None


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
    digest = content_digest(folder / WEIGHTS)
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
    try:
        Recipe.from_dict(card.get("recipe"))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return card


def recipe_of(folder: str | Path) -> Recipe:
    """The recipe on the card."""
    return Recipe.from_dict(read_card(folder)["recipe"])


def weights_of_folder(folder: str | Path) -> Tensors:
    """The weights, checked against the hash on the card."""
    fingerprint_of_folder(folder)
    return read_tensors(Path(folder) / WEIGHTS)[0]


def fingerprint_of_folder(folder: str | Path) -> str:
    """What the vectors depend on, recipe and weights; these must be those of the card."""
    card, path = read_card(folder), Path(folder) / WEIGHTS
    digest, recipe = content_digest(path), json.dumps(card["recipe"], sort_keys=True)
    if digest != card["weights"]:
        raise InputError(path, f"sha256 {card['weights'][:8]}… of the card", f"{digest[:8]}…")
    made = hashlib.sha256(recipe.encode()).hexdigest()[:16]
    return f"{recipe_of(folder).network}:{made}:{digest}"


def refuse_other(run: Mapping[str, Any], kept: Mapping[str, Any], expected: str) -> None:
    """Refuse a kept run that is not this one; ``expected`` begins the line."""
    for name, value in run.items():
        if kept.get(name) != value:
            words = [v if isinstance(v, str) else json.dumps(v) for v in (value, kept.get(name))]
            wanted, other = (text if len(text) <= 24 else f"{text[:8]}…" for text in words)
            raise InputError(
                f"{expected} with {name} {wanted}, found {other}: remove it, or name another folder"
            )


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
        raise InputError(folder, "a network", "an i-vector extractor: no ONNX of it")
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
