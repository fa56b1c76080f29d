"""What a map is compared with: another map of the same trials, in a tree of systems if there are
several (Li 2022, section 4.5), and subsets of its trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import final

import numpy as np
import numpy.typing as npt
import polars as pl

from unmask.base import BoolArray, FloatArray, as_scores, lazy
from unmask.engine import Roc
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval, Notice
from unmask.stress.cpmap.maps import Cells, CpMap

LARGEST_MISFIT = 0.2
_CHANCE = 1.36  # Kolmogorov and Smirnov: the distance that 5 % of samples exceed, times √n
TOLERANCE = 1e-5
OUTCOMES = ("win", "tie", "lose")
Edge = tuple[str, str]


@final
@dataclass(frozen=True)
class DeltaIntervals:
    """Intervals of the three proportions, measured on a map of ``grid`` steps a side."""

    win: Interval
    tie: Interval
    lose: Interval
    grid: tuple[int, int]


@dataclass(frozen=True, eq=False, repr=False)
class DeltaCpMap(Cells):
    """Relative change ratio per cell and the share of well-defined cells the test system wins.

    :func:`delta_cp_map` makes it. ``rcr`` is positive where the test system is better; ``win``,
    ``tie`` and ``lose`` sum to 1.
    """

    rcr: FloatArray
    win: float
    tie: float
    lose: float
    reference: str
    test: str
    tolerance: float = TOLERANCE
    intervals: DeltaIntervals | None = None
    notices: tuple[Notice, ...] = ()

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Win, tie and lose as estimates."""
        intervals = self.intervals
        params = self.params(intervals and intervals.grid, tolerance=self.tolerance)
        n = {**self.n, "cells": int(self.well_defined.sum())}
        made = {name: getattr(intervals, name, None) for name in OUTCOMES}
        return tuple(
            Estimate(f"cp_{name}", getattr(self, name), "%", made[name], n=n, params=params)
            for name in OUTCOMES
        )

    def cells(self) -> pl.DataFrame:
        """One row per cell: shares, counts of trials, RCR, whether it is well-defined."""
        return self.frame("rcr", self.rcr)


def relative_change(reference: FloatArray, test: FloatArray) -> FloatArray:
    """RCR = (CP_ref − CP_test)/CP_ref (Li 2022, eq. 2); where CP_ref is 0, 0 or −inf as CP_test is
    0.
    """
    lost = np.where(test > 0, -np.inf, 0.0)
    return np.divide(reference - test, reference, out=lost, where=reference > 0)


def proportions(
    rcr: FloatArray, well_defined: BoolArray, tolerance: float = TOLERANCE
) -> tuple[float, float, float]:
    """Win : tie : lose over the well-defined cells; ``nan`` where there is none."""
    cells = rcr[well_defined]
    if cells.size == 0:
        return (float("nan"),) * 3
    win, lose = int((cells > tolerance).sum()), int((cells < -tolerance).sum())
    return win / cells.size, (cells.size - win - lose) / cells.size, lose / cells.size


