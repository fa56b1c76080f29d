"""``python -m studies.coverage [--samples N] [--processes N] [NAME …]``: coverage of intervals.

Prints a table for every module and how many cells lie inside 92–98 %. The number of processes
changes no result.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import time
from pathlib import Path

import numpy as np

from studies import coverage
from studies.coverage.study import Cell, simulate, summary, table
from unmask.run import run_on

_SHARED = ("__main__", "populations", "known_voices", "study")


def main() -> None:
    """Simulate the studies of every module, or of those whose name contains a word."""
    words = argparse.ArgumentParser(prog="studies.coverage", description=__doc__)
    words.add_argument("names", nargs="*", help="words that names of modules contain")
    words.add_argument("--samples", type=int, default=200, help="samples of speakers a cell")
    words.add_argument("--first", type=int, default=0, help="number of the first, for fresh ones")
    words.add_argument("--processes", type=int, default=1, help="worker processes")
    words.add_argument("--laws", default="", help="laws whose names contain this, for a part")
    words.add_argument("--keep", type=Path, help="folder for the ends of all intervals")
    options = words.parse_args()
    wanted: list[str] = options.names
    every: list[Cell] = []
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
    os.environ["POLARS_MAX_THREADS"] = "1"
    with run_on("processes", workers=options.processes) as here, here.executor() as workers:
        for name in (module.name for module in pkgutil.iter_modules(coverage.__path__)):
            if name in _SHARED or (wanted and not any(word in name for word in wanted)):
                continue
            begin = time.perf_counter()
            try:
                module = importlib.import_module(f"{coverage.__name__}.{name}")
            except ImportError as error:
                print(f"\n== {name} is left out: {error}")
                continue
            studies = [study for study in module.studies() if options.laws in study.law]
            made, kept = simulate(studies, workers, samples=options.samples, first=options.first)
            every += made
            took = time.perf_counter() - begin
            print(f"\n== {name}, {options.samples} samples a cell, {took:.0f} s")
            said = getattr(module, "remarks", lambda _: [])(made)
            print("\n".join([*table(made), *said, *summary(made)]), flush=True)
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                np.savez_compressed(options.keep / f"{name}.npz", **kept)
    print("\n== all\n" + "\n".join(summary(every)))


if __name__ == "__main__":
    main()
