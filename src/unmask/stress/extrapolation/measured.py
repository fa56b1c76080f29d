"""What was measured with all impostors at hand: below it no rate of more voices can lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unmask.base import FloatArray
from unmask.stress.extrapolation.base import Surface
from unmask.stress.worst_case.jackknife import interval


@dataclass(frozen=True, eq=False)
class Measured:
    """P_FA^M over rising ``thresholds``, and the same without each group of speakers (first axis;
    none where no intervals are wanted); ``cases`` is the number of choices behind it.

    P_FA^N rises with N, so P_FA^M and both ends of its interval are floors for every N ≥ M.
    """

    thresholds: FloatArray
    values: FloatArray
    without: FloatArray
    cases: float

    @classmethod
    def of(cls, surface: Surface, cases: float, highest: float) -> Measured:
        """The row of the largest count, and the rate of 0 at the ``highest`` score of all."""
        last = surface.values[-1]
        gone = np.empty((0, last.size)) if surface.without is None else surface.without[:, -1]
        if highest <= surface.thresholds[-1]:
            return cls(surface.thresholds, last, gone, cases)
        return cls(
            np.append(surface.thresholds, highest),
            np.append(last, 0.0),
            np.pad(gone, ((0, 0), (0, 1))),
            cases,
        )

    def rates(self, thresholds: FloatArray) -> FloatArray:
        """The rate at any threshold, linear between those measured."""
        return self._between(np.maximum.accumulate(self.values[::-1])[::-1], thresholds)

    def ends(self, thresholds: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Both ends of the interval, falling with the threshold."""
        low, high = interval(
            self.values[None], self.without[:, None], level, cases=np.array([self.cases])
        )
        falling = np.minimum.accumulate(low[0]), np.maximum.accumulate(high[0][::-1])[::-1]
        return self._between(falling[0], thresholds), np.interp(
            thresholds, self.thresholds, falling[1], left=1.0
        )

    def _between(self, falling: FloatArray, thresholds: FloatArray) -> FloatArray:
        """A lower bound beyond the last threshold is 0."""
        return np.asarray(np.interp(thresholds, self.thresholds, falling, right=0.0))

    def numbers(self) -> Mapping[str, FloatArray]:
        """Arrays from which :meth:`restore` makes the same."""
        return {
            "thresholds": self.thresholds,
            "values": self.values,
            "without": self.without,
            "cases": np.array(self.cases),
        }

    @classmethod
    def restore(cls, arrays: Mapping[str, FloatArray]) -> Measured:
        """The inverse of :meth:`numbers`."""
        return cls(
            arrays["thresholds"], arrays["values"], arrays["without"], float(arrays["cases"])
        )