def delta_cp_map(reference: CpMap, test: CpMap, *, tolerance: float = TOLERANCE) -> DeltaCpMap:
    """Compare two maps of the same trials cell by cell (Li 2022, section 4.5).

    RCR = (CP_ref − CP_test)/CP_ref (eq. 2). A cell is won where RCR > ε, lost where RCR < −ε, and a
    tie otherwise. Where one of the two systems is among those that ordered the trials and the other
    is not, the map favours the other one and says so in a warning.

    Parameters
    ----------
    reference, test
        Maps with the trials in the same order, however that order was named.
    tolerance
        ε, the relative change that is still a tie.

    Returns
    -------
    DeltaCpMap
        ``rcr`` of every cell; ``win``, ``tie`` and ``lose``, shares of the well-defined ones.

    Examples
    --------
    >>> import numpy as np
    >>> import unmask as um
    >>> rng = np.random.default_rng(0)
    >>> first = rng.normal(1, 1, 500), rng.normal(0, 1, 500)
    >>> second = rng.normal(2, 1, 500), rng.normal(0, 1, 500)
    >>> order = {"target_hardness": first[0] + second[0], "nontarget_hardness": first[1]}
    >>> maps = [um.cp_map(*scores, grid=10, **order) for scores in (first, second)]
    >>> delta = um.delta_cp_map(*maps)
    >>> print(f"{delta.win:.2f} : {delta.tie:.2f} : {delta.lose:.2f}")
    1.00 : 0.00 : 0.00
    """
    names = reference.system or "the reference system", test.system or "the test system"
    both = list(zip(names, (reference, test), strict=True))
    if reference.n != test.n:
        each = ", ".join(
            f"{name} {cp.n['target']} target and {cp.n['nontarget']} nontarget" for name, cp in both
        )
        raise InputError(f"systems on different trial lists: {each} trials")
    if reference.values.shape != test.values.shape:
        grids = " and ".join(f"{cp.x.size} x {cp.y.size}" for _, cp in both)
        raise InputError(f"delta map: expected two maps on one grid, found {grids}")
    if reference.metric != test.metric:
        raise InputError("delta map", "one metric", f"{reference.metric} and {test.metric}")
    if reference.order != test.order:
        orders = " and ".join(
            f"{name} ordered by {'its own scores' if cp.hardness == 'own' else cp.hardness}"
            for name, cp in both
        )
        raise InputError(
            "delta map", "trials in one order", f"{orders}: give both maps the same hardness"
        )
    rcr = relative_change(reference.values, test.values)
    win, tie, lose = proportions(rcr, reference.well_defined, tolerance)
    one, other = names if reference.orders else names[::-1]
    notices = {
        "unfair-order": (
            reference.orders != test.orders,
            f"{one} orders the trials and {other} does not, which favours {other}: of two equal "
            "systems the one that did not order wins about 87 % of the cells; order by both (mean "
            "of ranks) or by outsiders",
        ),
        "tied-trials": (
            reference.tied and not np.array_equal(reference.target_place, test.target_place),
            "more trials than a cell holds are equally hard: among them each system is ordered by "
            "its own scores, so such a cell holds different trials of the two",
        ),
        "few-trials": (
            not reference.well_defined.any(),
            "no cell has 30 trials of each class: win, tie and lose are undefined",
        ),
    }
    return DeltaCpMap(
        **{field.name: getattr(reference, field.name) for field in fields(Cells)},
        rcr=rcr,
        win=win,
        tie=tie,
        lose=lose,
        reference=reference.system,
        test=test.system,
        tolerance=tolerance,
        notices=(
            *reference.notices,
            *(Notice(code, "", text) for code, (holds, text) in notices.items() if holds),
        ),
    )


@dataclass(frozen=True, eq=False)
class CpRoadmap:
    """A tree of systems (as Li 2022, Figure 11): their maps, and delta maps to the ones they grew
    from.
    """

    maps: tuple[CpMap, ...]
    deltas: tuple[DeltaCpMap, ...]

    def __post_init__(self) -> None:
        names = [cp.system for cp in self.maps]
        edges = [(delta.reference, delta.test) for delta in self.deltas]
        if not is_tree(edges, names):
            written = ", ".join(f"{old} → {new}" for old, new in edges) or "no step"
            raise InputError(
                "roadmap", f"steps that form one tree over the systems {', '.join(names)}", written
            )

    @property
    def levels(self) -> tuple[tuple[str, ...], ...]:
        """Systems by their number of steps from the first one."""
        edges = [(delta.reference, delta.test) for delta in self.deltas]
        return _levels(edges, [cp.system for cp in self.maps])


