"""C-P maps of all systems of a score table, their comparisons, and trial configs placed on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from unmask.arrays import FloatArray
from unmask.detection.bootstrap import Progress
from unmask.detection.units import auto_replicates, units_of
from unmask.errors import InputError
from unmask.estimate import Estimate
from unmask.stress.cpmap import CpMap, CpMetric, cp_map
from unmask.stress.cpmap_configs import trial_configs
from unmask.stress.cpmap_delta import TOLERANCE, CpRoadmap, DeltaCpMap, delta_cp_map
from unmask.stress.cpmap_intervals import INTERVAL_GRID, delta_cp_intervals_of
from unmask.stress.cpmap_positions import CpPosition, cp_position
from unmask.trials import Scores, Source
from unmask.trials.trial_list import TrialList

AUTO_TRIALS = 200_000


@dataclass(frozen=True, eq=False)
class CpAssessment:
    """What :func:`assess_cp_maps` found; ``positions`` holds trial configs by system."""

    maps: Mapping[str, CpMap]
    deltas: tuple[DeltaCpMap, ...]
    positions: Mapping[str, tuple[CpPosition, ...]]
    references: tuple[str, ...]
    below: float
    trials: str
    sources: tuple[Source, ...]
    warnings: tuple[str, ...]
    seed: int

    @property
    def roadmap(self) -> CpRoadmap | None:
        """The maps and deltas as a chain, if every system is compared with the one before."""
        chain = list(pairwise(self.maps))
        if not chain or [(d.reference, d.test) for d in self.deltas] != chain:
            return None
        return CpRoadmap(tuple(self.maps.values()), self.deltas)

    def estimates(self, system: str) -> tuple[Estimate, ...]:
        """Summary numbers of one system's map."""
        return self._signed(self.maps[system].estimates(below=self.below))

    def delta_estimates(self, delta: DeltaCpMap) -> tuple[Estimate, ...]:
        """Win, tie and lose of one comparison."""
        return self._signed(delta.estimates)

    def position_estimates(self, system: str, position: CpPosition) -> tuple[Estimate, ...]:
        """The metric on a trial config, where it stands, and its gap to all trials."""
        metric = self.maps[system].metric
        n = {"target": position.targets, "nontarget": position.nontargets}
        values = (
            (metric.name, position.value, metric.unit),
            ("cp_x", position.x, "%"),
            ("cp_y", position.y, "%"),
            ("cp_cell", position.cell, metric.unit),
            ("cp_gap", position.gap, metric.unit),
        )
        return self._signed(
            tuple(
                Estimate(name, value, unit, n=n, params=metric.params)
                for name, value, unit in values
            )
        )

    def _signed(self, estimates: tuple[Estimate, ...]) -> tuple[Estimate, ...]:
        return tuple(replace(estimate, trials=self.trials) for estimate in estimates)


