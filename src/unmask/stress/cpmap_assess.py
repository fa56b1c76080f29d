"""C-P maps of all systems of a score table, their comparisons, and trial configs placed on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from unmask.arrays import BoolArray, FloatArray
from unmask.detection.bootstrap import Progress, Units
from unmask.errors import InputError
from unmask.estimate import Estimate
from unmask.stress.cpmap import CpMap, CpMetric, cp_map
from unmask.stress.cpmap_delta import TOLERANCE, CpRoadmap, DeltaCpMap, delta_cp_map
from unmask.stress.cpmap_intervals import INTERVAL_GRID, delta_cp_intervals_of
from unmask.stress.cpmap_positions import (
    CpPosition,
    cp_position,
    enrolment_fixed,
    full_cross_pairing,
)
from unmask.trials import Scores, Source
from unmask.trials.ids import share
from unmask.trials.join import codes_like, match
from unmask.trials.trial_list import TrialList

AUTO_REPLICATES = 1000
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
    if replicates is None:
        replicates, told = _auto_replicates(scores, bool(compared))
        warnings += told
    if compared and replicates:
        units, told = _units(scores)
        warnings += told
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
    configs, told = _configs(scores, subset, subset_name)
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


def _auto_replicates(scores: Scores, compared: bool) -> tuple[int, list[str]]:
    trials = int(scores.is_target.sum() + scores.is_nontarget.sum())
    if trials <= AUTO_TRIALS or not compared:
        return AUTO_REPLICATES, []
    told = f"no intervals by default for {trials:,} trials: ask for them, they take minutes"
    return 0, [told]


def _units(scores: Scores) -> tuple[Units, list[str]]:
    target, nontarget = scores.is_target, scores.is_nontarget
    enrol, test = scores.enrol_speaker, scores.test_speaker
    if enrol is None or test is None:
        told = "no speaker ids: intervals are of the trial bootstrap, which is too narrow"
        return Units.trials(int(target.sum()), int(nontarget.sum())), [told]
    units = Units.speakers(enrol.codes[target], enrol.codes[nontarget], test.codes[nontarget])
    one = units.strata[0] < 2
    return units, ["one speaker only: no interval can be given"] if one else []


def _configs(
    scores: Scores, subset: TrialList | None, subset_name: str
) -> tuple[dict[str, BoolArray], list[str]]:
    """Masks of the trial configs that can be told from the table, and of the user's subset."""
    counted = np.asarray(scores.is_target | scores.is_nontarget)
    configs: dict[str, BoolArray] = {"all trials": counted}
    warnings: list[str] = []
    if scores.enrol is not None and scores.test is not None:
        enrol, test = share(scores.enrol, scores.test)
        rank = np.empty(len(enrol.names), np.int64)
        rank[enrol.names.arg_sort().to_numpy()] = np.arange(rank.size)
        codes = rank[enrol.codes], rank[test.codes]
        if full_cross_pairing(codes[0][counted], codes[1][counted]):
            configs = {"full cross-pairing": counted}
        if scores.enrol_speaker is not None:
            fixed = np.zeros(counted.size, bool)
            fixed[counted] = enrolment_fixed(
                codes[0][counted], codes[1][counted], scores.enrol_speaker.codes[counted]
            )
            if _has_both(scores, fixed):
                configs["enrolment-fixed"] = fixed
            else:
                warnings.append("enrolment-fixed cross-pairing leaves a class empty: not placed")
    if subset is not None:
        configs[subset_name] = _chosen(scores, subset, subset_name)
    return configs, warnings


def _has_both(scores: Scores, mask: BoolArray) -> bool:
    return bool((mask & scores.is_target).any() and (mask & scores.is_nontarget).any())


def _chosen(scores: Scores, subset: TrialList, name: str) -> BoolArray:
    """The trials of the table that the subset names; all of the subset must be there."""
    rows = match(codes_like(subset.ids, scores.ids), scores.codes)
    unknown = np.flatnonzero(rows < 0)
    if unknown.size:
        enrol, test, _ = subset.ids
        raise InputError(
            f"{name}: {unknown.size} of its {len(subset)} trials have no score "
            f"(first: {enrol.decode(int(unknown[0]))} {test.decode(int(unknown[0]))})"
        )
    if subset.label is not None and scores.label is not None:
        conflict = int((subset.label != scores.label[rows]).sum())
        if conflict:
            raise InputError(f"{name}: {conflict} trials are labelled otherwise than in the scores")
    mask = np.zeros(len(scores), bool)
    mask[rows] = True
    if not _has_both(scores, mask):
        raise InputError(f"{name}: expected trials of both classes, found one of them only")
    return mask


def _few(maps: Mapping[str, CpMap], metric: CpMetric) -> list[str]:
    cp = next(iter(maps.values()))
    if cp.well_defined.all():
        return []
    lacking = cp.well_defined.size - int(cp.well_defined.sum())
    return [
        f"{lacking} of {cp.well_defined.size} cells have fewer than 30 trials of a class: "
        f"not well-defined, left out of means and shares of {metric.name}"
    ]
