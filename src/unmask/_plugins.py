"""Parts of other packages and of the working directory, loaded only when named."""

import os
import sys
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType


def plugin(group: str, name: str) -> EntryPoint | None:
    """What an installed package offers by ``name`` in the entry-point group ``unmask.GROUP``."""
    return next(iter(entry_points(group=f"unmask.{group}", name=name)), None)


def imported(module: str) -> ModuleType:
    """A module; one in the working directory is found where there is no other of its name."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    return import_module(module)
