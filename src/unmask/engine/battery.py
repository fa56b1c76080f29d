"""The table of detection metrics: what is measured, in which unit, against which chance level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from unmask.base import HULL
from unmask.engine import information
from unmask.engine.operating import Cost
from unmask.engine.replicates import MetricRange, Replicates
from unmask.engine.roc import Roc
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval, Parameter

WITH_TRIALS = "follows the number of trials, which resampling makes fewer"
NOT_ASKED = "no replicates were asked for"
UNMOVED = "no resampling moves it"
_NO_EVIDENCE = 0.5
_SHARE = MetricRange(0.0, 1.0)
_LOSS = MetricRange(0.0, np.inf)
_RAW_EER = MetricRange(0.0, 1.0, longer="high")
_EER = MetricRange(0.0, 0.5, HULL, "high")
_CLLR = MetricRange(0.0, np.inf, longer="high")
_MIN_CLLR = MetricRange(0.0, 1.0, HULL, "high")
_D_ECE = MetricRange(0.0, information.MOST, HULL, "low")
_D_SYS = MetricRange(0.0, 1.0, HULL)


class Measured(NamedTuple):
    """A metric's name, unit, chance level, range, parameters, and whether less means fewer errors.

    ``no_interval`` says why a bootstrap gives no interval of it, where it gives none.
    """

    metric: str
    unit: str
    chance: float
    range: MetricRange
    params: dict[str, Parameter]
    lower_is_better: bool = True
    no_interval: str = ""


@dataclass(frozen=True)
class Battery:
    """Which numbers ``evaluate`` and ``compare`` take from a ROC statistic."""

    p_target: tuple[float, ...] = (0.01,)
    c_miss: float = 1.0
    c_fa: float = 1.0
    fpr: tuple[float, ...] = (1e-2, 1e-3)

    def __post_init__(self) -> None:
        for prior in self.p_target:
            Cost(prior, self.c_miss, self.c_fa).check()
        for rate in self.fpr:
            if not 0 < rate < 1:
                raise InputError(f"false-positive rate: expected between 0 and 1, found {rate}")

    @property
    def thresholds(self) -> list[float]:
        """Bayes thresholds, at which the statistic must count exactly."""
        return [Cost(prior, self.c_miss, self.c_fa).bayes_threshold for prior in self.p_target]

    def measured(self) -> dict[str, Measured]:
        """All metrics by key, in the order of the table."""
        table = {
            "eer": Measured("eer", "%", 0.5, _EER, {"est": "rocch"}),
            "eer_raw": Measured("eer_raw", "%", 0.5, _RAW_EER, {"est": "raw"}),
        }
        for prior in self.p_target:
            cost: dict[str, Parameter] = {"p_target": prior}
            if (self.c_miss, self.c_fa) != (1.0, 1.0):
                cost |= {"c_miss": self.c_miss, "c_fa": self.c_fa}
            table[f"min_dcf@{prior:g}"] = Measured("min_dcf", "", 1.0, _SHARE, cost)
            table[f"act_dcf@{prior:g}"] = Measured("act_dcf", "", 1.0, _LOSS, cost)
        table |= {
            "cllr": Measured("cllr", "bit", 1.0, _CLLR, {}),
            "min_cllr": Measured("min_cllr", "bit", 1.0, _MIN_CLLR, {}),
            "d_ece": Measured("d_ece", "bit", 0.0, _D_ECE, {}, False),
            "l_w": Measured("l_w", "", 0.0, _LOSS, {"laplace": True}, False, WITH_TRIALS),
            "d_sys": Measured("d_sys", "", 0.0, _D_SYS, {"est": "pav"}, False),
        }
        for rate in self.fpr:
            table[f"tpr@{rate:g}"] = Measured("tpr_at_fpr", "%", rate, _SHARE, {"fpr": rate}, False)
        return table

    @property
    def ranges(self) -> dict[str, MetricRange]:
        """The range of every metric, by key."""
        return {key: measured.range for key, measured in self.measured().items()}

    def values(self, roc: Roc) -> dict[str, float]:
        """Every metric of a statistic, by key."""
        return {key: value for key, (value, _) in self.points(roc).items()}

    def points(self, roc: Roc) -> dict[str, tuple[float, float | None]]:
        """Every metric with its threshold, where it is an operating point."""
        eer, raw = roc.eer_point(), roc.eer_point(estimator="raw")
        found: dict[str, tuple[float, float | None]] = {
            "eer": (eer.value, eer.threshold),
            "eer_raw": (raw.value, raw.threshold),
        }
        costs = {"c_miss": self.c_miss, "c_fa": self.c_fa}
        for prior in self.p_target:
            least = roc.min_dcf_point(p_target=prior, **costs)
            actual = roc.act_dcf_point(p_target=prior, **costs)
            found[f"min_dcf@{prior:g}"] = (least.value, least.threshold)
            found[f"act_dcf@{prior:g}"] = (actual.value, actual.threshold)
        found |= {
            "cllr": (roc.cllr(), None),
            "min_cllr": (roc.min_cllr(), None),
            "d_ece": (roc.d_ece(), None),
            "l_w": (roc.l_w(), None),
            "d_sys": (roc.d_sys(), None),
        }
        for rate in self.fpr:
            point = roc.tpr_point(rate)
            found[f"tpr@{rate:g}"] = (point.value, point.threshold)
        return found

    def intervals(
        self, replicates: Replicates, *, level: float, system: int = 0
    ) -> dict[str, Interval]:
        """The interval of each metric that has one.

        A hull moves off chance, where its numbers end, in any sample. The raw EER does not: where
        its interval holds 50 %, those of a hull reach chance.
        """
        found = {
            key: replicates.interval(key, level=level, system=system)
            for key, measured in self.measured().items()
            if not measured.no_interval
        }
        raw = found["eer_raw"]
        if raw.low <= _NO_EVIDENCE <= raw.high:
            for key, measured in self.measured().items():
                if measured.range.overfit == HULL:
                    low, high = found[key].low, found[key].high
                    ends = min(low, measured.chance), max(high, measured.chance)
                    found[key] = replace(found[key], low=ends[0], high=ends[1])
        return found

    def estimates(
        self,
        roc: Roc,
        intervals: Mapping[str, Interval],
        *,
        trials: str,
        speakers: int | None,
        no_interval: str = NOT_ASKED,
    ) -> tuple[Estimate, ...]:
        """Every metric as an estimate; the tag follows l_w.

        ``no_interval`` says why there are no intervals, where there are none.
        """
        n = {"target": round(roc.targets), "nontarget": round(roc.nontargets)}
        if speakers is not None:
            n["speakers"] = speakers
        points = self.points(roc)
        found: list[Estimate] = []
        for key, measured in self.measured().items():
            value, threshold = points[key]
            interval = intervals.get(key)
            reason = measured.no_interval or why_none(interval, no_interval)
            found.append(
                Estimate(
                    metric=measured.metric,
                    value=value,
                    unit=measured.unit,
                    interval=interval,
                    chance=measured.chance,
                    n=n,
                    params=measured.params,
                    trials=trials,
                    threshold=threshold,
                    no_interval=reason,
                )
            )
            if key == "l_w":
                tag = information.tag(value)
                found.append(Estimate("tag", tag, n=n, trials=trials, no_interval=reason))
        return tuple(found)


def why_none(interval: Interval | None, reason: str) -> str:
    """Why there is no interval: the reason given, or that all replicates agree; empty if it is."""
    if interval is None:
        return reason
    return (reason or UNMOVED) if np.isnan(interval.low) else ""
