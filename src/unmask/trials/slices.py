"""Files of embeddings of which only slices are ever in memory: npy, npz and parquet as usual."""

from __future__ import annotations

import hashlib
import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import polars as pl

from unmask.base import Vectors
from unmask.errors import InputError
from unmask.run import load_arrays, npy_header
from unmask.trials.embeddings import SLICE, Embeddings
from unmask.trials.formats import Source
from unmask.trials.ids import Ids, text_ids
from unmask.trials.readers.detect import embedding_columns
from unmask.trials.readers.guard import ParquetFile
from unmask.trials.reading import read_embeddings
from unmask.trials.speakers import Speakers, speaker_rule


@dataclass(frozen=True, eq=False)
class EmbeddingFile:
    """Embeddings in a file of which only slices are ever in memory."""

    path: Path
    member: str
    dimension: int
    speakers: Ids
    utterances: Ids | None
    source: Source

    @property
    def name(self) -> str:
        """Name of the file, for messages."""
        return str(self.path)

    def slices(self) -> Iterator[tuple[int, Vectors]]:
        """Vectors with the row of the first, from front to back."""
        read = self._parquet if self.path.suffix == ".parquet" else self._numpy
        for number, vectors in enumerate(read()):
            start, good = number * SLICE, np.isfinite(vectors).all(axis=1)
            if not good.all():
                row = start + int(good.argmin()) + 1
                raise InputError(f"{self.path}, row {row}", "finite numbers", "others")
            yield start, vectors

    def _numpy(self) -> Iterator[Vectors]:
        with _array(self.path, self.member) as (file, _):
            (rows, width), _, kind = npy_header(file)
            for start in range(0, rows, SLICE):
                size = min(SLICE, rows - start) * width * kind.itemsize
                try:
                    data = file.read(size)
                except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as error:
                    said = f"the array {self.member} is damaged ({error})"
                    raise InputError(f"{self.path}: {said}") from None
                if len(data) < size:
                    raise InputError(f"{self.path}: the array {self.member} is truncated")
                yield np.frombuffer(data, kind).reshape(-1, width)

    def _parquet(self) -> Iterator[Vectors]:
        file = ParquetFile.opened(self.path).select([self.member])
        for start in range(0, len(self.speakers), SLICE):
            column = file.slice(start, SLICE).to_series()
            try:
                if column.dtype == pl.List:
                    column = column.list.to_array(self.dimension)
                yield column.to_numpy()
            except pl.exceptions.PolarsError:
                raise InputError(
                    f"{self.path}, rows {start + 1} to {start + len(column)}: expected vectors of "
                    f"{self.dimension} numbers in column {self.member!r}, found others"
                ) from None


def open_embeddings(
    path: str | Path, *, speakers: Speakers | None = None
) -> Embeddings | EmbeddingFile:
    """A file of embeddings, in slices where it is plain; any other as :func:`read_embeddings`."""
    place = Path(path)
    plain = place.is_file() and place.suffix in (".npy", ".npz", ".parquet")
    if plain and (speakers is None) == (place.suffix != ".npy"):
        with suppress(Exception):  # what is wrong with a file is told by the reader of whole ones
            return _opened(place, speakers)
    return read_embeddings(path, speakers=speakers)


def _opened(path: Path, speakers: Speakers | None) -> EmbeddingFile:
    """A file with the usual names; an error for one that is not plain."""
    columns: dict[str, Any]
    if path.suffix == ".parquet":
        file = ParquetFile.opened(path)
        member, named = _roles({name: name for name in file.schema})
        head = file.select([member]).slice(0, 1).to_series()
        plain, dimension = head.dtype.is_nested(), len(head[0])
        frame = file.select(list(named.values())).slice(0, file.height)
        columns = {role: frame[name] for role, name in named.items()}
    else:
        member, columns = "", {}
        if speakers is None:
            with zipfile.ZipFile(path) as archive:
                names = {name.removesuffix(".npy"): name for name in archive.namelist()}
            member, named = _roles(names)
            arrays = load_arrays(path, str(path), only=list(named.values()))
            columns = {role: arrays[name.removesuffix(".npy")] for role, name in named.items()}
        elif (table := speaker_rule(speakers).table) is not None:
            columns = {"utterances": table["utterance"], "speakers": table["speaker"]}
        with _array(path, member) as (stream, size):
            (rows, dimension), by_columns, kind = npy_header(stream)
            plain = stream.tell() + math.prod((rows, dimension, kind.itemsize)) == size
        plain &= kind.kind == "f" and not by_columns
        plain &= {np.shape(column) for column in columns.values()} == {(rows,)}
    if not plain:
        raise ValueError("vectors that are read as a whole")
    ids = {role: text_ids(column, role, str(path)) for role, column in columns.items()}
    with path.open("rb") as whole:
        digest = hashlib.file_digest(whole, "sha256").hexdigest()
    form, spoken = path.suffix.removeprefix("."), ids["speakers"]
    about, count = f"{form} embeddings, read in slices", spoken.n_unique
    source = Source(str(path), digest, f"{form}-embeddings", speakers=count, detected=about)
    return EmbeddingFile(path, member, dimension, spoken, ids.get("utterances"), source)


def _roles(names: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Where the vectors are, and who speaks, by role."""
    roles = embedding_columns(names)
    known = [role for role in ("speakers", "utterances") if role in roles]
    return names[roles["vectors"]], {role: names[roles[role]] for role in known}


@contextmanager
def _array(path: Path, member: str) -> Iterator[tuple[IO[bytes], int]]:
    """The stream of an npy file, by itself or a member of an archive, and its size."""
    if not member:
        with path.open("rb") as file:
            yield file, path.stat().st_size
        return
    with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
        yield stream, archive.getinfo(member).file_size
