"""``python -m benchmarks.fuzz [--cases N] [--seconds S] [TARGET …]``: damaged files by the million.

A child reads case after case; this process watches it. A case that takes more than ten seconds or
ends the child is a fault as is any exception but InputError, a message of more than one line, and a
count of rows that a naive reader of the same bytes does not share.
"""

from __future__ import annotations

import argparse
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
import time
import traceback
from pathlib import Path

from benchmarks.fuzz.mutation import mutated
from benchmarks.fuzz.seeds import seeds
from benchmarks.fuzz.targets import Target, prepare, targets
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
    """Children one after the other, and what they met."""

    def __init__(self, seed: int, names: list[str], keep: Path | None, *, quiet: bool) -> None:
        self.seed, self.names, self.keep, self.quiet = seed, names, keep, quiet
        self.accepted = self.refused = self.next = 0
        self.faults: list[tuple[int, str]] = []

    def run(self, cases: int, seconds: float) -> None:
        """All cases, or as many as fit into the time."""
        end = time.monotonic() + seconds
        with tempfile.TemporaryDirectory(dir=_memory_folder()) as folder:
            while self.next < cases and time.monotonic() < end:
                self._watched(Path(folder), cases, end)

    def _watched(self, folder: Path, cases: int, end: float) -> None:
        state = folder / "state"
        state.write_bytes(_STATE.pack(self.next, 0, 0, time.time() + 60))
        command = [sys.executable, "-m", "benchmarks.fuzz", "--child", str(folder / "files")]
        command += [str(state), str(self.seed), str(self.next), str(cases), *self.names]
        single = dict.fromkeys(("POLARS_MAX_THREADS", "OMP_NUM_THREADS"), "1")
        with open(folder / "faults", "wb") as output:
            process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.DEVNULL, env={**os.environ, **single}
            )
            hung = ended = False
            try:
                while process.poll() is None and not hung and not ended:
                    time.sleep(0.1)
                    number, *_, began = _STATE.unpack(state.read_bytes())
                    hung = time.time() - began > LONGEST
                    ended = time.monotonic() > end
            finally:
                process.send_signal(signal.SIGKILL)
                process.wait()
        number, accepted, refused, _ = _STATE.unpack(state.read_bytes())
        self.accepted, self.refused = self.accepted + accepted, self.refused + refused
        for line in (folder / "faults").read_text().splitlines():
            self._note(*json.loads(line))
        if hung:
            self._note(number, f"no end after {LONGEST:g} s")
        elif not ended and process.returncode:
            self._note(number, f"the process ended with {process.returncode}")
        self.next = number + 1 if hung or process.returncode else number
        if ended:
            self.next = number

    def _note(self, number: int, said: str) -> None:
        self.faults.append((number, said))
        target, data, _ = case(self.seed, number, tuple(self.names))
        if not self.quiet:
            print(f"case {number}, {target.name}, {len(data)} bytes: {said}", flush=True)
        if self.keep is not None:
            self.keep.mkdir(parents=True, exist_ok=True)
            (self.keep / f"{target.name}-{self.seed}-{number}").write_bytes(data)


def replay(path: Path, folder: Path, *, tries: int = 8) -> str:
    """The fault of a kept file, whose name begins with its target, under several random choices."""
    prepare(folder)
    target, data = targets()[path.name.split("-")[0]], path.read_bytes()
    told = (fault(target, folder / target.file, data, random.Random(n))[0] for n in range(tries))
    return next((said for said in told if said), "")


def _memory_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        folder, state, seed, first, last, *names = sys.argv[2:]
        child(Path(folder), Path(state), int(seed), int(first), int(last), names)
        return
    words = argparse.ArgumentParser(prog="benchmarks.fuzz", description=__doc__)
    words.add_argument("targets", nargs="*", help=f"of {', '.join(targets())}; all by default")
    words.add_argument("--cases", type=int, default=1_000_000)
    words.add_argument("--seconds", type=float, default=3600.0)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--keep", type=Path, help="folder for the files that show faults")
    options = words.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    began = time.monotonic()
    hunt = Hunt(options.seed, options.targets, options.keep, quiet=False)
    hunt.run(options.cases, options.seconds)
    taken = time.monotonic() - began
    print(
        f"{hunt.next:,} cases in {taken:.0f} s ({hunt.next / taken:.0f} a second), seed"
        f" {options.seed}: {hunt.accepted:,} accepted, {hunt.refused:,} refused,"
        f" {len(hunt.faults)} faults"
    )
    sys.exit(1 if hunt.faults else 0)


if __name__ == "__main__":
    main()
