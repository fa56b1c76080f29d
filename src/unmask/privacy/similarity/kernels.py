"""The two passes over all pairs of a set, as jobs on the current place.

The first counts: all scores of one speaker's pairs, then all others among them, which is the ROC
statistic. The second adds up calibrated scores per pair of speakers. Sums are real numbers: every
tile adds to them in a fixed order, a task is a fixed range of rows, and results are put together in
the order of the ranges, so all places but devices give the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from unmask.base import FloatArray, IntArray, Lookup, lazy
from unmask.engine import Roc, information
from unmask.errors import InputError
from unmask.privacy.similarity.intervals import Setup
from unmask.privacy.similarity.resampling import BinLayout, Binned
from unmask.run import Arrays, Numpy, Range, Xp, current_place, progress, run
from unmask.scoring import MOST_TRIALS, Block, CountAmong, PairGrid, Sides, TargetScores, Tile

TRIALS = 1 << 22
_NEGATED = ("negated_log_sigmoid", "negated_llr")


def statistic_of(pairs: PairGrid, name: str) -> Roc:
    """The ROC statistic of a set: pairs of one speaker against all others.

    The scores of one speaker's pairs come from the same place as all others, so that they are met
    there again bit by bit.
    """
    with progress(None):
        targets = TargetScores.of(pairs, pairs.ranges(TRIALS))
    knots = targets.scores.astype(np.float64, copy=False)
    if not knots.size:
        raise InputError(f"{name}: no pair of one speaker is compared")
    _refuse_nan(int(targets.counts[-1]) if np.isnan(knots[-1]) else 0, name, "pairs of one speaker")
    may_lack = not isinstance(pairs.source, Sides)
    counting = CountAmong(pairs, knots, with_loss=False, may_lack=may_lack)
    tally = counting.over(blocks_of(counting))
    _refuse_nan(tally.nan, name, "pairs of different speakers")
    if not tally.total:
        raise InputError(f"{name}: no pair of different speakers is compared")
    return Roc.from_counts(knots, targets.counts, tally.below, tally.equal, tally.total)


def blocks_of(counting: CountAmong) -> list[Block]:
    """Counts do not depend on the blocks. Results take room that grows with the distinct target
    scores: where they travel, a task has at least 128 times as many trials.
    """
    place = current_place()
    wanted = (8 if place.here and place.state is None else 128) * counting.knots.size
    return counting.pairs.whole(counting.pairs.ranges(min(max(TRIALS, wanted), MOST_TRIALS)))


def halved(roc: Roc) -> Roc:
    """The statistic of comparisons that were counted in both orders, each counted once.

    Where the two orders differ, each weighs one half.
    """
    return Roc(roc.scores, roc.target / 2, roc.equal / 2, roc.between / 2)


def _refuse_nan(number: int, name: str, which: str) -> None:
    if number:
        raise InputError(f"{name}: expected numbers, found NaN as score of {number} {which}")


@dataclass(frozen=True, eq=False)
class PairSums:
    """Per ordered pair of speakers: how many comparisons, and all sums over them.

    ``log_sigmoid`` and ``llr`` are sums over oracle LLRs with Laplace. ``disclosure`` is the sum of
    Z(l) within speakers and of Z(−l) between them, without Laplace (Noé 2022, eq. 13); ``extreme``
    is the largest |LLR| with Laplace, NaN where two speakers were not compared.
    """

    count: IntArray
    log_sigmoid: FloatArray
    llr: FloatArray
    disclosure: FloatArray
    extreme: FloatArray

    def mirrored(self) -> PairSums:
        """Both orders of two speakers pooled."""
        added = self.count, self.log_sigmoid, self.llr, self.disclosure
        return PairSums(*[*map(pooled, added), np.fmax(self.extreme, self.extreme.T)])


def pooled(table: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A table of ordered pairs of speakers with both orders added up."""
    off = ~np.eye(table.shape[0], dtype=bool)
    return np.where(off, table + table.T, table)


@dataclass(frozen=True, eq=False)
class PavTables:
    """What a score adds, by the PAV block that it falls into; one entry more for "not compared".

    Laplace only pools blocks further, so an index into the blocks without it serves both.
    """

    boundaries: FloatArray
    llr: FloatArray
    log_sigmoid: FloatArray
    z_target: FloatArray
    z_nontarget: FloatArray

    @classmethod
    def of(cls, roc: Roc) -> PavTables:
        """Tables of the oracle calibration of a statistic."""
        pav, laplace = roc.pav, roc.pav_laplace
        inner = np.searchsorted(laplace.boundaries, pav.boundaries, side="right")
        llr = laplace.llr[np.concatenate([[0], inner])]
        return cls(
            pav.boundaries,
            np.append(llr, 0.0),
            np.append(-information.softplus(-llr), 0.0),
            np.append(np.where(pav.target > 0, information.z(pav.llr), 0.0), 0.0),
            np.append(np.where(pav.nontarget > 0, information.z(-pav.llr), 0.0), 0.0),
        )

    @lazy
    def lookup(self) -> Lookup:
        """Gives the block of each score."""
        return Lookup(self.boundaries)

    @property
    def none(self) -> int:
        """Index of the entry for pairs that are not compared."""
        return self.llr.size - 1

    @property
    def extreme(self) -> FloatArray:
        """|LLR| of each block; −1 for "not compared"."""
        return np.append(np.abs(self.llr[:-1]), -1.0)


