"""Numbers that already exist into charts; nothing is computed here.

A name is loaded with its module at first use, so that nobody who draws nothing waits for altair;
``__init__.pyi`` says which module has it, here and to type checkers.
"""

import re
from importlib import import_module, resources
from typing import Any

from unmask._extras import report_extra

_STUB = resources.files("unmask.figures").joinpath("__init__.pyi").read_text(encoding="utf-8")
_MODULE_OF = {
    name: module
    for module, names in re.findall(r"^from (\S+) import (\([^)]*\)|.*)", _STUB, re.MULTILINE)
    for name in re.findall(r"\w+(?= as )", names)
}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'unmask.figures' has no attribute {name!r}")
    with report_extra():
        value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    return value
