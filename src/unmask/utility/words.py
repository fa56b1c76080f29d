"""What was said, and what a recogniser gets wrong of it: transcripts, WER and CER.

WER = (S + D + I)/N: substitutions, deletions and insertions of the cheapest alignment of the
hypothesis with the reference, over the words of the reference (Levenshtein 1966). It may exceed 1.
Silence, all of whose words are deleted, has a WER of 1. CER is the same for characters, blanks
between words among them.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from unmask.errors import InputError
from unmask.privacy import Words
from unmask.run import files_below, text_lines
from unmask.speech import needed, normalised
from unmask.trials import Speakers, read_embeddings

UTTERANCE = ("utterance", "utt_id", "utt", "id", "file", "filename", "path")
TEXT = ("text", "transcript", "transcription", "sentence", "words")
LABEL = ("label", "emotion", "class", "prediction")
_AUDIO = (".wav", ".flac", ".mp3", ".ogg", ".opus")
_LIBRISPEECH = ".trans.txt"
_MARKS = {".csv": ",", ".tsv": "\t"}
_IDEOGRAPH = re.compile("[\u4e00-\u9fff]")


class Errors(NamedTuple):
    """Errors in words and characters, and how many of either the reference has."""

    word_errors: int
    words: int
    character_errors: int
    characters: int


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


def characters_apart(text: str) -> str:
    """Chinese and Japanese text as its ideographs, each a word, and any other text as it is.

    So the VoicePrivacy challenge of 2026 counts errors: what stands between ideographs, such as
    pinyin or kana, is left out.
    """
    return " ".join(_IDEOGRAPH.findall(text)) or text


def read_transcripts(source: str | Path, *, empty: bool = False) -> dict[str, str]:
    """The words of every utterance.

    ``source`` is a Kaldi ``text`` file (utterance, then words), a table (``.csv``, ``.tsv``) or
    lines of JSON (``.jsonl``) with ``utterance`` and ``text`` (or their usual other names), a
    LibriSpeech ``.trans.txt``, or a folder of these. A path in a table stands for its name without
    folders and suffix. A transcript without words is an error unless ``empty``, as those of
    hypotheses may be.
    """
    place = Path(source)
    files = [place]
    if place.is_dir():
        text = place / "text"
        files = [path for path in files_below(place) if path.name.endswith(_LIBRISPEECH)]
        if not files and text.is_file():
            files = [text]
        if not files:
            raise InputError(f"{place}: expected a Kaldi text or files {_LIBRISPEECH}, found none")
    return _entries(
        place, files, TEXT, "transcript", "words", lambda text: empty or bool(normalised(text))
    )


def read_words(
    transcripts: Path | None, embeddings: Path | None = None, *, speakers: Speakers | None = None
) -> Words | None:
    """What attackers know of the words, where a file tells it: transcripts, or vectors of them."""
    if transcripts is not None and embeddings is not None:
        raise InputError("words", "transcripts or vectors of them", "both")
    if embeddings is not None:
        return Words.of(read_embeddings(embeddings, speakers=speakers), str(embeddings))
    if transcripts is None:
        return None
    return Words.of(read_transcripts(transcripts), str(transcripts))


def read_labels(source: str | Path) -> dict[str, str]:
    """A label of every utterance: a table with the columns ``utterance`` and ``label``, or lines of
    an utterance and its label.
    """
    return _entries(source, [Path(source)], LABEL, "label", "a label", bool)


def _entries(
    source: str | Path,
    files: Sequence[Path],
    columns: Sequence[str],
    kind: str,
    noun: str,
    good: Callable[[str], bool],
) -> dict[str, str]:
    """What the files of a source say of each utterance; a ``kind`` is made of a ``noun``."""
    entries: dict[str, str] = {}
    for path in files:
        for number, name, text in _rows(path, columns):
            if name in entries:
                raise InputError(f"{path}, line {number}: a second {kind} of {name}")
            if not good(text):
                raise InputError(f"{path}, line {number}: expected {noun} of {name}, found none")
            entries[name] = text
    if not entries:
        raise InputError(f"{source}: expected {kind}s, found none")
    return entries


def _rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Line, name and text of every utterance in a table or a file of lines."""
    kind, lines = path.suffix.lower(), text_lines(path)
    if kind not in (".csv", ".tsv", ".jsonl"):
        for number, line in enumerate(lines, 1):
            if line.strip():
                name, *text = line.split(maxsplit=1)
                yield number, name, "".join(text).strip()
        return
    rows = _json(path, lines) if kind == ".jsonl" else sheet(path, lines, _MARKS[kind])
    head = next(rows, (1, {}))[1]
    first = next((one for one in UTTERANCE if one in head), None)
    second = next((column for column in columns if column in head), None)
    if first is None or second is None:
        raise InputError(
            f"{path}, line 1", f"columns {UTTERANCE[0]} and {columns[0]}", ", ".join(head) or "none"
        )
    for number, row in rows:
        name = row[first].strip()
        audio = Path(name).suffix.lower() in _AUDIO
        yield number, Path(name).stem if audio else name, row[second].strip()


def _json(path: Path, lines: Iterable[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Objects in JSON as rows of a table, after the names that the first has."""
    head: dict[str, str] = {}
    for number, line in ((n, one) for n, one in enumerate(lines, 1) if one.strip()):
        try:
            row = {str(name).lower(): str(value) for name, value in json.loads(line).items()}
        except (ValueError, AttributeError, RecursionError):
            raise InputError(f"{path}, line {number}", "an object in JSON", line[:40]) from None
        if not head:
            head = row
            yield number, head
        if missing := head.keys() - row.keys():
            raise InputError(f"{path}, line {number}", f"the key {min(missing)}", ", ".join(row))
        yield number, row


def sheet(
    path: str | os.PathLike[str], lines: Iterable[str], mark: str = ","
) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of a table by the names of its columns (the first of ``lines``), and their lines; a row
    is one line, columns are separated by ``mark``.
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
            raise InputError(f"{path}, line {number}", f"{len(head)} columns", len(row))
        if line.strip() or number == 1:
            yield number, dict(zip(head, row, strict=True))
