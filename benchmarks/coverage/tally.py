"""Counting how often intervals hold the truth, and printing it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unmask.estimate import Interval


@dataclass
class Tally:
    """Intervals of one number over many samples."""

    truth: float
    ends: list[tuple[float, float]] = field(default_factory=list)

    def add(self, low: float, high: float) -> None:
        """One more interval; one whose ends are NaN was not given."""
        self.ends.append((low, high))

    def add_interval(self, interval: Interval | None) -> None:
        """One more interval, or none."""
        nothing = float("nan"), float("nan")
        self.add(*(nothing if interval is None else (interval.low, interval.high)))

    @property
    def given(self) -> float:
        """Share of samples that have an interval."""
        return float(np.mean([not np.isnan(low) for low, _ in self.ends]))

    @property
    def missed(self) -> tuple[float, float]:
        """Share of intervals that lie wholly above the truth, and wholly below it."""
        ends = np.array([pair for pair in self.ends if not np.isnan(pair[0])])
        if not ends.size:
            return float("nan"), float("nan")
        slack = 1e-12
        above, below = ends[:, 0] > self.truth + slack, ends[:, 1] < self.truth - slack
        return float(above.mean()), float(below.mean())

    @property
    def coverage(self) -> float:
        """Share of intervals that hold the truth."""
        return 1 - sum(self.missed)

    @property
    def width(self) -> float:
        """Mean width."""
        ends = np.array([pair for pair in self.ends if not np.isnan(pair[0])])
        return float((ends[:, 1] - ends[:, 0]).mean()) if ends.size else float("nan")


def header() -> None:
    """The first line of a table."""
    print(
        f"{'population':<16}{'speakers':>9}  {'number':<22}{'truth':>8}{'coverage':>10}"
        f"{'width':>8}{'above':>7}{'below':>7}{'given':>7}"
    )


def line(population: str, speakers: int, number: str, tally: Tally) -> None:
    """One line: coverage, width, and on which side intervals miss."""
    above, below = tally.missed
    print(
        f"{population:<16}{speakers:>9}  {number:<22}{tally.truth:>8.4f}"
        f"{100 * tally.coverage:>9.1f}%{tally.width:>8.4f}{100 * above:>6.1f}%{100 * below:>6.1f}%"
        f"{100 * tally.given:>6.0f}%",
        flush=True,
    )
