"""Measuring: best of several runs, peak memory of a fresh process, and how to print a ratio."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def seconds(work: Callable[[], Any], *, runs: int = 3) -> float:
    """Shortest wall-clock time of several runs."""
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def spent() -> float:
    """Seconds of processor so far, of this process and of those it started, ended or not."""
    ended, ticks = resource.getrusage(resource.RUSAGE_CHILDREN), 0
    for child in multiprocessing.active_children():
        fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    others = ended.ru_utime + ended.ru_stime + ticks / os.sysconf("SC_CLK_TCK")
    return time.process_time() + others


def fresh_process(code: str, *, told: bool = False) -> tuple[float, float, Any]:
    """Run code in a new interpreter: seconds, peak memory in GB, and what it left in ``result``.

    What it says of errors is shown at once where it is ``told``.
    """
    wrapped = (
        "import json, resource, time\nstart = time.perf_counter()\nresult = None\n"
        f"{code}\n"
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6\n"
        "print(json.dumps([time.perf_counter() - start, peak, result]))"
    )
    errors = None if told else subprocess.PIPE
    done = subprocess.run(
        [sys.executable, "-c", wrapped],
        check=True,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
    )
    elapsed, peak, result = json.loads(done.stdout.splitlines()[-1])
    return elapsed, peak, result


def ratio(what: str, measured: float, baseline: float, against: str, *, limit: str = "") -> None:
    """One line: how many times the baseline."""
    wanted = f"  (aim: {limit})" if limit else ""
    print(
        f"{what:<52} {measured:8.3f} s = {measured / baseline:8.2f} x {against}"
        f" ({baseline:.3f} s){wanted}"
    )
