"""Seconds of a training step against bare forward and backward passes on tensors already there.

    python -m studies.case_study.speed DATA OUT --device cuda

A step decodes nothing but takes crops from the disk, computes filterbanks, loss and gradients and
moves the weights. Bare: the network and its loss on filterbanks on the device, and their
gradients; nothing else. The goal is a ratio of at most 1.3.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from studies.case_study.common import MANY, speakers_of
from unmask.speech import Recipe
from unmask.speech.encoders.neural import checked
from unmask.speech.training.data import decode
from unmask.speech.training.loop import BatchPlan, Loop, ahead, new_classifier
from unmask.speech.training.run import Group, TrainingRun


def main() -> None:
    """A line for each network."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--speakers", type=int, default=100)
    parser.add_argument("--networks", nargs="+", default=["campplus", "resnet34", "ecapa", "tdnn"])
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    device = checked(options.device)
    some = speakers_of(options.data, MANY, options.speakers)
    corpus = decode(some, options.out / "speed-data")
    rows = {}
    for network in options.networks:
        recipe = Recipe(network=network, batch=options.batch, steps=10**6)
        model = new_classifier(recipe, len(corpus.speakers), device).train()
        plan = BatchPlan(recipe, corpus.samples, corpus.labels)
        loop = Loop(TrainingRun(recipe, Group(0, 1, device), options.out, {}), model, plan)
        torch.backends.cudnn.benchmark = device.type == "cuda"
        rows[network] = measured(loop, options.steps, device)
        print(network, rows[network], flush=True)
    rows["device"] = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
    rows["batch"] = options.batch
    (options.out / "speed.json").write_text(json.dumps(rows, indent=1))


def measured(loop: Loop, steps: int, device: torch.device) -> dict[str, float]:
    """Median over five turns of milliseconds per step, whole and bare, in turns."""
    whole, bare = [], []
    with ahead(loop.plan, 0, 10**6, device) as batches:
        first = next(batches)
        features = loop.model.features(first["crops"].float() / 32768.0)

        def whole_step() -> None:
            loop.step(loop.model, 10, next(batches))

        def bare_step() -> None:
            loop.model.zero_grad(set_to_none=True)
            with torch.autocast(device.type, torch.bfloat16, enabled=loop.mixed):
                vectors = loop.model.encoder(features)
                loss = loop.model.head(vectors, first["labels"], 0.2)
            loss.backward()

        for step in (whole_step, bare_step):
            timed(step, max(2, steps // 6), device)
        for _ in range(5):
            whole.append(timed(whole_step, steps, device))
            bare.append(timed(bare_step, steps, device))
    a, b = float(np.median(whole)), float(np.median(bare))
    return {"step_ms": 1e3 * a, "bare_ms": 1e3 * b, "ratio": a / b}


def timed(step, count: int, device: torch.device) -> float:
    """Seconds of one of so many steps."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    begun = time.perf_counter()
    for _ in range(count):
        step()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return (time.perf_counter() - begun) / count


if __name__ == "__main__":
    main()
