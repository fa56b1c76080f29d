"""What does not fit into memory, in a temporary folder: columns, and trials to be compared.

A trial is known by two hashes of its identifiers, 128 bits in all: among a billion different trials
two agree in them with a chance of 10⁻²¹. Their records lie in buckets, looked through one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import polars as pl

from unmask.base import IntArray
from unmask.errors import InputError
from unmask.trials.ids import MULTIPLIER, Hashes, match, name_hashes, pair_hashes

RECORD = np.dtype([("a", "<u8"), ("b", "<u8"), ("row", "<i8")])
Records = npt.NDArray[np.void]


@contextmanager
def _appended(path: Path) -> Iterator[BinaryIO]:
    """A temporary file to be written on; what goes wrong becomes an InputError."""
    try:
        with open(path, "ab") as file:
            yield file
    except OSError as error:
        raise InputError(
            f"{gettempdir()}: temporary files cannot be written ({error.strerror}); the variable"
            " TMPDIR names another folder"
        ) from error


class Column:
    """Numbers on disk, one or ``width`` per row of a file; ``rows`` rows of zeros to begin with."""

    def __init__(self, path: Path, dtype: str, *, width: int = 1, rows: int = 0) -> None:
        self.dtype = np.dtype((dtype, (width,))) if width > 1 else np.dtype(dtype)
        self._path = path
        path.unlink(missing_ok=True)
        with _appended(path) as file:
            file.truncate(rows * self.dtype.itemsize)

    def append(self, values: npt.NDArray[Any]) -> None:
        """Write the next rows."""
        with _appended(self._path) as file:
            file.write(np.ascontiguousarray(values, dtype=self.dtype.base).data)

    def map(self) -> npt.NDArray[Any]:
        """All rows, to be read and changed; what was touched stays in memory as long as this."""
        return np.memmap(self._path, self.dtype, mode="r+")

    def read(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Successive rows."""
        return np.array(self.map()[start:stop])


class TrialSpool:
    """Hashes of trials with their rows, in order, in as many files as there are buckets."""

    def __init__(self, folder: Path, buckets: int) -> None:
        self.buckets = range(buckets)
        self._folder = folder
        folder.mkdir()

    def append(self, row: int, columns: Sequence[pl.Series]) -> None:
        """Write the trials of successive rows, whose identifiers are in ``columns``."""
        first = _hashes(columns, 0)
        bucket = ((first >> np.uint64(1)) % np.uint64(len(self.buckets))).astype(np.uint16)
        order = np.argsort(bucket, kind="stable")
        records = np.empty(len(order), RECORD)
        records["a"] = first[order]
        records["b"] = _hashes(columns, 1)[order]
        records["row"] = order + row
        ends = np.cumsum(np.bincount(bucket, minlength=len(self.buckets)))
        for number, part in enumerate(np.split(records, ends[:-1])):
            with _appended(self._folder / str(number)) as file:
                file.write(part.data)

    def records(self, bucket: int) -> Records:
        """All of a bucket."""
        return np.fromfile(self._folder / str(bucket), RECORD)


def _hashes(columns: Sequence[pl.Series], seed: int) -> Hashes:
    """A hash of 64 bits for each row; that of seed 0 is for digests and knows of no side."""
    hashed = [name_hashes(one) if seed == 0 else one.hash(seed).to_numpy() for one in columns]
    combined = pair_hashes(*hashed[:2])
    return combined if seed == 0 or len(hashed) == 2 else combined * MULTIPLIER + hashed[2]


def partners(first: Records, second: Records) -> IntArray:
    """Which of the ``second`` each of the ``first`` is, -1 for none of them."""
    found = match(*(_codes(records["a"]) for records in (first, second)))
    met = found >= 0
    if (first["b"][met] == second["b"][found[met]]).all():
        return found
    names = np.concatenate([first, second])
    both = pl.DataFrame({name: np.ascontiguousarray(names[name]) for name in "ab"})
    codes = both.select(pl.struct("a", "b").rank("dense")).to_series().to_numpy().astype(np.int64)
    return match(codes[: len(first)], codes[len(first) :])


def _codes(hashes: Hashes) -> IntArray:
    """As numbers that are not negative; what tells the two orders of a pair apart is kept."""
    return ((hashes * MULTIPLIER) >> np.uint64(1)).astype(np.int64)
