"""The steps of a training: crops in, gradients, a validation and a checkpoint every so often."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from unmask.base import one_line
from unmask.errors import InputError
from unmask.run import advance
from unmask.speech.training import checkpoint
from unmask.speech.training.batches import Plan, ahead
from unmask.speech.training.card import Tensors
from unmask.speech.training.checkpoint import Point, Position, arrays_of
from unmask.speech.training.features import Filterbanks, speech_of
from unmask.speech.training.group import Group
from unmask.speech.training.networks import margin_at
from unmask.speech.training.recipe import Recipe, Status

_REPORT_SECONDS = 1.0
_LOWEST_RATE = 0.01
_BLOCK = 50
"""Steps between looks at the loss of a GPU, which is far ahead of this program."""


class Classifier(nn.Module):
    """Samples to loss: filterbanks, the network to train, one class per speaker."""

    def __init__(self, features: Filterbanks, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.features = features
        self.encoder = encoder
        self.head = head

    def forward(self, samples: Tensor, labels: Tensor, margin: float) -> Tensor:
        out: Tensor = self.head(self.encoder(self.features(samples)), labels, margin)
        return out


def rate_at(step: int, *, rate: float, steps: int, warm_up: int) -> float:
    """Learning rate of a step: a straight rise, then half a cosine down to a hundredth."""
    if step < warm_up:
        return rate * (step + 1) / warm_up
    turned = math.pi * (step - warm_up) / max(1, steps - warm_up)
    return rate * (_LOWEST_RATE + (1.0 - _LOWEST_RATE) * 0.5 * (1.0 + math.cos(turned)))


def placed(model: Classifier, device: torch.device) -> Classifier:
    """A network on a device; on a GPU in the layout that convolutions of images are fastest in."""
    layout = torch.channels_last if device.type == "cuda" else torch.preserve_format
    model.to(device)
    return model.to(memory_format=layout)


@dataclass
class Loop:
    """One training; ``run`` names it, ``validate`` gives an EER or is None, ``watch`` is told how
    far it is, and ``folder`` keeps the checkpoint.
    """

    recipe: Recipe
    model: Classifier
    plan: Plan
    group: Group
    folder: Path
    run: Mapping[str, Any]
    responses: Tensor | None = None
    validate: Callable[[], float] | None = None
    watch: Callable[[Status], None] | None = None
    position: Position = field(default_factory=Position)
    best: Tensors = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.steps, epoch = self.recipe.steps_of(len(self.plan.rows))
        self.every = self.recipe.every or epoch
        some = list(self.model.parameters())
        self.optimiser = torch.optim.AdamW(
            some,
            lr=self.recipe.rate,
            weight_decay=self.recipe.decay,
            fused=some[0].is_cuda or None,
        )
        usual = self.steps // 20 if self.recipe.warm_up is None else self.recipe.warm_up
        self.warm_up = min(usual, self.steps)
        fifth = self.steps // 5
        self.margin_steps = fifth if self.recipe.margin_steps is None else self.recipe.margin_steps
        self.mixed = self.recipe.precision != "fp32" and self.group.device.type == "cuda"

    def train(self) -> tuple[Tensors, Position]:
        """Go on from the checkpoint to the end; the weights of the best validation, or the last
        ones where nothing validates.
        """
        self.position, self.best = checkpoint.restore(
            self.folder, self.run, self.model, self.optimiser
        )
        moving = self.group.wrapped(self.model)
        started, before = time.perf_counter(), self.position.seconds
        first = self.position.step
        if first < self.steps and not self._over():
            with (
                _one_line(self.recipe, self.folder),
                fastest(self.group.device),
                ahead(self.plan, first, self.steps, self.group.device) as batches,
            ):
                self._steps(moving, batches, first, started, before)
        return self.best or arrays_of(self.model.encoder), self.position

    def _steps(
        self,
        moving: nn.Module,
        batches: Iterator[dict[str, Tensor]],
        first: int,
        started: float,
        before: float,
    ) -> None:
        device = self.group.device
        moving.train()
        total = torch.zeros((), device=device, dtype=torch.float64)
        summed, told = 0, time.perf_counter()
        look = 1 if device.type == "cpu" else _BLOCK
        for step, batch in enumerate(batches, start=first):
            loss = self.step(moving, step, batch)
            total += loss.detach()
            summed += 1
            done = step + 1
            ending = done % self.every == 0 or done == self.steps
            if done % look == 0 or ending:
                self._refuse_nan(total, step)
                now = time.perf_counter()
                if now - told > _REPORT_SECONDS or ending:
                    told = now
                    self._tell(done, first, float(total) / summed, now - started)
            if ending:
                self._keep(done, float(total) / summed, before + time.perf_counter() - started)
                total.zero_()
                summed = 0
                moving.train()
                if self.group.agreed(self._over()):
                    return

    def step(self, moving: nn.Module, step: int, batch: Mapping[str, Tensor]) -> Tensor:
        """One step of the optimiser; its loss stays on the device."""
        rate = rate_at(step, rate=self.recipe.rate, steps=self.steps, warm_up=self.warm_up)
        for parameters in self.optimiser.param_groups:
            parameters["lr"] = rate
        margin = margin_at(step, margin=self.recipe.margin, over=self.margin_steps)
        self.optimiser.zero_grad(set_to_none=True)
        with torch.autocast(self.group.device.type, torch.bfloat16, enabled=self.mixed):
            loss: Tensor = moving(speech_of(batch, self.responses), batch["labels"], margin)
        loss.backward()
        self.optimiser.step()
        return loss

    def _over(self) -> bool:
        patience = self.recipe.patience
        return patience is not None and self.position.stale() >= patience

    def _refuse_nan(self, total: Tensor, step: int) -> None:
        if not math.isfinite(float(total)):
            kept = self.position.step
            where = f"the checkpoint of step {kept} is kept" if kept else "nothing is written"
            raise InputError(
                f"training: the loss is not finite at step {step + 1}: expected a lower rate than"
                f" {self.recipe.rate:g}; {where}"
            )

    def _keep(self, step: int, loss: float, seconds: float) -> None:
        eer = None
        if self.group.rank == 0:
            self.model.eval()
            eer = self.validate() if self.validate is not None else None
        curve = (*self.position.curve, Point(step, loss, eer))
        self.position = replace(self.position, step=step, curve=curve, seconds=seconds)
        if self.group.rank == 0:
            if self.position.best == len(curve) - 1:
                self.best = arrays_of(self.model.encoder)
            checkpoint.save(
                self.folder, self.run, self.position, self.model, self.optimiser, self.best
            )
        self.group.wait()

    def _tell(self, done: int, first: int, loss: float, seconds: float) -> None:
        if self.group.rank:
            return
        advance(done, self.steps)
        if self.watch is not None:
            pace = seconds / (done - first)
            curve = self.position.curve
            eer = curve[-1].eer if curve else None
            speed, rest = self.recipe.batch / pace, pace * (self.steps - done)
            self.watch(Status(done, self.steps, loss, speed, rest, eer))


@contextmanager
def _one_line(recipe: Recipe, folder: Path) -> Iterator[None]:
    """Say in a line what memory does not hold."""
    try:
        yield
    except torch.OutOfMemoryError:
        problem = "GPU"
    except RuntimeError as error:
        if "allocate memory" not in one_line(str(error)):
            raise
        problem = "machine"
    else:
        return
    raise InputError(
        f"training: the {problem} has no memory for batches of {recipe.batch} crops of"
        f" {recipe.crop:g} s: expected smaller ones; what was kept in {folder} stays"
    )


@contextmanager
def fastest(device: torch.device) -> Iterator[None]:
    """On a GPU the fastest convolutions, chosen by trial: all crops have one length."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = device.type == "cuda"
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before
