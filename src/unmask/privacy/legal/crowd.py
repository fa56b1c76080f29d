"""Linkability among more people than there are: a tail of strangers' scores, continued.

Pr(link | N') = E_i[F_i(s_ii)^(N' − 1)], where F_i is the distribution of the scores of test
conversation i with a stranger. Scores of each conversation are standardised by its own upper
strangers and pooled, conversations whose mean is alike together; their tail is a generalised Pareto
distribution. The curve is moved on the logit scale until it joins what is measured among half of
the people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, log_ndtr, logit, logsumexp, ndtri

from unmask import base
from unmask.base import BoolArray, FloatArray, Groups, IntArray, Sampling
from unmask.errors import InputError
from unmask.estimate import Notice, Parameter
from unmask.privacy.attack import Attacker, Reading
from unmask.privacy.legal.conversations import (
    TIE,
    USUAL,
    AttackData,
    LegalProtocol,
    attack_data,
)
from unmask.privacy.legal.curve import Curve, risk_interval, spoken
from unmask.privacy.legal.linking import Linkability, guessed_linkability, linkability
from unmask.scoring import Backend
from unmask.trials import Embeddings

LEAST_PEOPLE = 20
"""Enrolled people without whom no tail is fitted."""
FAR = 10
"""A warning is due where N' exceeds the people at hand so many times."""
JACKKNIFE = "enrolment and test speaker,jackknife"
_GROUPS = 20
_NEAREST = 3
"""Strangers of each conversation, on average, in the tail; more bend it at ten times the people."""
_MOST = 0.1
_TAILS = 3
"""Conversations that are close to everybody have another tail than those far from all."""
_LEAST_TAIL = 10
_UPPER = 0.7
"""Location of a conversation: this quantile of its strangers, whose upper part is like the tail."""
_PAIRS = 1 << 20
_LEAST_ROWS = 1_000
"""Scores that are looked at, and fewest conversations they are taken from where there are more."""
_EDGE = 1e-4
_SINGLE_RANKS = 64
"""Ranks up to this one are taken as binomial, others as the share of strangers that they tell."""
_HUBS = 0.8
_WIDER = 0.75
"""By which power of people/carriers an interval is wider: a root alone covers 86 to 93 %."""
_METRIC = "linkability_extrapolated"
_CONDITIONS = (
    "a model's answer, for people drawn as those at hand (same mix of sex, channel and enrolment)"
    " and independently of each other: families of like voices that nobody recorded are not in it"
)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class ExtrapolatedLinkability(Curve):
    """Linkability among more people than are enrolled, under one ``attacker``.

    Made by :func:`extrapolate_linkability`. ``people`` are enrolled, among whom ``measured`` was
    found: value, low and high end. ``shape`` is that of the tail; ``gaussian`` what a Gaussian tail
    would read, a rival that flatters. The tail rests on ``carriers`` of the people: fewer where
    some are close to everybody. ``moved`` is by how much the curve was moved to join what is
    measured, ``moved_error`` how far that may be off, both in points.
    """

    attacker: str
    people: int
    measured: tuple[float, float, float]
    shape: float
    gaussian: FloatArray
    carriers: float
    moved: FloatArray
    moved_error: FloatArray

    @property
    def notices(self) -> tuple[Notice, ...]:
        """The conditions, how far it reaches, and whether few people carry the tail."""
        most, last = int(self.counts.max()), int(self.counts.argmax())
        said = {}
        if most > FAR * self.people:
            said["far-beyond"] = (
                f"{most:,} people are {most / self.people:,.0f} times the {self.people:,} at hand;"
                f" a Gaussian tail, which flatters, reads {100 * self.gaussian[last]:.1f} %"
            )
        if self.carriers < _HUBS * self.people:
            wider = (self.people / self.carriers) ** _WIDER
            said["hubs"] = (
                f"some voices are close to everybody: the tail rests on about {self.carriers:.0f}"
                f" of {self.people:,} people, and its interval is {wider:.1f} times as wide"
            )
        if abs(self.moved[last]) > self.moved_error[last]:
            points = f"{100 * self.moved[last]:+.1f}".replace("-", "−")
            said["moved"] = (
                f"strangers are not one group; the curve was moved by {points} points with"
                f" {most:,} people, to join what is measured"
            )
        conditions = Notice("conditions", "Linkability, extrapolated", _CONDITIONS)
        of = f"{self.attacker}, {spoken(self.length)}: {conditions.subject}"
        return (conditions, *(Notice(code, of, line) for code, line in said.items()))

    @property
    def title(self) -> str:
        """What it is, and of whom."""
        return f"Linkability, extrapolated, {self.attacker}, {spoken(self.length)}"

    @property
    def sentence(self) -> str:
        """What it says of the most people."""
        i = int(self.counts.argmax())
        of = f"{len(self.speakers):,} of {self.people:,} people" if self._is_part else ""
        tested = f" (measured on {of})" if of else ""
        text = f"{self.title}{tested}, {self.counts[i]:,} people: about {100 * self.value[i]:.1f}"
        if not np.isnan(self.low[i]):
            text += f" [{100 * self.low[i]:.1f}, {100 * self.high[i]:.1f}]"
        return f"{text} %; chance {100 * self.chance[i]:.3g} %."

    @property
    def _is_part(self) -> bool:
        """Whether only some of the people enrolled are tested, at this length."""
        return len(self.speakers) < self.people

    def _params(self, i: int) -> dict[str, Parameter]:
        about = {"people": self.people, "shape": round(self.shape, 4)}
        if self._is_part:
            about["tested"] = len(self.speakers)
        return {**super()._params(i), **about, "gaussian": round(float(self.gaussian[i]), 6)}


