"""Singling Out: can a predicate isolate one person of N? (Vauquier 2025, 2.1)"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from unmask.base import FloatArray, Groups, IntArray, Sampling
from unmask.errors import InputError
from unmask.estimate import Estimate, Notice, Parameter
from unmask.privacy.legal import isolating_kernel
from unmask.privacy.legal.conversations import (
    USUAL,
    AttackData,
    LegalProtocol,
    as_counts,
    attack_data,
)
from unmask.privacy.legal.curve import (
    BOTH_SIDES,
    TITLES,
    RiskCurve,
    recording_noise,
    risks,
    with_negated,
)
from unmask.privacy.legal.isolating_kernel import (
    DRAWS_WITHOUT,
    Attempts,
    Outcome,
    Predicates,
    broken_ties,
)
from unmask.privacy.legal.permuted import dealt
from unmask.privacy.luck import Permuted, luck_of
from unmask.scoring import Backend
from unmask.trials import Embeddings, lookup

_NODES = 64
_DRAWN = (np.arange(32) + 0.5) / 32


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SinglingOut(RiskCurve):
    """Singling Out over numbers N of test speakers; made by :func:`singling_out`.

    ``chance`` is what scores without speaker information reach, their threshold estimated from the
    calibration entries in use; ``chance_paper`` is exp(−1), ``chance_exact`` (1 − 1/N)^(N−1), what
    a random predicate of mean exactly 1/N reaches. ``threshold_rank`` is k, averaged over
    enrolment speakers. ``hits`` is, among the fewest speakers, the share of isolations that isolate
    the enrolled person, then the same with names permuted.
    """

    chance_exact: FloatArray
    threshold_rank: FloatArray
    folds: int
    draws: int
    hits: Permuted

    @property
    def chance_paper(self) -> float:
        """The chance that the paper draws."""
        return float(np.exp(-1.0))

    def details(self, i: int) -> tuple[Estimate, ...]:
        """Those of any risk, and the share of isolations that isolate the enrolled person."""
        if i != int(self.counts.argmin()):
            return super().details(i)
        share = replace(
            self.estimate(i),
            metric="singling_out_own",
            value=float(self.hits.values[0, 0]),
            interval=None,
            chance=1 / int(self.counts[i]),
            no_interval="permuted names tell how far chance goes",
            luck=luck_of([(self.hits, 0)]),
        )
        return (*super().details(i), share)

    def _params(self, i: int) -> dict[str, Parameter]:
        return {
            **super()._params(i),
            "folds": self.folds,
            "draws": self.draws,
            "k": round(float(self.threshold_rank[i]), 3),
        }


def singling_out(
    enrol: Embeddings,
    test: Embeddings,
    *,
    counts: npt.ArrayLike,
    length: int = 1,
    folds: int | None = None,
    draws: int | None = None,
    max_enrol: int | None = None,
    seed: int = 0,
    backend: Backend | str = "cosine",
    protocol: LegalProtocol = USUAL,
    level: float = Sampling.level,
    replicates: int = Sampling.replicates,
) -> SinglingOut:
    r"""Probability that a predicate made from one enrolled speaker isolates one of N (eq. 1, 2).

    Each speaker of ``test`` gives up to ten conversations; in a fold one is the test entry and the
    others calibrate. The threshold lies midway between the k-th and the (k+1)-th best of all
    calibration scores, k the number of calibration entries of the enrolled speaker (footnote 4).
    Success: exactly one of the N test entries scores above it, whoever it is. Ties are broken by a
    jitter of 1e-6 of the largest score, drawn by a digest of the seed and the conversation. Test
    speakers with fewer than 2·``length`` utterances are left out and counted.

    Parameters
    ----------
    enrol, test, length, backend, protocol
        Those of :func:`linkability`.
    counts
        Numbers N of test speakers, the enrolled one always among them.
    folds, draws, max_enrol
        Folds, draws of N test speakers, most enrolled speakers; by default the protocol's, which
        are 10, 5 and 495.
    seed
        Draws speakers, folds and utterances.
    level, replicates
        Level of the score interval over the speakers of both sides; none where ``replicates`` is 0.

    Returns
    -------
    SinglingOut
        Value, interval, chance and notices for every N, and the same of the negated score.

    Examples
    --------
    >>> import numpy as np, unmask as um
    >>> rng = np.random.default_rng(0)
    >>> voices = np.repeat(rng.normal(size=(30, 8)), 4, axis=0)
    >>> names = np.repeat([f"s{n:02}" for n in range(30)], 4)
    >>> enrol, test = (um.Embeddings(voices + rng.normal(size=voices.shape), names) for _ in "et")
    >>> print(*um.singling_out(enrol, test, counts=[5, 30], draws=2).estimates, sep="\n")
    singling_out 59 % [50.42, 67.21] (95 %), chance 36.13 %
    singling_out 39.67 % [33.4, 47.27] (95 %), chance 32.86 %
    """
    given = {"folds": folds, "draws": draws, "max_enrol": max_enrol}
    asked: dict[str, Any] = {name: one for name, one in given.items() if one is not None}
    protocol, how = replace(protocol, **asked), Sampling(replicates, level, seed)
    both = attack_data(enrol, test, "singling_out", length, backend, protocol, how)
    return singling_out_of(both, counts, protocol, how)


def singling_out_of(
    both: AttackData, counts: npt.ArrayLike, protocol: LegalProtocol, how: Sampling
) -> SinglingOut:
    """Single out the speakers of an attack, or of one round of it, as :func:`singling_out` does."""
    length = int(both.fields["length"])
    enrolled, entries = both.enrolled.names, both.tested
    attackers = np.flatnonzero(enrolled.is_in(entries.names.implode()).to_numpy())
    absent = len(enrolled) - attackers.size
    if not attackers.size:
        actual = f"none of {len(enrolled)} (first: {enrolled[0]})"
        raise InputError("enrolment speakers", "one with two test conversations", actual)
    if attackers.size > protocol.max_enrol:
        rng = np.random.default_rng(both.seeds[0])
        attackers = np.sort(rng.choice(attackers, size=protocol.max_enrol, replace=False))
    names = enrolled.gather(attackers)
    sizes = as_counts(
        counts, speakers=len(entries.names), least=2, where=f"test with {2 * length} utterances"
    )
    whose = lookup(names, entries.names).astype(np.int64)
    attempts = Attempts.of(Groups(entries.speakers), whose, sizes, protocol, both.seeds[1])
    untied = broken_ties(*both.rows(attackers), how.seed)
    predicates = Predicates(*untied, attempts=attempts)
    outcome = isolating_kernel.single_out_all(predicates)
    utterances = None
    if both.exchanged is not None:
        known = lookup(entries.names, both.exchanged.names).astype(np.int64)
        utterances = both.exchanged.utterances[known]
    least = int(sizes.argmin())
    found = outcome.success[:, :, least].mean(axis=1)
    deals = dealt(predicates, int(sizes[least]), how.seed, found, utterances)
    alike = None
    if both.codes is not None:
        own = both.codes[0][attackers]
        alike = (own[:, None] == both.codes[1]).sum(axis=1)
        alike -= both.codes[1][attempts.speakers] == own
    usual = mean_calibrated_chance(attempts.population.counts, attempts.speakers, sizes, alike)
    some = f"{absent} of {len(enrolled)} enrolment speakers"
    sentence = f"{some} have no two test conversations and are left out"
    left_out = Notice("left-out", TITLES["singling_out"], sentence)

    def curve(s: int) -> SinglingOut:
        return SinglingOut(
            counts=sizes,
            **risks(outcome.success[s], both_sides(outcome, s), how),
            **deals.blind(s, sizes, usual),
            attacks=np.full(len(sizes), len(names) * protocol.folds * protocol.draws),
            recordings=(attempts.trials > 0).sum(axis=1),
            noise=_noise(outcome, s),
            speakers=names,
            **both.fields,
            method=BOTH_SIDES,
            notes=(left_out,) if absent else (),
            hits=deals.hits(s, len(names)),
            chance_exact=(1 - 1 / sizes) ** (sizes - 1),
            threshold_rank=np.full(len(sizes), attempts.ranks.mean()),
            folds=protocol.folds,
            draws=protocol.draws,
        )

    return with_negated(curve(0), curve(1))


def both_sides(outcome: Outcome, s: int) -> FloatArray:
    """Variance of Singling Out for every N: enrolment and test speakers are both samples.

    Without speaker j the value moves by J_j = −(s_j − s)/(E − 1) + D_j/E: its own predicate is
    gone, s_j its success and s the mean over E enrolment speakers, and D_j sums over all other
    predicates how their success changes without the test entries of j. The variance is Σ (J_j −
    J)², less the squares of the terms of D_j, which the spread of s_j already holds; never below
    that spread.
    """
    success = outcome.success[s]
    enrolled = len(success)
    if enrolled < 2:
        return np.full(success.shape[1], np.nan)
    draws, folds = outcome.attempts.slots.shape[:2]
    attacks = min(draws, DRAWS_WITHOUT) * folds
    moves = outcome.change[s].T / (attacks * enrolled)
    moves[outcome.attempts.speakers] -= (success - success.mean(axis=0)) / (enrolled - 1)
    total = ((moves - moves.mean(axis=0)) ** 2).sum(axis=0)
    total -= outcome.squares[s] / (attacks * enrolled) ** 2
    return np.asarray(np.maximum(total, success.var(axis=0, ddof=1) / enrolled))


def _noise(outcome: Outcome, s: int) -> FloatArray:
    """Variance of the outcome of one test conversation about its speaker's mean, pooled."""
    trials = outcome.attempts.trials
    tried = trials > 0
    shares = (outcome.won[s] / np.maximum(trials, 1)[:, None]).swapaxes(1, 2)[tried]
    owner = np.nonzero(tried)[0]
    means = np.stack([np.bincount(owner, column) for column in shares.T], axis=1)
    return recording_noise(shares, owner, means / np.bincount(owner)[:, None])


