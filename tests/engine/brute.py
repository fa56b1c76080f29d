"""Definitions written out trial by trial, to check the engine against."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np


def polygon(target, nontarget):
    """Points (Pfa, Pmiss) at every distinct score and at ±inf, as exact fractions."""
    distinct = sorted(set(target) | set(nontarget))
    points = [(Fraction(1), Fraction(0))]
    for score in distinct:
        p_fa = Fraction(sum(s > score for s in nontarget), len(nontarget))
        p_miss = Fraction(sum(s <= score for s in target), len(target))
        points.append((p_fa, p_miss))
    return points


def crossing(points):
    """Where a polygon of exact points crosses Pmiss = Pfa."""
    for (fa0, miss0), (fa1, miss1) in pairwise(points):
        if miss1 >= fa1:
            gap0, gap1 = miss0 - fa0, miss1 - fa1
            if gap1 == gap0:
                return miss0
            return miss0 + -gap0 / (gap1 - gap0) * (miss1 - miss0)
    raise AssertionError("a polygon always crosses")


def hull_eer(target, nontarget):
    """Largest minimum Bayes error over priors: the maximum over p of a minimum of lines.

    The maximum of a concave piecewise-linear function lies where two of its lines meet.
    """
    lines = {(fa, miss) for fa, miss in polygon(target, nontarget)}
    priors = {Fraction(0), Fraction(1)}
    for fa0, miss0 in lines:
        for fa1, miss1 in lines:
            slope = (miss0 - fa0) - (miss1 - fa1)
            if slope:
                p = (fa1 - fa0) / slope
                if 0 <= p <= 1:
                    priors.add(p)
    return max(min(p * miss + (1 - p) * fa for fa, miss in lines) for p in priors)


def min_dcf(target, nontarget, p, c_miss=1.0, c_fa=1.0):
    costs = [
        c_miss * p * float(miss) + c_fa * (1 - p) * float(fa)
        for fa, miss in polygon(target, nontarget)
    ]
    return min(costs) / min(c_miss * p, c_fa * (1 - p))


def oracle_llrs(target, nontarget, laplace=False):
    """PAV by repeated pooling of exact fractions; LLR of every target, then of every nontarget."""
    distinct = sorted(set(target) | set(nontarget))
    blocks = [[sum(s == x for s in target), sum(s == x for s in nontarget), [x]] for x in distinct]
    if laplace:
        blocks = [[1, 0, []], [0, 1, []], *blocks, [1, 0, []], [0, 1, []]]
    done = False
    while not done:
        done = True
        for i in range(len(blocks) - 1):
            (a, b, left), (c, d, right) = blocks[i], blocks[i + 1]
            if Fraction(a, a + b) >= Fraction(c, c + d):
                blocks[i : i + 2] = [[a + c, b + d, left + right]]
                done = False
                break
    prior = math.log(len(target) / len(nontarget))
    result = {}
    for a, b, scores in blocks:
        for score in scores:
            result[score] = math.inf if b == 0 else -math.inf if a == 0 else math.log(a / b) - prior
    return [result[s] for s in target], [result[s] for s in nontarget]


def softplus(x):
    return x if x > 700 else math.log1p(math.exp(x))


def cllr(target, nontarget):
    hits = sum(softplus(-s) for s in target) / len(target)
    misses = sum(softplus(s) for s in nontarget) / len(nontarget)
    return (hits + misses) / (2 * math.log(2))


def repeated(scores, times):
    """Each score as often as its integer weight says."""
    return np.repeat(np.asarray(scores, dtype=float), times)
