"""The speaker bootstrap of trials that nobody kept: first order in the draws.

With m_k draws of speaker k, a replicate's targets in a bin are Σ m_k·T_k, exactly. Its nontargets
are Σ m_a·m_b·N_ab; with m = 1 + d this is N + Σ d_k·G_k plus products of two d, where G_k counts
the nontargets of speaker k with anyone. These products are smaller by about the root of the number
of speakers and are left out: a table of speakers × bins takes the place of all trials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from unmask.arrays import FloatArray
from unmask.detection.bootstrap import Progress, child_of, drawn
from unmask.detection.replicates import Replicates
from unmask.detection.roc import Roc
from unmask.errors import InputError
from unmask.scoring.bins import separable
from unmask.scoring.by_speaker import BySpeaker
from unmask.scoring.plan import ranges_of

METHOD = "speaker (first order)"
FEW = 60
_ENDS = 24
_CELLS = 1 << 24
_FEWEST, _MOST = 64, 512
_TOGETHER = 50


def edges_of(roc: Roc, thresholds: tuple[float, ...], *, speakers: int) -> FloatArray:
    """Edges of bins that keep what metrics look at.

    The corners of the ROC's hull come first, all near its ends: with them the binned statistic has
    the same hull. Then thresholds in even steps of Pmiss and in even ratios of Pfa, where the hull
    of a replicate may have its corners.
    """
    most = int(np.clip(_CELLS // speakers, _FEWEST, _MOST))
    corners = _thinned(roc.pav.boundaries, most // 2)
    rejected = np.cumsum(roc.target) - roc.target
    passed = roc.nontargets - (np.cumsum(roc.between[:-1] + roc.equal) - roc.equal)
    misses = np.linspace(0, roc.targets, most // 4)
    alarms = np.geomspace(1, roc.nontargets, most // 4)
    last = roc.scores.size - 1
    at = np.concatenate([np.searchsorted(rejected, misses), np.searchsorted(-passed, -alarms)])
    even = roc.scores[np.minimum(at, last)]
    edges = np.concatenate([corners, even, np.asarray(thresholds, np.float64)])
    wanted = np.zeros(edges.size, bool)
    wanted[edges.size - len(thresholds) :] = True
    finite = np.isfinite(edges)
    return separable(edges[finite], wanted=wanted[finite])


def _thinned(corners: FloatArray, most: int) -> FloatArray:
    """All corners near both ends, and evenly many between them."""
    if corners.size <= most:
        return corners
    inner = np.linspace(_ENDS, corners.size - 1 - _ENDS, most - 2 * _ENDS).astype(np.int64)
    ends = np.arange(_ENDS)
    return np.asarray(corners[np.concatenate([ends, inner, corners.size - 1 - ends])])


class Binned:
    """Trials of each speaker in bins; a replicate ties the trials of a bin."""

    def __init__(self, counts: BySpeaker) -> None:
        self.scores = np.concatenate([[-np.inf], counts.edges])
        self.target = counts.target.astype(np.float64)
        self.nontarget = counts.nontarget.astype(np.float64)
        self.target_loss = counts.target_loss
        self.nontarget_loss = counts.nontarget_loss

    @property
    def speakers(self) -> int:
        """How many there are to draw from."""
        return int(self.target.shape[0])

    def weighted(self, times: FloatArray) -> Iterator[Roc | None]:
        """The statistic of every replicate (row of ``times``), or None if a class is empty."""
        change = times - 1
        target = times @ self.target
        nontarget = self.nontarget.sum(axis=0) / 2 + change @ self.nontarget
        missed = times @ self.target_loss
        accepted = self.nontarget_loss.sum() / 2 + change @ self.nontarget_loss
        none = np.zeros(self.scores.size + 1)
        np.maximum(nontarget, 0.0, out=nontarget)
        for row, both in enumerate(zip(target, nontarget, strict=True)):
            loss = float(missed[row]), max(float(accepted[row]), 0.0)
            there = all(count.any() for count in both)
            yield Roc(self.scores, *both, none, loss) if there else None


def first_order_bootstrap(
    counts: BySpeaker,
    roc: Roc,
    statistics: Callable[[Roc], Mapping[str, float]],
    *,
    replicates: int = 1000,
    seed: int = 0,
    progress: Progress | None = None,
) -> Replicates:
    """Replicates of every statistic, on the draws of :func:`bootstrap`.

    ``roc`` is the exact statistic: what the bins move is taken off every replicate.
    """
    if replicates < 2:
        raise InputError(f"bootstrap: expected at least 2 replicates, found {replicates}")
    table = Binned(counts)
    exact = statistics(roc)
    whole = next(table.weighted(np.ones((1, table.speakers))))
    coarse = exact if whole is None else statistics(whole)
    moved = np.array([exact[name] - coarse[name] for name in exact])
    values = np.full((len(exact), 1, replicates), np.nan)
    for first, last in ranges_of(replicates, _TOGETHER):
        draws = [drawn((table.speakers,), child_of(seed, index)) for index in range(first, last)]
        for index, found in enumerate(table.weighted(np.stack(draws)), start=first):
            if found is not None:
                values[:, 0, index] = np.array(list(statistics(found).values())) + moved
        if progress is not None:
            progress(last, replicates)
    return Replicates(dict(zip(exact, values, strict=True)), METHOD, seed, replicates)
