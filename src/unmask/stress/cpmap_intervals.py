"""How sure the proportions of a delta C-P map are: the joint speaker bootstrap."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.arrays import FloatArray, IntArray, as_scores
from unmask.detection.bootstrap import Units
from unmask.detection.replicates import MetricRange, Replicates
from unmask.errors import InputError
from unmask.estimate import Interval
from unmask.stress import cpmap_kernels as kernels
from unmask.stress.cpmap import CpMetric, cell_values, check_grid, ordered, well_defined
from unmask.stress.cpmap_delta import (
    OUTCOMES,
    TOLERANCE,
    DeltaIntervals,
    proportions,
    relative_change,
)
from unmask.stress.cpmap_hardness import Hardness
from unmask.stress.cpmap_prefixes import Prefixes, Ranks, code, prefix_sizes

Pair = tuple[npt.ArrayLike, npt.ArrayLike]
INTERVAL_GRID = 100


@dataclass(frozen=True, eq=False)
class _Listed:
    """Score codes of one system in hardness order, from which any draw's trial list is repeated."""

    target: Ranks
    nontarget: Ranks
    target_trial: IntArray
    nontarget_trial: IntArray
    digits: int

    def drawn(self, target_times: IntArray, nontarget_times: IntArray) -> kernels.Trials:
        """The trials of a replicate: a list in which a trial stands as often as it was drawn."""
        targets = np.repeat(self.target, target_times[self.target_trial])
        nontargets = np.repeat(self.nontarget, nontarget_times[self.nontarget_trial])
        return kernels.Trials(
            Prefixes.of(targets, self.digits), Prefixes.of(nontargets, self.digits), self.digits
        )


def delta_cp_intervals(
    reference: Pair,
    test: Pair,
    units: Units,
    *,
    target_hardness: Hardness | None = None,
    nontarget_hardness: Hardness | None = None,
    combine: str = "mean",
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
    """Percentile intervals of win, tie and lose; both systems see the same draws of speakers.

    ``reference`` and ``test`` are (target, nontarget) scores of one trial list, ``units`` tells
    which speakers each trial depends on. A replicate is a trial list of its own, in which a trial
    stands as often as its speakers were drawn; both maps and their proportions are computed on it
    exactly. ``grid`` should be that of the map; a coarser one hardly changes the proportions.
    """
    found = delta_cp_intervals_of(
        [reference, test],
        [(0, 1)],
        units,
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
    )
    return found[0]


def delta_cp_intervals_of(
    scores: Sequence[Pair],
    compared: Sequence[tuple[int, int]],
    units: Units,
    *,
    target_hardness: Hardness | None,
    nontarget_hardness: Hardness | None,
    combine: str,
    grid: int | tuple[int, int],
    metric: CpMetric,
    tolerance: float,
    replicates: int,
    level: float,
    seed: int,
    workers: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[DeltaIntervals]:
    """Intervals of several comparisons: the map of each system is computed once per replicate."""
    if replicates < 2:
        raise InputError(f"bootstrap: expected at least 2 replicates, found {replicates}")
    steps = check_grid(grid)
    systems = [_listed(pair, target_hardness, nontarget_hardness, combine) for pair in scores]
    for listed in systems:
        _require_units(listed, units)
    if units.method == "speaker" and units.strata[0] < 2:
        none = Interval(float("nan"), float("nan"), level, units.method, replicates, seed)
        return [DeltaIntervals(none, none, none, steps, replicates)] * len(compared)
    once = np.ones(sum(units.strata), np.int64)
    seeds = np.random.SeedSequence(seed).spawn(replicates)
    shares = np.full((len(compared), 3, replicates), np.nan)

    def replicate(index: int) -> None:
        times = units.draw(np.random.default_rng(seeds[index])).astype(np.int64)
        drawn = _times(units, times)
        if drawn[0].any() and drawn[1].any():
            maps = [_values(listed.drawn(*drawn), steps, metric) for listed in systems]
            for row, (old, new) in enumerate(compared):
                rcr = relative_change(maps[old][0], maps[new][0])
                shares[row, :, index] = proportions(rcr, maps[old][1], tolerance)

    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        for done, _ in enumerate(pool.map(replicate, range(replicates)), start=1):
            if progress is not None:
                progress(done, replicates)
    rows = {name: shares[:, i] for i, name in enumerate(OUTCOMES)}
    maps = [_values(listed.drawn(*_times(units, once)), steps, metric) for listed in systems]
    sample = np.array(
        [
            proportions(relative_change(maps[old][0], maps[new][0]), maps[old][1], tolerance)
            for old, new in compared
        ]
    )
    table = Replicates(
        rows,
        dict(zip(OUTCOMES, sample.T, strict=True)),
        units.count,
        units.method,
        seed,
        replicates,
        dict.fromkeys(OUTCOMES, MetricRange(0.0, 1.0)),
    )
    return [
        DeltaIntervals(
            table.interval("win", level=level, system=row),
            table.interval("tie", level=level, system=row),
            table.interval("lose", level=level, system=row),
            steps,
            int(np.isnan(shares[row, 0]).sum()),
        )
        for row in range(len(compared))
    ]


def _listed(
    pair: Pair, target_hardness: Hardness | None, nontarget_hardness: Hardness | None, combine: str
) -> _Listed:
    target, nontarget = as_scores(pair[0], "target"), as_scores(pair[1], "nontarget")
    targets = ordered(target, target_hardness, combine=combine, name="target").hardest_first
    nontargets = ordered(
        nontarget, nontarget_hardness, combine=combine, name="nontarget"
    ).hardest_first
    target_codes, nontarget_codes, digits = code(target, nontarget)
    return _Listed(target_codes[targets], nontarget_codes[nontargets], targets, nontargets, digits)


def _require_units(listed: _Listed, units: Units) -> None:
    found = (listed.target.size, listed.nontarget.size)
    expected = (units.target.size, units.nontarget_first.size)
    if found != expected:
        raise InputError(
            f"bootstrap: speakers are known for {expected[0]} target and {expected[1]} nontarget "
            f"trials, scores given for {found[0]} and {found[1]}"
        )


def _times(units: Units, times: IntArray) -> tuple[IntArray, IntArray]:
    """How often each trial stands in the replicate: m_a·m_b, or m_a within one speaker."""
    nontarget = times[units.nontarget_first]
    if units.nontarget_second is not None:
        other = units.nontarget_first != units.nontarget_second
        nontarget = np.where(other, nontarget * times[units.nontarget_second], nontarget)
    return times[units.target], nontarget


def _values(
    trials: kernels.Trials, steps: tuple[int, int], metric: CpMetric
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    a = prefix_sizes(trials.target.size, steps[0])
    b = prefix_sizes(trials.nontarget.size, steps[1])
    return cell_values(trials, a, b, metric, workers=1), well_defined(a, b)
