"""Spoofing-aware verification: targets, nontargets and spoofs, and countermeasures (CM).

Two ROC statistics over the same targets, against nontargets (SV) and against spoofs (SPF), hold all
that a verification system has of three classes; their sum is SASV. A CM has one statistic, of bona
fide trials against spoofs. All are drawn together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from functools import partial
from itertools import starmap
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.optimize import brentq

from unmask.base import (
    HULL,
    MOST_REPLICATES,
    BoolArray,
    FloatArray,
    IntArray,
    MetricRange,
    in_order,
    lazy,
)
from unmask.engine.battery import SPOOF_EERS, SPOOF_METRICS, Battery, MetricSpec
from unmask.engine.binned_bootstrap import BinnedTrials, edges_of
from unmask.engine.bootstrap import (
    AUTO_TRIALS,
    SortedTrials,
    System,
    Units,
    binned_trials,
    counted,
    refuse_two_speakers,
    speaker_count,
)
from unmask.engine.evaluation import (
    Analysis,
    Evaluation,
    Measurement,
    SystemResult,
    evaluate_groups,
    group_masks,
    nearest_of,
)
from unmask.engine.operating import OperatingPoint, Polygon, SpoofCost, equal_error
from unmask.engine.roc import Roc
from unmask.errors import InputError
from unmask.estimate import Estimate, Notice
from unmask.run import Xp
from unmask.trials import NONTARGET, OTHER, TARGET, Scores

_A_DCF = SpoofCost()
_T_DCF = SpoofCost(0.95 * 0.99, 0.95 * 0.01, 0.05, 1.0, 10.0, 10.0)
_ASV_EER = "asv at its EER"
_NEAREST = "the nearest point has none: see the interval of the t-EER"
_ESTIMATORS = ("rocch", "raw", "asvspoof")
_EER = MetricRange(0.0, 1.0, longer="high", bounded=True)
_HULL_EER = MetricRange(0.0, 0.5, HULL, "high", bounded=True)
_COST = MetricRange(0.0, 1.0, longer="high")
# ASVspoof 5 names the claimed speaker of every trial: without others, those are drawn.
_CLAIMED = "speakers are those claimed: who speaks in a nontarget trial is not known"


class TandemForm(Enum):
    """A form of the t-DCF: with C0 or without it, and where the error rates of the ASV come from.

    The values are parameters of the estimate, as signatures have them.
    """

    USUAL = MappingProxyType({"form": "2020"})
    """With C0, the ASV at its EER on the hull (Kinnunen et al. 2020)."""
    ASVSPOOF_5 = MappingProxyType({"form": "2020", "asv": "organisers"})
    """With C0, at the fixed rates of the organisers' ASV."""
    ASVSPOOF_2019 = MappingProxyType({"form": "2019", "asv": "asvspoof"})
    """Without C0, the ASV at its EER by the organisers' rule."""


ORGANISERS_RATES = (0.018801, 0.018810, 0.460708)
"""Rates of the ASV of ASVspoof 5: misses, accepted nontargets, accepted spoofs."""


@dataclass(frozen=True)
class SpoofRules:
    """What a convention sets for lists with spoof trials.

    Attributes
    ----------
    a_dcf, t_dcf
        Priors and costs; None where they are free.
    tandem
        The form of the t-DCF.
    has_nearest_t_eer
        Whether the t-EER is also printed as the nearest point, without interpolation.
    countermeasure
        Fields of the battery for countermeasures alone.
    """

    a_dcf: SpoofCost | None = None
    t_dcf: SpoofCost | None = None
    tandem: TandemForm = TandemForm.USUAL
    has_nearest_t_eer: bool = False
    countermeasure: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, convention: str) -> SpoofRules:
        """Those of a convention, or of none."""
        return _RULES.get(convention, cls())

    def costs(self, analysis: Analysis) -> tuple[SpoofCost, SpoofCost]:
        """Priors and costs of a-DCF and t-DCF: those asked for, where the convention sets none."""
        costs = []
        for name, usual, fixed, given in (
            ("a_dcf", _A_DCF, self.a_dcf, analysis.a_dcf),
            ("t_dcf", _T_DCF, self.t_dcf, analysis.t_dcf),
        ):
            if fixed is not None and given is not None:
                raise InputError(
                    "convention", f"no {name} beside {analysis.battery.convention}", "both"
                )
            costs.append(fixed or usual.changed(name, given))
        return costs[0], costs[1]


