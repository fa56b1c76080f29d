"""Calibration distortion between two runs of a safeguard, from embeddings or lists."""

from __future__ import annotations

import numpy as np

from unmask.arrays import FloatArray
from unmask.errors import InputError
from unmask.privacy.similarity_align import aligned
from unmask.privacy.similarity_lists import speaker_trials
from unmask.privacy.similarity_pairs import EmbeddingPairs, Pairs, prepared
from unmask.privacy.zebra import CalibrationDistortion, calibration_distortion
from unmask.scoring import Backend, resolve
from unmask.trials import Embeddings, Scores

MOST_PAIRS = 50_000_000


def cross_scores(
    original: Embeddings, protected: Embeddings, *, backend: Backend | str = "cosine"
) -> tuple[FloatArray, FloatArray]:
    """(target, nontarget) scores of every original against every protected segment but its own."""
    segments, order = aligned(original, protected)
    if len(segments) ** 2 > MOST_PAIRS:
        raise InputError(
            f"{len(segments) ** 2:,} comparisons are more than calibration takes at once"
            f" ({MOST_PAIRS:,}): choose fewer segments"
        )
    scorer = resolve(backend)
    source = EmbeddingPairs.of(
        scorer,
        prepared(scorer, original, segments.order),
        prepared(scorer, protected, order[segments.order]),
    )
    pairs = Pairs(source, segments)
    rows = 0, len(segments)
    target = [tile.class_scores(target=True) for tile in pairs.band(rows)]
    other = [tile.class_scores(target=False) for tile in pairs.tiles(rows)]
    return np.concatenate(target), np.concatenate(other).astype(np.float64)


def calibration_distortion_from_embeddings(
    original: Embeddings,
    first: Embeddings,
    second: Embeddings,
    *,
    backend: Backend | str = "cosine",
    method: str = "linear",
    laplace: bool = True,
) -> CalibrationDistortion:
    """C_ECE of the OP comparisons of the second run, calibrated on those of the first."""
    runs = [cross_scores(original, run, backend=backend) for run in (first, second)]
    return calibration_distortion(runs[0], runs[1], method=method, laplace=laplace)


def calibration_distortion_from_scores(
    first: Scores,
    second: Scores,
    *,
    system: str | None = None,
    method: str = "linear",
    laplace: bool = True,
) -> CalibrationDistortion:
    """The same from two lists of OP trials with speakers on both sides."""
    runs = [speaker_trials(scores, "op", system=system) for scores in (first, second)]
    return calibration_distortion(runs[0], runs[1], method=method, laplace=laplace)
