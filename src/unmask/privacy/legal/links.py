"""Linkability: is a protected voice closest to its own speaker among N'? (Vauquier 2025, 2.2)"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray
from unmask.errors import InputError
from unmask.estimate import Parameter
from unmask.privacy.legal.backends import as_backend, inner_products
from unmask.privacy.legal.conversations import (
    MOST_CONVERSATIONS,
    EnrolLength,
    conversations,
    enrolment,
)
from unmask.privacy.legal.counts import (
    Above,
    Comparison,
    Progress,
    count_above,
    count_above_in_scores,
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
from unmask.privacy.legal.inputs import as_counts, check_pair, locate, pair_codes
from unmask.privacy.legal.ranks import Ranks, ranks_of
from unmask.run import Where
from unmask.scoring import Backend
from unmask.trials import Embeddings


@dataclass(frozen=True, eq=False, kw_only=True)
class Linkability(RiskCurve):
    """Linkability over numbers N' of enrolment speakers; chance is 1/N'.

    ``above`` holds, for each test conversation, how many enrolment speakers score at or above the
    true one, ``owner`` the test speaker of each; ``draws`` is None where the expectation over all
    subsets is exact.
    """

    above: Above
    owner: IntArray
    draws: int | None

    def _params(self, i: int) -> dict[str, Parameter]:
        return {**super()._params(i), "draws": "exact" if self.draws is None else self.draws}

    @property
    def ranks(self) -> Ranks:
        """Rank of the true speaker among all enrolment speakers, from the same scores."""
        return ranks_of(
            self.above.at_or_above + 1,
            self.above.others + 1,
            speakers=self.owner,
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
    """Exact Linkability for every N' in ``counts`` from test speakers × enrolment speakers.

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
    counts: npt.ArrayLike,
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
    on: str = "local",
    workers: int | None = None,
    state: str | Path | None = None,
    progress: Progress | None = None,
) -> Linkability:
    """Probability that a conversation of ``length`` utterances is linked to its speaker among N'.

    Link: s(i,i) > max over j ≠ i of s(i,j), a tie is a failure (eq. 3 and 4). ``draws=None`` is the
    expectation over all lists of N' enrolment speakers that hold the true one; a number draws as
    many. Enrolment averages ``enrol_length`` utterances, by default all there are, as in the paper.
    Each test speaker gives up to ``max_conversations`` disjoint conversations, and the value is the
    mean over speakers of the mean over theirs: it estimates the same probability as the paper's one
    conversation each, with less noise, and tells people apart. ``side`` names columns that must
    match as well. Speakers with fewer than ``length`` test utterances are left out and counted.
    ``on``, ``workers`` and ``state`` say where the scores are counted, as in
    :func:`unmask.cross_pairing`; the counts are the same.
    """
    check_pair(enrol, test, allow_shared_utterances=allow_shared_utterances)
    used = "all" if enrol_length is None else enrol_length
    seeds = np.random.SeedSequence(seed).spawn(3)
    known = enrolment(enrol, length=used, rng=np.random.default_rng(seeds[0]))
    asked = conversations(
        test, length=length, least=1, most=max_conversations, rng=np.random.default_rng(seeds[1])
    )
    owner, recordings = asked.speakers, asked.per_speaker
    true = locate(asked.names, known.names, who="test speakers", where="enrolment")[owner]
    sizes = as_counts(counts, speakers=len(known.names), least=1, where="enrolment")
    if len(known.names) < 2:
        raise InputError("enrolment: expected at least 2 speakers to choose from, found 1")
    enrol_side, test_side = pair_codes((enrol, known.names), (test, asked.names), side)
    scorer = as_backend(backend)
    left, right = inner_products(scorer, known.vectors, asked.vectors)
    above = count_above(
        Comparison(right, left, true, None if test_side is None else test_side[owner], enrol_side),
        where=Where(on, workers, state),
        progress=progress,
    )

    def success(stronger: IntArray) -> FloatArray:
        if draws is None:
            return exact_linkability(stronger, above.others, sizes)
        return sampled_linkability(stronger, above.others, sizes, draws=draws, seed=seeds[2])

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
            length=length,
            enrol_length=used,
            backend=scorer.name,
            side=tuple(side),
            left_out=asked.left_out,
            short=known.short,
            resampling=how,
            method=SCORE,
            notes=one_speaker_note(len(asked.names)),
            above=counted,
            owner=owner,
            draws=draws,
        )

    return replace(curve(above), negated=replace(curve(above.negated()), variant="negated"))
