"""Parquet files, decoded by another process (:mod:`.guard`), whole or a slice at a time."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from unmask.errors import InputError
from unmask.trials.readers.files import Input
from unmask.trials.readers.guard import decoded


def load_parquet(source: Input) -> pl.DataFrame:
    """All columns of an input."""
    return _frame(decoded(source.read_all(), source.name, "parquet", "parquet"), source.name)


@dataclass(frozen=True)
class ParquetFile:
    """A file of which slices of some columns are read: select(columns).slice(first, rows)."""

    path: Path
    schema: pl.Schema
    height: int
    columns: tuple[str, ...] = ()

    @classmethod
    def opened(cls, path: Path) -> ParquetFile:
        """What a file declares of itself."""
        answer = _asked(path, (), 0, 0)
        return cls(path, _frame(answer[8:], str(path)).schema, int.from_bytes(answer[:8], "little"))

    def select(self, columns: Sequence[str]) -> ParquetFile:
        """The same file, some columns of it."""
        return replace(self, columns=tuple(columns))

    def slice(self, first: int, rows: int) -> pl.DataFrame:
        """Successive rows of the columns; fewer than declared are an error."""
        frame = _frame(_asked(self.path, self.columns, first, rows)[8:], str(self.path))
        if frame.height != max(0, min(rows, self.height - first)):
            raise InputError(
                f"{self.path}: the parquet file cannot be read"
                f" (expected {self.height} rows as declared, found fewer)"
            )
        return frame


def _asked(path: Path, columns: Sequence[str], first: int, rows: int) -> bytes:
    wanted = json.dumps([os.path.abspath(path), list(columns), first, rows]).encode()
    size = path.stat().st_size
    return decoded(wanted, str(path), "slices", "parquet", size=size)


def _frame(content: bytes, name: str) -> pl.DataFrame:
    try:
        return pl.read_ipc(io.BytesIO(content))
    except pl.exceptions.PolarsError as error:
        reason = str(error).split("\n")[0]
        raise InputError(f"{name}: the parquet file cannot be read ({reason})") from None
