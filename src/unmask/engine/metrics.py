"""The public functions: two arrays of scores in, one number out. ``target`` are scores of trials of
one speaker, ``nontarget`` those of two; they may be infinite, but neither NaN nor missing.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, Tabular, as_array, as_numbers, as_scores
from unmask.engine import information
from unmask.engine.operating import Cost
from unmask.engine.roc import Roc
from unmask.errors import InputError, UnmaskWarning
from unmask.estimate import Estimate, Notice

LEAST_DIFFERENCE = 1e-3
ALONE = "numbers alone: evaluate gives the intervals of these scores"
CLEARLY_SWAPPED = 0.75
_FEW_LABELS = 10


def _roc(target: npt.ArrayLike, nontarget: npt.ArrayLike, **options: Any) -> Roc:
    """The statistic of two classes of scores; scores with labels are refused."""
    refuse_labels(target, nontarget)
    return Roc.from_scores(target, nontarget, **options)


def refuse_labels(target: npt.ArrayLike, nontarget: npt.ArrayLike) -> None:
    """Refuse (scores, labels) and (labels, scores), the order of other packages: one of the two
    holds nothing but 0 and 1, both of them, and the other is as long and has other values. Hard
    decisions of both classes are scores.
    """
    one, other = as_array(target, "target"), as_array(nontarget, "nontarget")
    if one.shape != other.shape or one.ndim != 1 or one.size < _FEW_LABELS:
        return
    if _are_binary(one) == _are_binary(other):
        return
    labels = one if _are_binary(one) else other
    if labels.min() != labels.max():
        raise InputError(
            "expected scores of targets and scores of nontargets, found scores and labels: give"
            " scores[labels == 1], scores[labels == 0]"
        )


def _are_binary(values: npt.NDArray[Any]) -> bool:
    if values.dtype.kind not in "biuf" or not (values[0] == 0 or values[0] == 1):
        return False
    return bool(np.isin(values, (0, 1)).all())


def eer(target: npt.ArrayLike, nontarget: npt.ArrayLike, *, estimator: str = "rocch") -> float:
    """Equal error rate of ``target`` and ``nontarget`` scores, as a fraction.

    ``estimator`` is ``rocch``: on the ROC convex hull, which is the largest minimum Bayes error
    over all priors and never above one half (Brümmer 2010); or ``raw``: where the ROC polygon
    crosses Pmiss = Pfa.
    """
    roc = _roc(target, nontarget)
    raw = roc.eer(estimator="raw")
    if raw > CLEARLY_SWAPPED:
        warnings.warn(
            f"eer: targets score below nontargets (raw EER {100 * raw:.0f} %): expected"
            " eer(target, nontarget), are they swapped?",
            UnmaskWarning,
            stacklevel=3,
        )
    return roc.eer(estimator=estimator)


def min_dcf(
    target: npt.ArrayLike,
    nontarget: npt.ArrayLike,
    *,
    p_target: float = 0.01,
    c_miss: float = 1.0,
    c_fa: float = 1.0,
) -> float:
    """Minimum normalised detection cost of ``target`` and ``nontarget`` scores (NIST).

    min_τ [Cmiss·p·Pmiss(τ) + Cfa·(1−p)·Pfa(τ)] / min(Cmiss·p, Cfa·(1−p)) over all thresholds τ,
    ±inf included; p is ``p_target``, the prior of a target, ``c_miss`` the cost of a miss and
    ``c_fa`` that of a false alarm.
    """
    roc = _roc(target, nontarget)
    return roc.min_dcf(p_target=p_target, c_miss=c_miss, c_fa=c_fa)


def act_dcf(
    target: npt.ArrayLike,
    nontarget: npt.ArrayLike,
    *,
    p_target: float = 0.01,
    c_miss: float = 1.0,
    c_fa: float = 1.0,
) -> float:
    """The cost of :func:`min_dcf` at the Bayes threshold log(Cfa(1−p)/(Cmiss·p)).

    ``target`` and ``nontarget`` scores are read as natural-log LLRs; ``p_target``, ``c_miss`` and
    ``c_fa`` are the prior and the costs.
    """
    bayes = Cost(p_target, c_miss, c_fa).bayes_threshold
    roc = _roc(target, nontarget, thresholds=[bayes])
    return roc.act_dcf(p_target=p_target, c_miss=c_miss, c_fa=c_fa)


def cllr(target: npt.ArrayLike, nontarget: npt.ArrayLike) -> float:
    """C_llr in bits (Brümmer and du Preez 2006): ½(mean log2(1+e^−a) + mean log2(1+e^b)).

    a are the ``target`` and b the ``nontarget`` scores, read as natural-log LLRs.
    """
    a, b = as_scores(target, "target"), as_scores(nontarget, "nontarget")
    mean = information.summed_softplus(-a) / a.size + information.summed_softplus(b) / b.size
    return float(mean / (2 * np.log(2)))


def min_cllr(target: npt.ArrayLike, nontarget: npt.ArrayLike) -> float:
    """C_llr in bits of the oracle LLRs of ``target`` and ``nontarget`` scores: PAV, ties pooled, no
    Laplace (Brümmer and du Preez 2006).
    """
    return _roc(target, nontarget).min_cllr()


def d_sys(target: npt.ArrayLike, nontarget: npt.ArrayLike, *, estimator: str = "pav") -> float:
    """Linkability D_sys of ``target`` (mated) and ``nontarget`` scores, in 0 … 1.

    The global measure of Gomez-Barrero et al. 2017, as Maouche et al. 2020 use it for voices, is
    the mean over mated scores of their local measure: D_sys = ∫ p(s|mated)·D(s) ds, D(s) =
    max(0, 2·ω·LR(s)/(1 + ω·LR(s)) − 1), LR(s) = p(s|mated)/p(s|non-mated), here at even priors,
    ω = 1. ``estimator`` is ``pav``: likelihood ratios of the PAV blocks, no bins; or ``histogram``:
    min(mated/10, 100) bins, the VoicePrivacy convention, from 20 mated scores on.
    """
    if estimator == "pav":
        return _roc(target, nontarget).d_sys()
    if estimator == "histogram":
        return information.d_sys_histogram(
            as_scores(target, "target"), as_scores(nontarget, "nontarget")
        )
    raise InputError("D_sys estimator", "pav or histogram", estimator)


def tpr_at_fpr(target: npt.ArrayLike, nontarget: npt.ArrayLike, *, fpr: float = 1e-3) -> float:
    """Share of ``target`` scores accepted where that of ``nontarget`` scores is ``fpr``."""
    return _roc(target, nontarget).tpr_at_fpr(fpr)


def ece(target: npt.ArrayLike, nontarget: npt.ArrayLike, *, log_odds: npt.ArrayLike) -> FloatArray:
    """Empirical cross-entropy in bits of ``target`` and ``nontarget`` scores read as LLRs, at each
    of the prior ``log_odds`` (Noé 2022, eq. 11; natural logarithms).
    """
    return information.ece(
        as_scores(target, "target"),
        as_scores(nontarget, "nontarget"),
        np.atleast_1d(as_numbers(log_odds, "log_odds")),
    )


@dataclass(frozen=True, repr=False)
class Zebra(Tabular):
    """Privacy disclosure of a set of scores: expected (``d_ece``, bits), worst case (``l_w``, base
    10) and its ``tag``; the same of the negated score. :func:`zebra` makes it.
    """

    d_ece: float
    l_w: float
    tag: str
    targets: int
    nontargets: int
    negated_d_ece: float
    negated_l_w: float
    notices: tuple[Notice, ...] = ()

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """D_ECE, l_w and tag."""
        n = {"target": self.targets, "nontarget": self.nontargets}
        made = partial(Estimate, n=n, no_interval=ALONE)
        return (
            made("d_ece", self.d_ece, "bit", chance=0.0),
            made("l_w", self.l_w, chance=0.0),
            made("tag", self.tag),
        )


def zebra(target: npt.ArrayLike, nontarget: npt.ArrayLike) -> Zebra:
    """ZEBRA's D_ECE (eq. 13), l_w (5.2) and tag (Table 1) of Noé 2022, of ``target`` and
    ``nontarget`` scores; the negated score is always tried as well.
    """
    return zebra_of(_roc(target, nontarget))


def zebra_of(roc: Roc) -> Zebra:
    """ZEBRA's numbers of a statistic ``roc`` that has been counted already."""
    negated = roc.negated()
    l_w = roc.l_w()
    return Zebra(
        d_ece=roc.d_ece(),
        l_w=l_w,
        tag=information.tag(l_w),
        targets=round(roc.targets),
        nontargets=round(roc.nontargets),
        negated_d_ece=negated.d_ece(),
        negated_l_w=negated.l_w(),
        notices=negated_notices(roc, negated),
    )


def negated_notices(roc: Roc, negated: Roc | None = None) -> tuple[Notice, ...]:
    """Say so if scores of the other sign, ``negated``, disclose more than those of ``roc``."""
    negated = negated or roc.negated()
    d_ece, of_negated = roc.d_ece(), negated.d_ece()
    if of_negated <= d_ece + LEAST_DIFFERENCE:
        return ()
    sentence = (
        f"the negated score discloses more: D_ECE {of_negated:.3f} bit instead of {d_ece:.3f}, "
        f"EER {100 * negated.eer():.2f} % instead of {100 * roc.eer():.2f} %; "
        "same-speaker scores lie below different-speaker scores"
    )
    return (Notice("negated", "", sentence),)
