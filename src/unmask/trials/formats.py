"""All formats that are read."""

from __future__ import annotations

from unmask.errors import InputError
from unmask.trials.embedding_formats import EMBEDDING_FORMATS
from unmask.trials.files import Input
from unmask.trials.hdf5 import BOSARIS, BOSARIS_KEY
from unmask.trials.layouts import LAYOUTS
from unmask.trials.npz import NPZ
from unmask.trials.parquet import PARQUET
from unmask.trials.registry import Format
from unmask.trials.tables import TABLES

FORMATS: tuple[Format, ...] = (
    *LAYOUTS,
    *TABLES,
    PARQUET,
    NPZ,
    BOSARIS,
    BOSARIS_KEY,
    *EMBEDDING_FORMATS,
)


def format_named(name: str) -> Format:
    """Return the format of that name."""
    for entry in FORMATS:
        if entry.name == name:
            return entry
    known = ", ".join(entry.name for entry in FORMATS)
    raise InputError(f"expected a format among {known}, found {name!r}")


def check_format(source: Input, name: str) -> None:
    """Refuse a format that does not exist or that the first bytes of the input rule out."""
    container = format_named(name).container
    if container != source.container:
        raise InputError(
            f"{source.name}: expected {name} ({container}), found a file of kind {source.container}"
        )
