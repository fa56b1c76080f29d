"""From recordings to numbers of every utterance, which all results are made of."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from pathlib import Path

import numpy as np

from unmask.base import FloatArray, no_formula
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.run import Arrays, Range, Xp, current_place, ranges_of, run, text_lines, write_whole
from unmask.speech import SAMPLE_RATE, Recording, file_workers, read_audio, unexpected
from unmask.utility.melody import melody, pitch
from unmask.utility.quality import CLIPPED, clipped, dnsmos, level
from unmask.utility.recognisers import Recogniser
from unmask.utility.transcripts import sheet
from unmask.utility.words import errors, normalised

ORIGINAL = "original"
WORDS = ("word_errors", "words", "character_errors", "characters")
MEASURED = ("rho_f0", "semitones", "sig", "bak", "ovrl", "level", "clipped", "seconds")
COLUMNS = (*WORDS, *MEASURED)
_COMMENT = "# recogniser: "


@dataclass(frozen=True, eq=False)
class Measurements:
    """Numbers of every utterance, by condition (``original`` first) and column; NaN where nothing
    was measured.

    ``labels`` and ``predictions`` are numbers of ``classes``, the latter by condition;
    ``recogniser`` is who listened. Made by :func:`measure` or :func:`read_measurements`.
    """

    utterances: tuple[str, ...]
    speakers: tuple[str, ...]
    values: Mapping[str, Mapping[str, FloatArray]]
    recogniser: str = ""
    classes: tuple[str, ...] = ()
    labels: FloatArray | None = None
    predictions: Mapping[str, FloatArray] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()

    @property
    def conditions(self) -> tuple[str, ...]:
        """``original``, then the safeguards."""
        return tuple(self.values)


def measure(
    original: Sequence[Recording],
    protected: Mapping[str, Sequence[Recording]],
    *,
    transcripts: Mapping[str, str] | None = None,
    recogniser: Recogniser | None = None,
    hypotheses: Mapping[str, Mapping[str, str]] | None = None,
    labels: Mapping[str, str] | None = None,
    predictions: Mapping[str, Mapping[str, str]] | None = None,
    pitched: bool = True,
    mos: int | None = 0,
    state: str | os.PathLike[str] | None = None,
) -> Measurements:
    """Measure what safeguards leave of the words, the melody and the quality of speech.

    ``original`` and, by name of the safeguard, ``protected`` are recordings of the same utterances.
    ``transcripts`` are the words of every utterance; what is heard is given as ``hypotheses`` by
    condition, or written down by a ``recogniser``. ``labels`` and, by condition, ``predictions`` of
    them are compared. ``pitched`` compares pitch; DNSMOS, which takes a second a file, is asked
    about ``mos`` utterances of each speaker, all where it is None. Files are shared among the
    workers of the current place; with ``state`` what is done is kept there, and a second call goes
    on from it.
    """
    names = tuple(one.utterance for one in original)
    conditions = {ORIGINAL: tuple(original)}
    for name, files in protected.items():
        if name == ORIGINAL:
            raise InputError(f"safeguards: {ORIGINAL!r} is the name of unprotected speech")
        conditions[name] = _paired(original, files, name)
    notices: list[Notice] = []
    references: tuple[str, ...] | None = None
    if transcripts is not None:
        references = _of_all(transcripts, original, "transcripts")
        if recogniser is not None:
            notices += _foreign(recogniser, names, references)
    values: dict[str, dict[str, FloatArray]] = {}
    listens = recogniser if references is not None else None
    given = hypotheses or {}
    shared = _Shared(
        tuple(
            tuple((str(one.path), *one.stamp) for one in versions)
            for versions in zip(*conditions.values(), strict=True)
        ),
        tuple(listens is not None and name not in given for name in conditions),
        _chosen(original, mos),
        pitched,
    )
    where = current_place().state if state is None else Path(state)
    with file_workers(alone=len(names) < 2, state=where):
        parts = list(run(partial(_measured, listens), shared, ranges_of(len(names), 2)))
    rows = [row for part in parts for row in json.loads(str(part["rows"]))]
    broken = [one["failure"] for row in rows for one in row if "failure" in one]
    if broken:
        total = len(names) * len(conditions)
        raise InputError(f"{broken[0]} ({len(broken)} of {total} recordings failed)")
    for place, (name, files) in enumerate(conditions.items()):
        own = [row[place] for row in rows]
        columns = {c: np.array([float(row.get(c, np.nan)) for row in own]) for c in MEASURED}
        if references is not None and (recogniser is not None or name in given):
            heard = (
                _of_all(given[name], files, f"hypotheses of {name}")
                if name in given
                else tuple(row["heard"] for row in own)
            )
            counts = [errors(a, b) for a, b in zip(references, heard, strict=True)]
            for number, column in enumerate(WORDS):
                columns[column] = np.array([float(one[number]) for one in counts])
        values[name] = {c: columns.get(c, np.full(len(names), np.nan)) for c in COLUMNS}
        notices += _clipping(name, files, columns["clipped"])
    classes, truth, guessed = _labels(labels, predictions or {}, original)
    return Measurements(
        names,
        tuple(one.speaker for one in original),
        values,
        "" if references is None else "given" if listens is None else listens.name,
        classes,
        truth,
        guessed,
        tuple(notices),
    )


@dataclass(frozen=True)
class _Shared:
    """Versions of every utterance, the original first, with size and time of their files; which
    conditions are listened to, and which utterances DNSMOS is asked about.
    """

    versions: tuple[tuple[tuple[str, int, int], ...], ...]
    heard: tuple[bool, ...]
    mos: tuple[bool, ...]
    pitched: bool


def _measured(recogniser: Recogniser | None, xp: Xp, shared: _Shared, rows: Range) -> Arrays:
    """Numbers of some utterances in every condition as JSON, or the line of a failure."""
    return {"rows": np.array(json.dumps([_versions(recogniser, shared, n) for n in range(*rows)]))}


def _versions(
    recogniser: Recogniser | None, shared: _Shared, n: int
) -> list[dict[str, float | str]]:
    found: list[dict[str, float | str]] = []
    track: FloatArray | None = None
    for (path, *_), heard in zip(shared.versions[n], shared.heard, strict=True):
        try:
            samples = read_audio(path).samples
            row: dict[str, float | str] = {
                "level": level(samples.astype(np.float64)),
                "clipped": clipped(samples.astype(np.float64)),
                "seconds": samples.size / SAMPLE_RATE,
            }
            if shared.pitched:
                own = pitch(samples)
                track = own if track is None else track
                row["rho_f0"], row["semitones"] = melody(track, own)
            if shared.mos[n]:
                row |= dnsmos(samples)._asdict()
            if recogniser is not None and heard:
                row["heard"] = recogniser.hear(path)
        except InputError as error:
            row = {"failure": str(error) if str(error).startswith(path) else f"{path}: {error}"}
        except Exception as error:
            row = {"failure": unexpected(path, error)}
        found.append(row)
    return found


def _paired(
    original: Sequence[Recording], files: Sequence[Recording], name: str
) -> tuple[Recording, ...]:
    """The protected recordings in the order of the originals; the lists must be equal."""
    by_name = {one.utterance: one for one in files}
    missing = [one for one in original if one.utterance not in by_name]
    if missing:
        raise InputError(
            f"{missing[0].path}: expected a version protected by {name}, found none"
            f" ({len(missing)} of {len(original)} missing)"
        )
    more = set(by_name) - {one.utterance for one in original}
    if more:
        first = by_name[min(more)]
        raise InputError(
            f"{first.path}: expected recordings of the originals only, found another"
            f" ({len(more)} more)"
        )
    for one in original:
        if by_name[one.utterance].speaker != one.speaker:
            raise InputError(
                f"{by_name[one.utterance].path}: expected speaker {one.speaker}, found"
                f" {by_name[one.utterance].speaker}"
            )
    return tuple(by_name[one.utterance] for one in original)


def _of_all(texts: Mapping[str, str], files: Sequence[Recording], where: str) -> tuple[str, ...]:
    missing = [one for one in files if one.utterance not in texts]
    if missing:
        raise InputError(
            f"{missing[0].path}: expected an entry in the {where}, found none"
            f" ({len(missing)} of {len(files)} missing)"
        )
    return tuple(texts[one.utterance] for one in files)


def _foreign(
    recogniser: Recogniser, names: Sequence[str], references: Sequence[str]
) -> list[Notice]:
    """Refuse transcripts of which the recogniser knows less than half; tell of other unknowns."""
    words = [normalised(text).split() for text in references]
    vocabulary = sorted({word for one in words for word in one})
    unknown = set(recogniser.unknown(vocabulary))
    count, total = sum(w in unknown for one in words for w in one), sum(map(len, words))
    if not count:
        return []
    first = next(n for n, one in enumerate(words) if unknown & set(one))
    word = next(w for w in words[first] if w in unknown)
    if 2 * count > total:
        raise InputError(
            f"transcript of {names[first]}: expected words that {recogniser.name} knows, found"
            f" {word!r} ({count} of {total} words unknown: another language or grammar?)"
        )
    return [
        Notice(
            "unknown-words",
            recogniser.name,
            f"{count} of {total} words are unknown to {recogniser.name}, {word!r} of"
            f" {names[first]} first: each is an error whatever is said",
        )
    ]


def _clipping(name: str, files: Sequence[Recording], share: FloatArray) -> list[Notice]:
    over = np.flatnonzero(share > CLIPPED)
    if not over.size:
        return []
    return [
        Notice(
            "clipped",
            name,
            f"{files[over[0]].path}: {100 * share[over[0]]:.1f} % of its samples are clipped"
            f" ({over.size} of {len(files)} files clip)",
        )
    ]


def _chosen(original: Sequence[Recording], most: int | None) -> tuple[bool, ...]:
    """Which utterances DNSMOS is asked about: the first of each speaker by name."""
    if most is None:
        return (True,) * len(original)
    taken: dict[str, int] = {}
    chosen = {}
    for one in sorted(original, key=lambda one: one.utterance):
        taken[one.speaker] = taken.get(one.speaker, 0) + 1
        chosen[one.utterance] = taken[one.speaker] <= most
    return tuple(chosen[one.utterance] for one in original)


def _labels(
    labels: Mapping[str, str] | None,
    predictions: Mapping[str, Mapping[str, str]],
    files: Sequence[Recording],
) -> tuple[tuple[str, ...], FloatArray | None, dict[str, FloatArray]]:
    if labels is None:
        return (), None, {}
    if not predictions:
        raise InputError("labels: expected predictions of them too, found none")
    truth = _of_all(labels, files, "labels")
    classes = tuple(sorted(set(truth)))
    number = {one: float(n) for n, one in enumerate(classes)}
    guessed = {
        condition: np.array(
            [
                number.get(text, -1.0)
                for text in _of_all(given, files, f"predictions of {condition}")
            ]
        )
        for condition, given in predictions.items()
    }
    return classes, np.array([number[one] for one in truth]), guessed


def write_measurements(measurements: Measurements, path: str | os.PathLike[str]) -> None:
    """Write the numbers of every utterance as CSV, whole or not at all; no labels."""
    text = io.StringIO()
    text.write(f"{_COMMENT}{measurements.recogniser}\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["condition", "utterance", "speaker", *COLUMNS])
    for condition, columns in measurements.values.items():
        for n, (utterance, speaker) in enumerate(
            zip(measurements.utterances, measurements.speakers, strict=True)
        ):
            cells = [_cell(columns[c][n]) for c in COLUMNS]
            writer.writerow([*map(no_formula, (condition, utterance, speaker)), *cells])
    write_whole(Path(path), text.getvalue().encode())


def _cell(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.6g}"


def read_measurements(path: str | os.PathLike[str]) -> Measurements:
    """Read what :func:`write_measurements` wrote; gzipped where the name ends so."""
    lines = text_lines(path)
    who = lines.pop(0).removeprefix(_COMMENT) if lines[0].startswith("#") else ""
    rows = sheet(path, lines)
    wanted = {"condition", "utterance", "speaker", *COLUMNS}
    if missing := wanted - next(rows, (1, {}))[1].keys():
        raise InputError(f"{path}: expected the column {min(missing)}, found none")
    found: dict[str, dict[str, dict[str, str]]] = {}
    for _, row in rows:
        of_condition = found.setdefault(row["condition"], {})
        if row["utterance"] in of_condition:
            raise InputError(f"{path}: {row['condition']}: {row['utterance']} stands there twice")
        of_condition[row["utterance"]] = row
    if ORIGINAL not in found:
        raise InputError(f"{path}: expected the condition {ORIGINAL}, found none")
    names = tuple(found[ORIGINAL])
    for condition, given in found.items():
        if set(given) != set(names):
            other = min(set(given) ^ set(names))
            raise InputError(
                f"{path}: {condition}: expected the originals' utterances, see {other}"
            )
    return Measurements(
        names,
        tuple(found[ORIGINAL][name]["speaker"] for name in names),
        {
            condition: {c: _column(path, given, names, c) for c in COLUMNS}
            for condition, given in {ORIGINAL: found[ORIGINAL], **found}.items()
        },
        who,
    )


def case_study_utility() -> Measurements:
    """Measurements of the case study's recordings, original and protected, by condition.

    Utterances of the 60 AudioMNIST speakers, heard by pocketsphinx with a grammar of digits; made
    by ``scripts/make_utility.py``.
    """
    place = resources.files("unmask.data").joinpath("case_study", "utility.csv.gz")
    with resources.as_file(place) as path:
        return read_measurements(path)


def _column(
    path: str | os.PathLike[str],
    rows: Mapping[str, Mapping[str, str]],
    names: Sequence[str],
    column: str,
) -> FloatArray:
    values = []
    for name in names:
        text = rows[name][column]
        try:
            values.append(float(text) if text else float("nan"))
        except ValueError:
            raise InputError(f"{path}: {name}: {column}: expected a number, found {text}") from None
    return np.array(values)
