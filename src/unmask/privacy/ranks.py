"""Rank of the true speaker: its distribution, and how many bits of identity it discloses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.arrays import FloatArray, IntArray
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval
from unmask.privacy.legal_counts import count_above_in_scores
from unmask.privacy.legal_curve import METHOD, Resampling, percentiles

_CHANCE_DRAWS = 200
_METRICS = ("identification_rate", "mean_d", "max_d")
_UNITS: Mapping[str, str] = {"identification_rate": "%", "mean_d": "bit", "max_d": "bit"}
ENOUGH_PER_RANK = 5


@dataclass(frozen=True, eq=False)
class Ranks:
    """Ranks r of the true speaker among N candidates, 1 is best; a tie takes the worse rank.

    ``distribution[r − 1]`` is P(r). MeanD = log2 N − H(R) and MaxD = max_r log2(N·P(r)), in bits.
    Few test speakers make both too large, so ``chance`` holds what as many uniform ranks give on
    average; ``intervals`` are over test speakers.
    """

    ranks: IntArray
    candidates: int
    distribution: FloatArray
    mean_d: float
    max_d: float
    identification_rate: float
    chance: Mapping[str, float]
    intervals: Mapping[str, Interval]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Say so where there are too few test speakers for a distribution over N ranks."""
        if len(self.ranks) >= ENOUGH_PER_RANK * self.candidates:
            return ()
        return (
            f"ranks: {len(self.ranks)} test speakers over {self.candidates} ranks make MeanD and"
            f" MaxD too large; ranks without any information give {self.chance['mean_d']:.2f} and"
            f" {self.chance['max_d']:.2f} bit here",
        )

    def histogram(self) -> tuple[IntArray, FloatArray]:
        """Edges of bins that double in width, and the mean P(r) within each; bin b holds the ranks
        from edges[b] to edges[b + 1] − 1.
        """
        doubling = 2 ** np.arange(int(np.log2(self.candidates)) + 1)
        edges = np.append(doubling, self.candidates + 1)
        total = np.concatenate([[0.0], np.cumsum(self.distribution)])
        return edges, np.diff(total[edges - 1]) / np.diff(edges)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Identification rate, MeanD and MaxD."""
        return tuple(
            Estimate(
                metric,
                float(getattr(self, metric)),
                _UNITS[metric],
                self.intervals[metric],
                self.chance[metric],
                {"speakers": len(self.ranks)},
                {"N": self.candidates},
            )
            for metric in _METRICS
        )


def disclosure(distribution: FloatArray) -> tuple[FloatArray, FloatArray]:
    """MeanD and MaxD in bits of distributions over ranks (last axis)."""
    candidates = distribution.shape[-1]
    positive = np.where(distribution > 0, distribution, 1.0)
    entropy = -(distribution * np.log2(positive)).sum(axis=-1)
    largest = np.log2(candidates * distribution.max(axis=-1))
    return np.maximum(np.log2(candidates) - entropy, 0.0), largest


def ranks_of(
    ranks: npt.ArrayLike, candidates: int, *, resampling: Resampling | None = None
) -> Ranks:
    """Rank statistics from ranks among ``candidates``."""
    how = resampling if resampling is not None else Resampling()
    array = np.asarray(ranks, dtype=np.int64)
    if array.ndim != 1 or not array.size or array.min() < 1 or array.max() > candidates:
        raise InputError(f"ranks: expected whole numbers from 1 to {candidates}")
    distribution = np.bincount(array - 1, minlength=candidates) / array.size
    mean_d, max_d = disclosure(distribution)
    blind, resample = np.random.SeedSequence(how.seed).spawn(2)
    uniform = _statistics(
        array.size, candidates, None, _CHANCE_DRAWS, np.random.default_rng(blind)
    ).mean(axis=0)
    low = high = np.full(3, np.nan)
    if array.size > 1 and how.replicates > 0:
        drawn = _statistics(
            array.size, candidates, array, how.replicates, np.random.default_rng(resample)
        )
        low, high = percentiles(drawn, how.level)
    return Ranks(
        array,
        candidates,
        distribution,
        float(mean_d),
        float(max_d),
        float(distribution[0]),
        {"identification_rate": 1 / candidates, "mean_d": uniform[1], "max_d": uniform[2]},
        {
            metric: Interval(
                float(low[m]), float(high[m]), how.level, METHOD, how.replicates, how.seed
            )
            for m, metric in enumerate(_METRICS)
        },
    )


def _statistics(
    size: int,
    candidates: int,
    ranks: IntArray | None,
    times: int,
    rng: np.random.Generator,
) -> FloatArray:
    """P(1), MeanD and MaxD of ranks drawn with replacement, or uniformly where none are given."""
    rows = np.empty((times, 3))
    for row in range(times):
        drawn = (
            rng.integers(0, candidates, size)
            if ranks is None
            else ranks[rng.integers(0, size, size)] - 1
        )
        distribution = np.bincount(drawn, minlength=candidates) / size
        rows[row] = (distribution[0], *disclosure(distribution))
    return rows


def ranks_from_scores(scores: npt.ArrayLike, true_column: npt.ArrayLike, *, seed: int = 0) -> Ranks:
    """Ranks of the true enrolment column, from test speakers × enrolment speakers."""
    above = count_above_in_scores(scores, true_column)
    return ranks_of(above.at_or_above + 1, above.others + 1, resampling=Resampling(seed=seed))
