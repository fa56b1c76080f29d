"""A folder for what does not fit into memory, removed at the end."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from unmask.base import Index
from unmask.errors import InputError
from unmask.run import check_room

T = TypeVar("T", bound=np.generic)


class Scratch:
    """A temporary folder; that the disk has room is checked before."""

    def __init__(self) -> None:
        try:
            self._folder = tempfile.TemporaryDirectory(prefix="unmask-")
        except OSError as error:
            raise InputError(f"temporary files: no folder for them ({error.strerror})") from error
        self.path = Path(self._folder.name)
        self._files = 0

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._folder.cleanup()

    def check_room(self, needed: int) -> None:
        """Refuse what the disk has no room for."""
        check_room(self.path, needed, "temporary files", named=self.path.parent)

    def file(self) -> Path:
        """A new file's path."""
        self._files += 1
        return self.path / str(self._files)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Turns what can go wrong while writing into an InputError."""
        try:
            yield
        except OSError as error:
            raise InputError(
                f"{self.path.parent}: temporary files cannot be written ({error.strerror}); the "
                "variable TMPDIR names another folder"
            ) from error


class Column(Generic[T]):
    """Numbers on disk, one per row of a file."""

    def __init__(self, scratch: Scratch, dtype: type[T]) -> None:
        self._scratch = scratch
        self._dtype: np.dtype[T] = np.dtype(dtype)
        self._path = scratch.file()
        self._rows = 0
        with scratch.writing():
            self._path.touch()

    @classmethod
    def filled(cls, scratch: Scratch, dtype: type[T], value: Any, rows: int) -> Column[T]:
        """A column that has the same value in all its rows."""
        column = cls(scratch, dtype)
        for start in range(0, rows, 1 << 20):
            column.append(np.full(min(1 << 20, rows - start), value, dtype))
        return column

    def __len__(self) -> int:
        return self._rows

    def append(self, values: npt.NDArray[T]) -> None:
        """Write the next rows."""
        with self._scratch.writing(), open(self._path, "ab") as file:
            file.write(np.ascontiguousarray(values, dtype=self._dtype).data)
        self._rows += len(values)

    def read(self, start: int, stop: int) -> npt.NDArray[T]:
        """Successive rows."""
        return np.fromfile(
            self._path, self._dtype, stop - start, offset=start * self._dtype.itemsize
        )

    def at(self, rows: Index) -> npt.NDArray[T]:
        """Some rows, in any order."""
        return np.asarray(self._map()[rows])

    def put(self, rows: Index, values: Any) -> None:
        """Change some rows."""
        if len(rows):
            self._map()[rows] = values

    def _map(self) -> np.memmap[Any, np.dtype[T]]:
        return np.memmap(self._path, self._dtype, mode="r+", shape=(self._rows,))
