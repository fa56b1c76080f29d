"""One system or many on a list of trials: the whole table of metrics with its intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unmask.base import (
    VERDICT,
    FloatArray,
    Replicates,
    Sampling,
    Tabular,
    as_scores,
    estimate_row,
)
from unmask.engine import information
from unmask.engine.battery import SPOOF_METRICS, Battery
from unmask.engine.bootstrap import (
    AUTO_REPLICATES,
    AUTO_TRIALS,
    NOT_ASKED,
    Conditions,
    SortedTrials,
    System,
    binned_trials,
    bootstrap,
    carrier_notices,
    counted,
    interval_notices,
    reason_none,
    speaker_count,
    trial_count,
    units_of,
)
from unmask.engine.metrics import ALONE, inverted_notices, negated_notices, refuse_labels
from unmask.engine.operating import (
    OperatingPoint,
    SpoofCost,
    as_read,
    scores_around,
    shortest_decimal,
)
from unmask.engine.roc import Roc
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval, Notice, Parameter
from unmask.run import part
from unmask.trials import Embeddings, Ids, Scores, Source

if TYPE_CHECKING:
    from unmask.engine.groups import GroupGaps

UNMOVED = "no resampling moves it"
UNPAIRED = "trials without speakers in bins are drawn for each system anew"
NO_THRESHOLD = "there is no threshold: false alarms of infinite score pass all, more than demanded"
NO_FALSE_ALARM = "this rate is less than one false alarm of all nontarget trials"
ScoresAround = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Gives the scores of trials next to thresholds: the highest below and the lowest of at least."""
_OF_TRIALS = (
    *("threshold", "safe_threshold", "eer", "eer_raw", "eer_rocch"),
    *("min_dcf", "min_c_det", "tpr_at_fpr", *SPOOF_METRICS),
)
"""Metrics whose thresholds follow from the trials; others were given, or are Bayes thresholds."""


def safe_threshold(threshold: Estimate, roc: Roc) -> list[Estimate]:
    """The upper end of the interval of a ``threshold`` for a demanded false-alarm rate, and the
    miss rate there; why there is none.
    """
    made, params = threshold.interval, {**threshold.params, "safe": True}
    told, value, misses = threshold.no_interval, float("nan"), float("nan")
    if made is not None and not np.isnan(made.high):
        if np.isinf(made.high):
            demand = f"{100 * float(params['far'] or 0):g} %"
            told = f"there is none: at no threshold does the interval of FAR end below {demand}"
        else:
            told, value = "the end of an interval", made.high
            misses = roc.at_threshold(value).p_miss
    of_safe = replace(threshold, interval=None, params=params, no_interval=told)
    return [
        replace(of_safe, metric="safe_threshold", value=value, threshold=value),
        replace(of_safe, metric="frr", value=misses, unit="%", threshold=value),
    ]


def with_decimals(estimates: Sequence[Estimate], around: ScoresAround) -> tuple[Estimate, ...]:
    """Give each threshold that follows from the trials as the shortest decimal that decides all of
    them alike, so that what is printed keeps its demand when it is read back.
    """
    chosen = [_has_threshold_of_trials(estimate) for estimate in estimates]
    exact: set[float] = set()
    for estimate, is_of_trials in zip(estimates, chosen, strict=True):
        if is_of_trials:
            exact.update(_thresholds_of(estimate))
    thresholds = np.array(sorted(threshold for threshold in exact if np.isfinite(threshold)))
    if not thresholds.size:
        return tuple(estimates)
    decimals = {}
    for threshold, below, above in zip(thresholds, *around(thresholds), strict=True):
        decimals[float(threshold)] = shortest_decimal(*map(float, (threshold, below, above)))
    return tuple(
        _shown_with(decimals, estimate) if is_of_trials else estimate
        for estimate, is_of_trials in zip(estimates, chosen, strict=True)
    )


def _has_threshold_of_trials(estimate: Estimate) -> bool:
    if "set_by" in estimate.params or "threshold" in estimate.params:
        return False
    of_demand = estimate.metric == "frr" and "far" in estimate.params
    return of_demand or estimate.metric in _OF_TRIALS


def _thresholds_of(estimate: Estimate) -> list[float]:
    """All thresholds of a number: its own, and value and ends where it is one itself."""
    found = [] if estimate.threshold is None else [estimate.threshold]
    if estimate.metric in ("threshold", "safe_threshold"):
        found.append(float(estimate.value))
        if estimate.interval is not None:
            found += [estimate.interval.low, estimate.interval.high]
    return found


