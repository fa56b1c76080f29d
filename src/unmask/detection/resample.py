"""Statistics of all systems on one list of trials, and their replicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from unmask.arrays import FloatArray
from unmask.detection.battery import Battery
from unmask.detection.binned import BinnedSystem, BinnedTrials, binned_bootstrap, edges_of
from unmask.detection.bootstrap import Progress, Resampled, Units, bootstrap
from unmask.detection.first_order import Batch, FirstOrder, count_speakers
from unmask.detection.replicates import Replicates
from unmask.detection.roc import Roc
from unmask.detection.units import AUTO_REPLICATES, AUTO_TRIALS, trial_count, units_of
from unmask.estimate import Interval
from unmask.scoring.job import HERE, Where
from unmask.scoring.plan import ranges_of
from unmask.trials import Scores

_BATCH = 1 << 20


@dataclass(frozen=True, eq=False)
class Measurement:
    """Statistics of all systems on the same trials, with replicates on shared draws."""

    rocs: tuple[Roc, ...]
    replicates: Replicates | None
    one_speaker: bool
    requested: int
    seed: int

    def intervals(self, battery: Battery, *, level: float, system: int) -> dict[str, Interval]:
        """Interval of each metric of one system; ``nan`` ends for a single speaker."""
        keys = battery.measured()
        if self.one_speaker:
            nan = float("nan")
            empty = Interval(nan, nan, level, "speaker", self.requested, self.seed)
            return dict.fromkeys(keys, empty)
        if self.replicates is None:
            return {}
        return {key: self.replicates.interval(key, level=level, system=system) for key in keys}


def resample(
    scores: Scores,
    *,
    battery: Battery,
    replicates: int | None,
    seed: int,
    paired: bool = False,
    where: Where = HERE,
    progress: Progress | None = None,
) -> tuple[Measurement, list[str]]:
    """Count every system's statistic and bootstrap all of them, ``paired`` on the same draws."""
    scores.check_classes()
    many = replicates is None and trial_count(scores) > AUTO_TRIALS
    wanted = AUTO_REPLICATES if replicates is None else replicates
    pairs = [(scores.targets(name), scores.nontargets(name)) for name in scores.systems]
    units, warnings = units_of(scores) if wanted else (None, [])
    if many and paired and units is not None and units.method == "trial":
        trials = trial_count(scores)
        warnings = [f"no intervals by default for {trials:,} trials without speakers: ask for them"]
        units, wanted = None, 0
    if units is None or many:
        rocs = tuple(
            Roc.from_scores(*pair, thresholds=battery.thresholds, cllr=True) for pair in pairs
        )
    if units is None:
        return Measurement(rocs, None, bool(wanted), wanted, seed), warnings
    options: dict[str, Any] = {"replicates": wanted, "seed": seed, "progress": progress}
    if many:
        systems = [
            binned_trials(*pair, units, roc, battery.thresholds)
            for pair, roc in zip(pairs, rocs, strict=True)
        ]
        drawn = binned_bootstrap(systems, rocs, battery.values, **options)
        return Measurement(rocs, drawn, False, wanted, seed), warnings
    prepared = [Resampled.of(*pair, units, thresholds=battery.thresholds) for pair in pairs]
    drawn = bootstrap(prepared, units, battery.values, where=where, **options)
    empty = drawn.undefined("eer")
    if empty:
        warnings.append(
            f"{empty} of {wanted} replicates left a class empty and do not count: "
            "too few speakers for a reliable interval"
        )
    rocs = tuple(system.roc for system in prepared)
    return Measurement(rocs, drawn, False, wanted, seed), warnings


def binned_trials(
    target: FloatArray,
    nontarget: FloatArray,
    units: Units,
    roc: Roc,
    thresholds: Sequence[float],
) -> BinnedSystem:
    """Trials in memory, put into bins by speaker, or by class where no speakers are known."""
    if units.nontarget_second is None:
        batches = [
            (target, np.ones(target.size, bool)),
            (nontarget, np.zeros(nontarget.size, bool)),
        ]
        return BinnedTrials.of(batches, edges_of(roc, thresholds))
    speakers = units.strata[0]
    own = Batch(target, np.ones(target.size, bool), units.target, units.target)
    first, second = units.nontarget_first, units.nontarget_second
    others = (
        Batch(nontarget[part], np.zeros(nontarget[part].size, bool), first[part], second[part])
        for part in (slice(*rows) for rows in ranges_of(nontarget.size, _BATCH))
    )
    edges = edges_of(roc, thresholds, rows=speakers)
    return FirstOrder(count_speakers(chain([own], others), edges, speakers))
