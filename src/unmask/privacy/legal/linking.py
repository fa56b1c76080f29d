"""Linkability: is a protected voice closest to its own speaker among N'? (Vauquier 2025, 2.2)

Scores are counted in blocks in single precision; where rounding could decide, the pair is computed
again in double precision: the counts are those of double precision, whatever place and blocks.
Where others tie with the right person, the outcome is the success of guessing among them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, repeat

import numpy as np
import numpy.typing as npt

from unmask import base
from unmask.base import FloatArray, Groups, IntArray, MetricRange, Sampling, Tabular
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval, Notice, Parameter
from unmask.privacy.legal import conversations
from unmask.privacy.legal.conversations import TIE, USUAL, LegalProtocol, Rows
from unmask.privacy.legal.curve import (
    CORRECTED,
    SCORE,
    RiskCurve,
    mean_variance,
    recording_noise,
    risks,
    with_negated,
)
from unmask.privacy.legal.permuted import Blind, permuted_links
from unmask.run import Arrays, Range, Xp, ranges_of, run
from unmask.scoring import Backend
from unmask.trials import Embeddings

Single = npt.NDArray[np.float32]
ROWS = 1280
_STRIP = 240
_DEVICE_SCORES = 1 << 28
_CHANCE_DRAWS = 200
_AT_ONCE = 1 << 18
_PLACES = 12
_RANK_METRICS = {"identification_rate": "%", "mean_d": "bit", "max_d": "bit"}
ENOUGH_PER_RANK = 5
TOLD_TIES = 0.001
"""From which difference on the value by the paper's rule, where a tie fails, is printed too."""


@dataclass(frozen=True, eq=False)
class Above:
    """Of the ``others`` enrolment speakers j ≠ i, how many score at or above s(i,i), and above.

    Scores within ``tolerance`` of s(i,i) count as equal to it. With side information ``allowed`` of
    the others can be chosen, −1 where i itself cannot: then all others count as above.
    """

    at_or_above: IntArray
    above: IntArray
    others: int
    allowed: IntArray | None = None
    tolerance: float = 0.0

    @property
    def tied(self) -> IntArray:
        """How many others score as i itself does."""
        return self.at_or_above - self.above

    def negated(self) -> Above:
        """The same for the negated score: −s(i,j) ≥ −s(i,i) where s(i,j) ≤ s(i,i)."""
        if self.allowed is None:
            at_or_above = self.others - self.above
            above = self.others - self.at_or_above
        else:
            is_known = self.allowed >= 0
            at_or_above = np.where(is_known, self.allowed - self.above, self.at_or_above)
            above = np.where(is_known, self.allowed - self.at_or_above, self.above)
        return replace(self, at_or_above=at_or_above, above=above)

    @property
    def first(self) -> FloatArray:
        """Probability of a link among everybody: one in those who tie at the top."""
        return np.where(self.above == 0, 1 / (self.tied + 1), 0.0)

    def outcomes(self, counts: IntArray) -> FloatArray:
        """Probability of a link for each test row and N', guessed among those who are tied."""
        return guessed_linkability(self.above, self.tied, self.others, counts)

    def strict_outcomes(self, counts: IntArray) -> FloatArray:
        """The same by the paper's rule: a tie fails."""
        return exact_linkability(self.at_or_above, self.others, counts)

    def chance(self, counts: IntArray) -> FloatArray:
        """Probability of a link where the true speaker's rank among those allowed says nothing (all
        equally probable): 1/N' where all are, more where side information leaves fewer.
        """
        assert self.allowed is not None
        values = np.zeros((len(self.allowed), len(counts)))
        for number in np.unique(self.allowed[self.allowed >= 0]):
            links = exact_linkability(np.arange(number + 1), self.others, counts)
            values[self.allowed == number] = links.mean(axis=0)
        return values


@dataclass(frozen=True, eq=False, kw_only=True)
class LinkRows(Rows):
    """``true[i]`` is the row of ``enrol`` that belongs to test row i."""

    true: IntArray

    @property
    def allowed(self) -> IntArray | None:
        """How many others of each test row side information leaves, −1 where it rules out i."""
        if self.codes is None:
            return None
        enrolled, tested = self.codes
        codes, sizes = np.unique(enrolled, return_counts=True)
        at = np.minimum(np.searchsorted(codes, tested), codes.size - 1)
        own = enrolled[self.true] == tested
        return np.where(own, sizes[at], 0) - 1


