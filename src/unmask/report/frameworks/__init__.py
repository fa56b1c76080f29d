"""Sections of the frameworks of an assessment, each by a module of the framework's name."""

from collections.abc import Callable
from importlib import import_module

from unmask.assessment import FRAMEWORKS, Results, Study
from unmask.report.section import Section

SECTIONS: dict[str, Callable[[Study, Results], Section]] = {
    key: import_module(f"{__name__}.{key}").section for key in FRAMEWORKS
}
