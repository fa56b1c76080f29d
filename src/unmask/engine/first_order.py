"""The speaker bootstrap of trials that nobody kept: first order in the draws.

With m_k draws of speaker k, a replicate's targets in a bin are Σ m_k·T_k, exactly. Its nontargets
are Σ m_a·m_b·N_ab; with m = 1 + d this is N + Σ d_k·G_k plus products of two d, where G_k counts
the nontargets of speaker k with anyone. These products are smaller by about the root of the number
of speakers and are left out: a table of speakers × bins takes the place of all trials.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from unmask.base import BoolArray, FloatArray, Places
from unmask.engine import information
from unmask.engine.bootstrap import Codes, child_of, drawn
from unmask.engine.roc import Roc
from unmask.scoring import BySpeaker

METHOD = "speaker,first order"


@dataclass(frozen=True, eq=False)
class Batch:
    """Some trials, with the speakers of both sides."""

    scores: FloatArray
    is_target: BoolArray
    enrol: Codes
    test: Codes


def count_speakers(batches: Iterable[Batch], edges: FloatArray, speakers: int) -> BySpeaker:
    """Count trials by speaker; one of a speaker with themselves counts once for them."""
    bins, place_of = edges.size + 1, Places(edges)
    target, nontarget = np.zeros((2, speakers * bins), np.int64)
    total = np.zeros(bins, np.int64)
    missed, accepted = np.zeros((2, speakers))
    total_loss = 0.0
    for batch in batches:
        place = place_of(batch.scores)
        own, other = batch.is_target, ~batch.is_target
        speaker = batch.enrol[own].astype(np.int64)
        target += np.bincount(speaker * bins + place[own], minlength=target.size)
        missed += np.bincount(speaker, information.softplus(-batch.scores[own]), speakers)
        loss = information.softplus(batch.scores[other])
        total += np.bincount(place[other], minlength=bins)
        total_loss += float(loss.sum())
        enrol, test = (side[other].astype(np.int64) for side in (batch.enrol, batch.test))
        for side, counted in ((enrol, slice(None)), (test, enrol != test)):
            cell = (side * bins + place[other])[counted]
            nontarget += np.bincount(cell, minlength=nontarget.size)
            accepted += np.bincount(side[counted], loss[counted], speakers)
    shape = speakers, bins
    return BySpeaker(
        edges,
        target.reshape(shape),
        nontarget.reshape(shape),
        total,
        missed,
        accepted,
        total_loss,
    )


class FirstOrder:
    """A bootstrap over the speakers of a table; a replicate ties the trials of a bin."""

    method = METHOD

    def __init__(self, counts: BySpeaker) -> None:
        self._scores = np.concatenate([[-np.inf], counts.edges])
        self._target = counts.target.astype(np.float64)
        self._nontarget = counts.nontarget.astype(np.float64)
        self._counts = counts

    @property
    def speakers(self) -> int:
        """How many there are to draw from."""
        return int(self._target.shape[0])

    @property
    def units(self) -> int:
        """How many speakers the class has that has fewer."""
        return min(int(c.any(axis=1).sum()) for c in (self._target, self._nontarget))

    @property
    def whole(self) -> Roc | None:
        """The statistic itself, in bins."""
        return next(self.weighted(np.ones((1, self.speakers))))

    def replicates(self, seed: int, first: int, last: int) -> Iterator[Roc | None]:
        """Some replicates, on the draws that :func:`.bootstrap` makes from the same seed."""
        draws = [drawn((self.speakers,), child_of(seed, index)) for index in range(first, last)]
        return self.weighted(np.stack(draws))

    def weighted(self, times: FloatArray) -> Iterator[Roc | None]:
        """The statistic of every draw (row of ``times``), or None if a class is empty."""
        change = times - 1
        target = times @ self._target
        nontarget = np.maximum(self._counts.total + change @ self._nontarget, 0.0)
        missed = _product(times, self._counts.target_loss)
        accepted = self._counts.total_loss + _product(change, self._counts.nontarget_loss)
        none = np.zeros(self._scores.size + 1)
        for row, both in enumerate(zip(target, nontarget, strict=True)):
            loss = float(missed[row]), max(float(accepted[row]), 0.0)
            there = all(count.any() for count in both)
            yield Roc(self._scores, *both, none, loss) if there else None


def _product(times: FloatArray, loss: FloatArray) -> FloatArray:
    """Σ m·loss of every draw; infinite as soon as a loss of weight other than 0 is."""
    finite = np.isfinite(loss)
    total = times[:, finite] @ loss[finite]
    return np.where((times[:, ~finite] != 0).any(axis=1), np.inf, total)