def extrapolate_linkability(
    enrol: Embeddings,
    test: Embeddings,
    *,
    counts: npt.ArrayLike,
    length: int = 1,
    seed: int = 0,
    backend: Backend | str = "cosine",
    protocol: LegalProtocol = USUAL,
    level: float = Sampling.level,
) -> ExtrapolatedLinkability:
    r"""Linkability among more people than are enrolled.

    Pr(link | N') = E[F_i(s_ii)^(N' − 1)], with F_i the distribution of the scores of conversation
    i with a stranger: standardised by the upper strangers, pooled, and continued by a generalised
    Pareto tail above the three nearest strangers of a conversation (above the 90 % quantile where
    that is higher). The curve joins what is measured among half of the people at hand, and is never
    more than what is measured among all.

    Parameters
    ----------
    enrol, test, length, backend, protocol
        Those of :func:`linkability`; at least 20 people, and no columns of side information.
    counts
        Numbers N' of people, all above those who are enrolled.
    seed
        Draws utterances and groups of people.
    level
        Level of the interval: a jackknife over groups of people on both sides, each time refitted,
        wider where few people carry the tail. Its upper end is at least what ranks alone tell.

    Returns
    -------
    ExtrapolatedLinkability
        Value, interval, chance and notices for every N'.

    Examples
    --------
    >>> import numpy as np, unmask as um
    >>> rng = np.random.default_rng(0)
    >>> voices = np.repeat(rng.normal(size=(60, 16)), 4, axis=0)
    >>> names = np.repeat([f"s{n:02}" for n in range(60)], 4)
    >>> enrol, test = (um.Embeddings(voices + rng.normal(size=voices.shape), names) for _ in "et")
    >>> print(um.extrapolate_linkability(enrol, test, counts=[600]).estimates[0])
    linkability_extrapolated 36.41 % [21.97, 53.79] (95 %), chance 0.1667 %
    """
    how = {"length": length, "seed": seed, "backend": backend, "protocol": protocol}
    measured = linkability(enrol, test, level=level, **how)  # type: ignore[arg-type]
    return crowd_of([Attacker(enrol, test, backend)], measured, counts, protocol=protocol)


