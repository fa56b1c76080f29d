"""Neutral labels in place of names of speakers, recordings, sessions, files and groups, in an order
nobody can redo.

Names are numbered by the order of their keyed hashes. The key is random, lives with the kept steps
and never in the report: neither the list of names nor the seed of a report leads back from a label
to a name. Rows are put in the order of labels, so that their order says nothing of names either.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from unmask.errors import InputError
from unmask.speech import SUFFIXES
from unmask.trials import FORMATS, Embeddings, Ids, Scores, Source

KEY = "redaction-key"
_BYTES = 32
_NAMES = {
    "speakers": "speakers", "enrol_speaker": "speakers", "test_speaker": "speakers",
    "utterances": "utterances", "enrol": "utterances", "test": "utterances",
    "sessions": "sessions",
}  # fmt: skip
"""What the columns of voices and of scores name."""
_ORDER = ("utterances", "speakers", "test", "enrol")
"""Columns by which rows are put in order, the last first."""
_ENDINGS = SUFFIXES.union(*(layout.extensions for layout in FORMATS))
_PLAIN = {*"fmxyn", "female", "male", "woman", "man", "women", "men", "yes", "no", "true", "false"}
"""Values of a column that name nobody, as numbers do."""
T = TypeVar("T")


def ending(name: str | Path) -> str:
    """The ending of a file's name where it is that of a format; others may be part of a name."""
    suffix = Path(name).suffix.lower()
    return suffix if suffix in _ENDINGS else ""


def redaction_key(folder: Path) -> bytes:
    """The random key of an assessment, made once and readable by its owner alone."""
    path = folder / KEY
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _write_key(path)
        key = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be kept: {error.strerror or error}") from None
    if len(key) != _BYTES:
        raise InputError(path, f"a key of {_BYTES} bytes", f"{len(key)}: delete it for new labels")
    return key


def _write_key(path: Path) -> None:
    """Write under a name of its own, then link: of two runs the first one's key stays."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(secrets.token_bytes(_BYTES))
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    finally:
        temporary.unlink()


@dataclass(frozen=True)
class Labels:
    """The label of each name of a speaker, of a recording, of a session and of a file, and of each
    value of a column, by column; columns of numbers and of genders stay as they are.
    """

    speakers: Mapping[str, str]
    utterances: Mapping[str, str]
    sessions: Mapping[str, str]
    files: Mapping[str, str]
    groups: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, value: object, sources: Iterable[Source], key: bytes) -> Labels:
        """Number all names that occur anywhere in ``value``, in the order of their keyed hashes."""
        names: dict[str, set[str]] = {kind: set() for kind in _NAMES.values()}
        groups: dict[str, set[str]] = {}

        def seen(part: Embeddings | Scores) -> Embeddings | Scores:
            for column, kind in _NAMES.items():
                ids = getattr(part, column, None)
                names[kind].update(() if ids is None else ids.present)
            for column, ids in part.columns.items():
                groups.setdefault(_group(column), set()).update(ids.present)
            return part

        mapped(value, seen)
        speakers = _numbered(names["speakers"], "Speaker", key)
        # A model that bears a speaker's own name gets that speaker's label.
        utterances = _numbered(names["utterances"] - names["speakers"], "Recording", key)
        utterances |= {name: speakers[name] for name in names["utterances"] & names["speakers"]}
        given = enumerate(dict.fromkeys(source.name for source in sources), start=1)
        return cls(
            speakers,
            utterances,
            _numbered(names["sessions"], "Session", key),
            {name: f"input {number:02d}{ending(name)}" for number, name in given},
            {
                column: _numbered(values, column, key)
                for column, values in groups.items()
                if not all(map(_names_nobody, values))
            },
        )

    def redacted(self, value: T) -> T:
        """The same value, each set of voices and each table of scores within it under labels, in
        the order of labels.
        """

        def labelled(part: Any) -> Any:
            columns: dict[str, Any] = {
                column: _relabel(ids, getattr(self, kind))
                for column, kind in _NAMES.items()
                if (ids := getattr(part, column, None)) is not None
            }
            if isinstance(part, Scores):
                sources: Any = {"sources": tuple(map(self.source, part.sources))}
            else:
                sources = {"source": part.source and self.source(part.source)}
            columns["columns"] = {
                name: _relabel(ids, self.groups[_group(name)])
                if _group(name) in self.groups
                else ids
                for name, ids in part.columns.items()
            }
            order = [columns[name].codes for name in _ORDER if name in columns]
            made = replace(part, **columns, **sources)
            return made.select(np.lexsort(order)) if order else made

        return mapped(value, labelled)  # type: ignore[no-any-return]

    def source(self, source: Source) -> Source:
        """What a report says of an input, without its name."""
        named = self.files.get(source.name, "input")
        return replace(source, name=named, detected="", encoder="")


def mapped(value: Any, change: Any) -> Any:
    """The same value, each set of voices and each table of scores within it changed."""
    if isinstance(value, (Embeddings, Scores)):
        return change(value)
    if isinstance(value, Mapping):
        return {name: mapped(part, change) for name, part in value.items()}
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(mapped(part, change) for part in value)
    if is_dataclass(value) and not isinstance(value, (type, Source)):
        parts = {f.name: mapped(getattr(value, f.name), change) for f in fields(value)}
        return replace(value, **parts)
    return value


def _group(column: str) -> str:
    """What a column of voices and those of both sides of a trial have in common."""
    return column.removeprefix("enrol_").removeprefix("test_")


def _names_nobody(value: str) -> bool:
    try:
        return value.lower() in _PLAIN or not np.isnan(float(value or 0))
    except ValueError:
        return False


def _numbered(names: set[str], word: str, key: bytes) -> dict[str, str]:
    width = max(2, len(str(len(names))))
    order = sorted(names, key=lambda name: hmac.digest(key, f"{word}\0{name}".encode(), "sha256"))
    return {name: f"{word} {n:0{width}d}" for n, name in enumerate(order, start=1)}


def _relabel(ids: Ids, labels: Mapping[str, str]) -> Ids:
    """The same identifiers under labels; codes are ranks of labels, not of names."""
    names = pl.Series([labels.get(name, "") for name in ids.names], dtype=pl.String)
    return Ids(ids.codes, names).alphabetical()
