"""Libraries that can hang on a damaged file, or end their process, decode it in another one.

That process (:mod:`.decoder`) is started when the first file of its kind comes, and ended where it
makes no progress: the file is refused in one line.
"""

from __future__ import annotations

import atexit
import subprocess
import sys
import threading
from pathlib import Path

from unmask.errors import InputError
from unmask.run import memory_left
from unmask.trials.readers.decoder import ANSWER, REQUEST

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
