"""Populations with a known amount of speaker information."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import unmask as um

Seed = int | np.random.Generator


def speakers_with_noise(
    speakers: int,
    each: int | list[int] | np.ndarray,
    dimension: int,
    *,
    noise: float | np.ndarray,
    means: Seed | np.ndarray,
    draws: Seed | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian means of speakers plus Gaussian noise, and the speaker of every row.

    ``means`` and ``draws`` are seeds, or generators; without ``draws``, that of the means goes on.
    Means may be given as they are. ``noise`` is one number, or one of each direction, or of each
    row (rows, 1).
    """
    centres = means
    if not isinstance(means, np.ndarray):
        means = np.random.default_rng(means)
        centres = means.normal(size=(speakers, dimension))
    owner = np.repeat(np.arange(speakers), np.broadcast_to(each, speakers))
    random = np.random.default_rng(means if draws is None else draws)
    return centres[owner] + noise * random.normal(size=(len(owner), dimension)), owner


def named_speakers(
    speakers: int,
    each: int | list[int] | np.ndarray,
    dimension: int,
    *,
    noise: float | np.ndarray,
    means: Seed | np.ndarray,
    draws: Seed | None = None,
    speaker: str = "s{:02}",
    utterance: str | None = "{name}-{n}",
    dtype: type = np.float64,
    **more: Any,
) -> um.Embeddings:
    """Speakers with noise as embeddings; ``more`` goes to them as it is.

    ``utterance`` is made of the speaker's ``name``, ``n`` among the speaker's own, and the ``row``.
    """
    vectors, owner = speakers_with_noise(
        speakers, each, dimension, noise=noise, means=means, draws=draws
    )
    names = [speaker.format(k) for k in owner]
    own = np.arange(owner.size) - np.searchsorted(owner, owner)
    utterances = utterance and [
        utterance.format(name=name, n=n, row=row)
        for row, (name, n) in enumerate(zip(names, own, strict=True))
    ]
    return um.Embeddings(vectors.astype(dtype, copy=False), names, utterances, **more)


def population(
    speakers: int,
    utterances: int | list[int],
    *,
    noise: float,
    tag: str,
    seed: int = 0,
    dimension: int = 16,
    signal: float = 1.0,
    columns: bool = False,
    named: bool = True,
) -> um.Embeddings:
    """Speaker vectors depend on ``dimension`` and ``signal`` only; ``seed`` and ``tag`` vary."""
    centres = signal * np.random.default_rng(1234).normal(size=(speakers, dimension))
    draws = np.random.default_rng([seed, sum(map(ord, tag))])
    more = {}
    if columns:
        gender = np.where(centres[:, 0] > 0, "f", "m")
        age = (30 + 10 * centres[:, 1]).round(1).astype(str)
        more = {"gender": np.repeat(gender, utterances), "age": np.repeat(age, utterances)}
    return named_speakers(
        speakers,
        utterances,
        dimension,
        noise=noise,
        means=centres,
        draws=draws,
        speaker="s{}",
        utterance=f"{tag}-{{row}}" if named else None,
        columns=more,
    )


def trials_with_effects(
    draws: Seed,
    speakers: int,
    *,
    targets: int = 3,
    nontargets: int = 2,
    within: bool = False,
) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Scores with a random effect of each speaker: targets, nontargets, codes of speakers.

    So many ``targets`` of each speaker and ``nontargets`` of each pair, and one more of each
    speaker with itself where ``within``.
    """
    random = np.random.default_rng(draws)
    effect = random.normal(0, 0.5, speakers)
    everyone = np.arange(speakers)
    own, extra = np.repeat(everyone, targets), everyone[: speakers * within]
    a, b = (np.append(np.repeat(side, nontargets), extra) for side in np.triu_indices(speakers, 1))
    target = 2 + effect[own] + random.normal(0, 1, own.size)
    return target, effect[a] + effect[b] + random.normal(0, 1, a.size), (own, a, b)


def two_systems(
    seed: int, speakers: int, each: int, *, noise: float
) -> tuple[list[str], list[str], list[str]]:
    """Lines of scores of all trials, of the same scores with noise, and of their key."""
    rng = np.random.default_rng(seed)
    plain, noisy, key = [], [], []
    for enrol, test in np.ndindex(speakers, speakers * each):
        same = enrol == test // each
        score = rng.normal(3 if same else 0)
        trial = f"s{enrol}-e s{test // each}-u{test}"
        plain.append(f"{trial} {score:.4f}")
        noisy.append(f"{trial} {score + rng.normal(0, noise):.4f}")
        key.append(f"{trial} {'target' if same else 'nontarget'}")
    return plain, noisy, key


def write_release(
    folder: Path, rng: np.random.Generator, speakers: int, each: int, dimension: int
) -> tuple[np.ndarray, np.ndarray]:
    """``o.npz``, ``p.npz`` with noise, and ``trials`` and ``scores`` of all pairs of ``o``."""
    vectors, owner = speakers_with_noise(speakers, each, dimension, noise=0.5, means=rng)
    utterances = [f"u{i}" for i in range(owner.size)]
    names = {"utt_ids": utterances, "speaker_ids": [f"s{c}" for c in owner]}
    for name, noise in (("o", 0.0), ("p", 0.7)):
        drawn = vectors + noise * rng.normal(size=vectors.shape)
        np.savez(folder / name, embeddings=drawn, **names)
    pairs = [(i, j) for i in range(owner.size) for j in range(i)]
    key = [f"u{i} u{j} {'' if owner[i] == owner[j] else 'non'}target\n" for i, j in pairs]
    scores = [f"u{i} u{j} {vectors[i] @ vectors[j]:.4f}\n" for i, j in pairs]
    (folder / "trials").write_text("".join(key))
    (folder / "scores").write_text("".join(scores))
    return vectors, owner


def some_trials(seed: int, number: int, names: int) -> dict[str, Any]:
    """Some of all trials of ``names`` models and as many utterances, ten of each speaker."""
    rng = np.random.default_rng(seed)
    enrol, test = np.divmod(rng.choice(names * names, number, replace=False), names)
    same = (enrol - test) % (names // 10) == 0
    return {
        "enrol": [f"e{i}" for i in enrol],
        "test": [f"t{i}" for i in test],
        "score": np.round(rng.normal(0, 1, number) + 2 * same, 2),
        "label": np.where(same, "target", "nontarget"),
    }


def score_matrices(
    draws: Seed, speakers: Sequence[str] | np.ndarray, *gaps: float, digits: int | None = None
) -> list[np.ndarray]:
    """A score of each pair of utterances, higher by each of the ``gaps`` within a speaker."""
    random, same = np.random.default_rng(draws), np.equal.outer(speakers, speakers)
    made = [random.normal(size=same.shape) + gap * same for gap in gaps]
    return made if digits is None else [np.round(one, digits) for one in made]


def cube(targets: int, impostors: int, size: int, seed: int = 0) -> np.ndarray:
    """So many scores of each target with each impostor, around a mean of the pair."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(targets, impostors, 1)) + rng.normal(size=(targets, impostors, size))


def hum(pitch: float, seed: int, *, seconds: float = 0.75) -> np.ndarray:
    """A buzzing voice with its own pitch and colour, at 16 kHz."""
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * 16_000)) / 16_000
    tones = sum(np.sin(2 * np.pi * pitch * k * time + rng.random()) / k for k in range(1, 20))
    return 0.1 * tones + 0.01 * rng.normal(size=time.size)