def _shown_with(decimals: Mapping[float, float], estimate: Estimate) -> Estimate:
    """The number with its thresholds as decimals; NaN and infinity stay."""
    at, interval = estimate.threshold, estimate.interval
    shown = replace(estimate, threshold=None if at is None else decimals.get(at, at))
    if estimate.metric not in ("threshold", "safe_threshold"):
        return shown
    if interval is not None:
        low, high = (decimals.get(end, end) for end in (interval.low, interval.high))
        interval = replace(interval, low=low, high=high)
    value = float(estimate.value)
    return replace(shown, value=decimals.get(value, value), interval=interval)


def why_none(interval: Interval | None, reason: str) -> str:
    """Why there is no interval: the reason given, or that all replicates agree; empty if it is."""
    if interval is None:
        return reason
    return (reason or UNMOVED) if np.isnan(interval.low) else ""


@dataclass(frozen=True, eq=False, repr=False)
class SystemResult(Tabular):
    """Metrics of one system on one group of trials (``group`` is None for all of them).

    :func:`evaluate` makes it; reports and figures take its estimates and its ``roc``.
    """

    system: str
    group: str | None
    estimates: tuple[Estimate, ...]
    roc: Roc = field(repr=False)

    def rows(self) -> list[dict[str, Any]]:
        """One row per metric."""
        return [estimate_row(e, system=self.system, group=self.group) for e in self.estimates]


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Tabular):
    """The table of :func:`evaluate`: ``result["plda"]["eer"]`` is the EER of the system plda,
    ``result["plda", "f"]["eer"]`` that within the group f; of one system ``result["eer"]`` does.
    ``scores`` are those in memory.
    ``margins`` are by system how much higher its EER is than the lowest one, over all trials, with
    95 % intervals of the paired difference. ``dev`` is the table of the development list, on which
    thresholds were set. ``gaps`` are those between groups of speakers, at one threshold each.
    ``spoof_cost`` is that of the a-DCF, where spoof trials count.
    """

    results: tuple[SystemResult, ...]
    sources: tuple[Source, ...]
    notices: tuple[Notice, ...]
    seed: int
    scores: Scores | None = field(default=None, repr=False)
    margins: Mapping[str, Estimate] = field(default_factory=dict)
    dev: Evaluation | None = None
    gaps: tuple[GroupGaps, ...] = ()
    spoof_cost: SpoofCost | None = None

    def __iter__(self) -> Iterator[SystemResult]:
        return iter(self.results)

    @property
    def parts(self) -> dict[Any, SystemResult]:
        """Metrics of each system over all trials, and those of each pair (system, group)."""
        whole = {result.system: result for result in self.results if result.group is None}
        return whole | {(result.system, result.group): result for result in self.results}

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """Every metric of every system, over all trials first."""
        return tuple(estimate for result in self.results for estimate in result.estimates)

    def rows(self) -> list[dict[str, Any]]:
        """One row per system, group and metric; with a development list, of both lists."""
        rows = [row for result in self.results for row in result.rows()]
        if self.dev is None:
            return rows
        both = (("evaluation", rows), ("development", self.dev.rows()))
        return [{"list": name, **row} for name, some in both for row in some]


