"""Linkability: is a protected voice closest to its own speaker among N'? (Vauquier 2025, 2.2)

For every test conversation it is counted how many enrolment speakers score at or above the true
one. Scores are inner products, computed in blocks in single precision. Where a score lies so close
to s(i,i) that rounding could decide, the pair is computed again in double precision, one pair at a
time: the counts are those of double precision, whatever the place and the size of the blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray, in_order, lazy, reject_nan
from unmask.errors import InputError
from unmask.estimate import Parameter
from unmask.privacy.legal.conversations import (
    MOST_CONVERSATIONS,
    EnrolLength,
    as_counts,
    locate,
    setting,
)
from unmask.privacy.legal.curve import (
    SCORE,
    Resampling,
    RiskCurve,
    mean_variance,
    one_speaker_note,
    recording_noise,
    risk_interval,
)
from unmask.privacy.legal.ranks import Ranks, ranks_of
from unmask.run import Arrays, Range, Xp, ranges_of, run
from unmask.scoring import Backend
from unmask.trials import Embeddings

Single = npt.NDArray[np.float32]
ROWS = 1280
_RECHECK = 1 << 16
_STRIP = 240
_DEVICE_SCORES = 1 << 28


@dataclass(frozen=True, eq=False)
class Above:
    """Of the ``others`` enrolment speakers j ≠ i, how many score at or above s(i,i), and above."""

    at_or_above: IntArray
    above: IntArray
    others: int

    def negated(self) -> Above:
        """The same counts for the negated score: −s(i,j) ≥ −s(i,i) where s(i,j) ≤ s(i,i)."""
        return Above(self.others - self.above, self.others - self.at_or_above, self.others)


def rounding(test: FloatArray, enrol: FloatArray) -> FloatArray:
    """Bound on the difference of two single-precision scores of each test vector from the truth.

    An inner product of d terms errs by at most (d + 2)·u·‖a‖·‖b‖ with u = 2⁻²⁴, rounding of the
    vectors to single precision included; a difference of two such scores by twice that.
    """
    longest = float(np.sqrt(np.einsum("ij,ij->i", enrol, enrol).max()))
    lengths = np.sqrt(np.einsum("ij,ij->i", test, test))
    return np.asarray(2 * (test.shape[1] + 4) * 2.0**-24 * lengths * longest)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Rows whose inner products are scores; ``true[i]`` is the row of ``enrol`` that belongs to
    test row i. With side information a pair whose codes differ cannot be chosen: it scores −inf.
    """

    test: FloatArray
    enrol: FloatArray
    true: IntArray
    test_side: IntArray | None = None
    enrol_side: IntArray | None = None

    @lazy
    def single(self) -> Single:
        """The enrolment rows in single precision."""
        return self.enrol.astype(np.float32)

    def scores(self, i: IntArray, j: IntArray) -> FloatArray:
        """Double-precision scores of pairs; equal vectors give equal scores, wherever they are."""
        scores = np.empty(i.size)
        for start in range(0, i.size, _RECHECK):
            part = slice(start, start + _RECHECK)
            scores[part] = (self.test[i[part]] * self.enrol[j[part]]).sum(axis=1)
        if self.test_side is None or self.enrol_side is None:
            return scores
        return np.where(self.test_side[i] == self.enrol_side[j], scores, -np.inf)

    def bounds(self, rows: Range) -> tuple[FloatArray, Single, Single]:
        """s(i,i) of some test rows, and between which bounds single precision cannot decide."""
        i = np.arange(*rows)
        own = self.scores(i, self.true[slice(*rows)])
        margin = rounding(self.test[slice(*rows)], self.enrol)
        return own, _outward(own - margin, own, -np.inf), _outward(own + margin, own, np.inf)

    def settled(
        self, rows: Range, own: FloatArray, above: IntArray, close: tuple[IntArray, IntArray]
    ) -> Arrays:
        """Counts of some test rows: those surely above, and what becomes of the pairs too close to
        call, each (number within the rows, enrolment row).
        """
        i, j = close
        other = j != self.true[rows[0] + i]
        i, j = i[other], j[other]
        scores = self.scores(rows[0] + i, j)
        above = above + np.bincount(i[scores > own[i]], minlength=own.size)
        equal = np.bincount(i[scores == own[i]], minlength=own.size)
        return {"at_or_above": above + equal, "above": above}


