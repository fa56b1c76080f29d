"""Putting embeddings on disk for a plan: prepared once, float32, ordered by speaker."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from unmask._version import __version__
from unmask.base import FloatArray, IntArray
from unmask.errors import InputError
from unmask.run import check_room
from unmask.scoring.backend import Backend
from unmask.scoring.cosine import Cosine, Whitening
from unmask.scoring.plan import Plan
from unmask.scoring.plda import Plda
from unmask.scoring.shards import Filed, Shard
from unmask.trials import Ids

PAIRS = ("all", "enrolment-fixed")


@dataclass(frozen=True, eq=False)
class Layout:
    """Where each row of the shards goes: speakers by name, and within one by utterance."""

    shards: tuple[Shard, ...]
    speaker: npt.NDArray[np.int32]
    speakers: int
    place: IntArray
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
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        layout = cls(
            tuple(shards), speaker, int(speaker.max()) + 1, place, enrolled, pairs,
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

    def write(self, folder: Path, backend: Backend) -> Plan:
        """Prepare all rows into a folder; too little room on the disk is known before."""
        llr = isinstance(backend, Plda)
        if not isinstance(backend, Cosine | Whitening | Plda):
            raise InputError(
                f"back-end: expected cosine, whitening or PLDA on embeddings from disk, "
                f"found {backend.name}"
            )
        first = next(iter(self.shards[0].slices()))[1][:1]
        width = backend.prepare(first).shape[1] + (1 if llr else 0)
        sides = [("enrol", self.enrolled)]
        if not self.symmetric:
            sides.append(("test", ~self.enrolled))
        elif llr:
            sides.append(("test", self.enrolled))
        rows = sum(int(mask.sum()) for _, mask in sides)
        check_room(folder, rows * (4 * width + 4), "the rows to work on")
        outputs = [self._side(folder, name, mask, width) for name, mask in sides]
        row = 0
        for shard in self.shards:
            for _, vectors in shard.slices():
                prepared = _prepared(backend, vectors, shard, row)
                for (name, mask), (array, position) in zip(sides, outputs, strict=True):
                    chosen = mask[row : row + len(vectors)]
                    target = position[row : row + len(vectors)][chosen]
                    array[target] = _augmented(prepared[chosen], name) if llr else prepared[chosen]
                row += len(vectors)
        for array, _ in outputs:
            array.flush()
        test = int((self.enrolled if self.symmetric else ~self.enrolled).sum())
        plan = Plan(folder, int(self.enrolled.sum()), test, width, self.symmetric, llr)
        plan.write()
        return plan

    def _side(
        self, folder: Path, name: str, mask: npt.NDArray[np.bool_], width: int
    ) -> tuple[np.memmap[tuple[int, ...], np.dtype[np.float32]], IntArray]:
        """An empty array on disk for one side, and the place of every row in it."""
        chosen = np.flatnonzero(mask)
        order = chosen[np.argsort(self.place[chosen])]
        position = np.full(len(mask), -1, np.int64)
        position[order] = np.arange(len(order))
        np.save(folder / f"{name}_speaker.npy", self.speaker[order])
        array = np.lib.format.open_memmap(
            folder / f"{name}.npy", mode="w+", dtype=np.float32, shape=(len(order), width)
        )
        return array, position


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


def _augmented(rows: FloatArray, side: str) -> FloatArray:
    """PLDA's own terms as two more columns, so that a score is one product: x·y + a + b."""
    own, one = rows[:, -1:], np.ones((len(rows), 1))
    ends = [own, one] if side == "enrol" else [one, own]
    return np.hstack([rows[:, :-1], *ends])