def crowd_of(
    ways: Sequence[Attacker],
    measured: Linkability,
    counts: npt.ArrayLike,
    *,
    protocol: LegalProtocol = USUAL,
    attacker: str = "",
) -> ExtrapolatedLinkability:
    """What was ``measured``, averaged over the ``ways`` of its reading, at larger ``counts``."""
    people, how = measured.above.others + 1, measured.resampling
    asked = np.atleast_1d(np.asarray(counts, dtype=np.int64))
    if measured.side:
        columns = " and ".join(measured.side)
        raise InputError("extrapolate", "no side information", f"{columns} known to match")
    if people < LEAST_PEOPLE:
        raise InputError("extrapolate", f"at least {LEAST_PEOPLE} enrolled people", people)
    if not asked.size or asked.min() <= people:
        wanted = f"more people than the {people:,} enrolled, among whom it is measured"
        raise InputError("extrapolate", wanted, f"{asked.min() if asked.size else 'none'}")
    steps = people * 2 ** np.arange(1, 1 + int(np.log2(asked.max() / people)))
    sizes = np.unique(np.concatenate([asked, steps]))
    sign = 1.0 if measured.variant == Reading(measured.variant).scored else -1.0
    parts = []
    for way in ways:
        data = attack_data(
            way.enrol, way.test, "linkability", measured.length, way.backend, protocol, how
        )
        parts.append(Strangers.of(data, sign))
    whole = [part.fit() for part in parts]
    links = [fitted.links(sizes) for fitted in whole]
    plain = np.mean([link.mean(axis=0) for link in links], axis=0)
    value = np.mean([fitted.joined(sizes) for fitted in whole], axis=0)
    groups = min(_GROUPS, people)
    lot = np.random.default_rng(how.seed).permutation(people) % groups
    refitted = [
        [part.fit(lot != gone) for part in parts]
        for gone in range(groups if how.replicates > 0 else 0)
    ]
    carriers = min(fitted.carriers for fitted in whole)
    low, high, moved_error = np.full((3, sizes.size), np.nan)
    if refitted:
        without = np.array([np.mean([f.joined(sizes) for f in fits], axis=0) for fits in refitted])
        wider = base.quantile_t(groups, how.level) * (people / carriers) ** _WIDER
        reach = base.jackknife_error(_odds(without)) * wider
        variance = np.mean([link.var(axis=0, ddof=1) / len(link) for link in links], axis=0)
        least = risk_interval(value, variance, len(links[0]), how)
        low = np.minimum(expit(_odds(value) - reach), least[0])
        high = np.maximum(expit(_odds(value) + reach), least[1])
        # No standardisation can mislead ranks: they tell how high the curve may be at least.
        high = np.maximum(high, linked_by_ranks(measured, sizes))
        gaps = np.array([np.mean([f.gap for f in fits]) for fits in refitted])
        gap_error = base.quantile_t(groups, how.level) * base.jackknife_error(gaps)
        moved_error = np.abs(expit(_odds(plain) + gap_error) - plain)
        moved_error = np.maximum(moved_error, np.abs(expit(_odds(plain) - gap_error) - plain))
    top, start = measured.index(people), (np.nan, np.nan, np.nan)
    if top is not None:
        start = float(measured.value[top]), float(measured.low[top]), float(measured.high[top])
    moved = value - plain
    value, high = np.fmin(value, start[0]), np.fmin(high, start[2])
    # Linkability falls with the crowd: an upper end holds for more people, a lower one for fewer.
    high = np.maximum(np.minimum.accumulate(high), value)
    low = np.minimum(np.maximum.accumulate(low[::-1])[::-1], value)
    place = np.searchsorted(sizes, asked)
    gaussian = np.mean([crowd.links(asked, gaussian=True).mean(axis=0) for crowd in whole], axis=0)
    kept = {field.name: getattr(measured, field.name) for field in fields(Curve)}
    return ExtrapolatedLinkability(
        **kept
        | {
            "metric": _METRIC,
            "counts": asked,
            "value": value[place],
            "low": low[place],
            "high": high[place],
            "chance": 1 / asked,
            "attacks": np.full(asked.size, len(measured.owner)),
            "resampling": replace(how, replicates=len(refitted)),
            "method": JACKKNIFE,
            "negated": None,
            "notes": (),
            "permuted": None,
        },
        attacker=attacker or measured.backend,
        people=people,
        measured=start,
        shape=float(np.mean([tail.shape for fitted in whole for tail in fitted.tails])),
        gaussian=gaussian,
        carriers=float(carriers),
        moved=moved[place],
        moved_error=moved_error[place],
    )


