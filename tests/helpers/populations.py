"""Populations with a known amount of speaker information."""

from __future__ import annotations

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
    draws: Seed,
) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian means of speakers plus Gaussian noise, and the speaker of every row.

    ``means`` and ``draws`` are seeds, or generators: one for both draws the means first; means may
    be given as they are. ``noise`` is one number, or one of each direction, or of each row
    (rows, 1).
    """
    centres = means
    if not isinstance(means, np.ndarray):
        centres = np.random.default_rng(means).normal(size=(speakers, dimension))
    owner = np.repeat(np.arange(speakers), np.broadcast_to(each, speakers))
    random = np.random.default_rng(draws)
    return centres[owner] + noise * random.normal(size=(len(owner), dimension)), owner


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
    vectors, owner = speakers_with_noise(
        speakers, utterances, dimension, noise=noise, means=centres, draws=draws
    )
    more = {}
    if columns:
        more = {
            "gender": np.where(centres[owner, 0] > 0, "f", "m"),
            "age": (30 + 10 * centres[owner, 1]).round(1).astype(str),
        }
    names = [f"{tag}-{i}" for i in range(len(owner))] if named else None
    return um.Embeddings(vectors, [f"s{i}" for i in owner], names, columns=more)
