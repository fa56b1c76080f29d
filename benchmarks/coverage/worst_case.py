"""Coverage of worst-case intervals, measured and extrapolated, over simulated populations.

Four laws of voices: ``student`` (cosine of Student vectors), ``plda`` (log-likelihood ratios of
PLDA, 24 dimensions), ``hubs`` (log-normal norms, some voices are close to everybody) and
``families`` (cosine; families of ten voices). A fifth, ``households`` (cosine; households of any
size, four voices in the mean, some more alike than others), is kept apart: no constant was chosen
on it. A population is known, so that the closest of N is
known; samples of it are seen with a few scores a pair.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from unmask.base.arrays import FloatArray, IntArray
from unmask.stress import PairScores, extrapolate, worst_case
from unmask.stress.impostors.ranks import closest_weights

LAWS = ("student", "plda", "hubs", "families")
APART = "households"
"""A law that no constant of an interval was chosen on: it only checks them."""

_FAR = (("student", 0, 1), ("plda", 0, 1), ("hubs", 0, 2), ("families", 0, 2), ("families", 1, 1))
_RANKS = 60


@dataclass(frozen=True)
class Law:
    """A population of voices: the score of two utterances is the product of two vectors.

    ``seed`` draws another population of the same law.
    """

    name: str
    speakers: int = 15_001
    likeness: float = 0.8
    seed: int = 0

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
        """Mean vectors of each voice on either side, whose product is the mean score."""
        if self.name == "hubs":
            return self.centres, self.centres
        rng = np.random.default_rng(2)
        drawn = [self._sides(self._noisy(np.arange(self.speakers), rng)) for _ in range(32)]
        return tuple(np.mean([sides[k] for sides in drawn], axis=0) for k in (0, 1))  # type: ignore[return-value]

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

    def truth(self, thresholds: FloatArray, counts: list[int], targets: int = 4000) -> FloatArray:
        """P_FA^N(τ) for N of a twentieth of the population or more, chosen by the true means."""
        rng = np.random.default_rng(3)
        weights = closest_weights(self.speakers - 1, counts)[:, :_RANKS]
        total = np.zeros((len(counts), thresholds.size))
        for target in rng.choice(self.speakers, targets, replace=False):
            similarity = self.means[1] @ self.means[0][target]
            similarity[target] = -np.inf
            near = np.argpartition(-similarity, _RANKS)[:_RANKS]
            near = near[np.argsort(-similarity[near])]
            total += weights @ self._rates(target, near, thresholds, rng)
        return total / targets

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


@dataclass(frozen=True)
class Measured:
    """Coverage (counts, thresholds) of measured intervals at each level."""

    law: str
    speakers: int
    truth: FloatArray
    bias: FloatArray
    coverage: dict[float, FloatArray]


def measured(
    law: Law, speakers: int, *, populations: int, scores: int = 12, draws: int = 20_000
) -> Measured:
    """Samples of some speakers: how often the interval holds the truth at N = 1, M/4 and M."""
    thresholds = np.quantile(law.seen(150, 12, 0).scores, [0.95, 0.99, 0.999])
    counts = [1, max(speakers // 4, 2), speakers - 1]
    truth = law.small_truth(thresholds, counts, draws)
    found = {
        level: [
            worst_case(law.seen(speakers, scores, 100 + k), thresholds, counts=counts, level=level)
            for k in range(populations)
        ]
        for level in (0.99, 0.95)
    }
    return Measured(
        law.name,
        speakers,
        truth,
        np.mean([one.values for one in found[0.99]], axis=0) - truth,
        {
            level: np.mean([(one.low <= truth) & (truth <= one.high) for one in some], axis=0)
            for level, some in found.items()
        },
    )


@dataclass(frozen=True)
class Far:
    """Errors and coverage over hard cells (2 % < truth < 98 %) at each count beyond.

    ``short`` is the share of samples whose mean error is negative, towards less risk than there is,
    and ``lowest`` the mean error of the worst of them.
    """

    law: str
    counts: tuple[int, ...]
    mae: tuple[float, ...]
    bias: tuple[float, ...]
    short: tuple[float, ...]
    lowest: tuple[float, ...]
    coverage: dict[float, tuple[float, ...]]
    unsafe: dict[float, tuple[float, ...]]
    width: dict[float, tuple[float, ...]]


def far(law: Law, speakers: int, *, populations: int, scores: int = 12, targets: int = 4000) -> Far:
    """Samples of some speakers, extrapolated to 10 and 100 times as many."""
    counts = [10 * speakers, 100 * speakers]
    first = law.seen(speakers, scores, 0)
    top = first.scores.max() + 0.25 * np.ptp(first.scores)
    thresholds = np.linspace(np.quantile(first.scores, 0.5), top, 60)
    truth = law.truth(thresholds, counts, targets)
    hard = (truth > 0.02) & (truth < 0.98)
    first_seed = 1000 * (1 + law.seed)
    fits = [extrapolate(law.seen(speakers, scores, first_seed + k)) for k in range(populations)]

    def over(cells: list[FloatArray]) -> tuple[float, ...]:
        every = np.array(cells)
        return tuple(float(every[:, k][:, hard[k]].mean()) for k in range(len(counts)))

    error = [fit.predict(counts, thresholds) - truth for fit in fits]
    each = np.array([over([one]) for one in error])
    found = {
        level: [fit.predict_interval(counts, thresholds, level=level) for fit in fits]
        for level in (0.99, 0.95)
    }
    return Far(
        law.name,
        tuple(counts),
        over([np.abs(one) for one in error]),
        over(error),
        tuple((each < 0).mean(axis=0).tolist()),
        tuple(each.min(axis=0).tolist()),
        {k: over([(p.low <= truth) & (truth <= p.high) for p in v]) for k, v in found.items()},
        {k: over([truth > p.high for p in v]) for k, v in found.items()},
        {k: over([p.high - p.low for p in v]) for k, v in found.items()},
    )


def run(*, samples: int = 200, seen: int = 150) -> None:
    """Print both tables."""
    print("measured: coverage at N = 1, M/4, M x false-alarm rates of 5, 1, 0.1 %; bias in points")
    for name in LAWS:
        for speakers in (20, 40, 60):
            found = measured(Law(name), speakers, populations=max(4, samples // 5))
            for level, share in found.coverage.items():
                print(
                    f"{name:9s}{speakers:4d} speakers {level:.0%}: mean {share.mean():.1%},"
                    f" least {share.min():.0%}; largest bias {100 * np.abs(found.bias).max():.1f}"
                )
    print(f"extrapolated from {seen} speakers, hard thresholds")
    for name, seed, times in (*_FAR, (APART, 0, 1)):
        drawn = times * max(4, samples // 16)
        beyond = far(Law(name, 100 * seen + 1, seed=seed), seen, populations=drawn)
        for k, count in enumerate(beyond.counts):
            ends = "; ".join(
                f"{level:.0%} covers {share[k]:.0%} (above it {beyond.unsafe[level][k]:.0%},"
                f" width {100 * beyond.width[level][k]:.0f})"
                for level, share in beyond.coverage.items()
            )
            print(
                f"{name:10s} N = {count:6,}, {drawn} samples: MAE {100 * beyond.mae[k]:.1f}, bias"
                f" {100 * beyond.bias[k]:+.1f} points, short in {beyond.short[k]:.0%}, at worst"
                f" {100 * beyond.lowest[k]:+.0f}; {ends}"
            )