def assess_cp_maps(
    scores: Scores,
    *,
    systems: Sequence[str] | None = None,
    references: Sequence[str] = (),
    combine: str = "mean",
    grid: int | tuple[int, int] = 100,
    metric: str = "eer",
    p_target: float = 0.01,
    c_miss: float = 1.0,
    c_fa: float = 1.0,
    deltas: Sequence[tuple[str, str]] | None = None,
    subset: TrialList | None = None,
    subset_name: str = "deployment",
    below: float = 0.05,
    replicates: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    progress: Progress | None = None,
) -> CpAssessment:
    """The map of every system, delta maps, and where cross-pairing and ``subset`` stand on them.

    ``references`` name what orders the trials: systems of the table, or numeric columns of it;
    without any, each system's own scores do. ``deltas`` are (reference, test) pairs of systems; by
    default each system is compared with the one before it, which is the roadmap. Their proportions
    get intervals by the joint speaker bootstrap (the trial bootstrap where no speakers are known),
    on the map's grid up to 100 x 100; ``replicates=0`` leaves them out, by default there are 1,000
    for up to 200,000 trials. ``subset`` is a list of trials of the user's deployment.
    """
    scores.check_classes()
    names = list(systems or scores.systems)
    classes = {name: (scores.targets(name), scores.nontargets(name)) for name in names}
    measured = CpMetric(metric, p_target, c_miss, c_fa)
    hardness: dict[str, Any] = {**_hardness(scores, references), "combine": combine}
    maps = {
        name: cp_map(
            *classes[name],
            system=name,
            grid=grid,
            metric=metric,
            p_target=p_target,
            c_miss=c_miss,
            c_fa=c_fa,
            **hardness,
        )
        for name in names
    }
    compared = list(pairwise(names)) if deltas is None else list(deltas)
    found = [delta_cp_map(_named(maps, old), _named(maps, new)) for old, new in compared]
    warnings = [text for delta in found for text in delta.warnings]
    units = None
    if compared:
        replicates, told = auto_replicates(scores, replicates, most=AUTO_TRIALS)
        warnings += told
    if compared and replicates:
        units, told = units_of(scores)
        warnings += told
    if units is not None and replicates:
        intervals = delta_cp_intervals_of(
            list(classes.values()),
            [(names.index(old), names.index(new)) for old, new in compared],
            units,
            grid=_coarse(grid),
            metric=measured,
            tolerance=TOLERANCE,
            replicates=replicates,
            level=level,
            seed=seed,
            progress=progress,
            **hardness,
        )
        found = [delta.with_intervals(made) for delta, made in zip(found, intervals, strict=True)]
    configs, told = trial_configs(scores, subset, subset_name)
    target, nontarget = scores.is_target, scores.is_nontarget
    positions = {
        name: tuple(
            cp_position(maps[name], *classes[name], mask[target], mask[nontarget], name=config)
            for config, mask in configs.items()
        )
        for name in names
    }
    warnings += told
    warnings += [
        f"{'' if references else f'{name}: '}{position.name}: a class is easier than in all trials,"
        " so it stands at the edge of the map"
        for name, placed in positions.items()
        for position in placed
        if position.easier
    ]
    warnings += _few(maps, measured)
    return CpAssessment(
        maps=maps,
        deltas=tuple(found),
        positions=positions,
        references=tuple(references),
        below=below,
        trials=scores.digest,
        sources=scores.sources,
        warnings=tuple(dict.fromkeys(warnings)),
        seed=seed,
    )


def _hardness(scores: Scores, references: Sequence[str]) -> dict[str, Any]:
    if not references:
        return {"target_hardness": None, "nontarget_hardness": None}
    columns = [_reference(scores, name) for name in references]
    target, nontarget = scores.is_target, scores.is_nontarget
    return {
        "target_hardness": [column[target] for column in columns],
        "nontarget_hardness": [column[nontarget] for column in columns],
    }


def _reference(scores: Scores, name: str) -> FloatArray:
    """A system's scores, or a column of the table read as numbers."""
    if name in scores.systems:
        return scores.systems[name]
    if name not in scores.columns:
        known = ", ".join([*scores.systems, *scores.columns])
        raise InputError(f"reference: expected one of the columns {known}, found {name}")
    ids = scores.columns[name]
    numbers = ids.names.cast(pl.Float64, strict=False)
    if numbers.null_count():
        word = ids.names.filter(numbers.is_null())[0]
        raise InputError(f"reference {name}: expected a number for every trial, found {word!r}")
    return np.asarray(numbers.to_numpy()[ids.codes], np.float64)


def _named(maps: Mapping[str, CpMap], name: str) -> CpMap:
    if name not in maps:
        raise InputError(f"delta: expected one of the systems {', '.join(maps)}, found {name}")
    return maps[name]


def _coarse(grid: int | tuple[int, int]) -> tuple[int, int]:
    x, y = grid if isinstance(grid, tuple) else (grid, grid)
    return min(x, INTERVAL_GRID), min(y, INTERVAL_GRID)


def _few(maps: Mapping[str, CpMap], metric: CpMetric) -> list[str]:
    cp = next(iter(maps.values()))
    if cp.well_defined.all():
        return []
    lacking = cp.well_defined.size - int(cp.well_defined.sum())
    return [
        f"{lacking} of {cp.well_defined.size} cells have fewer than 30 trials of a class: "
        f"not well-defined, left out of means and shares of {metric.name}"
    ]
