"""The risks from scores alone, where every enrolled speaker was compared with every recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import (
    BoolArray,
    FloatArray,
    Groups,
    IntArray,
    Sampling,
    as_array,
    as_numbers,
    paired_interval,
    reject_nan,
)
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval, Parameter
from unmask.privacy.attack import NEGATED, PLAIN, Reading
from unmask.privacy.legal.conversations import TIE, LegalProtocol, as_counts
from unmask.privacy.legal.curve import BOTH_SIDES, SCORE, mean_variance, risk_interval
from unmask.privacy.legal.isolating import both_sides
from unmask.privacy.legal.isolating_kernel import (
    Attempts,
    GivenScores,
    broken_ties_of_scores,
    single_out_all,
)
from unmask.privacy.legal.linking import Above, Ranks, ranks_of
from unmask.trials import Scores, share

_LEAST = 2
_NOT_ASKED = "no replicates were asked for"
PAIRED = "speaker,paired score"


def count_above_in_scores(
    scores: npt.ArrayLike, true_column: npt.ArrayLike, *, matches: npt.ArrayLike | None = None
) -> Above:
    """The same counts from given ``scores``, test speakers × enrolment speakers.

    ``true_column[i]`` is the enrolment column of test speaker i; a pair where ``matches`` is False
    cannot be chosen.
    """
    matrix = as_array(scores, "scores")
    if matrix.ndim != 2 or matrix.shape[1] < 2 or not matrix.size:
        wanted = "a matrix of test speakers × at least 2 enrolment speakers"
        raise InputError("scores", wanted, f"shape {matrix.shape}")
    true = np.asarray(true_column)
    if true.shape != (len(matrix),) or true.dtype.kind not in "iu":
        actual = f"shape {true.shape} of {true.dtype}"
        raise InputError("true_column", f"{len(matrix)} column numbers", actual)
    outside = (true < 0) | (true >= matrix.shape[1])
    if outside.any():
        raise InputError(
            f"true_column: {int(outside.sum())} of {true.size} lie outside the"
            f" {matrix.shape[1]} enrolment columns, the first at index {int(outside.argmax())}"
        )
    allowed = None if matches is None else _matching(matches, matrix)
    at_or_above = np.empty(len(matrix), dtype=np.int64)
    above = np.empty(len(matrix), dtype=np.int64)
    others = matrix.shape[1] - 1
    step = max(1, (1 << 22) // matrix.shape[1])
    blocks = [slice(start, start + step) for start in range(0, len(matrix), step)]
    tolerance = TIE * max(_largest(np.asarray(matrix[rows], dtype=np.float64)) for rows in blocks)
    for rows in blocks:
        part = np.asarray(matrix[rows], dtype=np.float64)
        reject_nan(part.reshape(-1), "pair")
        column = true[rows, None].astype(np.int64)
        own = np.take_along_axis(part, column, axis=1)
        can_be_chosen = np.ones(part.shape, dtype=bool) if allowed is None else allowed[rows]
        reaches = (part >= own - tolerance) & can_be_chosen
        exceeds = (part > own + tolerance) & can_be_chosen
        at_or_above[rows] = reaches.sum(axis=1) - 1
        above[rows] = exceeds.sum(axis=1)
        # Who cannot be chosen is not linked, and ties with nobody.
        is_ruled_out = ~np.take_along_axis(can_be_chosen, column, axis=1)[:, 0]
        at_or_above[rows][is_ruled_out] = others
        above[rows][is_ruled_out] = others
    return Above(at_or_above, above, others, tolerance=tolerance)


def _largest(scores: FloatArray) -> float:
    """The largest absolute score that is finite."""
    return float(np.abs(scores[np.isfinite(scores)]).max(initial=0.0))


def _matching(matches: npt.ArrayLike, scores: npt.NDArray[Any]) -> BoolArray:
    allowed = np.asarray(matches, dtype=bool)
    if allowed.shape != scores.shape:
        raise InputError(f"matches: expected shape {scores.shape}, found {allowed.shape}")
    return allowed


def ranks_from_scores(scores: npt.ArrayLike, true_column: npt.ArrayLike, *, seed: int = 0) -> Ranks:
    """Ranks of the true enrolment column, from ``scores`` of test speakers × enrolment speakers.

    ``true_column[i]`` is the enrolment column of test speaker i; ``seed`` draws the intervals.
    """
    above = count_above_in_scores(scores, true_column)
    how = Sampling(seed=seed)
    return ranks_of(above.above + 1, above.others + 1, tied=above.tied, resampling=how)


def linkability_from_scores(
    scores: npt.ArrayLike,
    true_column: npt.ArrayLike,
    *,
    counts: npt.ArrayLike,
    matches: npt.ArrayLike | None = None,
) -> FloatArray:
    """Exact Linkability (eq. 3 and 4) from the scores of test speakers with enrolled ones.

    Where others tie with the true speaker, within 1e-6 of the largest absolute score, the outcome
    is the success of guessing among them.

    Parameters
    ----------
    scores
        A row for each test speaker, a column for each enrolled one.
    true_column
        The column of each test speaker.
    counts
        Numbers N' of enrolled speakers to choose from.
    matches
        Side information: a pair where it is False cannot be chosen.

    Returns
    -------
    numpy.ndarray
        The probability of a link for every N', over all lists that hold the true speaker.

    Examples
    --------
    >>> import unmask as um
    >>> scores = [[0.9, 0.1, 0.3], [0.5, 0.4, 0.2]]
    >>> um.linkability_from_scores(scores, [0, 1], counts=[2, 3])
    array([0.75, 0.5 ])
    """
    above = count_above_in_scores(scores, true_column, matches=matches)
    sizes = as_counts(counts, speakers=above.others + 1, least=1, where="enrolment")
    return np.asarray(above.outcomes(sizes).mean(axis=0))


def singling_out_from_scores(
    scores: npt.ArrayLike,
    enrol_speaker: npt.ArrayLike,
    test_speaker: npt.ArrayLike,
    *,
    counts: npt.ArrayLike,
    folds: int = LegalProtocol.folds,
    draws: int = LegalProtocol.draws,
    seed: int = 0,
    matches: npt.ArrayLike | None = None,
) -> FloatArray:
    """Singling Out for every N in ``counts`` from enrolment speakers × test conversations.

    ``enrol_speaker`` and ``test_speaker`` are codes 0, 1, …, of rows and columns of ``scores``;
    each speaker needs at least two conversations. ``folds`` and ``draws`` are those of
    :func:`singling_out`, drawn with ``seed``, which also breaks ties. ``matches`` is side
    information: a pair where it is False cannot satisfy the predicate.
    """
    matrix = as_numbers(scores, "scores")
    rows, columns = np.asarray(enrol_speaker), np.asarray(test_speaker)
    if matrix.ndim != 2 or matrix.shape != (rows.size, columns.size) or not matrix.size:
        wanted = (
            f"a matrix of enrolment speakers × test conversations ({rows.size} × {columns.size})"
        )
        raise InputError("scores", wanted, f"shape {matrix.shape}")
    reject_nan(matrix.reshape(-1), "pair")
    if matches is not None:
        matrix = np.where(_matching(matches, matrix), matrix, -np.inf)
    order = np.argsort(columns, kind="stable")
    names, owner = np.unique(columns[order], return_inverse=True)
    absent = ~np.isin(rows, names)
    if absent.any():
        raise InputError("enrolment speakers", "every one in test", f"{absent.sum()} absent")
    population = Groups(owner)
    few = population.counts < 2
    if few.any():
        actual = f"{few.sum()} with one (first: {names[few][0]})"
        raise InputError("test speakers", "at least 2 conversations each", actual)
    sizes = as_counts(counts, speakers=len(names), least=2, where="test")
    whose, protocol = np.searchsorted(names, rows), LegalProtocol(folds=folds, draws=draws)
    attempts = Attempts.of(population, whose, sizes, protocol, np.random.SeedSequence(seed))
    untied = broken_ties_of_scores(matrix[:, order], seed)
    outcome = single_out_all(GivenScores(attempts, untied))
    return np.asarray(outcome.success[0].mean(axis=0))


def matrix_risks(scores: Scores, **drawn: Any) -> dict[str, tuple[Estimate, ...]]:
    """Linkability and Singling Out of each system of ``scores``; nothing of those that are not a
    matrix of enrolled speakers × recordings.

    A recording is linked where its own speaker scores above every other enrolled one (eq. 3 and 4
    of Vauquier 2025; tied ones are guessed among); recordings of people who are not enrolled are
    left out. Singling Out is that of :func:`singling_out`, one recording a conversation, among all
    speakers with two recordings or more, enrolled or not; it is left out where these are fewer than
    two. The score or its negation counts, whichever gives more. ``drawn`` are ``level``,
    ``replicates`` (no interval without), and ``seed``, which draws the folds of Singling Out.
    """
    matrix = _matrix(scores)
    if matrix is None:
        return {}
    order, place, whose = matrix
    how = Sampling(**drawn)
    return {
        system: (
            _linked(values[order], place, how, scores.digest),
            *_isolated(values[order], place, whose, how, scores.digest),
        )
        for system, values in scores.systems.items()
    }


def why_no_matrix(scores: Scores) -> str | None:
    """Why a list of trials has no Linkability: it is no matrix of enrolled speakers × recordings;
    None where it is one.
    """
    if _matrix(scores) is not None:
        return None
    if scores.enrol is None or scores.test is None or not scores.has_speakers:
        return "the speakers of its trials are not known"
    models, recordings = scores.enrol.n_unique, scores.test.n_unique
    if models < _LEAST:
        return f"it enrols {models:,} speaker{'s' if models > 1 else ''}, of whom two are needed"
    if len(scores) < models * recordings:
        return (
            f"it compares {len(scores):,} of the {models * recordings:,} pairs of {models:,}"
            f" enrolled models and {recordings:,} recordings, of which all are needed"
        )
    if scores.enrol_speaker is not None and scores.enrol_speaker.n_unique < models:
        return "it enrols several models of a speaker"
    return "nobody who is tested is enrolled"


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
    pair = recording * models + model
    if models < _LEAST or not np.array_equal(np.sort(pair), np.arange(models * recordings)):
        return None
    square = np.argsort(pair).astype(np.int64).reshape(recordings, models)
    speaker = who[square[0]]
    if len(np.unique(speaker)) < models:
        return None
    column = np.full(int(max(who.max(), whose.max())) + 1, -1)
    column[speaker] = np.arange(models)
    owner = whose[square[:, 0]].astype(np.int64)
    return (square, column[owner], owner) if (column[owner] >= 0).any() else None


def linkability_difference(
    scores: Scores, first: str, second: str, **drawn: Any
) -> tuple[Estimate, Estimate, Estimate] | None:
    """Linkability of two systems of ``scores`` as of :func:`matrix_risks`, and how much more the
    ``second`` has, paired by speaker; None where the trials are no matrix.

    Each is read as it is or negated, whichever gives more. ``drawn`` are ``level``, ``replicates``
    (none: no interval) and ``seed``.
    """
    matrix = _matrix(scores)
    if matrix is None:
        return None
    order, place, _ = matrix
    how, ends = Sampling(**drawn), None
    values = [scores.scores(name)[order] for name in (first, second)]
    one, two = (_linked(own, place, how, scores.digest) for own in values)
    shares = [max(_linked_shares(own, place).values(), key=np.mean) for own in values]
    if how.replicates > 0 and len(shares[0]) > 1:
        limits = paired_interval(*shares, level=how.level)
        ends = Interval(*limits, how.level, PAIRED, 0, how.seed)
    why = "" if ends else "one speaker only" if how.replicates > 0 else _NOT_ASKED
    made = replace(one, value=float(two.value) - float(one.value), interval=ends, chance=0.0)
    params = {**one.params, "variant": None, "of": f"{second} − {first}"}
    return one, two, replace(made, params=params, no_interval=why)


def _linked_shares(matrix: FloatArray, place: IntArray) -> dict[Reading, FloatArray]:
    """Share of each enrolled speaker's recordings that are linked, by the scores and negated."""
    true = place[place >= 0]
    owner = np.unique(true, return_inverse=True)[1]
    above = count_above_in_scores(matrix[place >= 0], true)
    return {
        variant: np.bincount(owner, counted.first) / np.bincount(owner)
        for variant, counted in ((PLAIN, above), (NEGATED, above.negated()))
    }


