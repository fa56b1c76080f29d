"""Parts of other packages and of the working directory, loaded only when named."""

import os
import sys
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any


def is_plugin(group: str, name: str) -> bool:
    """Whether an installed package offers ``name`` in the entry-point group ``unmask.GROUP``."""
    return bool(entry_points(group=f"unmask.{group}", name=name))


def plugin(group: str, name: str) -> Any:
    """What it offers, or None."""
    found = entry_points(group=f"unmask.{group}", name=name)
    return next((entry.load() for entry in found), None)


def imported(module: str) -> ModuleType:
    """A module; one in the working directory is found where there is no other of its name."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    return import_module(module)
