"""From recordings to numbers of every utterance, which all results are made of: words, melody (how
well the pitch of protected speech follows that of the original), DNSMOS, level, clipping.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from unmask import speech
from unmask._extras import MissingExtra
from unmask.base import FloatArray, no_formula
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.run import Arrays, Range, Xp, current_place, ranges_of, run, text_lines, write_whole
from unmask.speech import SAMPLE_RATE, Recogniser, Recording
from unmask.utility.words import errors, sheet

LEAST_FRAMES = 10
WINDOW = round(9.01 * SAMPLE_RATE)
CLIPPED = 1e-3
"""Share of samples at full scale from which on a recording counts as clipped."""
# From the network's output to the scale of listeners, highest power first (Reddy et al. 2022).
_SCALES = (
    (-0.08397278, 1.22083953, 0.0052439),
    (-0.13166888, 1.60915514, -0.39604546),
    (-0.06766283, 1.11546468, 0.04602535),
)


class Melody(NamedTuple):
    """``rho_f0``: Pearson's correlation of F0 over frames voiced in both (the pitch correlation
    ρ^F0 of the VoicePrivacy 2022 challenge); ``semitones``: mean shift, 12·log2 of the ratio. NaN
    with fewer than ten such frames, and ρ where a pitch does not move.
    """

    rho_f0: float
    semitones: float


def pitch(samples: npt.ArrayLike) -> FloatArray:
    """F0 in Hz every 5 ms, 0 where unvoiced: WORLD's DIO and StoneMask."""
    world: Any = speech.needed("pyworld", "pyworld-prebuilt", "utility")
    signal = np.ascontiguousarray(samples, dtype=np.float64)
    rough, times = world.dio(signal, SAMPLE_RATE)
    return np.asarray(world.stonemask(signal, rough, times, SAMPLE_RATE))


def melody(original: FloatArray, protected: FloatArray) -> Melody:
    """Compare two tracks of pitch; where one is longer, the other is stretched to its frames."""
    length, tracks = max(original.size, protected.size), []
    for track in (original, protected):  # the frame nearest in relative time
        frame = np.rint(np.linspace(0, track.size - 1, length)).astype(np.int64)
        tracks.append(track[frame] if track.size else np.zeros(length))
    both = (tracks[0] > 0.0) & (tracks[1] > 0.0)
    if both.sum() < LEAST_FRAMES:
        return Melody(float("nan"), float("nan"))
    a, b = (track[both] for track in tracks)
    shift = float(np.mean(12.0 * np.log2(b / a)))
    a, b = a - a.mean(), b - b.mean()
    power = float(np.sqrt(np.sum(a**2) * np.sum(b**2)))
    return Melody(float(np.sum(a * b)) / power if power > 0.0 else float("nan"), shift)


class Dnsmos(NamedTuple):
    """Predicted opinions of listeners, 1 to 5: of the speech, of the background, of all (P.835)."""

    sig: float
    bak: float
    ovrl: float


