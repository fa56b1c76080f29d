"""``python -m benchmarks [NAME …]``: run all benchmarks, or those whose name contains a word."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks


def main(wanted: list[str]) -> None:
    """Run every ``bench_*`` module's ``run``."""
    for module in pkgutil.iter_modules(benchmarks.__path__):
        if not module.name.startswith("bench_"):
            continue
        if wanted and not any(word in module.name for word in wanted):
            continue
        print(f"\n== {module.name.removeprefix('bench_')}")
        importlib.import_module(f"benchmarks.{module.name}").run()


if __name__ == "__main__":
    main(sys.argv[1:])