@dataclass(frozen=True, eq=False)
class Measurement:
    """Statistics of all systems on the same trials, with replicates on shared draws.

    ``trials`` is the digest of the trials, ``speakers`` how many there are, ``not_drawn`` why there
    are no replicates, where there are none. Draws of bins of trials are not ``paired``. ``around``
    gives the scores next to thresholds, by system, where they are known.
    """

    analysis: Analysis
    rocs: tuple[Roc, ...]
    trials: str
    speakers: int | None
    replicates: Replicates | None = None
    not_drawn: str = NOT_ASKED
    paired: bool = True
    told: tuple[Notice, ...] = ()
    around: tuple[ScoresAround, ...] = ()

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What must be said of intervals."""
        drawn = self.replicates
        if drawn is None:
            none = Notice("no-interval", "intervals", self.not_drawn)
            return self.told if self.not_drawn == NOT_ASKED else (*self.told, none)
        notices = [*self.told, *interval_notices(drawn.units, speakers=self.speakers)]
        if empty := drawn.undefined("eer"):
            sentence = (
                f"{empty} of {drawn.replicates} replicates left a class empty and do not count: "
                "too few speakers for a reliable interval"
            )
            notices.append(Notice("empty-replicates", "", sentence))
        return tuple(notices)

    @property
    def no_interval(self) -> str:
        """Why there are no intervals, where there are none."""
        if self.replicates is None:
            return self.not_drawn
        return reason_none(self.speakers) if self.replicates.units < 2 else ""

    def result(self, name: str, group: str | None = None, system: int = 0) -> SystemResult:
        """All that is said of a system, under a name."""
        return SystemResult(name, group, self.estimates_of(system), self.rocs[system])

    def estimates_of(self, system: int = 0) -> tuple[Estimate, ...]:
        """Every metric of one system with its interval, or why it has none; the tag follows l_w."""
        roc, drawn, battery = self.rocs[system], self.replicates, self.analysis.battery
        level, trials = self.analysis.level, self.trials
        intervals = {}
        if drawn is not None:
            intervals = battery.intervals(drawn, level=level, system=system, roc=roc)
        n = {"target": round(roc.targets), "nontarget": round(roc.nontargets)}
        if self.speakers is not None:
            n["speakers"] = self.speakers
        points = battery.points(roc)
        estimates: list[Estimate] = []
        for key, measured in battery.measured().items():
            value, threshold = points[key]
            interval = intervals.get(key)
            reason = measured.no_interval or why_none(interval, self.no_interval)
            if "far" in measured.params and np.isnan(value):
                interval = None
                reason = NO_THRESHOLD
            params = {**measured.params, **self.analysis.shown}
            about = measured.metric, value, measured.unit, interval, measured.chance, n
            estimates.append(Estimate(*about, params, trials, threshold, reason))
            if measured.metric == "frr" and "far" in measured.params:
                estimates += safe_threshold(estimates[-2], roc)
            if key == "l_w":
                tag = information.tag(value)
                estimates.append(Estimate("tag", tag, n=n, trials=trials, no_interval=reason))
        return with_decimals(estimates, self.around[system]) if self.around else tuple(estimates)

    def difference(
        self, key: str, first: int, second: int, sides: Sequence[Estimate], of: str, level: float
    ) -> Estimate:
        """How much more of a metric the second system has, on shared draws; ``sides`` are what is
        said of both, ``of`` names them.
        """
        one, two = sides
        reason, interval = self.analysis.battery.measured()[key].no_interval, None
        reason = reason or ("" if self.paired else UNPAIRED)
        fpr = one.params.get("fpr")
        if not reason and fpr is not None and float(fpr) * one.n["nontarget"] < 1:
            reason = NO_FALSE_ALARM
        if self.replicates is not None and not reason:
            interval = self.replicates.difference(key, level=level, first=first, second=second)
        return replace(
            one,
            value=float(two.value) - float(one.value) if two.value != one.value else 0.0,
            interval=interval,
            chance=0.0,
            params={**one.params, "of": of},
            threshold=None,
            no_interval=reason or why_none(interval, self.no_interval),
        )

    def margins(self, results: Sequence[SystemResult]) -> dict[str, Estimate]:
        """By how much the EER of every other system is above the lowest, by paired differences."""
        rates = [result["eer"] for result in results]
        best = min(range(len(rates)), key=lambda row: float(rates[row].value))
        made = {}
        for row, result in enumerate(results):
            if row != best:
                of = f"{result.system} − {results[best].system}"
                sides = rates[best], rates[row]
                delta = self.difference("eer", best, row, sides, of, VERDICT)
                made[result.system] = replace(delta, metric="eer_difference")
        return made


@dataclass(frozen=True)
class Analysis(Sampling):
    """What is measured, and how intervals are made; ``auto`` where no number was asked for.

    ``equalise`` is the column whose conditions weigh alike; ``spoof`` says whether spoof trials are
    judged (None: where there are some), ``role`` which systems are countermeasures, ``a_dcf``
    and ``t_dcf`` at what priors and costs; ``at`` are thresholds that were set on other trials: by
    system and by the names that the battery has; ``alpha`` weighs FMR in FDR and GARBE.
    """

    battery: Battery = field(default_factory=Battery)
    auto: bool = False
    equalise: str | None = None
    spoof: bool | None = False
    role: str | Mapping[str, str] | None = None
    a_dcf: Sequence[float] | None = None
    t_dcf: Sequence[float] | None = None
    at: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    alpha: float = 0.5

    @classmethod
    def of(
        cls,
        battery: Battery | None,
        replicates: int | None,
        level: float,
        seed: int,
        convention: str | None = None,
        equalise: str | None = None,
    ) -> Analysis:
        """The options of :func:`evaluate`, in one."""
        number = AUTO_REPLICATES if replicates is None else replicates
        if convention is not None:
            if battery is not None:
                raise InputError("convention", "no battery beside it (Battery.named)", "both")
            battery = Battery.named(convention)
        chosen = battery or Battery()
        if equalise is not None and chosen.eer not in ("rocch", "raw"):
            raise InputError(f"equalise: the {chosen.eer} EER counts trials and takes no weights")
        return cls(number, level, seed, chosen, replicates is None, equalise)

    @property
    def shown(self) -> dict[str, Parameter]:
        """What all numbers of the table have in their signature."""
        told = {"convention": self.battery.convention, "equalise": self.equalise}
        return {name: value for name, value in told.items() if value}

    def marks(
        self, system: str, target: FloatArray, nontarget: FloatArray
    ) -> dict[str, FloatArray]:
        """Thresholds of a system that follow from its scores, and those set on other trials."""
        return self.battery.marks(target, nontarget) | self.set_for(system)

    def set_for(self, system: str) -> dict[str, FloatArray]:
        """Thresholds of a system that were set on other trials."""
        return {name: np.array([one]) for name, one in self.at.get(system, {}).items()}

    def _conditions(self, scores: Scores) -> tuple[Conditions | None, tuple[Notice, ...]]:
        """The condition of every trial of both classes; those that lack a class are named."""
        if self.equalise is None:
            return None, ()
        code = np.zeros(scores.is_target.size, np.int64)
        masks = group_masks(scores, self.equalise)
        for number, (_, mask) in enumerate(masks):
            code[mask] = number
        classes = scores.is_target, scores.is_nontarget
        told = []
        for kind, chosen in zip(("target", "nontarget"), classes, strict=True):
            lacking = [name for name, mask in masks if not (mask & chosen).any()]
            if lacking:
                sentence = f"no {kind} trials of {', '.join(lacking)}: the others weigh alike"
                told.append(Notice("condition-empty", f"equalise {self.equalise}", sentence))
        return (code[classes[0]], code[classes[1]]), tuple(told)

    def of_scores(self, scores: Scores, *, paired: bool = False) -> Measurement:
        """Count the statistic of every system and bootstrap all, ``paired`` on the same draws."""
        scores.check_classes()
        count, thresholds = trial_count(scores), self.battery.thresholds
        many = self.auto and count > AUTO_TRIALS
        read = partial(as_read, estimator=self.battery.eer)
        pairs = [
            (read(scores.targets(name)), read(scores.nontargets(name))) for name in scores.systems
        ]
        marks = [self.marks(name, *pair) for name, pair in zip(scores.systems, pairs, strict=True)]
        conditions, told = self._conditions(scores)
        about = scores.digest, speaker_count(scores)
        units = units_of(scores)[0] if self.replicates != 0 else None
        reason = NOT_ASKED
        if units is not None and many and paired and units.method == "trial":
            reason = f"none by default for {count:,} trials without speakers: ask for them"
            units = None
        every = zip(pairs, marks, strict=True)
        rocs = tuple(counted(*pair, thresholds, own, conditions) for pair, own in every)
        around = tuple(
            nearest_of(roc, [nontarget]) for roc, (_, nontarget) in zip(rocs, pairs, strict=True)
        )
        if units is None:
            alone = Measurement(self, rocs, *about, not_drawn=reason, told=told)
            return replace(alone, around=around)
        in_bins = many and units.count > 1 and conditions is None
        how = {"thresholds": thresholds} if in_bins else {"conditions": conditions}
        sort: Any = binned_trials if in_bins else SortedTrials.of
        systems = [sort(*one, units, roc=roc, **how) for one, roc in zip(pairs, rocs, strict=True)]
        alike = not (many and units.method == "trial")
        drawn = self.drawn(systems)
        told += self._carriers(scores.systems, systems)
        return Measurement(self, rocs, *about, drawn, paired=alike, told=told, around=around)

    def _carriers(self, names: Iterable[str], systems: Sequence[System]) -> tuple[Notice, ...]:
        """What single speakers do to the numbers of systems whose trials are in memory."""
        notices, battery = list[Notice](), self.battery
        for name, system in zip(names, systems, strict=True):
            if not isinstance(system, SortedTrials) or self.equalise is not None:
                continue
            point = system.roc.eer_point(estimator=battery.eer)
            demanded = {
                f"FAR ≤ {100 * far:g} %": system.roc.far_point(far).threshold for far in battery.far
            }
            thresholds = {label: at for label, at in demanded.items() if np.isfinite(at)}
            found = carrier_notices(system, point, battery.eer, thresholds)
            notices += [notice.about(name) for notice in found]
        return tuple(notices)

    def of_counted(
        self,
        roc: Roc,
        drawn_from: Callable[[], System],
        *,
        trials: str,
        speakers: int | None,
        around: ScoresAround,
    ) -> Measurement:
        """One system that was counted without holding its trials, which ``drawn_from`` gives."""
        drawn = None if self.replicates == 0 else self.drawn([drawn_from()])
        return Measurement(self, (roc,), trials, speakers, drawn, around=(around,))

    def drawn(self, systems: Sequence[System]) -> Replicates:
        """Replicates of all that is measured of some systems."""
        battery, equal = self.battery, self.equalise is not None
        return bootstrap(
            systems,
            battery.drawn,
            ranges=battery.ranges,
            replicates=self.replicates,
            seed=self.seed,
            false_alarms=None if equal else battery.false_alarms,
        )


def evaluate_table(
    scores: Scores, analysis: Analysis, *, by: str | None, systems: Sequence[str] | None = None
) -> Evaluation:
    """The table of scores that are in memory."""
    asked = analysis.spoof or analysis.role is not None
    if analysis.spoof is not False and (asked or scores.counts["other"]):
        from unmask.engine.spoofing import evaluate_spoofed, judges_spoofs

        if judges_spoofs(scores, analysis):
            return evaluate_spoofed(scores, analysis, by=by, systems=systems)
    names = list(systems or scores.systems)
    chosen = scores.select_systems(names)
    groups: dict[str | None, Scores] = {None: chosen}
    groups |= {name: chosen.select(mask) for name, mask in (group_masks(scores, by) if by else ())}
    made = evaluate_groups(groups, lambda one, _: [(names, analysis.of_scores(one))], analysis.seed)
    if not by:
        return made
    from unmask.engine.groups import gaps_of

    gaps, none = gaps_of(chosen, analysis, by, made.results)
    return replace(made, gaps=gaps, notices=(*made.notices, *none))


def evaluate_groups(
    groups: Mapping[str | None, Scores],
    measure: Callable[[Scores, str | None], Sequence[tuple[Sequence[str], Measurement]]],
    seed: int,
    told: Sequence[Notice] = (),
) -> Evaluation:
    """The table of all trials (None) and of groups: ``measure`` gives systems that were measured
    together, by name; groups that lack a class are left out.
    """
    results: list[SystemResult] = []
    notices, turned, whole = list(told), list[Notice](), groups[None]
    needed = [kind for kind in ("target", "nontarget") if whole.counts[kind]]
    margins: dict[str, Estimate] = {}
    for index, (group, trials) in enumerate(groups.items()):
        of_group, counts = f"group {group}" if group is not None else "", trials.counts
        if group is not None and not all(counts[kind] for kind in needed):
            sentence = "left out, it has {target} target and {nontarget} nontarget trials"
            notices.append(Notice("group-left-out", of_group, sentence.format(**counts)))
            continue
        with part(index, len(groups)):
            every = measure(trials, group)
        for names, measured in every:
            notices += [notice.about(of_group) for notice in measured.notices]
            made = [measured.result(name, group, row) for row, name in enumerate(names)]
            for result in made:
                told = inverted_notices(result.roc)
                turned += [notice.about(result.system).about(of_group) for notice in told]
            if group is None:
                margins = margins or measured.margins(made)
            results += made
    about = whole.sources, tuple(dict.fromkeys([*turned, *notices])), seed, whole, margins
    return Evaluation(tuple(results), *about)


def nearest_of(roc: Roc, nontargets: Iterable[FloatArray]) -> ScoresAround:
    """The scores next to thresholds, of trials that were counted into ``roc``."""
    targets = roc.scores[roc.target > 0]
    return partial(scores_around, targets=targets, nontargets=nontargets)


def group_masks(
    scores: Scores | Embeddings, by: str
) -> list[tuple[str, np.ndarray[tuple[int], np.dtype[np.bool_]]]]:
    """Groups of trials or utterances by a metadata column ``by``: (name, which of ``scores``).

    A name such as ``sex`` stands for the pair ``enrol_sex``, ``test_sex``: trials with one value on
    both sides are a group of that name, mixed trials one of both names.
    """
    columns = scores.columns
    if by in columns:
        ids = columns[by]
        named = [(str(ids.names[int(code)]), ids.codes == code) for code in ids.used]
        return sorted(named, key=lambda pair: pair[0])
    sides = [columns.get(f"{side}_{by}") for side in ("enrol", "test")]
    if sides[0] is None or sides[1] is None:
        some = "embeddings" if isinstance(scores, Embeddings) else "trials"
        known = f"the columns are {', '.join(columns)}" if columns else f"the {some} have none"
        raise InputError(f"no column {by} to group by: {known}")
    both = Ids.concatenate([sides[0], sides[1]]).alphabetical()
    names = both.names.to_list()
    one, other = np.split(both.codes.astype(np.int64), 2)
    pair = np.minimum(one, other) * len(names) + np.maximum(one, other)
    keys = ((int(key), *divmod(int(key), len(names))) for key in np.unique(pair))
    return [(names[a] if a == b else f"{names[a]}-{names[b]}", pair == key) for key, a, b in keys]


@dataclass(frozen=True, eq=False, repr=False)
class Detection(SystemResult):
    """Every number of a ``battery`` for the scores of one system; made by :func:`detection`.

    ``result["eer"]`` is an estimate and ``result.eer`` its value, a fraction; so of every metric.
    """

    battery: Battery
    notices: tuple[Notice, ...] = ()

    def __getattr__(self, metric: str) -> Any:
        if not metric.startswith("_") and metric != "estimates":
            for estimate in self.estimates:
                if estimate.metric == metric:
                    return estimate.value
        raise AttributeError(f"{type(self).__name__} has no {metric}")

    @property
    def tpr_at_fpr(self) -> dict[Parameter, float]:
        """Share of targets accepted, by false-positive rate."""
        rates = [estimate for estimate in self.estimates if estimate.metric == "tpr_at_fpr"]
        return {estimate.params["fpr"]: float(estimate.value) for estimate in rates}

    @property
    def targets(self) -> int:
        """How many target scores there are."""
        return round(self.roc.targets)

    @property
    def nontargets(self) -> int:
        """How many nontarget scores there are."""
        return round(self.roc.nontargets)

    @property
    def points(self) -> dict[str, OperatingPoint]:
        """Value, threshold, Pmiss and Pfa of every operating point by name."""
        read = {key: one.read(self.roc) for key, one in self.battery.measured().items()}
        return {key: point for key, point in read.items() if isinstance(point, OperatingPoint)}


def detection(
    target: npt.ArrayLike,
    nontarget: npt.ArrayLike,
    *,
    p_target: float = 0.01,
    c_miss: float = 1.0,
    c_fa: float = 1.0,
    fpr: Sequence[float] = (1e-2, 1e-3),
) -> Detection:
    """All detection and disclosure numbers in one pass; :func:`evaluate` gives intervals.

    Parameters
    ----------
    target, nontarget : array-like
        Scores of trials of one speaker and of two.
    p_target, c_miss, c_fa : float
        Prior and costs of :func:`min_dcf`.
    fpr : sequence of float
        False-positive rates of :func:`tpr_at_fpr`.

    Returns
    -------
    Detection
        ``result.eer`` is a fraction, ``result["eer"]`` an estimate; so of every metric.

    Examples
    --------
    >>> import unmask as um
    >>> um.detection([1.0, 2.0, 3.0], [0.0, 1.5]).eer
    0.2
    """
    refuse_labels(target, nontarget)
    battery = Battery((p_target,), c_miss, c_fa, tuple(fpr))
    others = as_scores(nontarget, "nontarget")
    roc = Roc.from_scores(target, others, thresholds=battery.thresholds, cllr=True)
    analysis = Analysis(replicates=0, battery=battery)
    around = (nearest_of(roc, [others]),)
    alone = Measurement(analysis, (roc,), "", None, not_drawn=ALONE, around=around)
    measured = alone.estimates_of()
    return Detection("system", None, measured, roc, battery, negated_notices(roc))
