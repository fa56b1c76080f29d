"""Files that are there whole or not at all, and folders for what a run keeps so that it can go on
after a fault; room on a disk and in memory, asked for before it is taken.

What is temporary lies in folders that a run holds locked: one whose lock is free is of a dead run,
and the next run that looks there removes it.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import BinaryIO, cast

from unmask.errors import InputError
from unmask.run.outputs import (
    check_output,
    identity,
    mark,
    refuse_input,
    remember_input,
    remember_output,
)

_SCRATCH, _LOCK = ".unmask-", "lock"
KEPT = 7 * 24 * 3600.0
LINE_ENDS = "lines that end with LF or CR LF"
_TICK = 2_000_000_000
_GROUP = Path("/sys/fs/cgroup")
_USERS = hasattr(os, "getuid")
"""Whether files have users and modes, and folders can be opened and locked: not on Windows."""
_NOT_OWN = (
    "a folder of this user that nobody else can write",
    "another: what is kept there is not trusted",
)


@contextmanager
def scratch_folder(root: Path | None = None, *, named: object = None) -> Iterator[Path]:
    """A new folder, closed to others, during the context, in ``root`` or the temporary files."""
    handle = None
    try:
        root = root or Path(tempfile.gettempdir())
        _clear(root, os.getpid())
        while handle is None:  # before it is locked another run may take it for a dead one's
            folder = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=root))
            handle = _hold(folder)
    except OSError as error:
        where = named or "temporary files"
        raise InputError(f"{where}: cannot be written ({error.strerror})") from error
    try:
        yield folder
    finally:
        os.close(handle)
        try:
            folder.rmdir()
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)


@cache
def _clear(root: Path, process: int) -> None:
    """Remove what dead runs left, and what failed runs kept a week ago; a process looks once."""
    kept = _kept("[0-9a-f]" * 16)
    for name, held, age in ((f"{_SCRATCH}????????", "", 0.0), (kept, _LOCK, KEPT)):
        for folder in root.glob(name) if _USERS else ():
            with suppress(OSError, InputError):
                left = max(path.lstat().st_mtime for path in (folder, folder / held))
                if time.time() - left < age or not is_own(folder):
                    continue
                if (handle := _hold(folder / held, sure=True)) is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                    os.close(handle)


def lock(handle: int) -> bool | None:
    """Lock an open file until it is closed; False if another process has it, None without locks."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return True


def _hold(path: Path, flags: int = os.O_RDONLY, *, sure: bool = False) -> int | None:
    """Open and lock a file or folder; None if another run has it, or ``sure`` without locks."""
    if not _USERS:
        return os.open(os.devnull, os.O_RDONLY)
    try:
        handle = os.open(path, flags, 0o600)
    except FileNotFoundError:
        return None
    got = lock(handle)
    with suppress(OSError):
        there = os.stat(path).st_ino == os.fstat(handle).st_ino
        if there and (got or (got is None and not sure)):
            return handle
    os.close(handle)
    return None


@contextmanager
def atomic_path(
    path: str | Path, *, private: bool = False, replace: bool = False
) -> Iterator[Path]:
    """Give a temporary path beside ``path`` that takes its name when all went well; where it is
    ``private`` this user alone can read it.

    The one way in which files are written. An input is never replaced, a file of others only where
    that was asked for (:func:`~unmask.run.outputs.check_output`). ``private`` files and those that
    ``replace`` others lie in folders of unmask.

    The temporary file lies in a new folder: two writers never share it, and no link is followed
    there. What was written is on the disk before the name
    is given; a link stays one, a device or a pipe is written through.
    """
    if str(path) == "-":
        raise InputError("expected a file to write, found standard output, which takes text only")
    final = Path(path)
    if not final.name or final.is_dir():
        raise InputError(path, "a file to write", "a folder")
    final = Path(os.path.realpath(final)) if final.is_symlink() else final
    if final.is_symlink():
        raise InputError(path, "a file to write", "a link that leads to itself")
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
        kept = private or replace
        (refuse_input if kept else check_output)(path)
        with scratch_folder(final.parent, named=path) as folder:
            temporary = folder / f".new{final.suffix if len(final.suffix) < 10 else ''}"
            yield temporary
            # Somebody may have written a file of that name meanwhile.
            (refuse_input if kept else check_output)(path)
            if private:
                temporary.chmod(0o600)
            else:
                mark(temporary, final)
            _settle(temporary, final)
            remember_output(final)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from error


