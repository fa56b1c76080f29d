"""Neutral labels in place of names of speakers, recordings and files, in an order nobody can redo.

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
from unmask.trials import Embeddings, Ids, Scores, Source

KEY = "redaction-key"
_BYTES = 32
T = TypeVar("T")


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
        raise InputError(
            f"{path}: expected a key of {_BYTES} bytes, found {len(key)}: delete it for new labels"
        )
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
    """The label of each name of a speaker, of a recording and of a file."""

    speakers: Mapping[str, str]
    utterances: Mapping[str, str]
    files: Mapping[str, str]

    @classmethod
    def of(cls, value: object, sources: Iterable[Source], key: bytes) -> Labels:
        """Number all names that occur anywhere in ``value``, in the order of their keyed hashes."""
        speakers: set[str] = set()
        utterances: set[str] = set()

        def seen(part: Embeddings | Scores) -> Embeddings | Scores:
            if isinstance(part, Embeddings):
                speakers.update(_names(part.speakers))
                utterances.update(_names(part.utterances))
            else:
                speakers.update(_names(part.enrol_speaker), _names(part.test_speaker))
                utterances.update(_names(part.enrol), _names(part.test))
            return part

        _mapped(value, seen)
        named = _numbered(speakers, "Speaker", key)
        # A model that bears a speaker's own name gets that speaker's label.
        rest = _numbered(utterances - speakers, "Recording", key)
        given = enumerate(dict.fromkeys(source.name for source in sources), start=1)
        files = {name: f"input {number:02d}{Path(name).suffix}" for number, name in given}
        return cls(named, {**rest, **{name: named[name] for name in utterances & speakers}}, files)

    def redacted(self, value: T) -> T:
        """The same value, each set of voices and each table of scores within it under labels."""

        def labelled(part: Embeddings | Scores) -> Embeddings | Scores:
            return self._embeddings(part) if isinstance(part, Embeddings) else self._scores(part)

        return _mapped(value, labelled)  # type: ignore[no-any-return]

    def source(self, source: Source) -> Source:
        """What a report says of an input, without its name."""
        return replace(source, name=self.files.get(source.name, "input"), detected="")

    def _embeddings(self, given: Embeddings) -> Embeddings:
        utterances = _relabel(given.utterances, self.utterances)
        speakers = _relabel(given.speakers, self.speakers)
        assert speakers is not None
        order = np.lexsort(
            (np.arange(len(given)) if utterances is None else utterances.codes, speakers.codes)
        )
        source = None if given.source is None else self.source(given.source)
        labelled = replace(given, speakers=speakers, utterances=utterances, source=source)
        return labelled.select(order)

    def _scores(self, given: Scores) -> Scores:
        labelled = replace(
            given,
            enrol=_relabel(given.enrol, self.utterances),
            test=_relabel(given.test, self.utterances),
            enrol_speaker=_relabel(given.enrol_speaker, self.speakers),
            test_speaker=_relabel(given.test_speaker, self.speakers),
            sources=tuple(map(self.source, given.sources)),
        )
        sides = [ids.codes for ids in (labelled.test, labelled.enrol) if ids is not None]
        return labelled.select(np.lexsort(sides)) if sides else labelled


def _mapped(value: Any, change: Any) -> Any:
    if isinstance(value, (Embeddings, Scores)):
        return change(value)
    if isinstance(value, Mapping):
        return {name: _mapped(part, change) for name, part in value.items()}
    if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
        return type(value)(_mapped(part, change) for part in value)
    if is_dataclass(value) and not isinstance(value, (type, Source)):
        parts = {f.name: _mapped(getattr(value, f.name), change) for f in fields(value)}
        return replace(value, **parts)
    return value


def _names(ids: Ids | None) -> set[str]:
    return set() if ids is None else set(ids.names.gather(ids.used))


def _numbered(names: set[str], word: str, key: bytes) -> dict[str, str]:
    width = max(2, len(str(len(names))))
    order = sorted(names, key=lambda name: hmac.digest(key, f"{word}\0{name}".encode(), "sha256"))
    return {name: f"{word} {n:0{width}d}" for n, name in enumerate(order, start=1)}


def _relabel(ids: Ids | None, labels: Mapping[str, str]) -> Ids | None:
    """The same identifiers under labels; codes are ranks of labels, not of names."""
    if ids is None:
        return None
    names = pl.Series([labels.get(name, "") for name in ids.names], dtype=pl.String)
    return Ids(ids.codes, names).alphabetical()
