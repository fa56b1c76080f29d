"""What may be written where: nothing that was given is overwritten.

All files are written by :mod:`unmask.run.files`, which asks here first. A file that is an input is
never replaced. Another file is replaced if unmask wrote it, and with ``--force`` otherwise.

Unmask marks what it writes. Pages, drawings, LaTeX, Markdown, PDF, PNG, npz, parquet and JSON files
say it in their content. Lists of trials and scores, tables and audio have no room for that, so the
file system keeps the SHA-256 of what was written beside the file's name (an extended attribute). A
file that somebody has changed since is thus not taken for unmask's. Where a file system keeps no
attributes, such files count as the user's.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from unmask.errors import InputError

MARK = b"written by unmask"
_ATTRIBUTE = "user.unmask.sha256"
_COMMENT = b"<!-- " + MARK + b" -->\n"
_LAST_LINES = {
    ".html": _COMMENT,
    ".svg": _COMMENT,
    ".md": _COMMENT,
    ".tex": b"% " + MARK + b"\n",
    ".pdf": b"% " + MARK + b"\n",
    ".toml": b"# " + MARK + b"\n",
}
_PNG, _PNG_END = b"\x89PNG\r\n\x1a\n", b"\x00\x00\x00\x00IEND\xaeB`\x82"
_ZIP_END = b"PK\x05\x06"
_JSON = re.compile(rb'"(schema|format|tool)": "unmask\b')
_RESULTS = re.compile(rb"[\w,]*\bno_interval\b[\w,]*\bsignature\b[\w,]*\r?\n|# recogniser: ")
"""The first line of a table of results in CSV, or of one of measurements."""

Identity = tuple[int, int]
"""Device and inode: the same file, whatever links lead to it."""


@dataclass(eq=False)
class _Command:
    """The files of one command: what it reads, and what it has written itself; ``is_shell`` where
    it was typed, not called from Python.
    """

    is_shell: bool = True
    inputs: dict[Identity, str] = field(default_factory=dict)
    written: set[Identity] = field(default_factory=set)
    pipes: set[Identity] = field(default_factory=set)


_commands: list[_Command] = []
_overwriting: ContextVar[bool] = ContextVar("overwriting", default=False)


@contextmanager
def command_files(
    inputs: Iterable[str], *, force: bool = False, is_shell: bool = True
) -> Iterator[None]:
    """Protect what a command is given and what it reads; ``force`` replaces files of others."""
    command = _Command(is_shell)
    _commands.append(command)
    try:
        for path in inputs:
            remember_input(path)
        if force:
            with overwriting():
                yield
        else:
            yield
    finally:
        _commands.remove(command)


@contextmanager
def overwriting() -> Iterator[None]:
    """Replace files that unmask did not write, as ``--force`` does; inputs never are.

    Yields
    ------
    None
        Such files are replaced within the ``with`` block.

    Examples
    --------
    >>> import unmask as um
    >>> from pathlib import Path
    >>> _ = Path("notes.tsv").write_text("mine")
    >>> scores = um.Scores.from_arrays([2.0, 1.5], [-1.0, 0.5])
    >>> um.write(scores, "notes.tsv")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    unmask.errors.InputError: notes.tsv: exists already, and unmask did not write it; ...
    >>> with um.overwriting():
    ...     um.write(scores, "notes.tsv")
    (PosixPath('notes.tsv'),)
    """
    token = _overwriting.set(True)
    try:
        yield
    finally:
        _overwriting.reset(token)


def identity(path: str | os.PathLike[str]) -> Identity | None:
    """Which file or folder a path leads to; None where there is none."""
    try:
        there = os.stat(path)
    except (OSError, ValueError):
        return None
    return there.st_dev, there.st_ino


def remember_input(path: object) -> None:
    """Note that the command reads a file or folder; called where inputs are opened."""
    if _commands and isinstance(path, (str, os.PathLike)):
        which = identity(path)
        if which is not None and which not in _commands[-1].written:
            _commands[-1].inputs.setdefault(which, str(path))


def is_pipe(path: str | os.PathLike[str]) -> bool:
    """Whether what is read from a path is gone then: a pipe, as a shell's ``<(…)`` makes them."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def read_once(path: str | os.PathLike[str]) -> None:
    """Refuse to open a pipe that the command has read: its first lines would be missing."""
    which = identity(path)
    if not _commands or which is None or not is_pipe(path):
        return
    if which in _commands[-1].pipes:
        raise InputError(path, "a file, as it is read more than once", "a pipe; write it to a file")
    _commands[-1].pipes.add(which)


def is_input(path: str | os.PathLike[str]) -> bool:
    """Whether the command reads this very file or folder."""
    return bool(_commands) and identity(path) in _commands[-1].inputs


def remember_output(path: Path) -> None:
    """Note that the command wrote a file, which it may read and write again."""
    which = identity(path)
    if _commands and which is not None:
        _commands[-1].written.add(which)


