"""Thresholds at which a worst case is told, and what they cost in misses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.engine import Roc

COSTS = ((10.0, 1.0), (1.0, 1.0), (1.0, 10.0))
"""(C_miss, C_fa) of τ_1, τ_2, τ_3 at a prior of one half: misses weigh more, alike, less."""


@dataclass(frozen=True)
class Operating:
    """A threshold, what it is called, and the misses and ordinary false alarms it costs."""

    name: str
    threshold: float
    p_miss: float
    p_fa: float


def operating_thresholds(
    target: npt.ArrayLike,
    nontarget: npt.ArrayLike,
    *,
    thresholds: Sequence[float] = (),
    p_target: Sequence[float] = (),
) -> tuple[Operating, ...]:
    """Named thresholds: those given, those of minimum detection cost, or τ_1, τ_2, τ_3.

    A score is accepted strictly above its threshold.
    """
    roc = Roc.from_scores(target, nontarget, thresholds=counted_at(thresholds))
    return thresholds_of_roc(roc, thresholds=thresholds, p_target=p_target)


def thresholds_of_roc(
    roc: Roc, *, thresholds: Sequence[float] = (), p_target: Sequence[float] = ()
) -> tuple[Operating, ...]:
    """The same from a detection statistic, such as that of :func:`unmask.cross_pairing`.

    The statistic must have been counted at :func:`counted_at` of ``thresholds``.
    """
    found = []
    for value, next_above in zip(thresholds, counted_at(thresholds), strict=True):
        point = roc.at_threshold(next_above)
        found.append(Operating(f"{value:g}", float(value), point.p_miss, point.p_fa))
    costs = [(f"minDCF({p:g})", p, 1.0, 1.0) for p in p_target]
    if not found and not costs:
        costs = [(f"τ{'₁₂₃'[k]}", 0.5, miss, fa) for k, (miss, fa) in enumerate(COSTS)]
    for name, prior, miss, fa in costs:
        point = roc.min_dcf_point(p_target=prior, c_miss=miss, c_fa=fa)
        below = float(np.nextafter(point.threshold, -np.inf))
        found.append(Operating(name, below, point.p_miss, point.p_fa))
    return tuple(found)


def counted_at(thresholds: Sequence[float]) -> list[float]:
    """Where a statistic must count scores, to tell those strictly above the thresholds.

    It accepts scores of at least a threshold: the next number accepts those above it.
    """
    return [float(np.nextafter(value, np.inf)) for value in thresholds]


def misses(roc: Roc, threshold: float) -> float:
    """Share of the targets that a threshold does not accept."""
    return float(roc.target[roc.scores <= threshold].sum() / roc.targets)