def count_above(comparison: LinkRows, *, rows: int | None = None) -> Above:
    """Count over the score matrix ``test @ enrol.T`` without ever holding it."""
    ranges = ranges_of(len(comparison.true), rows or ROWS)
    parts = list(run(count_rows, comparison, ranges))
    above = np.concatenate([part["above"] for part in parts])
    tied = np.concatenate([part["tied"] for part in parts])
    # What counts as tied depends on the largest score of all blocks.
    tolerance = TIE * max(float(part["largest"].max(initial=0.0)) for part in parts)
    for part, (start, _) in zip(parts, ranges, strict=True):
        row, gap = start + part["row"], part["gap"]
        is_tied = np.abs(gap) <= tolerance
        np.add.at(tied, row[is_tied], 1)
        np.add.at(above, row[~is_tied & (gap > 0)], 1)
    others, allowed = len(comparison.enrol) - 1, comparison.allowed
    if allowed is not None:
        # Who is ruled out cannot be linked, and ties with nobody.
        above[allowed < 0] = others
        tied[allowed < 0] = 0
    return Above(above + tied, above, others, allowed, tolerance)


def count_rows(xp: Xp, comparison: LinkRows, rows: Range) -> Arrays:
    """Counts of a range of test rows; the pairs too close to call are settled on the host.

    ``largest`` is the largest absolute score of the range. Pairs whose ``gap`` to the right
    person's score is a tie or none, as the largest score of all ranges decides, come back by
    ``row``.
    """
    some = slice(*rows)
    true = comparison.true[some]
    own = comparison.exact(true, np.arange(*rows))
    # No score exceeds the product of the longest rows, so no tie can be wider than this.
    widest = TIE * _longest(comparison.test) * _longest(comparison.enrol)
    margin = conversations.rounding(comparison.test[some], comparison.enrol) + widest
    low = xp.put(_outward(own - margin, own, -np.inf))
    high = xp.put(_outward(own + margin, own, np.inf))
    sure = xp.zeros(own.size)
    largest = float(np.abs(own[np.isfinite(own)]).max(initial=0.0))
    close_i, close_j = [], []
    pairs, block = comparison.single.pairs((_STRIP, own.size)), (0, len(comparison.enrol), *rows)
    for tile in pairs.tiles(xp, block, cells=_DEVICE_SCORES):
        reaches, exceeds = tile.scores >= low, tile.scores > high
        reached, exceeded = xp.column_sums(reaches), xp.column_sums(exceeds)
        sure += exceeded
        (unsure,) = xp.nonzero(reached != exceeded)
        columns = xp.put(unsure)
        j, i = xp.nonzero(reaches[:, columns] & ~exceeds[:, columns])
        close_i.append(unsure[i])
        close_j.append(j + tile.rows[0])
        scores = tile.scores
        if comparison.codes is not None:
            scores = xp.where(scores == -np.inf, 0.0, scores)
        largest = max(largest, float(scores.max()), -float(scores.min()))
    i, j = np.concatenate(close_i), np.concatenate(close_j)
    # Pairs that cannot be chosen score −inf, which ties with nobody.
    gap = _gaps(comparison.exact(j, rows[0] + i), own[i])
    other = (j != true[i]) & ~np.isnan(gap)
    i, gap = i[other], gap[other]
    above = xp.host(sure) + np.bincount(i[gap > widest], minlength=own.size)
    is_tied = np.abs(gap) <= TIE * largest
    tied = np.bincount(i[is_tied], minlength=own.size)
    is_open = ~is_tied & (np.abs(gap) <= widest)
    settled = {"above": above, "tied": tied, "largest": np.array([largest])}
    return settled | {"row": i[is_open], "gap": gap[is_open]}


def _longest(rows: FloatArray) -> float:
    """The length of the longest row."""
    return float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max(initial=0.0)))


def _gaps(scores: FloatArray, own: FloatArray) -> FloatArray:
    """How far scores lie above others, 0 where both are infinite alike, NaN where both are −inf."""
    with np.errstate(invalid="ignore"):
        gaps = scores - own
    equal = (scores == own) & (own > -np.inf)
    return np.where(equal, 0.0, gaps)


