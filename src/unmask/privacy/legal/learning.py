"""Is a trained attacker to be trusted? Its learning curve, and whether it fails where it must not.

Attackers that were poorly trained made published protection look better than it is (Panariello et
al. 2025). The risk under an attacker that would still learn from more speech is a lower bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from unmask.base import FloatArray, IntArray, Tabular, quantile_t, score_interval
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval, Notice
from unmask.privacy.legal.attack import Attacker, of_people
from unmask.privacy.legal.links import Linkability, linkability

FLAT = 0.02
"""A rise below this is none, if its whole interval lies there."""
MOST_CANDIDATES = 20
_LEAST_PEOPLE = 4
_SCORE, _PAIRED = "speaker,score", "speaker,paired"
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
        """Gain of the last step of the curve, a doubling where it can be, and its interval.

        The difference is taken within each attacked speaker, so its variance is that of the
        speakers' differences, plus that of attackers trained on other people.
        """
        if len(self.people) < 2:
            return np.nan, np.nan, np.nan
        gain = self.outcomes[-1] - self.outcomes[-2]
        size = len(gain)
        if size < 2:
            return float(gain.mean()), np.nan, np.nan
        error = np.sqrt(gain.var(ddof=1) / size + self.spread[-1] + self.spread[-2])
        reach = quantile_t(size, self.level) * error
        return float(gain.mean()), float(gain.mean() - reach), float(gain.mean() + reach)

    @property
    def verdict(self) -> str:
        """``rises`` where the interval of the last gain lies above 0, ``steady`` where it lies
        below two points and reaches 0, else ``unclear``.
        """
        _, low, high = self.rise
        if low > 0:
            return RISES
        return STEADY if high < FLAT else UNCLEAR

    @property
    def notices(self) -> tuple[Notice, ...]:
        """That more training speech would link more, or that this cannot be told."""
        value, low, high = (100 * part for part in self.rise)
        gain = f"{value:+.1f} points [{low:+.1f}, {high:+.1f}]".replace("-", "−")
        sentences = {
            RISES: f"more training speech would link more: the last step to {self.people[-1]:,}"
            f" people gained {gain}; the risk is a lower bound",
            UNCLEAR: f"whether more training speech would link more cannot be told: the last step"
            f" to {self.people[-1]:,} people gained {gain}",
            STEADY: "",
        }
        if len(self.people) < 2:
            sentences[UNCLEAR] = "no learning curve: there is one number of training people only"
        sentence = sentences[self.verdict]
        return (Notice(f"learning-{self.verdict}", "linkability", sentence),) if sentence else ()

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Linkability at each number of training people, then the gain of the last step."""
        chance = 1 / self.candidates
        points = zip(self.value, *self.limits, self.people, strict=True)
        rows = [("linkability", one[:3], _SCORE, chance, one[3]) for one in points]
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
    conversation; ``level`` that of the intervals.
    """
    if not attackers or not all(attackers.values()):
        raise InputError("learning curve: expected attackers by number of training people")
    sizes = sorted(attackers)
    first = attackers[sizes[0]][0]
    most = candidates or min(MOST_CANDIDATES, first.enrol.n_speakers)
    outcomes, spread = [], []
    names: pl.Series | None = None
    for size in sizes:
        curves = [linked(one, candidates=most, length=length) for one in attackers[size]]
        names = curves[0].speakers if names is None else names
        if not all(curve.speakers.equals(names) for curve in curves):
            raise InputError("learning curve: expected the same attacked speakers everywhere")
        values = np.stack([curve.per_speaker[:, 0] for curve in curves])
        outcomes.append(values.mean(axis=0))
        means = values.mean(axis=1)
        spread.append(float(means.var(ddof=1) / len(means)) if len(means) > 1 else 0.0)
    return LearningCurve(np.array(sizes), np.stack(outcomes), np.array(spread), most, length, level)


def on_fewer(
    attacker: Attacker, *, steps: int = 3, draws: int = 2, seed: int = 0
) -> dict[int, list[Attacker]]:
    """The attacker trained on all, half, a quarter, … of its training people, in ``steps``.

    ``draws`` different groups are drawn with ``seed`` for each number but the last. Where training
    people are attacked as well, every second one of all trains and the others are attacked.
    """
    if attacker.train is None:
        raise InputError("learning curve: expected an attacker with training speech, found none")
    trainers = sorted(set(attacker.train.speakers.to_series()))
    attacked = set(attacker.test.speakers.to_series())
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    if attacked & set(trainers):
        order = [trainers[i] for i in rng.permutation(len(trainers))]
        trainers = order[::2]
        attacker = among(attacker, attacked - set(trainers))
    fewer: dict[int, list[Attacker]] = {}
    size = len(trainers)
    for step in range(steps):
        if size < _LEAST_PEOPLE:
            break
        groups = [
            {trainers[i] for i in rng.permutation(len(trainers))[:size]}
            for _ in range(draws if step else 1)
        ]
        fewer[size] = [trained_on(attacker, group) for group in groups]
        size //= 2
    if not fewer:
        raise InputError(
            f"learning curve: expected {_LEAST_PEOPLE} training people, found {len(trainers)}"
        )
    return dict(sorted(fewer.items()))


def among(attacker: Attacker, people: set[str]) -> Attacker:
    """The same attacker on some of the people."""
    return replace(
        attacker, enrol=of_people(attacker.enrol, people), test=of_people(attacker.test, people)
    )


def trained_on(attacker: Attacker, people: set[str]) -> Attacker:
    """The same attacker trained on some of its training people."""
    assert attacker.train is not None
    pairs = attacker.pairs
    if pairs is not None:
        pairs = of_people(pairs[0], people), of_people(pairs[1], people)
    return replace(attacker, train=of_people(attacker.train, people), pairs=pairs)