def dnsmos(samples: npt.ArrayLike) -> Dnsmos:
    """DNSMOS of 16 kHz samples, by the network in ``speechmos`` (none of its code runs): windows of
    9.01 s every second, shorter recordings repeated (Reddy et al. 2022).
    """
    signal = np.asarray(samples, dtype=np.float32)
    while signal.size < WINDOW:
        signal = np.concatenate([signal, signal])
    hops = int(signal.size // SAMPLE_RATE - WINDOW / SAMPLE_RATE) + 1
    starts = [n * SAMPLE_RATE for n in range(hops) if n * SAMPLE_RATE + WINDOW <= signal.size]
    session = _session()
    raw = np.array(
        [session.run(None, {"input_1": signal[None, at : at + WINDOW]})[0][0] for at in starts]
    )
    means = [np.mean(np.polyval(scale, raw[:, n])) for n, scale in enumerate(_SCALES)]
    return Dnsmos(*map(float, means))


@lru_cache(maxsize=1)
def _session() -> Any:
    runtime = speech.needed("onnxruntime", "onnxruntime", "utility")
    speech.needed("speechmos", "speechmos", "utility")
    model = resources.files("speechmos").joinpath("dnsmos_models", "sig_bak_ovr.onnx")
    if not model.is_file():
        raise InputError("speechmos: expected dnsmos_models/sig_bak_ovr.onnx in it, found none")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return runtime.InferenceSession(model.read_bytes(), options)


ORIGINAL = "original"
WORDS = ("word_errors", "words", "character_errors", "characters")
MEASURED = ("rho_f0", "semitones", "sig", "bak", "ovrl", "level", "clipped", "seconds")
COLUMNS = (*WORDS, *MEASURED)
_COMMENT = "# recogniser: "
_ENTRY = "an entry in the "
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Measurements:
    """Numbers of every utterance, by condition (``original`` first) and column; NaN where nothing
    was measured.

    ``labels`` and ``predictions`` are numbers of ``classes``, the latter by condition;
    ``recogniser`` is who listened and ``heard``, by condition, the words of every utterance that
    were given or recognised. Made by :func:`measure` or :func:`read_measurements`.
    """

    utterances: tuple[str, ...]
    speakers: tuple[str, ...]
    values: Mapping[str, Mapping[str, FloatArray]]
    recogniser: str = ""
    classes: tuple[str, ...] = ()
    labels: FloatArray | None = None
    predictions: Mapping[str, FloatArray] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()
    heard: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

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
    skip: bool = False,
) -> Measurements:
    """Measure what safeguards leave of the words, the melody and the quality of speech.

    ``original`` and, by name of the safeguard, ``protected`` are recordings of the same utterances.
    ``transcripts`` are the words of every utterance; what is heard is given as ``hypotheses`` by
    condition, or written down by a ``recogniser``. ``labels`` and, by condition, ``predictions`` of
    them are compared. ``pitched`` compares pitch; DNSMOS, which takes a second a file, is asked
    about ``mos`` utterances of each speaker, all where it is None. Files are shared among the
    workers of the current place; with ``state`` what is done is kept there, and a second call goes
    on from it.

    An utterance that lacks a version or a transcript, or whose recording cannot be measured, is an
    error. With ``skip`` it is left out, and a notice counts such utterances.
    """
    left_out: dict[str, str] = {}
    if skip:
        total = len(original)
        original, protected, left_out = _complete(original, protected, transcripts)
    names = tuple(recording.utterance for recording in original)
    conditions = {ORIGINAL: tuple(original)}
    for name, files in protected.items():
        if name == ORIGINAL:
            raise InputError(f"safeguards: {ORIGINAL!r} is the name of unprotected speech")
        conditions[name] = _paired(original, files, name)
    given, guessed = hypotheses or {}, predictions or {}
    _check_given("hypotheses", given, conditions, whole=recogniser is None)
    _check_given("predictions", guessed, conditions, whole=True)
    if given and transcripts is None:
        raise InputError("hypotheses", "transcripts to compare them with", "none")
    if transcripts is not None and recogniser is None and not given:
        raise InputError("transcripts", "a recogniser or hypotheses", "neither")
    labelled = _labels(labels, guessed, original)
    notices: list[Notice] = []
    references, listens = None, None
    if transcripts is not None:
        references, listens = _of_all(transcripts, original, _ENTRY + "transcripts"), recogniser
        if listens is not None:
            notices += _foreign(listens, names, references)
    versions = tuple(
        tuple((str(one.path), one.digest) for one in same)
        for same in zip(*conditions.values(), strict=True)
    )
    unheard = tuple(listens is not None and name not in given for name in conditions)
    shared = versions, unheard, _chosen(original, mos), pitched
    where = current_place().state if state is None else Path(state)
    with speech.file_workers(alone=len(names) < 2, state=where):
        parts = list(run(partial(_measured, listens), shared, ranges_of(len(names), 2)))
    rows = [row for part in parts for row in json.loads(str(part["rows"]))]
    broken = [one["failure"] for row in rows for one in row if "failure" in one]
    if broken and not (skip and labels is None and not given):
        total = len(names) * len(conditions)
        raise InputError(f"{broken[0]} ({len(broken)} of {total} recordings failed)")
    if broken:
        fine = [n for n, row in enumerate(rows) if not any("failure" in one for one in row)]
        if not fine:
            raise InputError(f"{broken[0]} (no utterance is whole)")
        for name, row in zip(names, rows, strict=True):
            lines = (str(one["failure"]) for one in row if "failure" in one)
            if (line := next(lines, None)) is not None:
                left_out[name] = line.partition(": ")[2] or line
        rows, names = [rows[n] for n in fine], tuple(names[n] for n in fine)
        original = [original[n] for n in fine]
        conditions = {name: tuple(files[n] for n in fine) for name, files in conditions.items()}
        references = references and tuple(references[n] for n in fine)
    if left_out:
        name, reason = next(iter(left_out.items()))
        sentence = f"{len(left_out)} of {total} utterances were left out (first: {name}: {reason})"
        notices.append(Notice("left-out", "utility", sentence))
    values: dict[str, dict[str, FloatArray]] = {}
    recognised: dict[str, tuple[str, ...]] = {}
    for place, (name, files) in enumerate(conditions.items()):
        own = [row[place] for row in rows]
        if references is not None and (listens is not None or name in given):
            heard = [row.get("heard", "") for row in own]
            if name in given:
                heard = list(_of_all(given[name], files, f"{_ENTRY}hypotheses of {name}"))
            recognised[name] = tuple(str(text) for text in heard)
            for row, *texts in zip(own, references, heard, strict=True):
                row |= errors(*texts)._asdict()
        values[name] = {c: np.array([float(row.get(c, np.nan)) for row in own]) for c in COLUMNS}
        share = values[name]["clipped"]
        over = np.flatnonzero(share > CLIPPED)
        if over.size:
            sentence = (
                f"{files[over[0]].path}: {100 * share[over[0]]:.1f} % of its samples are clipped"
                f" ({over.size} of {len(files)} files clip)"
            )
            notices.append(Notice("clipped", name, sentence))
    return Measurements(
        names,
        tuple(recording.speaker for recording in original),
        values,
        "" if references is None else "given" if listens is None else listens.name,
        *labelled,
        tuple(notices),
        recognised,
    )


