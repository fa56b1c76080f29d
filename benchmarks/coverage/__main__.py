"""``python -m benchmarks.coverage [--samples N] [NAME …]``: simulate the coverage of intervals."""

from __future__ import annotations

import argparse
import importlib
import pkgutil

from benchmarks import coverage

_SHARED = ("__main__", "populations", "tally")


def main() -> None:
    """Run ``run`` of every module of the package, or of those whose name contains a word."""
    words = argparse.ArgumentParser(prog="benchmarks.coverage", description=__doc__)
    words.add_argument("names", nargs="*", help="words that names of modules contain")
    words.add_argument("--samples", type=int, default=200, help="samples of speakers a population")
    options = words.parse_args()
    wanted: list[str] = options.names
    for module in pkgutil.iter_modules(coverage.__path__):
        if module.name in _SHARED or (wanted and not any(w in module.name for w in wanted)):
            continue
        print(f"\n== {module.name}")
        importlib.import_module(f"{coverage.__name__}.{module.name}").run(samples=options.samples)


if __name__ == "__main__":
    main()
