"""Pooled voices as audio: the selection of B1, WORLD in place of its neural vocoder."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from unmask.base import FloatArray, length_normalised
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.run import Arrays, Range, Xp, part, ranges_of, run, text_lines
from unmask.speech.audio import SAMPLE_RATE, file_workers, read_audio, unexpected, write_audio
from unmask.speech.corpus import Recording
from unmask.speech.embedding import embed
from unmask.speech.pooling import chosen_voices
from unmask.speech.safeguards import Protected
from unmask.speech.world import Sums, Voice, analysed, mean_voice, moved, synthesised
from unmask.trials import Embeddings

B1 = "b1"
WHAT = "selection of B1, WORLD in place of its neural vocoder"
FARTHEST, AVERAGE = 200, 100
MOST_SECONDS, MOST_RECORDINGS = 5.0, 4
"""Of each recording, and of how many of a speaker, a voice is learnt."""


@dataclass(frozen=True, eq=False, repr=False)
class PooledVoices:
    """Every speaker gets a pseudo-voice: the middle of voices drawn from a pool (B1's selection).

    Made by :func:`pooled_voices`. ``voices`` holds, by speaker, the statistics of the speaker's own
    voice and those it is moved to; ``pool`` counts the speakers drawn from. Who knows the
    seed, the pool and the names knows the pseudo-voices: keep the seed secret.
    """

    voices: Mapping[str, tuple[Voice, Voice]]
    pool: int
    farthest: int
    average: int
    encoder: str
    seed: int
    notices: tuple[Notice, ...] = ()

    @property
    def name(self) -> str:
        return B1

    def __repr__(self) -> str:
        total = hashlib.sha256()
        for speaker, (own, pseudo) in sorted(self.voices.items()):
            total.update(speaker.encode())
            for voice in (own, pseudo):
                total.update(np.array(voice.log_f0).tobytes() + voice.mean.tobytes())
                total.update(voice.spread.tobytes() + voice.aperiodicity.tobytes())
        return f"PooledVoices({total.hexdigest()[:16]})"

    def protect(self, recording: Recording, output: Path) -> Protected:
        """Write the recording in its speaker's pseudo-voice, 16 kHz mono."""
        if recording.speaker not in self.voices:
            raise InputError(f"{recording.path}: no pseudo-voice of speaker {recording.speaker}")
        audio = read_audio(recording.path)
        own, pseudo = self.voices[recording.speaker]
        made = synthesised(moved(analysed(audio.samples), own, pseudo), audio.samples)
        write_audio(output, made.samples)
        return Protected(audio.seconds, made.guarded_db, audio.remarks)

    def describe(self, *, key: bool = False) -> dict[str, object]:
        """What was done; the seed only where ``key`` asks for it."""
        known: dict[str, object] = {
            "method": self.name,
            "what": WHAT,
            "pool": self.pool,
            "farthest": self.farthest,
            "average": self.average,
            "encoder": self.encoder,
        }
        return known | ({"seed": self.seed} if key else {})


def pooled_voices(
    recordings: Sequence[Recording],
    pool: Sequence[Recording],
    *,
    gender: Mapping[str, str] | None = None,
    embeddings: Embeddings | None = None,
    encoder: str = "campplus",
    farthest: int = FARTHEST,
    average: int = AVERAGE,
    seed: int = 0,
) -> PooledVoices:
    """Choose a pseudo-voice for every speaker of ``recordings`` from the speakers of a ``pool``.

    As B1 does: the mean embedding of a speaker (``encoder``) is compared with those of the pool's
    speakers of the same ``gender``, given by speaker name for both sides, or with all where it is
    None; of the ``farthest`` by cosine ``average`` are drawn by ``seed`` and the speaker's name.
    The pseudo-voice is the middle of theirs: mean and spread of ln F0 and of the cepstrum, warp,
    aperiodicity. ``embeddings`` are those of the pool, by the same encoder, where they are known.
    Where a gender has fewer than twice ``farthest`` speakers, the farther half is drawn from and
    the share of ``average`` is kept, with a notice. No speaker of the pool may be one of those
    protected.
    """
    if not 1 <= average <= farthest:
        raise InputError(
            f"pooling: expected 1 ≤ average ≤ farthest, found {average} and {farthest}"
        )
    shared = {one.speaker for one in recordings} & {one.speaker for one in pool}
    if shared:
        raise InputError(
            f"pool: speaker {min(shared)} is also among those to protect ({len(shared)} shared)"
        )
    with part(0, 4):
        own_vectors = _speaker_vectors(recordings, encoder, None)
    with part(1, 4):
        pool_vectors = _speaker_vectors(pool, encoder, embeddings)
    with part(2, 4):
        own = _voices(recordings)
    with part(3, 4):
        known = _voices(pool)
    names = [name for name in pool_vectors if name in known]
    notices = []
    voices, sizes = {}, []
    for speaker, vector in own_vectors.items():
        alike = [n for n in names if _gender(gender, n) == _gender(gender, speaker)]
        if len(alike) < 2:
            raise InputError(
                f"pool: expected voices of the gender of {speaker}, found {len(alike)}"
            )
        far = min(farthest, max(len(alike) // 2, 1))
        few = max(round(far * average / farthest), 1)
        sizes.append((far, few, len(alike)))
        rows = chosen_voices(
            np.stack([pool_vectors[n] for n in alike]),
            vector,
            farthest=far,
            average=few,
            seed=seed,
            name=speaker,
        )
        voices[speaker] = (own[speaker], mean_voice([known[alike[row]] for row in rows.tolist()]))
    smallest = min(sizes)
    if smallest[0] < farthest:
        notices.append(
            Notice(
                "small-pool",
                B1,
                f"the pool has {smallest[2]} voices of one kind: {smallest[1]} of the"
                f" {smallest[0]} farthest are averaged in place of {average} of {farthest}",
            )
        )
    if gender is None:
        notices.append(Notice("no-gender", B1, "voices are drawn from the pool whatever gender"))
    return PooledVoices(voices, len(names), smallest[0], smallest[1], encoder, seed, tuple(notices))


def read_gender(path: str | Path) -> dict[str, str]:
    """Gender of each speaker: the first two columns of a text file, such as Kaldi's spk2gender.

    Columns are separated by blanks, tabs, commas or bars; lines that begin with ``;`` or ``#`` and
    a header are left out.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text_lines(path), 1):
        words = re.split(r"[\s,|]+", line.strip())
        if not words[0] or line.lstrip()[0] in ";#" or (number == 1 and "gender" in words[1:2]):
            continue
        if len(words) < 2:
            raise InputError(f"{path}, line {number}: expected a speaker and a gender")
        if found.setdefault(words[0], words[1].lower()) != words[1].lower():
            raise InputError(f"{path}, line {number}: a second gender of {words[0]}")
    return found


def _gender(gender: Mapping[str, str] | None, speaker: str) -> str:
    if gender is None:
        return ""
    if speaker not in gender:
        raise InputError(f"gender: expected that of every speaker, found none of {speaker}")
    return gender[speaker].lower()


def _speaker_vectors(
    recordings: Sequence[Recording], encoder: str, embeddings: Embeddings | None
) -> dict[str, FloatArray]:
    """The mean direction of each speaker's recordings."""
    if embeddings is None:
        result = embed(_some(recordings), encoder)
        if result.embeddings is None or result.failures:
            raise InputError(result.failures[0] if result.failures else "pool: no recordings")
        embeddings = result.embeddings
    wanted = {one.speaker for one in recordings}
    vectors = length_normalised(np.asarray(embeddings.vectors, dtype=np.float64))
    speakers = np.array(embeddings.speakers.to_series().to_list())
    missing = sorted(wanted - set(speakers.tolist()))
    if missing:
        raise InputError(
            f"pool: expected an embedding of every speaker, found none of {missing[0]}"
        )
    return {
        name: length_normalised(vectors[speakers == name].mean(axis=0)[None])[0]
        for name in sorted(wanted)
    }


def _some(recordings: Sequence[Recording]) -> list[Recording]:
    """At most so many recordings of each speaker, in the order given."""
    taken: dict[str, int] = {}
    chosen = []
    for one in recordings:
        taken[one.speaker] = taken.get(one.speaker, 0) + 1
        if taken[one.speaker] <= MOST_RECORDINGS:
            chosen.append(one)
    return chosen


@dataclass(frozen=True)
class _Shared:
    paths: tuple[str, ...]


def _voices(recordings: Sequence[Recording]) -> dict[str, Voice]:
    """The voice of each speaker from some recordings."""
    chosen = _some(recordings)
    shared = _Shared(tuple(str(one.path) for one in chosen))
    sums: dict[str, list[Sums]] = {}
    with file_workers(alone=len(chosen) < 2):
        for one, found in zip(
            chosen, run(partial(_measured), shared, ranges_of(len(chosen), 1)), strict=True
        ):
            if "failure" in found:
                raise InputError(str(found["failure"]))
            sums.setdefault(one.speaker, []).append(
                Sums(found["count"], found["first"], found["second"])
            )
    voices = {}
    for speaker, parts in sums.items():
        voice = Sums.joined(parts).voice()
        if voice is None:
            first = next(one for one in chosen if one.speaker == speaker)
            raise InputError(f"{first.path}: expected voiced speech of {speaker}, found none")
        voices[speaker] = voice
    return voices


def _measured(xp: Xp, shared: _Shared, rows: Range) -> Arrays:
    path = shared.paths[rows[0]]
    try:
        samples = read_audio(path).samples[: round(MOST_SECONDS * SAMPLE_RATE)]
        sums = Sums.of(analysed(samples))
    except InputError as error:
        return {"failure": np.array(str(error))}
    except Exception as error:
        return {"failure": np.array(unexpected(path, error))}
    return {"count": sums.count, "first": sums.first, "second": sums.second}
