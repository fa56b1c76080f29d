"""What was said: transcripts in the layouts of Kaldi, LibriSpeech and of tables."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from unmask.errors import InputError
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


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: expected text in UTF-8: {error}") from None


def _lines(path: Path) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(_content(path).splitlines(), 1):
        name, _, text = line.strip().partition(" ")
        if "\t" in name:
            name, _, rest = name.partition("\t")
            text = f"{rest} {text}"
        if name:
            yield number, name, text.strip()


def _table(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, str, str]]:
    lines = _content(path).splitlines()
    reader = csv.DictReader(lines, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
    heads = {name.strip().lower(): name for name in reader.fieldnames or () if name}
    name = next((heads[one] for one in UTTERANCE if one in heads), None)
    text = next((heads[one] for one in columns if one in heads), None)
    if name is None or text is None:
        raise InputError(
            f"{path}, line 1: expected columns {UTTERANCE[0]} and {columns[0]}, found"
            f" {', '.join(heads) or 'none'}"
        )
    for row in reader:
        if row[name] is None or row[text] is None:
            raise InputError(f"{path}, line {reader.line_num}: expected {len(heads)} columns")
        yield reader.line_num, _named(row[name].strip()), row[text]


def _named(name: str) -> str:
    """A path as the name of its recording; other names as they are."""
    whole = Path(name)
    audio = whole.suffix.lower() in (".wav", ".flac", ".mp3", ".ogg", ".opus")
    return whole.stem if audio else name
