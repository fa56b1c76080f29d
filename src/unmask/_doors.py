"""Doors of rooms: a name is loaded with its module when it is first used."""

import ast
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from unmask._extras import report_extra


def open_door(package: str, *, removed: Mapping[str, str] = MappingProxyType({})) -> None:
    """Let a package give the names that its ``__init__.py`` imports for type checkers alone, and
    its modules: each is loaded at first use.

    A name that was ``removed`` is refused with one line that says what to use in its place.
    """
    door: Any = sys.modules[package]
    tree = ast.parse(Path(door.__file__).read_text(encoding="utf-8"))
    homes = {
        alias.asname or alias.name: (str(node.module), alias.name)
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def load(name: str) -> Any:
        if name in homes:
            home, own = homes[name]
            with report_extra():
                value = getattr(import_module(home), own)
        elif not name.startswith("_") and find_spec(f"{package}.{name}") is not None:
            value = import_module(f"{package}.{name}")
        elif name in removed:
            raise AttributeError(f"{package}.{name} was removed: {removed[name]}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(door, name, value)
        return value

    door.__all__ = sorted(homes)
    door.__getattr__ = load
    door.__dir__ = lambda: sorted({*vars(door), *homes})
