"""Whether what is compared can be: protected recordings beside their originals, and encoders.

A recording without speech is recognised by nobody, and neither is a vector of another encoder,
whatever the safeguard does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple
from typing import Any

import numpy as np

from unmask.base import FloatArray
from unmask.estimate import Notice
from unmask.report.config import ORIGINAL
from unmask.report.section import note
from unmask.speech import SAMPLE_RATE
from unmask.trials import Embeddings, Sound

SOUND, ENCODER = "sound", "encoder-untold"
"""Codes of notices."""
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
    untold = [name.removeprefix(_SAFEGUARDS) for name, one in read.items() if not one.encoder]
    if untold and len(read) > 1:
        yield Notice(ENCODER, "", note("no_encoder", names=", ".join(untold)))


def sound_notices(sounds: Mapping[str, Sounds]) -> Iterator[Notice]:
    """In what many protected recordings of each set differ much from their own originals."""
    original = sounds.get(ORIGINAL, {})
    for name, own in sounds.items():
        if name != ORIGINAL:
            yield from _differences(name.removeprefix(_SAFEGUARDS), original, own)


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
            words = note(f"sound_{code}", recordings=some, was=before, now=after)
            yield Notice(SOUND, name, words)
