"""What the core does without, and the extra that brings it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, NoReturn

from unmask.errors import InputError

REPORT = ("pydantic", "altair", "vl_convert", "jinja2", "tomli_w")
"""Packages that configs, charts and reports are made with."""


class MissingExtra(InputError):
    """A package is not installed; the line names the extra that brings it."""


@contextmanager
def report_extra() -> Iterator[None]:
    """A package of the extra ``report`` that is missing within is told in one line."""
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name not in REPORT:
            raise
        raise MissingExtra(
            f"configs, charts and reports need {name}, which is not installed:"
            " pip install 'unmask[report]'"
        ) from None


def need_report_extra() -> None:
    """Refuse before anything is computed, where the extra is missing."""
    with report_extra():
        for name in REPORT:
            if find_spec(name) is None:
                raise ModuleNotFoundError(name=name)


def told_when_called(error: MissingExtra) -> Callable[..., Any]:
    """A stand-in for a function of the extra: the package loads whole, its call is refused."""

    def missing(*_: Any, **__: Any) -> NoReturn:
        raise error

    return missing
