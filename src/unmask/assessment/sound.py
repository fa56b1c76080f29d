"""Whether what is compared can be: protected recordings beside their originals, encoders, runs.

A recording without speech is recognised by nobody, and neither is a vector of another encoder or
by an own run that is none, whatever the safeguard does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

import numpy as np

from unmask.assessment.config import ORIGINAL
from unmask.base import FloatArray, Vectors, quantile_t
from unmask.estimate import Notice
from unmask.privacy import NAMES_DOUBTED
from unmask.privacy.legal import half_by_content
from unmask.speech import SAMPLE_RATE
from unmask.trials import Embeddings, Sound

if TYPE_CHECKING:
    from unmask.assessment.runs import Speech

SOUND, ENCODER, RUN, REPEATED = "sound", "encoder-untold", "unlike-run", "repeated-vectors"
COMPARED = (SOUND, ENCODER, RUN, REPEATED, *NAMES_DOUBTED)
"""Codes of notices."""
RUN_ALIKE, RUN_LEVEL = 0.25, 1e-4
"""Share of what people are recognised by in one run that is too little in another run of the same
safeguard, and how improbable the difference must be among people.
"""
RUN_PEOPLE = 1000
"""Most people by whom two runs are compared."""
FEW = 3
"""Vectors of another utterance of the same set, up to which nothing is said."""
SHORTER, LONGER = 0.5, 2.0
"""Shares of the original's duration outside which a recording is too short or too long."""
QUIETER = 30.0
"""Decibels below the original from which on a recording is too quiet."""
SILENT, MORE_SILENT = 0.5, 0.25
"""Share of a recording whose silence is too much, and how much more than its original's it is."""
CLIPPED = 0.1
"""Share of clipped samples that is too much where the original has less than half of it."""
MANY = 0.05
"""Share of a set beyond which recordings that differ are told."""
_SAFEGUARDS = "safeguards."
_UNTOLD = (
    "the files do not say which encoder made their vectors ({}): those of two encoders would read"
    " as protected"
)
_UNLIKE = (
    "the attacker's own run{whose} does not look like a run of the same safeguard: {what} by"
    " {attacked:.2f} in the attacked run (cosine beyond that of other people), by {own:.2f} in the"
    " own one; who attacks with it may fail for that alone"
)
_HARDLY = "there is hardly any speech to recognise"
_ALONE = "a recogniser may fail for that alone"
_DIFFERING = {
    "shorter": "{recordings} protected recordings last {now[0]} (median), their originals {was[0]}:"
    f" {_HARDLY}",
    "longer": "{recordings} protected recordings last {now[0]} (median), their originals {was[0]}:"
    " they may not hold the same speech",
    "quieter": "{recordings} protected recordings have a level of {now[1]} (median), their"
    f" originals {{was[1]}}: {_HARDLY}",
    "silent": "{recordings} protected recordings are silent for {now[2]} of the time (median),"
    f" their originals for {{was[2]}}: {_HARDLY}",
    "clipped": "{recordings} protected recordings have {now[3]} of their samples clipped (median),"
    f" their originals {{was[3]}}: {_ALONE}",
    "rate": "{recordings} protected recordings have a rate of {now[4]} (median), their originals"
    f" {{was[4]}}: {_ALONE}",
}
Sounds = Mapping[str, FloatArray]
"""The fields of :class:`Sound` by utterance, NaN where it cannot be read."""


def medians(sounds: FloatArray) -> Sound:
    """What most of the recordings that could be read are like."""
    return Sound(*map(float, np.nanmedian(sounds, axis=0)))


SPELLED = ("Duration", "Level", "Silence", "Clipped", "Rate")


def spelled(sound: Sound) -> tuple[str, ...]:
    """The fields of :data:`SPELLED` with their units."""
    seconds, level, silent, clipped, rate = astuple(sound)
    duration = f"{seconds:.{2 if seconds < 1 else 1}f} s"
    shares = (f"{100 * silent:.0f} %", f"{100 * clipped:.0f} %")
    return duration, f"{level:.0f} dB".replace("-", "−"), *shares, f"{rate:,.0f} Hz"


def encoder_notices(read: Mapping[str, Embeddings]) -> Iterator[Notice]:
    """Which of several sets do not tell their encoder."""
    untold = [name.removeprefix(_SAFEGUARDS) for name, voices in read.items() if not voices.encoder]
    if untold and len(read) > 1:
        yield Notice(ENCODER, "", _UNTOLD.format(", ".join(untold)))


def sound_notices(sounds: Mapping[str, Sounds]) -> Iterator[Notice]:
    """In what many protected recordings of each set differ much from their own originals."""
    original = sounds.get(ORIGINAL, {})
    for name, own in sounds.items():
        if name != ORIGINAL:
            yield from _differences(name.removeprefix(_SAFEGUARDS), original, own)


def repeated_notices(read: Mapping[str, Embeddings], *, name_them: bool) -> Iterator[Notice]:
    """In which sets several utterances have one vector."""
    for name, voices in read.items():
        _, of, count = np.unique(voices.marks, return_inverse=True, return_counts=True)
        again = len(of) - len(count)
        if again > FEW and voices.dimension > 1 and voices.utterances is not None:
            pair = np.flatnonzero(of == of[(count[of] > 1).argmax()])[:2]
            first = " and ".join(voices.utterances.decode(int(row)) for row in pair)
            some = f"{again:,} of {len(voices):,}"
            words = f"{some} vectors are those of another utterance of the same set"
            words += f" (first: {first})" if name_them else ""
            yield Notice(REPEATED, name.removeprefix(_SAFEGUARDS), words)


