"""Libraries that can hang on a damaged file, or end their process, decode it in another one
(:mod:`.decoder`), which is ended where it makes no progress: the file is refused in one line.
"""

from __future__ import annotations

import atexit
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from unmask.errors import InputError
from unmask.run import memory_left
from unmask.trials.readers.files import Input

PATIENCE, BYTES_A_SECOND = 5.0, 5e6


def decoded(data: bytes, name: str, kind: str, named: str, *, size: int = 0) -> bytes:
    """What the decoder of a kind makes of ``data``, the content of the file ``name``, or what is
    asked of a file of ``size`` bytes; ``named`` is what a refusal calls its format.
    """
    code, answer = _DECODERS[kind].answer(data, PATIENCE + max(size, len(data)) / BYTES_A_SECOND)
    if code == 2:
        raise InputError(
            f"{name}: the {named} file is damaged: the library that reads it hung or ended"
        )
    if code == 0:
        said = answer.decode("utf-8", "replace").split("\n")[0]
        raise InputError(f"{name}: the {named} file cannot be read ({said})")
    return answer


class _Decoder:
    """The process that opens files, started when the first one comes and after each it hung on."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        atexit.register(self.end)

    def end(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def answer(self, data: bytes, patience: float) -> tuple[int, bytes]:
        """What the process says to a file; an empty answer of code 2 if it hung or ended."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self.end()
                script = Path(__file__).with_name("decoder.py")
                self._process = subprocess.Popen(
                    [sys.executable, "-P", str(script), self._kind],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    pipesize=1 << 20,
                )
                assert self._process.stdout is not None
                self._process.stdout.read(1)
            answers: list[tuple[int, bytes]] = []
            exchange = threading.Thread(
                target=_exchange, args=(self._process, data, answers), daemon=True
            )
            exchange.start()
            exchange.join(patience)
            if not answers:
                self.end()
                exchange.join()
            return answers[0] if answers else (2, b"")


def _exchange(
    process: subprocess.Popen[bytes], data: bytes, answers: list[tuple[int, bytes]]
) -> None:
    from unmask.trials.readers.decoder import ANSWER, REQUEST

    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(REQUEST.pack(memory_left(), len(data)) + data)
        process.stdin.flush()
        head = process.stdout.read(ANSWER.size)
        if len(head) == ANSWER.size:
            code, size = ANSWER.unpack(head)
            answer = process.stdout.read(size)
            if len(answer) == size:
                answers.append((code, answer))
    except (OSError, ValueError):
        pass


_DECODERS = {kind: _Decoder(kind) for kind in ("hdf5", "parquet", "slices")}


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
