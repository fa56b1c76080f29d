"""Information measures in bits: C_llr, empirical cross-entropy, ZEBRA's disclosure, D_sys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, weighted_sum
from unmask.engine.operating import Pav
from unmask.errors import InputError

_CHUNK = 1 << 15
_PRODUCT_BELOW = 40.0
_SERIES_BELOW = 0.5
_SERIES = (-691 / 1307674368000, 1 / 47900160, -1 / 1209600, 1 / 30240, -1 / 720, 1 / 12)
LARGEST_D_ECE = 1 / (2 * np.log(2))
TAGS = ((1.0, "A"), (2.0, "B"), (4.0, "C"), (5.0, "D"), (6.0, "E"))


def softplus(x: FloatArray) -> FloatArray:
    """log(1 + e^x) without overflow."""
    loss = np.abs(x)
    np.negative(loss, out=loss)
    np.exp(loss, out=loss)
    np.log1p(loss, out=loss)
    loss += np.maximum(x, 0.0)
    return loss


def summed_softplus(x: FloatArray, weights: FloatArray | None = None) -> float:
    """Σ w·log(1 + e^x), in pieces that stay in the cache."""
    total = 0.0
    for start in range(0, x.size, _CHUNK):
        piece = x[start : start + _CHUNK]
        if weights is not None:
            total += weighted_sum(softplus(piece), weights[start : start + _CHUNK])
        elif piece.size == _CHUNK and piece.max() < _PRODUCT_BELOW:
            total += _log_of_product(np.exp(piece) + 1.0)
        else:
            with np.errstate(over="ignore"):
                total += float(softplus(piece).sum())
    return total


class SummedSoftplus:
    """Σ log(1 + e^x) of numbers that arrive in blocks: the bits of :func:`summed_softplus`."""

    def __init__(self) -> None:
        self._total = 0.0
        self._rest = np.zeros(0)

    def add(self, x: FloatArray) -> None:
        """Put further numbers in."""
        x = np.concatenate([self._rest, x])
        whole = x.size - x.size % _CHUNK
        for start in range(0, whole, _CHUNK):
            self._total += summed_softplus(x[start : start + _CHUNK])
        self._rest = x[whole:].copy()

    def added(self, blocks: Iterable[FloatArray]) -> Iterator[FloatArray]:
        """The same blocks, put in on the way."""
        for block in blocks:
            self.add(block)
            yield block

    @property
    def total(self) -> float:
        """The sum so far."""
        return self._total + summed_softplus(self._rest)


def _log_of_product(factors: FloatArray) -> float:
    """Σ log of factors 1 + e^x, sixteen at a time, which x < 40 keeps from overflow."""
    return float(np.log(factors.reshape(16, -1).prod(axis=0)).sum())


def ece(target: FloatArray, nontarget: FloatArray, log_odds: FloatArray) -> FloatArray:
    """Empirical cross-entropy of LLRs at prior log-odds (Noé 2022, eq. 11), in bits.

    ECE(π) = π·mean log2(1 + e^−(a + logit π)) + (1 − π)·mean log2(1 + e^(b + logit π)).
    """
    prior = 1 / (1 + np.exp(-log_odds))
    hits = _shifted_softplus(-target, -log_odds) / target.size
    misses = _shifted_softplus(nontarget, log_odds) / nontarget.size
    return np.asarray((prior * hits + (1 - prior) * misses) / np.log(2))


def _shifted_softplus(x: FloatArray, shifts: FloatArray) -> FloatArray:
    """Σ log(1 + e^(x + s)) for every shift s; e^x is taken once where nothing overflows."""
    totals = np.zeros(shifts.size)
    largest, factors = shifts.max(initial=-np.inf), np.exp(shifts)
    for start in range(0, x.size, _CHUNK):
        piece = x[start : start + _CHUNK]
        if piece.size == _CHUNK and piece.max() + largest < _PRODUCT_BELOW:
            powers = np.exp(piece)
            totals += [_log_of_product(powers * factor + 1.0) for factor in factors]
        else:
            with np.errstate(over="ignore"):
                totals += [softplus(piece + shift).sum() for shift in shifts]
    return totals


def prior_ece(log_odds: FloatArray) -> FloatArray:
    """Empirical cross-entropy of no evidence at all (Noé 2022, eq. 12): the prior's entropy."""
    nothing = np.zeros(1)
    return ece(nothing, nothing, log_odds)


def oracle_ece(pav: Pav, log_odds: FloatArray) -> FloatArray:
    """Empirical cross-entropy of the oracle LLRs, from the PAV blocks."""
    shifted = pav.llr[:, None] + log_odds[None, :]
    prior = 1 / (1 + np.exp(-log_odds))
    hits = _mean(pav.target, pav.total_target, softplus(-shifted).T)
    misses = _mean(pav.nontarget, pav.total_nontarget, softplus(shifted).T)
    return np.asarray((prior * hits + (1 - prior) * misses) / np.log(2))


