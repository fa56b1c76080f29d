"""Progress for whoever listens: a callback around a computation, not passed through it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Progress = Callable[[int, int], None]
_LISTENER: ContextVar[Progress | None] = ContextVar("who listens to progress", default=None)


@contextmanager
def progress(callback: Progress | None) -> Iterator[None]:
    """Meanwhile ``callback(done, total)`` is called whenever a step of the work is done.

    ``None`` keeps what happens within quiet.
    """
    token = _LISTENER.set(callback)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def advance(done: int, total: int) -> None:
    """Say that ``done`` of ``total`` equal steps are done, of the work or of the current part."""
    listener = _LISTENER.get()
    if listener is not None:
        listener(done, total)


@contextmanager
def part(index: int, parts: int) -> Iterator[None]:
    """What is reported within is part number ``index``, from 0, of ``parts`` equal ones."""
    listener = _LISTENER.get()
    if listener is None or parts == 1:
        yield
        return
    with progress(lambda done, total: listener(index * total + done, parts * total)):
        yield
