"""One run of a training: the processes that share it (torch's DistributedDataParallel, as torchrun
starts it), and where it stands, kept so that a killed run goes on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

from unmask.errors import InputError
from unmask.run import advance
from unmask.speech.encoders import card
from unmask.speech.encoders.card import Recipe, Status, Tensors
from unmask.speech.encoders.neural import checked

CHECKPOINT = "checkpoint.safetensors"
T = TypeVar("T")


@dataclass(frozen=True)
class Group:
    """This process, ``rank``, among ``size`` of them, and the device it computes on."""

    rank: int
    size: int
    device: torch.device

    def wrapped(self, model: nn.Module) -> nn.Module:
        """A network whose gradients are averaged over all processes."""
        if self.size == 1:
            return model
        own = [self.device.index] if self.device.type == "cuda" else None
        return nn.parallel.DistributedDataParallel(model, device_ids=own)

    def in_turn(self, call: Callable[[], T]) -> T:
        """The result of a call that processes make one after another."""
        result: T | None = None
        for rank in range(self.size):
            if rank == self.rank:
                result = call()
            self.wait()
        return result  # type: ignore[return-value]

    def wait(self) -> None:
        """Until all are here."""
        if self.size > 1:
            torch.distributed.barrier()

    def agreed(self, value: bool) -> bool:
        """What the first process says."""
        if self.size == 1:
            return value
        said = torch.tensor([int(value)], device=self.device)
        torch.distributed.broadcast(said, 0)
        return bool(said.item())


@contextmanager
def group(device: str) -> Iterator[Group]:
    """The group of this process: alone, or what the variables of ``torchrun`` say."""
    size, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    if size == 1:
        yield Group(0, 1, checked(device))
        return
    if device == "cuda":
        device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
    own = checked(device)
    if own.type == "cuda":
        torch.cuda.set_device(own)
    torch.distributed.init_process_group("nccl" if own.type == "cuda" else "gloo")
    try:
        yield Group(rank, size, own)
    finally:
        torch.distributed.destroy_process_group()


@dataclass(frozen=True)
class Position:
    """What a checkpoint says besides tensors: steps done, the seconds spent, and the validation
    curve, lines of step, mean loss since the line before, and EER if speakers were kept apart.
    """

    step: int = 0
    curve: tuple[tuple[int, float, float | None], ...] = ()
    seconds: float = 0.0

    @property
    def lowest(self) -> list[int]:
        """Places of the lines with the lowest EER: weights are those of the last."""
        known = [eer for *_, eer in self.curve if eer is not None]
        return [n for n, (*_, eer) in enumerate(self.curve) if known and eer == min(known)]


@dataclass
class TrainingRun:
    """A training: ``folder`` keeps the checkpoint, ``name`` says what of, ``position`` how far."""

    recipe: Recipe
    group: Group
    folder: Path
    name: Mapping[str, Any]
    watch: Callable[[Status], None] | None = None
    position: Position = field(default_factory=Position)

    def report(self, done: int, steps: int, loss: float, pace: float) -> None:
        """Say how far it is after ``done`` steps of ``pace`` seconds each."""
        if self.group.rank:
            return
        advance(done, steps)
        if self.watch is not None:
            eer = self.position.curve[-1][2] if self.position.curve else None
            crops = 1 if self.recipe.network == "ivector" else self.recipe.batch
            self.watch(Status(done, steps, loss, crops / pace, pace * (steps - done), eer))

    def card(self, steps: int, eer: float | None) -> dict[str, Any]:
        """What the card says of the training: ``steps`` of the weights taken, their EER."""
        device, position = self.group.device, self.position
        return {
            "steps": steps,
            "steps_done": position.step,
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
            "curve": position.curve,
            "eer": eer,
        }

    def write(self, tensors: Tensors) -> None:
        """Keep where the run stands, with the ``tensors`` it goes on from."""
        note = json.dumps({"run": self.name, **asdict(self.position)})
        card.write_tensors(self.folder / CHECKPOINT, tensors, note)

    def read(self) -> Tensors:
        """Go back to where the run was left, if it is there and this one, and to its tensors."""
        path = self.folder / CHECKPOINT
        if not path.is_file():
            return {}
        tensors, note = card.read_tensors(path)
        with self._own():
            known = json.loads(note)
            curve = tuple((step, loss, eer) for step, loss, eer in known["curve"])
            position, name = Position(int(known["step"]), curve, known["seconds"]), known["run"]
        card.refuse_other(self.name, name, f"{path}: expected a checkpoint")
        self.position = position
        return tensors

    def save(self, model: nn.Module, optimiser: torch.optim.Optimizer, best: Tensors) -> None:
        """Keep the run of a network; ``best`` are the weights of the best validation so far."""
        tensors: Tensors = {f"model/{k}": v for k, v in arrays_of(model).items()}
        for number, state in optimiser.state_dict()["state"].items():
            for k, v in state.items():
                tensors[f"optimiser/{number}/{k}"] = np.asarray(v.detach().cpu().numpy())
        self.write(tensors | {f"best/{k}": v for k, v in best.items()})

    def restore(self, model: nn.Module, optimiser: torch.optim.Optimizer) -> Tensors:
        """Take up the kept run of a network, if there is one: its best weights."""
        tensors = self.read()
        parts: dict[str, Tensors] = {"model": {}, "optimiser": {}, "best": {}}
        with self._own():
            for name, value in tensors.items():
                part, _, rest = name.partition("/")
                parts[part][rest] = value
            if tensors:
                model.load_state_dict({k: torch.from_numpy(v) for k, v in parts["model"].items()})
                state: dict[int, dict[str, Any]] = {}
                for name, value in parts["optimiser"].items():
                    number, _, key = name.partition("/")
                    state.setdefault(int(number), {})[key] = torch.from_numpy(value)
                optimiser.load_state_dict({**optimiser.state_dict(), "state": state})
        return parts["best"]

    @contextmanager
    def _own(self) -> Iterator[None]:
        """Say in a line that a checkpoint is none of this run."""
        try:
            yield
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise InputError(
                f"{self.folder / CHECKPOINT}: not a checkpoint of this run"
                f" ({str(error).splitlines()[0]}): remove it, or name another folder"
            ) from None


def arrays_of(model: nn.Module) -> Tensors:
    """Parameters and buffers of a network as arrays of their own."""
    return {k: v.detach().cpu().numpy().copy() for k, v in model.state_dict().items()}