def min_cllr(pav: Pav) -> float:
    """C_llr of the oracle LLRs in bits."""
    hits = _mean(pav.target, pav.total_target, softplus(-pav.llr))
    misses = _mean(pav.nontarget, pav.total_nontarget, softplus(pav.llr))
    return float((hits + misses) / (2 * np.log(2)))


def z(llr: npt.ArrayLike) -> FloatArray:
    """Z(l) = ½ + (l − (e^l − 1))/(e^l − 1)²; Z(0) = 0, Z(+inf) = ½, Z(−inf) = −inf.

    With c = 1/(e^l − 1) − 1/l + ½ it reads l/4 + (1 − l)·c + l·c², which a short series of c
    makes exact near 0.
    """
    values = np.asarray(llr, dtype=np.float64)
    result = np.empty(values.shape)
    near = np.abs(values) < _SERIES_BELOW
    x = values[near]
    c = x * np.polyval(_SERIES, x * x)
    result[near] = x / 4 + (1 - x) * c + x * c * c
    x = values[~near]
    bounded = np.minimum(x, 700.0)
    inverse = 1 / np.expm1(bounded)
    result[~near] = 0.5 - inverse + np.where(x > 700.0, 0.0, x * inverse * inverse)
    return result


def expected_disclosure(target: FloatArray, nontarget: FloatArray) -> float:
    """(mean Z(a) over targets + mean Z(−b) over nontargets)/(2 ln 2) of any LLRs, in bits."""
    return float((z(target).mean() + z(-nontarget).mean()) / (2 * np.log(2)))


def d_ece(pav: Pav) -> float:
    """Expected disclosure of the oracle LLRs (Noé 2022, eq. 13), 0 … 0.7213 bit."""
    hits = _mean(pav.target, pav.total_target, z(pav.llr))
    misses = _mean(pav.nontarget, pav.total_nontarget, z(-pav.llr))
    return max(0.0, float((hits + misses) / (2 * np.log(2))))


def l_w(pav_laplace: Pav) -> float:
    """Worst-case disclosure: largest |oracle LLR| with Laplace, base 10 (Noé 2022, 5.2)."""
    return float(np.abs(pav_laplace.llr).max() / np.log(10))


def tag(l_w: float) -> str:
    """Categorical tag of a worst-case disclosure (Noé 2022, Table 1)."""
    if l_w == 0:
        return "0"
    return next((name for bound, name in TAGS if l_w < bound), "F")


def d_sys(pav: Pav) -> float:
    """∫ p(s|mated)·max(0, 2·LR/(1 + LR) − 1) ds with the LR of each PAV block."""
    return float(_mean(pav.target, pav.total_target, np.maximum(0.0, np.tanh(pav.llr / 2))))


def histogram_edges(targets: int, low: float, high: float) -> FloatArray:
    """Edges of the bins of the VoicePrivacy convention: min(mated/10, 100) equal ones over all
    scores. One bin would say 0 whatever the scores are.
    """
    bins = min(targets // 10, 100)
    if bins < 2:
        actual = f"{targets}: use estimator pav"
        raise InputError("D_sys by histogram", "20 mated scores or more", actual)
    if not np.isfinite([low, high]).all():
        raise InputError("D_sys by histogram needs finite scores: use estimator pav")
    return np.linspace(low, high, bins + 1)


def edges_of_scores(target: FloatArray, nontarget: FloatArray) -> FloatArray:
    """The same of scores in memory."""
    low, high = min(target.min(), nontarget.min()), max(target.max(), nontarget.max())
    return histogram_edges(target.size, float(low), float(high))


def d_sys_of_bins(edges: FloatArray, target: FloatArray, nontarget: FloatArray) -> float:
    """D_sys of counts in bins, those at the ends halved by the trapezoidal rule."""
    if edges[0] == edges[-1]:
        return 0.0
    width = np.diff(edges)
    mated, other = (count / count.sum() / width for count in (target, nontarget))
    only_mated = (other == 0) & (mated > 0)
    ratio = np.divide(mated, other, out=np.ones(width.size), where=other > 0)
    local = np.where(only_mated, 1.0, np.maximum(0.0, 2 * ratio / (1 + ratio) - 1))
    return float(np.trapezoid(local * mated, (edges[:-1] + edges[1:]) / 2))


def _mean(count: FloatArray, total: float, values: FloatArray) -> FloatArray:
    """Mean over trials of a value given per block; blocks without a trial do not count."""
    real = count > 0
    return np.asarray((values[..., real] * (count[real] / total)).sum(axis=-1))
