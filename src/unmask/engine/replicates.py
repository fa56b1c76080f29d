"""Values of every metric in every replicate of a bootstrap, and the intervals they give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from unmask.base import FloatArray, Side, bias_corrected
from unmask.engine.roc import Roc
from unmask.estimate import Interval


class MetricRange(NamedTuple):
    """What a metric's interval follows from: bounds, overfit, and the end that hard speakers move.

    ``overfit`` and ``longer`` are those of :func:`unmask.base.intervals.bias_corrected`.
    """

    low: float = -np.inf
    high: float = np.inf
    overfit: float = 1.0
    longer: Side | None = None


@dataclass(frozen=True, eq=False)
class Replicates:
    """Metric values of every replicate: ``values[metric]`` has one row per system.

    ``sample`` holds the values of the sample itself, one per system; ``ranges`` the range of each
    metric, where it has one; ``units`` counts what was drawn (speakers, or trials of the smaller
    class).
    """

    values: Mapping[str, FloatArray]
    sample: Mapping[str, FloatArray]
    units: int
    method: str
    seed: int
    replicates: int
    ranges: Mapping[str, MetricRange] = field(default_factory=dict)

    def interval(self, metric: str, *, level: float, system: int = 0) -> Interval:
        """Interval of one system's metric, less the bias that resampling shows."""
        return self._corrected(
            float(self.sample[metric][system]),
            self.values[metric][system],
            level,
            self.ranges.get(metric, MetricRange()),
        )

    def difference(self, metric: str, *, level: float, first: int, second: int) -> Interval:
        """Interval of second − first over shared draws, likewise; neither end is the longer one.

        Hulls through the same trials overfit nearly alike: what is left of their bias is taken as
        resampling shows it, since more of it would be more of its noise.
        """
        rows, exact = self.values[metric], self.sample[metric]
        delta = _minus(exact[second : second + 1], exact[first : first + 1])
        low, high, *_ = self.ranges.get(metric, MetricRange())
        widest = MetricRange(low - high, high - low)
        return self._corrected(float(delta[0]), _minus(rows[second], rows[first]), level, widest)

    def share_below(self, metric: str, *, first: int, second: int) -> float:
        """Share of replicates in which the second system's value lies below the first's.

        Ties count half.
        """
        delta = _minus(self.values[metric][second], self.values[metric][first])
        delta = delta[~np.isnan(delta)]
        if delta.size == 0:
            return float("nan")
        return float((delta < 0).mean() + 0.5 * (delta == 0).mean())

    def undefined(self, metric: str) -> int:
        """Replicates that gave no value (a class was left empty)."""
        return int(np.isnan(self.values[metric]).any(axis=0).sum())

    def _corrected(
        self, value: float, replicates: FloatArray, level: float, within: MetricRange
    ) -> Interval:
        ends = bias_corrected(
            value,
            replicates,
            self.units,
            level=level,
            bounds=(within.low, within.high),
            overfit=within.overfit,
            longer=within.longer,
        )
        return Interval(*ends, level, f"{self.method},corrected", self.replicates, self.seed)


def sample_of(
    rocs: Sequence[Roc], statistics: Callable[[Roc], Mapping[str, float]]
) -> dict[str, FloatArray]:
    """Every statistic of the sample itself, one number per system."""
    found = [statistics(roc) for roc in rocs]
    return {name: np.array([values[name] for values in found]) for name in found[0]}


def no_replicates(
    rocs: Sequence[Roc],
    statistics: Callable[[Roc], Mapping[str, float]],
    method: str,
    replicates: int,
    seed: int,
) -> Replicates:
    """What a class with a single unit gives: intervals whose ends are NaN."""
    sample = sample_of(rocs, statistics)
    values = {name: np.full((len(rocs), 0), np.nan) for name in sample}
    return Replicates(values, sample, 1, method, seed, replicates)


def _minus(a: FloatArray, b: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return np.where(a == b, 0.0, a - b)
