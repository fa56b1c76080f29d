"""Pseudo-voices by pooling: the idea of the B1 baseline at embedding level. It makes no audio."""

from __future__ import annotations

import hashlib

import numpy as np

from unmask.base import FloatArray, IntArray, length_normalised
from unmask.errors import InputError
from unmask.trials import Embeddings

LEVELS = ("speaker", "utterance")


def pool_voices(
    embeddings: Embeddings,
    pool: Embeddings,
    *,
    farthest: int = 200,
    average: int = 100,
    level: str = "speaker",
    variation: bool = True,
    attribute: str | None = "gender",
    seed: int = 0,
) -> Embeddings:
    """Replace each speaker's vector by the mean of random ones among the farthest of a pool.

    ``embeddings`` are protected with voices of ``pool``, drawn by ``seed``. For a speaker
    (``level="speaker"``) or for every utterance: take the ``farthest`` vectors of the pool by
    cosine that share the ``attribute`` (a column of both sets, ``None`` for the whole pool), draw
    ``average`` of them without replacement, and average them, all length-normalised. ``variation``
    adds what each utterance differs from its speaker's mean, so that the utterances of a
    pseudo-speaker differ as those of the speaker did; without it they are all the same vector. No
    speaker of the pool may be one of those protected.
    """
    if level not in LEVELS:
        raise InputError(f"level: expected {' or '.join(LEVELS)}, found {level}")
    if not 1 <= average <= farthest:
        raise InputError(
            f"pooling: expected 1 ≤ average ≤ farthest, found {average} and {farthest}"
        )
    _refuse_shared(embeddings, pool)
    vectors = length_normalised(np.asarray(embeddings.vectors, dtype=np.float64))
    _, first, dense = np.unique(embeddings.speakers.codes, return_index=True, return_inverse=True)
    means = np.zeros((first.size, vectors.shape[1]))
    np.add.at(means, dense, vectors)
    means /= np.bincount(dense)[:, None]
    groups = _groups(embeddings, attribute, first, dense)
    voices = _voices(pool, attribute, groups, farthest)
    speakers = embeddings.speakers.to_series()

    def pseudo_voice(vector: FloatArray, row: int, name: str) -> FloatArray:
        """Mean of the drawn voices."""
        known = voices[groups[row]]
        how = {"farthest": farthest, "average": average, "seed": seed}
        return np.asarray(known[chosen_voices(known, vector, name=name, **how)].mean(axis=0))

    if level == "speaker":
        directions = length_normalised(means)
        rows = enumerate(first.tolist())
        pseudo = np.stack([pseudo_voice(directions[n], r, speakers[r]) for n, r in rows])[dense]
    else:
        pseudo = np.stack(
            [pseudo_voice(v, row, f"{speakers[row]}\0{row}") for row, v in enumerate(vectors)]
        )
    result = pseudo + vectors - means[dense] if variation else pseudo
    return Embeddings(
        result.astype(embeddings.vectors.dtype),
        embeddings.speakers,
        embeddings.utterances,
        embeddings.sessions,
        columns=embeddings.columns,
    )


def keyed(seed: int, *names: str) -> np.random.Generator:
    """A generator of its own for these names, whoever else there is and in what order."""
    digest = hashlib.sha256("\0".join(names).encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.default_rng(np.random.SeedSequence([seed, *words]))


def chosen_voices(
    voices: FloatArray, vector: FloatArray, *, farthest: int, average: int, seed: int, name: str
) -> IntArray:
    """Rows of ``average`` random ones among the ``farthest`` of ``voices`` from a ``vector``.

    By cosine of unit vectors; the draw depends on ``seed`` and ``name`` alone.
    """
    far = np.argsort(voices @ vector, kind="stable")[:farthest]
    return np.asarray(keyed(seed, name).choice(far, average, replace=False))


def _groups(
    embeddings: Embeddings, attribute: str | None, first: IntArray, dense: IntArray
) -> list[str]:
    if attribute is None:
        return [""] * len(embeddings)
    values = np.array(_column(embeddings, attribute, "embeddings"))
    mixed = values != values[first][dense]
    if mixed.any():
        row = int(np.argmax(mixed))
        raise InputError(
            f"embeddings: expected one {attribute} per speaker, found several for"
            f" {embeddings.speakers.decode(row)}"
        )
    return [str(value) for value in values]


def _voices(
    pool: Embeddings, attribute: str | None, groups: list[str], farthest: int
) -> dict[str, FloatArray]:
    vectors = length_normalised(np.asarray(pool.vectors, dtype=np.float64))
    labels = [""] * len(pool) if attribute is None else _column(pool, attribute, "pool")
    voices = {group: vectors[np.array(labels) == group] for group in sorted(set(groups))}
    for group, rows in voices.items():
        if len(rows) < farthest:
            which = f" with {attribute} {group}" if attribute else ""
            raise InputError(
                f"pool: expected at least {farthest} vectors{which}, found {len(rows)}"
            )
    return voices


def _column(embeddings: Embeddings, attribute: str, what: str) -> list[str]:
    if attribute not in embeddings.columns:
        raise InputError(f"{what}: expected a column {attribute}, found none")
    values: list[str] = embeddings.columns[attribute].to_series().to_list()
    return values


def _refuse_shared(embeddings: Embeddings, pool: Embeddings) -> None:
    shared = set(embeddings.speakers.to_series()) & set(pool.speakers.to_series())
    if shared:
        raise InputError(
            f"pool: speaker {min(shared)} is also among those to protect ({len(shared)} shared)"
        )
