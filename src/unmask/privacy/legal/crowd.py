"""Linkability among more people than there are: a tail of strangers' scores, continued.

Pr(link | N') = E_i[F_i(s_ii)^(N' − 1)], where F_i is the distribution of the scores of test
conversation i with a stranger. Scores of each conversation are standardised by mean and deviation
of its own strangers and pooled, conversations whose mean is alike together; their tail is a
generalised Pareto distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_ndtr, logit

from unmask import base
from unmask.base import BoolArray, FloatArray, Groups, IntArray, Sampling
from unmask.errors import InputError
from unmask.estimate import Notice, Parameter
from unmask.privacy.attack import Attacker, Reading
from unmask.privacy.legal.conversations import USUAL, AttackData, LegalProtocol, attack_data
from unmask.privacy.legal.curve import Curve, risk_interval, spoken
from unmask.privacy.legal.linking import Linkability, linkability
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
_PAIRS = 1 << 20
_EDGE = 1e-4
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
    some are close to everybody.
    """

    attacker: str
    people: int
    measured: tuple[float, float, float]
    shape: float
    gaussian: FloatArray
    carriers: float

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
        text = f"{self.title}, {self.counts[i]:,} people: about {100 * self.value[i]:.1f}"
        if not np.isnan(self.low[i]):
            text += f" [{100 * self.low[i]:.1f}, {100 * self.high[i]:.1f}]"
        return f"{text} %; chance {100 * self.chance[i]:.3g} %."

    def _params(self, i: int) -> dict[str, Parameter]:
        about = {"people": self.people, "shape": round(self.shape, 4)}
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
    i with a stranger: standardised, pooled, and continued by a generalised Pareto tail above the
    three nearest strangers of a conversation (above the 90 % quantile where that is higher). It is
    never more than what is measured among all people at hand.

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
        wider where few people carry the tail.

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
    linkability_extrapolated 45.61 % [30.65, 61.4] (95 %), chance 0.1667 %
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
    value = np.mean([link.mean(axis=0) for link in links], axis=0)
    groups = min(_GROUPS, people)
    lot = np.random.default_rng(how.seed).permutation(people) % groups
    without = np.array(
        [
            np.mean([part.fit(lot != gone).links(sizes).mean(axis=0) for part in parts], axis=0)
            for gone in range(groups if how.replicates > 0 else 0)
        ]
    )
    carriers = min(fitted.carriers for fitted in whole)
    low, high = np.full((2, sizes.size), np.nan)
    if len(without):
        error = base.jackknife_error(_odds(without)) * (people / carriers) ** _WIDER
        reach = base.quantile_t(groups, how.level) * error
        variance = np.mean([link.var(axis=0, ddof=1) / len(link) for link in links], axis=0)
        least = risk_interval(value, variance, len(links[0]), how)
        low = np.minimum(expit(_odds(value) - reach), least[0])
        high = np.maximum(expit(_odds(value) + reach), least[1])
    top, start = measured.index(people), (np.nan, np.nan, np.nan)
    if top is not None:
        start = float(measured.value[top]), float(measured.low[top]), float(measured.high[top])
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
            "attacks": np.full(asked.size, sum(len(part.test) for part in parts)),
            "resampling": replace(how, replicates=len(without)),
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
    )


def _odds(shares: FloatArray) -> FloatArray:
    return np.asarray(logit(np.clip(shares, _EDGE, 1 - _EDGE)))


@dataclass(frozen=True, eq=False)
class Tail:
    """Standardised scores of strangers, sorted (``body``); above ``edge`` a Pareto tail."""

    body: FloatArray
    edge: float
    shape: float
    scale: float

    @classmethod
    def of(cls, body: FloatArray, share: float) -> Tail:
        """The tail of the ``share`` of sorted scores that is largest."""
        edge = float(body[-1 - round(body.size * share)])
        excess = body[np.searchsorted(body, edge, side="right") :] - edge
        if excess.size < _LEAST_TAIL:
            raise InputError("extrapolate", "scores of strangers that differ", "ties at their top")
        return cls(body, edge, *base.pareto_tail(excess))

    def log_below(self, scores: FloatArray) -> FloatArray:
        """Logarithms of F: of the share of strangers strictly below these scores, a tie fails."""
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
    """Fitted ``tails``, scores of the true speakers (``own``) by ``owner``, and log F of them."""

    tails: Sequence[Tail]
    own: FloatArray
    log_below: FloatArray
    owner: Groups
    carriers: float

    def links(self, counts: IntArray, *, gaussian: bool = False) -> FloatArray:
        """The probability of a link, for each person (rows) and count."""
        below = log_ndtr(self.own) if gaussian else self.log_below
        each = np.exp(np.outer(below, counts - 1.0))
        return np.add.reduceat(each, self.owner.first, axis=0) / self.owner.counts[:, None]