def _settle(temporary: Path, final: Path) -> None:
    with open(temporary, "rb") as file:
        os.fsync(file.fileno())
    os.replace(temporary, final)


@contextmanager
def atomic_file(
    path: str | Path, *, private: bool = False, replace: bool = False
) -> Iterator[BinaryIO]:
    """Open a file for writing, compressed if its name ends in ``.gz``; ``-`` is standard output."""
    if str(path) == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    made = atomic_path(path, private=private, replace=replace)
    with made as temporary, open(temporary, "x+b") as file:
        if Path(path).suffix.lower() == ".gz":
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                yield cast("BinaryIO", packed)
        else:
            yield file


def write_whole(
    path: str | Path, content: bytes, *, private: bool = False, replace: bool = False
) -> None:
    """Write a file at once."""
    made = atomic_path(path, private=private, replace=replace)
    with made as temporary, open(temporary, "xb") as file:
        file.write(content)


def content_digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file, read again whenever it may have changed; of all files of a folder."""
    place = Path(path)
    if place.is_dir():
        inside = [file for file in files_below(place) if file.is_file()]
        named = [f"{one.relative_to(place).as_posix()}\0{content_digest(one)}\n" for one in inside]
        return hashlib.sha256("".join(named).encode(errors="surrogateescape")).hexdigest()
    try:
        there = os.stat(place)
        # A file can change twice within one tick of its clock.
        known = _digest if time.time_ns() - there.st_ctime_ns > _TICK else _digest.__wrapped__
        state = there.st_dev, there.st_ino, there.st_size, there.st_mtime_ns, there.st_ctime_ns
        return known(place, state)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


@lru_cache(maxsize=1 << 17)
def _digest(path: Path, state: tuple[int, ...]) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def folders_below(
    root: str | os.PathLike[str], *, hidden: bool = True, depth: int = sys.maxsize
) -> dict[Path, list[Path]]:
    """A folder and every one below it, links followed, each with its files, all sorted.

    Each real folder is gone through once, told by device and inode, so that loops end. Where two
    names lead to one folder, the one without links counts.
    """
    found: dict[Path, list[Path]] = {}
    seen: set[object] = set()
    folders, links = [(Path(root), 0)], list[tuple[Path, int]]()
    while folders or links:
        folder, level = folders.pop() if folders else links.pop(0)
        which = identity(folder)
        if which in seen:
            continue
        seen.add(which)
        files = found.setdefault(folder, [])
        try:
            inside = sorted(folder.iterdir())
        except OSError as error:
            raise InputError(f"{folder}: cannot be read: {error.strerror}") from None
        for path in inside:
            if not path.is_dir():
                files.append(path)
            elif level < depth and (hidden or not path.name.startswith(".")):
                (links if path.is_symlink() else folders).append((path, level + 1))
    return dict(sorted(found.items()))


def files_below(root: str | os.PathLike[str]) -> list[Path]:
    """Every file of :func:`folders_below`, sorted."""
    return sorted(path for files in folders_below(root).values() for path in files)


def text_lines(path: str | os.PathLike[str]) -> list[str]:
    """The lines of a text file in UTF-8, without their ends; gzipped where the name ends so."""
    opened = gzip.open if str(path).endswith(".gz") else open
    remember_input(path)
    most = memory_left() // 16
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            text = file.read(most)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        actual = f"other bytes (position {error.start}): is it a text file?"
        raise InputError(path, "text in UTF-8", actual) from None
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise InputError(f"{path}: expected text in UTF-8: {error}") from None
    if len(text) == most:
        raise InputError(path, "a text that memory holds", "more")
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    if "\r" in text:
        for number, line in enumerate(lines, 1):
            if "\r" in line:
                raise InputError(f"{path}, line {number}", LINE_ENDS, "a carriage return alone")
    return lines


class Busy(InputError):
    """Another run is at work in a folder."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep a folder to one writer; a second one is refused in a line. The lock ends with its
    process; where the system or the file system has none, there is none.
    """
    handle = _hold(folder)
    if handle is None:
        raise Busy(f"{folder}: another run is writing this folder: wait for it")
    try:
        yield
    finally:
        os.close(handle)


def check_writable(folder: Path, *, named: Path | None = None) -> None:
    """Refuse a folder that cannot be written, nor made below the last one that is there."""
    there = folder.absolute()
    while not there.exists():
        there = there.parent
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        written = f"{named or folder}: cannot be written"
        raise InputError(f"{written}: {there} is not a writable folder")


def make_folder(folder: Path, *, private: bool = False) -> Path:
    """Make a folder, and those above it, unless it is there."""
    try:
        folder.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=True)
    except OSError as error:
        where = error.filename or folder
        raise InputError(f"{where}: cannot be made: {error.strerror}") from None
    return folder


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
    for limit_of in ("memory.max", "memory/memory.limit_in_bytes"):  # of a container
        with suppress(OSError, ValueError):
            left = min(left, int((_GROUP / limit_of).read_text(encoding="ascii")))
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


@contextmanager
def workplace(key: str, state: str | Path | None) -> Iterator[Path]:
    """A folder for one plan, which ``key`` names, and for one run at a time.

    Without ``state`` it lies among the temporary files under a name made of the key: a run that
    failed leaves it there and the next one finds it, a run that succeeded removes it. A second run
    of the same plan at the same time gets a folder of its own, and so does a run that finds one of
    another user or one that others could write.
    """
    root = Path(tempfile.gettempdir())
    folder = Path(state) if state else root / _kept(key)
    own = is_own(folder)
    if state and not own:
        raise InputError(folder, *_NOT_OWN)
    if not state:
        _clear(root, os.getpid())
    handle = _claim(folder) if own else None
    if handle is None and state:
        raise InputError(f"{folder}: another run is at work there")
    if handle is None:
        with scratch_folder() as folder:
            yield folder
        return
    failed = True
    try:
        yield folder
        failed = False
    finally:
        if not state and not (failed and any(folder.rglob("*.npz"))):
            shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def private_folder(folder: Path) -> Path:
    """Where to keep what nobody else may read: this folder, or one inside it that is closed."""
    for place in (folder, folder / "private"):
        if not is_own(place):
            raise InputError(place, *_NOT_OWN)
        if not _USERS or not place.exists() or not place.stat().st_mode & 0o077:
            return place
    place.chmod(0o700)
    return place


@contextmanager
def private_files() -> Iterator[None]:
    """Meanwhile this user alone can read the files and folders that this process makes."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def is_own(folder: Path) -> bool:
    """Whether a folder is absent, or this user's and such that nobody else can write it."""
    try:
        there = folder.lstat()
    except FileNotFoundError:
        return True
    except OSError as error:
        raise InputError(f"{folder}: cannot be used ({error.strerror})") from None
    mine = not _USERS or (there.st_uid == os.getuid() and not there.st_mode & 0o022)
    return stat.S_ISDIR(there.st_mode) and mine


def _kept(key: str) -> str:
    """The name of what runs of this user keep among the temporary files."""
    return f"unmask-{os.getuid() if _USERS else 'user'}-{key}"


def _claim(folder: Path) -> int | None:
    """Make a folder and lock it; ``None`` if another run has it, or is removing it just now."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_mode & 0o077:
            folder.chmod(0o700)
        return _hold(folder / _LOCK, os.O_WRONLY | os.O_CREAT)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"{folder}: cannot be used ({error.strerror})") from None
