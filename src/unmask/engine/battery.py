"""Which numbers are taken from a ROC statistic, by what rules, and the intervals they have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from unmask.base import HULL, FloatArray, MetricRange, Replicates
from unmask.engine import information
from unmask.engine.operating import (
    EER_ESTIMATORS,
    MARKS,
    Cost,
    OperatingPoint,
    crossing_marks,
    far_marks,
)
from unmask.engine.roc import Roc
from unmask.errors import InputError
from unmask.estimate import Interval, Parameter

WITH_TRIALS = "depends on the number of trials"
IN_BINS = "bins bias it, by more in a resample; D_sys by pav has one"
_NO_EVIDENCE = 0.5
_SHARE = MetricRange(0.0, 1.0)
_LOSS = MetricRange(0.0, np.inf)
_RAW_EER = MetricRange(0.0, 1.0, longer="high", bounded=True)
_EER = MetricRange(0.0, 0.5, HULL, "high", bounded=True)
_CLLR = MetricRange(0.0, np.inf, longer="high")
_MIN_CLLR = MetricRange(0.0, 1.0, HULL, "high", bounded=True)
_D_ECE = MetricRange(0.0, information.LARGEST_D_ECE, HULL, "low", bounded=True)
_D_SYS = MetricRange(0.0, 1.0, HULL, "low", bounded=True)
_ERRORS = MetricRange(0.0, 1.0, longer="high")
CONVENTIONS: Mapping[str, Mapping[str, Any]] = {
    "voiceprivacy-2020": {"eer": "kaldi", "d_sys": "histogram", "p_target": (0.01, 0.001)},
    "voiceprivacy-2022": {"eer": "kaldi", "d_sys": "histogram", "p_target": (0.01, 0.001)},
    "voiceprivacy-2024": {"eer": "speechbrain", "d_sys": "histogram"},
    "voiceprivacy-2026": {"eer": "speechbrain", "d_sys": "histogram"},
    "kaldi": {"eer": "kaldi", "p_target": (0.01, 0.001)},
    "speechbrain": {"eer": "speechbrain"},
    "voxsrc": {"eer": "raw", "p_target": (0.05,)},
    "nist-sre08": {"eer": "raw", "c_miss": 10.0, "undivided": True},
    "nist-sre16": {"eer": "raw", "p_target": (0.01, 0.005), "c_primary": True},
    "asvspoof2019": {"eer": "asvspoof"},
    "asvspoof5": {"eer": "raw"},
}
"""What each convention sets; the rest is as it is usually. ``docs/conventions.md`` says which
published numbers each was checked against.
"""


SPOOF_EERS = ("sv_eer", "spf_eer", "sasv_eer")
SPOOF_METRICS = ("a_dcf", *SPOOF_EERS, "t_eer", "min_t_dcf", "cm_eer", "t_eer_nearest")
"""Numbers of lists with spoof trials (:mod:`.spoofing`)."""


class MetricSpec(NamedTuple):
    """A metric: its name, how it is read off the statistic, unit, chance level, range, parameters,
    and whether less means fewer errors.

    ``no_interval`` says why a bootstrap gives no interval of it, where it gives none.
    """

    metric: str
    read: Callable[[Roc], float | OperatingPoint]
    unit: str
    chance: float | None
    range: MetricRange
    params: Mapping[str, Parameter]
    lower_is_better: bool = True
    no_interval: str = ""


@dataclass(frozen=True)
class Battery:
    """Which numbers :func:`evaluate` and :func:`compare` take from a ROC statistic.

    All that needs no choice is taken as well.

    Parameters
    ----------
    p_target : tuple of float
        Priors of the detection costs.
    c_miss, c_fa : float
        Costs of a miss and of a false alarm.
    fpr : tuple of float
        False-positive rates at which the share of accepted targets is given.
    threshold : tuple of float
        Thresholds at which FAR, FRR and costs are given; a score equal to one is accepted.
    far : tuple of float
        Demanded false-alarm rates: the smallest threshold that keeps each, and a safe one.
    eer, d_sys : str
        Estimators of :func:`eer` and :func:`d_sys`.
    c_primary : bool
        Also the mean of the costs over all priors (NIST's C_primary).
    undivided : bool
        Also costs that are not divided by that of the better fixed decision (NIST's C_det).
    judged : tuple of str
        Names of thresholds that were set on other trials (``dev`` of :func:`evaluate`).
    convention : str
        Whose numbers these are; :meth:`named` sets all that belongs to it.

    Examples
    --------
    >>> import unmask as um
    >>> um.Battery.named("voxsrc").p_target
    (0.05,)
    >>> table = um.evaluate([1.0, 2.0, 3.0], [0.0, 1.5], battery=um.Battery(threshold=(1.5,)),
    ...                     replicates=0)
    >>> table["far"]
    far 50 %
    """

    p_target: tuple[float, ...] = (0.01,)
    c_miss: float = 1.0
    c_fa: float = 1.0
    fpr: tuple[float, ...] = (1e-2, 1e-3)
    threshold: tuple[float, ...] = ()
    far: tuple[float, ...] = ()
    eer: str = "rocch"
    d_sys: str = "pav"
    c_primary: bool = False
    undivided: bool = False
    judged: tuple[str, ...] = ()
    convention: str = ""

    def __post_init__(self) -> None:
        for prior in self.p_target:
            Cost(prior, self.c_miss, self.c_fa).check()
        for name, rates in (("false-positive rate", self.fpr), ("far", self.far)):
            for rate in rates:
                if not 0 < rate < 1:
                    raise InputError(name, "between 0 and 1", rate)
        if np.isnan(self.threshold).any():
            raise InputError("threshold", "a number", "nan")
        for name, found, known in (
            ("eer", self.eer, EER_ESTIMATORS),
            ("d_sys", self.d_sys, ("pav", "histogram")),
            ("convention", self.convention, ("", *CONVENTIONS)),
        ):
            if found not in known:
                raise InputError(name, ", ".join(filter(None, known)), found)
        if self.c_primary and len(self.p_target) < 2:
            raise InputError("c_primary", "two priors or more (p_target)", len(self.p_target))

    @classmethod
    def named(cls, convention: str, **more: Any) -> Battery:
        """The numbers of a ``convention``; ``more`` are fields that it leaves open."""
        if convention not in CONVENTIONS:
            raise InputError("convention", ", ".join(CONVENTIONS), convention)
        fixed = {"c_miss", "c_fa", "p_target", "eer", "d_sys", "c_primary", "undivided"} & set(more)
        if fixed:
            raise InputError("convention", f"no {min(fixed)} beside {convention}", "both")
        return cls(**CONVENTIONS[convention], **more, convention=convention)

    @property
    def thresholds(self) -> list[float]:
        """Bayes and given thresholds, at which the statistic must count exactly."""
        return [cost.bayes_threshold for cost in self._costs] + [*self.threshold]

    @property
    def _costs(self) -> list[Cost]:
        return [Cost(prior, self.c_miss, self.c_fa) for prior in self.p_target]

    def marks(self, target: FloatArray, nontarget: FloatArray) -> dict[str, FloatArray]:
        """Further thresholds that follow from the scores themselves."""
        made = {f"far@{far}": far_marks(nontarget, far) for far in self.far}
        if self.d_sys == "histogram":
            made["histogram"] = information.edges_of_scores(target, nontarget)
        if self.eer == "speechbrain":
            made["crossing"] = crossing_marks(target, nontarget)
        return made

    @property
    def of_scores(self) -> str:
        """Which field needs thresholds that follow from all scores; empty where none does."""
        needs = {"far": self.far, "d_sys": self.d_sys == "histogram"}
        needs["eer"] = self.eer == "speechbrain"
        return next((name for name, needed in needs.items() if needed), "")

    def measured(self) -> dict[str, MetricSpec]:
        """All metrics by key, in the order of the table."""
        table = {}
        for key, estimator in (("eer", self.eer), ("eer_rocch", "rocch"), ("eer_raw", "raw")):
            if key == "eer" or key == "eer_raw" or self.eer != "rocch":
                read = partial(Roc.eer_point, estimator=estimator)
                within = _EER if estimator == "rocch" else _RAW_EER
                table[key] = MetricSpec(key, read, "%", 0.5, within, {"est": estimator})
        for cost in self._costs:
            least, actual = (
                partial(point, **cost._asdict()) for point in (Roc.min_dcf_point, Roc.act_dcf_point)
            )
            at, shown = f"{cost.p_target:g}", self._shown(cost)
            table[f"min_dcf@{at}"] = MetricSpec("min_dcf", least, "", 1.0, _SHARE, shown)
            table[f"act_dcf@{at}"] = MetricSpec("act_dcf", actual, "", 1.0, _LOSS, shown)
            if self.undivided:
                for name, read in (("min_c_det", least), ("act_c_det", actual)):
                    whole = partial(_undivided, read, cost.default)
                    table[f"{name}@{at}"] = MetricSpec(name, whole, "", cost.default, _LOSS, shown)
        if self.c_primary:
            shown = {"p_target": "+".join(f"{prior:g}" for prior in self.p_target)}
            for name, within in (("min_c_primary", _SHARE), ("act_c_primary", _LOSS)):
                mean = partial(_mean_cost, self._costs, name == "min_c_primary")
                table[name] = MetricSpec(name, mean, "", 1.0, within, shown)
        d_sys, est = partial(Roc.d_sys, estimator=self.d_sys), {"est": self.d_sys}
        biased = "" if self.d_sys == "pav" else IN_BINS
        table |= {
            "cllr": MetricSpec("cllr", Roc.cllr, "bit", 1.0, _CLLR, {}),
            "min_cllr": MetricSpec("min_cllr", Roc.min_cllr, "bit", 1.0, _MIN_CLLR, {}),
            "d_ece": MetricSpec("d_ece", Roc.d_ece, "bit", 0.0, _D_ECE, {}, False),
            "l_w": MetricSpec(
                "l_w", Roc.l_w, "", 0.0, _LOSS, {"laplace": True}, False, WITH_TRIALS
            ),
            "d_sys": MetricSpec("d_sys", d_sys, "", 0.0, _D_SYS, est, False, biased),
        }
        for rate in self.fpr:
            read = partial(Roc.tpr_point, fpr=rate)
            key, fpr = f"tpr@{rate:g}", {"fpr": rate}
            table[key] = MetricSpec("tpr_at_fpr", read, "%", rate, _SHARE, fpr, False)
        for threshold in self.threshold:
            table |= self._judged(threshold, {"threshold": threshold})
        for far in self.far:
            told = {"far": far}
            read = partial(_threshold_for, far)
            table[f"threshold@far={far}"] = MetricSpec(
                "threshold", read, "", None, MetricRange(), told
            )
            misses = partial(Roc.far_point, far=far)
            table[f"frr@far={far}"] = MetricSpec("frr", misses, "%", 1 - far, _ERRORS, told)
        for name in self.judged:
            table |= self._judged(name, {"set_by": name})
        return table

    def _shown(self, cost: Cost) -> dict[str, Parameter]:
        """Parameters of a cost; costs of 1 go without saying."""
        known = cost._asdict()
        return known if cost[1:] != (1.0, 1.0) else {"p_target": cost.p_target}

    def _judged(self, threshold: float | str, about: dict[str, Parameter]) -> dict[str, MetricSpec]:
        """FAR, FRR and costs at a threshold, or at a mark."""
        at = threshold if isinstance(threshold, str) else f"{threshold}"
        read = partial(Roc.judged, threshold=threshold)
        far, frr = partial(read, number="p_fa"), partial(read, number="p_miss")
        made = {
            f"far@{at}": MetricSpec("far", far, "%", None, _ERRORS, about),
            f"frr@{at}": MetricSpec("frr", frr, "%", None, _ERRORS, about),
        }
        for cost in self._costs:
            of, shown = partial(read, number=cost), self._shown(cost) | about
            made[f"cost@{cost.p_target:g}@{at}"] = MetricSpec("cost", of, "", 1.0, _LOSS, shown)
        return made

    @property
    def ranges(self) -> dict[str, MetricRange]:
        """The range of every metric, by key; of false-alarm rates at marks as well."""
        made = {key: measured.range for key, measured in self.measured().items()}
        marks = (f"far@{far}#{i}" for far in self.far for i in range(MARKS))
        return made | dict.fromkeys(marks, _ERRORS)

    def values(self, roc: Roc) -> dict[str, float]:
        """Every metric of the statistic ``roc``, by key."""
        return {key: value for key, (value, _) in self.points(roc).items()}

    def drawn(self, roc: Roc) -> dict[str, float]:
        """What a bootstrap needs of a replicate: all metrics but thresholds, whose intervals follow
        from false-alarm rates at marks.
        """
        made = {key: value for key, value in self.values(roc).items() if "threshold" not in key}
        for mark in (f"far@{far}" for far in self.far):
            made |= {f"{mark}#{i}": rate for i, rate in enumerate(roc.false_alarms(mark))}
        return made

    def false_alarms(self, roc: Roc) -> dict[str, float]:
        """Which numbers of a bootstrap are false-alarm rates, and their thresholds in ``roc``."""
        made = {f"far@{one}": one for one in self.threshold}
        made |= {f"far@{name}": float(roc.marks[name][0]) for name in self.judged}
        for mark in (f"far@{far}" for far in self.far):
            made |= {f"{mark}#{i}": float(at) for i, at in enumerate(roc.marks[mark])}
        return {key: at for key, at in made.items() if np.isfinite(at)}

    def points(self, roc: Roc) -> dict[str, tuple[float, float | None]]:
        """Every metric of ``roc`` with its threshold, where it is an operating point."""
        read = {key: measured.read(roc) for key, measured in self.measured().items()}
        return {
            key: value[:2] if isinstance(value, OperatingPoint) else (value, None)
            for key, value in read.items()
        }

    def intervals(
        self, replicates: Replicates, *, level: float, system: int = 0, roc: Roc | None = None
    ) -> dict[str, Interval]:
        """The interval of confidence ``level`` of each metric of a ``system`` that has one, from
        the ``replicates`` of a bootstrap; ``roc`` is its statistic, where thresholds are wanted.

        A hull moves off chance, where its numbers end, in any sample. The raw EER does not: where
        its interval holds 50 %, those of a hull reach chance.
        """
        intervals = {
            key: replicates.interval(key, level=level, system=system)
            for key, measured in self.measured().items()
            if not measured.no_interval and measured.metric != "threshold"
        }
        # An EER above one half means that scores are inverted, which a sample below it is not.
        for key, interval in intervals.items():
            value = float(replicates.sample[key][system])
            if self.measured()[key].range is _RAW_EER and value <= _NO_EVIDENCE < interval.high:
                intervals[key] = replace(interval, high=_NO_EVIDENCE)
        for key, measured in self.measured().items():
            raw, made = intervals.get(f"raw {key}") or intervals["eer_raw"], intervals.get(key)
            even = raw.low <= _NO_EVIDENCE <= raw.high and measured.range.overfit == HULL
            if even and made is not None and (chance := measured.chance) is not None:
                ends = min(made.low, chance), max(made.high, chance)
                intervals[key] = replace(made, low=ends[0], high=ends[1])
        marks = roc.marks if roc is not None else {}
        for far in self.far:
            made = _inverted(replicates, far, marks[f"far@{far}"], level, system)
            intervals[f"threshold@far={far}"] = made
        return intervals


def _mean_cost(costs: Sequence[Cost], least: bool, roc: Roc) -> float:
    """C_primary: the mean of normalised costs, each at its Bayes threshold or its own minimum."""
    read = Roc.min_dcf if least else Roc.act_dcf
    return float(np.mean([read(roc, **cost._asdict()) for cost in costs]))


def _undivided(read: Callable[[Roc], OperatingPoint], cost: float, roc: Roc) -> OperatingPoint:
    point = read(roc)
    return point._replace(value=point.value * cost)


def _threshold_for(far: float, roc: Roc) -> OperatingPoint:
    point = roc.far_point(far)
    return point._replace(value=point.threshold)


def _inverted(
    replicates: Replicates, far: float, at: FloatArray, level: float, system: int
) -> Interval:
    """All thresholds ``at`` which the interval of the false-alarm rate holds ``far``.

    So it changes with the scores as thresholds do, and its upper end is safe: there the upper end
    of the interval of FAR keeps the demand. An end that no threshold reaches is infinite.
    """
    made = [
        replicates.interval(f"far@{far}#{i}", level=level, system=system) for i in range(at.size)
    ]
    low, high = (np.array([getattr(interval, end) for interval in made]) for end in ("low", "high"))
    if np.isnan(low).all():
        return made[0]
    above, kept = np.flatnonzero(low >= far), np.flatnonzero(high <= far)
    ends = at[above[-1]] if above.size else -np.inf, at[kept[0]] if kept.size else np.inf
    return replace(made[0], low=float(ends[0]), high=float(ends[1]))
