"""A small study: ten speakers with awkward names, one safeguard run twice, one strong one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from unmask.trials import Embeddings, Ids, Scores, write

SPEAKERS = [
    "<script>alert(1)</script>",
    "Ada & Bob",
    "Ümit",
    *(f"speaker-{n:02d}" for n in range(9)),
]
UTTERANCES = 8

CONFIG = """
title = "Small <b>study</b>"
seed = 3

[intervals]
replicates = 20

[original]
embeddings = "original.npz"

[[safeguards]]
name = "weak"
embeddings = "weak.npz"
again = "weak-again.npz"

[[safeguards]]
name = "strong"
embeddings = "strong.npz"

[[scores]]
name = "two systems"
files = ["scores.parquet"]

[legal]
lengths = [1, 2]
draws = 2
folds = 2

[legal.attributes]
gender = []

[verification]
by = "gender"

[cpmap]
grid = 10
replicates = 5

[worst_case]
model = "gpd"
"""


def voices(noise: float, turn: float, seed: int) -> Embeddings:
    base = np.random.default_rng(7)
    means = np.repeat(base.normal(size=(len(SPEAKERS), 12)), UTTERANCES, axis=0)
    own = base.normal(size=means.shape)
    rng = np.random.default_rng(seed)
    mixed = (1 - turn) * means + turn * means @ rng.normal(size=(12, 12)) / 3
    names = [f"{s}/{n}" for s in range(len(SPEAKERS)) for n in range(UTTERANCES)]
    gender = ["f" if n % 2 else "m" for n in range(len(SPEAKERS))]
    return Embeddings(
        (mixed + 0.4 * own + noise * rng.normal(size=means.shape)).astype(np.float32),
        np.repeat(SPEAKERS, UTTERANCES),
        names,
        columns={"gender": np.repeat(gender, UTTERANCES)},
    )


def make(place: Path) -> Path:
    """A folder with data and a config."""
    folder = place / "study"
    folder.mkdir()
    write(voices(0.0, 0.0, 0), folder / "original.npz")
    write(voices(0.4, 0.3, 1), folder / "weak.npz")
    write(voices(0.4, 0.3, 2), folder / "weak-again.npz")
    write(voices(1.5, 0.95, 3), folder / "strong.npz")
    rng = np.random.default_rng(0)
    label = np.repeat([1, 0], [80, 400])
    speaker = [f"speaker-{n % 9:02d}" for n in range(480)]
    other = [s if t else f"speaker-{(n + 1 + n // 9 % 7) % 9:02d}"
             for n, (s, t) in enumerate(zip(speaker, label, strict=True))]  # fmt: skip
    write(
        Scores(
            Ids.from_strings([f"e{n}" for n in range(480)]),
            Ids.from_strings([f"t{n}" for n in range(480)]),
            label.astype(np.int8),
            enrol_speaker=Ids.from_strings(speaker),
            test_speaker=Ids.from_strings(other),
            systems={
                name: rng.normal(size=480) + gap * label for name, gap in (("a", 2), ("b", 3))
            },
        ),
        folder / "scores.parquet",
    )
    (folder / "study.toml").write_text(CONFIG, encoding="utf-8")
    return folder
