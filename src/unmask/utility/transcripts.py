"""What was said: transcripts in the layouts of Kaldi, LibriSpeech and of tables."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from unmask.errors import InputError
from unmask.run import text_lines
from unmask.utility.words import normalised

UTTERANCE = ("utterance", "utt_id", "utt", "id", "file", "filename", "path")
TEXT = ("text", "transcript", "transcription", "sentence", "words")
LABEL = ("label", "emotion", "class", "prediction")
_LIBRISPEECH = ".trans.txt"


def read_transcripts(source: str | Path, *, empty: bool = False) -> dict[str, str]:
    """The words of every utterance.

    ``source`` is a Kaldi ``text`` file (utterance, then words), a table (``.csv``, ``.tsv``) with
    the columns ``utterance`` and ``text`` (or their usual other names), a LibriSpeech
    ``.trans.txt``, or a folder of these. A path in a table stands for its name without folders and
    suffix. A transcript without words is an error unless ``empty``, as hypotheses may be.
    """
    place = Path(source)
    if place.is_dir():
        files = sorted(place.rglob(f"*{_LIBRISPEECH}")) or [
            path for path in (place / "text",) if path.is_file()
        ]
        if not files:
            raise InputError(f"{place}: expected a Kaldi text or files {_LIBRISPEECH}, found none")
        rows = [(path, *row) for path in files for row in _lines(path)]
    elif place.suffix.lower() in (".csv", ".tsv"):
        rows = [(place, *row) for row in _table(place, TEXT)]
    else:
        rows = [(place, *row) for row in _lines(place)]
    found: dict[str, str] = {}
    for path, number, name, text in rows:
        if name in found:
            raise InputError(f"{path}, line {number}: a second transcript of {name}")
        if not empty and not normalised(text):
            raise InputError(f"{path}, line {number}: expected words of {name}, found none")
        found[name] = text
    if not found:
        raise InputError(f"{place}: expected transcripts, found none")
    return found


def read_labels(source: str | Path) -> dict[str, str]:
    """A label of every utterance: a table with the columns ``utterance`` and ``label``, or lines of
    an utterance and its label.
    """
    place = Path(source)
    table = place.suffix.lower() in (".csv", ".tsv")
    found: dict[str, str] = {}
    for number, name, label in _table(place, LABEL) if table else _lines(place):
        if name in found:
            raise InputError(f"{place}, line {number}: a second label of {name}")
        if not label.strip():
            raise InputError(f"{place}, line {number}: expected a label of {name}, found none")
        found[name] = label.strip()
    if not found:
        raise InputError(f"{place}: expected labels, found none")
    return found


def _lines(path: Path) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(text_lines(path), 1):
        name, *text = line.split(maxsplit=1) or [""]
        if name:
            yield number, name, "".join(text).strip()


def sheet(
    path: str | os.PathLike[str], lines: Iterable[str], mark: str = ","
) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of a table by the names of its columns, and their lines; a row is one line.

    ``lines`` are those of the file ``path``, the first of them its header; ``mark`` is between
    columns. A quote that stays open, or a row of more or fewer columns, is an error.
    """
    head: list[str] = []
    for number, line in enumerate(lines, 1):
        try:
            row = next(csv.reader([line], delimiter=mark, strict=True), [])
        except csv.Error as error:
            raise InputError(f"{path}, line {number}: expected quotes in pairs: {error}") from None
        if not head:
            head = [name.strip().lower() for name in row]
            if len(set(head)) < len(head):
                raise InputError(f"{path}, line {number}: expected columns of different names")
        elif line.strip() and len(row) != len(head):
            raise InputError(
                f"{path}, line {number}: expected {len(head)} columns, found {len(row)}"
            )
        if line.strip() or number == 1:
            yield number, dict(zip(head, row, strict=True))


def _table(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, str, str]]:
    rows = sheet(path, text_lines(path), "\t" if path.suffix.lower() == ".tsv" else ",")
    head = next(rows)[1]
    name = next((one for one in UTTERANCE if one in head), None)
    text = next((one for one in columns if one in head), None)
    if name is None or text is None:
        raise InputError(
            f"{path}, line 1: expected columns {UTTERANCE[0]} and {columns[0]}, found"
            f" {', '.join(head) or 'none'}"
        )
    for number, row in rows:
        yield number, _named(row[name].strip()), row[text]


def _named(name: str) -> str:
    """A path as the name of its recording; other names as they are."""
    whole = Path(name)
    audio = whole.suffix.lower() in (".wav", ".flac", ".mp3", ".ogg", ".opus")
    return whole.stem if audio else name
