"""Two passes over all pairs: count the ROC statistic, then add up per pair of speakers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from unmask.arrays import FloatArray, IntArray, as_scores
from unmask.detection import information
from unmask.detection.pav import Pav
from unmask.detection.roc import Roc
from unmask.errors import InputError
from unmask.privacy.similarity_lookup import StepLookup
from unmask.privacy.similarity_pairs import Pairs

Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class PairSums:
    """Per ordered pair of speakers: how many comparisons, and what they add up to.

    ``log_sigmoid`` and ``llr`` are sums over oracle LLRs with Laplace. ``disclosure`` is the sum of
    Z(l) within speakers and of Z(−l) between them, without Laplace (Noé 2022, eq. 13); ``lowest``
    and ``highest`` are the extreme LLRs with Laplace, NaN where two speakers were not compared.
    """

    count: IntArray
    log_sigmoid: FloatArray
    llr: FloatArray
    disclosure: FloatArray
    lowest: FloatArray
    highest: FloatArray

    def mirrored(self) -> PairSums:
        """Both orders of two speakers pooled."""
        off = ~np.eye(self.count.shape[0], dtype=bool)

        def pooled(table: npt.NDArray[Any]) -> npt.NDArray[Any]:
            return np.where(off, table + table.T, table)

        return PairSums(
            pooled(self.count),
            pooled(self.log_sigmoid),
            pooled(self.llr),
            pooled(self.disclosure),
            np.fmin(self.lowest, self.lowest.T),
            np.fmax(self.highest, self.highest.T),
        )


@dataclass(frozen=True, eq=False)
class Tables:
    """What a score adds, by the PAV block that it falls into; one entry more for "not compared".

    Laplace only pools blocks further, so an index into the blocks without it serves both.
    """

    lookup: StepLookup
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
            StepLookup.of(pav.boundaries),
            np.append(llr, 0.0),
            np.append(-information.softplus(-llr), 0.0),
            np.append(np.where(pav.target > 0, information.z(pav.llr), 0.0), 0.0),
            np.append(np.where(pav.nontarget > 0, information.z(-pav.llr), 0.0), 0.0),
        )

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


def count(pairs: Pairs, *, workers: int | None = None, progress: Progress | None = None) -> Roc:
    """First pass: the ROC statistic of same-speaker pairs against all others."""

    def part(block: tuple[int, int]) -> Roc | None:
        pieces = [piece for piece in pairs.nontargets(*block) if piece.size]
        return Roc.from_blocks(target, pieces) if pieces else None

    ranges = pairs.ranges()
    try:
        target = as_scores(
            np.concatenate([scores for block in ranges for scores in pairs.targets(*block)]),
            "same-speaker",
        )
        whole: Roc | None = None
        for roc in _in_order(part, ranges, workers, progress):
            whole = roc if whole is None else whole if roc is None else whole + roc
    except InputError as error:
        raise InputError(f"{pairs.name}: {error}") from None
    if whole is None:
        raise InputError(f"{pairs.name}: no pair of different speakers is compared")
    return whole


def total(
    pairs: Pairs,
    roc: Roc,
    *,
    negate: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
) -> PairSums:
    """Second pass: sums per pair of speakers of the calibrated scores.

    ``roc`` is the statistic of the scores, or of the negated scores with ``negate``.
    """
    tables = Tables.of(roc)
    shape = (len(pairs.segments.names),) * 2
    sums = PairSums(
        np.zeros(shape, dtype=np.int64),
        np.zeros(shape),
        np.zeros(shape),
        np.zeros(shape),
        np.full(shape, np.nan),
        np.full(shape, np.nan),
    )
    ranges = pairs.ranges()
    parts = _in_order(lambda block: _part(pairs, tables, negate, block), ranges, workers, progress)
    for rows, part in parts:
        sums.count[rows] += part.count
        sums.log_sigmoid[rows] += part.log_sigmoid
        sums.llr[rows] += part.llr
        sums.disclosure[rows] += part.disclosure
        sums.lowest[rows] = np.fmin(sums.lowest[rows], part.lowest)
        sums.highest[rows] = np.fmax(sums.highest[rows], part.highest)
    return sums.mirrored() if pairs.mirror else sums


def _part(
    pairs: Pairs, tables: Tables, negate: bool, block: tuple[int, int]
) -> tuple[slice, PairSums]:
    """The speakers of a range of rows, and their sums over it."""
    start, stop = block
    segments = pairs.segments
    scores = pairs.source.rows(start, stop)
    step = tables.lookup(-scores if negate else scores)
    skipped = pairs.skipped(start, stop)
    step[skipped] = tables.none
    codes = segments.codes[start:stop]
    top = np.concatenate([[0], np.flatnonzero(np.diff(codes)) + 1])

    def folded(values: npt.NDArray[Any], how: np.ufunc = np.add) -> npt.NDArray[Any]:
        return np.asarray(how.reduceat(how.reduceat(values, segments.first, axis=1), top, axis=0))

    if pairs.rule is None:
        owners, sizes = np.unique(codes, return_counts=True)
        number = np.outer(sizes, segments.counts)
        number[np.arange(owners.size), owners] -= sizes
    else:
        number = folded((step != tables.none).astype(np.int64))
    disclosure = tables.z_nontarget[step]
    for rows, columns in pairs.spans(start, stop):
        own = slice(rows.start - start, rows.stop - start), columns
        disclosure[own] = tables.z_target[step[own]]
    lowest = folded(step, np.minimum)
    log_sigmoid, llr = folded(tables.log_sigmoid[step]), folded(tables.llr[step])
    step[skipped] = -1
    return slice(int(codes[0]), int(codes[-1]) + 1), PairSums(
        number,
        log_sigmoid,
        llr,
        folded(disclosure),
        tables.llr_of(lowest),
        tables.llr_of(folded(step, np.maximum)),
    )


T = TypeVar("T")


def _in_order(
    work: Callable[[tuple[int, int]], T],
    ranges: Sequence[tuple[int, int]],
    workers: int | None,
    progress: Progress | None,
) -> Iterator[T]:
    """Results of every range in their order, so that the number of threads changes no sum."""
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        for done, result in enumerate(pool.map(work, ranges), start=1):
            if progress is not None:
                progress(done, len(ranges))
            yield result
