"""Bootstraps of trials that are only known by their counts in bins of scores: over trials, and over
speakers to first order in the draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unmask import base
from unmask.base import BySpeaker, FloatArray, IntArray, Lookup
from unmask.engine import information
from unmask.engine.roc import Roc
from unmask.run import NUMPY, Range, Xp
from unmask.trials import ScoreBatch

_ENDS = 24
_CELLS = 1 << 24
_FEWEST, _MOST = 64, 512
_TOGETHER = 50


def edges_of(roc: Roc, thresholds: Sequence[float], *, rows: int = 1) -> FloatArray:
    """Edges of bins that keep what metrics look at, fewer where a table has many rows.

    The corners of the ROC's hull come first, all near its ends: with them the binned statistic has
    the same hull. Then thresholds in even steps of Pmiss and in even ratios of Pfa, where the hull
    of a replicate may have its corners.
    """
    most = int(np.clip(_CELLS // rows, _FEWEST, _MOST))
    corners = _thinned(roc.pav.boundaries, most // 2)
    rejected = np.cumsum(roc.target) - roc.target
    passed = roc.nontargets - (np.cumsum(roc.between[:-1] + roc.equal) - roc.equal)
    misses = np.linspace(0, roc.targets, most // 4)
    alarms = np.geomspace(1, roc.nontargets, most // 4)
    at = np.concatenate([np.searchsorted(rejected, misses), np.searchsorted(-passed, -alarms)])
    even = roc.scores[np.minimum(at, roc.scores.size - 1)]
    given = np.asarray(tuple(thresholds), np.float64)
    edges = np.concatenate([corners, even, given, *roc.marks.values()])
    return np.unique(edges[np.isfinite(edges)])


def _thinned(corners: FloatArray, most: int) -> FloatArray:
    """All corners near both ends, and evenly many between them."""
    if corners.size <= most:
        return corners
    near = min(_ENDS, most // 4)
    inner = np.linspace(near, corners.size - 1 - near, most - 2 * near).astype(np.int64)
    ends = np.arange(near)
    return np.asarray(corners[np.concatenate([ends, inner, corners.size - 1 - ends])])


@dataclass(frozen=True, eq=False)
class BinnedTrials:
    """Trials of both classes in bins, with the summed loss of each bin: the trial bootstrap.

    Drawing as many trials with replacement puts a multinomial number into each bin.
    """

    roc: Roc
    edges: FloatArray
    target: IntArray
    nontarget: IntArray
    target_loss: FloatArray
    nontarget_loss: FloatArray
    method: ClassVar[str] = "trial"
    wider: ClassVar[float] = 1.0
    together: ClassVar[int] = _TOGETHER

    @classmethod
    def of(cls, batches: Iterable[ScoreBatch], edges: FloatArray, roc: Roc) -> BinnedTrials:
        """Count batches of trials, whose exact statistic is ``roc``."""
        size = edges.size + 1
        bin_of = Lookup(edges)
        counts, losses = np.zeros((2, size), np.int64), np.zeros((2, size))
        for batch in batches:
            bins_of = bin_of(batch.scores)
            for kind, (chosen, sign) in enumerate(((batch.is_target, -1), (~batch.is_target, 1))):
                counts[kind] += np.bincount(bins_of[chosen], minlength=size)
                loss = information.softplus(sign * batch.scores[chosen])
                losses[kind] += np.bincount(bins_of[chosen], loss, minlength=size)
        return cls(roc, edges, *counts, *losses)

    @property
    def units(self) -> int:
        """Trials of the smaller class."""
        return int(min(self.target.sum(), self.nontarget.sum()))

    @property
    def whole(self) -> Roc:
        """The statistic itself, in bins."""
        return self._roc(self.target, self.nontarget)

    def draws(self, seed: int, rows: Range) -> list[tuple[int, int]]:
        """Seed and number of some replicates: each system draws into its own bins."""
        return [(seed, index) for index in range(*rows)]

    def replicates(self, xp: Xp, times: Iterable[tuple[int, int]]) -> Iterator[Roc]:
        """The statistic of every draw."""
        for seed, index in times:
            random = base.generator(seed, index)
            both = (self.target, self.nontarget)
            yield self._roc(*(random.multinomial(n.sum(), n / n.sum()) for n in both))

    def _roc(self, target: IntArray, nontarget: IntArray) -> Roc:
        """The statistic of drawn trials, each with the mean loss of its bin."""
        missed = self.target_loss / np.maximum(self.target, 1)
        accepted = self.nontarget_loss / np.maximum(self.nontarget, 1)
        own, other = target.astype(np.float64), nontarget.astype(np.float64)
        scores, none = np.concatenate([[-np.inf], self.edges]), np.zeros(target.size + 1)
        loss = base.weighted_sum(missed, own), base.weighted_sum(accepted, other)
        return Roc(scores, own, other, none, loss, self.roc.marks)


def count_speakers(batches: Iterable[ScoreBatch], edges: FloatArray, speakers: int) -> BySpeaker:
    """Count trials by speaker; one of a speaker with themselves counts once for them."""
    bins, bin_of = edges.size + 1, Lookup(edges)
    target, nontarget = np.zeros((2, speakers * bins), np.int64)
    total = np.zeros(bins, np.int64)
    missed, accepted = np.zeros((2, speakers))
    total_loss = 0.0
    for batch in batches:
        bins_of = bin_of(batch.scores)
        own, other = batch.is_target, ~batch.is_target
        speaker = batch.enrol[own].astype(np.int64)
        target += np.bincount(speaker * bins + bins_of[own], minlength=target.size)
        missed += np.bincount(speaker, information.softplus(-batch.scores[own]), speakers)
        loss = information.softplus(batch.scores[other])
        total += np.bincount(bins_of[other], minlength=bins)
        total_loss += float(loss.sum())
        enrol, test = (side[other].astype(np.int64) for side in (batch.enrol, batch.test))
        for side, counted in ((enrol, slice(None)), (test, enrol != test)):
            cell = (side * bins + bins_of[other])[counted]
            nontarget += np.bincount(cell, minlength=nontarget.size)
            accepted += np.bincount(side[counted], loss[counted], speakers)
    shape = speakers, bins
    return BySpeaker(
        edges, target.reshape(shape), nontarget.reshape(shape), total, missed, accepted, total_loss
    )


def widening_of_pairs(speakers: int) -> float:
    """How much more a bootstrap of all trials spreads than one of first order, at most.

    m_a·m_b has variance 3, of which first order shows 2, so √(3/2) where each pair of speakers
    decides for itself. Well separated voices, of which few pairs err, spread √(1 + 10/n) times as
    much with n of 20 and more speakers.
    """
    return float(np.sqrt(1 + 10 / max(speakers, 20)))


@dataclass(frozen=True, eq=False)
class FirstOrder:
    """The speaker bootstrap of trials that nobody kept; a replicate ties the trials of a bin.

    With m_k draws of speaker k, a replicate's targets in a bin are Σ m_k·T_k, exactly. Its
    nontargets are Σ m_a·m_b·N_ab; with m = 1 + d this is N + Σ d_k·G_k plus products of two d,
    where G_k counts the nontargets of speaker k with anyone. These products are smaller by about
    the root of the number of speakers and are left out: a table of speakers × bins takes the place
    of all trials. Where few pairs of speakers decide they do count, and intervals are made wider
    for them (:func:`widening_of_pairs`).
    """

    counts: BySpeaker
    roc: Roc
    method: ClassVar[str] = "speaker,first order"
    together: ClassVar[int] = _TOGETHER

    @base.lazy
    def _tables(self) -> tuple[FloatArray, FloatArray]:
        """Targets and nontargets of each speaker, as numbers that multiply fast."""
        return self.counts.target.astype(np.float64), self.counts.nontarget.astype(np.float64)

    @property
    def units(self) -> int:
        """How many speakers the class has that has fewer."""
        return min(int(table.any(axis=1).sum()) for table in self._tables)

    @property
    def wider(self) -> float:
        """How much more a draw of all trials would spread."""
        return widening_of_pairs(self.units)

    @property
    def whole(self) -> Roc | None:
        """The statistic itself, in bins."""
        return next(self.replicates(NUMPY, np.ones((1, len(self.counts.target)))))

    def draws(self, seed: int, rows: Range) -> FloatArray:
        """How often each speaker is drawn in some replicates, the same in all numbers of a seed."""
        return base.draws(len(self.counts.target), rows[1] - rows[0], seed, first=rows[0])

    def replicates(self, xp: Xp, times: FloatArray) -> Iterator[Roc | None]:
        """The statistic of every draw (row of ``times``), or None if a class is empty."""
        counts, (own, others) = self.counts, self._tables
        change = times - 1
        target = times @ own
        nontarget = np.maximum(counts.total + change @ others, 0.0)
        missed = _product(times, counts.target_loss)
        accepted = counts.total_loss + _product(change, counts.nontarget_loss)
        scores = np.concatenate([[-np.inf], counts.edges])
        none = np.zeros(scores.size + 1)
        for row, both in enumerate(zip(target, nontarget, strict=True)):
            loss = float(missed[row]), max(float(accepted[row]), 0.0)
            there = all(count.any() for count in both)
            yield Roc(scores, *both, none, loss, self.roc.marks) if there else None


def _product(times: FloatArray, loss: FloatArray) -> FloatArray:
    """Σ m·loss of every draw; infinite as soon as a loss of weight other than 0 is."""
    finite = np.isfinite(loss)
    total = times[:, finite] @ loss[finite]
    return np.where((times[:, ~finite] != 0).any(axis=1), np.inf, total)