Version = tuple[str, str]
_Shared = tuple[tuple[tuple[Version, ...], ...], tuple[bool, ...], tuple[bool, ...], bool]


def _measured(recogniser: Recogniser | None, xp: Xp, shared: _Shared, rows: Range) -> Arrays:
    """Numbers of some utterances in every condition as JSON, or the line of a failure."""
    every, unheard, asked, pitched = shared
    results = []
    for versions, mos in zip(every[slice(*rows)], asked[slice(*rows)], strict=True):
        row: list[dict[str, float | str]] = []
        track: FloatArray | None = None
        for (path, _), hears in zip(versions, unheard, strict=True):
            one: dict[str, float | str] = {}
            row.append(one)
            try:
                samples = speech.read_audio(path).samples
                one["level"] = speech.level(samples)
                one["clipped"] = speech.clipped(samples)
                one["seconds"] = samples.size / SAMPLE_RATE
                if pitched:
                    own = pitch(samples)
                    track = own if track is None else track
                    one |= melody(track, own)._asdict()
                if mos:
                    one |= dnsmos(samples)._asdict()
                if recogniser is not None and hears:
                    one["heard"] = recogniser.hear(path)
            except MissingExtra:
                raise
            except Exception as error:
                one["failure"] = speech.failure(path, error)
        results.append(row)
    return {"rows": np.array(json.dumps(results))}


