"""Embeddings that are read a slice at a time: npy, npz and parquet files, or a set in memory."""

from __future__ import annotations

import hashlib
import math
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from unmask.errors import InputError
from unmask.run import load_arrays
from unmask.trials import (
    SPEAKERS,
    UTTERANCES,
    VECTORS,
    Embeddings,
    Ids,
    ParquetFile,
    Source,
    Speakers,
    assign,
    normalise,
    read_embeddings,
    speaker_rule,
    text_ids,
)

SLICE = 1 << 14
Vectors = npt.NDArray[np.floating[Any]]


class Shard(Protocol):
    """Part of a set of embeddings, in memory (`Embeddings`) or in a file: vectors in slices."""

    @property
    def speakers(self) -> Ids: ...

    @property
    def utterances(self) -> Ids | None: ...

    @property
    def dimension(self) -> int: ...

    @property
    def source(self) -> Source | None: ...

    def slices(self) -> Iterator[tuple[int, Vectors]]:
        """Vectors with the row of the first, from front to back."""


@dataclass(frozen=True, eq=False)
class Filed:
    """Embeddings in a file of which only slices are ever in memory."""

    path: Path
    member: str
    speakers: Ids
    utterances: Ids | None
    dimension: int
    source: Source | None

    def slices(self) -> Iterator[tuple[int, Vectors]]:
        read = {".npy": self._npy, ".npz": self._npz}.get(self.path.suffix, self._parquet)
        for start, vectors in read():
            good = np.isfinite(vectors).all(axis=1)
            if not good.all():
                row = start + int(np.flatnonzero(~good)[0]) + 1
                raise InputError(f"{self.path}, row {row}: expected finite numbers, found others")
            yield start, vectors

    def _npy(self) -> Iterator[tuple[int, Vectors]]:
        vectors = np.load(self.path, mmap_mode="r", allow_pickle=False)
        for start in range(0, len(vectors), SLICE):
            yield start, np.asarray(vectors[start : start + SLICE])

    def _npz(self) -> Iterator[tuple[int, Vectors]]:
        with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as file:
            (rows, width), _, kind = _header(file)
            for start in range(0, rows, SLICE):
                count = min(SLICE, rows - start) * width
                try:
                    data = file.read(count * kind.itemsize)
                except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
                    said = f"the array {self.member} is damaged ({error})"
                    raise InputError(f"{self.path}: {said}") from None
                if len(data) < count * kind.itemsize:
                    raise InputError(f"{self.path}: the array {self.member} is truncated")
                yield start, np.frombuffer(data, kind).reshape(-1, width)

    def _parquet(self) -> Iterator[tuple[int, Vectors]]:
        file = ParquetFile.opened(self.path)
        for start in range(0, len(self.speakers), SLICE):
            column = file.select([self.member]).slice(start, SLICE).to_series()
            try:
                vectors = (
                    column.list.to_array(self.dimension) if column.dtype == pl.List else column
                )
                yield start, vectors.to_numpy()
            except pl.exceptions.PolarsError:
                raise InputError(
                    f"{self.path}, rows {start + 1} to {start + len(column)}: expected vectors of "
                    f"{self.dimension} numbers in column {self.member!r}, found others"
                ) from None


def shards_of(
    embeddings: Embeddings | str | Path | Sequence[str | Path],
    *,
    speakers: Speakers | None = None,
) -> list[Shard]:
    """One shard per file; all must have one dimension, which is known before any work."""
    if isinstance(embeddings, Embeddings):
        return [embeddings]
    paths = [embeddings] if isinstance(embeddings, str | Path) else list(embeddings)
    if not paths:
        raise InputError("expected files of embeddings, found none")
    shards = [_shard(Path(path), speakers) for path in paths]
    for path, shard in zip(paths, shards, strict=True):
        if shard.dimension != shards[0].dimension:
            raise InputError(
                f"{path}: expected {shards[0].dimension} dimensions as in {paths[0]}, "
                f"found {shard.dimension}"
            )
    return shards


