"""Pool adjacent violators: the best monotone map from scores to log-likelihood ratios."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import isotonic_regression

from unmask.base import FloatArray, IntArray, lazy


@dataclass(frozen=True, eq=False)
class Pav:
    """Blocks of equal oracle LLR, from low scores to high.

    Block 0 reaches down to −inf; block j ≥ 1 begins at ``boundaries[j − 1]``, which belongs to it.
    ``target`` and ``nontarget`` count what was pooled (pseudo-counts of Laplace included);
    the prior removed is that of the real trials.
    """

    boundaries: FloatArray
    target: FloatArray
    nontarget: FloatArray
    total_target: float
    total_nontarget: float

    def with_laplace(self) -> Pav:
        """One target, then one nontarget, added at each end; pooled blocks only pool further."""
        target = np.concatenate([[1.0, 0.0], self.target, [1.0, 0.0]])
        nontarget = np.concatenate([[0.0, 1.0], self.nontarget, [0.0, 1.0]])
        first = first_of_blocks(target, nontarget)
        last = np.append(first[1:], target.size) - 1
        real = (last >= 2) & (first < target.size - 2)
        kept = first[real]
        return replace(
            self,
            boundaries=self.boundaries[kept[1:] - 3],
            target=np.add.reduceat(target, first)[real],
            nontarget=np.add.reduceat(nontarget, first)[real],
        )

    @lazy
    def llr(self) -> FloatArray:
        """Natural-log LLR of each block: logit of its posterior minus logit of the prior; ±inf."""
        with np.errstate(divide="ignore"):
            odds = np.log(self.target) - np.log(self.nontarget)
        return np.asarray(odds - np.log(self.total_target / self.total_nontarget))

    def apply(self, scores: FloatArray) -> FloatArray:
        """The LLR of each score, as a step function of the score."""
        return self.llr[np.searchsorted(self.boundaries, scores, side="right")]


def first_of_blocks(target: FloatArray, nontarget: FloatArray) -> IntArray:
    """Isotonic regression of target/(target + nontarget) over consecutive score ranges, none of
    them empty: the index of the first range of each block of equal fit.

    A block after the first can only begin where targets lie: pure nontargets would violate the
    order with the block before them.
    """
    kind = np.where(nontarget == 0, 1, np.where(target == 0, 0, 2))
    change = (kind[1:] != kind[:-1]) | (kind[1:] == 2)
    runs = np.concatenate([[0], np.flatnonzero(change) + 1])
    weight = np.add.reduceat(target + nontarget, runs)
    share = np.add.reduceat(target, runs) / weight
    fitted = isotonic_regression(share, weights=weight)
    return np.asarray(runs[fitted.blocks[:-1]], dtype=np.int64)
