"""A whole assessment from embeddings: the demo, 3,000 people, or as many as in Vauquier 2025.

    python -m benchmarks assess
    python -m benchmarks.bench_assess paper [again] [killed]

``paper`` enrols 6 utterances each of 22,024 people and attacks 12 each of 4,949; ``again`` gives
attackers a run of their own. It prints what each step takes. ``killed`` runs once more, ends that
run a minute into its longest step, and goes on: the report must have the same bytes.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import fresh_process, ratio

MADE = """
from pathlib import Path
import numpy as np

def write(path, counts, noise, seed):
    # Speaker vectors, the same whatever the seed, and what differs between utterances.
    means = np.random.default_rng(0).standard_normal((len(counts), 192), dtype=np.float32)
    who = np.repeat(np.arange(len(counts)), counts)
    rows = means[who]
    rows += noise * np.random.default_rng(seed).standard_normal(rows.shape, dtype=np.float32)
    place = np.concatenate([np.arange(n) for n in counts])
    names = np.char.add(np.char.add(who.astype(str), "-"), place.astype(str))
    np.savez(path, embeddings=rows, speaker_ids=who.astype(str), utt_ids=names)
    return names[place < ENROLLED], len(names)

folder = Path(FOLDER)
enrolled, size = write(folder / "original.npz", COUNTS, 1.0, 1)
write(folder / "P.npz", COUNTS, 3.0, 2)
(folder / "enrolled").write_text("\\n".join(enrolled))
text = f'title = "Size"\\nseed = 0\\n[original]\\nembeddings = "original.npz"\\n'
text += '[[safeguards]]\\nname = "P"\\nembeddings = "P.npz"\\n'
if AGAIN:
    write(folder / "again.npz", COUNTS, 3.0, 3)
    text += 'again = "again.npz"\\n'
text += '[split]\\nutterances = "enrolled"\\n[intervals]\\nreplicates = 20\\n'
text += '[cpmap]\\nreplicates = 20\\n'
(folder / "size.toml").write_text(text)
result = size
"""
ASSESSED = """
import os, signal, sys, threading, time
from pathlib import Path
import numpy as np
import unmask as um

folder, size = Path(FOLDER), SIZE
steps, last = [], None

def listener(what, done, total):
    global last
    if last is None or what != last[0]:
        finish()
        last = what, time.process_time(), time.perf_counter()
        if what == KILLED:
            threading.Timer(60, os.kill, (os.getpid(), signal.SIGKILL)).start()

def finish():
    if last is not None:
        spent = time.process_time() - last[1], time.perf_counter() - last[2]
        steps.append((last[0], *spent))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        if TOLD:
            print(f"{spent[0]:8.1f} s ({spent[1]:7.1f} s), peak {peak:.2f} GB: {last[0]}",
                  file=sys.stderr, flush=True)

def say(line):
    if TOLD:
        print(line, file=sys.stderr, flush=True)

began = time.process_time(), time.perf_counter()
how = dict(cache=folder / KEPT, listener=listener, say=say)
um.assess(folder / "size.toml", folder / ("report " + KEPT), **how)
spent = time.process_time() - began[0], time.perf_counter() - began[1]
finish()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
kept = sum(path.stat().st_size for path in (folder / KEPT).rglob("*") if path.is_file()) / 1e9
floor = time.process_time()
FLOOR
floor = time.process_time() - floor
result = [*spent, peak, floor, kept, max(steps, key=lambda one: one[1])]
"""
PRODUCTS = """
rows = np.random.default_rng(0).standard_normal((size, 192), dtype=np.float32)
for at in range(0, min(size, 12_000), 1024):
    np.sort(rows[at : at + 1024] @ rows[:12_000].T, axis=None)
"""

DEMO = """
import tempfile, time
from pathlib import Path
import numpy as np
import unmask as um
from unmask.assessment import demo_config
from unmask.run import available
from unmask.speech.embedding import case_study

def assessed(kept, processes=1):
    start = time.process_time(), time.perf_counter()
    um.assess(config, out, cache=Path(folder) / kept, processes=processes)
    return time.process_time() - start[0], time.perf_counter() - start[1]

