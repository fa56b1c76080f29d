"""How sure the numbers of C-P maps are: the joint speaker bootstrap.

All maps are computed exactly on every replicate, in which a trial stands as often as its speakers
were drawn. A metric gets a t interval on the scale of its logit; a share of cells (won, lost, or
under a level) the shares that the lower and upper ends of all cells' intervals would give: cells
share their trials and move together, and this reaches 0 or 1 where the cells allow it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import SupportsFloat

import numpy as np
from scipy.special import logit

from unmask.base import (
    FloatArray,
    IntArray,
    Sampling,
    check_replicates,
    logit_interval,
    quantile_t,
    score_interval,
)
from unmask.engine import Units
from unmask.errors import InputError
from unmask.estimate import Interval
from unmask.run import Arrays, Range, Xp, ranges_of, run
from unmask.stress.cpmap.comparison import (
    TOLERANCE,
    CpConfig,
    DeltaIntervals,
    PositionIntervals,
    proportions,
    relative_change,
)
from unmask.stress.cpmap.kernels import Hardness, Listed, Pair, Times
from unmask.stress.cpmap.maps import CpIntervals, CpMetric, check_grid, layout

INTERVAL_GRID = 100
BELOW = 0.05
_TOGETHER = 4


@dataclass(frozen=True)
class CpUncertainty:
    """Intervals of maps, comparisons and configs; ``undefined`` replicates lack a class."""

    maps: tuple[CpIntervals, ...]
    deltas: tuple[DeltaIntervals, ...]
    positions: tuple[tuple[PositionIntervals, ...], ...]
    undefined: int


def cp_intervals(
    scores: Sequence[Pair | Listed],
    units: Units,
    *,
    compared: Sequence[tuple[int, int]] = (),
    configs: Sequence[CpConfig] = (),
    hardness: tuple[Hardness | None, Hardness | None] = (None, None),
    combine: str = "rank",
    grid: int | tuple[int, int] = INTERVAL_GRID,
    metric: CpMetric | None = None,
    below: float = BELOW,
    tolerance: float = TOLERANCE,
    sampling: Sampling | None = None,
) -> CpUncertainty:
    """Intervals of the summaries of maps, of comparisons and of trial configs, on shared draws.

    ``scores`` are (target, nontarget) scores of the systems on one trial list, or these in order,
    ``compared`` pairs of their numbers, ``configs`` subsets of the trials. Every map is computed
    once per replicate of ``sampling``. ``hardness`` of both classes and ``combine`` order as in
    :func:`cp_map`; without them each system's own scores order its map, or the mean of the ranks of
    all systems where any are compared. ``grid`` may be coarser than that of the maps: that hardly
    changes shares. In the cells stands ``metric``; ``below`` is the level under which cells are
    counted, ``tolerance`` is that of :func:`delta_cp_map`.
    """
    sampling = sampling or Sampling()
    listed = tuple(score for score in scores if isinstance(score, Listed))
    if not listed:
        pairs = [score for score in scores if not isinstance(score, Listed)]
        if compared and all(one is None for one in hardness):
            hardness = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        listed = Listed.every(pairs, hardness, combine)
    check_replicates(sampling.replicates)
    plan = MapPlan(
        listed,
        tuple(compared),
        tuple(configs),
        check_grid(grid),
        metric or CpMetric(),
        tolerance,
    )
    expected = units.target.size, units.nontarget_first.size
    for sizes in (trials.sizes for trials in plan.systems if trials.sizes != expected):
        raise InputError(
            "bootstrap: speakers are known for {} target and {} nontarget trials, scores given for"
            " {} and {}".format(*expected, *sizes)
        )
    spread = _Spread(plan, units, sampling, below)
    return CpUncertainty(
        tuple(spread.of_map(i) for i in range(len(scores))),
        tuple(spread.of_delta(i) for i in range(len(compared))),
        tuple(
            tuple(spread.of_position(i, j) for j in range(len(configs))) for i in range(len(scores))
        ),
        spread.undefined,
    )


@dataclass(frozen=True, eq=False)
class MapPlan:
    """What is computed on every list of trials: cells, the hardest tenth, trial configs."""

    systems: tuple[Listed, ...]
    compared: tuple[tuple[int, int], ...]
    configs: tuple[CpConfig, ...]
    steps: tuple[int, int]
    metric: CpMetric
    tolerance: float

    def of(self, times: Times) -> Arrays:
        """Numbers of the list in which each trial stands ``times`` times: ``cells`` by system with
        the hardest tenth last, the share of ``ties`` by comparison, and ``positions`` (x, y,
        metric) by system and config.
        """
        sizes = int(times[0].sum()), int(times[1].sum())
        targets, nontargets, defined = layout(sizes, self.steps)
        cells = np.stack([self.metric.of(one, targets, nontargets, times) for one in self.systems])
        ties = [
            proportions(relative_change(cells[old], cells[new]), defined, self.tolerance)[1]
            for old, new in self.compared
        ]
        positions = [
            (1.0, 1.0, full) if config.whole else self._position(listed, times, config)
            for listed, full in zip(self.systems, cells[:, -2], strict=True)
            for config in self.configs
        ]
        return {
            "cells": cells,
            "ties": np.array(ties),
            "positions": np.array(positions).reshape(len(cells), len(self.configs), 3),
        }

    def _position(self, listed: Listed, times: Times, config: CpConfig) -> tuple[float, ...]:
        """x, y and the metric of a config; NaN where a class was left empty."""
        inside = times[0] * config.target, times[1] * config.nontarget
        sizes = inside[0].sum(), inside[1].sum()
        if not all(sizes):
            return (float("nan"),) * 3
        value = self.metric.of(listed, np.array(sizes[:1]), np.array(sizes[1:]), inside)
        places = zip(listed.orders, times, inside, strict=True)
        return *(order.position(*often) for order, *often in places), float(value[0])


def trial_times(units: Units, times: IntArray) -> Times:
    """How often each trial stands in the replicate: m_a·m_b, or m_a within one speaker."""
    nontarget = times[units.nontarget_first]
    if units.nontarget_second is not None:
        other = units.nontarget_first != units.nontarget_second
        nontarget = np.where(other, nontarget * times[units.nontarget_second], nontarget)
    return times[units.target], nontarget


def replicates_of(xp: Xp, shared: tuple[MapPlan, Units, int], rows: Range) -> Arrays:
    """The numbers of some replicates, replicates first, but of those that leave a class empty."""
    plan, units, seed = shared
    drawn = (trial_times(units, units.draw(seed, n).astype(np.int64)) for n in range(*rows))
    parts = [plan.of(times) for times in drawn if times[0].any() and times[1].any()]
    return {name: np.array([one[name] for one in parts]) for name in ("cells", "ties", "positions")}


class _Spread:
    """The numbers of the sample, how they spread over replicates, and the intervals of that."""

    def __init__(self, plan: MapPlan, units: Units, sampling: Sampling, below: float) -> None:
        self.plan, self.below = plan, below
        self.sampling, self.level, self.method = sampling, sampling.level, units.method
        self.units = units.strata[0] if units.method == "speaker" else min(units.strata)
        sizes, number = plan.systems[0].sizes, len(plan.systems)
        targets, nontargets, self.defined = layout(sizes, plan.steps)
        # Half a trial of the smaller class of each cell: no rate is told apart from 0 below it.
        self.least = 0.5 / np.minimum(targets, nontargets)
        self.reach = quantile_t(self.units, self.level) * float(
            np.sqrt(self.units / max(self.units - 1, 1))
        )
        self.sample = plan.of((np.ones(sizes[0], np.int64), np.ones(sizes[1], np.int64)))
        self.centre = self._scaled(self.sample["cells"])
        sums = np.zeros((2, *self.centre.shape))
        several = self.units > 1 or self.method != "speaker"
        ranges = ranges_of(sampling.replicates, _TOGETHER) if several else []
        scalars: list[FloatArray] = []
        ties: list[FloatArray] = []
        positions: list[FloatArray] = []
        for part in run(replicates_of, (plan, units, sampling.seed), ranges):
            for cells in part["cells"]:
                off = self._scaled(cells) - self.centre
                sums += off, off**2
                scalars.append(self._scalars(cells))
            ties += list(part["ties"])
            positions += list(part["positions"])
        drawn = len(scalars)
        self.undefined = sampling.replicates - drawn
        self.scalars = np.array(scalars).reshape(drawn, number, 3)
        self.ties = np.array(ties).reshape(drawn, len(plan.compared))
        self.positions = np.array(positions).reshape(drawn, number, len(plan.configs), 3)
        self.away = np.full(self.centre.shape, np.nan)
        if drawn > 1:
            spread = np.maximum(sums[1] - sums[0] ** 2 / drawn, 0.0)
            self.away = self.reach * np.sqrt(spread / (drawn - 1))

    def _scaled(self, cells: FloatArray) -> FloatArray:
        """Logits of the cells of each system, then differences of those compared."""
        old, new = np.array(self.plan.compared, dtype=np.int64).reshape(-1, 2).T
        return np.concatenate(
            [logit(np.clip(cells, self.least, 1 - self.least)), cells[old] - cells[new]]
        )

    def _scalars(self, cells: FloatArray) -> FloatArray:
        """By system: all trials, mean of the well-defined cells, hardest tenth."""
        some = self.defined.any()
        mean = cells[:, self.defined].mean(axis=1) if some else np.full(len(cells), np.nan)
        return np.stack([cells[:, -2], mean, cells[:, -1]], axis=1)

    def _interval(self, ends: tuple[float, float], how: str) -> Interval:
        how, sampling = f"{self.method},{how}", self.sampling
        return Interval(*ends, self.level, how, sampling.replicates, sampling.seed)

    def _of_metric(self, value: float, drawn: FloatArray, least: float) -> Interval:
        ends = logit_interval(value, drawn, self.units, level=self.level, least=least)
        return self._interval(ends, "logit t")

    def _around(
        self, value: float, drawn: FloatArray, bounds: tuple[float, float]
    ) -> Interval | None:
        """A t interval within bounds; none where it would have no width."""
        drawn = drawn[~np.isnan(drawn)]
        if drawn.size < 2:
            return self._interval((float("nan"),) * 2, "t")
        away = self.reach * float(drawn.std(ddof=1))
        low, high = (min(max(end, bounds[0]), bounds[1]) for end in (value - away, value + away))
        return self._interval((low, high), "t") if low < high else None

    def _share(
        self, low: SupportsFloat, value: float, high: SupportsFloat, away: FloatArray
    ) -> Interval:
        """A share of cells between bounds at least a cell apart. Where cells were not ``away`` in
        any replicate, they get the score bound of a share among as many speakers: no draw is no
        proof.
        """
        least, most = min(float(low), value), max(float(high), value)
        if least == most:
            ends = score_interval(np.array(value), np.array(0.0), self.units, level=self.level)
            still, cell = float((away == 0).mean()), 1 / away.size
            least = max(0.0, value - max(cell, still * (value - float(ends[0]))))
            most = min(1.0, value + max(cell, still * (float(ends[1]) - value)))
        return self._interval((least, most), "bands of cells")

    @property
    def _nothing(self) -> Interval | None:
        """Where no cell or no replicate is defined: a share with NaN ends."""
        if self.defined.any() and len(self.scalars):
            return None
        return self._interval((float("nan"),) * 2, "bands of cells")

    def of_map(self, system: int) -> CpIntervals:
        """Intervals of the summary of one map."""
        values, drawn = self._scalars(self.sample["cells"])[system], self.scalars[:, system]
        full, mean, decile = (
            self._of_metric(float(values[i]), drawn[:, i], self.least[bound])
            for i, bound in enumerate((-2, -2, -1))
        )
        cells = self.sample["cells"][system][self.defined]
        centre, away = self.centre[system, self.defined], self.away[system, self.defined]
        limit = float(logit(min(max(self.below, 0.0), 1.0)))
        share = self._nothing or self._share(
            np.mean(centre + away < limit),
            float((cells < self.below).mean()),
            np.mean(centre - away < limit),
            away,
        )
        return CpIntervals(full, mean, share, self.below, decile, self.plan.steps)

    def of_delta(self, row: int) -> DeltaIntervals:
        """Intervals of win, tie and lose of one comparison."""
        none, steps = self._nothing, self.plan.steps
        if none is not None:
            return DeltaIntervals(none, none, none, steps)
        cells, tolerance = self.sample["cells"], self.plan.tolerance
        old, new = (cells[system] for system in self.plan.compared[row])
        win, tie, lose = proportions(relative_change(old, new), self.defined, tolerance)
        centre = self.centre[len(cells) + row, self.defined]
        away = self.away[len(cells) + row, self.defined]
        margin = tolerance * old[self.defined]
        low, high = centre - away, centre + away
        tied = np.sort(self.ties[:, row][~np.isnan(self.ties[:, row])])
        upper = (1 + self.level) / 2
        most = float(np.quantile(tied, upper, method="inverted_cdf")) if tied.size else tie
        return DeltaIntervals(
            self._share(np.mean(low > margin), win, np.mean(high > margin), away),
            self._share(np.mean((low >= -margin) & (high <= margin)), tie, most, away),
            self._share(np.mean(high < -margin), lose, np.mean(low < -margin), away),
            steps,
        )

    def of_position(self, system: int, config: int) -> PositionIntervals:
        """Intervals of where a config stands, of its metric, and of its gap to all trials."""
        cpmap = self.plan.configs[config]
        x, y, value = (float(number) for number in self.sample["positions"][system, config])
        drawn = self.positions[:, system, config]
        smaller = min(int(cpmap.target.sum()), int(cpmap.nontarget.sum()))
        metric = self._of_metric(value, drawn[:, 2], 0.5 / smaller)
        if cpmap.whole:
            return PositionIntervals(None, None, metric, None)
        gap = value - float(self.sample["cells"][system, -2])
        return PositionIntervals(
            self._around(x, drawn[:, 0], (0.0, 1.0)),
            self._around(y, drawn[:, 1], (0.0, 1.0)),
            metric,
            self._around(gap, drawn[:, 2] - self.scalars[:, system, 0], (-1.0, 1.0)),
        )