_RULES = {
    "asvspoof2019": SpoofRules(t_dcf=_T_DCF, tandem=TandemForm.ASVSPOOF_2019),
    "asvspoof5": SpoofRules(
        a_dcf=_T_DCF,
        t_dcf=_T_DCF,
        tandem=TandemForm.ASVSPOOF_5,
        has_nearest_t_eer=True,
        countermeasure={"eer": "asvspoof", "p_target": (0.95,), "c_fa": 10.0},
    ),
}


def nearest_threshold(target: FloatArray, nontarget: FloatArray) -> float:
    """The EER threshold of the ASVspoof tools: accept scores of at least the one returned.

    Trials are rejected one by one from below, targets first where scores are equal; it is the last
    rejected one where |FRR − FAR| is first least, though at that threshold it is accepted.
    """
    scores = np.concatenate([target, nontarget])
    is_target = np.arange(scores.size) < target.size
    order = np.argsort(scores, kind="stable")
    misses = np.append(0, np.cumsum(is_target[order]))
    passed = np.append(0, np.cumsum(~is_target[order]))
    # |FRR − FAR| times both sizes, in whole numbers: equal ones are equal.
    gap = np.abs(misses * nontarget.size + passed * target.size - target.size * nontarget.size)
    last = int(gap.argmin())
    if last == 0:
        return float(np.nextafter(scores[order[0]], -np.inf))
    return float(scores[order[last - 1]])


def nearest_t_eer(asv: Sequence[FloatArray], bona_fide: FloatArray, spoof: FloatArray) -> float:
    """The t-EER of the ASVspoof 5 tools: a point of trials, without interpolation.

    For each ASV threshold the CM threshold is the one at which misses and false alarms of the
    tandem are nearest with as many spoofs as nontargets. Of these pairs it is the one at which
    P_fa,non/P_fa,spf of the ASV is nearest to P_fa/(1 − P_miss) of the CM. ``asv`` are its targets,
    nontargets and spoofs.
    """
    x, a, b = _step_rates(*asv)
    p, q = _step_rates(bona_fide, spoof)

    def excess(cm: IntArray) -> FloatArray:
        """Misses less false alarms of the tandem, of each ASV threshold at a point of the CM."""
        alarms = ((1 - p[cm]) * a + q[cm] * b) / 2
        return np.asarray(p[cm] + (1 - p[cm]) * x - alarms)

    # Misses rise and false alarms fall along the CM: a search by halves, for all ASV thresholds.
    low, high = np.zeros(x.size, np.int64), np.full(x.size, p.size - 1)
    while (low < high).any():
        middle = (low + high) // 2
        is_above = excess(middle) >= 0
        high = np.where(is_above, middle, high)
        low = np.where(is_above, low, middle + 1)
    before = np.maximum(low - 1, 0)
    nearest = np.where(np.abs(excess(before)) <= np.abs(excess(low)), before, low)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = np.abs(a / b - q[nearest] / (1 - p[nearest]))
    apart = np.where((x < (a + b) / 2) & ~np.isnan(apart), apart, np.inf)
    best = int(apart.argmin())
    if not np.isfinite(apart[best]):
        return float("nan")
    return float(b[best] * q[nearest[best]])


def _step_rates(accepted: FloatArray, *others: FloatArray) -> list[FloatArray]:
    """Misses of the first class and false alarms of the others, after 0, 1, … rejected trials."""
    classes = (accepted, *others)
    kind = np.repeat(np.arange(len(classes)), [scores.size for scores in classes])
    kind = kind[np.argsort(np.concatenate(classes), kind="stable")]
    rejected = [np.append(0, np.cumsum(kind == i)) / classes[i].size for i in range(len(classes))]
    return [rejected[0], *(1 - share for share in rejected[1:])]


