"""Calibration distortion between two runs of a safeguard, from embeddings or lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unmask.errors import InputError
from unmask.privacy.similarity.align import aligned
from unmask.privacy.similarity.distortion_resample import RunScores, distortion_intervals
from unmask.privacy.similarity.intervals import NOT_ASKED, SAME
from unmask.privacy.similarity.lists import speaker_trials
from unmask.privacy.similarity.pairs import EmbeddingPairs, Pairs, prepared
from unmask.privacy.zebra.profiles import METHODS, CalibrationDistortion, calibration_distortion
from unmask.scoring import Backend, resolve
from unmask.trials import Embeddings, Scores

MOST_PAIRS = 50_000_000
INFINITE = "the value is infinite"


def cross_scores(
    original: Embeddings, protected: Embeddings, *, backend: Backend | str = "cosine"
) -> RunScores:
    """Scores of every original against every protected segment but its own, with the speakers."""
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
    target, other = (
        [
            (tile.class_scores(target=same), *tile.class_speakers(target=same))
            for tile in (pairs.band(rows) if same else pairs.tiles(rows))
        ]
        for same in (True, False)
    )
    own, others = (
        [np.concatenate(column) for column in zip(*parts, strict=True)] for parts in (target, other)
    )
    scores = (own[0].astype(np.float64), others[0].astype(np.float64))
    return RunScores(*scores, own[1], others[1], others[2], segments.speakers)


def calibration_distortion_from_embeddings(
    original: Embeddings,
    first: Embeddings,
    second: Embeddings,
    *,
    backend: Backend | str = "cosine",
    method: str = "linear",
    laplace: bool = True,
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> CalibrationDistortion:
    """C_ECE of the OP comparisons of the second run, calibrated on those of the first."""
    runs = [cross_scores(original, run, backend=backend) for run in (first, second)]
    return distortions(
        *runs, methods=[method], laplace=laplace, replicates=replicates, level=level, seed=seed
    )[0]


def calibration_distortion_from_scores(
    first: Scores,
    second: Scores,
    *,
    system: str | None = None,
    method: str = "linear",
    laplace: bool = True,
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> CalibrationDistortion:
    """The same from two lists of OP trials with speakers on both sides."""
    runs = speaker_trials({"first run": first, "second run": second}, system=system)
    return distortions(
        *runs, methods=[method], laplace=laplace, replicates=replicates, level=level, seed=seed
    )[0]


def distortions(
    first: RunScores,
    second: RunScores,
    *,
    methods: Sequence[str] = METHODS,
    laplace: bool = True,
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[CalibrationDistortion, ...]:
    """Every calibration of the second run by the first, with intervals over the speakers."""
    made = []
    for method in methods:
        found = calibration_distortion(first.pair, second.pair, method=method, laplace=laplace)
        intervals = distortion_intervals(
            first,
            second,
            (found.c_ece, found.cllr),
            method=method,
            laplace=laplace,
            replicates=replicates,
            level=level,
            seed=seed,
        )
        reason = (SAME if np.isfinite(found.c_ece) else INFINITE) if replicates else NOT_ASKED
        made.append(replace(found, intervals=intervals, no_interval=reason))
    return tuple(made)