def _odds(shares: FloatArray) -> FloatArray:
    return np.asarray(logit(np.clip(shares, _EDGE, 1 - _EDGE)))


def linked_by_ranks(measured: Linkability, counts: IntArray) -> FloatArray:
    """Linkability at larger ``counts`` by the ranks of the right persons alone.

    Of M strangers r_i ~ Binomial(M, U_i) lie above person i, with U_i = 1 − Φ(μ + σZ) and Z normal:
    μ and σ by likelihood, conversations weighted so that people count alike. Then a link among N'
    has the probability E[Φ(μ + σZ)^(N' − 1)].
    """
    above, others = measured.above, measured.above.others
    # Who is tied is above or not with the same probability.
    ranks = above.above + above.tied / 2
    weights = 1 / np.bincount(measured.owner)[measured.owner]
    z = np.linspace(-8, 8, 801)
    density = np.exp(-(z**2) / 2)
    density /= density.sum()
    is_single = ranks <= _SINGLE_RANKS
    single, place = np.unique(ranks[is_single], return_inverse=True)
    often = np.bincount(place, weights[is_single], minlength=single.size)
    # Of many strangers above, their share is known well: its probit is what is normal.
    probits = -ndtri((ranks[~is_single] + 0.5) / (others + 1))
    often_known = weights[~is_single]

    def loss(parameters: FloatArray) -> float:
        mean, spread = parameters[0], np.exp(parameters[1])
        at = mean + spread * z
        # log of the binomial probability at each place, but for a constant of the rank.
        logs = single[:, None] * log_ndtr(-at) + (others - single)[:, None] * log_ndtr(at)
        likelihood = often @ logsumexp(logs, b=density, axis=1)
        known = -(((probits - mean) / spread) ** 2) / 2 - parameters[1]
        return -float(likelihood + often_known @ known)

    share = (ranks @ weights / weights.sum() + 0.5) / (others + 1)
    start = np.array([-ndtri(share) * np.sqrt(2), 0.0])
    options = {"xatol": 1e-3, "fatol": 1e-3, "maxiter": 200}
    mean, log_spread = minimize(loss, start, method="Nelder-Mead", options=options).x
    below = log_ndtr(mean + np.exp(np.clip(log_spread, -3, 3)) * z)
    return np.asarray(np.exp(np.outer(counts - 1.0, below)) @ density)