def _levels(edges: Sequence[Edge], names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Systems that no step leads to, those one step from them, and so on."""
    after = {new: old for old, new in edges}
    level = tuple(name for name in names if name not in after)
    levels = []
    while level:
        levels.append(level)
        level = tuple(name for name in names if after.get(name) in level)
    return tuple(levels)


def is_tree(edges: Sequence[Edge], names: Sequence[str]) -> bool:
    """Whether the steps lead from one of the systems to each of the others in exactly one way."""
    sizes = [len(level) for level in _levels(edges, names)]
    return len(edges) == len(names) - 1 and sizes[:1] == [1] and sum(sizes) == len(names)


def steps_of(names: Sequence[str], edges: Sequence[Edge] | None) -> list[Edge]:
    """The comparisons asked for, by default of each system with the one before it."""
    steps = list(pairwise(names)) if edges is None else list(edges)
    for name in (name for edge in steps for name in edge):
        if name not in names:
            raise InputError(f"delta: expected one of the systems {', '.join(names)}, found {name}")
    return steps


@dataclass(frozen=True, eq=False)
class CpConfig:
    """A trial config: a name, and which targets and which nontargets of a map belong to it."""

    name: str
    target: BoolArray
    nontarget: BoolArray

    @lazy
    def whole(self) -> bool:
        """Whether it is all trials."""
        return bool(self.target.all() and self.nontarget.all())


@final
@dataclass(frozen=True)
class PositionIntervals:
    """Intervals of a position; None where a number is fixed by definition or at its bound."""

    x: Interval | None
    y: Interval | None
    value: Interval
    gap: Interval | None


@dataclass(frozen=True)
class CpPosition:
    """A subset of the trials placed on a map, by :func:`cp_position`.

    ``x`` and ``y``: the share of hardest targets and nontargets whose mean hardness is that of the
    subset, at most 1; ``easier`` tells that the subset is easier than all trials, in either class.
    ``misfit`` is how far its trials are from the hardest share in shape (the largest distance of
    the two distribution functions of hardness, in the worse class); where it is too large no cell
    stands for the subset, and ``x``, ``y`` and ``cell`` are NaN. ``value``: the metric on the
    subset itself. ``cell``: the map's value where it is placed. ``gap``: ``value`` minus that of
    all trials, the benchmark-deployment gap of Li 2022.
    """

    name: str
    x: float
    y: float
    value: float
    cell: float
    gap: float
    targets: int
    nontargets: int
    easier: bool
    misfit: float
    intervals: PositionIntervals | None = None

    @property
    def placed(self) -> bool:
        """Whether a cell of the map stands for the subset."""
        return not np.isnan(self.x)

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What to know about where it stands."""
        if not self.placed:
            sentence = (
                "its trials are no mixture that a cell of the map stands for (hardness differs from"
                f" the nearest one by {self.misfit:.2f} in distribution): its value is given, but"
                " no position"
            )
            return (Notice("no-position", self.name, sentence),)
        sentence = "a class is easier than in all trials, so it stands at the edge of the map"
        return (Notice("easier", self.name, sentence),) if self.easier else ()


def cp_position(
    cp_map: CpMap,
    target: npt.ArrayLike,
    nontarget: npt.ArrayLike,
    target_chosen: npt.ArrayLike,
    nontarget_chosen: npt.ArrayLike,
    *,
    name: str = "subset",
) -> CpPosition:
    """Place a subset of the trials that made ``cp_map``.

    ``target`` and ``nontarget`` are the scores that made the map; the masks ``target_chosen`` and
    ``nontarget_chosen`` say which trials belong to the subset ``name``.

    Trials stand at places 0 … 1 along each axis, hardest first. The hardest share x has the mean
    place x/2, so a subset of mean place m is put at min(1, 2m): a prefix lands on its own cell. A
    subset that is no mixture like that (a middle band, the easy half) is given no position: its
    places are further than 0.2, beyond what chance explains (1.36/√n), from an even spread over
    (0, min(1, 2m)).
    """
    from scipy.stats import kstest

    targets, nontargets = as_scores(target, "target"), as_scores(nontarget, "nontarget")
    t = _mask(target_chosen, targets.size, cp_map.target_place, f"{name} target")
    n = _mask(nontarget_chosen, nontargets.size, cp_map.nontarget_place, f"{name} nontarget")
    places = cp_map.target_place[t], cp_map.nontarget_place[n]
    doubled = [2 * float(place.mean()) for place in places]
    roc, metric = Roc.from_scores(targets[t], nontargets[n]), cp_map.metric
    if metric.name == "eer":
        value = roc.eer(estimator="raw")
    else:
        value = roc.min_dcf(p_target=metric.p_target, c_miss=metric.c_miss, c_fa=metric.c_fa)
    x, y = (min(share, 1.0) for share in doubled)
    apart = [
        float(kstest(place, "uniform", (0.0, share), method="asymp").statistic)
        for place, share in zip(places, (x, y), strict=True)
    ]
    if any(
        distance > LARGEST_MISFIT + _CHANCE / place.size**0.5
        for distance, place in zip(apart, places, strict=True)
    ):
        x = y = float("nan")
    return CpPosition(
        name=name,
        x=x,
        y=y,
        value=value,
        cell=float("nan") if np.isnan(x) else cp_map.at(x, y),
        gap=value - cp_map.full,
        targets=int(t.sum()),
        nontargets=int(n.sum()),
        easier=max(doubled) > 1 + 1e-9,
        misfit=max(apart),
    )


def _mask(chosen: npt.ArrayLike, size: int, place: FloatArray, name: str) -> BoolArray:
    mask = np.asarray(chosen)
    if mask.dtype != np.bool_ or mask.shape != (size,) or place.size != size:
        raise InputError(
            f"{name} trials: expected a boolean per trial of the map ({place.size}), "
            f"found {mask.dtype} of shape {mask.shape} for {size} scores"
        )
    if not mask.any():
        raise InputError(f"no {name} trials: both classes need at least one trial")
    return mask
