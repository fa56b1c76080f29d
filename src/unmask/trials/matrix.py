"""Scores and keys as matrices, models by segments, with names for rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from unmask.base import Floats, Index, Labels, Mask
from unmask.errors import InputError
from unmask.trials.ids import text_ids
from unmask.trials.labels import NONTARGET, TARGET
from unmask.trials.parsed import Parsed
from unmask.trials.registry import Format
from unmask.trials.text import Numbers


def parse_matrix(
    name: str,
    stem: str,
    format: Format,
    *,
    rows: Any,
    columns: Any,
    scores: Any = None,
    mask: Any = None,
    label: Any = None,
) -> Parsed:
    """Read the cells of a matrix as trials.

    ``mask`` marks the cells that are trials; ``label`` holds 1 for target, -1 for nontarget and 0
    for no trial. Without either, every cell is one.
    """
    enrol, test = text_ids(rows, "enrol", name), text_ids(columns, "test", name)
    shape = (len(enrol), len(test))
    tables = {"scores": scores, "mask": mask, "labels": label}
    fitted = {what: _fit(table, shape, name, what) for what, table in tables.items()}
    chosen = np.ones(shape, bool)
    if fitted["mask"] is not None:
        chosen &= fitted["mask"] != 0
    if fitted["labels"] is not None:
        unknown = ~np.isin(fitted["labels"], (-1, 0, 1))
        if unknown.any():
            raise InputError(
                f"{name}: expected labels 1, -1 or 0, found {fitted['labels'][unknown][0]!r}"
            )
        chosen &= fitted["labels"] != 0
    i, j = np.nonzero(chosen)
    if not len(i):
        raise InputError(f"{name}: the file holds no trials")

    def where(row: int) -> str:
        return f"{name}, cell ({int(i[row]) + 1}, {int(j[row]) + 1})"

    return Parsed(
        name,
        format,
        where,
        enrol=enrol.take(i),
        test=test.take(j),
        label=_labels(fitted["labels"], i, j),
        systems=_system(fitted["scores"], i, j, stem, where),
    )


def _fit(table: Any, shape: tuple[int, int], name: str, what: str) -> Any:
    if table is None:
        return None
    array = np.asarray(table)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name}: expected {what} as numbers, found {array.dtype}")
    if array.shape == shape:
        return array
    if array.shape == shape[::-1]:
        return array.T
    raise InputError(
        f"{name}: expected {what} of {shape[0]} x {shape[1]}, as many as names, found "
        f"{' x '.join(map(str, array.shape))}"
    )


def _labels(table: Any, i: Index, j: Index) -> Labels | None:
    if table is None:
        return None
    return np.where(table[i, j] == 1, TARGET, NONTARGET).astype(np.int8)


def _system(table: Any, i: Index, j: Index, stem: str, where: Any) -> dict[str, Numbers]:
    if table is None:
        return {}
    values: Floats = table[i, j].astype(np.float64)
    nan: Mask = np.isnan(values)
    if nan.any():
        raise InputError(
            f"{where(int(np.flatnonzero(nan)[0]))}: expected a score, found NaN "
            f"({int(nan.sum())} in all)"
        )
    return {stem: Numbers(values, None)}
