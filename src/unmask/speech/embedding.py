"""From recordings to embeddings, in shards that survive a kill."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from unmask._version import __version__
from unmask.errors import InputError
from unmask.speech.audio import SAMPLE_RATE, read_audio, unexpected
from unmask.speech.corpus import Recording
from unmask.speech.encoders import Encoder, Function, load_encoder
from unmask.speech.features import Float32Array, without_pauses
from unmask.speech.parallel import cores, run_tasks
from unmask.speech.shards import Shard, read_shard, write_shard
from unmask.trials import Embeddings


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
    """Embeddings of all recordings that could be read, and a line for each that could not."""

    embeddings: Embeddings | None
    durations: tuple[float, ...]
    failures: tuple[str, ...]
    remarks: tuple[str, ...]
    encoder: str
    resumed: int

    @property
    def seconds(self) -> float:
        """Seconds of audio embedded."""
        return float(sum(self.durations))


def embed(
    recordings: Sequence[Recording],
    encoder: str | Function | Encoder = "campplus",
    *,
    extraction: Extraction | None = None,
    parts: str | os.PathLike[str] | None = None,
    shard: int = 64,
    workers: int | None = None,
    device: str = "cpu",
    progress: Callable[[int, int], None] | None = None,
) -> Embedded:
    """Embed recordings, one shard of them at a time; the result never depends on ``workers``.

    With ``parts``, finished shards are kept in that folder and a second call with the same
    recordings (path, size, time of change), encoder and options goes on where the first stopped;
    shards of anything else are removed first. An encoder given as an object runs in this process.
    """
    options = extraction or Extraction()
    loaded = load_encoder(encoder, device=device)
    count = 1 if device != "cpu" or not isinstance(encoder, str) else workers or cores()
    groups = [tuple(recordings[n : n + shard]) for n in range(0, len(recordings), shard)]
    folder = None if parts is None else Path(parts)
    finished = _resume(folder, _plan(recordings, loaded, options, shard), len(groups))
    waiting = [n for n in range(len(groups)) if n not in finished]
    done = sum(len(groups[n]) for n in finished)
    given = encoder if count > 1 and len(waiting) > 1 and isinstance(encoder, str) else loaded
    work = run_tasks(
        _embed_shard,
        [groups[n] for n in waiting],
        workers=count,
        prepare=_prepare,
        arguments=(given, device, options),
    )
    resumed = len(finished)
    for position, result in work:
        index = waiting[position]
        if folder is not None:
            write_shard(_shard_path(folder, index), result)
        finished[index] = result
        done += len(groups[index])
        if progress is not None:
            progress(done, len(recordings))
    return _joined(recordings, [finished[n] for n in range(len(groups))], loaded.name, resumed)


def forget(parts: str | os.PathLike[str]) -> None:
    """Remove the shards of a run whose result has been written."""
    shutil.rmtree(parts, ignore_errors=True)


def _plan(
    recordings: Sequence[Recording], encoder: Encoder, options: Extraction, shard: int
) -> str:
    rows = []
    for one in recordings:
        try:
            state = one.path.stat()
            rows.append([str(one.path), one.utterance, state.st_size, state.st_mtime_ns])
        except OSError:
            rows.append([str(one.path), one.utterance, -1, -1])
    plan = [__version__, encoder.fingerprint, asdict(options), shard, rows]
    return hashlib.sha256(json.dumps(plan).encode()).hexdigest()


def _resume(folder: Path | None, plan: str, count: int) -> dict[int, Shard]:
    if folder is None:
        return {}
    note = folder / "plan"
    try:
        if not note.is_file() or note.read_text(encoding="ascii").strip() != plan:
            if folder.exists() and not note.is_file() and any(folder.iterdir()):
                raise InputError(f"{folder}: expected a folder of shards, found other files")
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            note.write_text(plan + "\n", encoding="ascii")
        for leftover in folder.glob(".*.part"):
            leftover.unlink()
    except OSError as error:
        raise InputError(f"{folder}: cannot be used for shards: {error.strerror}") from None
    found = {n: _shard_path(folder, n) for n in range(count)}
    return {n: read_shard(path) for n, path in found.items() if path.is_file()}


def _shard_path(folder: Path, index: int) -> Path:
    return folder / f"{index:06d}.npz"


_state: dict[str, tuple[Encoder, Extraction]] = {}


def _prepare(encoder: str | Encoder, device: str, options: Extraction) -> None:
    _state["now"] = (load_encoder(encoder, device=device), options)


def _embed_shard(recordings: Sequence[Recording]) -> Shard:
    encoder, options = _state["now"]
    rows: list[int] = []
    segments: list[int] = []
    pieces: list[Float32Array] = []
    failures: dict[int, str] = {}
    remarks: dict[int, str] = {}
    for n, one in enumerate(recordings):
        try:
            audio = read_audio(one.path)
            cut = _pieces(audio.samples, options, encoder.shortest)
        except InputError as error:
            failures[n] = _named(one, error)
            continue
        except Exception as error:
            failures[n] = unexpected(one.path, error)
            continue
        if audio.remarks:
            remarks[n] = f"{one.path}: {'; '.join(audio.remarks)}"
        rows += [n] * len(cut)
        segments += range(len(cut))
        pieces += cut
    vectors, broken = _encoded(encoder, pieces)
    for piece, reason in broken.items():
        failures.setdefault(rows[piece], _named(recordings[rows[piece]], reason))
    kept = [p for p in range(len(pieces)) if rows[p] not in failures]
    return Shard(
        vectors=np.stack([vectors[p] for p in kept]) if kept else np.zeros((0, 0), np.float32),
        rows=np.array([rows[p] for p in kept], dtype=np.int64),
        segments=np.array([segments[p] for p in kept], dtype=np.int64),
        seconds=np.array([pieces[p].size / SAMPLE_RATE for p in kept]),
        size=len(recordings),
        segmented=options.segment is not None,
        failures=failures,
        remarks=remarks,
    )


def _encoded(
    encoder: Encoder, pieces: Sequence[Float32Array]
) -> tuple[dict[int, Float32Array], dict[int, InputError]]:
    """Vectors of all pieces at once; if one breaks the batch, of each on its own."""
    if not pieces:
        return {}, {}
    try:
        vectors = encoder.encode(pieces)
        good = dict(enumerate(vectors))
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
            broken[n] = InputError(unexpected("the encoder", error))
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


def _named(recording: Recording, error: InputError) -> str:
    text = str(error)
    return text if text.startswith(str(recording.path)) else f"{recording.path}: {text}"


def _joined(
    recordings: Sequence[Recording], shards: Sequence[Shard], encoder: str, resumed: int
) -> Embedded:
    offsets = np.cumsum([0, *(shard.size for shard in shards)])
    pairs = list(zip(offsets[:-1].tolist(), shards, strict=True))
    owners = [recordings[start + n] for start, shard in pairs for n in shard.rows.tolist()]
    durations = tuple(s for shard in shards for s in shard.seconds.tolist())
    names = [
        f"{recordings[start + n].utterance}_s{segment}"
        if shard.segmented
        else recordings[start + n].utterance
        for start, shard in pairs
        for n, segment in zip(shard.rows.tolist(), shard.segments.tolist(), strict=True)
    ]
    embeddings = None
    if owners:
        sessions = [one.session for one in owners]
        embeddings = Embeddings(
            np.concatenate([shard.vectors for shard in shards if len(shard.rows)]),
            [one.speaker for one in owners],
            names,
            None if None in sessions else sessions,
        )
    return Embedded(
        embeddings,
        durations,
        tuple(shard.failures[n] for shard in shards for n in sorted(shard.failures)),
        tuple(shard.remarks[n] for shard in shards for n in sorted(shard.remarks)),
        encoder,
        resumed,
    )
