"""Statistics of all systems on one list of trials, and their replicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from unmask.base import FloatArray
from unmask.engine.battery import NOT_ASKED, Battery
from unmask.engine.binned import BinnedSystem, BinnedTrials, binned_bootstrap, edges_of
from unmask.engine.bootstrap import Progress, Resampled, Units, bootstrap
from unmask.engine.first_order import Batch, FirstOrder, count_speakers
from unmask.engine.replicates import Replicates, no_replicates
from unmask.engine.roc import Roc
from unmask.engine.units import (
    AUTO_REPLICATES,
    AUTO_TRIALS,
    reason_none,
    speaker_count,
    trial_count,
    units_of,
)
from unmask.estimate import Estimate
from unmask.run import HERE, Where, ranges_of
from unmask.trials import Scores

_BATCH = 1 << 20


@dataclass(frozen=True, eq=False)
class Measurement:
    """Statistics of all systems on the same trials, with replicates on shared draws.

    ``no_interval`` says why there are no intervals, where there are none.
    """

    rocs: tuple[Roc, ...]
    replicates: Replicates | None
    no_interval: str = ""

    def estimates(
        self, battery: Battery, *, level: float, system: int, scores: Scores
    ) -> tuple[Estimate, ...]:
        """Every metric of one system with its interval, or why it has none."""
        drawn = self.replicates
        return battery.estimates(
            self.rocs[system],
            {} if drawn is None else battery.intervals(drawn, level=level, system=system),
            trials=scores.digest,
            speakers=speaker_count(scores),
            no_interval=self.no_interval,
        )


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
    options: dict[str, Any] = {
        "ranges": battery.ranges,
        "replicates": wanted,
        "seed": seed,
        "progress": progress,
    }
    if not wanted:
        return Measurement(_counted(pairs, battery), None, NOT_ASKED), []
    units, warnings = units_of(scores)
    if many and paired and units.method == "trial":
        trials = trial_count(scores)
        reason = f"none by default for {trials:,} trials without speakers: ask for them"
        return Measurement(_counted(pairs, battery), None, reason), [f"intervals: {reason}"]
    if units.count < 2:
        rocs = _counted(pairs, battery)
        none = no_replicates(rocs, battery.values, units.method, wanted, seed)
        return Measurement(rocs, none, reason_none(speaker_count(scores))), warnings
    if many:
        rocs = _counted(pairs, battery)
        systems = [
            binned_trials(*pair, units, roc, battery.thresholds)
            for pair, roc in zip(pairs, rocs, strict=True)
        ]
        drawn = binned_bootstrap(systems, rocs, battery.values, **options)
        return Measurement(rocs, drawn), warnings
    prepared = [Resampled.of(*pair, units, thresholds=battery.thresholds) for pair in pairs]
    drawn = bootstrap(prepared, units, battery.values, where=where, **options)
    empty = drawn.undefined("eer")
    if empty:
        warnings.append(
            f"{empty} of {wanted} replicates left a class empty and do not count: "
            "too few speakers for a reliable interval"
        )
    return Measurement(tuple(system.roc for system in prepared), drawn), warnings


def _counted(pairs: Sequence[tuple[FloatArray, FloatArray]], battery: Battery) -> tuple[Roc, ...]:
    """The statistic of every system."""
    return tuple(Roc.from_scores(*pair, thresholds=battery.thresholds, cllr=True) for pair in pairs)


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
