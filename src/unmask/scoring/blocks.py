"""Scores of all pairs, in blocks of rows that fit into memory.

A matrix product rounds differently for different block shapes, so a block is put together from
tiles on a fixed grid: whatever the memory given, each score comes from the same product and has
the same bits. (A different number of BLAS threads, another processor or another partner set may
still change the last bit: a decision about equality belongs within one block.)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from unmask.errors import InputError
from unmask.scoring.backend import Backend, Rows
from unmask.scoring.cosine import Cosine

TILE_ROWS = 256
TILE_COLUMNS = 4096
MEMORY = 1 << 26


def resolve(backend: Backend | str) -> Backend:
    """A back-end given as an object, or ``"cosine"``."""
    if isinstance(backend, str):
        if backend != "cosine":
            raise InputError(f"back-end: expected cosine or a trained back-end, found {backend}")
        return Cosine()
    return backend


def row_ranges(
    rows: int, columns: int, *, memory: int = MEMORY, itemsize: int = 8
) -> list[tuple[int, int]]:
    """Ranges of rows, each a whole number of tiles, whose scores take at most ``memory`` bytes
    (one tile at least).
    """
    tiles = max(1, memory // max(1, TILE_ROWS * columns * itemsize))
    step = TILE_ROWS * tiles
    return [(start, min(start + step, rows)) for start in range(0, rows, step)]


def score_rows(backend: Backend, enrol: Rows, test: Rows, start: int, stop: int) -> Rows:
    """Scores of the prepared enrolment rows start … stop − 1 against all prepared test rows.

    ``start`` must lie on the grid of tiles, as :func:`row_ranges` gives it.
    """
    if start % TILE_ROWS:
        raise InputError(f"blocks begin at a multiple of {TILE_ROWS} rows, found {start}")
    scores = np.empty((stop - start, test.shape[0]), dtype=np.result_type(enrol, test))
    for top in range(start, stop, TILE_ROWS):
        bottom = min(top + TILE_ROWS, stop)
        for left in range(0, test.shape[0], TILE_COLUMNS):
            right = min(left + TILE_COLUMNS, test.shape[0])
            scores[top - start : bottom - start, left:right] = backend.score_block(
                enrol[top:bottom], test[left:right]
            )
    return scores


def score_blocks(
    backend: Backend, enrol: Rows, test: Rows, *, memory: int = MEMORY
) -> Iterator[tuple[int, int, Rows]]:
    """(start, stop, scores) for successive ranges of prepared enrolment rows."""
    itemsize = np.result_type(enrol, test).itemsize
    for start, stop in row_ranges(enrol.shape[0], test.shape[0], memory=memory, itemsize=itemsize):
        yield start, stop, score_rows(backend, enrol, test, start, stop)
