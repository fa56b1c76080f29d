"""C-P maps of all systems of a score table, their comparisons, and trial configs placed on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from unmask.base import (
    BoolArray,
    FloatArray,
    IntArray,
    Sampling,
    Tabular,
    as_scores,
    estimate_row,
)
from unmask.engine import Roc, auto_replicates, units_of
from unmask.errors import InputError
from unmask.estimate import Estimate, Notice
from unmask.stress.cpmap.comparison import (
    CpConfig,
    CpPosition,
    CpRoadmap,
    DeltaCpMap,
    Edge,
    cp_position,
    delta_cp_map,
    is_tree,
    steps_of,
)
from unmask.stress.cpmap.intervals import BELOW, INTERVAL_GRID, CpUncertainty, cp_intervals
from unmask.stress.cpmap.kernels import Listed
from unmask.stress.cpmap.maps import CpMap, CpMetric, as_metric, check_grid, map_of
from unmask.stress.tables import Table, as_table
from unmask.trials import Ids, Scores, Source, TrialList, match, trial_codes

AUTO_TRIALS = 200_000


@dataclass(frozen=True, eq=False)
class ConfigScores:
    """Scores of one trial config: densities of both classes over ``edges``, and their raw EER."""

    name: str
    edges: FloatArray
    target: FloatArray
    nontarget: FloatArray
    eer: float
    threshold: float
    targets: int
    nontargets: int


def trial_bias(
    configs: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]], *, bins: int = 60
) -> tuple[ConfigScores, ...]:
    """Densities of the scores of every config over the same ``bins`` (Li 2022, Figure 1).

    ``configs`` gives (target, nontarget) scores of one system by the name of the trial config. The
    system is the same in all: what differs is which trials were put to it. Infinite scores lie in
    no bin, but count in the densities.
    """
    if not configs:
        raise InputError("trial bias: expected at least one trial config, found none")
    scores = {
        name: (as_scores(pair[0], f"{name} target"), as_scores(pair[1], f"{name} nontarget"))
        for name, pair in configs.items()
    }
    every = np.concatenate([part for pair in scores.values() for part in pair])
    every = every[np.isfinite(every)]
    low, high = (every.min(), every.max()) if every.size else (0.0, 0.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, bins + 1)
    width = edges[1] - edges[0]
    densities = []
    for name, pair in scores.items():
        point = Roc.from_scores(*pair).eer_point(estimator="raw")
        target, nontarget = (np.histogram(s, edges)[0] / (s.size * width) for s in pair)
        sizes = pair[0].size, pair[1].size
        densities.append(
            ConfigScores(name, edges, target, nontarget, point.value, point.threshold, *sizes)
        )
    return tuple(densities)


@dataclass(frozen=True, eq=False, repr=False)
class CpAssessment(Tabular):
    """What :func:`cp_maps` gives; ``positions`` of configs and ``bias``, their scores, are by
    system.
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
    notices: tuple[Notice, ...]
    seed: int

    @property
    def metric(self) -> CpMetric:
        """What is measured in each cell, of all maps alike."""
        return next(iter(self.maps.values())).metric

    @property
    def roadmap(self) -> CpRoadmap | None:
        """The compared systems and their deltas, if the comparisons form a tree."""
        edges = [(delta.reference, delta.test) for delta in self.deltas]
        names = _among(self.maps, edges)
        if not edges or not is_tree(edges, names):
            return None
        return CpRoadmap(tuple(self.maps[name] for name in names), self.deltas)

    def rows(self) -> list[dict[str, Any]]:
        """The table: the summary of every system's map."""
        return [
            estimate_row(estimate, system=system)
            for system in self.maps
            for estimate in self.estimates_of(system)
        ]

    @property
    def parts(self) -> Mapping[str, CpMap]:
        """The map of each system."""
        return self.maps

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Summary numbers of all maps."""
        return tuple(estimate for system in self.maps for estimate in self.estimates_of(system))

    def estimates_of(self, system: str) -> tuple[Estimate, ...]:
        """Summary numbers of one system's map."""
        return self._signed(self.maps[system].estimates_below(self.below))

    def delta_estimates(self, delta: DeltaCpMap) -> tuple[Estimate, ...]:
        """Win, tie and lose of one comparison."""
        return self._signed(delta.estimates)

    def position_estimates(self, system: str, position: CpPosition) -> tuple[Estimate, ...]:
        """The metric on a trial config, where it stands, and its gap to all trials."""
        metric, intervals = self.maps[system].metric, position.intervals
        n = {"target": position.targets, "nontarget": position.nontargets}
        values = [(metric.name, position.value, metric.unit, intervals and intervals.value)]
        if position.placed:
            values += [
                ("cp_x", position.x, "%", intervals and intervals.x),
                ("cp_y", position.y, "%", intervals and intervals.y),
                ("cp_cell", position.cell, metric.unit, None),
            ]
        values.append(("cp_gap", position.gap, metric.unit, intervals and intervals.gap))
        estimates = (Estimate(*value, n=n, params=metric.params) for value in values)
        return self._signed(tuple(estimates))

    def _signed(self, estimates: tuple[Estimate, ...]) -> tuple[Estimate, ...]:
        return tuple(replace(estimate, trials=self.trials) for estimate in estimates)


