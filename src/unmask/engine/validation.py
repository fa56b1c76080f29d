"""Validation of likelihood ratios for use in court: how valid, how calibrated, how misleading, and
how large the data let them be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import expit

from unmask.base import HULL, SKEWED, FloatArray, MetricRange, Sampling, Tabular, quantile_t
from unmask.engine.battery import Battery, MetricSpec
from unmask.engine.bootstrap import NOT_ASKED, units_of
from unmask.engine.evaluating import of_arrays
from unmask.engine.evaluation import UNMOVED, Analysis
from unmask.engine.fusion import Fitting, Fusion, Map, calibrated, mapped
from unmask.engine.metrics import cllr, inverted_notices
from unmask.engine.roc import Roc
from unmask.errors import InputError
from unmask.estimate import Estimate, Interval, Notice
from unmask.trials import Scores, Source, Units, natural, read_scores

TEN = float(np.log(10))
_STEP = 0.01
_ABOVE_ONE = float(np.nextafter(0.0, 1.0))
_SHARE = MetricRange(0.0, 1.0)
_OVERFIT = MetricRange(overfit=HULL)
_AS_DRAWN = MetricRange(0.0, np.inf, overfit=0.0)
_BOUND = MetricRange(overfit=0.0, longer="high")
_UNSEEN = 3.0
_ORDER = (
    "cllr", "min_cllr", "cllr_cal", "eer", "dev_pav", "misleading_same", "misleading_different",
    "strongest_same", "strongest_different", "lr_smallest", "lr_largest", "case_lr",
)  # fmt: skip
_GIVEN = "the map is taken as given: it was not fitted to these trials"
_STRONGEST = "one trial decides, which resampling can lose and never exceed"


def cllr_cal(roc: Roc) -> float:
    """C_llr − C_llr^min, in bits: what calibration loses."""
    return max(0.0, roc.cllr() - roc.min_cllr())


def dev_pav(roc: Roc) -> float:
    """Mean distance |log10 PAV-LR − log10 LR| along the log10 LR axis (Vergeer et al. 2021).

    The area between the PAV points, joined by straight lines, and the diagonal, divided by the
    range that they span. PAV-LRs of 0 and ∞ are left out; of one point it is the distance, of none
    NaN; an LR of 0 or ∞ with another PAV-LR makes it infinite.
    """
    kept = np.isfinite(roc.pav.llr)
    x = np.stack([end[kept] for end in roc.block_ends()], axis=1).ravel() / TEN
    if not x.size:
        return float("nan")
    if not np.isfinite(x).all():
        return float("inf")
    away = np.repeat(roc.pav.llr[kept], 2) / TEN - x
    span = x[-1] - x[0]
    if span == 0:
        return float(abs(away[0]))
    one, other = np.abs(away[:-1]), np.abs(away[1:])
    total = one + other
    squares = np.divide(one**2 + other**2, total, out=np.zeros(total.size), where=total > 0)
    height = np.where(away[:-1] * away[1:] < 0, squares, total) / 2
    return float(np.dot(height, np.diff(x)) / span)


def elub(roc: Roc, steps: Sequence[int], added: float = 1.0) -> tuple[float, float]:
    """How far below and above 0 the data support log10 LRs (ELUB, Vergeer et al. 2016).

    With one rejected target and one accepted nontarget ``added``, the bounds are the last of the
    ``steps`` k, at log10 θ = 0.01·k going out from 0, at which P_miss + θ·P_fa ≤ min(1, θ).
    """
    at = np.searchsorted(roc.scores, thresholds_at(steps))
    missed = np.append(0.0, np.cumsum(roc.target))[at]
    rejected = (np.append(0.0, np.cumsum(roc.equal)) + np.cumsum(roc.between))[at]
    p_miss = (missed + added) / (roc.targets + added)
    accepted = np.maximum(roc.nontargets - rejected, 0.0)
    p_fa = (accepted + added) / (roc.nontargets + added)
    odds = np.power(10.0, _STEP * np.asarray(steps))
    worse = p_miss + odds * p_fa > np.minimum(1.0, odds)
    zero = -steps[0]
    reached = [side.argmax() - 1 if side.any() else side.size - 1
               for side in (worse[zero::-1], worse[zero:])]  # fmt: skip
    return _STEP * max(int(reached[0]), 0), _STEP * max(int(reached[1]), 0)


def thresholds_at(steps: Sequence[int]) -> FloatArray:
    """Natural-log LRs of steps of 0.01 in log10."""
    return np.asarray(steps, float) * _STEP * TEN


@dataclass(frozen=True)
class ForensicBattery(Battery):
    """The numbers of a validation of LLRs; ``steps`` are those of :func:`elub`, ``ends`` the
    highest scores of PAV blocks, at which the statistic must count exactly.
    """

    steps: range = range(1)
    ends: tuple[float, ...] = ()

    @classmethod
    def of(cls, target: FloatArray, nontarget: FloatArray) -> ForensicBattery:
        """What these LLRs need."""
        pav, ordered = Roc.from_scores(target, nontarget).pav, np.sort(nontarget)
        last = np.append(np.searchsorted(ordered, pav.boundaries), ordered.size) - 1
        ends = ordered[last[np.isfinite(pav.llr)]]  # a block of both classes ends with a nontarget
        below, above = (int(np.log10(n.size + 1) / _STEP) for n in (target, nontarget))
        return cls(steps=range(-below, above + 1), ends=tuple(ends.tolist()))

    @property
    def thresholds(self) -> list[float]:
        """Steps of LRs, LRs above 1, and ends of PAV blocks."""
        return [*thresholds_at(self.steps).tolist(), _ABOVE_ONE, *self.ends]

    def measured(self) -> dict[str, MetricSpec]:
        """All metrics by key; the smallest LR by how far it lies below 1."""
        usual = super().measured()
        table = {name: usual[name] for name in ("cllr", "min_cllr", "eer", "eer_raw")}
        own = {
            "cllr_cal": (cllr_cal, "bit", _OVERFIT),
            "dev_pav": (dev_pav, "log10", _AS_DRAWN),
            "misleading_same": (lambda roc: roc.at_threshold(0.0).p_miss, "%", _SHARE),
            "misleading_different": (lambda roc: roc.at_threshold(_ABOVE_ONE).p_fa, "%", _SHARE),
            "lr_smallest": (lambda roc: elub(roc, self.steps)[0], "log10", _BOUND),
            "lr_largest": (lambda roc: elub(roc, self.steps)[1], "log10", _BOUND),
        }
        for name, (read, unit, within) in own.items():
            table[name] = MetricSpec(name, read, unit, float("nan"), within, {})
        return table


@dataclass(frozen=True, eq=False, repr=False)
class ForensicValidation(Tabular):
    """The table of :func:`forensic`: ``result["cllr"]`` is an estimate, and so all others.

    ``scores`` hold the natural-log LRs that were judged, ``roc`` their statistic, ``calibration``
    the map that made them, in words. ``column`` is the system of the file that was judged, and
    ``scores_are`` what it was read as; empty if it was calibrated.
    """

    estimates: tuple[Estimate, ...]
    scores: Scores = field(repr=False)
    roc: Roc = field(repr=False)
    sources: tuple[Source, ...] = ()
    notices: tuple[Notice, ...] = ()
    seed: int = 0
    calibration: str = ""
    column: str = ""
    scores_are: str = ""

    @property
    def beyond_bounds(self) -> int:
        """How many LRs lie beyond the smallest and the largest that the data support.

        The bounds are in steps of 0.01, so an LR less than a step beyond one does not count.
        """
        low, high = (float(self[name].value) for name in ("lr_smallest", "lr_largest"))
        logs = self.scores.scores()[self.scores.is_target | self.scores.is_nontarget] / TEN
        return int(((logs < low - _STEP) | (logs > high + _STEP)).sum())

    @property
    def by_speaker(self) -> list[tuple[str, int, int]]:
        """Same-speaker and different-speaker comparisons of each speaker; none if not known."""
        first, second = self.scores.enrol_speaker, self.scores.test_speaker
        if first is None or second is None:
            return []
        is_same, is_different = self.scores.is_target, self.scores.is_nontarget
        size = len(first.names)
        same = np.bincount(first.codes[is_same], minlength=size)
        # A comparison of two sources counts for both of them, and once where both are one.
        different = np.bincount(first.codes[is_different], minlength=size)
        is_other = is_different & (first.codes != second.codes)
        different += np.bincount(second.codes[is_other], minlength=size)
        counts = zip(first.names.to_list(), same.tolist(), different.tolist(), strict=True)
        return sorted(count for count in counts if any(count[1:]))


def forensic(
    data: Any,
    *,
    scores_are: Units | None = None,
    calibrate: bool = False,
    train: Scores | Map | None = None,
    folds: int = 5,
    case: float | None = None,
    replicates: int | None = None,
    level: float = 0.95,
    seed: int = 0,
    **options: Any,
) -> ForensicValidation:
    """Validate a system of likelihood ratios for forensic use.

    C_llr and its parts, EER, devPAV, misleading evidence, and the smallest and largest LR that the
    data support, with intervals over speakers (or sources, where those are the speakers named).
    LRs are judged as they are, or ``calibrate`` makes them of scores first.

    Parameters
    ----------
    data : path, data frame, Scores or pair of arrays
        Scores of one system with labels; ``options`` are those of :func:`read_scores`.
    scores_are : {"ln", "log10", "lr"}, optional
        What the scores are; needed unless they are calibrated.
    calibrate : bool
        Fit a linear map, cross-fitted by speaker as in :func:`calibrate`.
    train : Scores or map, optional
        Fit the map to this development list of other speakers, or apply an earlier map.
    folds : int
        Groups of speakers for cross-fitting.
    case : float, optional
        Score of the case, in the unit of the scores: its LR is ``result["case_lr"]``.
    replicates : int, optional
        Bootstrap replicates, 1,000 unless given; 0 for no intervals.
    level : float
        Level of the intervals.
    seed : int
        Of all draws.

    Returns
    -------
    ForensicValidation
        Estimates; LRs and distances are in log10.

    Examples
    --------
    >>> import unmask as um
    >>> pair = [1.5, 0.8, 2.0, -0.2], [-1.0, -2.5, 0.3, -1.2, -0.7]
    >>> result = um.forensic(pair, scores_are="log10", replicates=0)
    >>> print(f"{result['cllr'].value:.3f} {result['misleading_different'].value:.2f}")
    0.413 0.20
    """
    fitted = calibrate or train is not None
    if scores_are is None and not fitted:
        wanted = "ln, log10 or lr, or scores to calibrate (--calibrate, --train)"
        raise InputError("scores_are (--scores-are)", wanted, "neither")
    scores = _table(data, scores_are or "ln", options)
    scores.check_classes()
    if len(scores.systems) > 1:
        raise InputError(scores.name, "one system", ", ".join(scores.systems))
    made = calibrated(scores, train, Fitting(folds=folds, seed=seed)) if fitted else None
    llrs = scores if made is None else made.scores
    own, other = llrs.targets(), llrs.nontargets()
    battery = ForensicBattery.of(own, other)
    measured = Analysis.of(battery, replicates, level, seed).of_scores(llrs)
    roc = measured.rocs[0]
    chance = {"eer": 0.5, "cllr": 1.0, "min_cllr": 1.0}
    every = measured.estimates_of()
    numbers = {one.metric: replace(one, chance=chance.get(one.metric)) for one in every}
    numbers |= _ranged(numbers, roc, battery.steps)
    about: dict[str, Any] = {"n": numbers["cllr"].n, "trials": numbers["cllr"].trials}
    for name, worst in (("same", min(0.0, own.min())), ("different", max(0.0, other.max()))):
        none: dict[str, Any] = {"no_interval": _STRONGEST if worst else "no trial misleads"}
        value = float(worst) / TEN if worst else float("nan")
        numbers[f"strongest_{name}"] = Estimate(
            f"strongest_{name}", value, "log10", **none, **about
        )
    turned = inverted_notices(roc, "are H1 (same) and H2 (different) swapped?")
    notices = [*turned, *measured.notices, *(made.notices if made else ())]
    if not fitted:
        notices += unit_notices(llrs, {next(iter(llrs.systems)): roc}, scores_are)
    if case is not None:
        score = natural(np.array([float(case)]), scores_are or "ln", lambda _: "case")
        asked = Sampling(1000 if replicates is None else replicates, level, seed)
        learnt = made.raw if made is not None and train is None else train
        line = None if made is None else made.map
        known = learnt if isinstance(learnt, Scores) else None
        numbers["case_lr"] = case_lr(float(score[0]), line, known, asked, about)
        notices += _beyond(numbers)
    shown = tuple(numbers[name] for name in _ORDER if name in numbers)
    said = "" if made is None else made.sentence
    return ForensicValidation(
        shown,
        llrs,
        roc,
        scores.sources,
        tuple(notices),
        seed,
        said,
        column=next(iter(scores.systems)),
        scores_are="" if made else str(scores_are),
    )


def _table(data: Any, scores_are: Units, options: dict[str, Any]) -> Scores:
    """The scores of files or frames, of a table or of two arrays, as natural logarithms."""
    data = of_arrays(data)
    if not isinstance(data, Scores):
        return read_scores(data, scores_are=scores_are, **options)
    if options:
        raise TypeError(f"no option {', '.join(options)} for a table of scores")
    where = f"{data.name}, row {{}}".format
    logs = {
        name: natural(values, scores_are, lambda row: where(row + 1))
        for name, values in data.systems.items()
    }
    return replace(data, systems=logs)


def unit_notices(scores: Scores, rocs: dict[str, Roc], scores_are: Units | None) -> list[Notice]:
    """A warning for each system whose ``scores`` look like logarithms of the other base: read so,
    they lose less than half as much by calibration.
    """
    other = {"ln": ("log10", TEN, "natural-log"), "log10": ("ln", 1 / TEN, "log10")}
    if scores_are not in other:
        return []
    name, factor, read = other[scores_are]
    notices = []
    for system, roc in rocs.items():
        least, given = roc.min_cllr(), roc.cllr()
        instead = cllr(factor * scores.targets(system), factor * scores.nontargets(system))
        if instead - least < (given - least) / 2 and given - least > _STEP:
            sentence = (
                f"C_llr is {given:.3f} with scores read as {read} LRs and {instead:.3f} read as"
                f" {name}: if they are {name}, say --scores-are {name}"
            )
            notices.append(Notice("units", system, sentence))
    return notices


def _ranged(numbers: dict[str, Estimate], roc: Roc, steps: range) -> dict[str, Estimate]:
    """Intervals within what their numbers can be, and the smallest LR below 1.

    Most samples lack the rare trial that would bring a bound nearer to 1, and resampling cannot
    show it: that end reaches the bound with three more misleading trials, which as many samples
    lack as 95 % (the rule of three).
    """
    ranged = {}
    nearer = dict(zip(("lr_smallest", "lr_largest"), elub(roc, steps, 1 + _UNSEEN), strict=True))
    most = {"lr_smallest": -_STEP * steps[0], "lr_largest": _STEP * steps[-1]}
    for name in ("cllr_cal", *nearer):
        estimate, sign = numbers[name], -1 if name == "lr_smallest" else 1
        made, value, why = estimate.interval, float(estimate.value), estimate.no_interval
        if made is not None and why in ("", UNMOVED):
            low = max(0.0, float(np.nanmin([made.low, value, nearer.get(name, value)])))
            high = min(float(np.nanmax([made.high, value])), most.get(name, np.inf))
            ends = sorted((sign * low + 0.0, sign * high + 0.0))
            made, why = replace(made, low=ends[0], high=ends[1]), ""
        # Adding 0 turns −0 into 0.
        ranged[name] = replace(estimate, value=sign * value + 0.0, interval=made, no_interval=why)
    return ranged


def case_lr(
    score: float, map: Map | None, fitted: Scores | None, asked: Sampling, about: dict[str, Any]
) -> Estimate:
    """The log10 LR that a ``map`` gives to the score of a case and, where it is a line that was
    ``fitted`` here, its interval. Without a map the score is the LR itself.
    """
    llr = score if map is None else float(mapped(map, [np.array([score])])[0])
    estimate = Estimate("case_lr", llr / TEN, "log10", no_interval=_GIVEN, **about)
    if not isinstance(map, Fusion) or fitted is None:
        return estimate
    error, units, method = _standard_error(fitted, map, score)
    if not asked.replicates or units < 2:
        why = NOT_ASKED if units > 1 else "one speaker only"
        return replace(estimate, no_interval=why)
    away = SKEWED * quantile_t(units, asked.level) * error
    ends = (llr - away) / TEN, (llr + away) / TEN
    interval = Interval(*ends, asked.level, f"{method},first order", 0, asked.seed)
    return replace(estimate, interval=interval, no_interval="")


def _standard_error(scores: Scores, line: Fusion, at: float) -> tuple[float, int, str]:
    """Standard error of the LLR that a fitted line gives to a score, first order in the draws of
    speakers (:class:`~.binned_bootstrap.FirstOrder`), their number, and what they are.

    The line solves Σ w·(y − σ(llr))·(s, 1) = 0 with weights that add up to ½ in each class; how a
    speaker moves the LLR at a score follows from the derivative by his or her draws.
    """
    units, _ = units_of(scores)
    sides = []
    for own, values in ((1.0, scores.targets()), (0.0, scores.nontargets())):
        posterior = expit(line.weights[0] * values + line.offset)
        sides.append((values, (own - posterior) / values.size, posterior * (1 - posterior)))
    moments = np.zeros(3)
    for values, _, curve in sides:
        moments += [(curve * values**power).mean() for power in (2, 1, 0)]
    hessian = moments[[0, 1, 1, 2]].reshape(2, 2)
    slope, offset = np.linalg.solve(hessian, [at, 1.0])
    moved = [residual * (slope * values + offset) for values, residual, _ in sides]
    own, other = (one - one.mean() for one in moved)
    size, first, second = sum(units.strata), units.nontarget_first, units.nontarget_second
    by_unit = np.bincount(units.target, own, size) + np.bincount(first, other, size)
    if second is not None:
        by_unit += np.bincount(second, np.where(first == second, 0.0, other), size)
    n = units.count
    variance = float(np.dot(by_unit, by_unit)) * n / max(n - 1, 1)
    return float(np.sqrt(variance)), n, units.method


def _beyond(numbers: dict[str, Estimate]) -> list[Notice]:
    """A warning where the LR of the case is more than the data support."""
    case, low, high = (float(numbers[name].value) for name in ("case_lr", *_ORDER[-3:-1]))
    if low <= case <= high:
        return []
    bound = "largest" if case > high else "smallest"
    limit = high if case > high else low
    sentence = (
        f"the LR 10^{case:.2f} lies beyond the {bound} LR that the data support: report 10^"
        f"{limit:.2f}, or validate with more speakers"
    )
    return [Notice("beyond-bounds", "case", sentence)]
