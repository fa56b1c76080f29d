"""``python -m benchmarks.coverage [NAME …]``: simulate the coverage of intervals, all or some."""

from __future__ import annotations

import importlib
import pkgutil
import sys

from benchmarks import coverage

_SHARED = ("__main__", "populations", "tally")


def main(wanted: list[str]) -> None:
    """Run ``run`` of every module of the package, or of those whose name contains a word."""
    for module in pkgutil.iter_modules(coverage.__path__):
        if module.name in _SHARED or (wanted and not any(w in module.name for w in wanted)):
            continue
        print(f"\n== {module.name}")
        importlib.import_module(f"{coverage.__name__}.{module.name}").run()


if __name__ == "__main__":
    main(sys.argv[1:])
