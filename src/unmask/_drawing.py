"""Who draws and writes results: the package says so, and no room has to know."""

from collections.abc import Callable
from typing import Any

DRAWERS: list[Callable[..., list[Any]]] = []
WRITERS: list[Callable[[Any], Any]] = []
