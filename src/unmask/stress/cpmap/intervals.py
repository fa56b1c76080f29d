"""How sure the numbers of C-P maps are: the joint speaker bootstrap.

A replicate is a trial list of its own, in which a trial stands as often as its speakers were
drawn; all maps are computed on it exactly. A metric gets a t interval on the scale of its logit. A
share of cells (won, lost, or under a level) gets the shares that the lower and the upper ends of
all cells' intervals would give: cells share their trials and move together, so that is how far the
share can move, and unlike percentiles of the share it reaches 0 or 1 where the cells allow it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy.special import logit

from unmask.base import BoolArray, FloatArray, IntArray, logit_interval, quantile_t, score_interval
from unmask.engine import Units
from unmask.errors import InputError
from unmask.estimate import Interval
from unmask.stress.cpmap.delta import TOLERANCE, DeltaIntervals, proportions, relative_change
from unmask.stress.cpmap.hardness import Hardness
from unmask.stress.cpmap.maps import CpIntervals, CpMetric, check_grid, well_defined
from unmask.stress.cpmap.positions import CpConfig, PositionIntervals
from unmask.stress.cpmap.prefixes import prefix_sizes
from unmask.stress.cpmap.replicates import (
    Found,
    Moments,
    Pair,
    Plan,
    listed_scores,
    require_units,
    trial_times,
)

INTERVAL_GRID = 100
BELOW = 0.05


@dataclass(frozen=True, eq=False)
class CpUncertainty:
    """Intervals of maps, of comparisons, and of trial configs (by system, then by config)."""

    maps: tuple[CpIntervals, ...]
    deltas: tuple[DeltaIntervals, ...]
    positions: tuple[tuple[PositionIntervals, ...], ...]


def delta_cp_intervals(
    reference: Pair,
    test: Pair,
    units: Units,
    *,
    target_hardness: Hardness | None = None,
    nontarget_hardness: Hardness | None = None,
    combine: str = "rank",
    grid: int | tuple[int, int] = INTERVAL_GRID,
    metric: str = "eer",
    p_target: float = 0.01,
    c_miss: float = 1.0,
    c_fa: float = 1.0,
    tolerance: float = TOLERANCE,
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> DeltaIntervals:
    """Intervals of win, tie and lose; both systems see the same draws of speakers.

    ``reference`` and ``test`` are (target, nontarget) scores of one trial list, ``units`` tells
    which speakers each trial depends on. Without hardness the mean of the ranks of both systems
    orders the trials. ``grid`` may be coarser than that of the map: that hardly changes shares.
    """
    if target_hardness is None and nontarget_hardness is None:
        target_hardness, nontarget_hardness = [reference[0], test[0]], [reference[1], test[1]]
    return cp_intervals(
        [reference, test],
        units,
        compared=[(0, 1)],
        target_hardness=target_hardness,
        nontarget_hardness=nontarget_hardness,
        combine=combine,
        grid=grid,
        metric=CpMetric(metric, p_target, c_miss, c_fa),
        tolerance=tolerance,
        replicates=replicates,
        level=level,
        seed=seed,
        workers=workers,
        progress=progress,
    ).deltas[0]


def cp_intervals(
    scores: Sequence[Pair],
    units: Units,
    *,
    compared: Sequence[tuple[int, int]] = (),
    configs: Sequence[CpConfig] = (),
    target_hardness: Hardness | None = None,
    nontarget_hardness: Hardness | None = None,
    combine: str = "rank",
    grid: int | tuple[int, int] = INTERVAL_GRID,
    metric: CpMetric | None = None,
    below: float = BELOW,
    tolerance: float = TOLERANCE,
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CpUncertainty:
    """Intervals of the summaries of maps, of comparisons and of trial configs, on shared draws.

    ``scores`` are (target, nontarget) scores of the systems on one trial list, ``compared`` pairs
    of their numbers, ``configs`` subsets of the trials. Every map is computed once per replicate.
    Without hardness each system's own scores order its map; comparisons need a common one.
    """
    if compared and target_hardness is None and nontarget_hardness is None:
        raise InputError("comparisons: expected a hardness that orders all systems, found none")
    if replicates < 2:
        raise InputError(f"bootstrap: expected at least 2 replicates, found {replicates}")
    listed = tuple(
        listed_scores(pair, target_hardness, nontarget_hardness, combine) for pair in scores
    )
    for one in listed:
        require_units(one, units)
    steps = check_grid(grid)
    plan = Plan(listed, tuple(compared), tuple(configs), steps, metric or CpMetric(), tolerance)
    made = _Intervals.of(plan, units, replicates, level, seed, below)
    if units.strata[0] >= 2 or units.method != "speaker":
        made.draw(units, workers, progress)
    return CpUncertainty(
        tuple(made.map(i) for i in range(len(listed))),
        tuple(made.delta(i) for i in range(len(compared))),
        tuple(tuple(made.position(i, j) for j in range(len(configs))) for i in range(len(listed))),
    )


@dataclass(eq=False)
class _Intervals:
    """Moments over the replicates, and the intervals they give."""

    plan: Plan
    units: int
    method: str
    replicates: int
    level: float
    seed: int
    below: float
    found: Found
    counts: tuple[IntArray, IntArray]
    logits: Moments
    differences: Moments
    scalars: list[FloatArray]
    ties: list[FloatArray]
    placed: list[FloatArray]
    undefined: int

    @classmethod
    def of(
        cls, plan: Plan, units: Units, replicates: int, level: float, seed: int, below: float
    ) -> _Intervals:
        """Ready to draw: the numbers of the sample itself."""
        sizes = plan.systems[0].target.codes.size, plan.systems[0].nontarget.codes.size
        found = plan.of((np.ones(sizes[0], np.int64), np.ones(sizes[1], np.int64)))
        counts = prefix_sizes(sizes[0], plan.steps[0]), prefix_sizes(sizes[1], plan.steps[1])
        made = cls(
            plan,
            units.strata[0] if units.method == "speaker" else min(units.strata),
            units.method,
            replicates,
            level,
            seed,
            below,
            found,
            counts,
            Moments(np.empty(0)),
            Moments(np.empty(0)),
            [],
            [],
            [],
            replicates,
        )
        made.logits = Moments(made._logit(found.cells))
        made.differences = Moments(made._differences(found.cells))
        return made

    def draw(
        self, units: Units, workers: int | None, progress: Callable[[int, int], None] | None
    ) -> None:
        """All replicates; added up in their order, so the number of workers changes nothing."""

        def replicate(index: int) -> Found | None:
            times = units.draw(self.seed, index).astype(np.int64)
            drawn = trial_times(units, times)
            return self.plan.of(drawn) if drawn[0].any() and drawn[1].any() else None

        with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
            for done, found in enumerate(pool.map(replicate, range(self.replicates)), start=1):
                if found is not None:
                    self._add(found)
                if progress is not None:
                    progress(done, self.replicates)

    def _add(self, found: Found) -> None:
        self.undefined -= 1
        self.logits.add(self._logit(found.cells))
        self.differences.add(self._differences(found.cells))
        self.scalars.append(self._scalars(found.cells))
        self.ties.append(found.ties)
        self.placed.append(found.placed)

    def _scalars(self, cells: FloatArray) -> FloatArray:
        """By system: all trials, mean of the well-defined cells, hardest tenth."""
        defined = self._defined
        mean = cells[:, defined].mean(axis=1) if defined.any() else np.full(len(cells), np.nan)
        return np.stack([cells[:, -2], mean, cells[:, -1]], axis=1)

    @property
    def _defined(self) -> BoolArray:
        return np.append(well_defined(*self.counts).ravel(), False)

    @property
    def _least(self) -> FloatArray:
        """Half a trial of the smaller class of each cell: no rate is told apart from 0 below it."""
        smaller = np.minimum(self.counts[1][:, None], self.counts[0][None, :]).ravel()
        tenth = min(-(-self.counts[0][-1] // 10), -(-self.counts[1][-1] // 10))
        return 0.5 / np.append(smaller, tenth)

    def _logit(self, cells: FloatArray) -> FloatArray:
        inside = np.clip(cells, self._least, 1 - self._least)
        return np.asarray(logit(inside))

    def _differences(self, cells: FloatArray) -> FloatArray:
        return np.array([cells[old] - cells[new] for old, new in self.plan.compared])

    @property
    def _reach(self) -> float:
        """How many standard deviations of the replicates an end of an interval is away."""
        return quantile_t(self.units, self.level) * float(
            np.sqrt(self.units / max(self.units - 1, 1))
        )

    def _interval(self, ends: tuple[float, float], how: str) -> Interval:
        return Interval(*ends, self.level, f"{self.method},{how}", self.replicates, self.seed)

    def _of_metric(self, value: float, drawn: FloatArray, least: float) -> Interval:
        ends = logit_interval(value, drawn, self.units, level=self.level, least=least)
        return self._interval(ends, "logit t")

    def _share(self, low: float, value: float, high: float, spread: FloatArray) -> Interval:
        """A share of cells between two bounds, which are never less than a cell apart.

        Where they meet because cells had no ``spread`` in the replicates, these cells get the score
        bound of a share among as many speakers: that no draw moved them is no proof.
        """
        low, high = min(low, value), max(high, value)
        if low == high:
            ends = score_interval(np.array(value), np.array(0.0), self.units, level=self.level)
            still, cell = float((spread == 0).mean()), 1 / spread.size
            low = max(0.0, value - max(cell, still * (value - float(ends[0]))))
            high = min(1.0, value + max(cell, still * (float(ends[1]) - value)))
        return self._interval((low, high), "bands of cells")

    def map(self, system: int) -> CpIntervals:
        """Intervals of the summary of one map."""
        defined, least = self._defined, self._least
        values = self._scalars(self.found.cells)[system]
        drawn = np.array([row[system] for row in self.scalars]).reshape(-1, 3)
        full, mean, decile = (
            self._of_metric(float(values[i]), drawn[:, i], bound)
            for i, bound in enumerate((least[-2], least[-2], least[-1]))
        )
        cells, centre = (
            self.found.cells[system][defined],
            self._logit(self.found.cells)[system][defined],
        )
        away = self._reach * self.logits.deviation[system][defined]
        limit = float(logit(min(max(self.below, 0.0), 1.0)))
        share = self._interval((float("nan"),) * 2, "bands of cells")
        if cells.size and self.scalars:
            share = self._share(
                float((centre + away < limit).mean()),
                float((cells < self.below).mean()),
                float((centre - away < limit).mean()),
                away,
            )
        return CpIntervals(full, mean, share, self.below, decile, self.plan.steps)

    def delta(self, row: int) -> DeltaIntervals:
        """Intervals of win, tie and lose of one comparison."""
        old, new = self.plan.compared[row]
        defined, tolerance = self._defined, self.plan.tolerance
        cells = self.found.cells
        none = self._interval((float("nan"),) * 2, "bands of cells")
        if not defined.any() or not self.scalars:
            return DeltaIntervals(none, none, none, self.plan.steps, self.undefined)
        shares = proportions(relative_change(cells[old], cells[new]), defined, tolerance)
        away = self._reach * self.differences.deviation[row][defined]
        centre = self._differences(cells)[row][defined]
        margin = tolerance * cells[old][defined]
        low, high = centre - away, centre + away
        tied = np.sort([ties[row] for ties in self.ties if not np.isnan(ties[row])])
        most = (
            float(np.quantile(tied, (1 + self.level) / 2, method="inverted_cdf"))
            if tied.size
            else shares[1]
        )
        return DeltaIntervals(
            self._share(
                float((low > margin).mean()), shares[0], float((high > margin).mean()), away
            ),
            self._share(float(((low >= -margin) & (high <= margin)).mean()), shares[1], most, away),
            self._share(
                float((high < -margin).mean()), shares[2], float((low < -margin).mean()), away
            ),
            self.plan.steps,
            self.undefined,
        )

    def position(self, system: int, config: int) -> PositionIntervals:
        """Intervals of where a config stands, of its metric, and of its gap to all trials."""
        one = self.plan.configs[config]
        value = self.found.placed[system, config]
        drawn = np.array([row[system, config] for row in self.placed]).reshape(-1, 3)
        smaller = min(int(one.target.sum()), int(one.nontarget.sum()))
        metric = self._of_metric(float(value[2]), drawn[:, 2], 0.5 / smaller)
        if one.target.all() and one.nontarget.all():
            return PositionIntervals(None, None, metric, None)
        full = np.array([row[system, 0] for row in self.scalars])
        gap = float(value[2] - self.found.cells[system, -2])
        return PositionIntervals(
            self._around(float(value[0]), drawn[:, 0], (0.0, 1.0)),
            self._around(float(value[1]), drawn[:, 1], (0.0, 1.0)),
            metric,
            self._around(gap, drawn[:, 2] - full, (-1.0, 1.0)),
        )

    def _around(
        self, value: float, drawn: FloatArray, bounds: tuple[float, float]
    ) -> Interval | None:
        """A t interval within bounds; none where it would have no width."""
        drawn = drawn[~np.isnan(drawn)]
        if drawn.size < 2:
            return self._interval((float("nan"),) * 2, "t")
        away = self._reach * float(drawn.std(ddof=1))
        low, high = (min(max(end, bounds[0]), bounds[1]) for end in (value - away, value + away))
        return self._interval((low, high), "t") if low < high else None
