"""Kaldi archives, script files and data directories of vectors.

An archive is parsed strictly: entries of a name, a blank and ``\\0B`` with a type of vector or
matrix, or ``[ … ]``. Whatever else an entry holds (pickled objects, audio, commands) is refused by
name, and a size is compared with the bytes that are there before it is used.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from unmask.base import FloatArray
from unmask.errors import InputError
from unmask.run import check_output
from unmask.trials.ids import Ids, lookup
from unmask.trials.readers.files import Input
from unmask.trials.readers.text import read_columns
from unmask.trials.speakers import SpeakerRule, read_pairs

VECTOR_FILES = ("xvector.scp", "xvector.ark", "embedding.scp", "embedding.ark")
BINARY = b"\0B"
LONGEST_NAME = 4096
_PLAIN = {b"FV ": ("<f4", 1), b"DV ": ("<f8", 1), b"FM ": ("<f4", 2), b"DM ": ("<f8", 2)}
_COMPRESSED = (b"CM ", b"CM2 ", b"CM3 ")
_FOREIGN = {
    b"PKL": "a pickled object, which could run code",
    b"NPY": "a NumPy object",
    b"AUDIO": "audio",
    b"RIFF": "audio",
    b"fLaC": "audio",
    b"OggS": "audio",
}


@dataclass(frozen=True)
class Archive:
    """The bytes of one archive, and what to call it in an error."""

    name: str
    data: bytes

    def entries(self) -> Iterator[tuple[str, FloatArray]]:
        """Name and vector of every entry, front to back."""
        position = self._blanks(0)
        while position < len(self.data):
            key, start = self._key(position)
            vector, end = self.vector(start, key)
            yield key, vector
            position = self._blanks(end)

    def vector(self, start: int, key: str) -> tuple[FloatArray, int]:
        """The vector that begins at a byte, and the byte after it; a matrix has one row."""
        array, end = self._object(start, key)
        if array.ndim == 2 and len(array) == 1:
            array = array[0]
        if array.ndim != 1 or not array.size:
            shape = " × ".join(map(str, array.shape))
            raise InputError(self.name, f"a vector for {key}", f"{shape} numbers")
        return array, end

    def _key(self, position: int) -> tuple[str, int]:
        end = self.data.find(b" ", position, position + LONGEST_NAME + 1)
        name = self.data[position : max(end, position)]
        if not name or b"\n" in name or b"\0" in name:
            raise self._damaged(position, "a name and a blank")
        try:
            return name.decode(), end + 1
        except UnicodeDecodeError as error:
            raise self._damaged(position, "a name in UTF-8") from error

    def _object(self, start: int, key: str) -> tuple[FloatArray, int]:
        head = self.data[start : start + 8]
        if not head.startswith(BINARY):
            for magic, what in _FOREIGN.items():
                if head.startswith(magic):
                    raise InputError(self.name, f"a vector for {key}", what)
            return self._text(start, key)
        for token, (number, axes) in _PLAIN.items():
            if head.startswith(token, 2):
                at = start + 2 + len(token)
                shape = tuple(self._size(at + 5 * axis, key) for axis in range(axes))
                return self._numbers(at + 5 * axes, number, shape, key)
        for token in _COMPRESSED:
            if head.startswith(token, 2):
                return self._compressed(start + 2 + len(token), token, key)
        kind = head[2:].split(b" ")[0].decode("ascii", "replace")
        raise InputError(self.name, f"a vector of floats for {key}", f"the Kaldi type {kind!r}")

    def _size(self, position: int, key: str) -> int:
        part = self.data[position : position + 5]
        if len(part) < 5 or part[0] != 4:
            raise self._damaged(position, f"a size for {key}")
        return int.from_bytes(part[1:], "little", signed=True)

    def _numbers(
        self, position: int, number: str, shape: tuple[int, ...], key: str
    ) -> tuple[FloatArray, int]:
        """Numbers of a declared shape, which the remaining bytes must hold."""
        kind = np.dtype(number)
        left = (len(self.data) - position) // kind.itemsize
        size = math.prod(shape)
        if min(shape) < 0 or size > left:
            declared = " × ".join(map(str, shape))
            actual = f"room for {left}: the archive is cut or damaged"
            raise InputError(self.name, f"{declared} numbers for {key}", actual)
        array = np.frombuffer(self.data, kind, size, position).reshape(shape)
        return array, position + size * kind.itemsize

    def _compressed(self, position: int, token: bytes, key: str) -> tuple[FloatArray, int]:
        """A matrix in one or two bytes a number: lowest value and range, then fractions of it;
        ``CM`` has four quantiles of each column, a byte lies between them in 64, 128 and 63 steps.
        """
        header = self.data[position : position + 16]
        if len(header) < 16:
            raise self._damaged(position, f"a compressed matrix for {key}")
        low, span, rows, columns = struct.unpack("<ffii", header)
        position += 16
        if token == b"CM ":
            quantiles, position = self._numbers(position, "<u2", (columns, 4), key)
            codes, position = self._numbers(position, "u1", (columns, rows), key)
            edges = low + span * quantiles.astype(np.float32) / 65535
            table = np.interp(np.arange(256), [0, 64, 192, 255], np.arange(4))
            lower = np.minimum(table.astype(np.int64), 2)
            part = (table - lower).astype(np.float32)
            values = edges[:, lower] * (1 - part) + edges[:, lower + 1] * part
            return np.take_along_axis(values, codes.astype(np.int64), axis=1).T, position
        number, steps = ("<u2", 65535) if token == b"CM2 " else ("u1", 255)
        codes, position = self._numbers(position, number, (rows, columns), key)
        return low + span * codes.astype(np.float32) / steps, position

    def _text(self, start: int, key: str) -> tuple[FloatArray, int]:
        """``[ 0.1 0.2 ]``; a matrix has a line for each row."""
        first = self.data.find(b"[", start, start + 64)
        if first < 0 or self.data[start:first].strip():
            raise InputError(self.name, f"\\0B and a type, or [ … ], for {key}", "neither")
        end = self.data.find(b"]", first)
        if end < 0:
            raise self._damaged(start, f"a closing bracket for {key}")
        lines = [line.split() for line in self.data[first + 1 : end].splitlines() if line.strip()]
        try:
            rows = np.array([[float(field) for field in line] for line in lines])
        except ValueError as error:
            raise self._damaged(start, f"numbers in rows of one length for {key}") from error
        return (rows if len(rows) > 1 else rows.reshape(-1)), end + 1

    def _blanks(self, position: int) -> int:
        """The first byte of the next entry: text entries end in a newline."""
        while position < len(self.data) and self.data[position : position + 1].isspace():
            position += 1
        return position

    def _damaged(self, position: int, expected: str) -> InputError:
        actual = "something else: no Kaldi archive of vectors, or a damaged one"
        return InputError(f"{self.name}, byte {position}", expected, actual)


def encode(vector: FloatArray) -> bytes:
    """A vector as a binary entry holds it: ``FV`` in single, ``DV`` in double precision."""
    token, number = (b"DV ", "<f8") if vector.dtype == np.float64 else (b"FV ", "<f4")
    size = struct.pack("<bi", 4, vector.size)
    return BINARY + token + size + np.ascontiguousarray(vector, dtype=number).tobytes()


def read_ark(source: Input) -> dict[str, Any]:
    """Utterances and vectors of an archive."""
    return _stack(source.name, Archive(source.name, source.read_all()).entries())


def read_scp(source: Input) -> dict[str, Any]:
    """Utterances, vectors and digest of a script file and the archives that it names."""
    names = ["utterance", "location"]
    ids, line = read_columns(source, names, layout="utterance archive:offset")
    archives: dict[str, Archive] = {}
    total = hashlib.sha256(source.sha256.encode())

    def entries() -> Iterator[tuple[str, FloatArray]]:
        utterances, locations = (column.to_series() for column in ids)
        for row, (utterance, location) in enumerate(zip(utterances, locations, strict=True)):
            file, offset = _location(location, line(row))
            if file not in archives:
                path = _archive_path(file, Path(source.name).parent, line(row))
                with Input(path) as archive:
                    archives[file] = Archive(str(path), archive.read_all())
                    total.update(archive.sha256.encode())
            yield utterance, archives[file].vector(offset, utterance)[0]

    content = _stack(source.name, entries())
    return {**content, "digest": total.hexdigest()}


def _location(location: str, line: str) -> tuple[str, int]:
    """Archive and byte of ``archive:offset``; a file without offset holds one vector."""
    if "|" in location:
        raise InputError(line, "archive:offset", "a command")
    if location.endswith("]"):
        raise InputError(line, "archive:offset", f"a range of rows ({location})")
    file, colon, offset = location.rpartition(":")
    if colon and file and offset.isascii() and offset.isdigit() and len(offset) < 19:
        return file, int(offset)
    return location, 0


def _archive_path(file: str, folder: Path, line: str) -> Path:
    beside, here = folder / file, Path(file)
    try:
        known = [path for path in (beside, here) if path.is_file()]
    except OSError as error:
        raise InputError(line, "an archive", error.strerror) from None
    if not known:
        raise InputError(line, "an archive", f"none at {file}")
    if len(known) == 2 and not beside.samefile(here):
        raise InputError(
            f"{line}: expected one archive {file}, found one beside the script file and another"
            " below the current folder: name it by its whole path"
        )
    return known[0]


def _stack(name: str, entries: Iterable[tuple[str, FloatArray]]) -> dict[str, Any]:
    utterances: list[str] = []
    vectors: list[FloatArray] = []
    for utterance, vector in entries:
        if vectors and vector.shape != vectors[0].shape:
            raise InputError(name, f"{vectors[0].size} dimensions for {utterance}", vector.size)
        utterances.append(utterance)
        vectors.append(vector)
    if not vectors:
        raise InputError(f"{name}: the file holds no vectors")
    return {"vectors": np.stack(vectors), "utterances": utterances}


def vector_file(directory: Path) -> Path:
    """Return the file of vectors in a Kaldi data directory."""
    for name in VECTOR_FILES:
        if (directory / name).is_file():
            return directory / name
    raise InputError(directory, f"a Kaldi directory with {' or '.join(VECTOR_FILES)}", "neither")


def directory_speakers(directory: Path) -> SpeakerRule | None:
    """Speakers from ``utt2spk`` or ``spk2utt`` of a directory, if there."""
    files = [directory / name for name in ("utt2spk", "spk2utt") if (directory / name).is_file()]
    return read_pairs(files[0]) if files else None


def check_archive_folder(path: Path) -> None:
    """Refuse an archive beside others: ``utt2spk`` holds their speakers and would be replaced."""
    owners = path.with_name("utt2spk")
    others = sorted(other.name for other in path.parent.glob("*.ark") if other.name != path.name)
    if owners.exists() and others:
        actual = f"{others[0]}, whose speakers {owners.name} beside it holds and would lose"
        raise InputError(path, "a folder of its own", actual)
    for beside in (path.with_suffix(".scp"), owners):
        check_output(beside)


def directory_gender(directory: Path, speakers: Ids) -> dict[str, Ids]:
    """A column of the gender of each vector's speaker from ``spk2gender``, if that is there."""
    path = directory / "spk2gender"
    if not path.is_file():
        return {}
    rule = read_pairs(path, kind="spk2gender")
    assert rule.table is not None
    missing = lookup(speakers.names, rule.table["utterance"]) < 0
    if missing.any():
        actual = f"none for {int(missing.sum())} (first: {speakers.names.filter(missing)[0]})"
        raise InputError(path, "a gender for every speaker", actual)
    gender = Ids.from_strings(rule.of(speakers.names))
    return {"gender": Ids(gender.codes[speakers.codes], gender.names)}
