"""Files that are there whole or not at all; room on a disk and in memory, asked for before it is
taken; the folder for what is kept.
"""

from __future__ import annotations

import gzip
import os
import shutil
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from unmask.errors import InputError
from unmask.run.leftovers import clear, lock, owned_name, scratch_folder


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside ``path`` that takes its name when all went well.

    The one way in which files are written. The temporary name is new and random: two writers never
    share it, and no link is followed there. What was written is on the disk before the name is
    given; a link stays one, a device or a pipe is written through.
    """
    if str(path) == "-":
        raise InputError("expected a file to write, found standard output, which takes text only")
    final = Path(path)
    if not final.name or final.is_dir():
        raise InputError(path, "a file to write", "a folder")
    final = Path(os.path.realpath(final)) if final.is_symlink() else final
    if not final.parent.is_dir():
        raise InputError(path, "an existing folder", f"none at {final.parent}")
    try:
        if final.exists() and not final.is_file():
            with scratch_folder() as folder:
                made = folder / final.name
                yield made
                with open(made, "rb") as source, open(final, "wb", buffering=0) as device:
                    shutil.copyfileobj(source, device)
            return
        clear(final.parent)
        temporary = final.with_name(f".{owned_name(final.suffix)}")
        try:
            yield temporary
            _settle(temporary, final)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from error


@contextmanager
def atomic_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for writing, compressed if its name ends in ``.gz``; ``-`` is standard output."""
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with atomic_path(path) as temporary, open(temporary, "x+b") as file:
        if Path(path).suffix.lower() == ".gz":
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                yield cast("BinaryIO", packed)
        else:
            yield file


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file at once."""
    with atomic_path(path) as temporary, open(temporary, "xb") as file:
        file.write(content)


def text_lines(path: str | os.PathLike[str]) -> list[str]:
    """The lines of a text file in UTF-8, without their ends; gzipped where the name ends so."""
    opened = gzip.open if str(path).endswith(".gz") else open
    most = memory_left() // 16
    try:
        with opened(path, "rt", encoding="utf-8-sig") as file:
            text = file.read(most)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError(f"{path}: expected text in UTF-8: {error}") from None
    if len(text) == most:
        raise InputError(path, "a text that memory holds", "more")
    return text.removesuffix("\n").split("\n")


def _settle(temporary: Path, final: Path) -> None:
    """Bring a file to the disk and give it its name."""
    handle = os.open(temporary, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    os.replace(temporary, final)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep a folder to one writer; a second one is refused in a line.

    The lock ends with its process, however that ends. Where the system has no such locks, or the
    file system does not keep them, there is none.
    """
    if sys.platform == "win32":
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        if not lock(handle):
            raise InputError(f"{folder}: another run is writing this folder: wait for it")
        yield
    finally:
        os.close(handle)


def check_room(folder: Path, needed: int, what: str, *, named: Path | None = None) -> None:
    """Refuse what the disk of a folder has no room for; ``named`` is named in its place."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise InputError(
            f"{named or folder}: expected {needed / 1e6:,.1f} MB of free disk for {what}, "
            f"found {free / 1e6:,.1f} MB; state or the variable TMPDIR names another folder"
        )


def memory_left() -> int:
    """Bytes of memory that this process may still take, as far as the system tells."""
    left = 1 << 62
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
        left = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
            left = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        import resource
    except ImportError:
        return left
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return left if limit == resource.RLIM_INFINITY else min(left, limit)


def check_memory(needed: int, name: str, what: str) -> None:
    """Refuse what memory cannot hold twice, before any of it is taken."""
    left = memory_left()
    if 2 * needed > left:
        wanted = f"at most {left / 2e9:.1f} GB of {what}, half of the free memory"
        raise InputError(name, wanted, f"{needed / 1e9:.1f} GB")


def cache_directory() -> Path:
    """``UNMASK_CACHE``, or ``unmask`` in ``XDG_CACHE_HOME`` or in the user's ``.cache``."""
    own = os.environ.get("UNMASK_CACHE")
    if own:
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "unmask"
