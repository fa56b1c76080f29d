"""Parquet files: decoded where a fault ends nothing; what polars prints of faults is not shown."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import polars as pl

from unmask.errors import InputError
from unmask.run import check_memory
from unmask.trials.readers.files import Input
from unmask.trials.readers.guard import decoded

_CELL = 8
GUARDED = 1 << 26


@contextmanager
def reading_parquet(name: str) -> Iterator[None]:
    """Turns what polars finds wrong with a parquet file into an InputError.

    What it prints of its own faults is not shown: the error says it in a line.
    """
    try:
        with _silenced:
            yield
    except InputError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        reason = str(error).split("\n")[0]
        raise InputError(f"{name}: the parquet file cannot be read ({reason})") from error


class _Silence:
    """Meanwhile nothing that libraries print reaches standard error; threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._kept = -1

    def __enter__(self) -> None:
        with self._lock:
            self._users += 1
            if self._users == 1:
                with suppress(OSError):
                    self._kept = os.dup(2)
                    nowhere = os.open(os.devnull, os.O_WRONLY)
                    os.dup2(nowhere, 2)
                    os.close(nowhere)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._kept >= 0:
                os.dup2(self._kept, 2)
                os.close(self._kept)
                self._kept = -1


_silenced = _Silence()


def load_parquet(source: Input) -> pl.DataFrame:
    """Read a parquet file as a data frame, by another process unless it is large."""
    data = source.read_all()
    with reading_parquet(source.name):
        if len(data) <= GUARDED:
            return pl.read_ipc(io.BytesIO(decoded(data, source.name, "parquet", "parquet")))
        rows = check_declared(source.name, pl.scan_parquet(io.BytesIO(data)))
        frame = pl.read_parquet(io.BytesIO(data))
        if frame.height != rows:
            raise ValueError(f"expected {rows} rows as declared, found {frame.height}")
        return frame


def check_declared(name: str, scan: pl.LazyFrame) -> int:
    """How many rows a table declares; more than memory can hold are refused before it is read."""
    rows = int(scan.select(pl.len()).collect().item())
    check_memory(rows * len(scan.collect_schema()) * _CELL, name, "columns")
    return rows