@dataclass(frozen=True, eq=False)
class Tail:
    """Standardised scores of strangers, sorted (``body``); above ``edge`` a Pareto tail."""

    body: FloatArray
    edge: float
    shape: float
    scale: float

    @classmethod
    def of(cls, body: FloatArray, share: float, most: float) -> Tail:
        """The tail of the ``share`` of sorted scores that is largest.

        Where strangers tie at the top there is none, which does no harm if the right persons'
        scores, of at ``most`` so much, do not exceed them.
        """
        edge = float(body[-1 - round(body.size * share)])
        excess = body[np.searchsorted(body, edge, side="right") :] - edge
        if excess.size >= _LEAST_TAIL:
            return cls(body, edge, *base.pareto_tail(excess))
        if most > body[-1]:
            raise InputError("extrapolate", "scores of strangers that differ", "ties at their top")
        return cls(body, float(body[-1]), 0.0, 1.0)

    def log_below(self, scores: FloatArray) -> FloatArray:
        """Logarithms of F: of the share of strangers strictly below these scores."""
        size = self.body.size
        share = 1 - np.searchsorted(self.body, self.edge, side="right") / size
        beyond = np.maximum(scores - self.edge, 0.0) / self.scale
        with np.errstate(divide="ignore"):
            if abs(self.shape) > 1e-9:
                beyond = np.log(np.maximum(1 + self.shape * beyond, 0.0)) / self.shape
            body = np.log(np.searchsorted(self.body, scores) / size)
        return np.where(scores > self.edge, np.log1p(-share * np.exp(-beyond)), body)


@dataclass(frozen=True, eq=False)
class FittedCrowd:
    """Fitted ``tails``, scores of the true speakers (``own``) by ``owner``, log F of them.

    Attributes
    ----------
    tied
        The share of strangers that tie with each of them.
    z
        The scores by mean and deviation of their strangers, for a Gaussian tail.
    gap
        How much higher than the curve Linkability is measured among half of the people, in logits.
    """

    tails: Sequence[Tail]
    own: FloatArray
    log_below: FloatArray
    owner: Groups
    carriers: float
    tied: FloatArray
    z: FloatArray
    gap: float = 0.0

    def links(self, counts: IntArray, *, gaussian: bool = False) -> FloatArray:
        """The probability of a link, for each person (rows) and count.

        It is F^(N' − 1), and where a share f is tied [(F + f)^N' − F^N']/(N'·f): the success of
        guessing.
        """
        below = log_ndtr(self.z) if gaussian else self.log_below
        each = np.exp(np.outer(below, counts - 1.0))
        is_tied = self.tied > 0
        if is_tied.any() and not gaussian:
            share = self.tied[is_tied]
            strictly = np.minimum(np.exp(below[is_tied]), 1 - share)
            rise = np.power.outer(strictly + share, counts) - np.power.outer(strictly, counts)
            each[is_tied] = rise / np.outer(share, counts)
        return np.add.reduceat(each, self.owner.first, axis=0) / self.owner.counts[:, None]

    def joined(self, counts: IntArray) -> FloatArray:
        """The mean over people, moved so that it joins what is measured."""
        with np.errstate(divide="ignore"):
            odds = logit(np.clip(self.links(counts).mean(axis=0), 0.0, 1.0))
        return np.asarray(expit(odds + self.gap))


