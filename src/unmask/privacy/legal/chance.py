"""What an attacker without any information reaches in Singling Out."""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv

from unmask.base import FloatArray, IntArray

_NODES = 64


def calibrated_chance(count: float, rank: int, entries: float) -> float:
    """Probability that exactly one of N exchangeable test entries passes a calibrated threshold.

    The threshold lies midway between the k-th and the (k+1)-th best of C calibration scores. Let m
    be the share of scores above it. With y the share above the (k+1)-th, Beta(k+1, C−k), and v the
    largest of k uniform numbers, m = y·(1 + v)/2 where scores are evenly spread about the
    threshold, and the probability is E N·m·(1 − m)^(N−1). For large N and C = k·N it is
    (k/(k+1))^k · 2k/(2k+1) · (k/(k+1) + 1/(2k+1)): 5/18 for k = 1, 0.308 for k = 2, 0.350 for
    k = 9. Integrated by Gauss and Legendre's rule over the probabilities of y and v.
    """
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    at, weights = (nodes + 1) / 2, weights / 2
    above = betaincinv(rank + 1, entries - rank, at)[:, None]
    share = above * (1 + at ** (1 / rank)) / 2
    return float(weights @ (count * share * (1 - share) ** (count - 1)) @ weights)


def mean_calibrated_chance(
    per_speaker: IntArray, speakers: IntArray, counts: IntArray
) -> FloatArray:
    """The same for every N, averaged over enrolment speakers.

    Of the test speakers with ``per_speaker`` conversations each, a draw holds the enrolment speaker
    with k calibration entries, and N − 1 others with as many as they have on average.
    """
    ranks, times = np.unique(per_speaker[speakers] - 1, return_counts=True)
    everyone, total = len(per_speaker), int((per_speaker - 1).sum())
    found = np.empty((len(counts), len(ranks)))
    for c, count in enumerate(counts):
        for r, rank in enumerate(ranks):
            others = (total - rank) / max(everyone - 1, 1)
            found[c, r] = calibrated_chance(int(count), int(rank), rank + (count - 1) * others)
    return np.asarray(found @ times / times.sum())
