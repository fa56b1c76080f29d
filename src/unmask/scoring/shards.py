"""Rows of embeddings on disk for all their pairs: prepared once, float32, ordered by speaker."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from unmask import run, trials
from unmask._version import __version__
from unmask.base import Codes, FloatArray, Groups, IntArray, Vectors
from unmask.errors import InputError
from unmask.run import store
from unmask.scoring.pairs import ALL, UNORDERED, WIDEST_COSINE, PairGrid
from unmask.scoring.sides import Backend, Sides, sides_of
from unmask.trials import SLICE, EmbeddingFile, Embeddings, Ids, Speakers, open_embeddings

PAIRS = ("all", "enrolment-fixed")
_ROWS = "the rows to work on"
_SOME = 256


Shard: TypeAlias = Embeddings | EmbeddingFile
"""Part of a set of embeddings, in memory or in a file."""


def shards_of(
    embeddings: Embeddings | str | Path | Sequence[str | Path], *, speakers: Speakers | None = None
) -> list[Shard]:
    """One shard per file; all must have one dimension, which is known before any work."""
    if isinstance(embeddings, Embeddings):
        return [embeddings]
    paths = [embeddings] if isinstance(embeddings, str | Path) else list(embeddings)
    if not paths:
        raise InputError("expected files of embeddings, found none")
    shards = [open_embeddings(path, speakers=speakers) for path in paths]
    for path, shard in zip(paths, shards, strict=True):
        if shard.dimension != shards[0].dimension:
            wanted = f"{shards[0].dimension} dimensions as in {paths[0]}"
            raise InputError(path, wanted, shard.dimension)
    return shards


@dataclass(frozen=True, eq=False)
class RowOrder:
    """Where each row of the shards goes: speakers by name, and within one by utterance."""

    shards: tuple[Shard, ...]
    speaker: npt.NDArray[np.int32]
    speakers: int
    position: IntArray
    enrolled: npt.NDArray[np.bool_]
    pairs: str
    digest: str

    @classmethod
    def of(cls, shards: Sequence[Shard], *, pairs: str, enrolment: int = 1) -> RowOrder:
        """Order the rows; the first ``enrolment`` utterances of each speaker in the files are
        enrolled, if that is fixed. The order in files decides nothing else, where utterances have
        names.
        """
        if pairs not in PAIRS:
            raise InputError("pairs", " or ".join(PAIRS), pairs)
        if enrolment < 1:
            raise InputError("enrolment", "1 utterance or more", enrolment)
        spoken = Ids.concatenate([shard.speakers for shard in shards])
        speaker = spoken.alphabetical().codes
        named = [shard.utterances for shard in shards]
        uttered = [column for column in named if column is not None]
        order: IntArray
        sha = hashlib.sha256(f"unmask pairs 1 {pairs} {enrolment}\n".encode())
        if len(uttered) == len(shards):
            utterance = Ids.concatenate(uttered)
            trials.refuse_repeated(utterance, "embeddings")
            order = np.lexsort((utterance.alphabetical().codes, speaker))
            sha.update("\n".join(utterance.to_series().gather(order).to_list()).encode())
        else:
            order = np.argsort(speaker, kind="stable")
        sha.update("\n".join(spoken.to_series().gather(order).to_list()).encode())
        enrolled = np.ones(len(spoken), bool)
        if pairs == "enrolment-fixed":
            number = pl.int_range(pl.len()).over("speaker")
            within = pl.DataFrame({"speaker": speaker}).select(number).to_series()
            enrolled = within.to_numpy() < enrolment
        sha.update(np.packbits(enrolled[order]).data)
        position = np.empty(len(order), np.int64)
        position[order] = np.arange(len(order))
        if not speaker.max():
            raise InputError("pairs", "2 speakers or more", speaker.max() + 1)
        if np.bincount(speaker).max() < 2 or (enrolled.all() and pairs == "enrolment-fixed"):
            raise InputError("pairs", "a speaker with 2 utterances or more", "none")
        speakers, digest = int(speaker.max()) + 1, sha.hexdigest()[:8]
        return cls(tuple(shards), speaker, speakers, position, enrolled, pairs, digest)

    @property
    def symmetric(self) -> bool:
        return self.pairs == "all"

    @property
    def trials(self) -> int:
        """Number of trials of both classes."""
        enrolled = int(self.enrolled.sum())
        if self.symmetric:
            return enrolled * (enrolled - 1) // 2
        return enrolled * (len(self.speaker) - enrolled)

    def key(self, backend: Backend) -> str:
        """Names the rows on disk: what they are made of and how, which a few of them tell."""
        sha = hashlib.sha256(f"{__version__} {self.digest} {self.pairs} {backend.name}".encode())
        for array in (self.speaker, self.position, self.enrolled):
            sha.update(array.tobytes())
        for shard in self.shards:
            if isinstance(shard, EmbeddingFile):
                sha.update(shard.source.sha256.encode())
            else:
                for _, vectors in shard.slices():
                    sha.update(np.ascontiguousarray(vectors).data)
        with run.one_blas_thread():
            some = self._first(backend, _SOME)
        for rows in (some.enrol, some.test):
            sha.update(rows.tobytes())
        return sha.hexdigest()[:16]

    @contextmanager
    def prepared(self, backend: Backend) -> Iterator[PairGrid]:
        """All pairs of rows on disk, beside which jobs keep what is done."""
        key, state = self.key(backend), run.current_place().state
        with run.workplace(key, state and state / key) as folder, run.keeping(folder):
            if not (folder / "tree.json").exists():
                store.write_folder(folder, self._prepared(folder, backend), _ROWS)
            yield store.read_folder(folder)

    def _prepared(self, folder: Path, backend: Backend) -> PairGrid:
        """Prepare all rows into a folder; too little room on the disk is known before."""
        first = self._first(backend, 1)
        width, alike = first.enrol.shape[1], self.symmetric and first.test is first.enrol
        tested = self.enrolled if self.symmetric else ~self.enrolled
        masks = [self.enrolled, *([] if alike else [tested])]
        run.check_room(folder, sum(int(mask.sum()) for mask in masks) * (4 * width + 4), _ROWS)
        outputs = [
            self._side(folder / f"{name}.npy", mask, width)
            for name, mask in zip(("enrol", "test"), masks, strict=False)
        ]
        row, longest = 0, np.zeros(2)
        for shard in self.shards:
            for _, vectors in shard.slices():
                part = slice(row, row + len(vectors))
                made = _sides(backend, vectors, shard.name, row)
                sides = made.enrol, made.test
                for rows, mask, (array, position, _) in zip(sides, masks, outputs, strict=False):
                    array[position[part][mask[part]]] = rows[mask[part]]
                squares = [np.einsum("ij,ij->i", rows, rows).max(initial=0.0) for rows in sides]
                longest = np.maximum(longest, squares)
                row += len(vectors)
        done = []
        for array, _, speaker in outputs:
            array.flush()
            done.append((np.load(str(array.filename), mmap_mode="r"), Groups(speaker)))
        (enrol, enrolled), (test, asked) = done[0], done[-1]
        wide = bool(np.sqrt(longest.prod()) > WIDEST_COSINE)
        which = UNORDERED if self.symmetric else ALL
        return PairGrid(Sides(enrol, test), enrolled, asked, which, wide)

    def _first(self, backend: Backend, number: int) -> Sides:
        shard = self.shards[0]
        return _sides(backend, next(iter(shard.slices()))[1][:number], shard.name, 0)

    def _side(
        self, path: Path, mask: npt.NDArray[np.bool_], width: int
    ) -> tuple[np.memmap[tuple[int, ...], np.dtype[np.float32]], IntArray, Codes]:
        """An empty array on disk for one side, each row's position in it, and the speakers."""
        chosen = np.flatnonzero(mask)
        order = chosen[np.argsort(self.position[chosen])]
        position = np.full(len(mask), -1, np.int64)
        position[order] = np.arange(len(order))
        shape = len(order), width
        array = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
        path.chmod(0o600)
        return array, position, self.speaker[order]


def rows_of(backend: Backend, vectors: Vectors, side: str, name: str) -> FloatArray:
    """Rows of one ``side`` (enrol, test), made a slice at a time; ``name`` is that of the file."""
    parts = run.ranges_of(len(vectors), SLICE)
    first = getattr(_sides(backend, vectors[slice(*parts[0])], name, 0), side)
    rows = np.empty((len(vectors), first.shape[1]))
    rows[: len(first)] = first
    for start, stop in parts[1:]:
        rows[start:stop] = getattr(_sides(backend, vectors[start:stop], name, start), side)
    return rows


def _sides(backend: Backend, vectors: npt.ArrayLike, name: str, row: int) -> Sides:
    try:
        return sides_of(backend, vectors)
    except InputError as error:
        raise InputError(f"{name}, in row {row + 1:,} or below: {error}") from None
