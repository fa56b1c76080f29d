"""Values of every metric in every replicate of a bootstrap, and the intervals they give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unmask.arrays import FloatArray
from unmask.estimate import Interval


@dataclass(frozen=True, eq=False)
class Replicates:
    """Metric values of every replicate: ``values[metric]`` has one row per system."""

    values: Mapping[str, FloatArray]
    method: str
    seed: int
    replicates: int

    def interval(self, metric: str, *, level: float, system: int = 0) -> Interval:
        """Percentile interval of one system's metric."""
        return self._percentiles(self.values[metric][system], level)

    def difference(self, metric: str, *, level: float, first: int, second: int) -> Interval:
        """Percentile interval of second − first over shared draws."""
        rows = self.values[metric]
        return self._percentiles(_minus(rows[second], rows[first]), level)

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

    def _percentiles(self, values: FloatArray, level: float) -> Interval:
        defined = np.sort(values[~np.isnan(values)])
        low = high = float("nan")
        if defined.size:
            tail = (1 - level) / 2
            low = float(np.quantile(defined, tail, method="inverted_cdf"))
            high = float(np.quantile(defined, 1 - tail, method="inverted_cdf"))
        return Interval(low, high, level, self.method, self.replicates, self.seed)


def _minus(a: FloatArray, b: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return np.where(a == b, 0.0, a - b)
