"""How strong attacks are: the strongest of several, whom they link, what more training would add.

The largest risk of many attacks is luck as well: its interval reaches down to what attacks chosen
on one half of the speakers do on the other. A low risk is believed only of an attacker that is
strong where nothing protects.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import polars as pl

from unmask.base import (
    VERDICT,
    FloatArray,
    IntArray,
    Tabular,
    in_order,
    quantile_t,
    score_interval,
)
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval, Luck, Notice
from unmask.privacy.attack import Attacker
from unmask.privacy.legal.curve import SCORE, Curve, RiskCurve
from unmask.privacy.legal.linking import Linkability, linkability
from unmask.privacy.luck import luck_of
from unmask.trials import lookup

SPLITS = 200
STRONG_ENOUGH = 0.5
SHARE = 0.1
EASIEST, HARDEST = "easiest", "hardest"
_LEAST_SPEAKERS = 4


@dataclass(frozen=True)
class Strongest:
    """The attacker with the largest risk of ``of`` attackers, its ``estimate``.

    Made by :func:`strongest_of`. Where ``corrected`` the low end of the interval allows for the
    choice: on half of the speakers the attacker is the strongest ``chosen_share`` of the times.
    """

    attacker: str
    estimate: Estimate
    chosen_share: float
    of: int
    corrected: bool

    @property
    def count(self) -> int:
        """Among how many speakers."""
        return int(self.estimate.params["N"] or 0)

    @property
    def length(self) -> int:
        """With conversations of how many utterances."""
        return int(self.estimate.params["L"] or 0)

    @property
    def note(self) -> str:
        """Which correction was made for the choice."""
        if self.of == 1:
            return "one attack tried: nothing to choose"
        if self.corrected:
            return (
                f"largest of {self.of} attacks, the strongest on {100 * self.chosen_share:.0f} % of"
                " all halves of the speakers; the low end of the interval allows for the choice"
            )
        return f"largest of {self.of} attacks, not corrected for the choice, which is conservative"

    @property
    def luck(self) -> Luck | None:
        """What the best of the same attacks reads without information."""
        return self.estimate.luck


def extent(estimate: Estimate) -> tuple[float, float]:
    """By which risks are put in order: Linkability as people, then the low end of the interval.

    Of shares less than half a person apart the surer one counts as larger: of 60 people 100 % may
    be 56 to 60, and 99.9 %, whose spread is known, 58 to 60.
    """
    value, made = float(estimate.value), estimate.interval
    low = -np.inf if made is None or np.isnan(made.low) else made.low
    people = estimate.n.get("speakers", 0) if estimate.metric == "linkability" else 0
    return round(people * value) if people else value, low


def strongest_of(
    curves: Mapping[str, Curve], count: int | None = None, *, seed: int = 0
) -> Strongest:
    """The strongest of the attackers of ``curves`` at ``count`` speakers, by default the most there
    are, and its risk: the largest, which errs towards more risk.

    Speakers are halved 200 times, drawn with ``seed``. With c_i the mean over splits of the
    outcome of speaker i under the attacker that succeeds most on the half without i, the low end of
    the interval is that of the score interval of the mean of c_i, with the variance of that mean or
    that of the attacker, whichever is larger. Curves without outcomes of speakers (1 − EER)
    keep their own interval.
    """
    if count is None:
        count = max((int(curve.counts.max()) for curve in curves.values()), default=0)
    at = {name: i for name, curve in curves.items() if (i := curve.index(count)) is not None}
    if not at:
        raise InputError(f"strongest attacker: no value for {count} speakers")
    risks = {name: curve for name in at if isinstance(curve := curves[name], RiskCurve)}
    share, cross = dict.fromkeys(at, 1.0), np.empty(0)
    if len(risks) == len(at) > 1:
        each = ((one.speakers, one.per_speaker[:, at[name]]) for name, one in risks.items())
        people, tried = _common(each)
        if len(people) >= _LEAST_SPEAKERS:
            cross, chosen = _cross_fitted(tried, seed)
            share = dict(zip(risks, chosen.tolist(), strict=True))
    name = max(at, key=lambda one: (round(float(curves[one].value[at[one]]), 12), share[one]))
    luck = luck_of((curves[one].permuted, i) for one, i in at.items())
    estimate = replace(curves[name].estimate(at[name]), luck=luck)
    if cross.size and (made := estimate.interval) is not None:
        variance = max(cross.var(ddof=1) / cross.size, risks[name].variance[at[name]])
        low, high = score_interval(cross.mean(), variance, cross.size, level=made.level)
        ends = float(low), max(float(high), made.high)
        method = f"{made.method},cross-fitted"
        interval = Interval(*ends, made.level, method, 0, made.seed)
        estimate = replace(estimate, interval=interval)
    return Strongest(name, estimate, share[name], len(at), bool(cross.size))


def _common(outcomes: Iterable[tuple[pl.Series, FloatArray]]) -> tuple[pl.Series, FloatArray]:
    """The speakers that all attackers attack, and their outcomes under each (rows)."""
    told = list(outcomes)
    names = told[0][0]
    at = np.array([lookup(names, speakers) for speakers, _ in told])
    known = (at >= 0).all(axis=0)
    values = [values[where] for (_, values), where in zip(told, at[:, known], strict=True)]
    return names.filter(pl.Series(known)), np.array(values)


def _cross_fitted(outcomes: FloatArray, seed: int) -> tuple[FloatArray, FloatArray]:
    """Mean outcome of each speaker under attackers chosen without it, and the share of choices."""
    attackers, speakers = outcomes.shape
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    rank = rng.random((SPLITS, speakers)).argsort(axis=1).argsort(axis=1)
    half = rank < speakers // 2
    sums = half @ outcomes.T
    rest = outcomes.sum(axis=1) - sums
    by_half = (sums / (speakers // 2)).argmax(axis=1)
    by_rest = (rest / (speakers - speakers // 2)).argmax(axis=1)
    chosen = np.where(half, by_rest[:, None], by_half[:, None])
    cross = outcomes[chosen, np.arange(speakers)].mean(axis=0)
    share = np.bincount(np.concatenate([by_half, by_rest]), minlength=attackers) / (2 * SPLITS)
    return cross, share


@dataclass(frozen=True)
class Overlap:
    """How many people are in the same tenth under two attacks; made by :func:`overlaps`.

    ``which`` tenth, of ``size`` people out of ``speakers``; ``shared`` of them are in both.
    ``drawn`` counts those of either tenth whose place was drawn by lot, since others were linked as
    often: they lower the overlap towards chance.
    """

    first: str
    second: str
    which: str
    shared: int
    size: int
    speakers: int
    drawn: int

    @property
    def chance(self) -> float:
        """Share of the tenth that two unrelated attacks have in common: size/speakers."""
        return self.size / self.speakers

    @property
    def probability(self) -> float:
        """P(as many or more in common by chance), exact: hypergeometric with ``size`` marked of
        ``speakers`` and ``size`` drawn.
        """
        from scipy.stats import hypergeom

        return float(hypergeom.sf(self.shared - 1, self.speakers, self.size, self.size))

    @property
    def estimate(self) -> Estimate:
        """The share of the tenth that both have."""
        n = {"speakers": self.speakers, "tenth": self.size, "drawn": self.drawn}
        params = {"by_chance": round(self.probability, 6)}
        why = "an exact chance level and probability stand beside it"
        value = self.shared / self.size
        return Estimate("overlap", value, "%", None, self.chance, n, params, no_interval=why)


def overlaps(risks: Mapping[str, RiskCurve], *, share: float = SHARE) -> tuple[Overlap, ...]:
    """Overlap of the easiest and of the hardest ``share`` of people for each pair of attacks.

    ``risks`` are curves by the name of the attack, safeguard or length. People are ordered by their
    mean risk over the curve's numbers of candidates; those of equal risk by a lot that each attack
    draws anew, so that ties create no overlap. Only people attacked by both count.
    """
    if not 0 < share <= 0.5:
        raise InputError(f"share: expected more than 0 and at most 0.5, found {share:g}")
    made = []
    means = {label: (one.speakers, one.per_speaker.mean(axis=1)) for label, one in risks.items()}
    for first, second in combinations(risks, 2):
        people, tried = _common([means[first], means[second]])
        names = people.to_list()
        size = max(1, round(share * len(names)))
        if len(names) < 2 * size:
            continue
        sides = [_ordered(names, *one) for one in zip(tried, (first, second), strict=True)]
        for which, step in ((EASIEST, 1), (HARDEST, -1)):
            tenths, drawn = [], 0
            for order, risk in ((order[::step], risk[::step]) for order, risk in sides):
                tenths.append(set(order[:size]))
                equal = risk[: size + 1] == risk[size - 1]
                drawn += int(equal[:size].sum()) if equal[size] else 0
            shared = len(tenths[0] & tenths[1])
            made.append(Overlap(first, second, which, shared, size, len(names), drawn))
    return tuple(made)


def _ordered(names: Sequence[str], risk: FloatArray, label: str) -> tuple[list[str], FloatArray]:
    """People from the most to the least linked, with their risks; ties by a lot of the label."""
    seed = int.from_bytes(hashlib.sha256(label.encode()).digest()[:8], "big")
    lot = np.random.default_rng(seed).permutation(len(names))[in_order(names)]
    order = sorted(range(len(names)), key=lambda i: (-risk[i], lot[i]))
    return [names[i] for i in order], risk[order]


FLAT = 0.02
"""A rise below this is none, if its whole interval lies there."""
MOST_CANDIDATES = 20
_LEAST_PEOPLE = 4
_PAIRED = "speaker,paired"
RISES, STEADY, UNCLEAR = "rises", "steady", "unclear"


@dataclass(frozen=True, eq=False, repr=False)
class LearningCurve(Tabular):
    """Linkability against the number of people an attacker trained on; by :func:`learning_curve`.

    ``outcomes`` has a row per number of ``people`` and a column per attacked speaker: the share of
    the speaker's utterances linked among ``candidates``, averaged over attackers trained on
    different people, whose risks vary by ``spread`` (a variance, 0 where there is one).
    """

    people: IntArray
    outcomes: FloatArray
    spread: FloatArray
    candidates: int
    length: int
    level: float

    @property
    def value(self) -> FloatArray:
        """The risk at each number of training people."""
        return np.asarray(self.outcomes.mean(axis=1))

    @property
    def limits(self) -> tuple[FloatArray, FloatArray]:
        """Score interval of each value over the attacked speakers."""
        size = self.outcomes.shape[1]
        variance = np.zeros(len(self.people))
        if size > 1:
            variance = self.outcomes.var(axis=1, ddof=1) / size + self.spread
        return score_interval(self.value, variance, size, level=self.level)

    @property
    def rise(self) -> tuple[float, float, float]:
        """Gain of the last step of the curve, a doubling where it can be, and its interval."""
        return self._rise(self.level)

    def _rise(self, level: float) -> tuple[float, float, float]:
        """The variance of speakers' differences plus that of attackers trained on others."""
        if len(self.people) < 2:
            return np.nan, np.nan, np.nan
        gain = self.outcomes[-1] - self.outcomes[-2]
        size = len(gain)
        if size < 2:
            return float(gain.mean()), np.nan, np.nan
        error = np.sqrt(gain.var(ddof=1) / size + self.spread[-1] + self.spread[-2])
        reach = quantile_t(size, level) * error
        return float(gain.mean()), float(gain.mean() - reach), float(gain.mean() + reach)

    @property
    def verdict(self) -> str:
        """``rises``: interval of the last gain above 0; ``steady``: reaches 0, below 2 points."""
        _, low, high = self._rise(VERDICT)
        if low > 0:
            return RISES
        return STEADY if high < FLAT else UNCLEAR

    @property
    def notices(self) -> tuple[Notice, ...]:
        """That more training speech would link more, or that this cannot be told."""
        if len(self.people) < 2:
            sentence = "no learning curve: there is one number of training people only"
            return (Notice(f"learning-{UNCLEAR}", "linkability", sentence),)
        if self.verdict == STEADY:
            return ()
        value, low, high = (100 * part for part in self.rise)
        gain = f"{value:+.1f} [{low:+.1f}, {high:+.1f}] points".replace("-", "−")
        last = f"going from {self.people[-2]:,} to {self.people[-1]:,} training people added {gain}"
        sentence = (
            f"still improving: {last}, so the true risk is probably higher"
            if self.verdict == RISES
            else f"whether the attacker still improves cannot be told: {last}"
        )
        return (Notice(f"learning-{self.verdict}", "linkability", sentence),)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Linkability at each number of training people, then the gain of the last step."""
        chance = 1 / self.candidates
        points = zip(self.value, *self.limits, self.people, strict=True)
        rows = [("linkability", point[:3], SCORE, chance, point[3]) for point in points]
        if not np.isnan(self.rise[0]):
            rows.append(("learning_gain", self.rise, _PAIRED, 0.0, self.people[-1]))
        return tuple(
            Estimate(
                metric,
                float(value),
                "%",
                None
                if np.isnan(low)
                else Interval(float(low), float(high), self.level, method, 0, 0),
                chance,
                {"speakers": self.outcomes.shape[1]},
                {"N": self.candidates, "L": self.length, "trained_on": int(people)},
            )
            for metric, (value, low, high), method, chance, people in rows
        )


def linked(attacker: Attacker, *, candidates: int, length: int = 1) -> Linkability:
    """Linkability of an attacker among as many ``candidates``."""
    used = attacker.ready()
    return linkability(
        used.enrol, used.test, counts=[candidates], length=length, backend=used.backend_in_use
    )


def learning_curve(
    attackers: Mapping[int, Sequence[Attacker]],
    *,
    candidates: int | None = None,
    length: int = 1,
    level: float = 0.95,
) -> LearningCurve:
    """The risk under attackers trained on more and more people.

    ``attackers`` are by the number of people that they were trained on, several of one number where
    different people can be drawn (:func:`on_fewer` makes them for a back-end); all attack the same
    speakers. ``candidates`` is N', 20 or all there are unless given; ``length`` the utterances of a
    conversation; ``level`` that of the intervals. Numbers of people too few to fit a back-end are
    left out.
    """
    if not attackers or not all(attackers.values()):
        raise InputError("learning curve: expected attackers by number of training people")
    sizes = sorted(attackers)
    first = attackers[sizes[0]][0]
    most = candidates or min(MOST_CANDIDATES, first.enrol.n_speakers)
    people, outcomes, spread = [], [], []
    names: pl.Series | None = None
    for size in sizes:
        try:
            curves = [linked(one, candidates=most, length=length) for one in attackers[size]]
        except InputError:
            if size == sizes[-1]:
                raise
            continue
        people.append(size)
        names = curves[0].speakers if names is None else names
        if not all(curve.speakers.equals(names) for curve in curves):
            raise InputError("learning curve: expected the same attacked speakers everywhere")
        values = np.stack([curve.per_speaker[:, 0] for curve in curves])
        outcomes.append(values.mean(axis=0))
        means = values.mean(axis=1)
        spread.append(float(means.var(ddof=1) / len(means)) if len(means) > 1 else 0.0)
    return LearningCurve(
        np.array(people), np.stack(outcomes), np.array(spread), most, length, level
    )


def on_fewer(
    attacker: Attacker, *, steps: int = 3, draws: int = 2, seed: int = 0
) -> dict[int, list[Attacker]]:
    """The attacker trained on all, half, a quarter, … of its training people, in ``steps``.

    ``draws`` different groups are drawn with ``seed`` for each number but the last. Where training
    people are attacked as well, half of them, drawn, train and the others are attacked.
    """
    if attacker.train is None:
        raise InputError("learning curve: expected an attacker with training speech, found none")
    trainers = sorted(set(attacker.train.speakers.present))
    attacked = set(attacker.test.speakers.present)
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    if attacked & set(trainers):
        order = [trainers[i] for i in rng.permutation(len(trainers))]
        trainers = order[: (len(order) + 1) // 2]
        attacker = attacker.among(attacked - set(trainers))
    fewer: dict[int, list[Attacker]] = {}
    size = len(trainers)
    for step in range(steps):
        if size < _LEAST_PEOPLE:
            break
        groups = [
            {trainers[i] for i in rng.permutation(len(trainers))[:size]}
            for _ in range(draws if step else 1)
        ]
        fewer[size] = [attacker.trained_on(group) for group in groups]
        size //= 2
    if not fewer:
        raise InputError("learning curve", f"{_LEAST_PEOPLE} training people", len(trainers))
    return dict(sorted(fewer.items()))