def _complete(
    original: Sequence[Recording],
    protected: Mapping[str, Sequence[Recording]],
    transcripts: Mapping[str, str] | None,
) -> tuple[list[Recording], dict[str, list[Recording]], dict[str, str]]:
    """The utterances that every set has, and what each of the others lacks."""
    known = {name: {one.utterance for one in files} for name, files in protected.items()}
    lacking: dict[str, str] = {}
    for recording in original:
        name = recording.utterance
        without = next((version for version in known if name not in known[version]), None)
        if without is not None:
            lacking[name] = f"no version protected by {without}"
        elif transcripts is not None and name not in transcripts:
            lacking[name] = "no transcript"
    whole = [recording for recording in original if recording.utterance not in lacking]
    if not whole:
        raise InputError("utility", "utterances that every set has", "none")
    kept = {recording.utterance for recording in whole}
    versions = {
        name: [recording for recording in files if recording.utterance in kept]
        for name, files in protected.items()
    }
    return whole, versions, lacking


def _check_given(
    what: str, given: Mapping[str, object], conditions: Mapping[str, object], *, whole: bool
) -> None:
    """Refuse what is given of a condition that is none, or if ``whole`` of some of them only."""
    for name in given.keys() - conditions.keys():
        raise InputError(what, f"one of the conditions {', '.join(conditions)}", name)
    for name in conditions.keys() - given.keys() if given and whole else ():
        raise InputError(what, "those of every condition", f"none of {name}")


def _paired(
    original: Sequence[Recording], files: Sequence[Recording], name: str
) -> tuple[Recording, ...]:
    """The protected recordings in the order of the originals; the lists must be equal."""
    by_name = {recording.utterance: recording for recording in files}
    paired = _of_all(by_name, original, f"a version protected by {name}")
    more = set(by_name) - {recording.utterance for recording in original}
    if more:
        first = by_name[min(more)]
        raise InputError(
            first.path, "recordings of the originals only", f"another ({len(more)} more)"
        )
    for one, other in zip(original, paired, strict=True):
        if other.speaker != one.speaker:
            raise InputError(f"{other.path}: expected speaker {one.speaker}, found {other.speaker}")
    return paired


def _of_all(known: Mapping[str, T], files: Sequence[Recording], what: str) -> tuple[T, ...]:
    missing = [recording for recording in files if recording.utterance not in known]
    if missing:
        raise InputError(missing[0].path, what, f"none ({len(missing)} of {len(files)} missing)")
    return tuple(known[recording.utterance] for recording in files)


def _foreign(
    recogniser: Recogniser, names: Sequence[str], references: Sequence[str]
) -> list[Notice]:
    """Refuse transcripts of which the recogniser knows less than half; tell of other unknowns."""
    words = [speech.normalised(text).split() for text in references]
    vocabulary = sorted({word for one in words for word in one})
    unknown = set(recogniser.unknown(vocabulary))
    count, total = sum(w in unknown for one in words for w in one), sum(map(len, words))
    if not count:
        return []
    first, word = next(
        (n, w) for n, one in zip(names, words, strict=True) for w in one if w in unknown
    )
    if 2 * count > total:
        raise InputError(
            f"transcript of {first}: expected words that {recogniser.name} knows, found"
            f" {word!r} ({count} of {total} words unknown: another language or grammar?)"
        )
    sentence = (
        f"{count} of {total} words are unknown to {recogniser.name}, {word!r} of {first} first:"
        " each is an error whatever is said"
    )
    return [Notice("unknown-words", recogniser.name, sentence)]


def _chosen(original: Sequence[Recording], most: int | None) -> tuple[bool, ...]:
    """Which utterances DNSMOS is asked about: the first of each speaker by name."""
    ordered = sorted(original, key=lambda recording: recording.utterance)
    most = len(ordered) if most is None else most
    places = speech.first_of_each((recording.speaker for recording in ordered), most)
    chosen = {ordered[place].utterance for place in places}
    return tuple(recording.utterance in chosen for recording in original)