def refuse_input(path: str | os.PathLike[str], inputs: Iterable[str] = ()) -> None:
    """Refuse to write over a file that the command reads, or over one of these ``inputs``."""
    which = identity(path)
    if which is None:
        return
    known = _commands[-1].inputs if _commands else {}
    name = known.get(which) or next((one for one in inputs if identity(one) == which), None)
    if name is not None:
        alias = "" if name == str(path) else f" ({name})"
        raise InputError(f"{path}: is an input{alias}, which is never overwritten; name another")


def check_output(path: str | os.PathLike[str], inputs: Iterable[str] = ()) -> None:
    """Refuse an output that is an input, or a file of others without ``--force``."""
    if str(path) == "-" or not os.path.exists(path):
        return
    refuse_input(path, inputs)
    if not _overwriting.get() and os.path.isfile(path) and not is_written_by_unmask(path):
        cure = f"{_force()} replaces it"
        raise InputError(f"{path}: exists already, and unmask did not write it; {cure}")


def check_output_folder(
    folder: str | os.PathLike[str],
    *,
    signs: Iterable[str] = (),
    names: str = "",
) -> None:
    """Refuse a folder that is an input, or one with files of others without ``--force``.

    A folder is unmask's if one of the files ``signs`` in it says so. In any other folder, names
    match the pattern ``names``, begin with a dot, or are those of inputs (which are never replaced)
    or of files that unmask wrote.
    """
    place = Path(folder)
    refuse_input(place)
    if _overwriting.get() or not place.is_dir():
        return
    if any(is_written_by_unmask(place / sign) for sign in signs):
        return
    for entry in sorted(place.iterdir()):
        if entry.name.startswith(".") or re.fullmatch(names, entry.name) or is_input(entry):
            continue
        if not (entry.is_file() and is_written_by_unmask(entry)):
            cure = f"name another folder, or use {_force()}"
            raise InputError(f"{folder}: holds {entry.name}, which unmask did not write; {cure}")


def _force() -> str:
    """How files of others are replaced, on the command line or in Python."""
    return "--force" if _commands and _commands[-1].is_shell else "um.overwriting()"


def mark(path: Path, named: Path) -> None:
    """Mark a file as unmask's that gets the name ``named``, in its content where it has room."""
    line = _LAST_LINES.get(named.suffix.lower())
    with open(path, "r+b") as file:
        head = file.read(8)
        if line is not None:
            file.seek(0, os.SEEK_END)
            if file.tell() and _tail(path, 1) != b"\n":
                file.write(b"\n")
            file.write(line)
        elif head == _PNG and _tail(path, 12) == _PNG_END:
            text = b"tEXtSoftware\x00" + MARK
            chunk = struct.pack(">I", len(text) - 4) + text + struct.pack(">I", zlib.crc32(text))
            file.seek(-12, os.SEEK_END)
            file.write(chunk + _PNG_END)
        elif head.startswith(b"PK") and _tail(path, 22).startswith(_ZIP_END):
            # An archive without comment ends with its length, which is zero.
            file.seek(-2, os.SEEK_END)
            file.write(struct.pack("<H", len(MARK)) + MARK)
    if hasattr(os, "setxattr"):
        with suppress(OSError):
            os.setxattr(path, _ATTRIBUTE, _digest(path))


def marked(text: str, name: str) -> str:
    """The text of a file as it is written under a name."""
    return text + _LAST_LINES.get(Path(name).suffix, b"").decode()


def is_written_by_unmask(path: str | os.PathLike[str]) -> bool:
    """Whether a file says that unmask wrote it, or has not changed since unmask did."""
    place = Path(path)
    try:
        # Opened once: another writer may give the name to another file meanwhile.
        with open(place, "rb") as file:
            head = file.read(4096)
            tail = _end(file, 1 << 16)
            if head.startswith(b"PAR1"):
                return MARK in tail
            if head.startswith(_PNG):
                return MARK in tail[-64:]
            if head.startswith(b"PK"):
                return tail.endswith(struct.pack("<H", len(MARK)) + MARK)
            line = _LAST_LINES.get(place.suffix.lower())
            if line is not None and tail.endswith(line):
                return True
            if head[:1] == b"{" and _JSON.search(head):
                return True
            if _RESULTS.match(head):
                return True
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest().encode()
            return os.getxattr(file.fileno(), _ATTRIBUTE) == digest
    except (OSError, AttributeError):
        return False


def _digest(path: Path) -> bytes:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest().encode()


def _tail(path: Path, size: int) -> bytes:
    """The last bytes of a file."""
    with open(path, "rb") as file:
        return _end(file, size)


def _end(file: BinaryIO, size: int) -> bytes:
    """The last bytes of an open file."""
    length = file.seek(0, os.SEEK_END)
    file.seek(max(0, length - size))
    return file.read()
