"""C-P maps: how a system performs on every mixture of easy and hard trials (Li 2022)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import final

import numpy as np
import numpy.typing as npt
import polars as pl

from unmask.base import BoolArray, FloatArray, IntArray, Tabular
from unmask.engine import Cost
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval, Notice, Parameter
from unmask.run import Arrays, Range, Xp, ranges_of, run
from unmask.stress.cpmap.kernels import (
    Hardness,
    Listed,
    Times,
    Trials,
    eer,
    min_dcf,
    prefix_sizes,
    references,
)

METRICS = ("eer", "min_dcf")
LARGEST_GRID = 1000
LEAST_TRIALS = 30
UNLIKE_SCALES = 3.0
_CHUNK = 1 << 13
_MANY = 1 << 17
"""Cells, up to which they are made here."""


@dataclass(frozen=True)
class CpMetric:
    """What is measured in each cell of a C-P map.

    Parameters
    ----------
    name
        ``"eer"``, the raw one, or ``"min_dcf"``.
    p_target, c_miss, c_fa
        Of ``min_dcf``: the target prior and the costs of a miss and of a false alarm.

    Examples
    --------
    >>> import unmask as um
    >>> um.cp_map([2.0, 3.0], [1.0, 2.5], metric=um.CpMetric("min_dcf", p_target=0.5), grid=1).full
    0.5
    """

    name: str = "eer"
    p_target: float = 0.01
    c_miss: float = 1.0
    c_fa: float = 1.0

    def __post_init__(self) -> None:
        if self.name not in METRICS:
            raise InputError(f"C-P map metric: expected eer or min_dcf, found {self.name}")
        self.cost.check()

    @property
    def cost(self) -> Cost:
        return Cost(self.p_target, self.c_miss, self.c_fa)

    @property
    def unit(self) -> str:
        return "%" if self.name == "eer" else ""

    @property
    def params(self) -> dict[str, Parameter]:
        if self.name == "eer":
            return {"est": "raw"}
        return {"p_target": self.p_target, "c_miss": self.c_miss, "c_fa": self.c_fa}

    def of(
        self, listed: Listed, targets: IntArray, nontargets: IntArray, times: Times | None = None
    ) -> FloatArray:
        """The metric of the first ``targets`` and ``nontargets`` trials, cell by cell, where trials
        stand as often as ``times`` says.
        """
        if self.name == "eer" and listed.is_tabular(targets, nontargets):
            return listed.eer(targets, nontargets, times)
        return self.counted(listed.trials(times), targets, nontargets)

    def counted(self, trials: Trials, targets: IntArray, nontargets: IntArray) -> FloatArray:
        """The same from prefixes that are there."""
        if self.name == "eer":
            return eer(trials, targets, nontargets)
        return min_dcf(trials, targets, nontargets, self.cost)


def as_metric(metric: str | CpMetric) -> CpMetric:
    """A metric by its name, with the usual prior and costs, or as it is."""
    return CpMetric(metric) if isinstance(metric, str) else metric


def layout(trials: tuple[int, int], steps: tuple[int, int]) -> tuple[IntArray, IntArray, BoolArray]:
    """Targets and nontargets of every cell in these steps along x and y, row by row, then of the
    hardest tenth; and which cells have at least 30 trials of each class, never the tenth.
    """
    a, b = (prefix_sizes(n, size) for n, size in zip(trials, steps, strict=True))
    tenth = [-(-n // 10) for n in trials]
    targets = np.append(np.tile(a, b.size), tenth[0])
    nontargets = np.append(np.repeat(b, a.size), tenth[1])
    defined = np.minimum(targets, nontargets) >= LEAST_TRIALS
    defined[-1] = False
    return targets, nontargets, defined


@final
@dataclass(frozen=True)
class CpIntervals:
    """Intervals of a :class:`CpSummary`, on a map of ``grid`` steps a side and at one ``below``."""

    full: Interval
    mean: Interval
    share_below: Interval | None
    below: float
    hardest_decile: Interval
    grid: tuple[int, int]


@dataclass(frozen=True)
class CpSummary:
    """A map in a few numbers.

    ``full``: the metric on all trials. ``mean`` and ``share_below``: over the well-defined cells,
    the mean value and the share of cells under ``below``. ``hardest_decile``: the metric on the
    hardest tenth of the targets against the hardest tenth of the nontargets.
    """

    full: float
    mean: float
    share_below: float
    below: float
    hardest_decile: float
    cells: int
    well_defined: int


@dataclass(frozen=True, eq=False, repr=False)
class Cells(Tabular):
    """What maps and delta maps have in common: the cells of one list of trials.

    Cell [j, i] holds the hardest ``x[i]`` of the targets and ``y[j]`` of the nontargets, which are
    ``targets[i]`` and ``nontargets[j]`` trials. ``well_defined`` is False where a class has fewer
    than 30 trials; the bound is this package's, the reason that of Li 2022, section 3.2.
    ``hardness`` says what ordered the trials.
    """

    x: FloatArray
    y: FloatArray
    well_defined: BoolArray
    targets: IntArray
    nontargets: IntArray
    metric: CpMetric
    hardness: str

    @property
    def n(self) -> dict[str, int]:
        """How many trials of each class the whole map rests on."""
        return {"target": int(self.targets[-1]), "nontarget": int(self.nontargets[-1])}

    def params(
        self, interval_grid: tuple[int, int] | None, **others: Parameter
    ) -> dict[str, Parameter]:
        """How numbers over the cells were made."""
        extra = {} if interval_grid is None else {"ci_grid": "{}x{}".format(*interval_grid)}
        return {
            "metric": self.metric.name,
            **self.metric.params,
            "hardness": self.hardness,
            "grid": f"{self.x.size}x{self.y.size}",
            **others,
            **extra,
        }

    def frame(self, name: str, values: FloatArray) -> pl.DataFrame:
        """One row per cell: shares, counts of trials, its value, whether it is well-defined."""
        rows, columns = values.shape
        return pl.DataFrame(
            {
                "x": np.tile(self.x, rows),
                "y": np.repeat(self.y, columns),
                "targets": np.tile(self.targets, rows),
                "nontargets": np.repeat(self.nontargets, columns),
                name: values.ravel(),
                "well_defined": self.well_defined.ravel(),
            }
        )


@dataclass(frozen=True, eq=False, repr=False)
class CpMap(Cells):
    """``values[j, i]``: the metric of each cell; made by :func:`cp_map`, drawn and compared.

    ``target_place`` and ``nontarget_place`` tell where each trial stands on its axis. ``order``
    names the order of the trials: maps of one ``order`` compare, whatever gave it. ``orders`` tells
    that the system itself is among those that ordered, ``tied`` that more trials than a step of the
    grid are equally hard.
    """

    values: FloatArray
    hardest_decile: float
    target_place: FloatArray = field(repr=False)
    nontarget_place: FloatArray = field(repr=False)
    order: str
    orders: bool
    tied: bool
    system: str = ""
    intervals: CpIntervals | None = None
    notices: tuple[Notice, ...] = ()

    @property
    def full(self) -> float:
        """Cell (1, 1): the plain metric on all trials."""
        return float(self.values[-1, -1])

    def at(self, x: float, y: float) -> float:
        """The value of the smallest cell that holds the shares ``x`` and ``y``."""
        column, row = (
            min(int(np.searchsorted(axis, share - 1e-9)), axis.size - 1)
            for axis, share in ((self.x, x), (self.y, y))
        )
        return float(self.values[row, column])

    def summary(self, *, below: float = 0.05) -> CpSummary:
        """The numbers of a table row; ``nan`` where no cell is well-defined."""
        values = self.values[self.well_defined]
        return CpSummary(
            full=self.full,
            mean=float(values.mean()) if values.size else float("nan"),
            share_below=float((values < below).mean()) if values.size else float("nan"),
            below=below,
            hardest_decile=self.hardest_decile,
            cells=self.values.size,
            well_defined=values.size,
        )

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """The summary as estimates, with their intervals."""
        return self.estimates_below(0.05)

    def estimates_below(self, below: float) -> tuple[Estimate, ...]:
        """The same with the share of cells under another level, whose interval may be missing."""
        summary, metric, intervals = self.summary(below=below), self.metric, self.intervals
        if intervals is not None and intervals.below != below:
            intervals = replace(intervals, share_below=None)
        n, params = self.n, self.params(intervals and intervals.grid)
        shares = n | {"cells": summary.well_defined}
        tenth = {name: -(-size // 10) for name, size in n.items()}
        rows = (
            (metric.name, "full", metric.unit, n, metric.params),
            ("cp_mean", "mean", metric.unit, n, params),
            ("cp_share_below", "share_below", "%", shares, params | {"below": below}),
            ("cp_hardest_decile", "hardest_decile", metric.unit, tenth, params),
        )
        return tuple(
            Estimate(m, getattr(summary, at), unit, getattr(intervals, at, None), n=k, params=how)
            for m, at, unit, k, how in rows
        )

    def cells(self) -> pl.DataFrame:
        """One row per cell: shares, counts of trials, value, whether it is well-defined."""
        return self.frame(self.metric.name, self.values)


def cp_map(
    target: npt.ArrayLike,
    nontarget: npt.ArrayLike,
    *,
    target_hardness: Hardness | None = None,
    nontarget_hardness: Hardness | None = None,
    combine: str = "rank",
    grid: int | tuple[int, int] = 100,
    metric: str | CpMetric = "eer",
    system: str = "",
) -> CpMap:
    """The Config-Performance map of one system (Li 2022, section 3).

    Cell (x, y) holds the first ceil(x·T) targets and the first ceil(y·N) nontargets, hardest first.
    Its value is the metric of the system's own scores on them.

    Parameters
    ----------
    target, nontarget
        Scores of both classes.
    target_hardness, nontarget_hardness
        Reference scores per trial, or several arrays of them. Targets are ordered from the lowest,
        nontargets from the highest; ties, and a class without hardness, by the own scores.
    combine
        Several references become one by the mean of their ranks (``"rank"``) or scores
        (``"mean"``). Means of unlike scales are nearly the order of the widest: a warning says so.
    grid
        Steps along each axis, or a pair (x, y); at most 1,000 each.
    metric
        What stands in the cells: the raw ``"eer"``, ``"min_dcf"``, or a :class:`CpMetric` with
        another prior or other costs.
    system
        The name of the system in comparisons.

    Returns
    -------
    CpMap
        ``values[j, i]`` at the shares ``y[j]`` and ``x[i]``, and which cells are ``well_defined``.

    Examples
    --------
    >>> import numpy as np
    >>> import unmask as um
    >>> rng = np.random.default_rng(0)
    >>> cp = um.cp_map(rng.normal(2, 1, 1000), rng.normal(0, 1, 1000), grid=4)
    >>> print(cp.values.round(2))
    [[0.65 0.44 0.37 0.31]
     [0.44 0.32 0.27 0.22]
     [0.34 0.26 0.22 0.19]
     [0.29 0.22 0.18 0.16]]
    """
    measured, steps = as_metric(metric), check_grid(grid)
    listed = Listed.of((target, nontarget), (target_hardness, nontarget_hardness), combine)
    given = target_hardness if target_hardness is not None else nontarget_hardness
    several = given is not None and len(references(given)) > 1
    by = f"{combine}(references)" if several else "own" if given is None else "reference"
    return map_of(listed, steps, measured, system=system, hardness=by)


def map_of(
    listed: Listed, steps: tuple[int, int], measured: CpMetric, *, system: str, hardness: str
) -> CpMap:
    """The map of a system whose trials are in order; ``hardness`` says what ordered them."""
    columns, rows = steps
    targets, nontargets = listed.orders
    of_target, of_nontarget, defined = layout(listed.sizes, (columns, rows))
    if defined.size <= _MANY:
        values = measured.of(listed, of_target, of_nontarget)
    else:
        shared = listed.trials(), measured, of_target, of_nontarget
        parts = run(_some_cells, shared, ranges_of(defined.size, _CHUNK))
        values = np.concatenate([part["values"] for part in parts])
    widest = max(targets.unlike, nontargets.unlike)
    unlike = Notice(
        "unlike-scales",
        "",
        f"the mean of scores on unlike scales (one spreads {widest:.3g} times as wide as another)"
        " is nearly the order of the widest alone: the mean of ranks weighs them alike",
    )
    return CpMap(
        x=np.arange(1, columns + 1) / columns,
        y=np.arange(1, rows + 1) / rows,
        well_defined=defined[:-1].reshape(rows, columns),
        targets=of_target[:columns],
        nontargets=of_nontarget[:-1:columns],
        metric=measured,
        hardness=hardness,
        values=values[:-1].reshape(rows, columns),
        hardest_decile=float(values[-1]),
        target_place=targets.place,
        nontarget_place=nontargets.place,
        order=f"{targets.digest}-{nontargets.digest}",
        orders=targets.own or nontargets.own,
        tied=bool(targets.tied > of_target[0] or nontargets.tied > of_nontarget[0]),
        system=system,
        notices=(unlike,) if widest > UNLIKE_SCALES else (),
    )


def _some_cells(
    xp: Xp, shared: tuple[Trials, CpMetric, IntArray, IntArray], cells: Range
) -> Arrays:
    trials, metric, targets, nontargets = shared
    some = slice(*cells)
    return {"values": metric.counted(trials, targets[some], nontargets[some])}


def check_grid(grid: int | tuple[int, int]) -> tuple[int, int]:
    """Steps along x and y."""
    pair = grid if isinstance(grid, tuple) else (grid, grid)
    for steps in pair:
        if not (isinstance(steps, int | np.integer) and 1 <= steps <= LARGEST_GRID):
            most = f"from 1 to {LARGEST_GRID}"
            raise InputError(f"grid: expected a whole number {most}, found {steps}")
    if len(pair) != 2:
        raise InputError(f"grid: expected one number or two (x, y), found {len(pair)}")
    return int(pair[0]), int(pair[1])


@dataclass(frozen=True, eq=False)
class Contour:
    """Borders of cells below ``level``: segments from (``x``, ``y``)[i] to (``x2``, ``y2``)[i] in
    shares.
    """

    level: float
    x: FloatArray
    y: FloatArray
    x2: FloatArray
    y2: FloatArray


def contour(cp_map: CpMap, level: float) -> Contour:
    """Borders of the well-defined cells of ``cp_map`` whose value lies below ``level``."""
    below, defined = cp_map.values < level, cp_map.well_defined
    x, y = np.append(0.0, cp_map.x), np.append(0.0, cp_map.y)
    change = (below[:, :-1] != below[:, 1:]) & defined[:, :-1] & defined[:, 1:]
    row, column = np.nonzero(change)
    upright = x[column + 1], y[row], x[column + 1], y[row + 1]
    change = (below[:-1] != below[1:]) & defined[:-1] & defined[1:]
    row, column = np.nonzero(change)
    flat = x[column], y[row + 1], x[column + 1], y[row + 1]
    return Contour(level, *(np.concatenate(pair) for pair in zip(upright, flat, strict=True)))