def run_notices(speech: Mapping[str, Speech]) -> Iterator[Notice]:
    """Which runs of the attacker's own do not keep of people what the attacked run keeps."""
    for name, spoken in speech.items():
        for whose, held in (("", spoken.known), (" of training people", spoken.learnt)):
            some = [held.get("own"), held.get("original")]
            if all(x is not None and x.dimension == spoken.protected.dimension for x in some):
                attacked = _kept(spoken.known["original"], spoken.protected)
                own = _kept(held["original"], held["own"])
                for what, here, there in zip(_KEPT, attacked, own, strict=True):
                    if _unlike(here, there):
                        means = {"attacked": here.mean(), "own": there.mean()}
                        yield Notice(RUN, name, _UNLIKE.format(whose=whose, what=what, **means))
                        break


_KEPT = (
    "recordings of one person resemble each other",
    "voices resemble their originals",
    "the likeness of people to each other resembles that of their originals",
)


def _kept(original: Embeddings, run: Embeddings) -> tuple[FloatArray, FloatArray, FloatArray]:
    """By person, how much more alike than others, as cosines about the mean, two halves of their
    recordings are, their voice and its original, and both voices' likeness to everybody else.
    """
    people = sorted({*original.speakers.present} & {*run.speakers.present})[:RUN_PEOPLE]
    first = half_by_content(run, 0, sessions=False)
    halves = _centred(_voices(run, people, first), _voices(run, people, ~first))
    voices = _centred(_voices(original, people), _voices(run, people))
    likeness = [side @ side.T - np.eye(len(side)) for side in voices]
    return _beyond(*halves), _beyond(*voices), _beyond(*likeness)


def _voices(speech: Embeddings, people: Sequence[str], rows: Any = True) -> FloatArray:
    """The mean voice of each of some people in some rows, zeros where somebody has none."""
    at = {name: n for n, name in enumerate(people)}
    of = np.array([at.get(name, -1) for name in speech.speakers.names])[speech.speakers.codes]
    sums, known = np.zeros((len(people), speech.dimension)), (of >= 0) & rows
    np.add.at(sums, of[known], _unit(speech.vectors[known]))
    return _unit(sums)


def _centred(*sides: FloatArray) -> list[FloatArray]:
    """Voices of those whom every side has, about the mean of each."""
    known = np.all([side.any(axis=1) for side in sides], axis=0)
    kept = [side[known] for side in sides]
    return [_unit(side - side.mean(axis=0)) for side in kept] if known.any() else kept


def _beyond(left: FloatArray, right: FloatArray) -> FloatArray:
    """How much closer than to others each row of one side is to the same row of the other."""
    alike = _unit(left) @ _unit(right).T
    own = np.diagonal(alike)
    return np.asarray(own - (alike.sum(axis=1) - own) / max(len(alike) - 1, 1))


def _unit(vectors: Vectors) -> FloatArray:
    """Rows of length one; a row of zeros stays."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1.0))


def _unlike(one: FloatArray, other: FloatArray) -> bool:
    """Whether of two means the smaller is but a share of the larger, by more than chance."""
    few = min(len(one), len(other))
    if few < 3:
        return False
    small, large = sorted((float(one.mean()), float(other.mean())), key=abs)
    spread = np.sqrt(one.var(ddof=1) / len(one) + other.var(ddof=1) / len(other))
    apart = abs(large - small) > quantile_t(few, 1 - RUN_LEVEL) * spread
    return bool(apart and small / large < RUN_ALIKE)


def _differences(name: str, original: Sounds, protected: Sounds) -> Iterator[Notice]:
    """Duration, level, silence, clipping, and the rate so far as encoders hear."""
    both = [one for one in protected if one in original]
    if not both:
        return
    old, new = (np.array([side[one] for one in both]) for side in (original, protected))
    read = ~np.isnan(old + new).any(axis=-1)
    old, new = old[read], new[read]
    fields: Any = Sound
    was, now = fields(*old.T), fields(*new.T)
    differing = {
        "shorter": now.seconds < SHORTER * was.seconds,
        "longer": now.seconds > LONGER * was.seconds,
        "quieter": now.level <= was.level - QUIETER,
        "silent": (now.silent > SILENT) & (now.silent - was.silent > MORE_SILENT),
        "clipped": (now.clipped > CLIPPED) & (was.clipped < CLIPPED / 2),
        "rate": np.minimum(now.rate, SAMPLE_RATE) != np.minimum(was.rate, SAMPLE_RATE),
    }
    for code, differs in differing.items():
        count = int(differs.sum())
        if count > MANY * len(old):
            some = f"all {count:,}" if count == len(old) else f"{count:,} of {len(old):,}"
            before, after = (spelled(medians(side[differs])) for side in (old, new))
            words = _DIFFERING[code].format(recordings=some, was=before, now=after)
            yield Notice(SOUND, name, words)