def count_above(comparison: Comparison, *, rows: int | None = None) -> Above:
    """Count over the score matrix ``test @ enrol.T`` without ever holding it.

    Counts of test rows do not depend on each other, so a task is a range of them; they are those
    of double precision, so all places give the same.
    """
    parts = list(run(count_rows, comparison, ranges_of(len(comparison.true), rows or ROWS)))
    return Above(
        np.concatenate([part["at_or_above"] for part in parts]),
        np.concatenate([part["above"] for part in parts]),
        len(comparison.enrol) - 1,
    )


def count_rows(xp: Xp, comparison: Comparison, rows: Range) -> Arrays:
    """Counts of a range of test rows; the pairs too close to call are settled on the host."""
    own, *bounds = comparison.bounds(rows)
    low, high = xp.put(bounds[0]), xp.put(bounds[1])
    test, enrol = xp.put(comparison.test[slice(*rows)].astype(np.float32)), comparison.single
    above = xp.zeros(own.size)
    close_i, close_j = [], []
    step = xp.chunk(_STRIP, _DEVICE_SCORES, own.size)
    for first, last in ranges_of(len(enrol), step):
        scores = xp.product(xp.put(enrol)[first:last], test)
        if comparison.test_side is not None and comparison.enrol_side is not None:
            codes = xp.put(comparison.enrol_side)[first:last, None]
            xp.fill(scores, codes != xp.put(comparison.test_side)[slice(*rows)], -np.inf)
        reaches, exceeds = scores >= low, scores > high
        reached, exceeded = xp.column_sums(reaches), xp.column_sums(exceeds)
        above += exceeded
        (unsure,) = xp.nonzero(reached != exceeded)
        columns = xp.put(unsure)
        j, i = xp.nonzero(reaches[:, columns] & ~exceeds[:, columns])
        close_i.append(unsure[i])
        close_j.append(j + first)
    close = np.concatenate(close_i), np.concatenate(close_j)
    return comparison.settled(rows, own, xp.host(above), close)


def _outward(bound: FloatArray, own: FloatArray, side: float) -> Single:
    """A bound in single precision that is not tightened by rounding; none around −inf."""
    bound = np.where(np.isfinite(own), bound, own)
    rounded = bound.astype(np.float32)
    finite = np.isfinite(rounded)
    rounded[finite] = np.nextafter(rounded[finite], np.float32(side))
    return rounded