with tempfile.TemporaryDirectory() as folder:
    out = Path(folder) / "report"
    config = demo_config(out)
    shared = assessed("shared", available(None))
    first, same = assessed("kept"), assessed("kept")
    path = next(one.embeddings for one in config.safeguards if one.name == "B2w")
    with np.load(path) as arrays:
        moved = dict(arrays)
    noise = np.random.default_rng(0).standard_normal(moved["embeddings"].shape)
    moved["embeddings"] += np.float32(1e-3) * noise.astype(np.float32)
    np.savez(path, **moved)
    again = assessed("kept")
every = [voices.vectors for voices in case_study().values()]
floor = time.process_time()
for one in every:
    for other in (every[0], one):
        np.sort(other @ one.T, axis=None)
floor = time.process_time() - floor
result = [shared, first, same, again, floor]
"""


def run() -> None:
    """The demo, and 3,000 people with four utterances each, one safeguard, 20 replicates."""
    shared, first, same, again, floor = fresh_process(DEMO)[2]
    what = "the demo, seven safeguards, processor time"
    ratio(what, first[0], floor, "all pairs scored and sorted once", limit="63 s")
    ratio("the demo with nothing changed", same[0], first[0], "the first run")
    ratio("the demo with one safeguard changed", again[0], first[0], "the first run")
    ratio("the demo in several processes, by the clock", shared[1], first[1], "one process")
    spent, wall, peak, floor, kept, longest = _measured("np.full(3000, 4)", 2)
    what = "assess, 3,000 x 4, 192 dimensions, processor time"
    ratio(what, spent, floor, "all pairs scored and sorted once", limit="150 s")
    print(
        f"{'':<4}{wall:.0f} s by the clock, peak memory {peak:.2f} GB (aim: 2), kept steps"
        f" {kept:.2f} GB; longest step {longest[1]:.1f} s: {longest[0]}"
    )


def paper(*, again: bool, killed: bool) -> None:
    """The size of the paper."""
    counts = "np.where(np.arange(22_024) < 4_949, 18, 6)"
    with tempfile.TemporaryDirectory() as folder:
        size = _made(folder, counts, 6, again=again)
        spent, wall, peak, _, kept, longest = _assessed(folder, size, told=True)
        print(
            f"22,024 x 6 enrolled, 4,949 x 12 attacked{', own run' if again else ''}: {spent:.0f} s"
            f" of processor, {wall / 60:.1f} minutes by the clock (aim: 30), peak memory"
            f" {peak:.2f} GB (aim: 6), kept steps {kept:.2f} GB; longest step {longest[2]:.0f} s by"
            f" the clock (aim: 120): {longest[0]}"
        )
        if killed:
            try:
                _assessed(folder, size, kept="killed", killed=longest[0])
                print("the run ended before it was killed")
            except subprocess.CalledProcessError as error:
                print(f"killed a minute into that step: {error.returncode}")
            _, wall, *_, after = _assessed(folder, size, kept="killed", told=True)
            whole, resumed = (_digests(Path(folder, f"report {one}")) for one in ("kept", "killed"))
            print(
                f"went on: {wall / 60:.1f} minutes by the clock, longest step {after[2]:.0f} s:"
                f" {after[0]}; {len(whole)} files {'the same' if whole == resumed else 'DIFFER'}"
            )


def _digests(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    read = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    return {name: hashlib.sha256(content).hexdigest() for name, content in read.items()}


def _measured(counts: str, enrolled: int) -> list:
    with tempfile.TemporaryDirectory() as folder:
        return _assessed(folder, _made(folder, counts, enrolled))


def _made(folder: str, counts: str, enrolled: int, *, again: bool = False) -> int:
    given = {"COUNTS": counts, "ENROLLED": enrolled, "AGAIN": again, "FOLDER": repr(folder)}
    return _run(MADE, given)[2]


def _assessed(
    folder: str, size: int, *, told: bool = False, kept: str = "kept", killed: str = ""
) -> list:
    given = {"TOLD": told, "FOLDER": repr(folder), "SIZE": size, "FLOOR": PRODUCTS}
    return _run(ASSESSED, {**given, "KEPT": repr(kept), "KILLED": repr(killed)}, told=told)[2]


def _run(code: str, given: dict[str, object], *, told: bool = False) -> tuple:
    for name, value in given.items():
        code = code.replace(name, str(value))
    return fresh_process(code, told=told)


if __name__ == "__main__":
    known = {word: word in sys.argv for word in ("again", "killed")}
    paper(**known) if "paper" in sys.argv else run()