@dataclass(frozen=True, eq=False)
class Strangers:
    """One way of an attack: rows whose inner products are scores, ``true`` the enrolled row of each
    test row, which has the score ``own``; the tail is told from ``some`` test rows.
    """

    enrol: FloatArray
    test: FloatArray
    true: IntArray
    own: FloatArray
    some: IntArray

    @classmethod
    def of(cls, data: AttackData, sign: float) -> Strangers:
        """The rows of an attack, negated where it reads its scores so."""
        enrol, test, _ = data.rows()
        enrol, true = sign * enrol, data.true[data.tested.speakers]
        own = np.einsum("ij,ij->i", test, enrol[true])
        rng = np.random.default_rng(data.seeds[1])
        some = rng.permutation(len(test))[: max(_PAIRS // len(enrol), 1)]
        return cls(enrol, test, true, own, np.sort(some))

    def fit(self, kept: BoolArray | None = None) -> FittedCrowd:
        """The tails of all people, or of those ``kept`` on both sides: one for each third of the
        conversations, by their mean score with strangers.
        """
        kept = np.ones(len(self.enrol), dtype=bool) if kept is None else kept
        rows = np.flatnonzero(kept[self.true])
        enrol, test, own = self.enrol[kept], self.test[rows], self.own[rows]
        others = len(enrol) - 1
        centre = enrol.mean(axis=0)
        away = enrol - centre
        gap = own - test @ centre
        square = np.einsum("ij,ij->i", test @ (away.T @ away), test)
        # Without the true speaker, who is among those enrolled.
        mean = own - gap * (others + 1) / others
        spread = (square - gap**2 * (others + 1) / others) / (others - 1)
        spread = np.sqrt(np.maximum(spread, 1e-18 * max(float(square.max()), 1e-300)))
        near = np.isin(rows, self.some)
        people = Groups(np.unique(self.true[rows], return_inverse=True)[1])
        scores = (test[near] @ enrol.T - mean[near, None]) / spread[near, None]
        column = (np.cumsum(kept) - 1)[self.true[rows]]
        stranger = np.ones(scores.shape, dtype=bool)
        stranger[np.arange(len(scores)), column[near]] = False
        steady = _steadied(spread, float(np.square(scores[stranger] ** 2).mean()), others)
        scores *= (spread / steady)[near, None]
        parts = min(_TAILS, len(self.enrol) // LEAST_PEOPLE)
        cuts = np.quantile(mean[near], np.arange(1, parts) / parts)
        part, share = np.searchsorted(cuts, mean), min(_NEAREST / (others + 1), _MOST)
        standard, below = (own - mean) / steady, np.empty(len(own))
        high, tails = np.zeros(scores.shape, dtype=bool), []
        for k in range(parts):
            rows = part[near] == k
            tails.append(Tail.of(np.sort(scores[rows][stranger[rows]]), share))
            high[rows] = (scores[rows] > tails[k].edge) & stranger[rows]
            below[part == k] = tails[k].log_below(standard[part == k])
        carried = (1 / people.counts[people.codes[near]]) @ high
        held = carried.sum() ** 2 / (carried**2).sum() * (1 + 1 / carried.mean())
        return FittedCrowd(tails, standard, below, people, float(min(held, len(enrol))))


def _steadied(spread: FloatArray, kurtosis: float, others: int) -> FloatArray:
    """Deviations drawn towards their geometric mean by the share of their spread that is noise of
    few strangers: the variance of the log of a deviation is (kurtosis − 1)/4n.
    """
    logs = np.log(spread)
    seen = float(logs.var())
    kept = max(1 - (kurtosis - 1) / (4 * others) / seen, 0.0) if seen > 0 else 0.0
    return np.asarray(np.exp(logs.mean() + kept * (logs - logs.mean())))
