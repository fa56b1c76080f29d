"""Which speakers train and which are kept apart; what training data must have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from unmask.errors import InputError
from unmask.speech.corpus import Recording
from unmask.speech.training.recipe import Recipe

_SHARE, _FEWEST, _MOST, _ENOUGH = 0.05, 2, 50, 20
_VALIDATION = 3


def split(
    recordings: Sequence[Recording],
    recipe: Recipe,
    validation: Sequence[Recording] | None = None,
) -> tuple[tuple[Recording, ...], tuple[Recording, ...]]:
    """Recordings to train on and recordings of speakers kept apart.

    Those of ``validation``, or of speakers drawn with the seed of the recipe among those that have
    at least two recordings.
    """
    counts = Counter(one.speaker for one in recordings)
    if validation is not None:
        both = sorted(counts.keys() & {one.speaker for one in validation})
        if both:
            raise InputError(
                f"validation: expected other speakers than those trained on, found {both[0]}"
                f" ({len(both)} in both)"
            )
        apart = {one.speaker for one in validation}
        kept = tuple(validation)
    else:
        apart = _drawn(counts, recipe)
        kept = tuple(one for one in recordings if one.speaker in apart)
    training = tuple(one for one in recordings if one.speaker not in apart)
    speakers = len({one.speaker for one in training})
    if speakers < 2:
        raise InputError(f"training: expected at least 2 speakers, found {speakers}")
    if kept:
        _check_pairs(kept)
    return training, kept


def _drawn(counts: Counter[str], recipe: Recipe) -> set[str]:
    wanted = recipe.held_out
    if wanted is None:
        usual = min(_MOST, max(_FEWEST, round(_SHARE * len(counts))))
        wanted = usual if len(counts) >= _ENOUGH else 0
    if not wanted:
        return set()
    several = sorted(name for name, count in counts.items() if count > 1)
    if wanted < _FEWEST or wanted > min(len(several), len(counts) - 2):
        raise InputError(
            f"held_out: expected 0 or {_FEWEST} to"
            f" {max(_FEWEST, min(len(several), len(counts) - 2))} of {len(counts)} speakers,"
            f" {len(several)} of which have two recordings, found {wanted}"
        )
    generator = np.random.default_rng([recipe.seed, _VALIDATION])
    return {several[n] for n in generator.permutation(len(several))[:wanted]}


def _check_pairs(kept: Sequence[Recording]) -> None:
    counts = Counter(one.speaker for one in kept)
    if len(counts) < _FEWEST or max(counts.values()) < 2:
        raise InputError(
            "validation: expected two speakers and a speaker with two recordings, found"
            f" {len(counts)} and at most {max(counts.values())}"
        )


def remarks_on(
    recordings: Sequence[Recording], sizes: Sequence[int], recipe: Recipe
) -> tuple[str, ...]:
    """What a reader should know about the training recordings; ``sizes`` are their samples."""
    counts = Counter(one.speaker for one in recordings)
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