def calibrated_chance(count: float, rank: int, entries: float) -> float:
    """Probability that exactly one of N exchangeable test entries passes a calibrated threshold.

    The threshold lies midway between the k-th and the (k+1)-th best of C calibration scores. Let m
    be the share of scores above it. With y the share above the (k+1)-th, Beta(k+1, C−k), and v the
    largest of k uniform numbers, m = y·(1 + v)/2 where scores are evenly spread about the
    threshold, and the probability is E N·m·(1 − m)^(N−1). For large N and C = k·N it is
    (k/(k+1))^k · 2k/(2k+1) · (k/(k+1) + 1/(2k+1)): 5/18 for k = 1, 0.308 for k = 2, 0.350 for
    k = 9. Integrated by Gauss and Legendre's rule over the probabilities of y and v.
    """
    at, weights = _rule()
    above = betaincinv(rank + 1, entries - rank, at)[:, None]
    share = above * (1 + at ** (1 / rank)) / 2
    return float(weights @ (count * share * (1 - share) ** (count - 1)) @ weights)


@cache
def _rule() -> tuple[FloatArray, FloatArray]:
    """Gauss and Legendre's places and weights from 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return (nodes + 1) / 2, weights / 2


def mean_calibrated_chance(
    per_speaker: IntArray, speakers: IntArray, counts: IntArray, alike: IntArray | None = None
) -> FloatArray:
    """The same for every N, averaged over enrolment speakers.

    Of the test speakers with ``per_speaker`` conversations each, a draw holds the enrolment speaker
    with k calibration entries, and N − 1 others with as many as they have on average. With side
    information a predicate can hold for as many others as are ``alike``: how many of them are drawn
    is hypergeometric, of which quantiles are taken; whoever is alone is isolated.
    """
    everyone, total = len(per_speaker), int((per_speaker - 1).sum())
    left = np.full(len(speakers), everyone - 1) if alike is None else alike
    kinds = np.stack([per_speaker[speakers] - 1, left])
    (ranks, lefts), times = np.unique(kinds, axis=1, return_counts=True)
    chances = np.empty((len(counts), len(ranks)))
    for c, count in enumerate(counts):
        for r, (rank, some) in enumerate(zip(ranks, lefts, strict=True)):
            others = (total - rank) / max(everyone - 1, 1)
            drawn = np.array([count - 1])
            if some < everyone - 1:
                from scipy.stats import hypergeom

                drawn = hypergeom.ppf(_DRAWN, everyone - 1, some, count - 1).astype(int)
            each = [
                calibrated_chance(int(n) + 1, int(rank), rank + n * others) if n else 1.0
                for n in drawn
            ]
            chances[c, r] = np.mean(each)
    return np.asarray(chances @ times / times.sum())
