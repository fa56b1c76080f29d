"""What the functions of this room take for a table of scores: what ``evaluate`` takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from unmask.engine import of_arrays
from unmask.errors import InputError
from unmask.trials import Embeddings, Scores, is_frame, read_scores

Files = str | Path | Sequence[str | Path] | Mapping[str, str | Path]
Table = Scores | pl.DataFrame | pl.LazyFrame | Files


def is_table(data: Any) -> bool:
    """Whether data are scores, a data frame, or the paths of score files."""
    if isinstance(data, Embeddings):
        return False
    several = data.values() if isinstance(data, Mapping) else data
    files = list(several) if isinstance(data, Mapping | list | tuple) and data else [data]
    known = isinstance(data, Scores) or is_frame(data)
    return known or all(isinstance(file, str | Path) for file in files)


def as_table(data: Table, what: str) -> Scores:
    """The table, read where it is not yet one; ``what`` names who asks."""
    data = of_arrays(data)
    if isinstance(data, Scores):
        return data
    if not is_table(data):
        wanted = "a table of scores, a data frame, score files or arrays (target, nontarget)"
        raise InputError(what, wanted, type(data).__name__)
    return read_scores(data)
