"""Neutral labels in place of names of speakers, recordings, sessions, files, groups and systems, in
an order nobody can redo.

A redacted run computes under aliases that keep the alphabetical order of the names, so that every
number is that of a run that is not redacted. Labels replace the aliases where results leave: in
sections, tables and sentences. They are numbered by the order of keyed hashes. The key is random,
lives with the kept steps and never in the report: neither the list of names nor the seed of a
report leads back from a label to a name.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
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
_ENDINGS = SUFFIXES.union(*(layout.extensions for layout in FORMATS))
_PLAIN = {*"fmxyn", "female", "male", "woman", "man", "women", "men", "yes", "no", "true", "false"}
"""Values of a column that name nobody, as numbers do."""
_ALIAS = re.compile(r"#[a-z]\d* \d+#")
_PATH = re.compile(r"(?:^|[\s('\"=])(?:/|~/|\.\.?/|[A-Za-z]:\\)\S")
"""The beginning of a path that is written out."""
_SHORTEST = 3
"""Letters of a name that is looked for in sentences: shorter ones occur in any."""
WITHHELD = "withheld, as it can name files or people; a run without --redact tells it"
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
    """The label of each name of a speaker, of a recording, of a session, of a file and of a system,
    and of each value of a column, by column; columns of numbers and of genders stay as they are.

    ``paths`` are those that the config names, ``token`` is a digest of the key.
    """

    speakers: Mapping[str, str]
    utterances: Mapping[str, str]
    sessions: Mapping[str, str]
    files: Mapping[str, str]
    groups: Mapping[str, Mapping[str, str]]
    systems: Mapping[str, str] = field(default_factory=dict)
    paths: tuple[str, ...] = ()
    token: str = ""

    @classmethod
    def of(
        cls,
        value: object,
        sources: Iterable[Source],
        key: bytes,
        *,
        written: Iterable[str] | None = None,
        paths: Iterable[str] = (),
    ) -> Labels:
        """Number all names that occur anywhere in ``value``, in the order of their keyed hashes.

        Systems whose names are ``written`` in the config keep them; without, all do.
        """
        names: dict[str, set[str]] = {kind: set() for kind in _NAMES.values()}
        groups: dict[str, set[str]] = {}
        systems: set[str] = set()

        def seen(part: Embeddings | Scores) -> Embeddings | Scores:
            for column, kind in _NAMES.items():
                ids = getattr(part, column, None)
                names[kind].update(() if ids is None else ids.present)
            for column, ids in part.columns.items():
                groups.setdefault(_group(column), set()).update(ids.present)
            if isinstance(part, Scores):
                systems.update(part.systems)
            return part

        mapped(value, seen)
        speakers = _numbered(names["speakers"], "Speaker", key)
        # A model that bears a speaker's own name gets that speaker's label.
        utterances = _numbered(names["utterances"] - names["speakers"], "Recording", key)
        utterances |= {name: speakers[name] for name in names["utterances"] & names["speakers"]}
        given = enumerate(dict.fromkeys(source.name for source in sources), start=1)
        unwritten = set() if written is None else systems - set(written)
        return cls(
            speakers,
            utterances,
            _numbered(names["sessions"], "Session", key),
            {name: f"input {number:02d}{ending(name)}" for number, name in given},
            {
                column: _numbered(values - {""}, column, key)
                for column, values in groups.items()
                if not all(map(_names_nobody, values))
            },
            _numbered(unwritten, "System", key),
            tuple(paths),
            hashlib.sha256(key).hexdigest()[:16],
        )

    @cached_property
    def _aliases(self) -> Mapping[str, Mapping[str, str]]:
        """By kind of name, an alias of each name. Aliases of one kind have the order of the names;
        speakers and recordings are one kind, since models can bear either name.
        """
        people = _ranked("n", {*self.speakers, *self.utterances})
        columns = enumerate(sorted(self.groups))
        return {
            "speakers": people,
            "utterances": people,
            "sessions": _ranked("s", self.sessions),
            "systems": _ranked("y", self.systems),
            **{f"column {name}": _ranked(f"c{n}", self.groups[name]) for n, name in columns},
        }

    @cached_property
    def _labels(self) -> Mapping[str, str]:
        """The label of every alias."""
        every: dict[str, Mapping[str, str]] = {
            "utterances": self.utterances,
            "speakers": self.speakers,
            "sessions": self.sessions,
            "systems": self.systems,
            **{f"column {name}": labels for name, labels in self.groups.items()},
        }
        return {
            self._aliases[kind][name]: label
            for kind, labels in every.items()
            for name, label in labels.items()
        }

    @cached_property
    def _distinct(self) -> tuple[str, ...]:
        """Names and paths that a sentence cannot hold by accident."""
        columns = (name for values in self.groups.values() for name in values)
        names = {*self.speakers, *self.utterances, *self.sessions, *self.systems, *columns}
        told = {name for name in names if len(name) >= _SHORTEST and not _names_nobody(name)}
        return tuple(sorted(told | {path for path in self.paths if path not in (".", "/")}))

    def aliased(self, value: T) -> T:
        """The same value, each set of voices and each table of scores within it under aliases."""

        def renamed(part: Any) -> Any:
            changes: dict[str, Any] = {
                column: _relabel(ids, self._aliases[kind])
                for column, kind in _NAMES.items()
                if (ids := getattr(part, column, None)) is not None
            }
            changes["columns"] = {
                name: _relabel(ids, self._aliases[f"column {_group(name)}"])
                if _group(name) in self.groups
                else ids
                for name, ids in part.columns.items()
            }
            if isinstance(part, Scores):
                known = self._aliases["systems"]
                changes["systems"] = {known.get(n, n): made for n, made in part.systems.items()}
                changes["sources"] = tuple(map(self.source, part.sources))
            else:
                changes["source"] = part.source and self.source(part.source)
            return replace(part, **changes)

        return mapped(value, renamed)  # type: ignore[no-any-return]

    def alias(self, name: str) -> str:
        """The alias of a speaker or recording; the name itself where it is of none."""
        return self._aliases["utterances"].get(name, name)

    def text(self, text: str) -> str:
        """A sentence with labels in place of aliases."""
        if "#" not in text:
            return text
        return _ALIAS.sub(lambda found: self._labels.get(found[0], found[0]), text)

    def public(self, sentence: str) -> str:
        """A sentence with labels, or that it is withheld, where it names people or files."""
        if _PATH.search(sentence) or any(_holds(sentence, name) for name in self._distinct):
            return WITHHELD
        return self.text(sentence)

    def source(self, source: Source) -> Source:
        """What a report says of an input, without its name."""
        named = self.files.get(source.name, "input")
        return replace(source, name=named, detected="", encoder="")


def _holds(sentence: str, name: str) -> bool:
    """Whether a name stands in a sentence, not as a part of a longer word."""
    at = sentence.find(name)
    while at >= 0:
        before, after = sentence[at - 1 : at], sentence[at + len(name) : at + len(name) + 1]
        if not before.isalnum() and not after.isalnum():
            return True
        at = sentence.find(name, at + 1)
    return False


def _ranked(kind: str, names: Iterable[str]) -> dict[str, str]:
    """Aliases in the order of the names."""
    order = sorted(names)
    width = len(str(len(order)))
    return {name: f"#{kind} {n:0{width}d}#" for n, name in enumerate(order, start=1)}


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


def _relabel(ids: Ids, aliases: Mapping[str, str]) -> Ids:
    """The same identifiers under other names, with the same codes; names that do not occur get
    some that differ from all others.
    """
    unused = {name: f"#u {n}#" for n, name in enumerate(ids.names)} | {"": ""}
    names = [aliases.get(name, unused[name]) for name in ids.names]
    return Ids(ids.codes, pl.Series(names, dtype=pl.String))