def _linked(matrix: FloatArray, place: IntArray, how: Sampling, trials: str) -> Estimate:
    shares = _linked_shares(matrix, place)
    risks = {name: (float(s.mean()), mean_variance(s[:, None])) for name, s in shares.items()}
    models = matrix.shape[1]
    params: dict[str, Parameter] = {"count": models, "length": 1, "draws": "exact"}
    n = {"speakers": len(shares[PLAIN]), "recordings": int((place >= 0).sum())}
    made = _larger("linkability", risks, SCORE, n, params, how)
    return replace(made, chance=1 / models, trials=trials)


def _isolated(
    matrix: FloatArray, place: IntArray, whose: IntArray, how: Sampling, trials: str
) -> tuple[Estimate, ...]:
    kept = np.flatnonzero(np.bincount(whose)[whose] >= _LEAST)
    kept = kept[np.argsort(whose[kept], kind="stable")]
    names, first, owner = np.unique(whose[kept], return_index=True, return_inverse=True)
    column = place[kept[first]]
    enrolled = np.flatnonzero(column >= 0)
    if len(names) < _LEAST or not enrolled.size:
        return ()
    counts, seed = np.array([len(names)]), np.random.SeedSequence(how.seed)
    protocol = LegalProtocol()
    attempts = Attempts.of(Groups(owner), enrolled, counts, protocol, seed)
    given = broken_ties_of_scores(matrix[np.ix_(kept, column[enrolled])].T, how.seed)
    risks = {}
    for variant, signed in ((PLAIN, given), (NEGATED, -given)):
        outcome = single_out_all(GivenScores(attempts, signed))
        risks[variant] = float(outcome.success.mean()), both_sides(outcome, 0)
    params = {"count": len(names), "length": 1, "folds": protocol.folds, "draws": protocol.draws}
    n = {"speakers": len(enrolled), "recordings": len(kept)}
    made = _larger("singling_out", risks, BOTH_SIDES, n, params, how)
    return (replace(made, chance=float(np.exp(-1.0)), trials=trials),)


def _larger(
    metric: str,
    risks: Mapping[Reading, tuple[float, FloatArray]],
    method: str,
    n: dict[str, int],
    params: Mapping[str, Parameter],
    how: Sampling,
) -> Estimate:
    """The larger risk (and its variance) of the scores and of their negation, with its interval."""
    variant = max(risks, key=lambda name: risks[name][0])
    value, variance = risks[variant]
    made = Estimate(metric, value, "%", n=n, params={**params, "variant": variant})
    if how.replicates < 1:
        return replace(made, no_interval=_NOT_ASKED)
    low, high = risk_interval(np.array([value]), variance, n["speakers"], how)
    interval = Interval(float(low[0]), float(high[0]), how.level, method, 0, how.seed)
    return replace(made, interval=interval)
