"""Rank of the true speaker: its distribution, and how many bits of identity it discloses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray, Tabular, bias_corrected, mean_interval
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval, Notice
from unmask.privacy.legal.curve import CORRECTED, SCORE, Resampling

_CHANCE_DRAWS = 200
_PLACES = 12
_METRICS = ("identification_rate", "mean_d", "max_d")
_UNITS: Mapping[str, str] = {"identification_rate": "%", "mean_d": "bit", "max_d": "bit"}
ENOUGH_PER_RANK = 5


@dataclass(frozen=True, eq=False, repr=False)
class Ranks(Tabular):
    """Ranks r of the true speaker among N candidates, 1 is best; a tie takes the worse rank.

    Made by :func:`ranks_of`, for each length of a sweep once. ``speakers`` is the test speaker of
    each rank; every speaker counts alike. ``distribution[r − 1]`` is P(r). MeanD = log2 N − H(R)
    and MaxD = max_r log2(N·P(r)), in bits. Few ranks make both too large, so ``chance`` holds what
    as many uniform ranks give on average; ``intervals`` are over test speakers.
    """

    ranks: IntArray
    speakers: IntArray
    candidates: int
    distribution: FloatArray
    mean_d: float
    max_d: float
    identification_rate: float
    chance: Mapping[str, float]
    intervals: Mapping[str, Interval]

    @property
    def warnings(self) -> tuple[str, ...]:
        """The sentences of the notices."""
        return tuple(notice.sentence for notice in self.notices)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Say so where there are too few conversations for a distribution over N ranks."""
        if len(self.ranks) >= ENOUGH_PER_RANK * self.candidates:
            return ()
        sentence = (
            f"ranks: {len(self.ranks)} conversations over {self.candidates} ranks make MeanD and"
            f" MaxD too large; ranks without any information give {self.chance['mean_d']:.2f} and"
            f" {self.chance['max_d']:.2f} bit here"
        )
        return (Notice("few-conversations", "ranks", sentence),)

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
                {"speakers": int(self.speakers.max()) + 1, "conversations": len(self.ranks)},
                {"N": self.candidates},
            )
            for metric in _METRICS
        )


def disclosure(distribution: FloatArray) -> tuple[FloatArray, FloatArray]:
    """MeanD and MaxD in bits of distributions over ranks (last axis), the last digits rounded so
    that certainty is exactly log2 N.
    """
    candidates = distribution.shape[-1]
    positive = np.where(distribution > 0, distribution, 1.0)
    entropy = -(distribution * np.log2(positive)).sum(axis=-1)
    largest = np.log2(candidates * distribution.max(axis=-1))
    return np.round(np.maximum(np.log2(candidates) - entropy, 0.0), _PLACES), np.round(
        largest, _PLACES
    )


def ranks_of(
    ranks: npt.ArrayLike,
    candidates: int,
    *,
    speakers: npt.ArrayLike | None = None,
    resampling: Resampling | None = None,
) -> Ranks:
    """Rank statistics from ``ranks`` among ``candidates``.

    ``speakers`` are codes 0, 1, … of the test speakers, in the order of their names, one each by
    default; ``resampling`` says how intervals are made.
    """
    how = resampling if resampling is not None else Resampling()
    array = np.asarray(ranks, dtype=np.int64)
    if array.ndim != 1 or not array.size or array.min() < 1 or array.max() > candidates:
        raise InputError(f"ranks: expected whole numbers from 1 to {candidates}")
    owner = np.arange(array.size) if speakers is None else np.asarray(speakers, dtype=np.int64)
    sizes = np.bincount(owner)
    count = len(sizes)
    share = (1 / sizes)[owner]
    distribution = np.bincount(array - 1, share, candidates) / count
    mean_d, max_d = (float(value) for value in disclosure(distribution))
    values = {"identification_rate": float(distribution[0]), "mean_d": mean_d, "max_d": max_d}
    blind = np.random.default_rng(np.random.SeedSequence(how.seed).spawn(1)[0])
    uniform = np.array(
        [
            disclosure(
                np.bincount(blind.integers(0, candidates, array.size), share, candidates) / count
            )
            for _ in range(_CHANCE_DRAWS)
        ]
    )
    by_chance = dict(zip(_METRICS, (1 / candidates, *uniform.mean(axis=0)), strict=True))
    usual = mean_d <= np.quantile(uniform[:, 0], (1 + how.level) / 2)
    bare = Ranks(
        array,
        owner,
        candidates,
        distribution,
        mean_d,
        max_d,
        values["identification_rate"],
        by_chance,
        {},
    )
    return replace(bare, intervals=_intervals(bare, share, values, how, bool(usual)))


def _intervals(
    ranks: Ranks, share: FloatArray, values: Mapping[str, float], how: Resampling, usual: bool
) -> dict[str, Interval]:
    """Score interval of the identification rate; of the bits, speakers drawn with replacement.

    Few ranks make the bits too large, most of all at chance, where the scale of their range cannot
    reach 0: the low end is the lower one of that scale and of the bits themselves, both less the
    bias that resampling shows; the high end is the highest of these and of the bits with their
    bias, so that what is not sure stays with the risk. Where a MeanD as large is ``usual`` for
    uniform ranks the low end is 0. MaxD is 0 if and only if MeanD is: their intervals hold 0
    together.
    """
    count = int(ranks.speakers.max()) + 1
    limits = dict.fromkeys(_METRICS, (np.nan, np.nan))
    if count > 1 and how.replicates > 0:
        first = np.bincount(ranks.speakers, np.where(ranks.ranks == 1, share, 0.0))
        low, high = mean_interval(np.asarray(first[:, None], float), level=how.level)
        limits["identification_rate"] = (float(low[0]), float(high[0]))
        drawn = np.empty((how.replicates, 2))
        for row, times in zip(drawn, how.times(count), strict=True):
            weights = times[ranks.speakers] * share
            row[:] = disclosure(np.bincount(ranks.ranks - 1, weights, ranks.candidates) / count)
        most = (0.0, float(np.round(np.log2(ranks.candidates), _PLACES)))
        for metric, column in zip(_METRICS[1:], drawn.T, strict=True):
            given = values[metric], column, count
            scaled = bias_corrected(*given, level=how.level, bounds=most)
            plain = bias_corrected(*given, level=how.level)
            biased = bias_corrected(*given, level=how.level, overfit=0.0)
            ends = np.clip([scaled, plain, biased], *most)
            low, high = np.fmin.reduce(ends[:, 0]), np.fmax.reduce(ends[:, 1])
            limits[metric] = (float(low), float(high))
        if usual or limits["mean_d"][0] == 0:
            limits |= {metric: (0.0, limits[metric][1]) for metric in _METRICS[1:]}
    return {
        metric: Interval(
            *limits[metric],
            how.level,
            SCORE if metric == "identification_rate" else CORRECTED,
            0 if metric == "identification_rate" else how.replicates,
            how.seed,
        )
        for metric in _METRICS
    }
