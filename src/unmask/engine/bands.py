"""Bands of detection error trade-offs: the miss rate at given false-alarm rates, resampled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from unmask.base import FloatArray, MetricRange
from unmask.engine.bootstrap import Resampled, bootstrap, units_of
from unmask.engine.roc import Roc
from unmask.trials import Scores

RATES = tuple(float(rate) for rate in np.geomspace(5e-4, 0.6, 24))
_SHARE = MetricRange(0.0, 1.0)


@dataclass(frozen=True, eq=False)
class DetBand:
    """Intervals ``low`` … ``high`` of the miss rate at the false-alarm rates ``p_fa``."""

    p_fa: FloatArray
    low: FloatArray
    high: FloatArray


def det_bands(
    scores: Scores, *, replicates: int = 200, level: float = 0.95, seed: int = 0
) -> Mapping[str, DetBand]:
    """The band of every system of ``scores``: intervals of confidence ``level``, point by point, of
    the joint speaker bootstrap with so many ``replicates`` from ``seed``; none of one unit only.
    """
    units, _ = units_of(scores)
    if units.count < 2:
        return {}
    systems = [
        Resampled.of(scores.targets(name), scores.nontargets(name), units)
        for name in scores.systems
    ]
    keys = [f"{rate:g}" for rate in RATES]
    drawn = bootstrap(
        systems,
        units,
        partial(_misses),
        ranges=dict.fromkeys(keys, _SHARE),
        replicates=replicates,
        seed=seed,
    )
    found = {}
    for row, name in enumerate(scores.systems):
        ends = [drawn.interval(key, level=level, system=row) for key in keys]
        low, high = (np.array([getattr(end, side) for end in ends]) for side in ("low", "high"))
        found[name] = DetBand(np.array(RATES), low, high)
    return found


def _misses(roc: Roc) -> dict[str, float]:
    """Least miss rate at each false-alarm rate."""
    return {f"{rate:g}": 1.0 - roc.tpr_at_fpr(rate) for rate in RATES}
