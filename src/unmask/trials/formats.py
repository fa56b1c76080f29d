"""All file formats, in one table (``formats.csv``): their names and what they look like."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmask.errors import InputError


@dataclass(frozen=True)
class Format:
    """A file format, an entry of ``FORMATS``; readers, writers and ``unmask formats`` take it.

    ``kind`` says what the file holds (score, key, embedding), ``container`` is the kind of file,
    ``source`` who writes it, ``layout`` what is in it; ``extensions`` are its usual endings.
    ``roles`` gives the columns of a text layout without header, in order: ``enrol``, ``test``,
    ``score``, ``number`` (read past), ``label`` (any vocabulary), ``digit`` (labels 0 and 1) or
    ``word`` (labels in words).
    """

    name: str
    kind: str
    container: str
    source: str
    layout: str
    example: str
    roles: tuple[str, ...]
    extensions: tuple[str, ...]

    @property
    def description(self) -> str:
        """What is said of a file that was read as this."""
        return f"{self.name}: {self.layout if self.roles else self.source}"


with open(Path(__file__).with_name("formats.csv"), encoding="utf-8") as _file:
    _rows: list[dict[str, Any]] = [*csv.DictReader(_file)]
FORMATS = tuple(
    Format(**row | {name: tuple(row[name].split()) for name in ("roles", "extensions")})
    for row in _rows
)
LAYOUTS = tuple(entry for entry in FORMATS if entry.roles)


def format_named(name: str) -> Format:
    """Return the format of that name."""
    for entry in FORMATS:
        if entry.name == name:
            return entry
    known = ", ".join(entry.name for entry in FORMATS)
    raise InputError(f"expected a format among {known}, found {name!r}")
