"""Training recordings: which speakers train and which are kept apart, and all of it decoded once
into 16-bit samples on disk, from which crops are cheap.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask import run
from unmask._extras import MissingExtra
from unmask.base import FloatArray, IntArray
from unmask.engine import Roc
from unmask.errors import InputError
from unmask.run import Arrays, Range, Xp
from unmask.speech.audio import SAMPLE_RATE, SUFFIXES, failure, file_workers, read_audio
from unmask.speech.corpus import Recording, first_of_each
from unmask.speech.encoders.card import Recipe

Int16Array = npt.NDArray[np.int16]
SHARD = 128
"""Recordings in one file of samples."""
_LEAST = 0.1
"""Seconds a recording must have to be of any use."""


@dataclass(frozen=True)
class Samples:
    """Decoded recordings: row r, of a recording at a speed, has ``sizes[r]`` samples from
    ``starts[r]`` on in file ``files[r]``; ``whole`` are all files as a tensor on a device.
    """

    shards: tuple[Int16Array, ...]
    files: IntArray
    starts: IntArray
    sizes: IntArray
    whole: Any = None

    def __len__(self) -> int:
        return len(self.sizes)

    def row(self, number: int) -> Int16Array:
        """All samples of a row."""
        start = int(self.starts[number])
        return self.shards[int(self.files[number])][start : start + int(self.sizes[number])]

    def crop(self, number: int, place: float, length: int) -> Int16Array:
        """``length`` samples from a ``place`` in [0, 1) on; a shorter row is repeated."""
        row = self.row(number)
        start = int(place * (max(len(row) - length, 0) + 1))
        return np.resize(row, length) if len(row) < length else row[start : start + length]

    def crops(self, rows: IntArray, places: FloatArray, length: int) -> Any:
        """A :meth:`crop` of each of some rows, (rows, length), cut by the device that has them."""
        if self.whole is None:
            every = zip(rows.tolist(), places.tolist(), strict=True)
            return np.stack([self.crop(row, place, length) for row, place in every])
        import torch

        before = np.cumsum([0, *(shard.size for shard in self.shards)])
        sizes = self.sizes[rows]
        first = np.floor(places * (np.maximum(sizes - length, 0) + 1)).astype(np.int64)
        first += before[self.files[rows]] + self.starts[rows]
        table = torch.from_numpy(np.stack([first, sizes])[..., None])
        start, size = table.to(self.whole.device, non_blocking=True)
        return self.whole[start + torch.arange(length, device=self.whole.device) % size]

    def near(self, device: Any, *, share: float = 0.25) -> Samples:
        """The same with a copy on a GPU, if that takes at most a share of its free memory."""
        import torch

        free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 0
        if 2 * int(self.sizes.sum()) > share * free:
            return self
        parts = [torch.from_numpy(np.array(shard)).to(device) for shard in self.shards]
        return replace(self, whole=torch.cat(parts))


@dataclass(frozen=True)
class Corpus:
    """Row r is spoken by ``speakers[labels[r]]``; ``failures``: lines of what was not read."""

    samples: Samples
    labels: IntArray
    speakers: tuple[str, ...]
    recordings: tuple[Recording, ...]
    failures: tuple[str, ...]
    digest: str

    @property
    def names(self) -> list[str]:
        """Who speaks, whatever the speed."""
        return sorted({recording.speaker for recording in self.recordings})

    @property
    def card(self) -> dict[str, Any]:
        """What a card says of the recordings."""
        size = len(self.recordings)
        return {"digest": self.digest, "recordings": size, "speaker_names": self.names}


def decode(recordings: Sequence[Recording], folder: Path, recipe: Recipe | None = None) -> Corpus:
    """Decode recordings, at the speeds of a recipe too, or use what an earlier run decoded."""
    speeds = recipe.speeds if recipe is not None else ()
    every = (1.0, *speeds)
    named = tuple((str(recording.path), recording.digest) for recording in recordings)
    folder = run.make_folder(folder / run.store.digest((named, every)))
    shared = (named, every, str(folder))
    ranges = run.ranges_of(len(recordings), SHARD)
    size = sum(file.stat().st_size for file in {one.file for one in recordings} if file.is_file())
    run.check_room(folder, size, "decoded recordings")
    with file_workers(alone=len(ranges) < 2, state=folder / "jobs"):
        parts = list(run.run(_decode_rows, shared, ranges))
    failures: dict[int, str] = {}
    shards: list[Int16Array] = []
    files, starts, sizes = [], [], []
    for rows, part in zip(ranges, parts, strict=True):
        failures |= {int(n): line for n, line in json.loads(str(part["failures"])).items()}
        flat = part["sizes"].reshape(-1)
        if flat.size:
            files.append(np.full(flat.size, len(shards)))
            starts.append(np.cumsum(flat) - flat)
            sizes.append(flat)
            shards.append(np.asarray(np.memmap(_file(folder, rows), dtype="<i2", mode="r")))
    kept = tuple(recording for n, recording in enumerate(recordings) if n not in failures)
    if not kept:
        line = failures[min(failures)] if failures else ""
        raise InputError(f"none of {len(recordings)} recordings could be read: {line}")
    names, codes = np.unique([recording.speaker for recording in kept], return_inverse=True)
    speakers, labels = names.tolist(), np.repeat(codes, len(every))
    if recipe is not None and recipe.speeds_are_speakers:
        labels = labels + len(speakers) * np.tile(np.arange(len(every)), len(kept))
        others = [f"{name} at speed {speed:g}" for speed in speeds for name in speakers]
        speakers = [*speakers, *others]
    samples = Samples(tuple(shards), *map(np.concatenate, (files, starts, sizes)))
    lines = tuple(failures[n] for n in sorted(failures))
    hashes = np.concatenate([part["hashes"] for part in parts]).reshape(-1, 32)
    # Names the samples of all recordings with their speakers, whatever the files are called.
    each = (f"{one.speaker}\0{row.tobytes().hex()}" for one, row in zip(kept, hashes, strict=True))
    digest = hashlib.sha256("\n".join(sorted(each)).encode()).hexdigest()
    return Corpus(samples, labels, tuple(speakers), kept, lines, digest)


_Shared = tuple[tuple[tuple[str, str], ...], tuple[float, ...], str]


def _decode_rows(xp: Xp, shared: _Shared, rows: Range) -> Arrays:
    """Write the samples of some recordings to one file; their sizes, hashes and failures."""
    files, speeds, folder = shared
    pieces: list[Int16Array] = []
    sizes: list[list[int]] = []
    hashes: list[bytes] = []
    failures: dict[int, str] = {}
    for n in range(*rows):
        path, _ = files[n]
        try:
            audio = read_audio(path)
            if audio.seconds < _LEAST:
                raise InputError("too short", f"at least {_LEAST:g} s", f"{audio.seconds:g} s")
            whole = [32768.0 * at_speed(audio.samples, speed) for speed in speeds]
            versions = [np.round(np.clip(one, -32768.0, 32767.0)).astype("<i2") for one in whole]
        except MissingExtra:
            raise
        except Exception as error:
            failures[n] = failure(path, error)
            continue
        pieces += versions
        sizes.append([version.size for version in versions])
        hashes.append(hashlib.sha256(versions[0].tobytes()).digest())
    joined = np.concatenate(pieces) if pieces else np.zeros(0, np.int16)
    run.write_whole(_file(folder, rows), joined.tobytes(), replace=True)
    return {
        "sizes": np.array(sizes, dtype=np.int64).reshape(-1, len(speeds)),
        "hashes": np.frombuffer(b"".join(hashes), dtype=np.uint8),
        "failures": np.array(json.dumps(failures)),
    }


def _file(folder: str | Path, rows: Range) -> Path:
    return Path(folder) / f"samples-{rows[0]:09d}.i16"


def at_speed(samples: npt.NDArray[np.float32], speed: float) -> npt.NDArray[np.float32]:
    """Samples played faster by a factor ``speed``: shorter, and higher by the same factor."""
    if speed == 1.0:
        return samples
    from scipy.signal import resample_poly

    ratio = Fraction(speed).limit_denominator(1000)
    return np.asarray(resample_poly(samples, ratio.denominator, ratio.numerator), np.float32)


def audio_files(folder: str | Path) -> tuple[Recording, ...]:
    """All audio files below a folder, of nobody: noise, impulse responses."""
    root = Path(folder)
    if not root.is_dir():
        raise InputError(f"{root}: no such folder")
    paths = [path for path in run.files_below(root) if path.suffix.lower() in SUFFIXES]
    if not paths:
        raise InputError(f"{root}: expected audio files, found none")
    return tuple(Recording(path, str(n), "") for n, path in enumerate(paths))


_SHARE, _FEWEST, _MOST, _ENOUGH = 0.05, 2, 50, 20
_VALIDATION = 3


def split(
    recordings: Sequence[Recording], recipe: Recipe, validation: Sequence[Recording] | None = None
) -> tuple[tuple[Recording, ...], tuple[Recording, ...]]:
    """Recordings to train on, and of speakers apart: ``validation``, or drawn with the seed."""
    counts = Counter(recording.speaker for recording in recordings)
    if validation is not None:
        both = sorted(counts.keys() & {recording.speaker for recording in validation})
        if both:
            raise InputError(
                f"validation: expected other speakers than those trained on, found {both[0]}"
                f" ({len(both)} in both)"
            )
        apart = {recording.speaker for recording in validation}
        kept = tuple(validation)
    else:
        apart = _drawn(counts, recipe)
        kept = tuple(recording for recording in recordings if recording.speaker in apart)
    training = tuple(recording for recording in recordings if recording.speaker not in apart)
    speakers = len({recording.speaker for recording in training})
    if speakers < 2:
        raise InputError(f"training: expected at least 2 speakers, found {speakers}")
    counts = Counter(recording.speaker for recording in kept)
    if kept and (len(counts) < _FEWEST or max(counts.values()) < 2):
        raise InputError(
            "validation: expected two speakers and a speaker with two recordings, found"
            f" {len(counts)} and at most {max(counts.values())}"
        )
    return training, kept


def _drawn(counts: Counter[str], recipe: Recipe) -> set[str]:
    wanted = recipe.held_out
    if wanted is None:
        usual = min(_MOST, max(_FEWEST, round(_SHARE * len(counts))))
        wanted = usual if len(counts) >= _ENOUGH else 0
    if not wanted:
        return set()
    several = sorted(name for name, count in counts.items() if count > 1)
    most = min(len(several), len(counts) - 2)
    if not _FEWEST <= wanted <= most:
        raise InputError(
            f"held_out: expected 0 or {_FEWEST} to {max(_FEWEST, most)} of {len(counts)} speakers,"
            f" {len(several)} of which have two recordings, found {wanted}"
        )
    generator = np.random.default_rng([recipe.seed, _VALIDATION])
    return {several[n] for n in generator.permutation(len(several))[:wanted]}


def remarks_on(corpus: Corpus, recipe: Recipe) -> tuple[str, ...]:
    """What a reader should know about the training recordings."""
    recordings, sizes = corpus.recordings, corpus.samples.sizes[:: 1 + len(recipe.speeds)].tolist()
    counts = Counter(recording.speaker for recording in recordings)
    single = sorted(name for name, count in counts.items() if count == 1)
    short = [one for one, size in zip(recordings, sizes, strict=True) if size < recipe.crop_samples]
    lines = []
    if single:
        lines.append(
            f"{len(single)} of {len(counts)} speakers have one recording ({single[0]} is the"
            " first): nothing teaches what changes between recordings of theirs"
        )
    if short and recipe.network != "ivector":
        lines.append(
            f"{len(short)} of {len(recordings)} recordings are shorter than a crop of"
            f" {recipe.crop:g} s ({short[0].path} is the first): they are repeated to fill it"
        )
    return tuple(lines)


MOST_RECORDINGS = 10
"""Recordings per speaker."""
MOST_SECONDS = 4
"""Seconds of a recording, from its beginning; a shorter one is repeated, for all to go at once."""


def equal_error_rate(vectors: npt.NDArray[np.float32], labels: IntArray) -> float:
    """EER of the cosine over all pairs of recordings; 0.5 of vectors that are not finite."""
    if not np.isfinite(vectors).all():
        return 0.5
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    first, second = np.triu_indices(len(unit), 1)
    scores = (unit @ unit.T)[first, second].astype(np.float64)
    same = labels[first] == labels[second]
    return Roc.from_scores(scores[same], scores[~same]).eer()


def some_of(corpus: Corpus) -> tuple[list[npt.NDArray[np.float32]], IntArray]:
    """Samples in [−1, 1] and speakers of the recordings that validate."""
    rows = first_of_each(corpus.labels.tolist(), MOST_RECORDINGS)
    length = min(MOST_SECONDS * SAMPLE_RATE, int(corpus.samples.sizes[rows].max()))
    crops = [corpus.samples.crop(row, 0.0, length) for row in rows]
    samples = [(crop / np.float32(32768.0)).astype(np.float32) for crop in crops]
    return samples, corpus.labels[rows]
