"""Counting who scores above the true speaker on processes or a dask cluster, rows apart."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from unmask.arrays import FloatArray, IntArray
from unmask.errors import InputError
from unmask.privacy.legal_counts import Above, Progress, count_above
from unmask.scoring.plan import Task, load
from unmask.scoring.where import check_place, place

ROWS = 4096
_SIDES = ("test_side", "enrol_side")


def count_above_on(
    test: FloatArray,
    enrol: FloatArray,
    true: IntArray,
    *,
    test_side: IntArray | None = None,
    enrol_side: IntArray | None = None,
    on: str = "local",
    workers: int | None = None,
    state: str | Path | None = None,
    progress: Progress | None = None,
) -> Above:
    """:func:`count_above`, on a place.

    Counts of test rows do not depend on each other, so a task is a range of them over arrays on
    disk; they are those of double precision, so all places give the same. ``state`` is a folder
    for the arrays, which the workers must see.
    """
    check_place(on)
    if on == "local" and workers is None:
        return count_above(
            test, enrol, true, test_side=test_side, enrol_side=enrol_side, progress=progress
        )
    if on == "cuda":
        raise InputError("on: ranks and Linkability are counted on local, processes or dask")
    with tempfile.TemporaryDirectory(prefix="unmask-", dir=state) as name:
        for part, array in (("test", test), ("enrol", enrol), ("true", true)):
            np.save(Path(name) / f"{part}.npy", array)
        for part, codes in zip(_SIDES, (test_side, enrol_side), strict=True):
            if codes is not None:
                np.save(Path(name) / f"{part}.npy", codes)
        tasks = [
            Task(name, (start, min(start + ROWS, len(true))), (0, len(enrol)))
            for start in range(0, len(true), ROWS)
        ]
        parts: dict[int, Above] = {}
        with place(on, workers=workers) as somewhere:
            somewhere.check_folder(Path(name))
            for number, part_found in somewhere.each(_count, tasks):
                parts[number] = part_found
                if progress is not None:
                    progress(len(parts), len(tasks))
    ordered = [parts[number] for number in range(len(tasks))]
    return Above(
        np.concatenate([part.at_or_above for part in ordered]),
        np.concatenate([part.above for part in ordered]),
        len(enrol) - 1,
    )


def _count(task: Task) -> Above:
    """Counts of a range of test rows."""
    rows = slice(*task.rows)
    test_side = enrol_side = None
    if (Path(task.folder) / "test_side.npy").exists():
        test_side, enrol_side = (load(task.folder, name) for name in _SIDES)
        test_side = test_side[rows]
    test, enrol, true = (load(task.folder, name) for name in ("test", "enrol", "true"))
    return count_above(test[rows], enrol, true[rows], test_side=test_side, enrol_side=enrol_side)
