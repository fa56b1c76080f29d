"""How an encoder is trained: all options in one value, which the card keeps."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Any

from unmask.errors import InputError
from unmask.speech.audio import SAMPLE_RATE

NETWORKS = ("campplus", "tdnn", "resnet34", "ecapa", "ivector")
LOSSES = ("softmax", "am", "aam")
POOLINGS = ("tsp", "asp")
PRECISIONS = ("auto", "fp32", "bf16")
_USUAL: dict[str, dict[str, Any]] = {
    "campplus": {"bins": 80, "dimension": 192, "channels": None, "pooling": "tsp"},
    "tdnn": {"bins": 30, "dimension": 512, "channels": 512, "pooling": "tsp"},
    "resnet34": {"bins": 80, "dimension": 256, "channels": 32, "pooling": "tsp"},
    "ecapa": {"bins": 80, "dimension": 192, "channels": 512, "pooling": "asp"},
    "ivector": {"bins": 30, "dimension": 400, "channels": None, "pooling": "tsp"},
}
_ONLY = {"campplus": "tsp", "ecapa": "asp"}


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
    margin: float = 0.2
    scale: float = 30.0
    margin_steps: int | None = None
    bins: int = 0
    dimension: int = 0
    channels: int | None = None
    crop: float = 2.0
    batch: int = 32
    epochs: int = 10
    steps: int | None = None
    rate: float = 1e-3
    decay: float = 1e-4
    warm_up: int | None = None
    speeds: tuple[float, ...] = ()
    speeds_are_speakers: bool = True
    noise: str | None = None
    responses: str | None = None
    augmented: float = 0.6
    snr: tuple[float, float] = (0.0, 15.0)
    held_out: int | None = None
    every: int | None = None
    patience: int | None = None
    precision: str = "auto"
    seed: int = 0
    components: int = 256
    iterations: int = 10
    full: bool = False

    def __post_init__(self) -> None:
        _one_of("network", self.network, NETWORKS)
        for name, value in _USUAL[self.network].items():
            if getattr(self, name) in (None, 0, ""):
                object.__setattr__(self, name, value)
        _one_of("pooling", self.pooling, POOLINGS)
        _one_of("loss", self.loss, LOSSES)
        _one_of("precision", self.precision, PRECISIONS)
        if _ONLY.get(self.network, self.pooling) != self.pooling:
            raise InputError(
                f"pooling: expected {_ONLY[self.network]} for {self.network}, found {self.pooling}"
            )
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise InputError(f"{name}: expected {low:g} to {high:g}, found {value!s:.20}")
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


_RANGES = (
    ("margin", 0.0, 1.5),
    ("scale", 1.0, 1000.0),
    ("margin_steps", 0, math.inf),
    ("bins", 8, 160),
    ("dimension", 2, 8192),
    ("channels", 8, 8192),
    ("crop", 0.1, 60.0),
    ("batch", 2, 1 << 20),
    ("epochs", 1, 1 << 20),
    ("steps", 1, math.inf),
    ("rate", 0.0, 10.0),
    ("decay", 0.0, 1.0),
    ("warm_up", 0, math.inf),
    ("augmented", 0.0, 1.0),
    ("held_out", 0, math.inf),
    ("every", 1, math.inf),
    ("patience", 1, math.inf),
    ("seed", 0, 2**63),
    ("components", 1, 1 << 16),
    ("iterations", 1, 1000),
)


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


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{name}: expected one of {', '.join(allowed)}, found {value}")


@dataclass(frozen=True)
class Status:
    """How far a training is: ``loss`` of the last steps, ``speed`` in crops per second,
    ``remaining`` seconds, and the last validation EER if there was one.
    """

    step: int
    steps: int
    loss: float
    speed: float
    remaining: float
    eer: float | None
