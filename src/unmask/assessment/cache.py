"""Steps of an assessment: each a pure function of its inputs, kept under a key of their content."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from importlib import resources
from pathlib import Path
from typing import Any

from unmask._version import __version__
from unmask.errors import InputError
from unmask.run import (
    cache_directory,
    check_output_folder,
    check_writable,
    content_digest,
    in_parts,
    locked,
    make_folder,
    one_blas_thread,
    private_folder,
    progress,
    store,
    write_whole,
)
from unmask.scoring import BACKENDS
from unmask.trials import Embeddings, Scores

Listener = Callable[[str, float, float], None]
"""What is being done, how much of the work is done, and how much there is."""
ASSESSMENTS, REPORTS = "assessments", "reports.json"
_AGAIN = 0.05
_FOLDERS = re.compile(r"runs|extractors|figures|inputs|(quick-)?[0-9a-f]{16}\.jobs")
_FILES = re.compile(
    rf"(quick-)?[0-9a-f]{{16}}\.npz|{REPORTS}|redaction-key|\.unmask-.*|\.redaction-key\..*"
)


@cache
def code_digest() -> str:
    """Digest of this package's source, tables and texts: other code's results are never ours."""
    total = hashlib.sha256(__version__.encode())
    root = Path(str(resources.files("unmask")))
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            total.update(f"{path.relative_to(root).as_posix()} {content_digest(path)}".encode())
    return total.hexdigest()


def digest_of(data: Embeddings | Scores) -> str:
    """Digest of vectors or of scores and of all that is said about them, whatever their file."""
    if isinstance(data, Embeddings):
        return store.digest(replace(data, source=None))
    return store.digest(replace(data, sources=()))


@dataclass(frozen=True)
class Step:
    """One piece of work, made by a framework and run by :class:`Work`.

    ``inputs`` are digests, ``params`` what else decides the result, ``weight`` is about how many
    seconds it takes, which a forecast finds by trying a part where the step can be ``timed``. What
    is ``read`` alone serves quick looks and whole runs alike.
    """

    what: str
    inputs: Sequence[str]
    params: Mapping[str, Any]
    compute: Callable[[], Any] = field(repr=False)
    weight: float = 1.0
    read: bool = False
    timed: Callable[[], float] | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        what: str,
        function: Callable[..., Any],
        *data: Embeddings | Scores,
        weight: float = 1.0,
        **options: Any,
    ) -> Step:
        """``function(*data, **options)``, known by the options and by the digests of the data."""
        more = {n: table for n, table in options.items() if isinstance(table, Embeddings | Scores)}
        params = {name: value for name, value in options.items() if name not in more}
        inputs = [digest_of(table) for table in (*data, *more.values())]
        return cls(what, inputs, params, partial(function, *data, **options), weight)

    @cached_property
    def key(self) -> str:
        """Digest of name, inputs, parameters and the code that computes. What a registered back-end
        computed is taken up again in the same process only.
        """
        known = [list(self.inputs), dict(self.params)]
        named = (*self.params.get("backends", ()), *self.params.get("attackers", ()))
        named = (*named, self.params.get("backend"))
        own = [backend.token for name in named if (backend := BACKENDS.get(name)) and backend.token]
        return store.digest(known, self.what, code_digest(), *own)


def cache_of(output: Path) -> Path:
    """Where the steps of a report folder are kept: outside it, since it may be handed on.

    Kept steps hold names and voiceprints, a report that is filed must not.
    """
    whole = output.resolve()
    name = f"{whole.name}-{hashlib.sha256(str(whole).encode()).hexdigest()[:12]}"
    return cache_directory() / ASSESSMENTS / name


def check_cache(folder: str | Path) -> None:
    """Refuse a folder for kept steps that is an input or holds files of others."""
    check_output_folder(folder, names=f"{_FOLDERS.pattern}|{_FILES.pattern}|private")


class Work:
    """Runs steps, takes stored ones as they are, and tells how far the whole is.

    Finished steps lie in ``folder``, or in a private one inside it where others can read that, each
    a whole file or none, beside the name of the ``report``; ``own`` are those that came meanwhile.
    Runs with one folder share its steps: none is computed by two at once. Where it is ``dry``
    inputs are read and checked, nothing is computed, and ``total`` is how long that would take.
    Steps of a ``quick`` look are kept apart.
    """

    def __init__(
        self,
        folder: Path,
        *,
        report: Path | None = None,
        listener: Listener | None = None,
        dry: bool = False,
        quick: bool = False,
    ) -> None:
        self.folder, self.report, self.listener = private_folder(folder), report, listener
        self.dry, self.quick, self.rate = dry, quick, 0.0
        self.done = self.total = 0.0
        self.reused = self.computed = 0
        self.own: set[Path] = set()
        self.left_out: dict[tuple[str, str], tuple[str, ...]] = {}
        """By safeguard and run: why some recordings could not be made."""
        self.failures: dict[Path, InputError] = {}
        self._left: dict[Path, float] = {}

    def path(self, step: Step) -> Path:
        """Where the result of a step is kept."""
        mark = "quick-" if self.quick and not step.read else ""
        return self.folder / f"{mark}{step.key}.npz"

    def expect(self, steps: Iterable[Step]) -> None:
        """Count steps that will come; those already stored weigh nothing."""
        for path, step in ((self.path(step), step) for step in steps):
            if path not in self._left and not path.is_file():
                self._left[path] = step.weight
                self.total += step.weight

    def run(self, step: Step) -> Any:
        """The result of a step, computed only if it is not stored."""
        path = self.path(step)
        while not (stored := _stored(path)):
            self.make([step])
            if path in self.failures:
                raise self.failures[path]
        self.reused += path not in self.own
        return stored[0]

    def make(self, steps: Iterable[Step]) -> None:
        """Compute what is not stored yet; of steps that another run is at, do others first, and
        wait for them at the end. Why some failed is kept.
        """
        left = {self.path(step): step for step in steps}
        while left:
            busy = {path: step for path, step in left.items() if not self._made(path, step)}
            if len(busy) == len(left):
                self._tell(next(iter(busy.values())).what, 0.0)
                time.sleep(_AGAIN)
            left = busy

    def _made(self, path: Path, step: Step) -> bool:
        """Whether a step is stored, or failed, now; False where another run is at it."""
        if path not in self.failures and not path.is_file():
            try:
                with _claimed(path.with_suffix(".jobs")) as mine:
                    if not mine:
                        return False
                    if not path.is_file():
                        self._compute(path, step)
            except InputError as error:
                self.failures[path] = error
        if path in self._left:
            self.done += self._left.pop(path)
            if path not in self.failures:
                self.computed += 1
                self.own.add(path)
            self._tell(step.what, 0.0)
        return True

    def _compute(self, path: Path, step: Step) -> None:
        self.expect([step])
        # Fits are small: threads of BLAS would wait for each other longer than they work.
        with self._heard(step.what, step.weight), one_blas_thread():
            write_whole(path, store.to_bytes(step.compute()), private=True)
            self._name()

    def _name(self) -> None:
        """Say beside the steps which report they are of."""
        known = _reports(self.folder)
        if self.report is not None and self.report not in known:
            text = json.dumps([*map(str, known), str(self.report)])
            write_whole(self.folder / REPORTS, text.encode(), private=True)

    @contextmanager
    def doing(self, what: str, weight: float = 10.0) -> Iterator[None]:
        """Work that no step does, whose progress is heard."""
        self.total += weight
        with self._heard(what, weight):
            yield
        self.done += weight

    def _heard(self, what: str, weight: float) -> AbstractContextManager[None]:
        self._tell(what, 0.0)
        return progress(lambda done, total: self._tell(what, weight * done / max(total, 1)))

    def _tell(self, what: str, more: float) -> None:
        if self.listener is not None:
            done = self.done + more
            self.listener(what, done, max(self.total, done))


@dataclass(frozen=True)
class Kept:
    """Steps of an assessment in a ``folder``: of which ``reports``, how many bytes, and the time of
    the last one.
    """

    folder: Path
    reports: tuple[Path, ...]
    size: int
    last: float

    @classmethod
    def at(cls, folder: Path) -> Kept:
        """What is kept in a folder."""
        files = [path.lstat() for path in folder.rglob("*") if not path.is_dir()]
        last = max((file.st_mtime for file in files), default=folder.stat().st_mtime)
        return cls(folder, _reports(folder), sum(file.st_size for file in files), last)

    @property
    def gone(self) -> bool:
        """Whether it is known of which reports the steps are, and none of them is there."""
        return bool(self.reports) and not any(path.exists() for path in self.reports)

    def clear(self) -> None:
        """Remove the steps, and the folder if nothing else is in it."""
        for path in self.folder.iterdir():
            if path.is_dir() and _FOLDERS.fullmatch(path.name):
                shutil.rmtree(path)
            elif _FILES.fullmatch(path.name):
                path.unlink()
        with suppress(OSError):
            self.folder.rmdir()


def kept_assessments(*folders: str | Path) -> list[Kept]:
    """Steps that are kept: in the user's cache, or of these report folders and folders of steps."""
    if not folders:
        root = cache_directory() / ASSESSMENTS
        every = sorted(root.iterdir()) if root.is_dir() else []
        return [Kept.at(path) for path in every if path.is_dir() and not path.is_symlink()]
    kept: list[Kept] = []
    for name in folders:
        given = Path(name)
        places = [p for p in (cache_of(given), given, given / "private") if (p / REPORTS).is_file()]
        if not places:
            raise InputError(name, "a report or a folder of which steps are kept", "none")
        kept += map(Kept.at, places)
    return kept


@contextmanager
def _claimed(state: Path) -> Iterator[bool]:
    """Whether no other run is at a step, which none is at meanwhile. What takes long keeps in a
    folder what is done, and finds what a killed run did; it goes when all is done.
    """
    check_writable(state.parent)
    make_folder(state, private=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(state))
        except InputError:
            yield False
            return
        stack.enter_context(in_parts(state))
        try:
            yield True
        except BaseException:
            with suppress(OSError):
                state.rmdir()
            raise
        shutil.rmtree(state, ignore_errors=True)


def _reports(folder: Path) -> tuple[Path, ...]:
    try:
        return tuple(map(Path, json.loads((folder / REPORTS).read_bytes())))
    except (OSError, TypeError, ValueError):
        return ()


def _stored(path: Path) -> tuple[Any] | None:
    """A stored result; a damaged file is removed and counts as none."""
    try:
        return (store.from_bytes(path.read_bytes()),)
    except Exception:
        path.unlink(missing_ok=True)
        return None
