"""Benchmarks, studies and hunts for faults go on loading when the package moves under them."""

from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for folder in ("benchmarks", "studies", "fuzz")
    for path in (ROOT / folder).rglob("*.py")
    if not path.name.startswith("__")
)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_loads(module):
    import_module(module)