@dataclass(frozen=True, eq=False)
class Strangers:
    """One way of an attack: ``scores`` of conversations (rows) with everybody enrolled, of whom
    ``true`` is the right one of each row. Of very many conversations some are drawn.
    """

    scores: FloatArray
    true: IntArray

    @classmethod
    def of(cls, data: AttackData, sign: float) -> Strangers:
        """The scores of an attack, negated where it reads them so."""
        enrol, test, _ = data.rows()
        true = data.true[data.tested.speakers]
        rng = np.random.default_rng(data.seeds[1])
        some = rng.permutation(len(test))[: max(_PAIRS // len(enrol), _LEAST_ROWS)]
        some = np.sort(some)
        return cls(sign * test[some] @ enrol.T, true[some])

    def fit(self, kept: BoolArray | None = None) -> FittedCrowd:
        """The tails of all people, or of those ``kept`` on both sides: one for each third of the
        conversations, by their mean score with strangers.
        """
        size = self.scores.shape[1]
        kept = np.ones(size, dtype=bool) if kept is None else kept
        rows = np.flatnonzero(kept[self.true])
        scores = self.scores[np.ix_(rows, kept)]
        true = (np.cumsum(kept) - 1)[self.true[rows]]
        people = Groups(np.unique(true, return_inverse=True)[1])
        others = scores.shape[1] - 1
        own = np.take_along_axis(scores, true[:, None], axis=1)
        is_stranger = np.ones(scores.shape, dtype=bool)
        np.put_along_axis(is_stranger, true[:, None], False, axis=1)

        # How many strangers are above the right person, and how many tied.
        tolerance = TIE * float(np.abs(self.scores).max())
        above = ((scores > own + tolerance) & is_stranger).sum(axis=1)
        tied = ((np.abs(scores - own) <= tolerance) & is_stranger).sum(axis=1)

        # Location and scale of the upper strangers of each conversation.
        mean = (scores.sum(axis=1) - own[:, 0]) / others
        away = np.where(is_stranger, scores - mean[:, None], 0.0)
        deviation = np.sqrt((away**2).sum(axis=1) / (others - 1))
        z = (own[:, 0] - mean) / np.maximum(deviation, tolerance or 1.0)
        location, scale = _upper(np.where(is_stranger, scores, -np.inf), others)
        scale = _steadied(np.maximum(scale, tolerance or 1.0), others)
        standard = (scores - location[:, None]) / scale[:, None]
        own_standard = (own[:, 0] - location) / scale

        # One tail for each third of the conversations.
        parts = min(_TAILS, size // LEAST_PEOPLE)
        part = np.searchsorted(np.quantile(mean, np.arange(1, parts) / parts), mean)
        share = min(_NEAREST / (others + 1), _MOST)
        below = np.empty(len(rows))
        is_in_tail = np.zeros(scores.shape, dtype=bool)
        tails = []
        for k in range(parts):
            some = part == k
            body = np.sort(standard[some][is_stranger[some]])
            reached = own_standard[some & (tied == 0)].max(initial=-np.inf)
            tail = Tail.of(body, share, reached)
            is_in_tail[some] = (standard[some] > tail.edge) & is_stranger[some]
            below[some] = tail.log_below(own_standard[some])
            tails.append(tail)
        carried = (1 / people.counts[people.codes]) @ is_in_tail
        carriers = float(size)
        if carried.any():
            held = carried.sum() ** 2 / (carried**2).sum() * (1 + 1 / carried.mean())
            carriers = float(min(held, others + 1))
        fitted = FittedCrowd(tails, own_standard, below, people, carriers, tied / others, z)

        # The gap between what is measured among half of these people and the curve there.
        half = np.array([max((others + 1) // 2, 2)])
        outcomes = guessed_linkability(above, tied, others, half)[:, 0]
        measured = np.add.reduceat(outcomes, people.first) / people.counts
        shares = np.array([measured.mean(), fitted.links(half).mean()])
        odds = logit((people.size * shares + 0.5) / (people.size + 1))
        return replace(fitted, gap=float(odds[0] - odds[1]))


def _upper(scores: FloatArray, others: int) -> tuple[FloatArray, FloatArray]:
    """The 70 % quantile of each row, whose first in order is −inf, and the mean excess over it."""
    place = _UPPER * (others - 1)
    low = int(place) + 1
    ranked = np.partition(scores, (low, min(low + 1, others)), axis=1)
    step = ranked[:, min(low + 1, others)] - ranked[:, low]
    location = ranked[:, low] + (place - int(place)) * step
    excess = np.maximum(scores - location[:, None], 0.0)
    number = np.maximum((excess > 0).sum(axis=1), 1)
    return location, excess.sum(axis=1) / number


def _steadied(scale: FloatArray, others: int) -> FloatArray:
    """Scales drawn towards their geometric mean by the share of their spread that is noise of few
    strangers: the variance of the log of a mean excess over three tenths of them.
    """
    logs = np.log(scale)
    seen = float(logs.var())
    noise = 1 / ((1 - _UPPER) * others)
    kept = max(1 - noise / seen, 0.0) if seen > 0 else 0.0
    return np.asarray(np.exp(logs.mean() + kept * (logs - logs.mean())))
