"""What was said, and what a recogniser gets wrong of it: transcripts, WER and CER.

WER = (S + D + I)/N: substitutions, deletions and insertions of the cheapest alignment of the
hypothesis with the reference, over the words of the reference (Levenshtein 1966). It may exceed 1.
Silence, all of whose words are deleted, has a WER of 1. CER is the same for characters, blanks
between words among them. jiwer finds the alignment.
"""

from __future__ import annotations

import csv
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from unmask.errors import InputError
from unmask.run import text_lines
from unmask.speech import needed

UTTERANCE = ("utterance", "utt_id", "utt", "id", "file", "filename", "path")
TEXT = ("text", "transcript", "transcription", "sentence", "words")
LABEL = ("label", "emotion", "class", "prediction")
_AUDIO = (".wav", ".flac", ".mp3", ".ogg", ".opus")
_LIBRISPEECH = ".trans.txt"
_APOSTROPHES = str.maketrans({"’": "'", "ʼ": "'", "`": "'"})
_LOOSE = re.compile(r"(?<!\w)'|'(?!\w)")


class Errors(NamedTuple):
    """Errors in words and characters, and how many of either the reference has."""

    word_errors: int
    words: int
    character_errors: int
    characters: int


def normalised(text: str) -> str:
    """The same words without case and punctuation: NFKC, folded, apostrophes within words kept.

    Combining marks stay with their letters, so that scripts other than Latin keep their words.
    """
    folded = unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).casefold()
    words = "".join(c if c == "'" or unicodedata.category(c)[0] in "LMN" else " " for c in folded)
    return " ".join(_LOOSE.sub(" ", words).split())


def errors(reference: str, hypothesis: str) -> Errors:
    """Errors of a ``hypothesis`` against a ``reference``, both normalised first.

    An empty reference has no words, and every word of the hypothesis is an insertion.
    """
    right, heard = normalised(reference), normalised(hypothesis)
    if not right:
        return Errors(len(heard.split()), 0, len(heard), 0)
    jiwer = needed("jiwer", "jiwer", "utility")
    words, characters = jiwer.process_words(right, heard), jiwer.process_characters(right, heard)
    return Errors(
        words.substitutions + words.deletions + words.insertions,
        words.hits + words.substitutions + words.deletions,
        characters.substitutions + characters.deletions + characters.insertions,
        characters.hits + characters.substitutions + characters.deletions,
    )


def read_transcripts(source: str | Path, *, empty: bool = False) -> dict[str, str]:
    """The words of every utterance.

    ``source`` is a Kaldi ``text`` file (utterance, then words), a table (``.csv``, ``.tsv``) with
    the columns ``utterance`` and ``text`` (or their usual other names), a LibriSpeech
    ``.trans.txt``, or a folder of these. A path in a table stands for its name without folders and
    suffix. A transcript without words is an error unless ``empty``, as hypotheses may be.
    """
    place = Path(source)
    files = [place]
    if place.is_dir():
        text = place / "text"
        files = sorted(place.rglob(f"*{_LIBRISPEECH}")) or [text] * text.is_file()
        if not files:
            raise InputError(f"{place}: expected a Kaldi text or files {_LIBRISPEECH}, found none")
    transcripts: dict[str, str] = {}
    for where, name, words in _entries(files, TEXT):
        if name in transcripts:
            raise InputError(f"{where}: a second transcript of {name}")
        if not empty and not normalised(words):
            raise InputError(f"{where}: expected words of {name}, found none")
        transcripts[name] = words
    if not transcripts:
        raise InputError(f"{place}: expected transcripts, found none")
    return transcripts


def read_labels(source: str | Path) -> dict[str, str]:
    """A label of every utterance: a table with the columns ``utterance`` and ``label``, or lines of
    an utterance and its label.
    """
    labels: dict[str, str] = {}
    for where, name, label in _entries([Path(source)], LABEL):
        if name in labels:
            raise InputError(f"{where}: a second label of {name}")
        if not label:
            raise InputError(f"{where}: expected a label of {name}, found none")
        labels[name] = label
    if not labels:
        raise InputError(f"{source}: expected labels, found none")
    return labels


def _entries(files: Sequence[Path], columns: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Where an utterance stands, its name and its text, of tables and of files of lines."""
    for path in files:
        kind, lines = path.suffix.lower(), text_lines(path)
        if kind in (".csv", ".tsv"):
            rows = sheet(path, lines, "\t" if kind == ".tsv" else ",")
            head = next(rows)[1]
            first = next((one for one in UTTERANCE if one in head), None)
            second = next((one for one in columns if one in head), None)
            if first is None or second is None:
                raise InputError(
                    f"{path}, line 1: expected columns {UTTERANCE[0]} and {columns[0]}, found"
                    f" {', '.join(head) or 'none'}"
                )
            for number, row in rows:
                name = row[first].strip()
                if Path(name).suffix.lower() in _AUDIO:
                    name = Path(name).stem
                yield f"{path}, line {number}", name, row[second].strip()
        else:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    name, *text = line.split(maxsplit=1)
                    yield f"{path}, line {number}", name, "".join(text).strip()


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
