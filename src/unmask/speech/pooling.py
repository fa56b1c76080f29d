"""Pseudo-voices by pooling, the idea of the B1 baseline: at embedding level, without audio; and as
audio, WORLD in place of B1's neural vocoder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from unmask._extras import MissingExtra
from unmask.base import FloatArray, IntArray, length_normalised
from unmask.errors import InputError
from unmask.estimate import Notice
from unmask.run import Arrays, Range, Xp, part, ranges_of, run, store, text_lines
from unmask.scoring import average_groups
from unmask.speech.audio import SAMPLE_RATE, failure, file_workers, read_audio, write_audio
from unmask.speech.corpus import Recording, first_of_each
from unmask.speech.embedding import embed
from unmask.speech.safeguards import Protected, keyed
from unmask.speech.vocoding import (
    Voice,
    analysed,
    mean_voice,
    moments,
    moved,
    synthesised,
    voice_of,
)
from unmask.trials import Embeddings

LEVELS = ("speaker", "utterance")
B1 = "b1"
WHAT = "selection of B1, WORLD in place of its neural vocoder"
FARTHEST, AVERAGE = 200, 100
MOST_SECONDS, MOST_RECORDINGS = 5.0, 4
"""Of each recording, and of how many of a speaker, a voice is learnt."""


def pool_voices(
    embeddings: Embeddings,
    pool: Embeddings,
    *,
    farthest: int = FARTHEST,
    average: int = AVERAGE,
    level: str = "speaker",
    variation: bool = True,
    attribute: str | None = "gender",
    seed: int = 0,
) -> Embeddings:
    """Replace each speaker's vector by the mean of random ones among the farthest of a pool.

    ``embeddings`` are protected with voices of ``pool``, drawn by ``seed``. For a speaker
    (``level="speaker"``) or for every utterance: take the ``farthest`` vectors of the pool by
    cosine that share the ``attribute`` (a column of both sets, ``None`` for the whole pool), draw
    ``average`` of them without replacement, and average them, all length-normalised. ``variation``
    adds what each utterance differs from its speaker's mean, so that the utterances of a
    pseudo-speaker differ as those of the speaker did; without it they are all the same vector. No
    speaker of the pool may be one of those protected.
    """
    if level not in LEVELS:
        raise InputError(f"level: expected {' or '.join(LEVELS)}, found {level}")
    speakers = embeddings.speakers.to_series()
    _check(speakers, pool.speakers.to_series(), farthest, average)
    vectors = length_normalised(np.asarray(embeddings.vectors, dtype=np.float64))
    _, first, dense = np.unique(embeddings.speakers.codes, return_index=True, return_inverse=True)
    means = np.zeros((first.size, vectors.shape[1]))
    np.add.at(means, dense, vectors)
    means /= np.bincount(dense)[:, None]
    kinds, pool_kinds = _kinds(embeddings, attribute, "embeddings"), _kinds(pool, attribute, "pool")
    mixed = np.flatnonzero(kinds != kinds[first][dense])
    if mixed.size:
        raise InputError(
            "embeddings", f"one {attribute} per speaker", f"several for {speakers[int(mixed[0])]}"
        )
    pool_vectors = length_normalised(np.asarray(pool.vectors, dtype=np.float64))
    voices = {kind: pool_vectors[pool_kinds == kind] for kind in np.unique(kinds).tolist()}
    for kind, rows in voices.items():
        if len(rows) < farthest:
            which = f" with {attribute} {kind}" if attribute else ""
            raise InputError("pool", f"at least {farthest} vectors{which}", len(rows))

    of_speaker = level == "speaker"
    drawn = []
    for row in first.tolist() if of_speaker else range(len(vectors)):
        known = voices[str(kinds[row])]
        vector = length_normalised(means[dense[row]][None])[0] if of_speaker else vectors[row]
        name = speakers[row] if of_speaker else f"{speakers[row]}\0{row}"
        drawn.append(known[_drawn(known, vector, farthest, average, seed, name)].mean(axis=0))
    pseudo = np.stack(drawn)[dense] if of_speaker else np.stack(drawn)
    result = pseudo + vectors - means[dense] if variation else pseudo
    return replace(embeddings, vectors=result.astype(embeddings.vectors.dtype), source=None)


def _check(own: Iterable[str], pool: Iterable[str], farthest: int, average: int) -> None:
    if not 1 <= average <= farthest:
        raise InputError("pooling", "1 ≤ average ≤ farthest", f"{average} and {farthest}")
    shared = set(own) & set(pool)
    if shared:
        raise InputError(
            f"pool: speaker {min(shared)} is also among those to protect ({len(shared)} shared)"
        )


def _drawn(
    voices: FloatArray, vector: FloatArray, farthest: int, average: int, seed: int, name: str
) -> IntArray:
    """Rows of ``average`` random ones among the ``farthest`` of unit ``voices`` by cosine."""
    far = np.argsort(voices @ vector, kind="stable")[:farthest]
    return np.asarray(keyed(seed, name).choice(far, average, replace=False))


def _kinds(embeddings: Embeddings, attribute: str | None, what: str) -> npt.NDArray[np.str_]:
    """The attribute of every vector; the same where there is none."""
    if attribute is None:
        return np.full(len(embeddings), "")
    if attribute not in embeddings.columns:
        raise InputError(f"{what}: expected a column {attribute}, found none")
    return np.array(embeddings.columns[attribute].to_series().to_list(), dtype=np.str_)


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
    name: ClassVar[str] = B1

    def __repr__(self) -> str:
        return f"PooledVoices({store.digest(self.voices)})"

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
        names = ["pool", "farthest", "average", "encoder", *(["seed"] if key else [])]
        return {"method": B1, "what": WHAT, **{name: getattr(self, name) for name in names}}


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
    own_speakers, pool_speakers = ([one.speaker for one in some] for some in (recordings, pool))
    _check(own_speakers, pool_speakers, farthest, average)
    own_some, pool_some = _first(recordings), _first(pool)
    with part(0, 4):
        own_vectors = _speaker_vectors(own_some, encoder, None)
    with part(1, 4):
        pool_vectors = _speaker_vectors(pool_some, encoder, embeddings)
    with part(2, 4):
        own = _voices(own_some)
    with part(3, 4):
        known = _voices(pool_some)
    names = [name for name in pool_vectors if name in known]
    voices, sizes = {}, []
    for speaker, vector in own_vectors.items():
        alike = [n for n in names if _gender(gender, n) == _gender(gender, speaker)]
        if len(alike) < 2:
            raise InputError("pool", f"voices of the gender of {speaker}", len(alike))
        far = min(farthest, max(len(alike) // 2, 1))
        few = max(round(far * average / farthest), 1)
        sizes.append((far, few, len(alike)))
        candidates = np.stack([pool_vectors[n] for n in alike])
        rows = _drawn(candidates, vector, far, few, seed, speaker)
        voices[speaker] = (own[speaker], mean_voice([known[alike[row]] for row in rows.tolist()]))
    far, few, count = min(sizes)
    notices = []
    if far < farthest:
        sentence = (
            f"the pool has {count} voices of one kind: {few} of the {far} farthest are averaged in"
            f" place of {average} of {farthest}"
        )
        notices.append(Notice("small-pool", B1, sentence))
    if gender is None:
        notices.append(Notice("no-gender", B1, "voices are drawn from the pool whatever gender"))
    return PooledVoices(voices, len(names), far, few, encoder, seed, tuple(notices))


def read_gender(path: str | Path) -> dict[str, str]:
    """Gender of each speaker: the first two columns of a text file, such as Kaldi's spk2gender.

    Columns are separated by blanks, tabs, commas or bars; lines that begin with ``;`` or ``#`` and
    a header are left out.
    """
    gender: dict[str, str] = {}
    for number, line in enumerate(text_lines(path), 1):
        words = re.split(r"[\s,|]+", line.strip())
        if not words[0] or line.lstrip()[0] in ";#" or (number == 1 and "gender" in words[1:2]):
            continue
        if len(words) < 2:
            raise InputError(f"{path}, line {number}: expected a speaker and a gender")
        if gender.setdefault(words[0], words[1].lower()) != words[1].lower():
            raise InputError(f"{path}, line {number}: a second gender of {words[0]}")
    return gender


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
        result = embed(recordings, encoder)
        if result.embeddings is None or result.failures:
            raise InputError(result.failures[0] if result.failures else "pool: no recordings")
        embeddings = result.embeddings
    wanted, ids = {recording.speaker for recording in recordings}, embeddings.speakers
    means = average_groups(embeddings.vectors, ids.codes)
    known = dict(zip(ids.present.to_list(), means, strict=True))
    missing = sorted(wanted - known.keys())
    if missing:
        raise InputError("pool", "an embedding of every speaker", f"none of {missing[0]}")
    return {name: known[name] for name in sorted(wanted)}


def _first(recordings: Sequence[Recording]) -> tuple[Recording, ...]:
    """At most so many recordings of each speaker, in the order given."""
    rows = first_of_each((recording.speaker for recording in recordings), MOST_RECORDINGS)
    return tuple(recordings[row] for row in rows)


def _voices(recordings: Sequence[Recording]) -> dict[str, Voice]:
    files = tuple((str(recording.path), recording.digest) for recording in recordings)
    sums: dict[str, FloatArray] = {}
    with file_workers(alone=len(files) < 2):
        results = run(_measured, files, ranges_of(len(files), 1))
        for recording, result in zip(recordings, results, strict=True):
            if "failure" in result:
                raise InputError(str(result["failure"]))
            sums[recording.speaker] = sums.get(recording.speaker, 0.0) + result["moments"]
    voices = {}
    for one in recordings:
        if (voice := voice_of(sums[one.speaker])) is None:
            raise InputError(f"{one.path}: expected voiced speech of {one.speaker}, found none")
        voices[one.speaker] = voice
    return voices


def _measured(xp: Xp, files: tuple[tuple[str, str], ...], rows: Range) -> Arrays:
    path, _ = files[rows[0]]
    try:
        samples = read_audio(path).samples[: round(MOST_SECONDS * SAMPLE_RATE)]
        return {"moments": moments(analysed(samples))}
    except MissingExtra:
        raise
    except Exception as error:
        return {"failure": np.array(failure(path, error))}
