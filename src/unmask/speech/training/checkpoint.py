"""Where a run stands: weights, optimiser and history, kept so that a killed run goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from unmask.errors import InputError
from unmask.speech.training.card import Tensors, read_tensors, write_tensors

FILE = "checkpoint.safetensors"


@dataclass(frozen=True)
class Point:
    """A line of the validation curve: mean loss since the line before, EER of speakers kept apart
    if there are any.
    """

    step: int
    loss: float
    eer: float | None = None


@dataclass(frozen=True)
class Position:
    """What a checkpoint says besides tensors: steps done, the curve, the best line of it, and the
    seconds spent.
    """

    step: int = 0
    curve: tuple[Point, ...] = ()
    seconds: float = 0.0

    @property
    def best(self) -> int | None:
        """Place of the line with the lowest EER, the last of equals."""
        lowest = self._lowest()
        return lowest[-1] if lowest else None

    def stale(self) -> int:
        """Validations since the EER last fell."""
        lowest = self._lowest()
        return len(self.curve) - 1 - lowest[0] if lowest else 0

    def _lowest(self) -> list[int]:
        known = [point.eer for point in self.curve if point.eer is not None]
        return [n for n, point in enumerate(self.curve) if known and point.eer == min(known)]


def write(folder: Path, run: Mapping[str, Any], position: Position, tensors: Tensors) -> None:
    """Keep a run named by ``run``, with the ``tensors`` it goes on from."""
    curve = [[p.step, p.loss, p.eer] for p in position.curve]
    note = {"run": run, "step": position.step, "seconds": position.seconds, "curve": curve}
    write_tensors(folder / FILE, tensors, json.dumps(note))


def read(folder: Path, run: Mapping[str, Any]) -> tuple[Position, Tensors]:
    """A kept run, if there is one and it is this one."""
    path = folder / FILE
    if not path.is_file():
        return Position(), {}
    tensors, note = read_tensors(path)
    with _of_this_run(path):
        known = json.loads(note)
        curve = tuple(Point(*line) for line in known["curve"])
        refuse_other(run, known["run"], f"{path}: expected a checkpoint")
        return Position(int(known["step"]), curve, known["seconds"]), tensors


def save(
    folder: Path,
    run: Mapping[str, Any],
    position: Position,
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    best: Tensors,
) -> None:
    """Keep the run of a network; ``best`` are the weights of the best validation so far."""
    tensors: Tensors = {f"model/{k}": v for k, v in arrays_of(model).items()}
    for number, state in optimiser.state_dict()["state"].items():
        tensors |= {
            f"optimiser/{number}/{k}": np.asarray(v.detach().cpu().numpy())
            for k, v in state.items()
        }
    write(folder, run, position, tensors | {f"best/{k}": v for k, v in best.items()})


def restore(
    folder: Path, run: Mapping[str, Any], model: nn.Module, optimiser: torch.optim.Optimizer
) -> tuple[Position, Tensors]:
    """Take up the kept run of a network, if there is one; the best weights come with it."""
    position, tensors = read(folder, run)
    if tensors:
        with _of_this_run(folder / FILE):
            weights = _below(tensors, "model")
            model.load_state_dict({k: torch.from_numpy(v) for k, v in weights.items()})
            _restore_optimiser(optimiser, _below(tensors, "optimiser"))
    return position, _below(tensors, "best")


@contextmanager
def _of_this_run(path: Path) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"{path}: not a checkpoint of this run ({str(error).splitlines()[0]}):"
            " remove it, or name another folder"
        ) from None


def refuse_other(run: Mapping[str, Any], found: Mapping[str, Any], expected: str) -> None:
    """Refuse a kept run that is not this one; ``expected`` begins the line."""
    for name, value in run.items():
        if found.get(name) != value:
            raise InputError(
                f"{expected} with {name} {_short(value)}, found {_short(found.get(name))}: remove"
                " it, or name another folder"
            )


def _short(value: Any) -> str:
    """A value of a run's name in few characters."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 24 else f"{text[:8]}…"


def arrays_of(model: nn.Module) -> Tensors:
    """Parameters and buffers of a network as arrays of their own."""
    return {k: v.detach().cpu().numpy().copy() for k, v in model.state_dict().items()}


def _below(tensors: Tensors, name: str) -> Tensors:
    head = f"{name}/"
    return {k.removeprefix(head): v for k, v in tensors.items() if k.startswith(head)}


def _restore_optimiser(optimiser: torch.optim.Optimizer, tensors: Tensors) -> None:
    state: dict[int, dict[str, Any]] = {}
    for name, value in tensors.items():
        number, _, key = name.partition("/")
        state.setdefault(int(number), {})[key] = torch.from_numpy(value)
    groups = optimiser.state_dict()["param_groups"]
    optimiser.load_state_dict({"state": state, "param_groups": groups})
