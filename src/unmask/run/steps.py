"""Progress for whoever listens: a callback around a computation, not passed through it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Progress = Callable[[int, int], None]
_LISTENER: ContextVar[Progress | None] = ContextVar("who listens to progress", default=None)


@contextmanager
def progress(callback: Progress | None) -> Iterator[None]:
    """Meanwhile a callback hears of every step of the work.

    Parameters
    ----------
    callback : callable or None
        Called as ``callback(done, total)``; None keeps what happens within quiet.

    Yields
    ------
    None
        The work is done within the ``with`` block.

    Examples
    --------
    >>> import numpy as np
    >>> import unmask as um
    >>> voices = um.Embeddings(np.eye(4), ["ann", "ann", "bob", "bob"])
    >>> with um.progress(lambda done, total: print(f"{done} of {total}")):
    ...     result = um.engine.cross_pairing(voices)
    1 of 1
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
