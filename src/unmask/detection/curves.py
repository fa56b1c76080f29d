"""The numbers behind the detection figures. Figures draw these and compute nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


@dataclass(frozen=True)
class Histogram:
    """Densities of target and nontarget scores over common ``edges`` (len = bins + 1).

    Scores of plus or minus infinity lie in no bin; ``infinite`` says how many there were.
    """

    edges: Array
    target: Array
    nontarget: Array
    eer_threshold: float
    infinite: int


@dataclass(frozen=True)
class DetCurve:
    """Vertices (Pfa, Pmiss) of the ROC polygon and of its convex hull, thinned for drawing."""

    p_fa: Array
    p_miss: Array
    hull_p_fa: Array
    hull_p_miss: Array
    eer: float
    eer_raw: float
    min_dcf_p_fa: float
    min_dcf_p_miss: float
    p_target: float


@dataclass(frozen=True)
class PavMap:
    """PAV blocks from low to high: the scores each covers, its oracle LLR (natural log, ±inf)."""

    low: Array
    high: Array
    llr: Array
    targets: Array
    nontargets: Array


@dataclass(frozen=True)
class EceProfile:
    """Empirical cross-entropy in bits over the prior log-odds (natural log)."""

    log_odds: Array
    prior: Array
    oracle: Array
    actual: Array


@dataclass(frozen=True)
class Reliability:
    """Calibration plot: scores read as LLRs, binned; mean predicted posterior against the share of
    targets found (both at prior one half), with the count in each bin.
    """

    predicted: Array
    observed: Array
    low: Array
    high: Array
    count: Array