@dataclass(frozen=True, eq=False)
class SpoofRoc(Roc):
    """The statistic of targets against nontargets, with that against spoofs over the same scores
    (``spf``) and those of countermeasures by name (``cm``). ``rows`` are those of target scores,
    where there are further thresholds.
    """

    spf: Roc = field(kw_only=True)
    cm: Mapping[str, Roc] = field(default_factory=dict, kw_only=True)
    rows: IntArray | None = field(default=None, kw_only=True)

    @classmethod
    def of(
        cls, sv: Roc, spf: Roc, cm: Mapping[str, Roc] | None = None, rows: IntArray | None = None
    ) -> SpoofRoc:
        """From the statistics of two classes each."""
        own = {field.name: getattr(sv, field.name) for field in fields(Roc)}
        return cls(**own, spf=spf, cm=cm or {}, rows=rows)

    @lazy
    def rates(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """P_miss, P_fa of nontargets and P_fa of spoofs, from "accept all" to "reject all", below
        and at each target score.
        """
        nontarget, spoof = (Polygon.of(*roc.bins) for roc in (self, self.spf))
        every = nontarget.p_miss, nontarget.p_fa, spoof.p_fa
        if self.rows is None:
            return every
        points = np.concatenate([[0], (2 * self.rows[:, None] + [1, 2]).ravel(), [-1]])
        miss, non, spf = (one[points] for one in every)
        return miss, non, spf

    @property
    def thresholds(self) -> FloatArray:
        """Target scores: the odd ones of :attr:`rates` reject what is below them."""
        return self.scores if self.rows is None else self.scores[self.rows]

    @lazy
    def sasv(self) -> Roc:
        """Targets against nontargets and spoofs, pooled by count."""
        return self + self.spf

    def spoof_eer_point(self, metric: str, estimator: str) -> OperatingPoint:
        """SV-, SPF- or SASV-EER."""
        roc = {"sv_eer": self, "spf_eer": self.spf}.get(metric) or self.sasv
        return roc.eer_point(estimator=estimator)

    def a_dcf_point(self, cost: SpoofCost) -> OperatingPoint:
        """Least a-DCF over all thresholds (Shim et al. 2024) and where it is.

        C_miss·π_tar·P_miss + C_non·π_non·P_non + C_spf·π_spf·P_spf is the cost of a mixture of both
        false-alarm rates; it is divided by that of the better of "accept all" and "reject all".
        """
        spf, (miss, *shares) = self.spf, cost.weights
        one, other = shares[0] / self.nontargets, shares[1] / spf.nontargets
        equal = one * self.equal + other * spf.equal
        mixture = Roc(self.scores, self.target, equal, one * self.between + other * spf.between)
        return mixture.min_dcf_point(p_target=miss / (miss + sum(shares)))

    def t_eer(self, cm: str) -> float:
        """Concurrent t-EER (Kinnunen et al. 2023): the error of the pair of thresholds at which
        misses of the tandem equal its false alarms whatever the share of spoofs.

        With p and q the miss and false-alarm rates of the CM and x, a, b those of the ASV system
        (miss, nontarget, spoof): p + (1 − p)·x = (1 − p)·a = q·b. For each p below ½ the ASV system
        has one point with a − x = p/(1 − p); the first CM threshold at which q·b falls to
        (1 − p)·a is the concurrent one. NaN where none is: spoofs fool less than nontargets.
        """
        along = self.cm[cm].polygon
        last = int(np.searchsorted(along.p_miss, 0.5))
        p, q = along.p_miss[:last], along.p_fa[:last]
        below = np.flatnonzero(self._tandem(p, q)[1] < 0)
        if not below.size or below[0] == 0:
            return float("nan")
        after = int(below[0])
        edge = [(one[after - 1], one[after] - one[after - 1]) for one in (p, q)]

        def at(share: float) -> list[float]:
            return [float(one[0]) for one in self._tandem(*(s + share * d[None] for s, d in edge))]

        return at(brentq(lambda share: at(share)[1], 0.0, 1.0))[0]

    def _tandem(self, p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(1 − p)·a and q·b − (1 − p)·a where a − x = p/(1 − p), on the polygon of ASV errors."""
        x, *false_alarms = self.rates
        gap, odds = false_alarms[0] - x, p / (1 - p)
        after = np.searchsorted(-gap, -odds)
        share = (gap[after - 1] - odds) / (gap[after - 1] - gap[after])
        a, b = (one[after - 1] + share * (one[after] - one[after - 1]) for one in false_alarms)
        return (1 - p) * a, q * b - (1 - p) * a

    def min_t_dcf(self, cm: str, cost: SpoofCost, form: TandemForm = TandemForm.USUAL) -> float:
        """Least tandem cost over the thresholds of the CM (Kinnunen et al. 2020).

        [C0 + C1·P_miss + C2·P_fa]/[C0 + min(C1, C2)], C0 = π_tar·C_miss·x + π_non·C_non·a, C1 =
        π_tar·C_miss − C0, C2 = π_spf·C_spf·b, with the ASV rates x, a, b of the ``form``; in that
        of 2019 C0 is left out of the sum and of the divisor.
        """
        x, a, b = self.asv_rates(form)
        miss, nontarget, spoof = cost.weights
        c0 = miss * x + nontarget * a
        c1 = miss - c0
        c2 = spoof * b
        if form is TandemForm.ASVSPOOF_2019:
            c0 = 0.0
        errors, default = self.cm[cm].polygon, c0 + min(c1, c2)
        least = float((c0 + c1 * errors.p_miss + c2 * errors.p_fa).min())
        return least / default if default > 0 else float("nan")

    def asv_rates(self, form: TandemForm) -> tuple[float, float, float]:
        """Misses, accepted nontargets and accepted spoofs of the ASV in a form of the t-DCF."""
        if form is TandemForm.ASVSPOOF_5:
            return ORGANISERS_RATES
        if form is TandemForm.ASVSPOOF_2019:
            threshold = float(self.marks[_ASV_EER][0])
            point, spoofed = self.at_threshold(threshold), self.spf.at_threshold(threshold)
            return point.p_miss, point.p_fa, spoofed.p_fa
        gap = self.rates[0] - self.rates[1]
        vertex = equal_error(Polygon(self.rates[1], self.rates[0]))[1]
        vertex = int(np.searchsorted(gap, gap[vertex], side="right")) - 1
        miss, nontarget, spoof = (float(rate[vertex]) for rate in self.rates)
        return miss, nontarget, spoof


@dataclass(frozen=True)
class SpoofBattery(Battery):
    """Numbers of three classes, of tandems with each of the countermeasures ``cms``, and of two."""

    cms: tuple[str, ...] = ()
    cost: SpoofCost = _A_DCF
    tandem: SpoofCost = _T_DCF

    def measured(self) -> dict[str, MetricSpec]:
        """All metrics by key; raw EERs, which are not shown, tell of chance."""
        least: Any = partial(SpoofRoc.a_dcf_point, cost=self.cost)
        table = {"a_dcf": MetricSpec("a_dcf", least, "", 1.0, _COST, self.cost.shown)}
        for metric in SPOOF_EERS:
            for key, estimator in {metric: self.eer, f"raw {metric}": "raw"}.items():
                read: Any = partial(SpoofRoc.spoof_eer_point, metric=metric, estimator=estimator)
                within = _HULL_EER if estimator == "rocch" else _EER
                table[key] = MetricSpec(key, read, "%", 0.5, within, {"est": estimator})
        tandem = SpoofRules.of(self.convention).tandem
        form = {**tandem.value, **self.tandem.shown}
        for cm in self.cms:
            both: Any = partial(SpoofRoc.t_eer, cm=cm)
            table[f"t_eer {cm}"] = MetricSpec("t_eer", both, "%", 0.5, _EER, {"cm": cm})
            both = partial(SpoofRoc.min_t_dcf, cm=cm, cost=self.tandem, form=tandem)
            shown = {"cm": cm, **form}
            table[f"min_t_dcf {cm}"] = MetricSpec("min_t_dcf", both, "", 1.0, _COST, shown)
        return table | super().measured()


@dataclass(frozen=True, eq=False)
class SpoofTrials:
    """Trials of a system against nontargets and against spoofs, and those of countermeasures
    ``cms``, drawn together; ``units`` are those of the class that has fewest.
    """

    parts: tuple[System, ...]
    cms: tuple[str, ...]
    units: int

    method = property(lambda self: self.parts[0].method)
    together = property(lambda self: self.parts[0].together)
    draws = property(lambda self: self.parts[0].draws)
    first_order = property(lambda self: self.parts[0].first_order)
    accepted = property(lambda self: self.parts[0].accepted)
    wider = property(lambda self: max(part.wider for part in self.parts))
    roc = lazy(lambda self: self._joined(*(part.roc for part in self.parts)))
    whole = property(lambda self: self._joined(*(part.whole for part in self.parts)))

    @lazy
    def _rows(self) -> IntArray | None:
        """Rows of target scores, where all trials are kept."""
        sorted_once = isinstance(self.parts[0], SortedTrials)
        return np.flatnonzero(self.parts[0].roc.target) if sorted_once else None

    def _joined(self, sv: Roc | None, spf: Roc | None, *cms: Roc | None) -> SpoofRoc | None:
        """The statistics of one draw; targets are drawn once."""
        if sv is None or spf is None:
            return None
        if isinstance(self.parts[1], BinnedTrials):
            spf = replace(spf, target=sv.target)
        heard = {name: one for name, one in zip(self.cms, cms, strict=True) if one is not None}
        return SpoofRoc.of(sv, spf, heard, self._rows) if len(heard) == len(cms) else None

    def replicates(self, xp: Xp, times: Any) -> Iterator[SpoofRoc | None]:
        """The statistics of every draw. Trials in bins have random numbers of their own by class
        and system, which numbers of replicates beyond all others give.
        """
        drawn: list[Iterator[Roc | None]] = []
        for row, part in enumerate(self.parts):
            own = times
            if isinstance(part, BinnedTrials):
                own = [(seed, index + row * MOST_REPLICATES) for seed, index in times]
            drawn.append(part.replicates(xp, own))
        return starmap(self._joined, zip(*drawn, strict=True))


def spoof_units(scores: Scores) -> tuple[Units, Units, Units]:
    """Units of trials against nontargets and against spoofs, and of a countermeasure's. A nontarget
    depends on two speakers, a spoof on the one who is claimed, a countermeasure on who is heard.
    """
    target, nontarget = scores.is_target, scores.is_nontarget
    bona_fide, spoof = target | nontarget, ~(target | nontarget)
    enrol, test = scores.enrol_speaker, scores.test_speaker
    if enrol is None or test is None:
        classes = [np.flatnonzero(kind) for kind in (target, nontarget, spoof)]
        number = np.empty(spoof.size, np.int64)
        number[np.concatenate(classes)] = np.arange(spoof.size)
        sizes = tuple(kind.size for kind in classes if kind.size)
        sides = (target, nontarget), (target, spoof), (bona_fide, spoof)
        sv, spf, cm = (Units("trial", number[a], number[b], None, sizes) for a, b in sides)
        return sv, spf, cm
    order = in_order(enrol.names.to_list())
    there = np.zeros(order.size, bool)
    there[order[enrol.used]] = there[order[test.used]] = True
    present = np.cumsum(there)
    claimed, heard = ((present[order] - 1).astype(np.int32)[ids.codes] for ids in (enrol, test))
    of = partial(Units, "speaker", strata=(int(present[-1]),))
    return (
        of(claimed[target], claimed[nontarget], heard[nontarget]),
        of(claimed[target], claimed[spoof], claimed[spoof]),
        of(heard[bona_fide], heard[spoof], heard[spoof]),
    )


@dataclass(frozen=True, eq=False)
class SpoofMeasurement(Measurement):
    """Verification systems on three classes and on two, or countermeasures on bona fide trials and
    spoofs; ``n`` counts the trials. Of an ``attack`` two classes are left out: it is judged beside
    all bona fide trials, whose numbers are known. ``nearest`` are t-EERs without interpolation, by
    system and countermeasure; ``recordings`` counts those of a countermeasure by its name, where
    recordings were tried more than once.
    """

    n: Mapping[str, int] = field(default_factory=dict)
    attack: bool = False
    nearest: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    recordings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def result(self, name: str, group: str | None = None, system: int = 0) -> SystemResult:
        """All that is said of a system; one that is fused already is in no tandem."""
        made = super().result(name, group, system)
        three = [replace(one, n=self.n) for one in made.estimates if one.metric in SPOOF_METRICS]
        two = [e for e in made.estimates if not e.metric.startswith(("raw ", *SPOOF_METRICS))]
        if not isinstance(made.roc, SpoofRoc):
            counts = self.recordings.get(name, self.n)
            return replace(made, estimates=(replace(two[0], metric="cm_eer", n=counts), *two))
        three = self._with_nearest(name, three)
        if "sasv" in name.lower():
            three = [estimate for estimate in three if "cm" not in estimate.params]
        return replace(made, estimates=(*three, *([] if self.attack else two)))

    def _with_nearest(self, name: str, estimates: Sequence[Estimate]) -> list[Estimate]:
        """The estimates, each t-EER followed by that without interpolation, where it is known."""
        known = self.nearest.get(name, {})
        complete: list[Estimate] = []
        for estimate in estimates:
            complete.append(estimate)
            cm = str(estimate.params.get("cm", ""))
            if estimate.metric != "t_eer" or cm not in known or np.isnan(float(estimate.value)):
                continue
            nearest = replace(estimate, metric="t_eer_nearest", value=known[cm], interval=None)
            complete.append(replace(nearest, no_interval=_NEAREST))
        return complete


def spoof_measurements(
    scores: Scores,
    analysis: Analysis,
    names: Sequence[str],
    cms: Sequence[str],
    *,
    attack: bool = False,
) -> list[tuple[Sequence[str], Measurement]]:
    """Verification systems (``names``) and countermeasures with replicates on shared draws."""
    if names:
        refuse_two_speakers(scores)
    spoof: BoolArray = np.asarray(scores.label == OTHER)
    counts = scores.counts
    rules = SpoofRules.of(analysis.battery.convention)
    alone = replace(analysis, battery=replace(analysis.battery, **rules.countermeasure))
    thresholds = list(dict.fromkeys([*analysis.battery.thresholds, *alone.battery.thresholds]))
    units = spoof_units(scores) if analysis.replicates else None
    few = min(unit.count for unit in units[0 if names else 2 :]) if units else 0
    bins = analysis.auto and len(scores) > AUTO_TRIALS and few > 1

    def trials(
        name: str, sides: Sequence[tuple[FloatArray, FloatArray]], drawn: Sequence[Units]
    ) -> list[Any]:
        """Trials of each side over the same scores, in common bins where they are too many."""
        marks = analysis.marks(name, *sides[0])
        if len(sides) > 1 and rules.tandem is TandemForm.ASVSPOOF_2019:
            marks[_ASV_EER] = np.array([nearest_threshold(*sides[0])])
        rocs = [counted(*sides[0], thresholds, marks)]
        rocs += [counted(*both, rocs[0].scores) for both in sides[1:]]
        if units is None:
            return rocs
        sort: Any = SortedTrials.of
        if bins:
            rows = 1 if units[0].method == "trial" else units[0].strata[0]
            edges = [edges_of(roc, thresholds, rows=rows) for roc in rocs]
            sort = partial(binned_trials, edges=np.unique(np.concatenate(edges)))
        each = zip(sides, drawn, rocs, strict=True)
        return [sort(*both, own, roc=roc) for both, own, roc in each]

    every = {name: scores.scores(name) for name in (*names, *cms)}
    drawn_sv_spf, drawn_cm = (units[:2], units[2:]) if units else ((), ())
    heard: list[Any] = []
    standalone: list[Any] = []
    recordings: dict[str, dict[str, int]] = {}
    for cm in cms:
        heard += trials(cm, [(every[cm][~spoof], every[cm][spoof])], drawn_cm)
        first = first_of_recordings(scores, cm)
        if first is None:
            standalone.append(heard[-1])
            continue
        pair = every[cm][first & ~spoof], every[cm][first & spoof]
        recordings[cm] = {"bona_fide": pair[0].size, "spoof": pair[1].size}
        if scores.test_speaker is not None:
            recordings[cm]["speakers"] = len(scores.test_speaker.used)
        selected = [_selected(cm_units, first, spoof) for cm_units in drawn_cm]
        standalone += trials(cm, [pair], selected)
    nearest = _nearest_t_eers(scores, names, cms) if rules.has_nearest_t_eer else {}
    asv: list[Any] = []
    for name in names:
        own = scores.targets(name)
        sides = [(own, scores.nontargets(name)), (own, every[name][spoof])]
        parts = trials(name, sides, drawn_sv_spf)
        if units is None:
            (sv, spf), judged = parts, dict(zip(cms, heard, strict=True))
            asv.append(SpoofRoc.of(sv, spf, judged, np.flatnonzero(sv.target)))
        else:
            asv.append(SpoofTrials((*parts, *heard), tuple(cms), few))
    n = {"target": counts["target"], "nontarget": counts["nontarget"], "spoof": counts["other"]}
    n |= {} if scores.n_speakers is None else {"speakers": scores.n_speakers}
    costs = rules.costs(analysis)
    same = vars(analysis.battery)
    battery = SpoofBattery(**same, cms=tuple(cms), cost=costs[0], tandem=costs[1])
    three = replace(analysis, battery=battery)
    made: list[tuple[Sequence[str], Measurement]] = []
    listening = None if scores.test_speaker is None else len(scores.test_speaker.used)
    for some, how, systems, speakers, rejected in (
        (names, three, asv, speaker_count(scores), ~scores.is_target),
        (cms, alone, standalone, listening, spoof),
    ):
        if some:
            rocs = tuple(systems if units is None else (system.roc for system in systems))
            drawn = None if units is None else how.drawn(systems)
            about = scores.digest, speakers, drawn
            measured = SpoofMeasurement(
                how, rocs, *about, n=n, attack=attack, nearest=nearest, recordings=recordings
            )
            # A printed threshold decides all trials as the exact one does, spoofs among them.
            around = [
                nearest_of(roc, [every[name][rejected]])
                for name, roc in zip(some, rocs, strict=True)
            ]
            measured = replace(measured, around=tuple(around))
            made.append((some, measured))
    return made


def _nearest_t_eers(
    scores: Scores, names: Sequence[str], cms: Sequence[str]
) -> dict[str, dict[str, float]]:
    """The t-EER without interpolation of each verification system with each countermeasure."""
    is_spoof = scores.label == OTHER
    found: dict[str, dict[str, float]] = {}
    for name in names:
        spoofs = scores.scores(name)[is_spoof]
        asv = scores.targets(name), scores.nontargets(name), spoofs
        found[name] = {}
        for cm in cms:
            judged = scores.scores(cm)
            found[name][cm] = nearest_t_eer(asv, judged[~is_spoof], judged[is_spoof])
    return found


def first_of_recordings(scores: Scores, cm: str) -> BoolArray | None:
    """The first trial of each recording, which a countermeasure judges once.

    None if no recording is tried twice, if they have no names, or if the column differs between
    trials of one recording: then it judges trials.
    """
    if scores.test is None:
        return None
    is_spoof = scores.label == OTHER
    key = 2 * scores.test.codes.astype(np.int64) + is_spoof
    _, first, recording = np.unique(key, return_index=True, return_inverse=True)
    values = scores.scores(cm)
    if first.size == len(scores) or (values != values[first][recording]).any():
        return None
    chosen = np.zeros(len(scores), bool)
    chosen[first] = True
    return chosen


def _selected(units: Units, chosen: BoolArray, is_spoof: BoolArray) -> Units:
    """The units of some trials of a countermeasure; the same speakers are drawn."""
    bona_fide, spoof = chosen[~is_spoof], chosen[is_spoof]
    second = units.nontarget_second
    return replace(
        units,
        target=units.target[bona_fide],
        nontarget_first=units.nontarget_first[spoof],
        nontarget_second=None if second is None else second[spoof],
    )


def is_countermeasure(name: str, role: str | Mapping[str, str] | None) -> bool:
    """By its role, or by its name: cm_score, aasist-cm, countermeasure."""
    told = role.get(name) if isinstance(role, Mapping) else role
    if told not in (None, "asv", "cm"):
        raise InputError("role", "asv or cm", told)
    words = re.split(r"[^a-z]+", name.lower())
    return told == "cm" or (told is None and bool({"cm", "countermeasure"} & set(words)))


def judges_spoofs(scores: Scores, analysis: Analysis) -> bool:
    """Whether the spoof trials of a table count; what they are needed for is refused without."""
    counts = scores.counts
    roles = analysis.role.values() if isinstance(analysis.role, Mapping) else (analysis.role,)
    asked = "spoof" if analysis.spoof else "role cm" if "cm" in roles else ""
    if asked and not counts["other"]:
        found = f"{counts['target']:,} target and {counts['nontarget']:,} nontarget"
        raise InputError(scores.name, f"spoof trials for {asked}", found)
    for name, other in (
        ("equalise", analysis.equalise),
        ("dev", "thresholds of other trials" if analysis.at else None),
        ("eer", analysis.battery.eer if analysis.battery.eer not in _ESTIMATORS else None),
    ):
        if other and asked:
            raise InputError(name, "two classes, without --spoof and --role", other)
        if other:
            return False
    return bool(counts["other"])


def evaluate_spoofed(
    scores: Scores, analysis: Analysis, *, by: str | None, systems: Sequence[str] | None
) -> Evaluation:
    """The table of scores with spoof trials: verification systems on three classes and, as ever, on
    targets and nontargets; countermeasures on bona fide trials against spoofs. Where no trial is a
    nontarget, all are countermeasures.
    """
    names = list(systems or scores.systems)
    if isinstance(analysis.role, Mapping) and (unknown := set(analysis.role) - set(names)):
        raise InputError("role", f"one of the systems {', '.join(names)}", ", ".join(unknown))
    scores, notices = scores.select_systems(names), list[Notice]()
    of_challenge = scores.sources and scores.sources[0].format == "asvspoof5-scores"
    if of_challenge and scores.has_ids and not scores.has_speakers:
        scores = replace(scores, enrol_speaker=scores.enrol, test_speaker=scores.enrol)
        notices.append(Notice("claimed-speakers", "", _CLAIMED))
    bona_fide, alone = scores.label != OTHER, not scores.is_nontarget.any()
    cms = [name for name in names if alone or is_countermeasure(name, analysis.role)]
    asv = [name for name in names if name not in cms]
    if analysis.t_dcf is not None and not cms:
        raise InputError("t-DCF", "a countermeasure column (--role NAME=cm)", ", ".join(names))
    groups: dict[str | None, Scores] = {None: scores}
    attacks = set[str | None]()
    for name, mask in group_masks(scores, by) if by else ():
        if not (mask == bona_fide).all():
            attacks |= set() if (mask & bona_fide).any() else {name}
            groups[name] = scores.select(mask | bona_fide if name in attacks else mask)

    def measure(trials: Scores, group: str | None) -> list[tuple[Sequence[str], Measurement]]:
        if not trials.counts["other"]:
            return [(asv, analysis.of_scores(trials.select_systems(asv)))]
        return spoof_measurements(trials, analysis, asv, cms, attack=group in attacks)

    for cm in cms:
        first = first_of_recordings(scores, cm)
        if first is not None:
            sentence = (
                f"{len(scores):,} trials of {int(first.sum()):,} recordings: in numbers of a"
                " countermeasure alone each recording counts once"
            )
            notices.append(Notice("recordings-once", cm, sentence, "note"))
    made = evaluate_groups(groups, measure, analysis.seed, notices)
    kept = scores.select_systems(asv or cms)
    if not asv:
        kept = replace(kept, label=np.where(bona_fide, TARGET, NONTARGET))
    sources = tuple(replace(source, spoof=0) for source in scores.sources)
    cost, _ = SpoofRules.of(analysis.battery.convention).costs(analysis)
    return replace(made, sources=sources, scores=kept, spoof_cost=cost)
