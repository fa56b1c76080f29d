"""Tables that carry types (parquet, npz of columns): same roles as text tables with a header."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from unmask.errors import InputError
from unmask.trials.header import Header, interpret
from unmask.trials.ids import Ids
from unmask.trials.parsed import Parsed
from unmask.trials.registry import Format
from unmask.trials.tables import assemble
from unmask.trials.text import Numbers

Where = Callable[[int], str]


def parse_frame(
    name: str,
    stem: str,
    frame: pl.DataFrame,
    format: Format,
    *,
    as_key: bool,
    systems: Sequence[str] | None,
) -> Parsed:
    """Give the columns of a data frame their roles."""
    if not frame.height:
        raise InputError(f"{name}: the file holds no trials")
    header = header_of_schema(name, frame.schema, as_key=as_key, systems=systems)

    def where(row: int) -> str:
        return f"{name}, row {row + 1}"

    needed = set(header.roles.values())
    ids = {
        column: _identifiers(frame[column], where, required=column in needed)
        for column in dict.fromkeys([*header.roles.values(), *header.columns])
    }
    values = {} if as_key else {c: _numbers(frame[c], where) for c in header.systems}
    return assemble(
        name, format, where, header, ids, values, stem=None if systems is not None else stem
    )


def header_of_schema(
    name: str, schema: pl.Schema, *, as_key: bool, systems: Sequence[str] | None
) -> Header:
    """Roles of the columns of a table that carries types."""
    plain = [
        column
        for column, kind in schema.items()
        if not kind.is_nested() and kind not in (pl.Binary, pl.Object)
    ]
    numeric = [column for column in plain if schema[column].is_numeric()]
    header = interpret(plain, numeric, where=name, systems=systems)
    if not header.roles.keys() & {"enrol", "test", "label"} or not (header.systems or as_key):
        raise InputError(
            f"{name}: expected columns such as enrol, test, label and one per system, found "
            f"{', '.join(schema) or 'none'}"
        )
    return header


def is_whole(column: pl.Series) -> bool:
    """Whether a column of real numbers holds whole ones only."""
    return bool((column.is_null() | (column == column.round())).all())


def as_text(column: pl.Series, *, whole: bool) -> pl.Series:
    """Identifiers as text; ``whole`` real numbers are written without decimals."""
    return (column.cast(pl.Int64, strict=False) if whole else column).cast(pl.String)


def _identifiers(column: pl.Series, where: Where, *, required: bool) -> Ids:
    text = as_text(column, whole=column.dtype.is_float() and is_whole(column))
    if required and text.null_count():
        row = int(np.flatnonzero(text.is_null().to_numpy())[0])
        raise InputError(
            f"{where(row)}: expected a value in column {column.name!r}, found none "
            f"({text.null_count()} in all)"
        )
    return Ids.from_strings(text.fill_null(""))


def _numbers(column: pl.Series, where: Where) -> Numbers:
    numbers = column.cast(pl.Float64, strict=False)
    unreadable = numbers.is_null() & column.is_not_null()
    if unreadable.any():
        row = int(np.flatnonzero(unreadable.to_numpy())[0])
        raise InputError(
            f"{where(row)}: expected a number in column {column.name!r}, found {column[row]!r}"
        )
    absent = numbers.is_null().to_numpy()
    values = numbers.fill_null(0.0).to_numpy()
    nan = np.isnan(values)
    if nan.any():
        raise InputError(
            f"{where(int(np.flatnonzero(nan)[0]))}: expected a number in column "
            f"{column.name!r}, found NaN ({int(nan.sum())} in all)"
        )
    return Numbers(values, absent if absent.any() else None)