def _labels(
    labels: Mapping[str, str] | None,
    predictions: Mapping[str, Mapping[str, str]],
    files: Sequence[Recording],
) -> tuple[tuple[str, ...], FloatArray | None, dict[str, FloatArray]]:
    if bool(predictions) != (labels is not None):
        raise InputError("labels: expected labels and predictions of them, found only one of both")
    if labels is None:
        return (), None, {}
    truth = _of_all(labels, files, _ENTRY + "labels")
    classes = tuple(sorted(set(truth)))
    number = {one: float(n) for n, one in enumerate(classes)}
    guessed = {}
    for condition, given in predictions.items():
        texts = _of_all(given, files, f"{_ENTRY}predictions of {condition}")
        guessed[condition] = np.array([number.get(text, -1.0) for text in texts])
    return classes, np.array([number[one] for one in truth]), guessed


def write_measurements(measurements: Measurements, path: str | os.PathLike[str]) -> None:
    """Write the numbers of every utterance as CSV, whole or not at all; no labels."""
    text = io.StringIO()
    text.write(f"{_COMMENT}{measurements.recogniser}\n")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["condition", "utterance", "speaker", *COLUMNS])
    people = list(zip(measurements.utterances, measurements.speakers, strict=True))
    for condition, columns in measurements.values.items():
        for (utterance, speaker), *cells in zip(
            people, *(columns[c] for c in COLUMNS), strict=True
        ):
            numbers = ["" if np.isnan(cell) else f"{cell:.6g}" for cell in cells]
            writer.writerow([*map(no_formula, (condition, utterance, speaker)), *numbers])
    write_whole(Path(path), text.getvalue().encode())


def read_measurements(path: str | os.PathLike[str]) -> Measurements:
    """Read what :func:`write_measurements` wrote; gzipped where the name ends so."""
    lines = text_lines(path)
    who = lines.pop(0).removeprefix(_COMMENT) if lines[0].startswith("#") else ""
    rows = sheet(path, lines)
    wanted = {"condition", "utterance", "speaker", *COLUMNS}
    if missing := wanted - next(rows, (1, {}))[1].keys():
        raise InputError(f"{path}: expected the column {min(missing)}, found none")
    cells: dict[str, dict[str, dict[str, str]]] = {}
    for _, row in rows:
        of_condition = cells.setdefault(row["condition"], {})
        if row["utterance"] in of_condition:
            raise InputError(f"{path}: {row['condition']}: {row['utterance']} stands there twice")
        of_condition[row["utterance"]] = row
    if ORIGINAL not in cells:
        raise InputError(f"{path}: expected the condition {ORIGINAL}, found none")
    original = cells[ORIGINAL]
    for condition, given in cells.items():
        if other := given.keys() ^ original.keys():
            raise InputError(
                f"{path}: {condition}: expected the originals' utterances, see {min(other)}"
            )

    def number(row: dict[str, str], column: str) -> float:
        try:
            return float(row[column] or "nan")
        except ValueError:
            raise InputError(
                f"{path}: {row['utterance']}: {column}: expected a number, found {row[column]}"
            ) from None

    values = {
        condition: {c: np.array([number(given[name], c) for name in original]) for c in COLUMNS}
        for condition, given in {ORIGINAL: original, **cells}.items()
    }
    speakers = tuple(row["speaker"] for row in original.values())
    return Measurements(tuple(original), speakers, values, who)


def case_study_utility() -> Measurements:
    """Measurements of the case study's recordings, original and protected, by condition.

    Utterances of the 60 AudioMNIST speakers, heard by pocketsphinx with a grammar of digits; made
    by ``studies/data_provenance/utility.py``.
    """
    place = resources.files("unmask.data").joinpath("case_study", "utility.csv.gz")
    with resources.as_file(place) as path:
        return read_measurements(path)