def cells_table(assessments: Sequence[CpAssessment]) -> pl.DataFrame:
    """All cells of all maps and delta maps by ``system``, and by ``metric`` where there are
    several.
    """
    tables = []
    for assessed in assessments:
        maps = [(name, cp.cells()) for name, cp in assessed.maps.items()]
        maps += [(f"{delta.reference} → {delta.test}", delta.cells()) for delta in assessed.deltas]
        for name, cells in maps:
            names = [pl.lit(name).alias("system"), pl.lit(assessed.metric.name).alias("metric")]
            tables.append(cells.select(*names[: len(assessments)], pl.all()))
    return pl.concat(tables, how="diagonal")


def cp_maps(
    data: Table,
    *,
    systems: Sequence[str] | None = None,
    references: Sequence[str] = (),
    combine: str = "rank",
    grid: int | tuple[int, int] = 100,
    metric: str | CpMetric = "eer",
    deltas: Sequence[Edge] | None = None,
    subset: TrialList | Mapping[str, TrialList] | None = None,
    below: float = BELOW,
    replicates: int | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> CpAssessment:
    """The map of every system of a table, delta maps, and where trial configs stand on them.

    Cross-pairing designs and a ``subset`` are placed on the maps (Li 2022, sections 2 to 4).
    Intervals come from the joint speaker bootstrap (that of trials where no speakers are known), on
    the map's grid up to 100 × 100.

    Parameters
    ----------
    data
        Scores of all systems on one list of trials: a table, a data frame, or score files.
    systems
        Those to map, all by default.
    references
        What orders the trials: systems or numeric columns of the table. By default all compared
        systems order them alike, by the mean of their ranks, which favours none; where nothing is
        compared, each system's own scores do.
    combine, grid, metric
        Those of :func:`cp_map`.
    deltas
        Pairs (reference, test) of systems, by default each with the one before it. Where they form
        a tree they make the roadmap.
    subset
        Trials of your deployment, or several such lists by name.
    below
        The level of the share of cells below it.
    replicates
        Bootstrap replicates; 1,000 for up to 200,000 trials by default, 0 for no intervals.
    level, seed
        Confidence of intervals, and where random draws follow from.

    Returns
    -------
    CpAssessment
        ``maps`` by system, ``deltas``, ``positions`` of trial configs, and the ``roadmap``.

    Examples
    --------
    >>> import numpy as np
    >>> import polars as pl
    >>> import unmask as um
    >>> rng = np.random.default_rng(0)
    >>> label = np.arange(2000) % 2
    >>> scores = {f"d{d}": rng.normal(d * label, 1) for d in (1, 2)}
    >>> made = um.cp_maps(pl.DataFrame({"label": label, **scores}), grid=20, replicates=0)
    >>> (delta,) = made.deltas
    >>> print(f"{delta.reference} to {delta.test}: wins {delta.win:.0%} of the cells")
    d1 to d2: wins 100% of the cells
    """
    scores = as_table(data, "cp_maps")
    scores.check_classes()
    names = list(systems or scores.systems)
    classes = {name: (scores.targets(name), scores.nontargets(name)) for name in names}
    compared = steps_of(names, deltas)
    chosen = list(references) or _among(names, compared)
    orders = [reference_scores(scores, name) for name in chosen]
    sides = scores.is_target, scores.is_nontarget
    hardness = [[order[side] for order in orders] or None for side in sides]
    named = subset if isinstance(subset, Mapping) else {"deployment": subset}
    configs, missing = trial_configs(scores, {n: s for n, s in named.items() if s is not None})
    number, remarks = auto_replicates(scores, replicates, most=AUTO_TRIALS)
    measured, (columns, rows) = as_metric(metric), check_grid(grid)
    listed = Listed.every(list(classes.values()), hardness, combine)
    sure: CpUncertainty | None = None
    if number:
        units, more = units_of(scores)
        remarks += more
        sure = cp_intervals(
            listed,
            units,
            compared=[(names.index(old), names.index(new)) for old, new in compared],
            configs=configs,
            grid=(min(columns, INTERVAL_GRID), min(rows, INTERVAL_GRID)),
            metric=measured,
            below=below,
            sampling=Sampling(number, level, seed),
        )
        if sure.undefined:
            sentence = (
                f"{sure.undefined} of {number} replicates left a class empty and do not count: "
                "too few speakers for a reliable interval"
            )
            remarks = [*remarks, Notice("empty-replicates", "", sentence)]
    by = f"{combine}({','.join(chosen)})" if len(chosen) > 1 else "".join(chosen) or "own"
    maps, positions = {}, {}
    for i, (name, pair) in enumerate(classes.items()):
        cp = map_of(listed[i], (columns, rows), measured, system=name, hardness=by)
        maps[name] = replace(cp, intervals=sure.maps[i] if sure else None)
        placed = [cp_position(cp, *pair, c.target, c.nontarget, name=c.name) for c in configs]
        positions[name] = tuple(
            replace(one, intervals=sure.positions[i][j] if sure else None)
            for j, one in enumerate(placed)
        )
    pairs = [
        replace(delta_cp_map(maps[old], maps[new]), intervals=sure.deltas[i] if sure else None)
        for i, (old, new) in enumerate(compared)
    ]
    made: list[CpMap | DeltaCpMap] = [*maps.values(), *pairs]
    notices = [notice for one in made for notice in one.notices] + missing
    notices += [
        notice if chosen else notice.about(name)
        for name, placed_on in positions.items()
        for position in placed_on
        for notice in position.notices
    ]
    if compared and not is_tree(compared, _among(names, compared)):
        sentence = "the comparisons do not form a tree from one system: no roadmap is drawn"
        notices.append(Notice("no-roadmap", "", sentence))
    notices += remarks
    defined = maps[names[0]].well_defined
    if not defined.all():
        sentence = (
            f"{int((~defined).sum())} of {defined.size} cells have fewer than 30 trials of a class:"
            f" not well-defined, left out of means and shares of {measured.name}"
        )
        notices.append(Notice("few-trials", "", sentence))
    return CpAssessment(
        maps=maps,
        deltas=tuple(pairs),
        positions=positions,
        bias={
            name: trial_bias({c.name: (t[c.target], n[c.nontarget]) for c in configs})
            for name, (t, n) in classes.items()
        },
        references=tuple(chosen),
        combine=combine,
        below=below,
        trials=scores.digest,
        sources=scores.sources,
        notices=tuple(dict.fromkeys(notices)),
        seed=seed,
    )


def _among(names: Sequence[str] | Mapping[str, Any], edges: Sequence[Edge]) -> list[str]:
    """The systems that are compared with any."""
    return [name for name in names if any(name in edge for edge in edges)]


def reference_scores(scores: Scores, name: str) -> FloatArray:
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


def trial_configs(
    scores: Scores, subsets: Mapping[str, TrialList]
) -> tuple[tuple[CpConfig, ...], list[Notice]]:
    """The trial configs that can be told from a table, all trials first, and the ``subsets``."""
    counted = np.asarray(scores.is_target | scores.is_nontarget)
    masks: dict[str, BoolArray] = {"all trials": counted}
    notices: list[Notice] = []
    if scores.enrol is not None and scores.test is not None:
        both = Ids.concatenate([scores.enrol, scores.test]).alphabetical()
        left, right = np.split(both.codes.astype(np.int64), 2)
        sides = left[counted], right[counted]
        if full_cross_pairing(*sides):
            masks = {"full cross-pairing": counted}
        if scores.enrol_speaker is not None:
            fixed = np.zeros(counted.size, bool)
            fixed[counted] = enrolment_fixed(*sides, scores.enrol_speaker.codes[counted])
            if _has_both(scores, fixed):
                masks["enrolment-fixed"] = fixed
            else:
                sentence = "enrolment-fixed cross-pairing leaves a class empty: not placed"
                notices.append(Notice("empty-class", "", sentence))
    for name, subset in subsets.items():
        rows = match(trial_codes(subset.ids, scores.ids), scores.codes)
        unknown = np.flatnonzero(rows < 0)
        if unknown.size:
            first = " ".join(ids.decode(int(unknown[0])) for ids in subset.ids[:2])
            raise InputError(
                f"{name}: {unknown.size} of its {len(subset)} trials have no score (first: {first})"
            )
        if subset.label is not None and scores.label is not None:
            conflict = int((subset.label != scores.label[rows]).sum())
            if conflict:
                problem = f"{conflict} trials are labelled otherwise than in the scores"
                raise InputError(f"{name}: {problem}")
        masks[name] = mask = np.zeros(len(scores), bool)
        mask[rows] = True
        if not _has_both(scores, mask):
            raise InputError(f"{name}: expected trials of both classes, found one only")
    configs = (
        CpConfig(name, mask[scores.is_target], mask[scores.is_nontarget])
        for name, mask in masks.items()
    )
    return tuple(configs), notices


def enrolment_fixed(
    enrol: npt.NDArray[np.integer], test: npt.NDArray[np.integer], speaker: npt.NDArray[np.integer]
) -> BoolArray:
    """The trials of enrolment-fixed cross-pairing among those of a list (Li 2022, section 2). One
    enrolment is fixed per ``speaker``, the one with most trials (the lowest code), and compared
    with all utterances that are not fixed; a pair that stands in the other order only counts too.
    """
    size = 1 + max(int(enrol.max(initial=0)), int(test.max(initial=0)))
    pairs, counts = np.unique(speaker.astype(np.int64) * size + enrol, return_counts=True)
    owner, model = np.divmod(pairs, size)
    best = np.lexsort([model, -counts, owner])
    first = np.r_[True, np.diff(owner[best]) != 0]
    is_fixed = np.zeros(size, bool)
    is_fixed[model[best][first]] = True
    enrolled, tested = is_fixed[enrol], is_fixed[test]
    reversed_only = ~enrolled & tested
    if reversed_only.any():
        there = enrol.astype(np.int64) * size + test
        back = test[reversed_only].astype(np.int64) * size + enrol[reversed_only]
        reversed_only[reversed_only] = ~np.isin(back, there)
    return np.asarray((enrolled & ~tested) | reversed_only)


def full_cross_pairing(enrol: IntArray, test: IntArray) -> bool:
    """Whether a list pairs every utterance with every other (in one order or in both)."""
    size = 1 + max(int(enrol.max(initial=0)), int(test.max(initial=0)))
    utterances = np.count_nonzero(np.bincount(np.concatenate([enrol, test])))
    whole = utterances * (utterances - 1) // 2
    if enrol.size < whole:
        return False
    pairs = np.unique(np.minimum(enrol, test) * size + np.maximum(enrol, test))
    return int((pairs // size != pairs % size).sum()) == whole


def _has_both(scores: Scores, mask: BoolArray) -> bool:
    return bool((mask & scores.is_target).any() and (mask & scores.is_nontarget).any())
