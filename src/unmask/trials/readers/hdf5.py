"""HDF5: the four spellings of BOSARIS scores and keys, and what embeddings share with them.

The library that decodes HDF5 can hang on a damaged file, or end its process: files are opened by
another process (:mod:`.hdf5_child`), which is ended where it makes no progress.
"""

from __future__ import annotations

import atexit
import io
import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.errors import InputError
from unmask.run import load_arrays, memory_left
from unmask.trials.formats import BOSARIS, BOSARIS_KEY
from unmask.trials.readers.files import Input
from unmask.trials.readers.hdf5_child import ANSWER, REQUEST
from unmask.trials.readers.numpy import parse_matrix
from unmask.trials.readers.tables import Parsed

ROWS = ("ID/row_ids", "modelset", "model_names", "enroll_ids", "enrol_ids")
COLUMNS = ("ID/column_ids", "segset", "test_names", "test_ids")
SCORES = ("scores", "score_mat", "scoremat")
MASKS = ("score_mask", "scoremask", "mask")
PATIENCE, BYTES_A_SECOND = 5.0, 5e6


@dataclass(frozen=True, eq=False)
class Dataset:
    """What a dataset holds: ``kind`` is numbers, text or the name of something else."""

    name: str
    kind: str
    values: npt.NDArray[Any]
    speaker: str | None

    @property
    def numbers(self) -> npt.NDArray[Any]:
        """The numbers, in their shape."""
        if self.kind != "numbers":
            raise InputError(f"expected numbers in {self.name}, found {self.kind}")
        return self.values

    @property
    def strings(self) -> npt.NDArray[np.str_]:
        """Names; whole numbers serve as such."""
        if self.kind == "text":
            return np.array(json.loads(self.values.tobytes()), dtype=str)
        if self.kind != "numbers" or self.values.dtype.kind not in "iu":
            raise InputError(f"expected text in {self.name}, found {self.kind}")
        return self.values.ravel().astype(str)

    @property
    def texts(self) -> npt.NDArray[np.str_]:
        """Text, or any numbers as such."""
        return self.values.ravel().astype(str) if self.kind == "numbers" else self.strings


class _Child:
    """The process that opens files, started when the first one comes and after each it hung on."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        atexit.register(self.end)

    def end(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def answer(self, data: bytes) -> tuple[int, bytes]:
        """What the process says to a file; an empty answer of code 2 if it hung or ended."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self.end()
                script = Path(__file__).with_name("hdf5_child.py")
                self._process = subprocess.Popen(
                    [sys.executable, "-P", str(script)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
                assert self._process.stdout is not None
                self._process.stdout.read(1)
            answers: list[tuple[int, bytes]] = []
            exchange = threading.Thread(
                target=_exchange, args=(self._process, data, answers), daemon=True
            )
            exchange.start()
            exchange.join(PATIENCE + len(data) / BYTES_A_SECOND)
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


_CHILD = _Child()


def datasets(source: Input) -> dict[str, Dataset]:
    """Every dataset of an HDF5 input by its path."""
    if find_spec("h5py") is None:
        raise InputError(f"{source.name}: reading HDF5 needs h5py (pip install 'unmask[formats]')")
    code, answer = _CHILD.answer(source.read_all())
    if code == 2:
        raise InputError(
            f"{source.name}: the HDF5 file is damaged: the library that reads it hung or ended"
        )
    if code == 0:
        said = answer.decode("utf-8", "replace")
        raise InputError(f"{source.name}: the HDF5 file cannot be read ({said})")
    arrays = load_arrays(io.BytesIO(answer), source.name)
    about = json.loads(arrays["about"].tobytes())
    return {
        name: Dataset(name, kind, arrays[f"a{n}"], speaker)
        for n, (name, kind, speaker) in enumerate(about)
    }


def is_bosaris(names: Mapping[str, Any]) -> bool:
    """Whether the datasets include names of rows and columns of a score matrix or key."""
    return any(row in names for row in ROWS) and any(column in names for column in COLUMNS)


def parse_bosaris(source: Input, *, as_key: bool) -> Parsed:
    """Read scores or a key in any of the four spellings."""
    found = datasets(source)
    if not is_bosaris(found):
        raise InputError(
            f"{source.name}: expected {BOSARIS.layout}, found {', '.join(found) or 'nothing'}"
        )
    try:
        rows = found[next(name for name in ROWS if name in found)].strings
        columns = found[next(name for name in COLUMNS if name in found)].strings
        label, mask = _label_and_mask(found)
        name = _first(found, SCORES)
        scores = None if name is None or as_key else found[name].numbers
    except ValueError as error:
        raise InputError(f"{source.name}: {error}") from None
    if name is None and label is None:
        raise InputError(
            f"{source.name}: expected scores or labels, found an index of trials without either"
        )
    return parse_matrix(
        source.name,
        source.stem,
        BOSARIS_KEY if name is None else BOSARIS,
        rows=rows,
        columns=columns,
        scores=scores,
        mask=mask,
        label=label,
    )


def _first(found: Mapping[str, Dataset], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in found), None)


def _label_and_mask(found: Mapping[str, Dataset]) -> tuple[Any, Any]:
    name = _first(found, MASKS)
    mask = None if name is None else found[name].numbers
    if "tar_mask" in found and "non_mask" in found:
        target, nontarget = found["tar_mask"].numbers != 0, found["non_mask"].numbers != 0
        if (target & nontarget).any():
            raise ValueError("expected a trial in one class, found trials in both")
        return target.astype(np.int8) - nontarget.astype(np.int8), mask
    if "trial_mask" in found:
        trial = found["trial_mask"].numbers
        if (trial == -1).any():
            return trial, mask
        return None, trial if mask is None else mask
    return None, mask
