"""``python -m fuzz.faults [RUN …]``: kill or fail a run at every write, then run it again.

While a run works, the folder that it writes is copied before every opening for writing, renaming,
making and removing in it: what a kill at that moment would leave. Each copy is put in place and the
run is started again; it must end with the same bytes as a run that nothing happened to. In the same
way each file in turn cannot be brought to the disk: the run must say so in one line, and the next
run must end with the same bytes.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from unmask.errors import InputError
from unmask.run import files

_EVENTS = frozenset({"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link", "os.truncate"})
_watching: list[Callable[[], None]] = []
_roots: list[str] = []


def _heard(event: str, given: tuple[object, ...]) -> None:
    """The hook of the interpreter: tells whoever watches before a folder changes."""
    if not _watching:
        return
    if event == "open":
        path, mode, flags = given
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if not writes and not (isinstance(mode, str) and set(mode) & set("wax+")):
            return
    elif event in _EVENTS:
        path = given[0]
    else:
        return
    if isinstance(path, str | bytes | os.PathLike) and os.fsdecode(path).startswith(_roots[-1]):
        watch = _watching.pop()
        try:
            watch()
        finally:
            _watching.append(watch)


_hooked = False


@contextmanager
def watched(folder: Path, tell: Callable[[], None]) -> Iterator[None]:
    """Meanwhile ``tell`` is called before every change below a folder."""
    global _hooked
    if not _hooked:
        sys.addaudithook(_heard)
        _hooked = True
    _watching.append(tell)
    _roots.append(str(folder))
    try:
        yield
    finally:
        _watching.pop()
        _roots.pop()


def state_of(folder: Path) -> dict[str, str]:
    """Digest of every file below a folder, hidden ones too; locks hold nothing."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "lock"
    }


@dataclass
class Trial:
    """A run, the folder that it writes, and what came of breaking it.

    ``whole`` tells which files must be equal in the end; all by default.
    """

    name: str
    folder: Path
    run: Callable[[], object]
    whole: Callable[[str], bool] = lambda name: True
    faults: list[str] = field(default_factory=list)
    kills: int = 0
    failures: int = 0

    def result(self) -> dict[str, str]:
        """What counts of the folder."""
        return {name: sha for name, sha in state_of(self.folder).items() if self.whole(name)}

    def start(self) -> None:
        """A run with nothing there before it."""
        self._put(None)
        self.run()

    def _put(self, copy: Path | None) -> None:
        files._clear.cache_clear()
        shutil.rmtree(self.folder, ignore_errors=True)
        if copy is None:
            self.folder.mkdir(parents=True)
        else:
            shutil.copytree(copy, self.folder)

    def killed(self, every: int = 1) -> None:
        """Kill at every change of the folder (or each ``every``-th), and go on from there."""
        with tempfile.TemporaryDirectory() as kept:
            seen: dict[str, Path] = {}

            def keep() -> None:
                digest = hashlib.sha256(repr(state_of(self.folder)).encode()).hexdigest()
                if digest not in seen:
                    seen[digest] = Path(kept) / str(len(seen))
                    shutil.copytree(self.folder, seen[digest])

            self._put(None)
            with watched(self.folder, keep):
                self.run()
            expected = self.result()
            for number, copy in enumerate(list(seen.values())[::every]):
                self._put(copy)
                self._again(expected, f"killed at change {number * every}")
                self.kills += 1

    def failed(self, every: int = 1) -> None:
        """Let each file in turn not be brought to the disk, and go on after that."""
        self.start()
        expected = self.result()
        number = 0
        settle = files._settle
        while True:
            count = 0

            def broken(temporary: Path, final: Path, at: int = number) -> None:
                nonlocal count
                count += 1
                if count == at + 1:
                    raise OSError(errno.ENOSPC, "No space left on device")
                settle(temporary, final)

            self._put(None)
            files._settle = broken
            try:
                self.run()
            except InputError as error:
                if "\n" in str(error) or "No space left" not in str(error):
                    self.faults.append(f"{self.name}, write {number} fails: {error}")
            except Exception as error:
                self.faults.append(f"{self.name}, write {number} fails: {error!r}")
            finally:
                files._settle = settle
            if count <= number:
                return
            self._again(expected, f"write {number} failed")
            self.failures += 1
            number += every

    def _again(self, expected: dict[str, str], what: str) -> None:
        try:
            self.run()
        except Exception as error:
            self.faults.append(f"{self.name}, {what}: the next run ends with {error!r}")
            return
        outcome = self.result()
        if outcome != expected:
            differ = sorted(k for k in {*outcome, *expected} if outcome.get(k) != expected.get(k))
            self.faults.append(f"{self.name}, {what}: other bytes in {', '.join(differ[:5])}")


