"""Linkability and Singling Out from scores alone, where every enrolled speaker was compared with
every recording.
"""

from __future__ import annotations

import numpy as np

from unmask.base import FloatArray, IntArray
from unmask.estimate import Estimate, Interval, Parameter
from unmask.privacy.legal.curve import (
    BOTH_SIDES,
    NEGATED,
    PLAIN,
    SCORE,
    Resampling,
    mean_variance,
    risk_interval,
)
from unmask.privacy.legal.isolation import Population
from unmask.privacy.legal.links import count_above_in_scores, exact_linkability
from unmask.privacy.legal.predicates import GivenScores, Protocol, single_out_all
from unmask.privacy.legal.singling import both_sides
from unmask.trials import Scores, share

_LEAST = 2
_FOLDS, _DRAWS = 10, 5
Value = tuple[float, str, float]
"""A risk, the reading of the scores that reaches it, and the variance of the risk."""


def matrix_risks(
    scores: Scores, *, level: float = 0.95, replicates: int = 1000, seed: int = 0
) -> dict[str, tuple[Estimate, ...]]:
    """Linkability and Singling Out of each system of ``scores``; nothing of those that are not a
    matrix of enrolled speakers × recordings.

    A recording is linked where its own speaker scores above every other enrolled one (eq. 3 and 4
    of Vauquier 2025; a tie is a failure); recordings of people who are not enrolled are left out.
    Singling Out is that of :func:`singling_out`, one recording a conversation, among all speakers
    with two recordings or more, enrolled or not; it is left out where these are fewer than two. The
    score or its negation counts, whichever gives more. Intervals have ``level``, none without
    ``replicates``; ``seed`` draws the folds of Singling Out.
    """
    found = _matrix(scores)
    if found is None:
        return {}
    order, place, whose = found
    how = Resampling(level, replicates, seed)
    return {
        system: (
            *_linked(values[order], place, how, scores.digest),
            *_isolated(values[order], place, whose, how, scores.digest),
        )
        for system, values in scores.systems.items()
    }


def _matrix(scores: Scores) -> tuple[IntArray, IntArray, IntArray] | None:
    """Rows of the trials as recordings × enrolled speakers; for each recording the column of its
    own speaker, −1 where that is nobody's, and the code of the speaker; None where the trials are
    no such matrix.
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
    column = np.full(int(max(who.max(), whose.max())) + 1, -1)
    column[speaker] = np.arange(models)
    owner = whose[square[:, 0]]
    return (square, column[owner], owner) if (column[owner] >= 0).any() else None


def _linked(
    matrix: FloatArray, place: IntArray, how: Resampling, trials: str
) -> tuple[Estimate, ...]:
    """The larger Linkability of the scores and of their negation, with its interval."""
    kept = place >= 0
    true = place[kept]
    owner = np.unique(true, return_inverse=True)[1]
    people = np.bincount(owner)
    above = count_above_in_scores(matrix[kept], true)
    count = above.others + 1

    def of(variant: str) -> Value:
        counted = above if variant == PLAIN else above.negated()
        outcome = exact_linkability(counted.at_or_above, above.others, np.array([count]))[:, 0]
        mean = np.bincount(owner, outcome) / people
        return float(mean.mean()), variant, float(mean_variance(mean[:, None])[0])

    worst = max(map(of, (PLAIN, NEGATED)), key=lambda risk: risk[0])
    params: dict[str, Parameter] = {"count": count, "length": 1, "draws": "exact"}
    n = {"speakers": len(people), "recordings": len(true)}
    return (_estimate("linkability", worst, SCORE, 1 / count, n, params, how, trials),)


def _isolated(
    matrix: FloatArray, place: IntArray, whose: IntArray, how: Resampling, trials: str
) -> tuple[Estimate, ...]:
    """The larger Singling Out of the scores and of their negation, with its interval."""
    kept = np.flatnonzero(np.bincount(whose)[whose] >= _LEAST)
    kept = kept[np.argsort(whose[kept], kind="stable")]
    if not kept.size:
        return ()
    names, first, owner = np.unique(whose[kept], return_index=True, return_inverse=True)
    column = place[kept[first]]
    enrolled = np.flatnonzero(column >= 0)
    if len(names) < _LEAST or not enrolled.size:
        return ()
    protocol = Protocol.of(
        Population.of(owner),
        enrolled,
        np.array([len(names)]),
        folds=_FOLDS,
        draws=_DRAWS,
        seed=np.random.SeedSequence(how.seed),
    )
    given = matrix[np.ix_(kept, column[enrolled])].T

    def of(variant: str) -> Value:
        outcome = single_out_all(GivenScores(protocol, given if variant == PLAIN else -given))
        return float(outcome.success.mean()), variant, float(both_sides(outcome, 0, protocol)[0])

    worst = max(map(of, (PLAIN, NEGATED)), key=lambda risk: risk[0])
    params: dict[str, Parameter] = {"count": len(names), "length": 1}
    params |= {"folds": _FOLDS, "draws": _DRAWS}
    n = {"speakers": len(enrolled), "recordings": len(kept)}
    chance = float(np.exp(-1.0))
    return (_estimate("singling_out", worst, BOTH_SIDES, chance, n, params, how, trials),)


def _estimate(
    metric: str,
    risk: Value,
    method: str,
    chance: float,
    n: dict[str, int],
    params: dict[str, Parameter],
    how: Resampling,
    trials: str,
) -> Estimate:
    value, variant, variance = risk
    low, high = risk_interval(np.array([value]), np.array([variance]), n["speakers"], how)
    interval = Interval(float(low[0]), float(high[0]), how.level, method, how.replicates, how.seed)
    asked = how.replicates > 0
    return Estimate(
        metric,
        value,
        "%",
        interval if asked else None,
        chance,
        n,
        {**params, "variant": variant},
        trials,
        no_interval="" if asked else "no replicates were asked for",
    )
