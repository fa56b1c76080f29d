"""From recordings to embeddings, in shards that survive a kill; and those of the bundled case
study, 60 voices, original and protected, through two encoders.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import astuple, dataclass, field, fields
from functools import lru_cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unmask._extras import MissingExtra
from unmask.base import FloatArray, IntArray
from unmask.errors import InputError
from unmask.run import Arrays, Range, Xp, available, current_place, ranges_of, run, run_on
from unmask.speech.audio import (
    SAMPLE_RATE,
    Float32Array,
    cut_of,
    failure,
    file_workers,
    read_audio,
    without_pauses,
)
from unmask.speech.corpus import Recording
from unmask.speech.encoders import WEIGHTS, Encoder, Function, load_encoder
from unmask.trials import Embeddings, Sound


@dataclass(frozen=True)
class Extraction:
    """How recordings become vectors, besides the encoder.

    ``trim`` shortens pauses first (voice activity detection). ``segment`` cuts a recording into
    pieces of that many seconds, named utterance_s0, utterance_s1, …; what is left over at the end
    is dropped, and a recording shorter than one piece is a failure. At most ``most`` pieces.
    """

    trim: bool = False
    segment: float | None = None
    most: int | None = None


@dataclass(frozen=True)
class Embedded:
    """What :func:`embed` made: embeddings of all recordings that could be read, None if none could,
    the seconds of audio behind them, a line for each recording that failed or has something to
    know. ``sounds`` has a row for each recording with what it is like, the fields of
    :class:`~unmask.trials.Sound`; NaN where it could not be read.
    """

    embeddings: Embeddings | None
    seconds: float
    failures: tuple[str, ...]
    remarks: tuple[str, ...]
    encoder: str
    sounds: FloatArray


def embed(
    recordings: Sequence[Recording],
    encoder: str | Function | Encoder = "campplus",
    *,
    extraction: Extraction | None = None,
    parts: str | os.PathLike[str] | None = None,
    shard: int | None = None,
    device: str = "cpu",
) -> Embedded:
    """Embed recordings, ``shard`` of them at a time (64, on a GPU 512); the result never depends on
    how many workers.

    ``recordings`` are those of :func:`~unmask.speech.recordings`, ``encoder`` is what
    :func:`~unmask.speech.load_encoder` takes, ``extraction`` says how recordings are cut,
    ``device`` is ``cpu`` or a GPU of torch, or several after commas, with a process each. A named
    encoder on ``cpu`` runs on the current place, in processes of this machine unless that is a
    cluster; one given as an object, and one on a GPU, in this process, whose threads read files.

    With ``parts``, finished shards are kept in that folder and a second call with the same
    recordings (path and content), encoder and options goes on where the first stopped. A function
    is known by the content of its module; a closure or an object without a ``fingerprint`` is not.
    """
    devices = device.split(",")
    several, there = len(devices) > 1, device != "cpu"
    if several and not isinstance(encoder, str):
        raise InputError(f"device {device}: expected one, or an encoder that is named")
    loaded = load_encoder(encoder, device="cpu" if several else device)
    options = extraction or Extraction()
    paths = tuple(str(recording.path) for recording in recordings)
    digests = tuple(recording.digest for recording in recordings)
    shared = paths, digests, options, loaded.fingerprint
    ranges = ranges_of(len(recordings), shard or (512 if there else 64))
    state = current_place().state
    if parts is not None:
        state = Path(parts)
        if state.is_dir() and any(path.is_file() for path in state.iterdir()):
            raise InputError(f"{state}: expected a folder of shards, found other files")
    cores = available(current_place().workers)
    alone = not several and (there or len(ranges) < 2 or current_place().workers == 1)
    sent = encoder if isinstance(encoder, str) and not alone else loaded
    given = _Given(sent, min(READERS, cores) if there else 0, there and not several)
    processes = run_on("processes", state=state, devices=devices)
    with processes if several else file_workers(alone=sent is loaded, state=state):
        shards = list(run(partial(_embed_rows, given), shared, ranges))
    failures, remarks = (
        tuple(line for shard in shards for line in json.loads(str(shard[kind])).values())
        for kind in ("failures", "remarks")
    )
    sounds = np.concatenate([np.empty((0, len(fields(Sound)))), *(s["sounds"] for s in shards)])
    full = [shard for shard in shards if shard["owner"].size]
    if not full:
        return Embedded(None, 0.0, failures, remarks, loaded.name, sounds)
    owner, segment, vectors, seconds = (
        np.concatenate([shard[name] for shard in full])
        for name in ("owner", "segment", "vectors", "seconds")
    )
    owners = [recordings[n] for n in owner.tolist()]
    names = [one.utterance for one in owners]
    if options.segment is not None:
        names = [f"{name}_s{n}" for name, n in zip(names, segment.tolist(), strict=True)]
    sessions = [one.session for one in owners]
    speakers = [one.speaker for one in owners]
    known = None if None in sessions else sessions
    embeddings = Embeddings(
        vectors,
        speakers,
        names,
        known,
        encoder=loaded.fingerprint,
        contents=_contents(recordings, digests, owner, segment),
    )
    return Embedded(embeddings, float(seconds.sum()), failures, remarks, loaded.name, sounds)


def _contents(
    recordings: Sequence[Recording], digests: Sequence[str], owner: IntArray, segment: IntArray
) -> list[int]:
    """A number of each row from the bytes of its file, and from which piece of that it is."""
    contents = []
    for n, piece in zip(owner.tolist(), segment.tolist(), strict=True):
        cut = cut_of(recordings[n].path)[1:]
        heard = hashlib.sha256(f"{digests[n]} {cut} {piece}".encode())
        contents.append(int(heard.hexdigest()[:16], 16))
    return contents


def forget(parts: str | os.PathLike[str]) -> None:
    """Remove the folder ``parts`` of a run whose result has been written."""
    shutil.rmtree(parts, ignore_errors=True)


READERS = 4
"""Threads that read files beside a device: more of them keep it waiting for the interpreter."""
_threads = lru_cache(maxsize=1)(ThreadPoolExecutor)
_Read = str | tuple[tuple[float, ...], str, list[Float32Array]]
"""What a recording sounds like, remarks and pieces of it; or the line of its failure."""
_Shared = tuple[tuple[str, ...], tuple[str, ...], Extraction, str]
"""What all shards need, and what names a run: the files as they are, options, the encoder."""


@dataclass(frozen=True, repr=False)
class _Given:
    """An encoder, or its name for other processes: a job is named alike in all cases. Beside a
    device ``readers`` are the threads that read files; ``onward`` says that the next shard follows.
    """

    encoder: str | Encoder
    readers: int
    onward: bool
    begun: dict[Range, list[Future[_Read]]] = field(default_factory=dict)

    def read(self, paths: Sequence[str], rows: Range, read: Callable[[str], _Read]) -> list[_Read]:
        """What is in the files of a shard; meanwhile those of the next one are read."""
        if not self.readers:
            return list(map(read, paths[slice(*rows)]))
        after = rows[1], min(2 * rows[1] - rows[0], len(paths))
        for some in (rows, after)[: 1 + self.onward]:
            if some not in self.begun:
                pool = _threads(self.readers)
                self.begun[some] = [pool.submit(read, path) for path in paths[slice(*some)]]
        return [one.result() for one in self.begun.pop(rows)]

    def __repr__(self) -> str:
        return "encoder"


@lru_cache(maxsize=1)
def _once(name: str, fingerprint: str, device: str) -> Encoder:
    """The encoder of a name, in a process that may outlive what the name stands for."""
    encoder = load_encoder(name, device=device)
    if encoder.fingerprint != fingerprint:
        raise InputError(f"encoder {name}: changed while it was used: run again")
    return encoder


def _embed_rows(given: _Given, xp: Xp, shared: _Shared, rows: Range) -> Arrays:
    """Vectors of some recordings with their pieces, sounds, failures and remarks."""
    paths, _, options, fingerprint = shared
    named = given.encoder
    device = getattr(xp, "device", "cpu")
    encoder = _once(named, fingerprint, device) if isinstance(named, str) else named
    owner: list[int] = []
    segments: list[int] = []
    pieces: list[Float32Array] = []
    failures: dict[int, str] = {}
    remarks: dict[int, str] = {}
    sounds = np.full((rows[1] - rows[0], len(fields(Sound))), np.nan)
    found = given.read(paths, rows, partial(_read, options, encoder.shortest))
    for n, one in enumerate(found, start=rows[0]):
        if isinstance(one, str):
            failures[n] = one
            continue
        sounds[n - rows[0]], remark, cut = one
        if remark:
            remarks[n] = f"{paths[n]}: {remark}"
        owner += [n] * len(cut)
        segments += range(len(cut))
        pieces += cut
    vectors, broken = _encoded(encoder, pieces)
    for piece, reason in broken.items():
        failures.setdefault(owner[piece], failure(paths[owner[piece]], reason))
    kept = [p for p in range(len(pieces)) if owner[p] not in failures]
    return {
        "vectors": np.stack([vectors[p] for p in kept]) if kept else np.zeros((0, 0), np.float32),
        "owner": np.array([owner[p] for p in kept], dtype=np.int64),
        "segment": np.array([segments[p] for p in kept], dtype=np.int64),
        "seconds": np.array([pieces[p].size / SAMPLE_RATE for p in kept]),
        "sounds": sounds,
        "failures": np.array(json.dumps(dict(sorted(failures.items())))),
        "remarks": np.array(json.dumps(remarks)),
    }


def _read(options: Extraction, shortest: int, path: str) -> _Read:
    try:
        audio = read_audio(path)
        cut = _pieces(audio.samples, options, shortest)
        return astuple(audio.sound), "; ".join(audio.remarks), cut
    except MissingExtra:
        raise
    except Exception as error:
        return failure(path, error)


def _encoded(
    encoder: Encoder, pieces: Sequence[Float32Array]
) -> tuple[dict[int, Float32Array], dict[int, InputError]]:
    """Vectors of all pieces at once; if one breaks the batch, of each on its own."""
    if not pieces:
        return {}, {}
    try:
        good = dict(enumerate(encoder.encode(pieces)))
    except Exception:
        good = {}
    broken: dict[int, InputError] = {}
    for n, piece in enumerate(pieces):
        try:
            if n not in good:
                good[n] = encoder.encode([piece])[0]
            if not np.isfinite(good[n]).all():
                raise InputError("the encoder gave a vector that is not finite")
        except InputError as error:
            broken[n] = error
        except Exception as error:
            broken[n] = InputError(failure("the encoder", error))
    return good, broken


def _pieces(samples: Float32Array, options: Extraction, shortest: int) -> list[Float32Array]:
    if options.trim:
        samples = without_pauses(samples)
    length = samples.size if options.segment is None else round(options.segment * SAMPLE_RATE)
    least = max(shortest, length if options.segment is not None else 0)
    if samples.size < least:
        raise InputError(
            f"too short: expected at least {least / SAMPLE_RATE:g} s,"
            f" found {samples.size / SAMPLE_RATE:g} s" + (" of speech" if options.trim else "")
        )
    count = samples.size // length
    count = count if options.most is None else min(count, options.most)
    return [samples[n * length : (n + 1) * length] for n in range(count)]


ENCODERS = ("campplus", "resemblyzer")
CONDITIONS = (
    *("original", "b2", "b2r", "b2r-again", "b2w", "b2w-again", "pooling", "pooling-again"),
    "restate",
)


def case_study(encoder: str = "campplus") -> dict[str, Embeddings]:
    """Embeddings of an ``encoder`` (campplus or resemblyzer) by condition: ``original``, ``b2``,
    two runs of ``b2r``, ``b2w`` and ``pooling``, and ``restate``.

    1,200 utterances of 60 AudioMNIST speakers, in the same order in every condition, with the
    columns gender, age, accent and room. Second runs (``-again``) have other keys; ``b2`` and
    ``restate`` have none.
    :func:`case_study_provenance` tells how they were made.
    """
    if encoder not in ENCODERS:
        raise InputError(f"case study: expected {' or '.join(ENCODERS)}, found {encoder}")
    arrays, people = _arrays(f"{encoder}.npz"), _people()
    return {name: _voices(arrays[name], people, encoder) for name in CONDITIONS}


def trained_case_study() -> dict[str, Embeddings]:
    """Embeddings of a CAM++ that was trained on speech protected with B2w, by condition:
    ``original``, the attacked run ``b2w``, and ``b2w-again``, the attacker's own.

    400 utterances of the 20 AudioMNIST speakers that it was not trained on, the same recordings as
    in :func:`case_study`; docs/case-study.md tells how it was trained.
    """
    arrays = _arrays("trained.npz")
    people = _people()[arrays["rows"]]
    return {name: _voices(arrays[name], people) for name in ("original", "b2w", "b2w-again")}


def case_study_provenance() -> dict[str, Any]:
    """Source, licence, tool version, seeds and hashes."""
    return dict(json.loads(_content("provenance.json")))


def _content(name: str) -> bytes:
    return resources.files("unmask.data").joinpath("case_study", name).read_bytes()


def case_study_subset() -> dict[str, Embeddings]:
    """CAM++ embeddings of the first utterances of every speaker, of all safeguards that make audio:
    those of :func:`case_study`, and ``b1`` (two runs) and ``pitch``.

    Fewer than the case study has, the same in every condition: those whose utility was measured.
    """
    whole, arrays, people = case_study(), _arrays("subset.npz"), _people()
    each = len(arrays["b1"]) // whole["original"].n_speakers
    first = people.select(pl.int_range(pl.len()).over("speaker") < each).to_series()
    some = {n: voices.select(first.to_numpy()) for n, voices in whole.items() if n[:4] != "pool"}
    more = {name: _voices(one, people.filter(first), ENCODERS[0]) for name, one in arrays.items()}
    return some | more


def _people() -> pl.DataFrame:
    return pl.read_csv(io.BytesIO(_content("people.csv")), infer_schema=False)


def _arrays(name: str) -> dict[str, Any]:
    with np.load(io.BytesIO(_content(name)), allow_pickle=False) as arrays:
        return dict(arrays)


def _voices(vectors: Any, people: pl.DataFrame, encoder: str = "") -> Embeddings:
    return Embeddings(
        vectors.astype(np.float32),
        people["speaker"],
        people["utterance"],
        columns={name: people[name] for name in ("gender", "age", "accent", "room")},
        encoder=WEIGHTS[encoder].fingerprint if encoder else "",
    )
