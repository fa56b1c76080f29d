"""C-P maps of all systems of a score table, their comparisons, and trial configs placed on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from unmask.base import FloatArray
from unmask.engine import Progress, auto_replicates, units_of
from unmask.errors import InputError
from unmask.estimate import Estimate
from unmask.stress.cpmap.bias import ConfigScores, trial_bias
from unmask.stress.cpmap.configs import trial_configs
from unmask.stress.cpmap.delta import (
    TOLERANCE,
    CpRoadmap,
    DeltaCpMap,
    Edge,
    delta_cp_map,
    is_tree,
    named,
)
from unmask.stress.cpmap.intervals import BELOW, INTERVAL_GRID, cp_intervals
from unmask.stress.cpmap.maps import CpMap, CpMetric, cp_map
from unmask.stress.cpmap.positions import CpConfig, CpPosition, cp_position
from unmask.trials import Scores, Source, TrialList

AUTO_TRIALS = 200_000


@dataclass(frozen=True, eq=False)
class CpAssessment:
    """What :func:`assess_cp_maps` found; ``positions`` holds trial configs by system.

    ``bias`` holds their scores on one axis, by system too.
    """

    maps: Mapping[str, CpMap]
    deltas: tuple[DeltaCpMap, ...]
    positions: Mapping[str, tuple[CpPosition, ...]]
    bias: Mapping[str, tuple[ConfigScores, ...]]
    references: tuple[str, ...]
    combine: str
    below: float
    trials: str
    sources: tuple[Source, ...]
    warnings: tuple[str, ...]
    seed: int

    @property
    def roadmap(self) -> CpRoadmap | None:
        """The compared systems and their deltas, if the comparisons form a tree."""
        edges = [(delta.reference, delta.test) for delta in self.deltas]
        names = [name for name in self.maps if any(name in edge for edge in edges)]
        if not edges or not is_tree(edges, names):
            return None
        return CpRoadmap(tuple(self.maps[name] for name in names), self.deltas)

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
        made = position.intervals
        value, x, y, gap = (made.value, made.x, made.y, made.gap) if made else (None,) * 4
        values = [(metric.name, position.value, metric.unit, value)]
        if position.placed:
            values += [
                ("cp_x", position.x, "%", x),
                ("cp_y", position.y, "%", y),
                ("cp_cell", position.cell, metric.unit, None),
            ]
        values.append(("cp_gap", position.gap, metric.unit, gap))
        return self._signed(
            tuple(
                Estimate(name, value, unit, interval=interval, n=n, params=metric.params)
                for name, value, unit, interval in values
            )
        )

    def _signed(self, estimates: tuple[Estimate, ...]) -> tuple[Estimate, ...]:
        return tuple(replace(estimate, trials=self.trials) for estimate in estimates)


def assess_cp_maps(
    scores: Scores,
    *,
    systems: Sequence[str] | None = None,
    references: Sequence[str] = (),
    combine: str = "rank",
    grid: int | tuple[int, int] = 100,
    metric: str = "eer",
    p_target: float = 0.01,
    c_miss: float = 1.0,
    c_fa: float = 1.0,
    deltas: Sequence[Edge] | None = None,
    subset: TrialList | None = None,
    subset_name: str = "deployment",
    below: float = BELOW,
    replicates: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    progress: Progress | None = None,
) -> CpAssessment:
    """The map of every system, delta maps, and where cross-pairing and ``subset`` stand on them.

    ``deltas`` are (reference, test) pairs of systems; by default each system is compared with the
    one before it. Where they form a tree they make the roadmap. ``references`` name what orders the
    trials: systems of the table, or numeric columns of it. By default all compared systems order
    them alike, by the mean of their ranks, which favours none; where nothing is compared, each
    system's own scores do. Summary numbers, positions and proportions get intervals by the joint
    speaker bootstrap (the trial bootstrap where no speakers are known), on the map's grid up to
    100 x 100; ``replicates=0`` leaves them out, by default there are 1,000 for up to 200,000
    trials. ``subset`` is a list of trials of the user's deployment.
    """
    scores.check_classes()
    names = list(systems or scores.systems)
    classes = {name: (scores.targets(name), scores.nontargets(name)) for name in names}
    measured = CpMetric(metric, p_target, c_miss, c_fa)
    compared = list(pairwise(names)) if deltas is None else list(deltas)
    _require_known(compared, names)
    chosen = list(references) or [n for n in names if any(n in edge for edge in compared)]
    hardness: dict[str, Any] = {**_hardness(scores, chosen), "combine": combine}
    maps = {
        name: replace(
            cp_map(
                *classes[name],
                system=name,
                grid=grid,
                metric=metric,
                p_target=p_target,
                c_miss=c_miss,
                c_fa=c_fa,
                **hardness,
            ),
            hardness=_label(chosen, combine),
        )
        for name in names
    }
    found = [delta_cp_map(named(maps, old), named(maps, new)) for old, new in compared]
    warnings = [text for cp in maps.values() for text in cp.warnings]
    warnings += [text for delta in found for text in delta.warnings]
    masks, missing = trial_configs(scores, subset, subset_name)
    configs = [
        CpConfig(name, mask[scores.is_target], mask[scores.is_nontarget])
        for name, mask in masks.items()
    ]
    positions = {
        name: tuple(
            cp_position(maps[name], *classes[name], one.target, one.nontarget, name=one.name)
            for one in configs
        )
        for name in names
    }
    warnings += missing
    warnings += [
        f"{'' if chosen else f'{name}: '}{text}"
        for name, placed in positions.items()
        for position in placed
        for text in _about(position)
    ]
    if compared and not is_tree(compared, [n for n in names if any(n in e for e in compared)]):
        warnings.append("the comparisons do not form a tree from one system: no roadmap is drawn")
    replicates, remarks = auto_replicates(scores, replicates, most=AUTO_TRIALS)
    warnings += remarks
    units = None
    if replicates:
        units, remarks = units_of(scores)
        warnings += remarks
    if units is not None and replicates:
        made = cp_intervals(
            list(classes.values()),
            units,
            compared=[(names.index(old), names.index(new)) for old, new in compared],
            configs=configs,
            grid=_coarse(grid),
            metric=measured,
            below=below,
            tolerance=TOLERANCE,
            replicates=replicates,
            level=level,
            seed=seed,
            progress=progress,
            **hardness,
        )
        maps = {
            name: cp.with_intervals(intervals)
            for (name, cp), intervals in zip(maps.items(), made.maps, strict=True)
        }
        found = [one.with_intervals(i) for one, i in zip(found, made.deltas, strict=True)]
        positions = {
            name: tuple(one.with_intervals(i) for one, i in zip(placed, intervals, strict=True))
            for (name, placed), intervals in zip(positions.items(), made.positions, strict=True)
        }
    warnings += _few(maps, measured)
    return CpAssessment(
        maps=maps,
        deltas=tuple(found),
        positions=positions,
        bias={name: _bias(*classes[name], configs) for name in names},
        references=tuple(chosen),
        combine=combine,
        below=below,
        trials=scores.digest,
        sources=scores.sources,
        warnings=tuple(dict.fromkeys(warnings)),
        seed=seed,
    )


def _bias(
    target: FloatArray, nontarget: FloatArray, configs: Sequence[CpConfig]
) -> tuple[ConfigScores, ...]:
    return trial_bias({one.name: (target[one.target], nontarget[one.nontarget]) for one in configs})


def _require_known(compared: Sequence[Edge], names: Sequence[str]) -> None:
    for name in (name for edge in compared for name in edge):
        if name not in names:
            raise InputError(f"delta: expected one of the systems {', '.join(names)}, found {name}")


def _label(references: Sequence[str], combine: str) -> str:
    """What ordered the trials, in a signature."""
    if not references:
        return "own"
    return references[0] if len(references) == 1 else f"{combine}({','.join(references)})"


def _about(position: CpPosition) -> list[str]:
    if not position.placed:
        return [
            f"{position.name}: its trials are no mixture that a cell of the map stands for "
            f"(hardness differs from the nearest one by {position.misfit:.2f} in distribution): "
            "its value is given, but no position"
        ]
    if position.easier:
        return [
            f"{position.name}: a class is easier than in all trials, so it stands at the edge of "
            "the map"
        ]
    return []


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
