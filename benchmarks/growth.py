"""Growth: a workload at several sizes, each in a fresh process, and the fitted exponent.

Times are processor seconds of the work: on a busy machine they say more than the clock.
"""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np

MARK = "# measured from here\n"


def measured(code: str) -> tuple[float, float, float]:
    """Processor seconds, wall-clock seconds and peak memory in GB of code in a new interpreter.

    What stands before the mark is not timed.
    """
    before, _, code = code.rpartition(MARK)
    wrapped = (
        f"import json, re, time\nimport numpy as np, unmask as um\n{before}\n"
        "cpu, wall = time.process_time(), time.perf_counter()\n"
        f"{code}\n"
        "spent = [time.process_time() - cpu, time.perf_counter() - wall]\n"
        "status = open('/proc/self/status').read()\n"
        "peak = int(re.search(r'VmHWM:\\s+(\\d+) kB', status)[1]) / 1e6\n"
        "print(json.dumps([*spent, peak]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", wrapped], check=True, capture_output=True, text=True
    )
    cpu, wall, peak = json.loads(done.stdout.splitlines()[-1])
    return cpu, wall, peak


def report(
    what: str, unit: str, sizes: list[int], code: list[str], *, runs: int = 1
) -> list[float]:
    """Measure, print a line per size and the exponent b of seconds = a · size^b; gives seconds.

    Of several runs the one with the fewest seconds of processor counts.
    """
    print(f"\n{what}")
    seconds = []
    for size, text in zip(sizes, code, strict=True):
        cpu, wall, peak = min(measured(text) for _ in range(runs))
        seconds.append(cpu)
        print(
            f"    {size:>14,} {unit:<10} {cpu:8.2f} s of processor ({wall:7.2f} s), "
            f"{1e9 * cpu / size:8.1f} ns each, peak {peak:.2f} GB"
        )
    slope = np.polyfit(np.log(np.array(sizes, float)), np.log(seconds), 1)[0]
    print(f"    exponent {slope:.2f}")
    return seconds