def count_above_in_scores(
    scores: npt.ArrayLike, true_column: npt.ArrayLike, *, matches: npt.ArrayLike | None = None
) -> Above:
    """The same counts from given ``scores``, test speakers × enrolment speakers.

    ``true_column[i]`` is the enrolment column of test speaker i; a pair where ``matches`` is False
    cannot be chosen.
    """
    matrix = np.asarray(scores)
    if matrix.ndim != 2 or matrix.shape[1] < 2 or not matrix.size:
        raise InputError(
            "scores: expected a matrix of test speakers × at least 2 enrolment speakers,"
            f" found shape {matrix.shape}"
        )
    true = np.asarray(true_column)
    if true.shape != (len(matrix),) or true.dtype.kind not in "iu":
        raise InputError(
            f"true_column: expected {len(matrix)} column numbers, found shape {true.shape}"
            f" of {true.dtype}"
        )
    outside = (true < 0) | (true >= matrix.shape[1])
    if outside.any():
        raise InputError(
            f"true_column: {int(outside.sum())} of {true.size} lie outside the"
            f" {matrix.shape[1]} enrolment columns, the first at index {int(outside.argmax())}"
        )
    allowed = None if matches is None else np.asarray(matches, dtype=bool)
    if allowed is not None and allowed.shape != matrix.shape:
        raise InputError(f"matches: expected shape {matrix.shape}, found {allowed.shape}")
    at_or_above = np.empty(len(matrix), dtype=np.int64)
    above = np.empty(len(matrix), dtype=np.int64)
    step = max(1, (1 << 22) // matrix.shape[1])
    for start in range(0, len(matrix), step):
        rows = slice(start, start + step)
        part = np.asarray(matrix[rows], dtype=np.float64)
        reject_nan(part.reshape(-1), "pair")
        if allowed is not None:
            part = np.where(allowed[rows], part, -np.inf)
        own = np.take_along_axis(part, true[rows, None].astype(np.int64), axis=1)
        at_or_above[rows] = (part >= own).sum(axis=1) - 1
        above[rows] = (part > own).sum(axis=1)
    return Above(at_or_above, above, matrix.shape[1] - 1)


def ranks_from_scores(scores: npt.ArrayLike, true_column: npt.ArrayLike, *, seed: int = 0) -> Ranks:
    """Ranks of the true enrolment column, from ``scores`` of test speakers × enrolment speakers.

    ``true_column[i]`` is the enrolment column of test speaker i; ``seed`` draws the intervals.
    """
    above = count_above_in_scores(scores, true_column)
    return ranks_of(above.at_or_above + 1, above.others + 1, resampling=Resampling(seed=seed))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Linkability(RiskCurve):
    """Linkability over numbers N' of enrolment speakers; chance is 1/N'.

    Made by :func:`linkability`. ``above`` holds, for each test conversation, how many enrolment
    speakers score at or above the true one, ``owner`` the test speaker of each; ``draws`` is None
    where the expectation over all subsets is exact.
    """

    above: Above
    owner: IntArray
    draws: int | None

    def _params(self, i: int) -> dict[str, Parameter]:
        return {**super()._params(i), "draws": "exact" if self.draws is None else self.draws}

    @lazy
    def ranks(self) -> Ranks:
        """Rank of the true speaker among all enrolment speakers, from the same scores."""
        return ranks_of(
            self.above.at_or_above + 1,
            self.above.others + 1,
            speakers=in_order(self.speakers.to_list())[self.owner],
            resampling=self.resampling,
        )


def exact_linkability(at_or_above: IntArray, others: int, counts: IntArray) -> FloatArray:
    """Probability that none of the stronger candidates is in a random list of N' speakers.

    With M others of whom r score at or above the true speaker, a random subset of N' − 1 of them
    holds none of those with probability C(M − r, N' − 1)/C(M, N' − 1), which is the product over
    t < r of (M − N' + 1 − t)/(M − t): one running product serves every r. A row per speaker, a
    column per count.
    """
    stronger = np.arange(int(at_or_above.max(initial=0)))
    values = np.empty((len(at_or_above), len(counts)))
    for column, count in enumerate(counts):
        factors = np.maximum(others - count + 1 - stronger, 0) / (others - stronger)
        values[:, column] = np.concatenate([[1.0], np.cumprod(factors)])[at_or_above]
    return values


def sampled_linkability(
    at_or_above: IntArray,
    others: int,
    counts: IntArray,
    *,
    draws: int,
    seed: np.random.SeedSequence,
) -> FloatArray:
    """The paper's protocol: share of ``draws`` random lists of N' in which the link succeeds.

    How many of the r stronger candidates fall into a list of N' − 1 drawn from M is
    hypergeometric; the link succeeds where none does.
    """
    if draws < 1:
        raise InputError(f"draws: expected at least 1, or None for the expectation, found {draws}")
    hits = np.zeros((len(at_or_above), len(counts)))
    for child in seed.spawn(draws):
        rng = np.random.default_rng(child)
        for column, count in enumerate(counts):
            drawn = rng.hypergeometric(at_or_above, others - at_or_above, count - 1)
            hits[:, column] += drawn == 0
    return hits / draws


def linkability_from_scores(
    scores: npt.ArrayLike,
    true_column: npt.ArrayLike,
    *,
    counts: npt.ArrayLike,
    matches: npt.ArrayLike | None = None,
) -> FloatArray:
    """Exact Linkability for every N' in ``counts`` from ``scores``, test × enrolment speakers.

    ``true_column[i]`` is the enrolment column of test speaker i. ``matches`` is side information:
    a pair where it is False cannot be chosen.
    """
    above = count_above_in_scores(scores, true_column, matches=matches)
    sizes = as_counts(counts, speakers=above.others + 1, least=1, where="enrolment")
    return np.asarray(exact_linkability(above.at_or_above, above.others, sizes).mean(axis=0))


def linkability(
    enrol: Embeddings,
    test: Embeddings,
    *,
    counts: npt.ArrayLike | None = None,
    length: int = 1,
    draws: int | None = None,
    seed: int = 0,
    enrol_length: EnrolLength = None,
    max_conversations: int = MOST_CONVERSATIONS,
    backend: Backend | str = "cosine",
    side: Sequence[str] = (),
    allow_shared_utterances: bool = False,
    level: float = 0.95,
    replicates: int = 1000,
) -> Linkability:
    """Probability that a conversation of ``length`` utterances is linked to its speaker among N'.

    Link: s(i,i) > max over j ≠ i of s(i,j), a tie is a failure (eq. 3 and 4). ``counts`` are the
    numbers N' of speakers of ``enrol`` to choose from, all of them unless given. ``draws=None`` is
    the expectation over all lists of N' enrolment speakers that hold the true one; a number draws
    as many with ``seed``, which also draws utterances. Enrolment averages ``enrol_length``
    utterances, by default all there are, as in the paper. Each speaker of ``test`` gives up to
    ``max_conversations`` disjoint conversations, and the value is the mean over speakers of the
    mean over theirs: it estimates the same probability as the paper's one conversation each, with
    less noise, and tells people apart.
    Speakers with fewer than ``length`` test utterances are left out and counted. ``backend`` is
    ``"cosine"`` or a trained one. ``side`` names columns that must match as well.
    ``allow_shared_utterances`` lets utterances be on both sides, which is a leak. The score
    interval over speakers has ``level``; none is made where ``replicates`` is 0. Scores are counted
    on the current place.
    """
    lengths = "all" if enrol_length is None else enrol_length, length
    both = setting(
        enrol, test, lengths, (1, max_conversations), backend, side, allow_shared_utterances, seed
    )
    known, asked = both.known, both.asked
    owner, recordings = asked.speakers, asked.per_speaker
    true = locate(asked.names, known.names, who="test speakers", where="enrolment")[owner]
    asked_for = len(known.names) if counts is None else counts
    sizes = as_counts(asked_for, speakers=len(known.names), least=1, where="enrolment")
    if len(known.names) < 2:
        raise InputError("enrolment: expected at least 2 speakers to choose from, found 1")
    enrol_side, test_side = both.codes
    left, right = both.rows()
    above = count_above(
        Comparison(right, left, true, None if test_side is None else test_side[owner], enrol_side)
    )

    def success(stronger: IntArray) -> FloatArray:
        if draws is None:
            return exact_linkability(stronger, above.others, sizes)
        return sampled_linkability(stronger, above.others, sizes, draws=draws, seed=both.seeds[0])

    how = Resampling(level, replicates, seed)
    first = np.cumsum(recordings) - recordings

    def curve(counted: Above) -> Linkability:
        outcomes = success(counted.at_or_above)
        per_speaker = np.add.reduceat(outcomes, first, axis=0) / recordings[:, None]
        value, variance = per_speaker.mean(axis=0), mean_variance(per_speaker)
        low, high = risk_interval(value, variance, len(per_speaker), how)
        return Linkability(
            metric="linkability",
            counts=sizes,
            value=value,
            low=low,
            high=high,
            chance=1 / sizes,
            attacks=np.full(len(sizes), len(owner) * (draws or 1)),
            per_speaker=per_speaker,
            recordings=recordings,
            noise=recording_noise(outcomes, owner, per_speaker),
            variance=variance,
            speakers=asked.names,
            **both.fields(),
            short=known.short,
            resampling=how,
            method=SCORE,
            notes=one_speaker_note(len(asked.names)),
            above=counted,
            owner=owner,
            draws=draws,
        )

    return replace(curve(above), negated=replace(curve(above.negated()), variant="negated"))
