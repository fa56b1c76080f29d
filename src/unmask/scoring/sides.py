"""Putting embeddings on disk for all their pairs: prepared once, float32, ordered by speaker."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from unmask._version import __version__
from unmask.base import Codes32, FloatArray, IntArray
from unmask.errors import InputError
from unmask.run import check_room, current_place, keeping, store, workplace
from unmask.scoring.backend import Backend, product_sides
from unmask.scoring.cosine import Cosine, Whitening
from unmask.scoring.pairs import Pairs, Side
from unmask.scoring.plda import Plda
from unmask.scoring.shards import Filed, Shard
from unmask.trials import Ids

PAIRS = ("all", "enrolment-fixed")
_ROWS = "the rows to work on"


@dataclass(frozen=True, eq=False)
class Layout:
    """Where each row of the shards goes: speakers by name, and within one by utterance."""

    shards: tuple[Shard, ...]
    speaker: npt.NDArray[np.int32]
    speakers: int
    position: IntArray
    enrolled: npt.NDArray[np.bool_]
    pairs: str
    digest: str

    @classmethod
    def of(cls, shards: Sequence[Shard], *, pairs: str, enrolment: int = 1) -> Layout:
        """Order the rows; ``enrolment`` utterances of each speaker are enrolled, if that is fixed.

        These are the first in the order of the files. The order of rows in the files decides
        nothing else, where utterances have names.
        """
        if pairs not in PAIRS:
            raise InputError(f"pairs: expected {' or '.join(PAIRS)}, found {pairs}")
        if enrolment < 1:
            raise InputError(f"enrolment: expected 1 utterance or more, found {enrolment}")
        spoken = Ids.concatenate([shard.speakers for shard in shards])
        speaker = spoken.alphabetical().codes
        named = [shard.utterances for shard in shards]
        uttered = [column for column in named if column is not None]
        order: IntArray
        sha = hashlib.sha256(f"unmask pairs 1 {pairs} {enrolment}\n".encode())
        if len(uttered) == len(shards):
            utterance = Ids.concatenate(uttered)
            _refuse_repeated(utterance)
            order = np.lexsort((utterance.alphabetical().codes, speaker))
            sha.update("\n".join(utterance.to_series().gather(order).to_list()).encode())
        else:
            order = np.argsort(speaker, kind="stable")
        sha.update("\n".join(spoken.to_series().gather(order).to_list()).encode())
        enrolled = np.ones(len(spoken), bool)
        if pairs == "enrolment-fixed":
            enrolled = _position_within(speaker) < enrolment
        sha.update(np.packbits(enrolled[order]).data)
        position = np.empty(len(order), np.int64)
        position[order] = np.arange(len(order))
        layout = cls(
            tuple(shards), speaker, int(speaker.max()) + 1, position, enrolled, pairs,
            sha.hexdigest()[:8],
        )  # fmt: skip
        layout._check()
        return layout

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

    def _check(self) -> None:
        if self.speakers < 2:
            raise InputError(f"pairs: expected 2 speakers or more, found {self.speakers}")
        most = np.bincount(self.speaker).max()
        if most < 2 or (self.enrolled.sum() == len(self.speaker) and not self.symmetric):
            raise InputError("pairs: expected a speaker with 2 utterances or more, found none")

    def key(self, backend: Backend) -> str:
        """Names the rows on disk: what they are made of and how."""
        sha = hashlib.sha256(f"{__version__} {self.digest} {self.pairs} {backend.name}".encode())
        for shard in self.shards:
            if isinstance(shard, Filed) and shard.source is not None:
                sha.update(shard.source.sha256.encode())
            else:
                for _, vectors in shard.slices():
                    sha.update(np.ascontiguousarray(vectors).data)
        for name, value in sorted(vars(backend).items()) if hasattr(backend, "__dict__") else ():
            if isinstance(value, np.ndarray):
                sha.update(name.encode() + value.tobytes())
        return sha.hexdigest()[:16]

    @contextmanager
    def prepared(self, backend: Backend) -> Iterator[Pairs]:
        """All pairs of prepared rows, which lie on disk; meanwhile jobs keep beside them what is
        done, so that the same call goes on from there after a fault.
        """
        if not isinstance(backend, Cosine | Whitening | Plda):
            raise InputError(
                f"back-end: expected cosine, whitening or PLDA on embeddings from disk, "
                f"found {backend.name}"
            )
        key, state = self.key(backend), current_place().state
        with workplace(key, None if state is None else state / key) as folder, keeping(folder):
            if not (folder / "tree.json").exists():
                store.write_folder(folder, self._prepared(folder, backend), _ROWS)
            yield store.read_folder(folder)

    def _prepared(self, folder: Path, backend: Backend) -> Pairs:
        """Prepare all rows into a folder; too little room on the disk is known before."""
        llr = isinstance(backend, Plda)
        first = next(iter(self.shards[0].slices()))[1][:1]
        width = product_sides(backend, backend.prepare(first))[0].shape[1]
        tested = self.enrolled if self.symmetric else ~self.enrolled
        sides = [self.enrolled, *([tested] if llr or not self.symmetric else [])]
        check_room(folder, sum(int(mask.sum()) for mask in sides) * (4 * width + 4), _ROWS)
        outputs = [
            self._side(folder / f"{name}.npy", mask, width)
            for name, mask in zip(("enrol", "test"), sides, strict=False)
        ]
        row = 0
        for shard in self.shards:
            for _, vectors in shard.slices():
                part = slice(row, row + len(vectors))
                prepared = product_sides(backend, _prepared(backend, vectors, shard, row))
                for rows, mask, (array, position, _) in zip(prepared, sides, outputs, strict=False):
                    array[position[part][mask[part]]] = rows[mask[part]]
                row += len(vectors)
        done = []
        for array, _, speaker in outputs:
            array.flush()
            done.append(Side(np.load(str(array.filename), mmap_mode="r"), speaker))
        return Pairs(done[0], done[-1], self.symmetric, llr)

    def _side(
        self, path: Path, mask: npt.NDArray[np.bool_], width: int
    ) -> tuple[np.memmap[tuple[int, ...], np.dtype[np.float32]], IntArray, Codes32]:
        """An empty array on disk for one side, each row's position in it, and the speakers."""
        chosen = np.flatnonzero(mask)
        order = chosen[np.argsort(self.position[chosen])]
        position = np.full(len(mask), -1, np.int64)
        position[order] = np.arange(len(order))
        shape = len(order), width
        array = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
        return array, position, self.speaker[order]


def _refuse_repeated(utterances: Ids) -> None:
    count = np.bincount(utterances.codes, minlength=len(utterances.names))
    if (count > 1).any():
        first = int(np.flatnonzero(count > 1)[0])
        raise InputError(
            f"embeddings: expected each utterance once, found {utterances.names[first]} "
            f"{count[first]} times"
        )


def _position_within(speaker: npt.NDArray[np.int32]) -> IntArray:
    """How many rows of the same speaker come before each row."""
    series = pl.DataFrame({"speaker": speaker})
    return series.select(pl.int_range(pl.len()).over("speaker")).to_series().to_numpy()


def _prepared(backend: Backend, vectors: npt.ArrayLike, shard: Shard, row: int) -> FloatArray:
    try:
        return backend.prepare(vectors)
    except InputError as error:
        name = shard.source.name if shard.source else "embeddings"
        raise InputError(f"{name}, in the {row + 1:,}th vector or after it: {error}") from None
