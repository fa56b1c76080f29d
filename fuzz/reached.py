"""``python -m fuzz.reached OUT [TEST …]``: which tests reach which lines, and how long they
take, as JSON for ``fuzz.mutants --reached``.

What a fixture of several tests reaches, and how long it takes, stands under their file; what is
started in other processes is not seen. Needs ``coverage``; Ctrl-C ends early and keeps all so far.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import coverage

ROOT = Path(__file__).parent.parent


class Reached:
    """Tells the measurement which test runs."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self.measured = measured
        self.current = ""
        self.seconds: dict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.current = item.nodeid
        self.measured.switch_context(item.nodeid)
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        if fixturedef.scope == "function":
            return (yield)
        began, file = time.monotonic(), self.current.partition("::")[0]
        self.measured.switch_context(file)
        try:
            return (yield)
        finally:
            self.seconds[file] += time.monotonic() - began
            self.measured.switch_context(self.current)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration if report.passed else float("inf")


def main() -> None:
    out, tests = Path(sys.argv[1]), sys.argv[2:]
    measured = coverage.Coverage(data_file=None, source=[str(ROOT / "src")], config_file=False)
    seen = Reached(measured)
    with measured.collect():
        pytest.main(["-p", "no:cacheprovider", "-m", "not slow", *tests], plugins=[seen])
    data = measured.get_data()
    passed = {name: one for name, one in seen.seconds.items() if one < float("inf")}
    order = {name: n for n, name in enumerate(passed)}
    lines: dict[str, dict[int, list[int | str]]] = {}
    for name in data.measured_files():
        found = data.contexts_by_lineno(name).items()
        place = Path(name).relative_to(ROOT).as_posix()
        lines[place] = {n: [order.get(c, c) for c in where if c] for n, where in found}
    out.write_text(json.dumps({"seconds": passed, "lines": lines}), encoding="utf-8")


if __name__ == "__main__":
    main()
