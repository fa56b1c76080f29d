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
from unmask.engine.operating import Cost, as_read, crossing_marks
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
    """Equal error rate: where as many targets are missed as nontargets are accepted.

    On the ROC convex hull it is the largest minimum Bayes error over all priors and never above one
    half (Brümmer 2010). Toolkits have other rules; ``docs/conventions.md`` compares them.

    Parameters
    ----------
    target, nontarget : array-like
        Scores of trials of one speaker and of two.
    estimator : str
        ``rocch``: on the hull; ``raw``: where the ROC polygon crosses Pmiss = Pfa;
        ``kaldi``, ``speechbrain``, ``asvspoof``: by the rule of that toolkit.

    Returns
    -------
    float
        A fraction.

    Examples
    --------
    >>> import unmask as um
    >>> um.eer([1.0, 2.0, 3.0], [0.0, 1.5])
    0.2
    >>> um.eer([1.0, 2.0, 3.0], [0.0, 1.5], estimator="kaldi")
    0.3333333333333333
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
    if estimator in ("kaldi", "speechbrain"):
        classes = as_scores(target, "target"), as_scores(nontarget, "nontarget")
        own, others = (as_read(scores, estimator) for scores in classes)
        roc = Roc.from_scores(own, others, thresholds=crossing_marks(own, others))
    return roc.eer(estimator=estimator)


def min_dcf(
    target: npt.ArrayLike,
    nontarget: npt.ArrayLike,
    *,
    p_target: float = 0.01,
    c_miss: float = 1.0,
    c_fa: float = 1.0,
) -> float:
    """Minimum normalised detection cost (NIST).

    min_τ [Cmiss·p·Pmiss(τ) + Cfa·(1−p)·Pfa(τ)] / min(Cmiss·p, Cfa·(1−p)) over all thresholds τ,
    ±inf included.

    Parameters
    ----------
    target, nontarget : array-like
        Scores of trials of one speaker and of two.
    p_target : float
        Prior p of a target.
    c_miss, c_fa : float
        Costs of a miss and of a false alarm.

    Returns
    -------
    float
        1 is what a system without information has.

    Examples
    --------
    >>> import unmask as um
    >>> um.min_dcf([1.0, 2.0, 3.0], [0.0, 1.5], p_target=0.5)
    0.3333333333333333
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

    Parameters
    ----------
    target, nontarget : array-like
        Scores, read as natural-log likelihood ratios.
    p_target, c_miss, c_fa : float
        Prior and costs of :func:`min_dcf`.

    Returns
    -------
    float
        Above the minimum where scores are badly calibrated.

    Examples
    --------
    >>> import unmask as um
    >>> um.act_dcf([1.0, 2.0, -3.0], [-2.0, -1.5], p_target=0.5)
    0.3333333333333333
    """
    bayes = Cost(p_target, c_miss, c_fa).bayes_threshold
    roc = _roc(target, nontarget, thresholds=[bayes])
    return roc.act_dcf(p_target=p_target, c_miss=c_miss, c_fa=c_fa)


def cllr(target: npt.ArrayLike, nontarget: npt.ArrayLike) -> float:
    """C_llr in bits (Brümmer and du Preez 2006): ½(mean log2(1+e^−a) + mean log2(1+e^b)).

    Parameters
    ----------
    target, nontarget : array-like
        The scores a and b, read as natural-log likelihood ratios.

    Returns
    -------
    float
        1 bit is what scores of 0 have.

    Examples
    --------
    >>> import unmask as um
    >>> um.cllr([0.0, 0.0], [0.0])
    1.0
    """
    a, b = as_scores(target, "target"), as_scores(nontarget, "nontarget")
    mean = information.summed_softplus(-a) / a.size + information.summed_softplus(b) / b.size
    return float(mean / (2 * np.log(2)))


def min_cllr(target: npt.ArrayLike, nontarget: npt.ArrayLike) -> float:
    """C_llr in bits after the best monotone calibration (Brümmer and du Preez 2006).

    Parameters
    ----------
    target, nontarget : array-like
        Scores of trials of one speaker and of two; PAV pools ties first, without Laplace.

    Returns
    -------
    float
        Between 0 and 1 bit.

    Examples
    --------
    >>> import unmask as um
    >>> round(um.min_cllr([1.0, 2.0, 3.0], [0.0, 1.5]), 3)
    0.405
    """
    return _roc(target, nontarget).min_cllr()


def d_sys(target: npt.ArrayLike, nontarget: npt.ArrayLike, *, estimator: str = "pav") -> float:
    """Linkability D_sys (Gomez-Barrero et al. 2017; for voices Maouche et al. 2020).

    ∫ p(s|mated)·max(0, 2·ω·LR(s)/(1 + ω·LR(s)) − 1) ds with LR(s) = p(s|mated)/p(s|non-mated) and
    even priors, ω = 1. It is not the Linkability of Vauquier et al. 2025.

    Parameters
    ----------
    target, nontarget : array-like
        Scores of mated and non-mated trials.
    estimator : str
        ``pav``: likelihood ratios of the PAV blocks, no bins; ``histogram``: min(mated/10, 100)
        bins, the VoicePrivacy convention, from 20 mated scores on.

    Returns
    -------
    float
        0 (unlinkable) to 1.

    Examples
    --------
    >>> import unmask as um
    >>> round(um.d_sys([1.0, 2.0, 3.0], [0.0, 1.5]), 3)
    0.667
    """
    if estimator not in ("pav", "histogram"):
        raise InputError("D_sys estimator", "pav or histogram", estimator)
    if estimator == "pav":
        return _roc(target, nontarget).d_sys()
    own, others = as_scores(target, "target"), as_scores(nontarget, "nontarget")
    marks = {"histogram": information.edges_of_scores(own, others)}
    return Roc.from_scores(own, others, marks=marks).d_sys(estimator=estimator)


def tpr_at_fpr(target: npt.ArrayLike, nontarget: npt.ArrayLike, *, fpr: float = 1e-3) -> float:
    """Share of targets accepted at a false-positive rate, on the ROC polygon.

    Parameters
    ----------
    target, nontarget : array-like
        Scores of trials of one speaker and of two.
    fpr : float
        Share of nontargets accepted.

    Returns
    -------
    float
        A fraction; without information it is ``fpr``.

    Examples
    --------
    >>> import unmask as um
    >>> round(um.tpr_at_fpr([1.0, 2.0, 3.0], [0.0, 1.5], fpr=0.5), 3)
    1.0
    """
    return _roc(target, nontarget).tpr_at_fpr(fpr)


def ece(target: npt.ArrayLike, nontarget: npt.ArrayLike, *, log_odds: npt.ArrayLike) -> FloatArray:
    """Empirical cross-entropy in bits (Noé 2022, eq. 11).

    Parameters
    ----------
    target, nontarget : array-like
        Scores, read as natural-log likelihood ratios.
    log_odds : array-like
        Prior log-odds, natural logarithms.

    Returns
    -------
    array
        One value for each prior; at even odds it is C_llr.

    Examples
    --------
    >>> import unmask as um
    >>> um.ece([0.0], [0.0], log_odds=0.0)
    array([1.])
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
    """ZEBRA's D_ECE (eq. 13), l_w (5.2) and tag (Table 1) of Noé 2022.

    Parameters
    ----------
    target, nontarget : array-like
        Scores of trials of one speaker and of two; the negated score is always tried as well.

    Returns
    -------
    Zebra
        Expected and worst-case disclosure and the tag.

    Examples
    --------
    >>> import unmask as um
    >>> um.zebra([1.0, 2.0, 3.0], [0.0, 1.5]).tag
    'A'
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


def inverted_notices(
    roc: Roc, ask: str = "are higher scores more similar, and are the labels right?"
) -> tuple[Notice, ...]:
    """The same in the words of verification, where one would ``ask`` what went wrong; scores that
    are all equal are told as well.
    """
    # Thresholds stand among the scores as well, without trials at them.
    used = np.flatnonzero((roc.target > 0) | (roc.equal > 0))
    if used.size == 1 and not (roc.between > 0).any():
        sentence = f"all scores are {roc.scores[used[0]]:g}: they tell nobody apart"
        return (Notice("constant", "", sentence),)
    told = negated_notices(roc, turned := roc.negated())
    rate = f"EER {100 * turned.eer():.2f} % with the sign turned"
    return (Notice("inverted", "", f"scores look inverted ({rate}): {ask}"),) if told else ()
