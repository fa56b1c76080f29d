"""What a worst case cannot be told from, in one line each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from unmask.base import IntArray
from unmask.errors import InputError

LEAST_SPEAKERS = 3


def check_speakers(impostors: IntArray, target_names: Sequence[str]) -> None:
    """Enough targets, and enough impostors for each of them."""
    if len(target_names) < LEAST_SPEAKERS:
        raise InputError(f"targets: expected at least {LEAST_SPEAKERS}, found {len(target_names)}")
    fewest = int(impostors.argmin())
    if impostors[fewest] < LEAST_SPEAKERS:
        raise InputError(
            f"impostors: expected at least {LEAST_SPEAKERS} for every target,"
            f" found {impostors[fewest]} for {target_names[fewest]}"
        )


def check_single_scores(single: int, pairs: int, first: str) -> None:
    """No pair with one score; ``first`` names the first of those there are."""
    if single:
        raise InputError(
            f"pairs: {single} of {pairs} have one score, the first {first}: a mean over one score"
            " picks the very score that attacks (without_single_scores, skip_single or"
            " --skip-single leaves them out)"
        )


def checked_counts(
    counts: npt.ArrayLike, impostors: IntArray, target_names: Sequence[str]
) -> IntArray:
    """Whole counts from 1 to the fewest impostors that any target has."""
    values = as_counts(counts)
    fewest = int(impostors.argmin())
    if values.max() > impostors[fewest]:
        raise InputError(
            f"counts: expected at most {impostors[fewest]}, the number of impostors of target"
            f" {target_names[fewest]}, found {values.max()} (larger populations need extrapolate)"
        )
    return values


def as_counts(counts: npt.ArrayLike) -> IntArray:
    """Whole numbers of impostors of at least 1."""
    given = np.atleast_1d(np.asarray(counts, dtype=np.float64))
    if given.ndim != 1 or given.size == 0:
        raise InputError(f"counts: expected a list of numbers, found shape {given.shape}")
    bad = ~(np.isfinite(given) & (given >= 1) & (given == np.floor(given)))
    if bad.any():
        raise InputError(
            f"counts: expected whole numbers of at least 1, found {given[bad.argmax()]:g}"
        )
    return given.astype(np.int64)