def _shard(path: Path, speakers: Speakers | None) -> Shard:
    if path.suffix == ".npy" and path.is_file() and speakers is not None:
        return _npy_shard(path, speakers)
    opened = {".npz": _npz_columns, ".parquet": _parquet_columns}.get(path.suffix)
    if opened is not None and path.is_file() and speakers is None:
        contents = opened(path)
        if contents is not None:
            member, dimension, columns = contents
            spoken = text_ids(columns["speakers"], "speakers", str(path))
            uttered = columns.get("utterances")
            uttered = None if uttered is None else text_ids(uttered, "utterances", str(path))
            return Filed(path, member, spoken, uttered, dimension, _source(path, spoken))
    return read_embeddings(path, speakers=speakers)


def _npy_shard(path: Path, speakers: Speakers) -> Shard:
    rule = speaker_rule(speakers)
    try:
        vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:
        raise InputError(f"{path}: the npy file cannot be read ({error})") from None
    is_matrix = vectors.ndim == 2 and vectors.dtype.kind == "f"
    if rule.table is None or not is_matrix or rule.table.height != len(vectors):
        return read_embeddings(path, speakers=speakers)
    uttered = Ids.from_strings(rule.table["utterance"])
    spoken = assign(uttered, rule)
    return Filed(path, "", spoken, uttered, vectors.shape[1], _source(path, spoken))


def _npz_columns(path: Path) -> tuple[str, int, dict[str, Any]] | None:
    """Where the vectors of an npz file are and the identifiers, if it has the usual names."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = {normalise(name.removesuffix(".npy")): name for name in archive.namelist()}
            vectors, spoken, uttered = (
                _first(names, kind) for kind in (VECTORS, SPEAKERS, UTTERANCES)
            )
            if vectors is None or spoken is None or len(archive.namelist()) != len(names):
                return None
            with archive.open(vectors) as file:
                shape, is_fortran, kind = _header(file)
                size = file.tell() + math.prod(shape) * kind.itemsize
            if len(shape) != 2 or is_fortran or kind.kind != "f":
                return None
            if min(shape) < 0 or archive.getinfo(vectors).file_size != size:
                return None
        given = {"speakers": spoken, "utterances": uttered}
        named = {role: name for role, name in given.items() if name}
        arrays = load_arrays(path, str(path), only=list(named.values()))
        columns = {role: arrays[name.removesuffix(".npy")] for role, name in named.items()}
    except Exception:  # what is wrong with it is told by the reader of whole files
        return None
    if any(one.shape != shape[:1] for one in columns.values()):
        return None
    return vectors, int(shape[1]), columns


def _parquet_columns(path: Path) -> tuple[str, int, dict[str, Any]] | None:
    try:
        file = ParquetFile.opened(path)
        names = {normalise(name): name for name in file.schema}
        vectors, spoken = _first(names, VECTORS), _first(names, SPEAKERS)
        if vectors is None or spoken is None:
            return None
        uttered = _first(names, UTTERANCES)
        wanted = [spoken] if uttered is None else [spoken, uttered]
        ids = file.select(wanted).slice(0, file.height)
        head = file.select([vectors]).slice(0, 1).to_series()
    except (OSError, InputError):
        return None
    if not len(head) or not head.dtype.is_nested():
        return None
    columns: dict[str, Any] = {"speakers": ids[spoken]}
    if uttered is not None:
        columns["utterances"] = ids[uttered]
    return vectors, len(head[0]), columns


def _first(names: dict[str, str], choices: Sequence[str]) -> str | None:
    return next((names[choice] for choice in choices if choice in names), None)


def _header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    return read(file)


def _source(path: Path, speakers: Ids) -> Source:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    kind = path.suffix.removeprefix(".")
    detected = f"{kind} embeddings, read in slices"
    return Source(
        str(path), digest, f"{kind}-embeddings", speakers=speakers.n_unique, detected=detected
    )
