"""Parquet tables."""

from __future__ import annotations

import io
from collections.abc import Sequence

import polars as pl

from unmask.errors import InputError
from unmask.trials.files import Input
from unmask.trials.frames import parse_frame
from unmask.trials.parsed import Parsed
from unmask.trials.registry import Format

PARQUET = Format(
    "parquet",
    "score",
    "long parquet table",
    "columns as in a long table: enrol, test, label, speakers, metadata, one per system",
    "pl.DataFrame(...).write_parquet(path)",
    container="parquet",
    extensions=(".parquet",),
)


def load_parquet(source: Input) -> pl.DataFrame:
    """Read a parquet file as a data frame."""
    try:
        return pl.read_parquet(io.BytesIO(source.read_all()))
    except InputError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        raise InputError(f"{source.name}: the parquet file cannot be read ({error})") from error


def parse_parquet(source: Input, *, as_key: bool, systems: Sequence[str] | None) -> Parsed:
    """Read scores or a key."""
    return parse_frame(
        source.name,
        source.stem,
        load_parquet(source),
        PARQUET,
        as_key=as_key,
        systems=systems,
    )
