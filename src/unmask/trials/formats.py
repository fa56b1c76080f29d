"""All file formats, in one table (``formats.csv``): their names and what they look like; the words
for labels, and what is said of an input.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from unmask.base import FloatArray, Labels
from unmask.errors import InputError
from unmask.trials.ids import lookup

OnProblem = Literal["error", "skip"]
TARGET, NONTARGET, OTHER = 1, 0, -1
UNKNOWN = -2
DIGITS = {"1": TARGET, "0": NONTARGET}
WORDS = {
    **dict.fromkeys(("target", "tgt", "tar", "true", "same", "ss", "h1", "hp", "bonafide"), TARGET),
    **dict.fromkeys(("nontarget", "imp", "non", "false", "different", "ds", "h2", "hd"), NONTARGET),
    "spoof": OTHER,
}
VOCABULARY = {**DIGITS, **WORDS}
Units = Literal["ln", "log10", "lr"]
SASV = {**WORDS, "1": TARGET, "2": NONTARGET, "0": OTHER}
SASV |= {f"{digit}.0": SASV[digit] for digit in "012"}
"""Labels in a column ``sasv_label`` (ASVspoof 5)."""


@dataclass(frozen=True)
class Format:
    """A file format, an entry of ``FORMATS``; readers, writers and ``unmask formats`` take it.

    ``kind`` says what the file holds (score, key, embedding), ``container`` is the kind of file,
    ``source`` who writes it, ``layout`` what is in it; ``extensions`` are its usual endings.
    ``roles`` gives the columns of a text layout without header, in order: ``enrol``, ``test``,
    ``score``, ``number`` (read past), ``label`` (any vocabulary), ``digit`` (labels 0 and 1),
    ``word`` (labels in words), or the speakers of both sides, whose trials are target where these
    agree. ``header`` gives names of columns, normalised, by any set of which a table is known.
    """

    name: str
    kind: str
    container: str
    source: str
    layout: str
    example: str
    roles: tuple[str, ...]
    extensions: tuple[str, ...]
    header: tuple[frozenset[str], ...]

    @property
    def description(self) -> str:
        """What is said of a file that was read as this."""
        return f"{self.name}: {self.layout if self.roles else self.source}"

    def said_of(self, name: str, sha256: str, remarks: Sequence[str]) -> Source:
        """The input ``name`` that was read as this, with what else was detected in it."""
        return Source(name, sha256, self.name, detected="; ".join((self.description, *remarks)))


with open(Path(__file__).with_name("formats.csv"), encoding="utf-8") as _file:
    _rows: list[dict[str, Any]] = [*csv.DictReader(_file)]
FORMATS = tuple(
    Format(
        **row
        | {name: tuple(row[name].split()) for name in ("roles", "extensions")}
        | {"header": tuple(frozenset(one.split()) for one in row["header"].split("|") if one)}
    )
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


def encode_labels(words: pl.Series) -> Labels:
    """Labels of words in a column, whose name may say what they mean; else ``UNKNOWN``."""
    names, known = words.unique(), SASV if words.name == "sasv_label" else VOCABULARY
    labels = [known.get(word.strip().lower(), UNKNOWN) for word in names.to_list()]
    table: Labels = np.array(labels, np.int8)
    return table[lookup(words, names)]


def check_choice(name: str, value: str) -> None:
    """Refuse anything but ``error`` and ``skip``."""
    if value not in ("error", "skip"):
        raise InputError(f"expected {name}='error' or 'skip', found {value!r}")


def natural(values: FloatArray, scores_are: Units, where: Callable[[int], str]) -> FloatArray:
    """Natural logarithms of likelihood ratios that are given so, in base 10, or as they are."""
    if scores_are == "ln":
        return values
    if scores_are == "log10":
        return values * float(np.log(10))
    if scores_are != "lr":
        raise InputError("scores_are", "ln, log10 or lr", repr(scores_are))
    wrong = np.flatnonzero(values <= 0)
    if wrong.size:
        found = f"{values[wrong[0]]:g} ({wrong.size:,} in all); are they logarithms?"
        raise InputError(where(int(wrong[0])), "a likelihood ratio above 0", found)
    return np.asarray(np.log(values), np.float64)


@dataclass(frozen=True)
class Sound:
    """What a recording is like, or the medians of many: how long it is, its root mean square in dB
    below full scale, the shares of it that are silent and clipped, and the rate of its file.
    """

    seconds: float
    level: float
    silent: float
    clipped: float
    rate: float


@dataclass(frozen=True)
class Source:
    """One input: the path as given, the SHA-256 of its bytes, what was detected and counted.

    Readers make it, documents list it. ``missing`` counts trials of this input that had no
    partner in the other one (or had no score) and were left out on request, ``duplicates`` trials
    left out because they came before. A count that does not apply is ``None``. ``encoder`` is the
    fingerprint of what made its vectors, where that is told, ``sound`` what its recordings are
    like, where it has such, ``spoof`` how many of its trials are spoofs that were set aside,
    ``role`` what an assessment uses it as.
    """

    name: str
    sha256: str
    format: str
    target: int | None = None
    nontarget: int | None = None
    missing: int = 0
    duplicates: int = 0
    speakers: int | None = None
    detected: str = ""
    encoder: str = ""
    sound: Sound | None = None
    spoof: int = 0
    role: str = ""

    def counted(self, counts: Mapping[str, int], speakers: int | None) -> Source:
        """The same with counts of target, nontarget and other trials and of speakers."""
        detected = self.detected
        if counts["other"] and "spoof trials" not in detected:
            detected += f"; {counts['other']} spoof trials, a third class"
        target, nontarget, spoof = (counts[kind] for kind in ("target", "nontarget", "other"))
        counted = replace(self, target=target, nontarget=nontarget, spoof=spoof)
        return replace(counted, speakers=speakers, detected=detected)
