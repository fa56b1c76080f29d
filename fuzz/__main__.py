"""``python -m fuzz [--cases N] [--seconds S] [--processes P] [TARGET …]``: damaged files
by the million.

Children read case after case, each a range of them; this process watches. A case that takes more
than ten seconds or ends its child is a fault as is any exception but InputError, a message of more
than one line, and a count of rows that a naive reader of the same bytes does not share. A kind of
file whose library is not installed is left out, by name.
"""

from __future__ import annotations

import argparse
import importlib
import json
import mmap
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from fuzz.mutation import mutated
from fuzz.seeds import installed, seeds
from fuzz.targets import Target, left_out, prepare, targets
from unmask.errors import InputError

LONGEST = 10.0
MEMORY = 6 << 30
CORPUS = Path(__file__).parent / "corpus"
_STATE = struct.Struct("<qqqd")


def case(seed: int, number: int, wanted: tuple[str, ...]) -> tuple[Target, bytes, random.Random]:
    """A case by its number: what reads it, its bytes, and the random choices that follow."""
    rng = random.Random(f"{seed} {number}")
    known = [one for one in targets().values() if not wanted or one.name in wanted]
    target = rng.choices(known, [one.weight for one in known])[0]
    return target, mutated(rng.choice(seeds()[target.name]), target.damage, rng), rng


def fault(target: Target, path: Path, data: bytes, rng: random.Random) -> tuple[str, bool]:
    """What is wrong with how a file is read (nothing: empty), and whether it was accepted."""
    path.write_bytes(data)
    try:
        rows, header = target.read(path, rng)
    except InputError as error:
        return ("a message of several lines" if "\n" in str(error) else ""), False
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        return f"{type(error).__name__} at {place}: {str(error)[:120]}", False
    try:
        naive = target.count(data, header)
    except Exception as error:
        return f"accepted, but a naive reader refuses: {type(error).__name__}: {error}", True
    if rows is not None and naive is not None and rows != naive:
        return f"{rows} rows read, {naive} are there", True
    return "", True


