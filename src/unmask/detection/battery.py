"""The table of detection metrics: what is measured, in which unit, against which chance level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from unmask.detection import information
from unmask.detection.operating import Cost
from unmask.detection.roc import Roc
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval, Parameter


class Measured(NamedTuple):
    """A metric's name, unit, chance level, parameters, and whether less means fewer errors."""

    metric: str
    unit: str
    chance: float
    params: dict[str, Parameter]
    lower_is_better: bool = True


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
            "eer": Measured("eer", "%", 0.5, {"est": "rocch"}),
            "eer_raw": Measured("eer_raw", "%", 0.5, {"est": "raw"}),
        }
        for prior in self.p_target:
            cost: dict[str, Parameter] = {"p_target": prior}
            if (self.c_miss, self.c_fa) != (1.0, 1.0):
                cost |= {"c_miss": self.c_miss, "c_fa": self.c_fa}
            table[f"min_dcf@{prior:g}"] = Measured("min_dcf", "", 1.0, cost)
            table[f"act_dcf@{prior:g}"] = Measured("act_dcf", "", 1.0, cost)
        table |= {
            "cllr": Measured("cllr", "bit", 1.0, {}),
            "min_cllr": Measured("min_cllr", "bit", 1.0, {}),
            "d_ece": Measured("d_ece", "bit", 0.0, {}, False),
            "l_w": Measured("l_w", "", 0.0, {"laplace": True}, False),
            "d_sys": Measured("d_sys", "", 0.0, {"est": "pav"}, False),
        }
        for rate in self.fpr:
            table[f"tpr@{rate:g}"] = Measured("tpr_at_fpr", "%", rate, {"fpr": rate}, False)
        return table

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

    def estimates(
        self, roc: Roc, intervals: Mapping[str, Interval], *, trials: str, speakers: int | None
    ) -> tuple[Estimate, ...]:
        """Every metric as an estimate; the tag follows l_w."""
        n = {"target": round(roc.targets), "nontarget": round(roc.nontargets)}
        if speakers is not None:
            n["speakers"] = speakers
        points = self.points(roc)
        found: list[Estimate] = []
        for key, measured in self.measured().items():
            value, threshold = points[key]
            found.append(
                Estimate(
                    metric=measured.metric,
                    value=value,
                    unit=measured.unit,
                    interval=intervals.get(key),
                    chance=measured.chance,
                    n=n,
                    params=measured.params,
                    trials=trials,
                    threshold=threshold,
                )
            )
            if key == "l_w":
                found.append(Estimate("tag", information.tag(value), n=n, trials=trials))
        return tuple(found)
