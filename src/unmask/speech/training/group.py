"""Several processes that train one encoder: torch's own DistributedDataParallel, as torchrun
starts it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import nn

from unmask.errors import InputError

T = TypeVar("T")


@dataclass(frozen=True)
class Group:
    """This process, ``rank``, among ``size`` of them, and the device it computes on."""

    rank: int
    size: int
    device: torch.device

    @property
    def device_name(self) -> str:
        """The name of the card, or ``cpu``."""
        on_card = self.device.type == "cuda"
        return torch.cuda.get_device_name(self.device) if on_card else "cpu"

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
