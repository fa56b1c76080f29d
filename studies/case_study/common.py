"""What both scripts need: recordings, training within a time limit, vectors of sets."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unmask.run import run_on
from unmask.speech import (
    Recipe,
    Recording,
    Trained,
    embed,
    load_encoder,
    recordings,
    train,
    training_seconds,
)
from unmask.speech.training.data import decode

MANY, MNIST, LIBRI = "many_speakers_16k", "audiomnist_5digit_16k", "librispeech_test-other"


def speakers_of(data: Path, name: str, most: int | None) -> tuple[Recording, ...]:
    """Recordings of a set, or of its first speakers alone."""
    whole = recordings(data / name)
    kept = sorted({one.speaker for one in whole})[:most]
    return tuple(one for one in whole if one.speaker in kept)


def named(some: Sequence[Recording], run: str) -> list[Recording]:
    """Recordings whose utterances are told apart from those of other runs."""
    return [replace(one, utterance=f"{run}/{one.utterance}") for one in some]


def trained(
    name: str,
    some: Sequence[Recording],
    out: Path,
    recipe: Recipe,
    *,
    seconds: float,
    device: str,
    start: str | None = None,
) -> Trained:
    """Train as many steps as fit into the time, at most those of the recipe; a run that was stopped
    goes on with the same number.
    """
    note = out / f"{name}.steps.json"
    if not note.is_file():
        people = len({one.speaker for one in some})
        whole = training_seconds(
            recipe, speakers=people, utterances=len(some), device=device, start=start
        )
        steps = recipe.steps or recipe.epochs * max(1, len(some) // recipe.batch)
        fitting = max(2, int(min(1.0, seconds / whole) * steps))
        note.write_text(json.dumps({"steps": fitting, "second_per_step": whole / steps}))
    steps = json.loads(note.read_text())["steps"]
    recipe = replace(recipe, steps=steps, every=max(1, steps // 10))
    printed = [0.0]

    def watch(status: Any) -> None:
        if time.time() - printed[0] > 10 or status.step == status.steps:
            printed[0] = time.time()
            eer = "" if status.eer is None else f", EER {100 * status.eer:.2f} %"
            print(
                f"{name}: step {status.step} of {status.steps}, loss {status.loss:.3f},"
                f" {status.speed:.0f} crops/s, {status.remaining:.0f} s left{eer}",
                flush=True,
            )

    made = train(some, out / name, recipe=recipe, start=start, device=device, watch=watch)
    for line in (*made.remarks, *made.failures[:3]):
        print(f"{name}: {line}", flush=True)
    return made


def vectors(some: Sequence[Recording], encoder: Any, device: str) -> np.ndarray:
    """Vectors in the order of the recordings."""
    with run_on(workers=1):
        done = embed(some, encoder, device=device)
    if done.failures or done.embeddings is None:
        raise SystemExit("; ".join(done.failures[:3]))
    return np.asarray(done.embeddings.vectors, dtype=np.float32)


def crops(
    some: Sequence[Recording], encoder: Any, folder: Path, seconds: float = 3.0
) -> np.ndarray:
    """Vectors of the first seconds of many recordings, decoded by all processors: equal lengths go
    through a network together.
    """
    samples = decode(some, folder).samples
    length = round(16000 * seconds)
    cut = [samples.crop(row, 0.0, length) / np.float32(32768.0) for row in range(len(samples))]
    assert len(cut) == len(some)
    return np.asarray(encoder.encode([one.astype(np.float32) for one in cut]), dtype=np.float32)


def loaded(folder: Path | str, device: str) -> Any:
    """An encoder on a device."""
    return load_encoder(str(folder), device=device)