def _outward(bound: FloatArray, own: FloatArray, side: float) -> Single:
    """A bound in single precision that is not tightened by rounding; none around −inf."""
    bound = np.where(np.isfinite(own), bound, own)
    rounded = bound.astype(np.float32)
    finite = np.isfinite(rounded)
    rounded[finite] = np.nextafter(rounded[finite], np.float32(side))
    return rounded


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Linkability(RiskCurve):
    """Linkability over numbers N' of enrolment speakers; chance is 1/N', or 1 in as many of them as
    side information leaves, or what permuted names read where that is another.

    Made by :func:`linkability`. ``above`` holds, for each test conversation, how many enrolment
    speakers score at or above the true one, ``owner`` the test speaker of each; ``draws`` is None
    where the expectation over all subsets is exact. ``tied`` is the share of attempts in which the
    right person ties with others at the top, ``strict`` the value where such a tie fails.
    """

    above: Above
    owner: IntArray
    draws: int | None
    strict: FloatArray
    tied: FloatArray

    def _params(self, i: int) -> dict[str, Parameter]:
        return {**super()._params(i), "draws": "exact" if self.draws is None else self.draws}

    @property
    def remarks(self) -> tuple[Notice, ...]:
        """Those of any risk, and that others tie with the right person."""
        gained = self.value - self.strict
        i = int(gained.argmax())
        if gained[i] <= TOLD_TIES:
            return super().remarks
        sentence = (
            f"in {100 * self.tied[i]:.1f} % of attempts the right person ties with others at the"
            f" top of {self.counts[i]:,}: guessing among them gives {100 * self.value[i]:.1f} %,"
            f" the paper's rule (a tie fails) {100 * self.strict[i]:.1f} %"
        )
        return (*super().remarks, self._notice("ties", sentence))

    def details(self, i: int) -> tuple[Estimate, ...]:
        """Those of any risk, and the value by the paper's rule where ties make it another."""
        if self.value[i] - self.strict[i] <= TOLD_TIES:
            return super().details(i)
        paper = replace(
            self.estimate(i),
            metric="linkability_strict",
            value=float(self.strict[i]),
            interval=None,
            no_interval="beside the value that guesses among ties",
        )
        return (*super().details(i), paper)

    @base.lazy
    def ranks(self) -> Ranks:
        """Rank of the true speaker among all enrolment speakers, from the same scores."""
        return ranks_of(
            self.above.above + 1,
            self.above.others + 1,
            tied=self.above.tied,
            speakers=base.in_order(self.speakers.to_list())[self.owner],
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


def guessed_linkability(
    above: IntArray, tied: IntArray, others: int, counts: IntArray
) -> FloatArray:
    """Probability of a link where it is guessed among the candidates that are tied at the top.

    With r of M others above and t tied this is the mean of the probability above over r … r + t,
    [C(M − r + 1, N') − C(M − r − t, N')]/[(t + 1)·C(M, N' − 1)]. With w(r) = C(M − r, N' − 1)/
    C(M, N' − 1) it is [(M − r + 1)·w(r) − (M − r − t)·w(r + t + 1)]/[N'·(t + 1)].
    """
    ranks = np.arange(int((above + tied).max(initial=0)) + 2)
    # Nobody is below the last of the M others: there the second term is 0.
    table = exact_linkability(np.minimum(ranks, others), others, counts)
    best = table[above]
    if not tied.any():
        return np.asarray(best)
    first = (others - above + 1)[..., None] * best
    second = (others - above - tied)[..., None] * table[above + tied + 1]
    guessed = (first - second) / (counts * (tied + 1)[..., None])
    return np.where((tied > 0)[..., None], guessed, best)


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


def linkability(
    enrol: Embeddings,
    test: Embeddings,
    *,
    counts: npt.ArrayLike | None = None,
    length: int = 1,
    draws: int | None = None,
    seed: int = 0,
    backend: Backend | str = "cosine",
    protocol: LegalProtocol = USUAL,
    level: float = Sampling.level,
    replicates: int = Sampling.replicates,
) -> Linkability:
    r"""Probability that a conversation is linked to its own speaker among N' enrolled ones.

    A link is s(i,i) > max over j ≠ i of s(i,j) (eq. 3 and 4). Where others tie with s(i,i), the
    outcome is the success of guessing among them; in ``draws`` a tie fails. The value is the
    mean over speakers of the mean over up to ten conversations of each: the probability that the
    paper estimates from one, with less noise. Speakers with fewer than ``length`` test utterances
    and those who are not enrolled are left out and counted; who is enrolled and not tested is one
    of the N'.

    Parameters
    ----------
    enrol, test
        Speech of known voices, and the speech that is attacked.
    counts
        Numbers N' of enrolled speakers to choose from; by default all of them.
    length
        Utterances of a conversation.
    draws
        Lists of N' to sample; by default the protocol's, or the expectation over all lists.
    seed
        Draws utterances, lists and permutations.
    backend
        ``"cosine"``, the name of another that needs no training, or a trained one.
    protocol
        What is enrolled, known and allowed.
    level, replicates
        Level of the score interval over speakers; none is made where ``replicates`` is 0.

    Returns
    -------
    Linkability
        Value, interval, chance and notices for every N', and the same of the negated score.

    Examples
    --------
    >>> import numpy as np, unmask as um
    >>> rng = np.random.default_rng(0)
    >>> voices = np.repeat(rng.normal(size=(30, 8)), 4, axis=0)
    >>> names = np.repeat([f"s{n:02}" for n in range(30)], 4)
    >>> enrol, test = (um.Embeddings(voices + rng.normal(size=voices.shape), names) for _ in "et")
    >>> print(*um.linkability(enrol, test, counts=[5, 30]).estimates, sep="\n")
    linkability 78.41 % [71.53, 84] (95 %), chance 20 %
    linkability 41.67 % [32.68, 51.72] (95 %), chance 3.333 %
    """
    how = Sampling(replicates, level, seed)
    both = conversations.attack_data(enrol, test, "linkability", length, backend, protocol, how)
    draws = protocol.linkability_draws if draws is None else draws
    return linkability_of(both, counts, draws, how)


def linkability_of(
    both: conversations.AttackData, counts: npt.ArrayLike | None, draws: int | None, how: Sampling
) -> Linkability:
    """Link the conversations of an attack, or of one round of it, as :func:`linkability` does."""
    enrolled, tested = both.enrolled, both.tested
    owner, recordings = tested.speakers, tested.per_speaker
    true = both.true[owner]
    wanted = len(enrolled.names) if counts is None else counts
    sizes = conversations.as_counts(
        wanted, speakers=len(enrolled.names), least=1, where="enrolment"
    )
    if len(enrolled.names) < 2:
        raise InputError("enrolment: expected at least 2 speakers to choose from, found 1")
    comparison = LinkRows(*both.rows(), true=true)
    above = count_above(comparison)
    first = np.cumsum(recordings) - recordings
    chance = 1 / sizes if above.allowed is None else above.chance(sizes)[first].mean(axis=0)
    rule = Above.outcomes if draws is None else Above.strict_outcomes
    blind = permuted_links(
        comparison,
        both,
        Groups(owner),
        partial(_outcomes_of, rule=rule, others=len(enrolled.names) - 1, counts=sizes),
        chance,
        how.seed,
        above.tolerance,
    )

    def curve(counted: Above, unknowing: Blind) -> Linkability:
        strict = counted.strict_outcomes(sizes)
        if draws is None:
            outcomes = counted.outcomes(sizes)
        else:
            stronger = counted.at_or_above, counted.others, sizes
            outcomes = sampled_linkability(*stronger, draws=draws, seed=both.seeds[0])
        # Attempts in which nobody of the list is above the right person and somebody is tied.
        tied = exact_linkability(counted.above, counted.others, sizes) - strict

        def by_speaker(values: FloatArray) -> FloatArray:
            return np.asarray(np.add.reduceat(values, first, axis=0) / recordings[:, None])

        per_speaker = by_speaker(outcomes)
        by_paper = per_speaker if draws is not None else by_speaker(strict)
        return Linkability(
            counts=sizes,
            **risks(per_speaker, mean_variance(per_speaker), how),
            **unknowing,
            attacks=np.full(len(sizes), len(owner) * (draws or 1)),
            recordings=recordings,
            noise=recording_noise(outcomes, owner, per_speaker),
            speakers=tested.names,
            **both.fields,
            method=SCORE,
            above=counted,
            owner=owner,
            draws=draws,
            strict=by_paper.mean(axis=0),
            tied=by_speaker(tied).mean(axis=0),
        )

    return with_negated(curve(above, blind[0]), curve(above.negated(), blind[1]))


def _outcomes_of(
    above: IntArray,
    tied: IntArray,
    *,
    rule: Callable[[Above, IntArray], FloatArray],
    others: int,
    counts: IntArray,
) -> FloatArray:
    """Probability of a link by a rule for ties, for so many others above and tied."""
    return rule(Above(above + tied, above, others), counts)


@dataclass(frozen=True, eq=False, repr=False)
class Ranks(Tabular):
    """Ranks r of the true speaker among N candidates, 1 is best.

    Made by :func:`ranks_of`, for each length of a sweep once. Where others are ``tied`` with the
    true speaker, ``ranks`` has the best rank, and all ranks down to the worst are equally probable.
    ``speakers`` is the test speaker of each rank; every speaker counts alike.
    ``distribution[r − 1]`` is P(r). MeanD = log2 N − H(R) and MaxD = max_r log2(N·P(r)), in bits.
    Few ranks make both too large, so ``chance`` holds what as many uniform ranks give on average;
    ``intervals`` are over test speakers.
    """

    ranks: IntArray
    tied: IntArray
    speakers: IntArray
    candidates: int
    distribution: FloatArray
    identification_rate: float
    mean_d: float
    max_d: float
    chance: Mapping[str, float]
    intervals: Mapping[str, Interval]

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Say so where there are too few conversations for a distribution over N ranks."""
        if len(self.ranks) >= ENOUGH_PER_RANK * self.candidates:
            return ()
        sentence = (
            f"{len(self.ranks)} conversations over {self.candidates} ranks make MeanD and MaxD too"
            f" large; ranks without any information give {self.chance['mean_d']:.2f} and"
            f" {self.chance['max_d']:.2f} bit here"
        )
        return (Notice("few-conversations", "ranks", sentence),)

    def histogram(self) -> tuple[IntArray, FloatArray]:
        """Edges of bins that double in width, and the mean P(r) of the ranks in each."""
        doubling = 2 ** np.arange(int(np.log2(self.candidates)) + 1)
        edges = np.append(doubling, self.candidates + 1)
        total = np.concatenate([[0.0], np.cumsum(self.distribution)])
        return edges, np.diff(total[edges - 1]) / np.diff(edges)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Identification rate, MeanD and MaxD."""
        n = {"speakers": int(self.speakers.max()) + 1, "conversations": len(self.ranks)}
        return tuple(
            Estimate(
                metric,
                getattr(self, metric),
                unit,
                self.intervals[metric],
                self.chance[metric],
                n,
                {"N": self.candidates},
            )
            for metric, unit in _RANK_METRICS.items()
        )


def disclosure(distribution: FloatArray) -> tuple[FloatArray, FloatArray]:
    """MeanD and MaxD in bits of distributions over ranks (last axis); certainty is log2 N."""
    candidates = distribution.shape[-1]
    positive = np.where(distribution > 0, distribution, 1.0)
    entropy = -(distribution * np.log2(positive)).sum(axis=-1)
    largest = np.log2(candidates * distribution.max(axis=-1))
    mean_d = np.maximum(np.log2(candidates) - entropy, 0.0)
    return np.round(mean_d, _PLACES), np.round(largest, _PLACES)


def ranks_of(
    ranks: npt.ArrayLike,
    candidates: int,
    *,
    tied: npt.ArrayLike | None = None,
    speakers: npt.ArrayLike | None = None,
    resampling: Sampling | None = None,
) -> Ranks:
    """Rank statistics from ``ranks`` among ``candidates``.

    ``tied`` others, by default none, share each rank and those after it. ``speakers`` are codes
    0, 1, … of the test speakers, in the order of their names, one each by default; ``resampling``
    says how intervals are made.
    """
    how = resampling if resampling is not None else Sampling()
    array = np.asarray(ranks, dtype=np.int64)
    if array.ndim != 1 or not array.size or array.min() < 1 or array.max() > candidates:
        raise InputError(f"ranks: expected whole numbers from 1 to {candidates}")
    equal = np.zeros_like(array) if tied is None else np.asarray(tied, dtype=np.int64)
    if equal.shape != array.shape or equal.min() < 0 or (array + equal).max() > candidates:
        raise InputError(f"tied: expected how many share each rank, within {candidates}")
    owner = np.arange(array.size) if speakers is None else np.asarray(speakers, dtype=np.int64)
    sizes = np.bincount(owner)
    share = (1 / sizes)[owner]
    best = array - 1

    def spread_over(numbers: IntArray, weights: FloatArray) -> FloatArray:
        """Total weight at each rank, from 0 on, that of tied ones spread evenly over theirs."""
        if numbers is not best or not equal.any():
            return np.asarray(np.bincount(numbers, weights, candidates), dtype=np.float64)
        each = weights / (equal + 1)
        starts = np.bincount(best, each, candidates + 1)
        ends = np.bincount(best + equal + 1, each, candidates + 1)
        return np.maximum(np.cumsum(starts - ends)[:candidates], 0.0)

    def disclosed(numbers: Iterable[IntArray], weights: Iterable[FloatArray]) -> FloatArray:
        """MeanD and MaxD of ranks, from 0 on, and of their weights, for every two rows."""
        pairs, made = zip(numbers, weights, strict=False), [np.empty((0, 2))]
        while some := list(islice(pairs, max(1, _AT_ONCE // candidates))):
            spread = [spread_over(*pair) for pair in some]
            made.append(np.stack(disclosure(np.array(spread) / len(sizes)), axis=1))
        return np.concatenate(made)

    distribution = spread_over(best, share) / len(sizes)
    mean_d, max_d = map(float, disclosure(distribution))
    rate = float(distribution[0])
    blind = np.random.default_rng(np.random.SeedSequence(how.seed).spawn(1)[0])
    alike = (blind.integers(0, candidates, array.size) for _ in range(_CHANCE_DRAWS))
    uniform = disclosed(alike, repeat(share))
    ends = [(np.nan, np.nan)] * 3
    if len(sizes) > 1 and how.replicates > 0:
        first = np.bincount(owner, np.where(array == 1, share / (equal + 1), 0.0))
        low, high = base.mean_interval(np.asarray(first[:, None], float), level=how.level)
        times = how.times(len(sizes))
        drawn = disclosed(repeat(best), (time[owner] * share for time in times))
        usual = mean_d <= np.quantile(uniform[:, 0], (1 + how.level) / 2)
        bits = _bits((mean_d, max_d), drawn, len(sizes), candidates, bool(usual), how.level)
        ends = [(float(low[0]), float(high[0])), *bits]
    methods = (SCORE, 0), (CORRECTED, how.replicates), (CORRECTED, how.replicates)
    intervals = {
        metric: Interval(*limit, how.level, *method, how.seed)
        for metric, limit, method in zip(_RANK_METRICS, ends, methods, strict=True)
    }
    chance = dict(zip(_RANK_METRICS, (1 / candidates, *uniform.mean(axis=0)), strict=True))
    values = rate, mean_d, max_d
    return Ranks(array, equal, owner, candidates, distribution, *values, chance, intervals)


def _bits(
    values: Sequence[float],
    drawn: FloatArray,
    speakers: int,
    candidates: int,
    usual: bool,
    level: float,
) -> list[tuple[float, float]]:
    """Intervals of MeanD and MaxD: the low end is the lower one on the scale of their range and of
    the bits themselves, both less the bias that resampling shows (few ranks make bits too large);
    the high end the highest of these and of the bits with their bias. Where a MeanD as large is
    ``usual`` for uniform ranks both low ends are 0, and so where one is: they are 0 together.
    """
    most = MetricRange(0.0, float(np.round(np.log2(candidates), _PLACES)))
    ranges = most, MetricRange(), MetricRange(overfit=0.0)
    limits = []
    for value, column in zip(values, drawn.T, strict=True):
        ends = np.clip(
            [
                base.bias_corrected(value, column, speakers, level=level, within=one)
                for one in ranges
            ],
            *most[:2],
        )
        limits.append((float(np.fmin.reduce(ends[:, 0])), float(np.fmax.reduce(ends[:, 1]))))
    return [(0.0, high) for _, high in limits] if usual or limits[0][0] == 0 else limits
