"""Sums of calibrated scores per pair of speakers, and what a score adds to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray, Places, lazy
from unmask.engine import Pav, Roc, information
from unmask.run import ArrayFields


@dataclass(frozen=True, eq=False)
class MeanSums:
    """Per ordered pair of speakers: how many comparisons, and the sums that similarity needs.

    ``log_sigmoid`` and ``llr`` are sums over oracle LLRs with Laplace.
    """

    count: IntArray
    log_sigmoid: FloatArray
    llr: FloatArray

    def mirrored(self) -> MeanSums:
        """Both orders of two speakers pooled."""
        return MeanSums(_pooled(self.count), _pooled(self.log_sigmoid), _pooled(self.llr))


@dataclass(frozen=True, eq=False)
class PairSums(MeanSums):
    """All sums per ordered pair of speakers.

    ``disclosure`` is the sum of Z(l) within speakers and of Z(−l) between them, without Laplace
    (Noé 2022, eq. 13); ``lowest`` and ``highest`` are the extreme LLRs with Laplace, NaN where two
    speakers were not compared.
    """

    disclosure: FloatArray
    lowest: FloatArray
    highest: FloatArray

    def mirrored(self) -> PairSums:
        """Both orders of two speakers pooled."""
        return PairSums(
            _pooled(self.count),
            _pooled(self.log_sigmoid),
            _pooled(self.llr),
            _pooled(self.disclosure),
            np.fmin(self.lowest, self.lowest.T),
            np.fmax(self.highest, self.highest.T),
        )


def _pooled(table: npt.NDArray[Any]) -> npt.NDArray[Any]:
    off = ~np.eye(table.shape[0], dtype=bool)
    return np.where(off, table + table.T, table)


@dataclass(frozen=True, eq=False)
class Tables(ArrayFields):
    """What a score adds, by the PAV block that it falls into; one entry more for "not compared".

    Laplace only pools blocks further, so an index into the blocks without it serves both.
    """

    boundaries: FloatArray
    llr: FloatArray
    log_sigmoid: FloatArray
    z_target: FloatArray
    z_nontarget: FloatArray

    @classmethod
    def of(cls, roc: Roc) -> Tables:
        """Tables of the oracle calibration of a statistic."""
        pav, laplace = roc.pav, roc.pav_laplace
        llr = laplace.llr[_coarser(pav, laplace)]
        return cls(
            pav.boundaries,
            np.append(llr, 0.0),
            np.append(-information.softplus(-llr), 0.0),
            np.append(np.where(pav.target > 0, information.z(pav.llr), 0.0), 0.0),
            np.append(np.where(pav.nontarget > 0, information.z(-pav.llr), 0.0), 0.0),
        )

    @lazy
    def lookup(self) -> Places:
        """Gives the block of each score."""
        return Places(self.boundaries)

    @property
    def none(self) -> int:
        """Index of the entry for pairs that are not compared."""
        return self.llr.size - 1

    def llr_of(self, step: npt.NDArray[np.integer[Any]]) -> FloatArray:
        """LLR with Laplace of a block; NaN for "not compared", from either end."""
        known = (step >= 0) & (step < self.none)
        return np.where(known, self.llr[step], np.nan)


def _coarser(fine: Pav, coarse: Pav) -> IntArray:
    """Block of the coarser map that each block of the finer one lies in."""
    inner = np.searchsorted(coarse.boundaries, fine.boundaries, side="right")
    return np.concatenate([[0], inner]).astype(np.int64)
