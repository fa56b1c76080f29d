"""Speaker embeddings with who spoke them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unmask.base import BoolArray, Vectors, as_array, as_index, as_numbers, lazy, read_only, visible
from unmask.errors import InputError
from unmask.trials.formats import Source
from unmask.trials.ids import Ids, text_ids

Strings = Ids | Iterable[Any]
Contents = NDArray[np.uint64]
"""A number of each recording that follows from its content."""
SLICE = 1 << 14
_CONTENT = re.compile("[0-9a-f]{16}")
_MOST = {"float32": 1e15, "float64": 1e150}
"""Largest numbers whose squares, and those of their inverses, a sum can hold."""


@dataclass(frozen=True, eq=False, init=False)
class Embeddings:
    """One vector per utterance, with speaker, and where known utterance, session and metadata.

    :func:`read_embeddings` and encoders make it, back-ends and pairings take it. Vectors of single
    precision stay so where their squares fit; everything else becomes double precision.

    Parameters
    ----------
    vectors : array (n, d)
        One row per utterance.
    speakers, utterances, sessions : list of str or Ids
        Who speaks; each utterance's name and session, where known.
    columns : mapping, optional
        Further lists by name, such as ``sex``.
    source : Source, optional
        The file they come from.
    encoder : str
        Fingerprint of what made them, empty where that is not told.
    contents : array of uint64, optional
        A number of each recording that follows from its content; by default from its vector.

    Examples
    --------
    >>> import numpy as np, unmask as um
    >>> um.Embeddings(np.eye(3), ["ann", "ann", "bob"], columns={"sex": ["f", "f", "m"]})
    Embeddings(3 vectors of 3 dimensions, float64; 2 speakers, sex)
    """

    vectors: Vectors
    speakers: Ids
    utterances: Ids | None
    sessions: Ids | None
    columns: Mapping[str, Ids]
    source: Source | None
    encoder: str
    contents: Contents | None

    def __init__(
        self,
        vectors: ArrayLike,
        speakers: Strings,
        utterances: Strings | None = None,
        sessions: Strings | None = None,
        *,
        columns: Mapping[str, Strings] | None = None,
        source: Source | None = None,
        encoder: str = "",
        contents: ArrayLike | None = None,
    ) -> None:
        name = source.name if source else "embeddings"
        array = _matrix(vectors, name)
        ids = {"speakers": speakers, "utterances": utterances, "sessions": sessions}
        encoded = {what: _ids(values, what, len(array), name) for what, values in ids.items()}
        more = {
            column: _ids(values, column, len(array), name, each=False)
            for column, values in (columns or {}).items()
        }
        if encoded["speakers"] is None:
            raise InputError(name, "a speaker for every vector", "none")
        if encoded["utterances"] is not None:
            refuse_repeated(encoded["utterances"], name)
        codes = None if contents is None else read_only(np.array(contents, dtype=np.uint64))
        if codes is not None and codes.shape != (len(array),):
            raise InputError(name, f"{len(array)} contents, one per vector", codes.shape)
        named = {
            "columns": MappingProxyType(more),
            "source": source,
            "encoder": encoder,
            "contents": codes,
        }
        values: dict[str, Any] = {"vectors": array, **encoded, **named}
        for attribute, value in values.items():
            object.__setattr__(self, attribute, value)

    def __len__(self) -> int:
        return len(self.vectors)

    def __repr__(self) -> str:
        known = {"utterances": self.utterances, "sessions": self.sessions, **self.columns}
        named = [f"{self.n_speakers:,} speakers", *(n for n, ids in known.items() if ids)]
        kind = f"{self.dimension} dimensions, {self.vectors.dtype}"
        return visible(f"Embeddings({len(self):,} vectors of {kind}; {', '.join(named)})")

    def slices(self, size: int = SLICE) -> Iterator[tuple[int, Vectors]]:
        """Vectors, ``size`` at a time, with the row of the first, from front to back."""
        for start in range(0, len(self), size):
            yield start, self.vectors[start : start + size]

    @property
    def name(self) -> str:
        """Name of the file the vectors came from, for messages."""
        return self.source.name if self.source else "embeddings"

    @property
    def dimension(self) -> int:
        """Number of components of a vector."""
        return int(self.vectors.shape[1])

    @property
    def n_speakers(self) -> int:
        """Number of different speakers."""
        return self.speakers.n_unique

    @property
    def marks(self) -> Vectors:
        """A number of each vector, the same for the same vector and hardly ever for another."""
        direction = np.random.default_rng(0).normal(size=self.dimension)
        return np.asarray((self.vectors * direction).sum(axis=1))

    @lazy
    def content_codes(self) -> Contents:
        """A number of each recording, whatever it is called and wherever it stands."""
        return content_codes(self.vectors) if self.contents is None else self.contents

    def with_vectors(self, vectors: Vectors) -> Self:
        """Return the same recordings under other vectors: their contents stay what they were."""
        return replace(self, vectors=vectors, contents=self.content_codes)

    def normalised(self) -> Self:
        """Return the same with vectors of length one; a vector of length zero is an error."""
        length = np.linalg.norm(self.vectors, axis=1, keepdims=True)
        zero = np.flatnonzero(length[:, 0] == 0)
        if zero.size:
            row = int(zero[0])
            which = self.utterances.decode(row) if self.utterances else f"row {row + 1}"
            actual = f"{zero.size} of length zero (first: {which})"
            raise InputError(self.name, "vectors that can be normalised", actual)
        return self.with_vectors(self.vectors / length)

    def select(self, selection: Any) -> Self:
        """Keep the vectors of a mask, or those at the given positions."""
        index = as_index(selection, len(self))
        columns = {name: column.take(index) for name, column in self.columns.items()}
        named = {what: getattr(self, what) for what in ("speakers", "utterances", "sessions")}
        kept = {what: ids.take(index) for what, ids in named.items() if ids is not None}
        contents = None if self.contents is None else self.contents[index]
        vectors = self.vectors[index]
        return replace(self, vectors=vectors, columns=columns, contents=contents, **kept)


def content_codes(vectors: Vectors) -> Contents:
    """Number rows by what they hold: the first 64 bits of the BLAKE2b digest of each.

    Digested are the bytes of little-endian single precision, so that a file stored in double
    precision gives the same numbers.
    """
    rows = np.ascontiguousarray(vectors, dtype="<f4")
    rows = rows + np.float32(0)  # -0 and 0 are one number
    digests = [hashlib.blake2b(row, digest_size=8).digest() for row in rows]
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


CONTENT_COLUMN = "content_digest"
"""Column of a file that keeps the content of each recording, 16 hexadecimal digits a row."""


def contents_as_text(contents: Contents) -> list[str]:
    """Write numbers of recordings as files keep them."""
    return [f"{code:016x}" for code in contents.tolist()]


def contents_of_text(texts: Iterable[Any]) -> Contents | None:
    """Read what :func:`contents_as_text` wrote; None for a column of anything else."""
    rows = list(map(str, texts))
    if not all(map(_CONTENT.fullmatch, rows)):
        return None
    return np.array([int(row, 16) for row in rows], dtype=np.uint64)


def _matrix(vectors: ArrayLike, name: str) -> Vectors:
    array = as_array(vectors, name)
    if array.dtype.kind in "US":
        raise InputError(name, "a matrix of numbers", array.dtype)
    if array.dtype != np.float32:
        array = as_numbers(array, name)
    if array.ndim != 2:
        raise InputError(name, "a matrix (vectors x dimensions)", f"{array.ndim} axes")
    if not array.size:
        raise InputError(name, "vectors", f"a matrix of shape {array.shape}")
    largest = np.maximum(array.max(axis=1), -array.min(axis=1))
    _refuse_rows(~np.isfinite(largest), name, "finite numbers", "NaN or infinity")
    most = _MOST[array.dtype.name]
    extreme = (largest > most) | ((largest < 1 / most) & (largest > 0))
    if array.dtype == np.float32:
        return read_only(array.astype(np.float64) if extreme.any() else array)
    _refuse_rows(extreme, name, f"numbers of at most {most:g} and at least {1 / most:g}", "others")
    return read_only(array)


def _refuse_rows(bad: BoolArray, name: str, expected: str, actual: str) -> None:
    if bad.any():
        place = f"{name}, row {int(bad.argmax()) + 1}"
        raise InputError(place, expected, f"{actual} ({int(bad.sum())} vectors in all)")


def _ids(
    values: Strings | None, what: str, length: int, name: str, *, each: bool = True
) -> Ids | None:
    if values is None:
        return None
    column = text_ids(values, what, name, each=each)
    if len(column) != length:
        raise InputError(name, f"{length} {what}, one per vector", len(column))
    return column


def joined_embeddings(sets: Sequence[Embeddings]) -> Embeddings:
    """Several sets of one encoder as one, with the lists that all of them have."""
    first = sets[0]
    if len(sets) == 1:
        return first
    refuse_encoders({voices.name: voices for voices in sets})
    for voices in sets:
        if voices.dimension != first.dimension:
            wanted = f"{first.dimension} dimensions as in {first.name}"
            raise InputError(voices.name, wanted, voices.dimension)
    lists: dict[str, Ids] = {}
    for what in ("speakers", "utterances", "sessions"):
        known = [getattr(voices, what) for voices in sets]
        if all(ids is not None for ids in known):
            lists[what] = Ids.concatenate(known)
    shared = [name for name in first.columns if all(name in voices.columns for voices in sets)]
    columns = {name: Ids.concatenate([voices.columns[name] for voices in sets]) for name in shared}
    vectors = np.concatenate([voices.vectors for voices in sets])
    return Embeddings(
        vectors,
        lists["speakers"],
        lists.get("utterances"),
        lists.get("sessions"),
        columns=columns,
        encoder=first.encoder,
        contents=np.concatenate([voices.content_codes for voices in sets]),
    )


def refuse_encoders(sets: Mapping[str, Embeddings | None]) -> None:
    """Vectors of different encoders have no score; ``sets`` by name, those that tell none pass."""
    known = {name: voices for name, voices in sets.items() if voices is not None and voices.encoder}
    for name, voices in known.items():
        first, expected = next(iter(known.items()))
        if voices.encoder != expected.encoder:
            where = f"{voices.source.name}, {name}" if voices.source else name
            wanted = f"vectors of the encoder of {first}, {short_encoder(expected.encoder)}"
            raise InputError(where, wanted, f"those of {short_encoder(voices.encoder)}")


def short_encoder(fingerprint: str) -> str:
    """``campplus 92f29b94``: an encoder as sentences name it."""
    name, _, digest = fingerprint.rpartition(":")
    return f"{name} {digest[:8]}" if name else fingerprint


def refuse_repeated(utterances: Ids, name: str) -> None:
    """Each of ``utterances`` stands once; ``name`` is that of the file."""
    count = np.bincount(utterances.codes, minlength=len(utterances.names))
    if (count > 1).any():
        first = int(np.flatnonzero(count > 1)[0])
        raise InputError(
            f"{name}: expected each utterance once, found {utterances.names[first]} {count[first]} "
            f"times ({int((count > 1).sum())} utterances are repeated)"
        )
