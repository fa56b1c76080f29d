"""Conversations: L utterances of one speaker averaged into one embedding (Vauquier 2025, 3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from unmask.base import FloatArray, IntArray
from unmask.errors import InputError
from unmask.trials import Embeddings

EnrolLength = int | Literal["all"] | None
"""Utterances averaged in enrolment; None is the depth of Vauquier 2025, 3.4."""
MOST_CONVERSATIONS = 10
SINGLING_OUT_ENROL = 30
_ROWS = 1 << 15


@dataclass(frozen=True, eq=False)
class Conversations:
    """Unit vectors, each the normalised mean of normalised utterances of one speaker.

    Rows are sorted by speaker; ``speakers[r]`` is the row's place in ``names``. ``left_out`` counts
    speakers with too few utterances, ``short`` speakers averaged over fewer than asked for.
    """

    vectors: FloatArray
    speakers: IntArray
    names: pl.Series
    left_out: int = 0
    short: int = 0

    @property
    def per_speaker(self) -> IntArray:
        """Number of conversations of each speaker."""
        return np.bincount(self.speakers, minlength=len(self.names))

    @property
    def starts(self) -> IntArray:
        """First row of each speaker."""
        return np.concatenate([[0], np.cumsum(self.per_speaker)[:-1]])


def enrolment(
    embeddings: Embeddings, *, length: EnrolLength, rng: np.random.Generator
) -> Conversations:
    """One embedding per speaker over ``length`` utterances drawn at random.

    A speaker with fewer gives all there are, and is counted as ``short``: no speaker leaves the
    attacker's list. ``"all"`` averages every utterance of everyone.
    """
    rows, rank, total = _shuffled(embeddings, rng)
    kept = np.ones(len(rows), dtype=bool) if length == "all" else rank < _positive(length)
    short = 0 if length == "all" else int((total < _positive(length)).sum())
    sizes = total if length == "all" else np.minimum(total, _positive(length))
    vectors = average(embeddings, rows[kept], sizes)
    return Conversations(vectors, np.arange(len(total)), _names(embeddings), short=short)


def conversations(
    embeddings: Embeddings,
    *,
    length: int,
    least: int,
    most: int = MOST_CONVERSATIONS,
    rng: np.random.Generator,
) -> Conversations:
    """Up to ``most`` disjoint conversations of ``length`` utterances per speaker.

    A speaker with fewer than ``least``·``length`` utterances is left out, and counted.
    """
    rows, rank, total = _shuffled(embeddings, rng)
    kept = np.minimum(total // _positive(length), most)
    enough = kept >= least
    if not enough.any():
        raise InputError(
            f"length {length}: expected a speaker with at least {least * length} utterances,"
            f" found at most {int(total.max())} (all {len(total)} speakers)"
        )
    kept = np.where(enough, kept, 0)
    owner = np.repeat(np.arange(len(total)), total)
    chosen = rows[rank < (kept * length)[owner]]
    vectors = average(embeddings, chosen, np.full(int(kept.sum()), length))
    names = _names(embeddings).filter(pl.Series(enough))
    speakers = np.repeat(np.arange(len(names)), kept[enough])
    return Conversations(vectors, speakers, names, left_out=int((~enough).sum()))


def average(embeddings: Embeddings, rows: IntArray, sizes: IntArray) -> FloatArray:
    """Normalise each vector, average runs of ``sizes`` rows, normalise again; in pieces."""
    means = np.empty((len(sizes), embeddings.dimension))
    ends = np.cumsum(sizes)
    equal = bool((sizes == sizes[0]).all())
    first = 0
    while first < len(sizes):
        offset = int(ends[first] - sizes[first])
        last = max(first + 1, int(np.searchsorted(ends, offset + _ROWS, side="right")))
        part = np.asarray(embeddings.vectors[rows[offset : int(ends[last - 1])]], dtype=np.float64)
        part = part / np.sqrt(np.einsum("ij,ij->i", part, part))[:, None]
        if equal:
            means[first:last] = part.reshape(last - first, -1, part.shape[1]).sum(axis=1)
        else:
            starts = ends[first:last] - sizes[first:last] - offset
            means[first:last] = np.add.reduceat(part, starts, axis=0)
        first = last
    length = np.sqrt(np.einsum("ij,ij->i", means, means))[:, None]
    if not length.all():
        raise InputError(
            f"{source_name(embeddings)}: expected conversations that can be normalised, found"
            f" {int((length == 0).sum())} whose utterances cancel out"
        )
    means /= length
    return means


def source_name(embeddings: Embeddings) -> str:
    """What to call a set in an error."""
    return embeddings.source.name if embeddings.source is not None else "embeddings"


def _positive(length: int | None) -> int:
    if length is None or isinstance(length, bool) or int(length) != length or length < 1:
        raise InputError(f"length: expected a whole number of at least 1, found {length}")
    return int(length)


def _shuffled(
    embeddings: Embeddings, rng: np.random.Generator
) -> tuple[IntArray, IntArray, IntArray]:
    """Rows by speaker, in random order within each; the place of each row within its speaker;
    utterances per speaker.
    """
    _, dense = np.unique(embeddings.speakers.codes, return_inverse=True)
    rows = np.lexsort((rng.random(len(dense)), dense))
    total = np.bincount(dense)
    starts = np.concatenate([[0], np.cumsum(total)[:-1]])
    return rows, np.arange(len(dense)) - np.repeat(starts, total), total


def _names(embeddings: Embeddings) -> pl.Series:
    return embeddings.speakers.names.gather(embeddings.speakers.used)