def child(folder: Path, state: Path, seed: int, first: int, last: int, names: list[str]) -> None:
    """Read cases; where this process is stands in a map that the parent watches."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    prepare(folder)
    if installed("torch") and (not names or {"card", "weights"} & set(names)):
        importlib.import_module("torch")  # not in the time of a case
    accepted = refused = 0
    parent = os.getppid()
    with open(state, "r+b") as file, mmap.mmap(file.fileno(), _STATE.size) as shared:
        for number in range(first, last):
            if os.getppid() != parent:
                return
            target, data, rng = case(seed, number, tuple(names))
            shared[:] = _STATE.pack(number, accepted, refused, time.time())
            said, taken = fault(target, folder / target.file, data, rng)
            accepted, refused = accepted + taken, refused + (not taken)
            if said:
                print(json.dumps([number, said]), flush=True)
        shared[:] = _STATE.pack(last, accepted, refused, time.time())


class Hunt:
    """Children one after the other over a range of cases, and what they met.

    ``names`` are the targets (all if empty), ``keep`` a folder for files that show faults.
    """

    def __init__(
        self, seed: int, names: list[str], keep: Path | None = None, *, quiet: bool = False
    ) -> None:
        self.seed, self.names, self.keep, self.quiet = seed, names, keep, quiet
        self.accepted = self.refused = self.cases = 0
        self.faults: list[tuple[int, str]] = []
        self.stopped = False

    def run(self, first: int, last: int, end: float) -> None:
        """The cases from ``first`` to before ``last``, or as many as fit until the time ``end``."""
        following = first
        with tempfile.TemporaryDirectory(dir=_memory_folder()) as folder:
            while following < last and time.monotonic() < end and not self.stopped:
                following = self._watched(Path(folder), following, last, end)
        self.cases = following - first

    def _watched(self, folder: Path, first: int, last: int, end: float) -> int:
        """Watch one child from a case on; the case that the next one begins with."""
        state, messages = folder / "state", folder / "faults"
        state.write_bytes(_STATE.pack(first, 0, 0, time.time() + 60))
        command = [sys.executable, "-m", "fuzz", "--child", str(folder / "files")]
        command += [str(state), str(self.seed), str(first), str(last), *self.names]
        single = dict.fromkeys(("POLARS_MAX_THREADS", "OMP_NUM_THREADS"), "1")
        with open(messages, "wb") as output, open(messages, encoding="utf-8") as faults:
            process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.DEVNULL, env={**os.environ, **single}
            )
            hung = ended = False
            try:
                while process.poll() is None and not hung and not ended:
                    time.sleep(0.1)
                    self._note(faults)
                    *_, began = _STATE.unpack(state.read_bytes())
                    hung = time.time() - began > LONGEST
                    ended = time.monotonic() > end or self.stopped
            finally:
                process.send_signal(signal.SIGKILL)
                process.wait()
                self._note(faults)
        number, accepted, refused, began = _STATE.unpack(state.read_bytes())
        self.accepted, self.refused = self.accepted + accepted, self.refused + refused
        if ended or not (hung or process.returncode):
            return number
        said = f"no end after {LONGEST:g} s" if hung else f"the child ended: {process.returncode}"
        self._fault(number, said)
        return last if began > time.time() else number + 1  # none was read: it cannot start

    def _note(self, faults: TextIO) -> None:
        """The lines that a child has finished since."""
        place = faults.tell()
        while (line := faults.readline()).endswith("\n"):
            self._fault(*json.loads(line))
            place = faults.tell()
        faults.seek(place)

    def _fault(self, number: int, said: str) -> None:
        self.faults.append((number, said))
        target, data, _ = case(self.seed, number, tuple(self.names))
        if not self.quiet:
            print(f"case {number}, {target.name}, {len(data)} bytes: {said}", flush=True)
        if self.keep is not None:
            self.keep.mkdir(parents=True, exist_ok=True)
            (self.keep / f"{target.name}-{self.seed}-{number}").write_bytes(data)


def hunted(hunts: Sequence[Hunt], cases: int, seconds: float) -> None:
    """All cases, or as many as fit into the time, in as many ranges as there are hunts."""
    end = time.monotonic() + seconds
    edges = [cases * n // len(hunts) for n in range(len(hunts) + 1)]
    threads = [
        threading.Thread(target=hunt.run, args=(first, last, end))
        for hunt, first, last in zip(hunts, edges, edges[1:], strict=False)
    ]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:
        for hunt in hunts:
            hunt.stopped = True


def replay(path: Path, folder: Path, *, tries: int = 8) -> str:
    """The fault of a kept file, whose name begins with its target, under several random choices."""
    prepare(folder)
    target, data = targets()[path.name.split("-")[0]], path.read_bytes()
    faults = (fault(target, folder / target.file, data, random.Random(n))[0] for n in range(tries))
    return next((message for message in faults if message), "")


def _memory_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        folder, state, seed, first, last, *names = sys.argv[2:]
        child(Path(folder), Path(state), int(seed), int(first), int(last), names)
        return
    words = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    words.add_argument("targets", nargs="*", help=f"of {', '.join(targets())}; all by default")
    words.add_argument("--cases", type=int, default=1_000_000)
    words.add_argument("--seconds", type=float, default=3600.0)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--processes", type=int, default=1, help="children at a time")
    words.add_argument("--keep", type=Path, help="folder for the files that show faults")
    options = words.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    unknown = set(options.targets) - set(targets())
    if unknown:
        words.error(f"{', '.join(sorted(unknown))}: expected targets of {', '.join(targets())}")
    for name, missing in left_out().items():
        print(f"left out: {name}, which needs {missing}")
    began = time.monotonic()
    hunts = [
        Hunt(options.seed, options.targets, options.keep) for _ in range(max(options.processes, 1))
    ]
    hunted(hunts, options.cases, options.seconds)
    taken = time.monotonic() - began
    cases, faults = sum(one.cases for one in hunts), sum(len(one.faults) for one in hunts)
    print(
        f"{cases:,} cases in {taken:.0f} s ({cases / taken:.0f} a second), seed {options.seed},"
        f" {len(options.targets or targets())} kinds: {sum(one.accepted for one in hunts):,}"
        f" accepted, {sum(one.refused for one in hunts):,} refused, {faults} faults"
    )
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
