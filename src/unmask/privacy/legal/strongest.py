"""The strongest of several attackers, without the luck of having been chosen.

Whoever tries many attacks on the same speakers and reports the best reports luck as well. So the
attacker is chosen on one half of the speakers and judged by the other, over many splits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from unmask.base import FloatArray, score_interval
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval
from unmask.privacy.legal.curve import Curve, RiskCurve

SPLITS = 200
_LEAST_SPEAKERS = 4


@dataclass(frozen=True)
class Strongest:
    """The attacker chosen most often, ``chosen_share`` of the times, among ``of`` attackers.

    ``estimate`` is the risk under the attacker chosen on other speakers where ``corrected``, else
    the largest value, which luck makes too large.
    """

    attacker: str
    estimate: Estimate
    chosen_share: float
    of: int
    corrected: bool

    @property
    def note(self) -> str:
        """Which correction was made for the choice."""
        if self.of == 1:
            return "one attack tried: nothing to choose"
        if self.corrected:
            return (
                f"best of {self.of} attacks, each chosen on half of the speakers and judged by the"
                f" other half; chosen in {100 * self.chosen_share:.0f} % of the splits"
            )
        return f"largest of {self.of} attacks, not corrected for the choice: errs towards more risk"


@dataclass(frozen=True)
class Worst:
    """The point of a panel with the largest risk: ``length`` utterances, ``count`` speakers."""

    length: int
    count: int
    strongest: Strongest


def strongest_of(
    curves: Mapping[str, Curve], count: int, *, seed: int = 0, splits: int = SPLITS
) -> Strongest:
    """The strongest attacker at one number of speakers, and its risk.

    With c_i the mean over splits of the outcome of speaker i under the attacker that succeeds most
    on the half without i, the value is the mean of c_i and the interval its score interval with the
    variance of that mean or that of the attacker chosen most often, whichever is larger. Curves
    without outcomes of speakers (1 − EER) give the largest value.
    """
    at = {name: i for name, curve in curves.items() if (i := curve.place(count)) is not None}
    if not at:
        raise InputError(f"strongest attacker: no value for {count} speakers")
    largest = max(at, key=lambda name: float(curves[name].value[at[name]]))
    risks = {name: curve for name in at if isinstance(curve := curves[name], RiskCurve)}
    alone = Strongest(largest, curves[largest].estimate(at[largest]), 1.0, len(at), False)
    if len(risks) < len(at) or len(at) == 1:
        return alone
    outcomes = _aligned(risks, at)
    if outcomes.shape[1] < _LEAST_SPEAKERS:
        return alone
    cross, chosen = _cross_fitted(outcomes, splits, seed)
    which = int(np.argmax(chosen))
    name = list(risks)[which]
    estimate = _estimate(risks[name], at[name], cross)
    return Strongest(name, estimate, float(chosen[which]), len(at), True)


def _aligned(risks: Mapping[str, RiskCurve], at: Mapping[str, int]) -> FloatArray:
    """Outcomes of the speakers that all attackers attack: attackers × speakers."""
    tables = [
        pl.DataFrame({"speaker": curve.speakers, str(n): curve.per_speaker[:, at[name]]})
        for n, (name, curve) in enumerate(risks.items())
    ]
    joined = tables[0]
    for table in tables[1:]:
        joined = joined.join(table, on="speaker", how="inner", maintain_order="left")
    return joined.drop("speaker").to_numpy().T


def _cross_fitted(outcomes: FloatArray, splits: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Mean outcome of each speaker under attackers chosen without it, and the share of choices."""
    attackers, speakers = outcomes.shape
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    rank = rng.random((splits, speakers)).argsort(axis=1).argsort(axis=1)
    half = rank < speakers // 2
    sums = half @ outcomes.T
    rest = outcomes.sum(axis=1) - sums
    by_half = (sums / (speakers // 2)).argmax(axis=1)
    by_rest = (rest / (speakers - speakers // 2)).argmax(axis=1)
    chosen = np.where(half, by_rest[:, None], by_half[:, None])
    cross = outcomes[chosen, np.arange(speakers)].mean(axis=0)
    share = np.bincount(np.concatenate([by_half, by_rest]), minlength=attackers) / (2 * splits)
    return cross, share


def _estimate(curve: RiskCurve, i: int, cross: FloatArray) -> Estimate:
    """The estimate of a curve with the cross-fitted value and interval."""
    found = curve.estimate(i)
    value, speakers = float(cross.mean()), len(cross)
    interval = found.interval
    if interval is not None:
        variance = max(float(cross.var(ddof=1)) / speakers, float(curve.variance[i]))
        low, high = score_interval(
            np.array([value]), np.array([variance]), speakers, level=interval.level
        )
        method = f"{interval.method},cross-fitted"
        interval = Interval(float(low[0]), float(high[0]), interval.level, method, 0, interval.seed)
    return replace(found, value=value, interval=interval)
