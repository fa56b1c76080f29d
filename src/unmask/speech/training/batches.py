"""Which crops a step takes, and how they get to the device while it works.

They are drawn from the seed and the number of the step alone: a run that goes on needs no state of
a random generator.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from unmask.base import IntArray
from unmask.speech.training.data import Samples
from unmask.speech.training.recipe import Recipe

_AHEAD = 4
_ORDER, _PLACES = 1, 2


@dataclass(frozen=True)
class Plan:
    """All batches of a run; ``rows`` are those of the training speakers, ``part`` is the rank of
    this process among ``parts``, each of which takes its share of every batch.
    """

    recipe: Recipe
    samples: Samples
    rows: IntArray
    labels: IntArray
    noise: Samples | None = None
    responses: int = 0
    part: int = 0
    parts: int = 1

    @property
    def epoch(self) -> int:
        """Steps of an epoch."""
        return max(1, len(self.rows) // self.recipe.batch)

    def rows_at(self, step: int) -> IntArray:
        """Places in ``rows`` of the crops of a step."""
        epoch, within = divmod(step, self.epoch)
        size = self.recipe.batch
        order = _order(self.recipe.seed, epoch, len(self.rows))
        return np.resize(order[within * size :], size)

    def at(self, step: int) -> dict[str, Any]:
        """The batch of a step: ``crops`` (batch, samples), their speakers as ``labels``, and what
        disturbs them: ``noise`` of the same shape with its level ``snr`` in dB below the speech,
        and the number of a ``response``, or −1 for none.
        """
        chosen = self.rows_at(step)
        generator = np.random.default_rng([self.recipe.seed, _PLACES, step])
        size, length = len(chosen), self.recipe.crop_samples
        places, kinds, picks = generator.random((3, size))
        snr = generator.uniform(*self.recipe.snr, size).astype(np.float32)
        # All crops that are augmented get noise, or half of them where there are responses.
        share = self.recipe.augmented * (0.5 if self.responses else 1.0)
        noisy = (kinds < share) & (self.noise is not None)
        echoing = (kinds < self.recipe.augmented) & ~noisy & (self.responses > 0)
        response = np.where(echoing, np.floor(picks * self.responses), -1.0)
        mine = slice(self.part, None, self.parts)
        batch = {
            "crops": self.samples.crops(self.rows[chosen[mine]], places[mine], length),
            "labels": self.labels[chosen[mine]],
            "snr": snr[mine],
            "response": response[mine].astype(np.int64),
        }
        if self.noise is not None:
            batch["noise"] = noise = np.zeros((len(chosen[mine]), length), np.int16)
            for n in np.flatnonzero(noisy[mine]):
                number = int(picks[mine][n] * len(self.noise))
                noise[n] = self.noise.crop(number, generator.random(), length)
        return batch


@lru_cache(maxsize=2)
def _order(seed: int, epoch: int, count: int) -> IntArray:
    """The order of the recordings in an epoch."""
    return np.random.default_rng([seed, _ORDER, epoch]).permutation(count)


@contextmanager
def ahead(plan: Plan, first: int, last: int, device: Any) -> Iterator[Iterator[dict[str, Any]]]:
    """Batches of the steps from ``first`` up to ``last`` as tensors, made by a thread that stays a
    few steps ahead, in pinned memory where the device is a GPU that does not hold all samples.
    """
    import torch

    plan = replace(plan, samples=plan.samples.near(device))
    ready: queue.Queue[dict[str, Any] | BaseException | None] = queue.Queue(_AHEAD)
    stop = threading.Event()
    pinned = device.type == "cuda"

    def put(item: dict[str, Any] | BaseException | None) -> None:
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.1)
                return
            except queue.Full:
                continue

    def work() -> None:
        try:
            for step in range(first, last):
                if stop.is_set():
                    return
                tensors = {k: torch.as_tensor(v) for k, v in plan.at(step).items()}
                put({k: v.pin_memory() if pinned and v.is_cpu else v for k, v in tensors.items()})
            put(None)
        except BaseException as error:
            put(error)

    def taken() -> Iterator[dict[str, Any]]:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield {k: v.to(device, non_blocking=pinned) for k, v in item.items()}

    thread = threading.Thread(target=work, name="batches", daemon=True)
    thread.start()
    try:
        yield taken()
    finally:
        stop.set()
        thread.join()