@dataclass(frozen=True, eq=False)
class Calibrated:
    """Pairs with the tables of their calibration: what adding up shares. ``negated`` are those of
    the negated scores, where they are wanted, ``layout`` that of counts in bins, where it is;
    ``extreme`` is the |LLR| of each block.
    """

    pairs: PairGrid
    tables: PavTables
    extreme: FloatArray
    negated: PavTables | None
    layout: BinLayout | None


def sums_of(
    pairs: PairGrid, roc: Roc, setup: Setup, *, negated: bool, once: bool
) -> tuple[PairSums, tuple[FloatArray, FloatArray] | None, Binned | None]:
    """Sums of a set under its statistic; where ``negated`` those of log σ and of the LLRs of the
    negated scores, and counts in bins where there are replicates.

    ``once``: both orders of every comparison occur, and extreme LLRs are those of comparisons
    counted once.
    """
    layout = BinLayout.of(roc, pairs.enrol.size) if setup.replicates else None
    tables, opposite = PavTables.of(roc), PavTables.of(roc.negated()) if negated else None
    extreme = (PavTables.of(halved(roc)) if once else tables).extreme
    calibrated = Calibrated(pairs, tables, extreme, opposite, layout)
    sums = _zeros(calibrated, pairs.enrol.size)
    ranges = pairs.ranges(TRIALS)
    for rows, part in zip(ranges, run(sum_rows, calibrated, ranges), strict=True):
        spoken = pairs.enrol.within(*rows)
        _add(sums, part, slice(spoken.start, spoken.stop), slice(None))
    binned = None if layout is None else Binned.of(sums.pop("bins"), layout, mirror=setup.mirror)
    turned = (sums.pop(_NEGATED[0]), sums.pop(_NEGATED[1])) if negated else None
    sums["extreme"] = np.where(sums["extreme"] < 0, np.nan, sums["extreme"])
    return PairSums(**sums), turned, binned


def _zeros(calibrated: Calibrated, rows: int) -> Arrays:
    """Empty sums of so many speakers against all."""
    shape, layout = (rows, calibrated.pairs.enrol.size), calibrated.layout
    real = ("log_sigmoid", "llr", "disclosure", *(_NEGATED if calibrated.negated else ()))
    bins = {} if layout is None else {"bins": np.zeros(layout.shape(rows), np.int32)}
    return {
        **bins,
        "count": np.zeros(shape, np.int64),
        **{name: np.zeros(shape) for name in real},
        "extreme": np.full(shape, -1.0),
    }


def _add(sums: Arrays, part: Arrays, rows: slice, columns: slice) -> None:
    for name, table in sums.items():
        cells = table[rows] if name == "bins" else table[rows, columns]
        (np.maximum if name == "extreme" else np.add)(cells, part[name], out=cells)


def sum_rows(xp: Xp, calibrated: Calibrated, rows: Range) -> Arrays:
    """Sums of the speakers of a range of rows against all speakers."""
    spoken = calibrated.pairs.enrol.within(*rows)
    sums = _zeros(calibrated, len(spoken))
    for tile in calibrated.pairs.tiles(xp, (*rows, 0, len(calibrated.pairs.test))):
        top, left = tile.speakers
        part = {name: xp.host(values) for name, values in _tile_sums(tile, calibrated).items()}
        inside = slice(top.start - spoken.start, top.stop - spoken.start)
        _add(sums, part, inside, slice(left.start, left.stop))
    return sums


def _tile_sums(tile: Tile, calibrated: Calibrated) -> dict[str, Any]:
    """What a tile adds, per pair of its speakers."""
    xp, tables, negated = tile.xp, calibrated.tables, calibrated.negated
    fold = xp.fold(*tile.cuts)

    def at(table: FloatArray, step: Any) -> Any:
        if isinstance(xp, Numpy):
            return np.take(table, step, mode="clip")
        return xp.put(table)[step]

    step = tile.skip(xp.among(tables.lookup, tile.scores), tables.none)
    sums = {
        "count": tile.count(fold),
        "log_sigmoid": fold(at(tables.log_sigmoid, step)),
        "llr": fold(at(tables.llr, step)),
        "extreme": fold(at(calibrated.extreme, step), "max"),
    }
    values = at(tables.z_nontarget, step)
    for own in tile.own():
        values[own] = at(tables.z_target, step[own])
    sums["disclosure"] = fold(values)
    if negated is not None:
        step = tile.skip(xp.among(negated.lookup, -tile.scores), negated.none)
        for name, table in zip(_NEGATED, (negated.log_sigmoid, negated.llr), strict=True):
            sums[name] = fold(at(table, step))
    if calibrated.layout is not None:
        sums["bins"] = _tile_counts(tile, calibrated.layout)
    return sums


def _tile_counts(tile: Tile, layout: BinLayout) -> Any:
    """How many scores of each pair of speakers lie in each bin, by the speakers of the rows."""
    xp, (top, left) = tile.xp, tile.speakers
    one, other = np.arange(top.start, top.stop), np.arange(left.start, left.stop)
    shape = layout.shape(len(top))
    size = int(np.prod(shape))
    cells = layout.cells(one[:, None], other, top.start)
    rows, columns = (xp.repeat(xp.put(np.diff(edges))) for edges in tile.cuts)
    cell = xp.put(np.where(cells < 0, size, cells))[:, columns][rows]
    cell += xp.among(layout.lookup, tile.scores)
    counts = xp.bincount(tile.skip(cell, size), size + layout.bins)
    return xp.host(counts)[:size].astype(np.int32).reshape(shape)