def _corpus(folder: Path, speakers: int = 3, each: int = 2) -> Path:
    import soundfile

    rng = np.random.default_rng(0)
    for s in range(speakers):
        (folder / f"s{s}").mkdir(parents=True, exist_ok=True)
        for u in range(each):
            samples = 0.1 * np.sin(np.arange(4000) / (9 + s)) + 0.01 * rng.normal(size=4000)
            soundfile.write(folder / f"s{s}" / f"s{s}-{u}.wav", samples, 16000)
    return folder


def _spectrum(samples: np.ndarray) -> np.ndarray:
    return np.log1p(np.abs(np.fft.rfft(samples[:2000]))[:200].reshape(20, 10).mean(1))


def embedding(folder: Path) -> Trial:
    """``unmask embed`` with shards of one file."""
    from unmask.run import job, run_on
    from unmask.speech import embed, forget, recordings
    from unmask.trials import write

    outcome = recordings(_corpus(folder / "audio"))
    out = folder / "out"

    def run() -> None:
        job.SAVE_EVERY = 0.0
        with run_on(workers=1):
            made = embed(outcome, _spectrum, parts=out / "x.npz.parts", shard=1)
            assert made.embeddings is not None
            write(made.embeddings, out / "x.npz")
        forget(out / "x.npz.parts")

    return Trial("embed", out, run)


def anonymising(folder: Path) -> Trial:
    """``unmask anonymise``."""
    from unmask.run import run_on
    from unmask.speech import anonymise, recordings, safeguard

    outcome = recordings(_corpus(folder / "audio"))
    out = folder / "out"

    def run() -> None:
        with run_on(workers=1):
            made = anonymise(outcome, out, safeguard("b2"))
        if made.failures:
            raise InputError(made.failures[0])

    return Trial("anonymise", out, run)


def counting(folder: Path) -> Trial:
    """``unmask eval --pairs all --state``: results and running sums, saved at every range."""
    from unmask.run import accumulate, job, ranges_of, run_on, write_whole

    vectors = np.random.default_rng(1).normal(size=(48, 8))
    out = folder / "out"

    def run() -> None:
        job.SAVE_EVERY = 0.0
        with run_on(workers=1, state=out / "state"):
            total = accumulate(_products, (vectors,), ranges_of(48, 6), {"sum": np.zeros(48)}, _add)
            rows = list(job.run(_products, (vectors,), ranges_of(48, 8)))
        write_whole(out / "result", total["sum"].tobytes() + rows[3]["sum"].tobytes())

    return Trial("state", out, run, whole=lambda name: name == "result")


def _products(
    xp: object, shared: tuple[np.ndarray], rows: tuple[int, int]
) -> dict[str, np.ndarray]:
    return {"sum": shared[0][slice(*rows)] @ shared[0].T @ np.ones(len(shared[0]))}


def _add(total: dict[str, np.ndarray], part: dict[str, np.ndarray], rows: tuple[int, int]) -> None:
    total["sum"][slice(*rows)] += part["sum"]


def assessing(folder: Path) -> Trial:
    """``unmask assess`` of small score tables: kept steps, then the report folder."""
    from unmask.assessment import load_config
    from unmask.report import run_assessment as assess, write_report

    rng = np.random.default_rng(2)
    lines = [
        f"e{i} t{i} {rng.normal() + 2 * (i % 2):.4f} {('nontarget', 'target')[i % 2]}"
        for i in range(60)
    ]
    (folder / "s.txt").write_text("\n".join(lines) + "\n")
    (folder / "a.toml").write_text(
        'figures = ["svg"]\nframeworks = ["verification"]\nintervals = { replicates = 5 }\n'
        '[[scores]]\nname = "s"\nfiles = ["s.txt"]\n'
    )
    config = load_config(folder / "a.toml")
    out = folder / "out"

    def run() -> None:
        write_report(assess(config, out / "report", cache=out / "kept"), out / "report")

    return Trial("assess", out, run, whole=lambda name: name.startswith("report/"))


TRIALS = {"embed": embedding, "anonymise": anonymising, "state": counting, "assess": assessing}


def main() -> None:
    words = argparse.ArgumentParser(prog="fuzz.faults", description=__doc__)
    words.add_argument("runs", nargs="*", choices=[[], *TRIALS], help="all by default")
    bad = []
    for name in words.parse_args().runs or TRIALS:
        with tempfile.TemporaryDirectory() as folder:
            trial = TRIALS[name](Path(folder))
            trial.killed()
            trial.failed()
        for line in trial.faults:
            print(line)
        print(f"{name}: {trial.kills} kills, {trial.failures} failed writes,", end=" ")
        print(f"{len(trial.faults)} faults", flush=True)
        bad += trial.faults
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
