"""Intervals of 1 − EER: test speakers drawn with replacement, their scores in a few bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from unmask.arrays import FloatArray, IntArray
from unmask.detection.operating import equal_errors
from unmask.privacy.legal_curve import Resampling, percentiles
from unmask.scoring.job import Where, run
from unmask.scoring.plan import Range, ranges_of
from unmask.scoring.shared import ArrayFields
from unmask.scoring.store import Arrays

_AT_ONCE = 256
_DRAWN_AT_ONCE = 64
Times = npt.NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class Resampled(ArrayFields):
    """Test speakers in bins of scores, and how often each is drawn in every replicate.

    ``own`` is the bin of a speaker's target, ``spread`` how many nontargets it has in each bin
    between one N' and the next, ``extra`` the bin of the one more that a list of N' has, or −1.
    """

    times: Times
    own: IntArray
    spread: npt.NDArray[np.unsignedinteger]
    extra: IntArray

    def intervals(
        self, value: FloatArray, *, level: float, workers: int | None
    ) -> tuple[FloatArray, FloatArray]:
        """Percentile interval of 1 − EER for every N', moved to the exact value.

        The first row of ``times`` draws everyone once: it gives the value that bins give.
        """
        ranges = ranges_of(len(self.times), _AT_ONCE)
        parts = run(errors_of, self, ranges, where=Where(workers=workers))
        drawn = 1 - np.concatenate([part["errors"] for part in parts])
        low, high = percentiles(drawn[1:], level)
        move = value - drawn[0]
        return np.clip(low + move, 0, 1), np.clip(high + move, 0, 1)


def errors_of(resampled: Resampled, replicates: Range) -> Arrays:
    """EER of some replicates (rows) for every N' (columns).

    All sums are whole numbers, so they do not depend on the order in which they are taken.
    """
    times = resampled.times[slice(*replicates)].astype(np.float64)
    histogram = np.zeros(resampled.spread.shape[1:])
    histogram[np.arange(len(histogram)), resampled.own] = 1
    target = times @ histogram
    histogram[:] = 0
    errors = np.empty((len(times), len(resampled.spread)))
    for n, (spread, extra) in enumerate(zip(resampled.spread, resampled.extra, strict=True)):
        histogram += spread
        more = np.flatnonzero(extra >= 0), extra[extra >= 0]
        histogram[more] += 1
        errors[:, n] = equal_errors(target, times @ histogram)
        histogram[more] -= 1
    return {"errors": errors}


def drawn_times(speakers: int, how: Resampling) -> Times:
    """How often each speaker is drawn in every replicate; before them a row of ones."""
    rng = np.random.default_rng(np.random.SeedSequence(how.seed))
    times = np.ones((how.replicates + 1, speakers), dtype=np.uint16)
    for start in range(1, len(times), _DRAWN_AT_ONCE):
        rows = min(_DRAWN_AT_ONCE, len(times) - start)
        drawn = rng.integers(0, speakers, (rows, speakers)) + np.arange(rows)[:, None] * speakers
        found = np.bincount(drawn.ravel(), minlength=rows * speakers)
        times[start : start + rows] = found.reshape(rows, speakers)
    return times
