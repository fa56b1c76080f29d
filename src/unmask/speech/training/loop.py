"""The steps of a training: crops in, gradients, a validation and a checkpoint every so often."""

from __future__ import annotations

import math
import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unmask.base import IntArray, one_line
from unmask.errors import InputError
from unmask.speech.encoders import weights_of
from unmask.speech.encoders.card import Recipe, Tensors, recipe_of, weights_of_folder
from unmask.speech.encoders.networks import Angular, Softmax, build, margin_at
from unmask.speech.encoders.neural import Filterbanks, by_length
from unmask.speech.training import data
from unmask.speech.training.data import Corpus, Samples
from unmask.speech.training.run import Group, Position, TrainingRun, arrays_of

_AHEAD = 4
_ORDER, _PLACES = 1, 2
_REPORT_SECONDS = 1.0
_LOWEST_RATE = 0.01
_NO_MEMORY = re.compile("allocate memory|create a primitive")
_BLOCK = 50
"""Steps between looks at the loss of a GPU, which is far ahead of this program."""


@dataclass(frozen=True)
class BatchPlan:
    """All batches, of which process ``part`` takes a share; crops follow from seed and step."""

    recipe: Recipe
    samples: Samples
    labels: IntArray
    noise: Samples | None = None
    responses: int = 0
    part: int = 0
    parts: int = 1

    @property
    def epoch(self) -> int:
        """Steps of an epoch."""
        return max(1, len(self.samples) // self.recipe.batch)

    def rows_at(self, step: int) -> IntArray:
        """Rows of the crops of a step."""
        epoch, within = divmod(step, self.epoch)
        size = self.recipe.batch
        order = _order(self.recipe.seed, epoch, len(self.samples))
        return np.resize(order[within * size :], size)

    def at(self, step: int) -> dict[str, Any]:
        """The batch of a step: ``crops``, their ``labels``, ``noise`` of the same shape with its
        level ``snr`` in dB below the speech, and the number of a ``response`` or −1.
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
            "crops": self.samples.crops(chosen[mine], places[mine], length),
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
    return np.random.default_rng([seed, _ORDER, epoch]).permutation(count)


@contextmanager
def ahead(
    plan: BatchPlan, first: int, last: int, device: Any
) -> Iterator[Iterator[dict[str, Any]]]:
    """Batches of some steps as tensors; those of a GPU are made a few steps ahead by a thread."""
    plan = replace(plan, samples=plan.samples.near(device))
    pinned = device.type == "cuda"

    def made(step: int) -> dict[str, Any]:
        tensors = {k: torch.as_tensor(v) for k, v in plan.at(step).items()}
        return {k: v.pin_memory() if pinned and v.is_cpu else v for k, v in tensors.items()}

    def taken() -> Iterator[dict[str, Any]]:
        steps = iter(range(first, last))
        waiting = deque(pool.submit(made, step) for step in islice(steps, _AHEAD))
        while waiting:
            batch = waiting.popleft().result()
            waiting.extend(pool.submit(made, step) for step in islice(steps, 1))
            yield {k: v.to(device, non_blocking=pinned) for k, v in batch.items()}

    if device.type == "cpu":
        # Python waits for ever for a thread that found no memory to begin with, whoever ends it.
        yield map(made, range(first, last))
        return
    pool = ThreadPoolExecutor(1, thread_name_prefix="batches")
    try:
        yield taken()
    finally:
        pool.shutdown(cancel_futures=True)


LONGEST_RESPONSE = 8000
"""Samples of an impulse response that are used: half a second."""


def responses_of(samples: Samples, device: torch.device) -> Tensor:
    """Impulse responses from their peak on, of unit energy: (count, 8000)."""
    rows = []
    for number in range(len(samples)):
        whole = samples.row(number).astype(np.float32)
        tail = whole[int(np.abs(whole).argmax()) :][:LONGEST_RESPONSE]
        tail = tail / np.linalg.norm(tail)
        rows.append(np.pad(tail, (0, LONGEST_RESPONSE - tail.size)))
    return torch.from_numpy(np.stack(rows)).to(device)


def speech_of(batch: Mapping[str, Tensor], responses: Tensor | None) -> Tensor:
    """Crops as floats in [−1, 1], with noise or in a room where the batch says so."""
    speech = batch["crops"].float() / 32768.0
    if "noise" in batch:
        speech = add_noise(speech, batch["noise"].float() / 32768.0, batch["snr"])
    if responses is not None:
        speech = in_rooms(speech, responses, batch["response"])
    return speech


def add_noise(speech: Tensor, noise: Tensor, snr: Tensor) -> Tensor:
    """Speech with noise ``snr`` decibels below it; where noise is all zeros, speech as it is."""
    power = noise.square().mean(1)
    gain = speech.square().mean(1) / power.clamp(min=1e-12) * 10.0 ** (-snr / 10.0)
    return speech + torch.where(power > 0, gain, 0.0).sqrt()[:, None] * noise


def in_rooms(speech: Tensor, responses: Tensor, numbers: Tensor) -> Tensor:
    """Speech convolved with the response of that number; −1 leaves it as it is."""
    size = speech.shape[1] + responses.shape[1]
    chosen = torch.fft.rfft(responses[numbers.clamp(min=0)], n=size)
    heard = torch.fft.irfft(torch.fft.rfft(speech, n=size) * chosen, n=size)
    return torch.where(numbers[:, None] >= 0, heard[:, : speech.shape[1]], speech)


class Classifier(nn.Module):
    """Samples to loss: filterbanks, the network to train, one class per speaker."""

    def __init__(self, features: Filterbanks, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.features = features
        self.encoder = encoder
        self.head = head

    def forward(self, samples: Tensor, labels: Tensor, margin: float) -> Tensor:
        return self.head(self.encoder(self.features(samples)), labels, margin)


@dataclass
class Loop:
    """The steps of one run; ``validate`` gives an EER or is None."""

    run: TrainingRun
    model: Classifier
    plan: BatchPlan
    responses: Tensor | None = None
    validate: Callable[[], float] | None = None

    def __post_init__(self) -> None:
        recipe = self.run.recipe
        self.steps = recipe.steps or recipe.epochs * self.plan.epoch
        self.every = recipe.every or self.plan.epoch
        some = list(self.model.parameters())
        self.optimiser = torch.optim.AdamW(
            some, lr=recipe.rate, weight_decay=recipe.decay, fused=some[0].is_cuda or None
        )
        warm_up, rise = recipe.warm_up, recipe.margin_steps
        self.warm_up = min(self.steps // 20 if warm_up is None else warm_up, self.steps)
        self.margin_steps = self.steps // 5 if rise is None else rise
        self.device = self.run.group.device
        self.mixed = recipe.precision != "fp32" and self.device.type == "cuda"
        self.best: Tensors = {}

    def train(self) -> tuple[Tensors, dict[str, Any]]:
        """Go on from the checkpoint to the end; the best weights, or last ones, and their card."""
        self.best = self.run.restore(self.model, self.optimiser)
        moving = self.run.group.wrapped(self.model)
        first = self.run.position.step
        if first < self.steps and not self._over():
            with (
                _one_line(self.run),
                fastest(self.device),
                ahead(self.plan, first, self.steps, self.device) as batches,
            ):
                self._steps(moving, batches)
        position = self.run.position
        lowest = position.lowest
        step, _, eer = position.curve[lowest[-1]] if lowest else (position.step, 0.0, None)
        return self.best or arrays_of(self.model.encoder), self.run.card(step, eer)

    def _steps(self, moving: nn.Module, batches: Iterator[dict[str, Tensor]]) -> None:
        started, before = time.perf_counter(), self.run.position
        moving.train()
        total = torch.zeros((), device=self.device, dtype=torch.float64)
        summed, reported = 0, started
        look = 1 if self.device.type == "cpu" else _BLOCK
        for step, batch in enumerate(batches, start=before.step):
            total += self.step(moving, step, batch).detach()
            summed += 1
            done = step + 1
            ending = done % self.every == 0 or done == self.steps
            if done % look == 0 or ending:
                self._refuse_nan(float(total), done)
                now = time.perf_counter()
                if now - reported > _REPORT_SECONDS or ending:
                    reported = now
                    loss, pace = float(total) / summed, (now - started) / (done - before.step)
                    self.run.report(done, self.steps, loss, pace)
            if ending:
                spent = before.seconds + time.perf_counter() - started
                self._keep(done, float(total) / summed, spent)
                total.zero_()
                summed = 0
                moving.train()
                if self.run.group.agreed(self._over()):
                    return

    def step(self, moving: nn.Module, step: int, batch: Mapping[str, Tensor]) -> Tensor:
        """One step of the optimiser; its loss stays on the device."""
        for parameters in self.optimiser.param_groups:
            parameters["lr"] = self.rate_at(step)
        margin = margin_at(step, margin=self.run.recipe.margin, over=self.margin_steps)
        self.optimiser.zero_grad(set_to_none=True)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.mixed):
            loss: Tensor = moving(speech_of(batch, self.responses), batch["labels"], margin)
        loss.backward()
        self.optimiser.step()
        return loss

    def rate_at(self, step: int) -> float:
        """Learning rate of a step: a straight rise, then half a cosine down to a hundredth."""
        rate, warm_up = self.run.recipe.rate, self.warm_up
        if step < warm_up:
            return rate * (step + 1) / warm_up
        turned = math.pi * (step - warm_up) / max(1, self.steps - warm_up)
        return rate * (_LOWEST_RATE + (1.0 - _LOWEST_RATE) * 0.5 * (1.0 + math.cos(turned)))

    def _over(self) -> bool:
        """Whether the EER has not fallen for as many validations as patience lasts."""
        patience, lowest = self.run.recipe.patience, self.run.position.lowest
        stale = len(self.run.position.curve) - 1 - lowest[0] if lowest else 0
        return patience is not None and stale >= patience

    def _refuse_nan(self, total: float, step: int) -> None:
        if not math.isfinite(total):
            kept, rate = self.run.position.step, self.run.recipe.rate
            left = f"the checkpoint of step {kept} is kept" if kept else "nothing is written"
            reason = f"the loss is not finite at step {step}: expected a lower rate than {rate:g}"
            raise InputError(f"training: {reason}; {left}")

    def _keep(self, step: int, loss: float, seconds: float) -> None:
        first, eer = self.run.group.rank == 0, None
        if first:
            self.model.eval()
            eer = self.validate() if self.validate is not None else None
        curve = (*self.run.position.curve, (step, round(loss, 6), eer))
        self.run.position = Position(step, curve, seconds)
        if first:
            if self.run.position.lowest[-1:] == [len(curve) - 1]:
                self.best = arrays_of(self.model.encoder)
            self.run.save(self.model, self.optimiser, self.best)
        self.run.group.wait()


@contextmanager
def _one_line(run: TrainingRun) -> Iterator[None]:
    """Say in a line what memory does not hold."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        on_gpu, full = (isinstance(error, x) for x in (torch.OutOfMemoryError, MemoryError))
        if not on_gpu and not full and not _NO_MEMORY.search(one_line(str(error))):
            raise
        raise InputError(
            f"training: the {'GPU' if on_gpu else 'machine'} has no memory for batches of"
            f" {run.recipe.batch} crops of {run.recipe.crop:g} s: expected smaller ones; what was"
            f" kept in {run.folder} stays"
        ) from None


def fastest(device: torch.device) -> AbstractContextManager[None]:
    """On a GPU the fastest convolutions, chosen by trial: all crops have one length."""
    return torch.backends.cudnn.flags(enabled=True, benchmark=device.type == "cuda")


def new_classifier(
    recipe: Recipe, speakers: int, device: torch.device, start: str | None = None
) -> Classifier:
    """A network with its loss on a device, from the recipe's seed or the weights of ``start``."""
    size = recipe.dimension
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        encoder = build(recipe)
        if recipe.loss == "softmax":
            head = Softmax(size, speakers, hidden=size if recipe.network == "tdnn" else None)
        else:
            head = Angular(size, speakers, kind=recipe.loss, scale=recipe.scale)
    if start is not None:
        begun = "campplus" if start == "campplus" else recipe_of(start).network
        if begun != recipe.network:
            raise InputError(f"{start}: expected weights of {recipe.network}, found {begun}")
        if start == "campplus":
            weights = torch.load(weights_of(start).checked(), weights_only=True, map_location="cpu")
        else:
            weights = {k: torch.from_numpy(v) for k, v in weights_of_folder(start).items()}
        try:
            encoder.load_state_dict(weights)
        except RuntimeError as error:
            line = str(error).strip().splitlines()[-1].strip()
            raise InputError(f"{start}: weights of another {recipe.network}: {line}") from None
    model = Classifier(Filterbanks(recipe.bins), encoder, head).to(device)
    layout = torch.channels_last if device.type == "cuda" else torch.preserve_format
    return model.to(memory_format=layout)


def train_network(
    run: TrainingRun, corpus: Corpus, apart: Corpus | None, start: str | None
) -> tuple[Tensors, dict[str, Any]]:
    """Weights of a trained network, and what the card says of the training."""
    recipe, own = run.recipe, run.group
    if recipe.batch % own.size:
        raise InputError("batch", f"a multiple of the {own.size} processes", recipe.batch)
    extra = {
        name: own.in_turn(partial(data.decode, data.audio_files(path), run.folder / name)).samples
        for name, path in (("noise", recipe.noise), ("responses", recipe.responses))
        if path is not None
    }
    rooms = responses_of(extra["responses"], own.device) if "responses" in extra else None
    count = 0 if rooms is None else len(rooms)
    noise = extra.get("noise")
    plan = BatchPlan(recipe, corpus.samples, corpus.labels, noise, count, own.rank, own.size)
    model = new_classifier(recipe, len(corpus.speakers), own.device, start)
    loop = Loop(run, model, plan, rooms)
    if apart is not None:
        samples, labels = data.some_of(apart)
        heard = partial(by_length, samples, lambda s: model.encoder(model.features(s)), own.device)
        loop.validate = lambda: data.equal_error_rate(heard(), labels)
    return loop.train()


def network_seconds(
    recipe: Recipe, speakers: int, utterances: int, device: torch.device, start: str | None
) -> float:
    """Seconds that the steps of a training will take, from the time of two of them."""
    rows = np.zeros(utterances * (1 + len(recipe.speeds)), np.int64)
    model = new_classifier(recipe, speakers, device, start).train()
    plan = BatchPlan(recipe, Samples((), rows, rows, rows), rows)
    loop = Loop(TrainingRun(recipe, Group(0, 1, device), Path(), {}), model, plan)
    generator = torch.Generator().manual_seed(recipe.seed)
    crops = 3000 * torch.randn(recipe.batch, recipe.crop_samples, generator=generator)
    labels = torch.randint(speakers, (recipe.batch,), generator=generator)
    batch = {"crops": crops.to(device), "labels": labels.to(device)}
    taken = []
    with fastest(device):
        for _ in range(2 if device.type == "cpu" else 10):
            begun = time.perf_counter()
            loop.step(model, loop.steps, batch).item()
            taken.append(time.perf_counter() - begun)
    return min(taken) * loop.steps
