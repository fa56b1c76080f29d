"""Linkability from scores alone, where every enrolled speaker was compared with every recording."""

from __future__ import annotations

import numpy as np

from unmask.base import FloatArray, IntArray
from unmask.estimate import Estimate, Interval
from unmask.privacy.legal.curve import (
    NEGATED,
    PLAIN,
    SCORE,
    Resampling,
    mean_variance,
    risk_interval,
)
from unmask.privacy.legal.links import count_above_in_scores, exact_linkability
from unmask.trials import Scores, share

_LEAST = 2


def matrix_linkability(
    scores: Scores, *, level: float = 0.95, replicates: int = 1000, seed: int = 0
) -> dict[str, Estimate]:
    """Linkability among all enrolled speakers, of each system of ``scores``; none of those that are
    not a matrix of enrolled speakers × recordings.

    A recording is linked where its own speaker scores above every other (eq. 3 and 4 of Vauquier
    2025; a tie is a failure). The value is the mean over speakers of the mean over their
    recordings, under the score or its negation, whichever links more. Recordings of people who are
    not enrolled are left out. Intervals have ``level``, none without ``replicates``; ``seed``
    stands in their signature.
    """
    found = _matrix(scores)
    if found is None:
        return {}
    order, true, owner = found
    how = Resampling(level, replicates, seed)
    return {
        system: _estimate(values[order], true, owner, how, scores.digest)
        for system, values in scores.systems.items()
    }


def _matrix(scores: Scores) -> tuple[IntArray, IntArray, IntArray] | None:
    """Rows of the trials as recordings × enrolled speakers, the column of each recording's own
    speaker, and whose it is; None where the trials are no such matrix.
    """
    if scores.enrol is None or scores.test is None or not scores.has_speakers:
        return None
    assert scores.enrol_speaker is not None
    assert scores.test_speaker is not None
    who, whose = (ids.codes for ids in share(scores.enrol_speaker, scores.test_speaker))
    _, model = np.unique(scores.enrol.codes, return_inverse=True)
    _, recording = np.unique(scores.test.codes, return_inverse=True)
    models, recordings = int(model.max()) + 1, int(recording.max()) + 1
    if models < _LEAST or models * recordings != len(scores):
        return None
    order = np.full(models * recordings, -1)
    order[recording * models + model] = np.arange(len(scores))
    if (order < 0).any():
        return None
    square = order.reshape(recordings, models)
    speaker = who[square[0]]
    if len(np.unique(speaker)) < models:
        return None
    place = np.full(int(max(who.max(), whose.max())) + 1, -1)
    place[speaker] = np.arange(models)
    true = place[whose[square[:, 0]]]
    kept = true >= 0
    if not kept.any():
        return None
    owner = np.unique(true[kept], return_inverse=True)[1]
    return square[kept], true[kept], owner


def _estimate(
    matrix: FloatArray, true: IntArray, owner: IntArray, how: Resampling, trials: str
) -> Estimate:
    """The larger Linkability of the scores and of their negation, with its interval."""
    above = count_above_in_scores(matrix, true)
    count = above.others + 1
    sizes = np.array([count])
    people = np.bincount(owner)
    best: tuple[float, str, FloatArray] | None = None
    for variant, counted in ((PLAIN, above), (NEGATED, above.negated())):
        outcome = exact_linkability(counted.at_or_above, above.others, sizes)[:, 0]
        mean = np.bincount(owner, outcome) / people
        if best is None or mean.mean() > best[0]:
            best = float(mean.mean()), variant, mean[:, None]
    assert best is not None
    value, variant, means = best
    low, high = risk_interval(np.array([value]), mean_variance(means), len(people), how)
    interval = Interval(float(low[0]), float(high[0]), how.level, SCORE, how.replicates, how.seed)
    asked = how.replicates > 0
    return Estimate(
        "linkability",
        value,
        "%",
        interval if asked else None,
        1 / count,
        {"speakers": len(people), "recordings": len(true)},
        {"count": count, "length": 1, "draws": "exact", "variant": variant},
        trials,
        no_interval="" if asked else "no replicates were asked for",
    )
