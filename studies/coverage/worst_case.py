"""Coverage of worst-case intervals, measured and extrapolated, over simulated populations.

Four laws of voices: ``student`` (cosine of Student vectors), ``plda`` (log-likelihood ratios of
PLDA, 24 dimensions), ``hubs`` (log-normal norms, some voices are close to everybody) and
``families`` (cosine; families of ten voices). A fifth, ``households`` (cosine; households of any
size, four voices in the mean, some more alike than others), is kept apart: no constant was chosen
on it. A population is known, so that the closest of N is
known; samples of it are seen with a few scores a pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from studies.coverage.study import SPEAKERS, Cell, Drawn, Study
from unmask.base.arrays import FloatArray, IntArray
from unmask.stress import PairScores, extrapolate, worst_case
from unmask.stress.impostors.rates import closest_weights

LAWS = ("student", "plda", "hubs", "families")
APART = "households"
"""A law that no constant of an interval was chosen on: it only checks them."""

SEEN, SCORES = (150, 300), 12
REACH = (10, 100)
LEVELS = {0.95: "", 0.99: ", 99 %"}
_MEASURED = ", measured"
_RANKS = 60
_MEANS = 400


@dataclass(frozen=True)
class Law:
    """A population of voices: the score of two utterances is the product of two vectors.

    ``seed`` draws another population of the same law.
    """

    name: str
    speakers: int = 100 * SEEN[0] + 1
    likeness: float = 0.8
    seed: int = 0

    @property
    def far(self) -> list[int]:
        """Ten and a hundred times as many voices as are seen."""
        return [(self.speakers - 1) * reach // max(REACH) for reach in REACH]

    @cached_property
    def _scale(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Spread of voices, of utterances around them, and the weights of PLDA's products."""
        if self.name == "plda":
            within = np.geomspace(0.4, 4.0, 24)
            return np.ones(24), np.sqrt(within), 1 / ((1 + within) ** 2 - 1)
        spread = np.linspace(1.5, 0.5, 32)
        return spread, 0.6 * spread, np.empty(0)

    @cached_property
    def centres(self) -> FloatArray:
        """A vector for each voice."""
        rng = np.random.default_rng([1, (*LAWS, APART).index(self.name), self.seed])
        spread = self._scale[0]
        normal = rng.normal(size=(self.speakers, spread.size))
        if self.name == "families":
            family = rng.normal(size=normal.shape)[np.arange(self.speakers) // 10]
            normal = np.sqrt(self.likeness) * family + np.sqrt(1 - self.likeness) * normal
        if self.name == APART:
            starts = rng.random(self.speakers) < 0.25
            house = np.cumsum(starts)
            likeness = rng.uniform(0.4, 0.9, (self.speakers + 1, 1))[house]
            shared = rng.normal(size=(self.speakers + 1, spread.size))[house]
            normal = np.sqrt(likeness) * shared + np.sqrt(1 - likeness) * normal
        if self.name == "student":
            normal /= np.sqrt(rng.chisquare(12.0, (self.speakers, 1)) / 12.0)
        if self.name == "hubs":
            normal *= np.exp(0.25 * rng.normal(size=(self.speakers, 1)))
        centres = spread * normal
        if self.name in ("student", "families", APART):
            centres[:, 0] += 1.5
        return centres

    @cached_property
    def means(self) -> tuple[FloatArray, FloatArray]:
        """Mean vectors of each voice on either side, whose product is the mean score.

        Of many utterances: who is closest by means of a few is not the closest.
        """
        if self.name == "hubs":
            return self.centres, self.centres
        rng, every = np.random.default_rng(2), np.arange(self.speakers)
        left, right = self._sides(self._noisy(every, rng))
        for _ in range(_MEANS - 1):
            more = self._sides(self._noisy(every, rng))
            left, right = left + more[0], right + more[1]
        return left / _MEANS, right / _MEANS

    def _noisy(self, speakers: IntArray, rng: np.random.Generator, *size: int) -> FloatArray:
        centres = self.centres[speakers].reshape(len(speakers), *(1 for _ in size), -1)
        shape = (len(speakers), *size, centres.shape[-1])
        return np.asarray(centres + self._scale[1] * rng.normal(size=shape))

    def _sides(self, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        if self.name == "hubs":
            return vectors, vectors
        if self.name != "plda":
            unit = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
            return unit, unit
        a = self._scale[2]
        own = -0.5 * (vectors**2 @ (a / (1 + self._scale[1] ** 2)))[..., None]
        one = np.ones_like(own)
        left = np.concatenate([a * vectors, own, one], axis=-1)
        return left, np.concatenate([vectors, one, own], axis=-1)

    def seen(self, speakers: int, scores: int, seed: int) -> PairScores:
        """All pairs of a sample, ``scores`` scores a pair."""
        rng = np.random.default_rng(seed)
        some = rng.choice(self.speakers, speakers, replace=False)
        left, right = self._sides(self._noisy(some, rng, scores))
        cube = np.einsum("ild,jld->ijl", left, right)
        return PairScores.from_array(cube, present=~np.eye(speakers, dtype=np.bool_))

    def truth(
        self, thresholds: FloatArray, counts: list[int], targets: IntArray | None = None
    ) -> FloatArray:
        """P_FA^N(τ) for N of a twentieth of the population or more, chosen by the true means.

        ``targets`` are 4,000 of all speakers unless given.
        """
        rng = np.random.default_rng(3)
        if targets is None:
            targets = rng.choice(self.speakers, 4000, replace=False)
        weights = closest_weights(self.speakers - 1, counts)[:, :_RANKS]
        total = np.zeros((len(counts), thresholds.size))
        for target in targets:
            similarity = self.means[1] @ self.means[0][target]
            similarity[target] = -np.inf
            near = np.argpartition(-similarity, _RANKS)[:_RANKS]
            near = near[np.argsort(-similarity[near])]
            total += weights @ self._rates(target, near, thresholds, rng)
        return total / len(targets)

    def small_truth(
        self, thresholds: FloatArray, counts: list[int], draws: int = 20_000
    ) -> FloatArray:
        """The same for any N, from subsets drawn anew for each target."""
        rng = np.random.default_rng(4)
        total = np.zeros((len(counts), thresholds.size))
        for target in rng.integers(0, self.speakers, draws):
            others = rng.integers(0, self.speakers, max(counts))
            others = np.where(others == target, (others + 1) % self.speakers, others)
            similarity = self.means[1][others] @ self.means[0][target]
            near = np.array([others[similarity[:n].argmax()] for n in counts])
            total += self._rates(target, near, thresholds, rng)
        return total / draws

    def _rates(
        self, target: int, near: IntArray, thresholds: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        left = self._sides(self._noisy(np.array([target]), rng, 8))[0][0]
        right = self._sides(self._noisy(near, rng, 8))[1]
        scores = np.einsum("ld,rld->rl", left, right)
        return np.asarray((scores[:, :, None] > thresholds).mean(axis=1))


def studies() -> list[Study]:
    """Measured rates of every law and number of speakers, and rates far beyond those seen."""
    near = [
        Study(name, speakers, (measured, Law(name), speakers), (near_truth, Law(name), speakers))
        for name in (APART, *LAWS)
        for speakers in SPEAKERS
    ]
    beyond = [Law(name) for name in (APART, *LAWS)]
    beyond.append(Law("families", seed=1))
    far = [
        Study(
            f"far, {law.name}" + (f" {law.seed + 1}" if law.seed else ""),
            seen,
            (extrapolated, replace(law, speakers=max(REACH) * seen + 1), seen),
            (far_truth, replace(law, speakers=max(REACH) * seen + 1), seen),
            part=0.2,
        )
        for law in beyond
        for seen in SEEN
    ]
    return near + far


@cache
def same(law: Law) -> Law:
    """One of all equal laws: it holds its voices."""
    return law


@cache
def near_thresholds(law: Law) -> FloatArray:
    """Thresholds of false-alarm rates of 5, 1 and 0.1 %."""
    return np.asarray(np.quantile(law.seen(SEEN[0], SCORES, 0).scores, [0.95, 0.99, 0.999]))


def counts_of(speakers: int) -> list[int]:
    """N = 1, M/4 and M."""
    return [1, max(speakers // 4, 2), speakers - 1]


def by_cell(speakers: int, *surfaces: FloatArray, level: str = "") -> dict[str, tuple[float, ...]]:
    """Cells of surfaces (counts, thresholds) by name."""
    rates = ("5 %", "1 %", "0.1 %")
    return {
        f"N = {count}, FA {rates[k]}{level}": tuple(float(one[i, k]) for one in surfaces)
        for i, count in enumerate(("1", "M/4", "M"))
        for k in range(len(rates))
    }


def near_truth(law: Law, speakers: int, draws: int = 20_000) -> dict[str, float]:
    """Rates at N = 1, M/4 and M."""
    rates = law.small_truth(near_thresholds(law), counts_of(speakers), draws)
    result = {}
    for level in LEVELS:
        named = by_cell(speakers, rates, level=LEVELS[level])
        result.update({name: value[0] for name, value in named.items()})
    return result


def measured(law: Law, speakers: int, number: int, scores: int = SCORES) -> Drawn:
    """Measured rates of one sample, with intervals of both levels."""
    seen = same(law).seen(speakers, scores, 100 + number)
    result: dict[str, tuple[float, ...]] = {}
    for level in LEVELS:
        one = worst_case(seen, near_thresholds(law), counts=counts_of(speakers), level=level)
        result |= by_cell(speakers, one.values, one.low, one.high, level=LEVELS[level])
    return result  # type: ignore[return-value]


@cache
def far_thresholds(law: Law, seen: int) -> FloatArray:
    """Sixty thresholds from the median of the scores seen to beyond the highest."""
    scores = law.seen(seen, SCORES, 0).scores
    top = scores.max() + 0.25 * np.ptp(scores)
    return np.linspace(np.quantile(scores, 0.5), top, 60)


def far_truth(law: Law, seen: int) -> dict[str, FloatArray]:
    """Rates at 10 and 100 times as many voices where they are hard (2 % to 98 %), NaN elsewhere."""
    rates = law.truth(far_thresholds(law, seen), law.far)
    rates = np.where((rates > 0.02) & (rates < 0.98), rates, np.nan)
    return {
        f"{reach} times{kind}": rate
        for reach, rate in zip(REACH, rates, strict=True)
        for kind in (*LEVELS.values(), _MEASURED)
    }


def extrapolated(law: Law, seen: int, number: int) -> Drawn:
    """The prediction of one sample and its intervals, at all thresholds.

    Beside it, without an interval, what measuring the same speakers against the whole population
    would give: no prediction can know more of the targets than that.
    """
    law, seed = same(law), 1000 * (1 + law.seed) + number
    fit = extrapolate(law.seen(seen, SCORES, seed))
    thresholds = far_thresholds(law, seen)
    some = np.random.default_rng(seed).choice(law.speakers, seen, replace=False)
    measured = law.truth(thresholds, law.far, some)
    values, none = fit.predict(law.far, thresholds), np.full(thresholds.size, np.nan)
    rows = {f"{n} times{_MEASURED}": (measured[k], none, none) for k, n in enumerate(REACH)}
    for level, suffix in LEVELS.items():
        one = fit.predict_interval(law.far, thresholds, level=level)
        for k, reach in enumerate(REACH):
            rows[f"{reach} times{suffix}"] = values[k], one.low[k], one.high[k]
    return rows


def remarks(made: Sequence[Cell]) -> list[str]:
    """Errors of the predictions, in points."""
    far = {(one.law, one.speakers, one.number): one for one in made if one.law.startswith("far")}
    return [
        f"{law}, {seen} speakers, {number}: {one.samples} samples, mean absolute error"
        f" {100 * one.error:.1f}, bias {100 * one.bias:+.1f} points; short in {one.short:.0%} of"
        f" samples, at worst by {100 * one.shortest:.0f}; error where the same targets are measured"
        f" against all voices {100 * far[law, seen, number + _MEASURED].error:.1f}"
        for (law, seen, number), one in far.items()
        if (law, seen, number + _MEASURED) in far
    ]
