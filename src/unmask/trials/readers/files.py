"""Opening inputs: paths, standard input, gzip; every failure becomes our own error."""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from unmask.errors import InputError
from unmask.run import LINE_ENDS, memory_left, read_once, remember_input

HEAD = 1 << 20
BLOCK = 1 << 26
LONGEST_LINE = 1 << 26
GZIP_MAGIC = b"\x1f\x8b"
CONTAINERS = {
    b"PK\x03\x04": "npz",
    b"PK\x05\x06": "npz",
    b"PAR1": "parquet",
    b"\x89HDF\r\n\x1a\n": "hdf5",
    b"\x93NUMPY": "npy",
}
_SUFFIXES = {
    ".gz", ".txt", ".tsv", ".csv", ".npz", ".npy", ".parquet", ".h5", ".hdf5", ".score", ".scores",
    ".trials", ".key", ".ark", ".scp", ".lst", ".list",
}  # fmt: skip


class _Hashing(io.RawIOBase):
    """A raw stream that hashes and counts what is read through it."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self.digest = hashlib.sha256()
        self.count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        size: int = self._raw.readinto(buffer)  # type: ignore[attr-defined]
        self.digest.update(memoryview(buffer)[:size])
        self.count += size
        return size


class Input:
    """One input opened for reading: the bytes behind gzip, once, from front to back."""

    def __init__(self, path: str | Path) -> None:
        self.name = "-" if str(path) == "-" else str(path)
        self._file = _open(path)
        self._hashing = _Hashing(self._file)
        outer = io.BufferedReader(self._hashing, 1 << 20)
        self._stream: io.BufferedIOBase = outer
        try:
            with _guarded(self.name):
                self.compressed = outer.peek(2)[:2] == GZIP_MAGIC
                if self.compressed:
                    self._stream = gzip.GzipFile(fileobj=outer)
                self.head = self._fill(HEAD)
        except InputError:
            self.close()
            raise
        self.drained = len(self.head) < HEAD

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self.name != "-":
            self._file.close()

    def __enter__(self) -> Input:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def container(self) -> str:
        """What the first bytes say: ``npz``, ``npy``, ``parquet``, ``hdf5`` or else ``text``."""
        for magic, container in CONTAINERS.items():
            if self.head.startswith(magic):
                return container
        return "text"

    @property
    def position(self) -> int:
        """How many bytes have been read, as stored."""
        return self._hashing.count

    @property
    def stem(self) -> str:
        """Name of a system: the file's name without folder and without known endings."""
        path = Path("stdin" if self.name == "-" else self.name)
        while path.suffix.lower() in _SUFFIXES and path.stem:
            path = path.with_suffix("")
        return path.name or self.name

    @property
    def sha256(self) -> str:
        """Digest of the whole input as stored (compressed, if it is)."""
        with _guarded(self.name):
            while self._hashing.read(1 << 20):
                pass
        return self._hashing.digest.hexdigest()

    def read_all(self) -> bytes:
        """Return everything, the head included."""
        if self.drained:
            return self.head
        with _guarded(self.name):
            parts, size, most = [self.head], len(self.head), memory_left() // 3
            while part := self._stream.read(BLOCK):
                parts.append(part)
                size += len(part)
                if size > most:
                    wanted = f"at most {most / 1e9:.1f} GB, a third of the free memory"
                    raise InputError(self.name, wanted, "more")
            return b"".join(parts)

    def load(self) -> None:
        """Keep everything in memory, so that the input can be gone through more than once."""
        self.head, self.drained = self.read_all(), True

    def blocks(self, size: int = BLOCK) -> Iterator[bytes]:
        """Yield blocks of whole lines, each ended by a newline; carriage returns are removed."""
        block = self.head.removeprefix(b"\xef\xbb\xbf")
        drained = self.drained
        line = 1
        if not drained:
            block += self._lines(size - len(block))
        while block:
            whole = block if block.endswith(b"\n") else block + b"\n"
            if b"\r" in whole:
                whole = whole.replace(b"\r\n", b"\n")
                if (place := whole.find(b"\r")) >= 0:
                    number = line + whole.count(b"\n", 0, place)
                    where = f"{self.name}, line {number}"
                    raise InputError(where, LINE_ENDS, "a carriage return alone")
            line += whole.count(b"\n")
            yield whole
            block = b"" if drained else self._lines(size)

    def _lines(self, size: int) -> bytes:
        """Read about ``size`` bytes up to the end of a line."""
        with _guarded(self.name):
            block = self._fill(max(size, 1))
            if not block or block.endswith(b"\n"):
                return block
            rest = self._stream.readline(LONGEST_LINE)
        if len(rest) == LONGEST_LINE:
            raise InputError(self.name, "lines of text", "one without end")
        return block + rest

    def _fill(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size > 0:
            part = self._stream.read(size)
            if not part:
                break
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


@contextmanager
def _guarded(name: str) -> Iterator[None]:
    """Turns what can go wrong while reading into an InputError."""
    try:
        yield
    except EOFError as error:
        raise InputError(f"{name}: the gzip file is truncated") from error
    except (zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{name}: the gzip file is damaged ({error})") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"{name}: cannot be read ({reason})") from error


def _open(path: str | Path) -> BinaryIO:
    if str(path) == "-":
        if sys.stdin is None:
            raise InputError("-", "standard input", "it closed")
        return sys.stdin.buffer
    read_once(path)
    try:
        if Path(path).is_dir():
            raise InputError(path, "a file", "a directory")
        remember_input(path)
        return open(path, "rb")
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path!s}: cannot be opened ({reason})") from error
